"""Invariants that the proofs about a workflow need: true, and checked like claims, but no promises.

First what workers believe and what is on its way; then requests; then what the downstream's records say; last
when an effect is out of the question. An invariant that needs a switch off helps only claims that need it
off, too.
"""

from __future__ import annotations

from typing import Any

from fencepost.model import State, derived, every, switched
from fencepost.model.core.state import me, workers
from fencepost.model.domains import Element, Member
from fencepost.model.workflow.calls import deed_seen
from fencepost.model.workflow.state import (
    Answer,
    Cause,
    Deed,
    Kind,
    Knows,
    Stands,
    Status,
    Wish,
    calls,
    intent_versions,
    is_under_way,
    requests,
    steps,
)
from fencepost.properties import supporting as core
from fencepost.properties.workflow import RECORDS_LOST, WORKFLOW, brings_about

# The leases are the core's.

for _invariant, _supports in (
    (core.the_owner_holds_the_current_version, ("S10", "S13", "S14", "S18")),
    (core.only_faults_stop_a_worker, ("L3",)),
):
    WORKFLOW.supporting(supports=_supports)(_invariant)


# What workers believe, and what is on its way.


@WORKFLOW.supporting(supports=("S10", "S13", "S14", "S18"))
def believers_acquired_their_lease(s: State) -> object:
    """Who takes a lease for its own is up, knows what became of its last call, and acquired that lease."""
    return every(
        workers,
        lambda w: (
            not s.believes[w].present
            or (
                s.up[w]
                and not s.unsure[w]
                and s.believes[w].lease >= 1
                and s.believes[w].lease <= s.lease_version
                and s.holder[s.believes[w].lease] == me(s, w)
            )
        ),
    )


@WORKFLOW.supporting(supports=("S10", "S13", "S14"))
def owners_see_the_instance_as_it_is(s: State) -> object:
    """A worker that takes the current lease version for its own sees each step as it is stored."""
    return every(
        workers,
        steps,
        lambda w, x: (
            not s.believes[w].present
            or s.believes[w].lease != s.lease_version
            or (
                s.seen[w, x].status == s.status[x]
                and s.seen[w, x].intent == s.intent[x]
                and s.unwinds[w] == (s.cause != Cause.none)
            )
        ),
    )


@WORKFLOW.supporting(supports=("S10", "S13", "S18"))
def workers_know_only_of_what_they_read(s: State) -> object:
    """Only owners know anything: an effect unsent while it is under way, or undone where keys are kept."""
    return every(
        workers,
        steps,
        lambda w, x: (
            s.knows[w, x] == Knows.nothing
            or (
                s.believes[w].present
                and (s.knows[w, x] != Knows.not_happened or switched("keyed"))
                and (
                    s.knows[w, x] != Knows.unsent
                    or is_under_way(s.seen[w, x].status)
                    or s.seen[w, x].status == Status.compensating
                )
            )
        ),
    )


@derived
def was_done(s: State, x: Element, i: object) -> object:
    """Whether the effect of intent `i` of step `x` happened, or an operator attests it."""
    return s.happened[x, Deed.act, i] or s.attested[x]


@derived
def has_its_intent(status: Member, intent: Any) -> object:
    """Whether a step has no intent before it begins, and one when it may have been sent."""
    if status == Status.pending:
        return intent == 0
    return status == Status.cancelled or intent >= 1


@WORKFLOW.supporting(supports=("S8-intent", "S13"))
def a_step_that_began_has_an_intent(s: State) -> object:
    """A step has an intent once it has begun, and none before."""
    return every(steps, lambda x: has_its_intent(s.status[x], s.intent[x]))


@WORKFLOW.supporting(supports=("S8-intent", "S13"))
def what_was_read_was_stored(s: State) -> object:
    """Who takes itself for an owner has read what the step was: its intent, and that it is rightly undone."""
    return every(
        workers,
        steps,
        lambda w, x: (
            not s.believes[w].present
            or (
                has_its_intent(s.seen[w, x].status, s.seen[w, x].intent)
                and s.seen[w, x].intent <= s.intent[x]
                and (s.seen[w, x].status != Status.compensating or was_done(s, x, s.seen[w, x].intent))
            )
        ),
    )


@WORKFLOW.supporting(supports=("S10", "S13"))
def what_moves_was_sent(s: State) -> object:
    """Only calls that were sent are on their way or answered."""
    return every(calls, lambda c: s.call[c].present or (not s.in_flight[c] and s.reply[c] == Answer.none))


@WORKFLOW.supporting(supports=("S8-intent", "S13"))
def calls_name_a_stored_intent(s: State) -> object:
    """A call is for an intent that its step has or had."""
    return every(
        calls,
        lambda c: (
            not s.call[c].present or (s.call[c].intent >= 1 and s.call[c].intent <= s.intent[s.call[c].step])
        ),
    )


@WORKFLOW.supporting(supports=("S10",))
def tombstones_are_for_downstreams_with_keys(s: State) -> object:
    """A tombstone is asked for, or answered, only where keys are kept."""
    return switched("keyed") or every(
        calls, lambda c: (not s.call[c].present or not s.call[c].buries) and s.reply[c] != Answer.tombstoned
    )


# Requests.


@WORKFLOW.supporting(supports=("S26",))
def requests_name_a_step_or_none(s: State) -> object:
    """A cancel names no step, every other request names one."""
    return every(requests, lambda r: s.about[r].present == (s.wish[r].present and s.wish[r] != Wish.cancel))


@WORKFLOW.supporting(supports=("S16", "S17"))
def what_arrives_was_asked_for(s: State) -> object:
    """Only requests that somebody made arrive, or stand in the inbox."""
    return every(
        requests, lambda r: s.wish[r].present or (not s.arriving[r] and s.stands[r] == Stands.nowhere)
    )


@WORKFLOW.supporting(supports=("S17",))
def recorded_approvals_came_in_time(s: State) -> object:
    """An approval that is recorded came before the deadline of its step."""
    return every(
        requests, lambda r: s.stands[r] == Stands.nowhere or s.wish[r] != Wish.approve or s.in_time[r]
    )


@WORKFLOW.supporting(supports=("S17",))
def no_deadline_passes_before_a_step_begins(s: State) -> object:
    """Of a step that has not begun no deadline has passed."""
    return every(steps, lambda x: s.status[x] != Status.pending or not s.late[x])


@WORKFLOW.supporting(supports=("S16",))
def a_consumed_cancel_is_not_undone(s: State) -> object:
    """An instance of which a cancel was consumed unwinds."""
    return every(
        requests,
        lambda r: s.stands[r] != Stands.consumed or s.wish[r] != Wish.cancel or s.cause != Cause.none,
    )


# What the downstream's records say.


@WORKFLOW.supporting(supports=("S12",), needs_off=("record_volatile",))
def contacts_are_recorded(s: State) -> object:
    """A fenced downstream has recorded every token to which it has answered ok."""
    return not switched("fenced") or s.contacted <= s.fence


@derived
def is_ruled_out(s: State, x: Element, deed: Member, i: object) -> object:
    """Whether a tombstone or a declined effect is kept under this key, so that nothing happens under it."""
    return s.record[x, deed, i].present and s.record[x, deed, i] != Kind.receipt


@WORKFLOW.supporting(supports=("S13",))
def only_keys_are_kept(s: State) -> object:
    """Only a downstream that keeps keys keeps anything."""
    return switched("keyed") or every(
        steps,
        intent_versions,
        lambda x, i: not s.record[x, Deed.act, i].present and not s.record[x, Deed.undo, i].present,
    )


@WORKFLOW.supporting(supports=("S10",))
def receipts_are_true(s: State) -> object:
    """A receipt is kept only of what has taken place."""
    return every(
        steps,
        intent_versions,
        lambda x, i: (
            (s.record[x, Deed.act, i] != Kind.receipt or s.happened[x, Deed.act, i])
            and (s.record[x, Deed.undo, i] != Kind.receipt or s.happened[x, Deed.undo, i])
        ),
    )


@WORKFLOW.supporting(supports=("S10",))
def ok_is_true(s: State) -> object:
    """A call is answered ok only if its effect has taken place."""
    return every(
        calls,
        lambda c: (
            s.reply[c] != Answer.ok
            or (s.call[c].present and s.happened[s.call[c].step, s.call[c].deed, s.call[c].intent])
        ),
    )


@WORKFLOW.supporting(supports=("S10", "S26"))
def late_results_are_true(s: State) -> object:
    """A late result tells of an effect that has taken place, under the key that it names."""
    return every(
        requests,
        steps,
        lambda r, x: (
            s.wish[r] != Wish.late_result
            or s.about[r] != x
            or (s.result_of[r] >= 1 and s.happened[x, Deed.act, s.result_of[r]])
        ),
    )


@WORKFLOW.supporting(supports=("S10",))
def who_knows_of_a_receipt_is_right(s: State) -> object:
    """When a worker knows of a receipt, the effect that it reads to be under way has taken place."""
    return every(
        workers,
        steps,
        lambda w, x: (
            not s.believes[w].present
            or s.knows[w, x] != Knows.receipt
            or s.happened[x, deed_seen(s, w, x), s.seen[w, x].intent]
        ),
    )


@WORKFLOW.supporting(supports=("S8", "S13"), needs_off=RECORDS_LOST)
def what_happened_is_on_record(s: State) -> object:
    """Where keys are kept, there is a receipt for each effect that has taken place."""
    return not switched("keyed") or every(
        steps,
        intent_versions,
        lambda x, i: (
            (not s.happened[x, Deed.act, i] or s.record[x, Deed.act, i] == Kind.receipt)
            and (not s.happened[x, Deed.undo, i] or s.record[x, Deed.undo, i] == Kind.receipt)
        ),
    )


@WORKFLOW.supporting(supports=("S19",), needs_off=RECORDS_LOST)
def tombstones_stay(s: State) -> object:
    """A tombstone that was written is still there, and the downstream keeps keys."""
    return every(
        steps,
        intent_versions,
        lambda x, i: (
            (
                not s.buried[x, Deed.act, i]
                or (switched("keyed") and s.record[x, Deed.act, i] == Kind.tombstone)
            )
            and (
                not s.buried[x, Deed.undo, i]
                or (switched("keyed") and s.record[x, Deed.undo, i] == Kind.tombstone)
            )
        ),
    )


@WORKFLOW.supporting(supports=("S13",), needs_off=RECORDS_LOST)
def an_answer_that_rules_out_is_on_record(s: State) -> object:
    """An answer that rules an effect out rests on what is kept under its key."""
    return every(
        calls,
        lambda c: (
            not (s.reply[c] == Answer.tombstoned or (s.reply[c] == Answer.declined and switched("keyed")))
            or (s.call[c].present and is_ruled_out(s, s.call[c].step, s.call[c].deed, s.call[c].intent))
        ),
    )


@WORKFLOW.supporting(supports=("S13",), needs_off=RECORDS_LOST)
def who_knows_an_effect_undone_is_right(s: State) -> object:
    """When a worker knows that an effect has not happened, that is on record."""
    return every(
        workers,
        steps,
        lambda w, x: (
            not s.believes[w].present
            or s.knows[w, x] != Knows.not_happened
            or is_ruled_out(s, x, deed_seen(s, w, x), s.seen[w, x].intent)
        ),
    )


# When an effect is out of the question.


@derived
def is_unsent(s: State, x: Element, i: object) -> object:
    """Whether the effect of intent `i` has not happened, and no call was sent that would bring it about."""
    return not s.happened[x, Deed.act, i] and every(calls, lambda c: not brings_about(s, c, x, Deed.act, i))


@derived
def reads_it_under_way(s: State, w: Element, x: Element, i: object) -> object:
    """Whether worker `w` takes itself for the owner of a step that has the effect of intent `i` under way."""
    return s.believes[w].present and is_under_way(s.seen[w, x].status) and s.seen[w, x].intent == i


@derived
def is_untouched(s: State, x: Element, i: object) -> object:
    """Whether the effect of intent `i` of step `x` is unsent, and nobody is about to send it."""
    return is_unsent(s, x, i) and every(workers, lambda w: not reads_it_under_way(s, w, x, i))


@WORKFLOW.supporting(supports=("S13",))
def what_waits_is_untouched(s: State) -> object:
    """The effect of an intent that waits for its approval was not sent by anybody."""
    return every(steps, lambda x: s.status[x] != Status.waiting_approval or is_untouched(s, x, s.intent[x]))


@WORKFLOW.supporting(supports=("S13",))
def an_unsent_effect_is_in_one_hand(s: State) -> object:
    """An effect that its owner has not sent has not happened, and nobody else is about to send it."""
    return every(
        workers,
        steps,
        lambda w, x: (
            not s.believes[w].present
            or s.believes[w].lease != s.lease_version
            or s.knows[w, x] != Knows.unsent
            or not is_under_way(s.seen[w, x].status)
            or (
                is_unsent(s, x, s.intent[x])
                and every(workers, lambda u: u == w or not reads_it_under_way(s, u, x, s.intent[x]))
            )
        ),
    )


@WORKFLOW.supporting(supports=("S13",))
def nothing_is_undone_too_soon(s: State) -> object:
    """Until a step is to be undone nobody has sent its compensation, and nobody is about to."""
    return every(
        steps,
        lambda x: (
            s.status[x] == Status.compensating
            or s.status[x] == Status.compensated
            or (s.status[x] == Status.manual_intervention and s.undoing[x])
            or (
                every(intent_versions, lambda i: not s.happened[x, Deed.undo, i])
                and every(
                    calls,
                    lambda c: not s.call[c].present or s.call[c].step != x or s.call[c].deed == Deed.act,
                )
                and every(
                    workers, lambda w: not s.believes[w].present or s.seen[w, x].status != Status.compensating
                )
            )
        ),
    )


@WORKFLOW.supporting(supports=("S13",))
def without_keys_an_unsent_effect_is_in_one_hand(s: State) -> object:
    """Without keys, what a worker knows unsent is unsent, whoever the owner is, and no other knows it so."""
    return switched("keyed") or every(
        workers,
        steps,
        lambda w, x: (
            s.knows[w, x] != Knows.unsent
            or (
                not s.happened[x, deed_seen(s, w, x), s.seen[w, x].intent]
                and every(calls, lambda c: not brings_about(s, c, x, deed_seen(s, w, x), s.seen[w, x].intent))
                and every(
                    workers,
                    lambda u: (
                        u == w
                        or s.knows[u, x] != Knows.unsent
                        or s.seen[u, x].intent != s.seen[w, x].intent
                        or deed_seen(s, u, x) != deed_seen(s, w, x)
                    ),
                )
            )
        ),
    )


@WORKFLOW.supporting(supports=("S13",), needs_off=RECORDS_LOST)
def a_given_up_effect_is_out_of_the_question(s: State) -> object:
    """An effect that was given up is ruled out, or was never sent and is not about to be."""
    return every(
        steps,
        intent_versions,
        lambda x, i: (
            i == 0
            or i > s.intent[x]
            or (i == s.intent[x] and not is_given_up(s, x))
            or is_ruled_out(s, x, Deed.act, i)
            or is_untouched(s, x, i)
        ),
    )


@derived
def is_given_up(s: State, x: Element) -> object:
    """Whether step `x` ended without its effect, and no operator had to say so."""
    return (s.status[x] == Status.failed or s.status[x] == Status.cancelled) and not s.attested[x]


@WORKFLOW.supporting(supports=("S18",))
def what_is_undone_had_happened(s: State) -> object:
    """A step is being undone only if its effect happened, or an operator attests it."""
    return every(
        steps,
        lambda x: s.status[x] != Status.compensating or was_done(s, x, s.intent[x]),
    )


@WORKFLOW.supporting(supports=("S18",))
def calls_undo_what_happened(s: State) -> object:
    """A compensation is sent only for an effect that happened, or that an operator attests."""
    return every(
        calls,
        lambda c: (
            not s.call[c].present
            or s.call[c].deed != Deed.undo
            or was_done(s, s.call[c].step, s.call[c].intent)
        ),
    )


@WORKFLOW.supporting(supports=("S6", "S16"))
def only_compensations_are_marked(s: State) -> object:
    """A step marked as being undone is in a person's hands or compensated, and the instance unwinds."""
    return every(
        steps,
        lambda x: (
            not s.undoing[x]
            or (
                s.cause != Cause.none
                and (s.status[x] == Status.manual_intervention or s.status[x] == Status.compensated)
            )
        ),
    )
