"""What is promised about outside effects: S6, S8–S13, S19, S25, and of the core S3, S5 and S27.

`needs_off` names the faults against which a promise says nothing: with any of them it is refuted, and
`docs/needs-off.md` shows by which run.
"""

from __future__ import annotations

from fencepost.model import State, Step, derived, every, some, switched
from fencepost.model.core.state import state_versions, workers
from fencepost.model.domains import Element
from fencepost.model.effects.downstream import is_as_stored
from fencepost.model.effects.state import (
    Answer,
    Kind,
    Knows,
    Status,
    calls,
    fingerprints,
    intent_versions,
)
from fencepost.properties import core
from fencepost.properties.claims import Claims

EFFECTS = Claims("effects")

FORGETFUL = ("record_expired", "record_volatile", "two_transactions")
"""Faults by which a downstream no longer knows what it did."""


@derived
def lands(before: State, after: State, c: Element) -> object:
    """Whether a copy of request `c` takes effect in this step."""
    return before.call[c].present and before.landings[c] != after.landings[c]


@derived
def step_is(s: State, status: object) -> object:
    """Whether the step has this status."""
    return s.log[s.state_version].status == status


@derived
def present_intent(s: State) -> object:
    """The version of the step's intent; 0 before the first."""
    return s.log[s.state_version].intent


@derived
def knows_as_owner(s: State, knowing: object) -> object:
    """Whether a worker that takes the current lease version for its own knows this of the effect."""
    return some(
        workers,
        lambda w: s.knows[w] == knowing and s.believes[w].present and s.believes[w].lease == s.lease_version,
    )


# The row is the core's, and so are these promises: the same functions, read against this model.

for _claim, _id, _section, _witnesses in (
    (core.lease_version_only_grows, "S3", "§3", ("a_lease_is_taken_over",)),
    (core.takeover_only_after_expiry, "S5", "§3",
     ("a_lease_is_taken_over", "a_lease_expires", "acquiring_a_live_lease_is_refused")),
    (core.the_end_is_final, "S6-end", "§5", ("acquiring_after_the_end_is_refused",)),
):  # fmt: skip
    EFFECTS.each_step(_id, section=_section, witnesses=_witnesses)(_claim)
for _witness in (core.a_lease_is_taken_over, core.a_lease_expires, core.acquiring_a_live_lease_is_refused):
    EFFECTS.sometimes()(_witness)


@EFFECTS.each_step("S6-step", section="§5", witnesses=("a_step_succeeds", "an_unwinding_step_ends"))
def a_step_never_goes_back(before: State, after: State) -> object:
    """A step runs, again only with a new intent; once it unwinds it only ends, and its end is final."""
    was, now = before.log[before.state_version], after.log[after.state_version]
    starts = was.status == Status.pending or was.status == Status.running
    runs = was.status == Status.running or was.status == Status.unwinding
    ends = now.status == Status.succeeded or now.status == Status.cancelled or now.status == Status.manual
    return (
        (after.state_version == before.state_version and now == was)
        or (starts and now.status == Status.running and now.intent == was.intent + 1)
        or (was.status == Status.running and now.status == Status.unwinding and now.intent == was.intent)
        or (runs and ends and now.intent == was.intent)
    )


@EFFECTS.each_step(
    "S8",
    section="§6",
    witnesses=("a_request_is_answered_from_the_record",),
    needs_off=(*FORGETFUL, "key_per_retry"),
)
def one_effect_per_intent(before: State, after: State) -> object:
    """A downstream that keeps keys lets an intent take effect at most once."""
    return not switched("keyed") or every(
        calls,
        lambda c: not lands(before, after, c) or not before.happened[before.call[c].intent],
    )


@EFFECTS.each_step("S8-revision", section="§7", witnesses=("an_effect_on_another_revision_is_refused",))
def effect_lands_on_the_revision_it_expected(before: State, after: State) -> object:
    """A downstream that compares revisions lets an effect land only on the revision that it expected."""
    return not switched("revisioned") or every(
        calls,
        lambda c: (
            not lands(before, after, c)
            or (before.call[c].revision == before.revision and after.revision == before.revision + 1)
        ),
    )


@EFFECTS.always("S8-intent", section="§6", witnesses=("a_step_succeeds",))
def only_stored_intents_happen(s: State) -> object:
    """An effect takes place only after its intent was committed."""
    return every(intent_versions, lambda i: not s.happened[i] or (i >= 1 and i <= present_intent(s)))


@EFFECTS.each_step("S8-intent", section="§6", witnesses=("an_effect_lands_as_stored",))
def effects_land_as_stored(before: State, after: State) -> object:
    """An effect that lands has the parameters of its stored intent, unless workers derive them anew."""
    return switched("intent_rederived") or every(
        calls, lambda c: not lands(before, after, c) or is_as_stored(before, c)
    )


@EFFECTS.each_step("S9", section="§6", witnesses=("another_fingerprint_is_refused",), needs_off=FORGETFUL)
def same_key_same_intent(before: State, after: State) -> object:
    """Under one key, all effects that land have the same fingerprint."""
    return not switched("keyed") or every(
        calls,
        lambda c: (
            not lands(before, after, c)
            or not before.landed_as[before.call[c].key].present
            or before.landed_as[before.call[c].key] == before.call[c].fingerprint
        ),
    )


@EFFECTS.always("S9", section="§6", witnesses=("a_request_is_answered_from_the_record",), needs_off=FORGETFUL)
def every_ok_is_the_original_receipt(s: State) -> object:
    """A request that is answered ok has the fingerprint of the effect that took place under its key."""
    return not switched("keyed") or every(
        calls,
        lambda c: (
            s.reply[c] != Answer.ok
            or (s.call[c].present and s.landed_as[s.call[c].key] == s.call[c].fingerprint)
        ),
    )


@EFFECTS.always(
    "S10", section="§6", witnesses=("a_step_succeeds",), needs_off=("two_transactions", "key_per_retry")
)
def receipt_is_true(s: State) -> object:
    """A step that succeeded has a receipt, and its effect happened, with the parameters of its intent."""
    return not step_is(s, Status.succeeded) or (s.receipt and s.as_intended[present_intent(s)])


@EFFECTS.always("S10", section="§6", witnesses=("a_step_succeeds", "an_unsent_step_is_cancelled"))
def only_success_has_a_receipt(s: State) -> object:
    """A receipt is stored exactly when the step has succeeded."""
    return s.receipt == step_is(s, Status.succeeded)


@EFFECTS.each_step(
    "S11", section="§7", witnesses=("a_stale_effect_is_refused",), needs_off=("record_volatile",)
)
def fence_only_rises(before: State, after: State) -> object:
    """A fenced downstream records ever higher tokens, and no effect with a lower one than recorded lands."""
    return after.fence >= before.fence and (
        not switched("fenced")
        or every(calls, lambda c: not lands(before, after, c) or before.call[c].token >= before.fence)
    )


@EFFECTS.always("S11", section="§7", witnesses=("a_stale_effect_is_refused",), needs_off=("record_volatile",))
def every_contact_is_recorded(s: State) -> object:
    """A fenced downstream has recorded each token to which it has answered ok, with an effect or without."""
    return s.contacted <= s.fence


@EFFECTS.each_step("S11", section="§7", witnesses=("a_stale_request_for_a_kept_key_is_refused",))
def a_stale_token_is_told_nothing_else(before: State, after: State) -> object:
    """A fenced downstream refuses a lower token than recorded as such, and never answers it from a key."""
    return not switched("fenced") or every(
        calls,
        lambda c: (
            after.reply[c] == before.reply[c]
            or after.reply[c] == Answer.none
            or after.reply[c] == Answer.stale_token
            or (before.call[c].present and before.call[c].token >= before.fence)
        ),
    )


@EFFECTS.each_step(
    "S12",
    section="§7",
    witnesses=("a_stale_effect_is_refused", "a_stale_effect_lands_before_contact"),
    needs_off=("record_volatile",),
)
def stale_effect_never_lands_after_contact(before: State, after: State) -> object:
    """Once a fenced downstream has answered a new owner ok, no older owner's effect lands."""
    return not switched("fenced") or every(
        calls, lambda c: not lands(before, after, c) or before.call[c].token >= before.contacted
    )


@EFFECTS.always(
    "S13",
    section="§6",
    witnesses=("an_unsent_step_is_cancelled", "a_buried_step_is_cancelled", "a_declined_step_is_cancelled",
               "a_step_is_cancelled_after_the_fence"),
    needs_off=(*FORGETFUL, "key_per_retry"),
)  # fmt: skip
def given_up_effects_never_happen(s: State) -> object:
    """A step is cancelled, or given another intent, only if the effect of its intent never happens."""
    return every(
        intent_versions,
        lambda i: (
            i == 0
            or not s.happened[i]
            or i > present_intent(s)
            or (i == present_intent(s) and not step_is(s, Status.cancelled))
        ),
    )


@EFFECTS.each_step(
    "S13",
    section="§6",
    witnesses=("an_unknown_effect_is_sent_again", "an_undone_effect_is_sent_again"),
    needs_off=(*FORGETFUL, "key_per_retry"),
)
def unknown_is_never_guessed(before: State, after: State) -> object:
    """An effect is sent again only under its own key where keys are kept, or if not both can still land."""
    return every(
        calls,
        lambda c: (
            before.call[c].present
            or not after.call[c].present
            or after.call[c].buries
            or (switched("keyed") and after.call[c].key == after.call[c].intent)
            or (switched("fenced") and after.call[c].token < before.fence)
            or cannot_land(before, after.call[c].intent)
        ),
    )


@EFFECTS.each_step("S13", section="§6", witnesses=("an_unknown_step_is_handed_to_a_person",))
def only_the_unknown_goes_to_a_person(before: State, after: State) -> object:
    """A step is handed to a person only while its owner does not know what became of the effect."""
    return (
        not step_is(after, Status.manual)
        or step_is(before, Status.manual)
        or knows_as_owner(before, Knows.nothing)
        or knows_as_owner(before, Knows.sent)
        or knows_as_owner(before, Knows.raised)
    )


@derived
def cannot_land(s: State, i: object) -> object:
    """Whether the effect of intent `i` has not happened, and no request for it can still bring it about."""
    return not s.happened[i] and every(
        calls,
        lambda c: (
            not s.in_flight[c]
            or not s.call[c].present
            or s.call[c].intent != i
            or (switched("fenced") and s.call[c].token < s.fence)
        ),
    )


@EFFECTS.each_step(
    "S19",
    section="§7",
    witnesses=("a_late_request_meets_the_tombstone",),
    needs_off=("record_expired", "record_volatile"),
)
def late_request_after_tombstone_refused(before: State, after: State) -> object:
    """Once a tombstone was written under a key, no effect lands under it."""
    return every(calls, lambda c: not lands(before, after, c) or not before.buried[before.call[c].key])


@EFFECTS.each_step("S25", section="§2", witnesses=("a_stale_effect_is_refused",))
def a_refusal_leaves_the_downstream_alone(before: State, after: State, step: Step) -> object:
    """A call that is refused changes nothing; a refusal or tombstone kept under a key is a decision."""
    return not step.refused or (
        after.owner == before.owner
        and after.lease_version == before.lease_version
        and after.live == before.live
        and after.state_version == before.state_version
        and after.finished == before.finished
        and after.receipt == before.receipt
        and after.fence == before.fence
        and after.revision == before.revision
        and every(state_versions, lambda v: after.log[v] == before.log[v])
        and every(
            intent_versions,
            lambda i: (
                after.intent[i] == before.intent[i]
                and after.record[i] == before.record[i]
                and after.happened[i] == before.happened[i]
            ),
        )
    )


EFFECTS.each_step("S27", section="§4", witnesses=("an_owner_commits_too_late",))(core.commit_only_while_live)


# Witnesses: each a state or step that must be reachable, or the claims that name it say nothing.


@derived
def decides(step: Step, outcome: str) -> object:
    """Whether the downstream decides a request in this step, with this outcome."""
    return step.action == "decide_call" and step.outcome == outcome


@EFFECTS.sometimes()
def a_request_is_answered_from_the_record(before: State, after: State, step: Step) -> object:
    """A request whose effect has happened arrives again, is answered ok, and nothing happens."""
    return decides(step, "ok") and some(
        calls,
        lambda c: (
            before.call[c].present
            and before.reply[c] == Answer.none
            and after.reply[c] == Answer.ok
            and before.happened[before.call[c].intent]
            and before.landings[c] == after.landings[c]
        ),
    )


@EFFECTS.sometimes()
def an_effect_on_another_revision_is_refused(before: State, after: State, step: Step) -> object:
    """An effect arrives when the resource has another revision than it expects, and does not land."""
    return step.action == "decide_call" and some(
        calls,
        lambda c: (
            before.in_flight[c]
            and before.call[c].present
            and not before.call[c].buries
            and before.call[c].revision != before.revision
            and after.reply[c] != before.reply[c]
            and after.landings[c] == before.landings[c]
        ),
    )


@EFFECTS.sometimes()
def another_fingerprint_is_refused(before: State, after: State, step: Step) -> object:
    """A request with a known key and other parameters is refused."""
    return decides(step, "key-conflict") and after.fence == before.fence


@EFFECTS.sometimes()
def a_step_succeeds(s: State) -> object:
    """The step succeeded."""
    return step_is(s, Status.succeeded)


@EFFECTS.sometimes()
def a_stale_effect_is_refused(before: State, after: State, step: Step) -> object:
    """A request of a former owner arrives after the new owner's, and is refused."""
    return decides(step, "stale-token") and after.contacted >= 1


@EFFECTS.sometimes()
def a_stale_effect_lands_before_contact(before: State, after: State) -> object:
    """A former owner's effect lands after a takeover, while the new owner has not reached the downstream."""
    return some(calls, lambda c: lands(before, after, c) and before.call[c].token < before.lease_version)


@EFFECTS.sometimes()
def an_unsent_step_is_cancelled(before: State, after: State, step: Step) -> object:
    """The owner cancels a step whose intent it committed and never sent."""
    return cancels(before, after, Knows.unsent) and every(calls, lambda c: not before.call[c].present)


@EFFECTS.sometimes()
def a_buried_step_is_cancelled(before: State, after: State) -> object:
    """A step is cancelled because a tombstone is kept under its key."""
    return cancels(before, after, Knows.not_happened) and kept(before, Kind.tombstone)


@EFFECTS.sometimes()
def a_declined_step_is_cancelled(before: State, after: State) -> object:
    """A step is cancelled because the downstream keeps that it declined."""
    return cancels(before, after, Knows.not_happened) and kept(before, Kind.declined)


@EFFECTS.sometimes()
def a_step_is_cancelled_after_the_fence(before: State, after: State) -> object:
    """A step is cancelled because, after the fence was raised, nothing was found under its key."""
    return cancels(before, after, Knows.not_happened) and not before.record[present_intent(before)].present


@derived
def cancels(before: State, after: State, knowing: object) -> object:
    """Whether an owner that knows this cancels the step."""
    return (
        step_is(after, Status.cancelled)
        and not step_is(before, Status.cancelled)
        and knows_as_owner(before, knowing)
    )


@derived
def kept(s: State, kind: object) -> object:
    """Whether this is kept under the present intent's key."""
    return s.record[present_intent(s)].present and s.record[present_intent(s)].kind == kind


@EFFECTS.sometimes()
def an_unknown_effect_is_sent_again(before: State, after: State, step: Step) -> object:
    """A new owner sends an effect again that may have happened, under the same key."""
    return step.action == "send_effect" and some(
        calls, lambda c: before.call[c].present and before.happened[before.call[c].intent]
    )


@EFFECTS.sometimes()
def an_undone_effect_is_sent_again(before: State, after: State, step: Step) -> object:
    """An effect that is known not to have happened is sent again."""
    return step.action == "send_effect" and some(
        workers, lambda w: before.knows[w] == Knows.not_happened and after.knows[w] == Knows.sent
    )


@EFFECTS.sometimes()
def an_effect_lands_as_stored(before: State, after: State) -> object:
    """An effect lands with its stored parameters, although there are others, and nobody derives them anew."""
    return not switched("intent_rederived") and some(
        calls,
        fingerprints,
        lambda c, f: lands(before, after, c) and is_as_stored(before, c) and f != before.call[c].fingerprint,
    )


@EFFECTS.sometimes()
def a_stale_request_for_a_kept_key_is_refused(before: State, after: State, step: Step) -> object:
    """A former owner's request is refused for its token, although its effect is on record."""
    return decides(step, "stale-token") and some(
        calls,
        lambda c: (
            before.call[c].present
            and after.reply[c] == Answer.stale_token
            and before.reply[c] != Answer.stale_token
            and before.record[before.call[c].key].present
        ),
    )


@EFFECTS.sometimes()
def an_unknown_step_is_handed_to_a_person(before: State, after: State) -> object:
    """An owner hands over a step whose effect may have happened."""
    return step_is(after, Status.manual) and not step_is(before, Status.manual)


@EFFECTS.sometimes()
def an_unwinding_step_ends(before: State, after: State) -> object:
    """A step that is to be undone comes to its end."""
    return step_is(before, Status.unwinding) and not step_is(after, Status.unwinding)


@EFFECTS.sometimes()
def acquiring_after_the_end_is_refused(before: State, after: State, step: Step) -> object:
    """A worker tries to acquire the lease of an instance that is finished."""
    return step.action == "acquire" and step.outcome == "finished" and before.finished


@EFFECTS.sometimes()
def an_owner_commits_too_late(before: State, after: State, step: Step) -> object:
    """The latest owner's commit arrives when its lease is over, and is refused."""
    return step.action == "commit" and step.outcome == "lease-expired" and before.owner.present


@EFFECTS.sometimes()
def a_late_request_meets_the_tombstone(before: State, after: State, step: Step) -> object:
    """A request arrives after the tombstone under its key, and is refused."""
    return decides(step, "tombstoned") and after.fence == before.fence
