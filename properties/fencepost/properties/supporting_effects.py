"""Invariants that the proofs about effects need: true, and checked like claims, but no promises.

First what requests, beliefs and the log look like; then the fence; then what the downstream's records say;
last what a worker may conclude, and when an effect is out of the question for good. An invariant that needs a
switch off helps only claims that need it off, too.
"""

from __future__ import annotations

from fencepost.model import State, derived, every, switched
from fencepost.model.core.state import me, state_versions, workers
from fencepost.model.domains import Element, Member
from fencepost.model.effects.downstream import is_as_stored
from fencepost.model.effects.state import (
    Answer,
    Kind,
    Knows,
    Status,
    calls,
    intent_of,
    intent_versions,
    status,
)
from fencepost.properties import supporting as core
from fencepost.properties.effects import EFFECTS, FORGETFUL, present_intent, step_is

RECORDS_LOST = ("record_expired", "record_volatile")
GUESSED = (*FORGETFUL, "key_per_retry")
"""What S13 needs off: otherwise a worker takes for undone what has happened."""

# As in the core, of which the leases are.

for _invariant in (
    core.the_owner_holds_the_current_version,
    core.the_dead_believe_nothing,
    core.believed_leases_were_acquired,
    core.believed_states_were_reached,
):
    EFFECTS.supporting(supports=("S10", "S13"))(_invariant)


# Beliefs, the log and what is on its way.


@EFFECTS.supporting(supports=("S10", "S13"))
def believers_acquired_their_lease(s: State) -> object:
    """A lease that a worker takes for its own was acquired by that worker in that incarnation."""
    return every(workers, lambda w: not s.believes[w].present or s.holder[s.believes[w].lease] == me(s, w))


@EFFECTS.supporting(supports=("S10", "S13"))
def owners_know_the_current_state(s: State) -> object:
    """A worker that takes the current lease version for its own knows the current state version."""
    return every(
        workers,
        lambda w: (
            not s.believes[w].present
            or s.believes[w].lease != s.lease_version
            or s.believes[w].state == s.state_version
        ),
    )


@EFFECTS.supporting(supports=("S13",))
def intents_only_rise(s: State) -> object:
    """No earlier state of the step has a later intent than the present one."""
    return every(state_versions, lambda v: v > s.state_version or s.log[v].intent <= present_intent(s))


@EFFECTS.supporting(supports=("S10", "S13"))
def a_step_that_began_has_an_intent(s: State) -> object:
    """The step has an intent, and it is stored, in each of its states but pending, where it has none."""
    return every(
        state_versions,
        lambda v: (
            v > s.state_version
            or (s.log[v].status == Status.pending and s.log[v].intent == 0)
            or (
                s.log[v].status != Status.pending
                and s.log[v].intent >= 1
                and s.intent[s.log[v].intent].present
            )
        ),
    )


@EFFECTS.supporting(supports=("S9", "S10", "S13"))
def what_moves_was_sent(s: State) -> object:
    """Only requests that were sent are on their way or answered."""
    return every(calls, lambda c: s.call[c].present or (not s.in_flight[c] and s.reply[c] == Answer.none))


@EFFECTS.supporting(supports=("S13",))
def requests_name_a_past_holder(s: State) -> object:
    """A request was sent by who acquired the lease version that it has as its token."""
    return every(
        calls,
        lambda c: (
            not s.call[c].present
            or (
                s.call[c].token >= 1
                and s.call[c].token <= s.lease_version
                and s.holder[s.call[c].token] == s.call[c].by
            )
        ),
    )


@EFFECTS.supporting(supports=("S13",))
def requests_name_a_stored_intent(s: State) -> object:
    """A request is for an intent that the step has or had."""
    return every(
        calls,
        lambda c: not s.call[c].present or (s.call[c].intent >= 1 and s.call[c].intent <= present_intent(s)),
    )


@EFFECTS.supporting(supports=("S8-intent",))
def requests_say_what_is_stored(s: State) -> object:
    """A request has the parameters of its stored intent, unless workers derive them anew."""
    return switched("intent_rederived") or every(calls, lambda c: not s.call[c].present or is_as_stored(s, c))


@EFFECTS.supporting(supports=("S8", "S9", "S10", "S13", "S19"))
def tombstones_are_for_downstreams_with_keys(s: State) -> object:
    """A tombstone is asked for only where keys are kept."""
    return every(calls, lambda c: not s.call[c].present or not s.call[c].buries or switched("keyed"))


@EFFECTS.supporting(supports=("S8", "S10", "S13"), needs_off=("key_per_retry",))
def requests_have_the_key_of_their_intent(s: State) -> object:
    """The key of a request is that of its intent."""
    return every(calls, lambda c: not s.call[c].present or s.call[c].key == s.call[c].intent)


@EFFECTS.supporting(supports=("S10",), needs_off=("key_per_retry",))
def only_stored_intents_are_on_record(s: State) -> object:
    """Something is kept only under the keys of intents that the step has or had."""
    return every(intent_versions, lambda k: not s.record[k].present or (k >= 1 and k <= present_intent(s)))


# The fence.


@EFFECTS.supporting(supports=("S13",))
def the_fence_is_a_lease_version(s: State) -> object:
    """The downstream records no token that nobody has."""
    return s.fence <= s.lease_version


# What the downstream's records say.


@derived
def holds(s: State, key: object, kind: object) -> object:
    """Whether the downstream keeps this under a key."""
    return s.record[key].present and s.record[key].kind == kind


@derived
def is_ruled_out(s: State, key: object) -> object:
    """Whether a tombstone or a declined effect is kept under a key, so that nothing happens under it."""
    return s.record[key].present and s.record[key].kind != Kind.receipt


@EFFECTS.supporting(supports=("S9", "S10", "S13"))
def only_keys_rule_out(s: State) -> object:
    """Only a downstream that keeps keys keeps tombstones and declined effects."""
    return every(intent_versions, lambda k: not is_ruled_out(s, k) or switched("keyed"))


@EFFECTS.supporting(supports=("S8", "S13"), needs_off=GUESSED)
def what_happened_is_on_record(s: State) -> object:
    """Where records are kept, there is a receipt for each effect that has taken place."""
    return not (switched("keyed") or switched("queryable")) or every(
        intent_versions, lambda i: not s.happened[i] or holds(s, i, Kind.receipt)
    )


@EFFECTS.supporting(supports=("S9",), needs_off=FORGETFUL)
def receipts_are_of_what_landed(s: State) -> object:
    """Where keys are kept, a receipt is kept exactly of what has landed, with the same fingerprint."""
    return not switched("keyed") or every(
        intent_versions,
        lambda k: (
            (not s.landed_as[k].present and not holds(s, k, Kind.receipt))
            or (holds(s, k, Kind.receipt) and s.landed_as[k] == s.record[k].fingerprint)
        ),
    )


@EFFECTS.supporting(supports=("S10",), needs_off=("two_transactions", "key_per_retry"))
def receipts_are_true(s: State) -> object:
    """A receipt for an intent's parameters is kept under its key only if its effect has taken place."""
    return every(
        intent_versions,
        lambda k: (
            not holds(s, k, Kind.receipt)
            or not s.intent[k].present
            or s.record[k].fingerprint != s.intent[k].fingerprint
            or s.as_intended[k]
        ),
    )


@EFFECTS.supporting(supports=("S10",), needs_off=("two_transactions", "key_per_retry"))
def ok_is_true(s: State) -> object:
    """A request with its intent's parameters is answered ok only if that effect has taken place."""
    return every(
        calls,
        lambda c: (
            s.reply[c] != Answer.ok
            or (s.call[c].present and (not is_as_stored(s, c) or s.as_intended[s.call[c].intent]))
        ),
    )


@EFFECTS.supporting(supports=("S10",), needs_off=("two_transactions", "key_per_retry"))
def who_knows_of_a_receipt_is_right(s: State) -> object:
    """When a worker knows of a receipt, the effect has taken place, with the parameters of its intent."""
    return every(
        workers,
        lambda w: not s.believes[w].present or s.knows[w] != Knows.receipt or s.as_intended[intent_of(s, w)],
    )


@EFFECTS.supporting(supports=("S19",), needs_off=RECORDS_LOST)
def tombstones_stay(s: State) -> object:
    """A tombstone that was written is still there, and the downstream keeps keys."""
    return every(
        intent_versions, lambda k: not s.buried[k] or (switched("keyed") and holds(s, k, Kind.tombstone))
    )


@EFFECTS.supporting(supports=("S13",), needs_off=RECORDS_LOST)
def an_answer_that_rules_out_is_on_record(s: State) -> object:
    """An answer that rules an effect out rests on what is kept under its key."""
    return every(
        calls,
        lambda c: (
            not (s.reply[c] == Answer.tombstoned or (s.reply[c] == Answer.declined and switched("keyed")))
            or (s.call[c].present and is_ruled_out(s, s.call[c].key))
        ),
    )


# What a worker may conclude. An effect may be sent for the first time, or given up, only on these grounds.


@derived
def concludes(s: State, w: Element, knowing: Member) -> object:
    """Whether worker `w` knows this, and it counts: it is the owner, or nobody else may just send again."""
    return (
        s.believes[w].present
        and s.knows[w] == knowing
        and (s.believes[w].lease == s.lease_version or not switched("keyed"))
    )


@derived
def fenced_off(s: State, token: object) -> object:
    """Whether the downstream refuses this token."""
    return switched("fenced") and token < s.fence


@derived
def is_unsent(s: State, i: object) -> object:
    """Whether no request was sent that would bring about the effect of intent `i`."""
    return every(calls, lambda c: not s.call[c].present or s.call[c].buries or s.call[c].intent != i)


@derived
def is_sent_below(s: State, i: object, token: object) -> object:
    """Whether the requests that would bring about the effect of intent `i` have lower tokens than this."""
    return every(
        calls,
        lambda c: (
            not s.call[c].present or s.call[c].buries or s.call[c].intent != i or s.call[c].token < token
        ),
    )


@EFFECTS.supporting(supports=("S13",))
def a_new_owner_has_sent_nothing(s: State) -> object:
    """A worker that knows nothing, or has only raised the fence, has sent no request under its lease."""
    return every(
        workers,
        calls,
        lambda w, c: (
            not s.believes[w].present
            or (s.knows[w] != Knows.nothing and s.knows[w] != Knows.raised)
            or not s.call[c].present
            or s.call[c].token != s.believes[w].lease
        ),
    )


@EFFECTS.supporting(supports=("S13",), needs_off=("record_volatile",))
def a_raised_fence_stays(s: State) -> object:
    """After a worker has raised the fence, the downstream refuses every lower lease version."""
    return every(
        workers,
        lambda w: (
            not s.believes[w].present
            or s.knows[w] != Knows.raised
            or (switched("fenced") and s.believes[w].lease <= s.fence)
        ),
    )


@EFFECTS.supporting(supports=("S13",))
def an_unsent_intent_is_read_only_later(s: State) -> object:
    """Who else knows of an intent that its maker has not sent has a higher lease version than the maker."""
    return every(
        workers,
        workers,
        lambda w, u: (
            w == u
            or not s.believes[w].present
            or s.knows[w] != Knows.unsent
            or not s.believes[u].present
            or intent_of(s, u) != intent_of(s, w)
            or s.believes[u].lease > s.believes[w].lease
        ),
    )


@EFFECTS.supporting(supports=("S13",), needs_off=GUESSED)
def an_unsent_effect_has_not_happened(s: State) -> object:
    """An unsent effect has not happened, and nobody else has sent it, unless its maker is fenced off."""
    return every(
        workers,
        lambda w: (
            not s.believes[w].present
            or not concludes(s, w, Knows.unsent)
            or fenced_off(s, s.believes[w].lease)
            or (not s.happened[intent_of(s, w)] and is_unsent(s, intent_of(s, w)))
        ),
    )


@EFFECTS.supporting(supports=("S13",), needs_off=GUESSED)
def later_owners_raise_the_fence_first(s: State) -> object:
    """Without keys, a later owner sends an intent again only after it has raised the fence."""
    return switched("keyed") or every(
        workers,
        lambda w: (
            not s.believes[w].present
            or fenced_off(s, s.believes[w].lease)
            or is_sent_below(s, intent_of(s, w), s.believes[w].lease + 1)
        ),
    )


@EFFECTS.supporting(supports=("S13",), needs_off=GUESSED)
def an_undone_effect_has_not_happened(s: State) -> object:
    """An effect known not to have happened is ruled out, or fenced off, unless the worker itself is."""
    return every(
        workers,
        lambda w: (
            not s.believes[w].present
            or not concludes(s, w, Knows.not_happened)
            or is_ruled_out(s, intent_of(s, w))
            or fenced_off(s, s.believes[w].lease)
            or (
                switched("fenced")
                and s.believes[w].lease <= s.fence
                and not s.happened[intent_of(s, w)]
                and is_sent_below(s, intent_of(s, w), s.believes[w].lease)
            )
        ),
    )


@EFFECTS.supporting(supports=("S13",), needs_off=GUESSED)
def a_given_up_effect_is_out_of_the_question(s: State) -> object:
    """An effect that was given up is ruled out, or was never sent, or whoever sends it is fenced off."""
    return every(
        intent_versions,
        lambda i: (
            i == 0
            or i > present_intent(s)
            or (i == present_intent(s) and not step_is(s, Status.cancelled))
            or is_ruled_out(s, i)
            or (is_unsent(s, i) and is_read_by_nobody(s, i))
            or (switched("fenced") and is_sent_below(s, i, s.fence) and is_read_below(s, i, s.fence))
        ),
    )


@derived
def is_read_by_nobody(s: State, i: object) -> object:
    """Whether no worker believes in a state of the step from which it sends intent `i`."""
    return every(
        workers,
        lambda w: not s.believes[w].present or intent_of(s, w) != i or status(s, w) != Status.running,
    )


@derived
def is_read_below(s: State, i: object, token: object) -> object:
    """Whether the workers that believe in such a state have lower lease versions than this."""
    return every(
        workers,
        lambda w: (
            not s.believes[w].present
            or intent_of(s, w) != i
            or status(s, w) != Status.running
            or s.believes[w].lease < token
        ),
    )
