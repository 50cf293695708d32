"""What is promised about an instance and its steps: S1, S4, S6, S8, S10–S15, S19, S25, L3, and the core's.

`workflow_requests` has what is promised about requests, retries and unwinding; `workflow_witnesses` what
must be reachable for all of this to say anything.
"""

from __future__ import annotations

from fencepost.model import State, Step, can_move, derived, every, implies, some, switched
from fencepost.model.core.state import CLOCK, SUPERVISOR, workers
from fencepost.model.domains import Element, Member
from fencepost.model.workflow.state import (
    Cause,
    Deed,
    Stands,
    Status,
    calls,
    intent_versions,
    requests,
    steps,
)
from fencepost.properties import core
from fencepost.properties.claims import Claims

WORKFLOW = Claims("workflow")

RECORDS_LOST = ("record_expired", "record_volatile")
"""Faults by which a downstream no longer knows what it did."""


@derived
def moves(before: State, after: State, x: Element, was: Member, now: Member) -> object:
    """Whether step `x` goes from one status to another in this step."""
    # The first condition follows from the others; with it a proof sees at once where nothing happens.
    return before.status[x] != after.status[x] and before.status[x] == was and after.status[x] == now


@derived
def lands(before: State, after: State, c: Element) -> object:
    """Whether a copy of call `c` takes effect in this step."""
    return before.call[c].present and after.call[c].present and before.landings[c] != after.landings[c]


@derived
def has_ended(s: State, x: Element) -> object:
    """Whether step `x` is at one of its ends."""
    return (
        s.status[x] == Status.failed or s.status[x] == Status.cancelled or s.status[x] == Status.compensated
    )


@derived
def runs(s: State, x: Element) -> object:
    """Whether step `x` has its own effect under way."""
    return s.status[x] == Status.running or s.status[x] == Status.retry_scheduled


# The row is the core's, and so are these promises: the same functions, read against this model.

for _claim, _id, _section, _witnesses in (
    (core.lease_version_only_grows, "S3", "§3", ("a_lease_is_taken_over",)),
    (core.takeover_only_after_expiry, "S5", "§3",
     ("a_lease_is_taken_over", "a_lease_expires", "acquiring_a_live_lease_is_refused")),
    (core.the_end_is_final, "S6-end", "§5", ("an_instance_succeeds",)),
    (core.commit_only_while_live, "S27", "§4", ("an_owner_commits_too_late",)),
):  # fmt: skip
    WORKFLOW.each_step(_id, section=_section, witnesses=_witnesses)(_claim)
for _witness in (core.a_lease_is_taken_over, core.a_lease_expires, core.acquiring_a_live_lease_is_refused):
    WORKFLOW.sometimes()(_witness)


@WORKFLOW.each_step(
    "S1", section="§4", witnesses=("a_stale_commit_is_refused", "a_step_succeeds_after_takeover")
)
def stale_worker_never_overrides(before: State, after: State) -> object:
    """An accepted commit was made by a worker that owns the current lease version, in that incarnation."""
    return after.state_version == before.state_version or some(
        workers,
        lambda w: (
            before.believes[w].present
            and before.believes[w].lease == before.lease_version
            and before.believes[w].state == before.state_version
            and before.owner.present
            and before.owner.worker == w
            and before.owner.incarnation == before.incarnation[w]
            and (not after.believes[w].present or after.believes[w].state == after.state_version)
        ),
    )  # fmt: skip


@WORKFLOW.each_step("S4", section="§4", witnesses=("a_step_succeeds_after_takeover",))
def only_commits_change_the_instance(before: State, after: State) -> object:
    """The state version rises by one with each change of a step or of the instance, and only with one."""
    alike = every(
        steps,
        lambda x: (
            after.status[x] == before.status[x]
            and after.intent[x] == before.intent[x]
            and after.fingerprint[x] == before.fingerprint[x]
            and after.attempt[x] == before.attempt[x]
            and after.succeeded_at[x] == before.succeeded_at[x]
            and after.attested[x] == before.attested[x]
        ),
    )
    stays = after.cause == before.cause and after.finished == before.finished
    unread = every(
        requests, lambda r: (before.stands[r] == Stands.consumed) == (after.stands[r] == Stands.consumed)
    )
    if after.state_version == before.state_version:
        return alike and stays and unread
    return after.state_version == before.state_version + 1 and not (alike and stays and unread)


# §5: the life of a step.

LEGAL = (
    (Status.pending, (Status.running, Status.waiting_approval, Status.cancelled)),
    (Status.waiting_approval, (Status.running, Status.cancelled, Status.failed)),
    (Status.running, (
        Status.succeeded, Status.failed, Status.cancelled, Status.manual_intervention, Status.retry_scheduled,
        Status.waiting_approval,
    )),
    (Status.retry_scheduled, (
        Status.running, Status.succeeded, Status.failed, Status.cancelled, Status.manual_intervention,
    )),
    (Status.succeeded, (Status.compensating,)),
    (Status.compensating, (Status.compensated, Status.manual_intervention)),
    (Status.manual_intervention, (
        Status.running, Status.succeeded, Status.failed, Status.cancelled, Status.compensated,
    )),
    (Status.failed, ()),
    (Status.cancelled, ()),
    (Status.compensated, ()),
)  # fmt: skip
"""By status, where a step may go from there."""


@WORKFLOW.each_step("S6", section="§5", witnesses=("a_step_succeeds", "a_step_is_undone"))
def legal_transitions_only(before: State, after: State) -> object:
    """A step goes only where its status allows, and never leaves an end."""
    return every(steps, lambda x: is_legal(before.status[x], after.status[x]))


@derived
def is_legal(was: Member, now: Member) -> object:
    """Whether a step may go from one status to another, or stay."""
    if was == now:
        return True
    for status, targets in LEGAL:
        if was == status:
            for target in targets:
                if now == target:
                    return True
            return False
    return False


@WORKFLOW.each_step("S6", section="§5", witnesses=("an_approval_is_asked_anew",))
def only_a_new_intent_waits_again(before: State, after: State) -> object:
    """A step that ran waits for approval again only with a new intent; intents only rise, one by one."""
    return every(
        steps,
        lambda x: (
            (after.intent[x] == before.intent[x] or after.intent[x] == before.intent[x] + 1)
            and implies(
                after.intent[x] != before.intent[x],
                lambda: before.status[x] == Status.pending or before.status[x] == Status.running,
            )
            and implies(
                moves(before, after, x, Status.running, Status.waiting_approval),
                lambda: after.intent[x] == before.intent[x] + 1,
            )
        ),
    )


@WORKFLOW.each_step("S6", section="§5", witnesses=("a_compensation_is_handed_over",))
def a_person_is_told_what_for(before: State, after: State) -> object:
    """A step that is handed to a person is marked as being undone exactly if its compensation is meant."""
    return every(
        steps,
        lambda x: (
            after.undoing[x] == before.undoing[x]
            if after.status[x] == before.status[x] or after.status[x] != Status.manual_intervention
            else after.undoing[x] == (before.status[x] == Status.compensating)
        ),
    )


@WORKFLOW.always("S6", section="§5", witnesses=("an_instance_succeeds", "an_instance_ends_undone"))
def an_instance_ends_with_its_steps(s: State) -> object:
    """An instance is finished when all steps succeeded or, unwinding, when none is left to undo."""
    return not s.finished or every(
        steps,
        lambda x: (
            (s.status[x] == Status.succeeded and (s.cause == Cause.none or not s.undoable[x]))
            or (s.cause != Cause.none and has_ended(s, x))
        ),
    )


@WORKFLOW.each_step("S14", section="§8", witnesses=("a_step_succeeds_after_takeover",))
def recovery_repeats_nothing(before: State, after: State) -> object:
    """No effect is sent of a step that its owner has read to have succeeded, or to wait."""
    return every(
        calls,
        lambda c: (
            before.call[c].present
            or not after.call[c].present
            or some(
                workers,
                lambda w: after.call[c].by.worker == w and has_under_way(after, w, after.call[c].step),
            )
        ),
    )


@derived
def has_under_way(s: State, w: Element, x: Element) -> object:
    """Whether worker `w` last read that an effect of step `x` is under way, or in a person's hands."""
    status = s.seen[w, x].status
    return (
        status == Status.running
        or status == Status.retry_scheduled
        or status == Status.compensating
        or status == Status.manual_intervention
    )


@WORKFLOW.each_step("S14", section="§8", witnesses=("a_step_succeeds_after_takeover",))
def an_owner_sends_only_what_is_under_way(before: State, after: State) -> object:
    """The present owner sends only what the stored step has under way: no success again, no former intent."""
    return every(
        calls,
        lambda c: (
            before.call[c].present
            or not after.call[c].present
            or after.call[c].token != before.lease_version
            or is_to_be_sent(before, after, c)
        ),
    )


@derived
def is_to_be_sent(before: State, after: State, c: Element) -> object:
    """Whether call `c` asks for what its step has under way as it is stored: to do, to give up, to undo."""
    sent = after.call[c]
    x, status = sent.step, before.status[sent.step]
    if sent.intent != before.intent[x]:
        return False
    if sent.deed == Deed.undo:
        return status == Status.compensating and not sent.buries
    if sent.buries:
        return status == Status.manual_intervention or (runs(before, x) and before.cause != Cause.none)
    return status == Status.running and before.cause == Cause.none


@WORKFLOW.each_step("S15", section="§5", witnesses=("a_step_waits_for_another",))
def order_is_kept(before: State, after: State) -> object:
    """A step begins only after all that it depends on has succeeded."""
    return every(
        steps,
        steps,
        lambda x, y: (
            before.status[x] != Status.pending
            or after.status[x] == Status.pending
            or after.status[x] == Status.cancelled
            or not before.needs[x, y]
            or before.status[y] == Status.succeeded
        ),
    )


@WORKFLOW.each_step("S15", section="§1", witnesses=("a_step_waits_for_another",))
def the_definition_stays(before: State, after: State) -> object:
    """Once a worker has acquired the instance, its steps, what they need and what undoes them stay."""
    return before.lease_version == 0 or every(
        steps,
        steps,
        lambda x, y: (
            after.needs[x, y] == before.needs[x, y]
            and after.gated[x] == before.gated[x]
            and after.undoable[x] == before.undoable[x]
        ),
    )


# §6, §7: effects.


@WORKFLOW.each_step(
    "S8", section="§6", witnesses=("a_call_is_answered_from_the_record",), needs_off=RECORDS_LOST
)
def one_effect_per_intent(before: State, after: State) -> object:
    """A downstream that keeps keys lets an effect or a compensation of an intent take place at most once."""
    return not switched("keyed") or every(
        calls,
        lambda c: (
            not lands(before, after, c)
            or not before.happened[before.call[c].step, before.call[c].deed, before.call[c].intent]
        ),
    )


@WORKFLOW.always("S10", section="§6", witnesses=("a_step_succeeds",))
def receipt_is_true(s: State) -> object:
    """The effect of a step that succeeded happened, or an operator attests it; likewise its compensation."""
    return every(
        steps,
        lambda x: (
            (s.status[x] != Status.succeeded or s.attested[x] or s.happened[x, Deed.act, s.intent[x]])
            and (
                s.status[x] != Status.compensated
                or (s.attested[x] and s.undoing[x])
                or s.happened[x, Deed.undo, s.intent[x]]
            )
        ),
    )


@WORKFLOW.each_step(
    "S11", section="§7", witnesses=("a_stale_call_is_refused",), needs_off=("record_volatile",)
)
def fence_only_rises(before: State, after: State) -> object:
    """A fenced downstream records ever higher tokens, and no effect with a lower one than recorded lands."""
    return after.fence >= before.fence and (
        not switched("fenced")
        or every(calls, lambda c: not lands(before, after, c) or before.call[c].token >= before.fence)
    )


@WORKFLOW.each_step(
    "S12",
    section="§7",
    witnesses=("a_stale_call_is_refused", "another_step_has_raised_the_fence"),
    needs_off=("record_volatile",),
)
def stale_effect_never_lands_after_contact(before: State, after: State) -> object:
    """Once the downstream has answered a new owner ok, no older owner's effect lands, of whatever step."""
    return not switched("fenced") or every(
        calls, lambda c: not lands(before, after, c) or before.call[c].token >= before.contacted
    )


@WORKFLOW.always(
    "S13", section="§6", witnesses=("a_step_is_called_off_after_a_tombstone",), needs_off=RECORDS_LOST
)
def given_up_effects_never_happen(s: State) -> object:
    """A step ends failed or cancelled only if its effect never happens, or an operator attests it."""
    return every(
        steps,
        lambda x: (
            s.attested[x]
            or (s.status[x] != Status.failed and s.status[x] != Status.cancelled)
            or not s.happened[x, Deed.act, s.intent[x]]
        ),
    )


@WORKFLOW.always("S13", section="§6", witnesses=("an_approval_is_asked_anew",), needs_off=RECORDS_LOST)
def former_intents_never_happen(s: State) -> object:
    """A step is given another intent only if the effect of the former never happens."""
    return every(
        steps,
        intent_versions,
        lambda x, i: i == 0 or i >= s.intent[x] or not s.happened[x, Deed.act, i],
    )


@WORKFLOW.each_step("S13", section="§6", witnesses=("what_nobody_can_ask_is_left_to_a_person",))
def without_keys_nothing_is_sent_twice(before: State, after: State) -> object:
    """Only where keys are kept an effect is sent that has happened, or that another call may bring about."""
    return switched("keyed") or every(
        calls,
        lambda c: (
            before.call[c].present
            or not after.call[c].present
            or (
                not before.happened[after.call[c].step, after.call[c].deed, after.call[c].intent]
                and every(
                    calls,
                    lambda d: (
                        not brings_about(
                            before, d, after.call[c].step, after.call[c].deed, after.call[c].intent
                        )
                    ),
                )
            )
        ),
    )


@derived
def brings_about(s: State, c: Element, x: Element, deed: Member, i: object) -> object:
    """Whether call `c` was sent to bring about this effect of step `x`."""
    return (
        s.call[c].present
        and not s.call[c].buries
        and s.call[c].step == x
        and s.call[c].deed == deed
        and s.call[c].intent == i
    )


@WORKFLOW.always("S8-intent", section="§6", witnesses=("a_step_succeeds",))
def only_stored_intents_happen(s: State) -> object:
    """An effect takes place only after its intent was committed."""
    return every(
        steps,
        intent_versions,
        lambda x, i: not s.happened[x, Deed.act, i] or (i >= 1 and i <= s.intent[x]),
    )


@WORKFLOW.each_step(
    "S19", section="§7", witnesses=("a_late_call_meets_the_tombstone",), needs_off=RECORDS_LOST
)
def late_request_after_tombstone_refused(before: State, after: State) -> object:
    """Once a tombstone was written under a key, no effect lands under it."""
    return every(
        calls,
        lambda c: (
            not lands(before, after, c)
            or not before.buried[before.call[c].step, before.call[c].deed, before.call[c].intent]
        ),
    )


@WORKFLOW.each_step("S25", section="§2", witnesses=("a_stale_commit_is_refused", "a_stale_call_is_refused"))
def refused_changes_nothing(before: State, after: State, step: Step) -> object:
    """A call that is refused leaves the row, its steps, the inbox and the downstream as they were."""
    return not step.refused or (
        after.owner == before.owner
        and after.lease_version == before.lease_version
        and after.live == before.live
        and after.state_version == before.state_version
        and after.finished == before.finished
        and after.cause == before.cause
        and after.fence == before.fence
        and every(requests, lambda r: after.stands[r] == before.stands[r])
        and every(steps, lambda x: step_is_alike(before, after, x))
        and every(
            steps,
            intent_versions,
            lambda x, i: (
                after.record[x, Deed.act, i] == before.record[x, Deed.act, i]
                and after.record[x, Deed.undo, i] == before.record[x, Deed.undo, i]
                and after.happened[x, Deed.act, i] == before.happened[x, Deed.act, i]
                and after.happened[x, Deed.undo, i] == before.happened[x, Deed.undo, i]
            ),
        )
    )


@derived
def step_is_alike(before: State, after: State, x: Element) -> object:
    """Whether all that is stored of step `x` is as it was."""
    return (
        after.status[x] == before.status[x]
        and after.intent[x] == before.intent[x]
        and after.fingerprint[x] == before.fingerprint[x]
        and after.attempt[x] == before.attempt[x]
        and after.due[x] == before.due[x]
        and after.late[x] == before.late[x]
        and after.succeeded_at[x] == before.succeeded_at[x]
        and after.undoing[x] == before.undoing[x]
        and after.attested[x] == before.attested[x]
    )


@WORKFLOW.always("L3", section="§17", witnesses=("an_instance_succeeds", "a_step_waits_for_a_person"))
def no_stuck_state(s: State) -> object:
    """Unless the instance is finished or waits for a person, a worker, the clock or a restart moves it on."""
    return (
        s.finished
        or not s.begun
        or some(steps, lambda x: waits_for_a_person(s, x))
        # What a worker can do at any time: to finish is refused, and tells it where it stands.
        or can_move(s, CLOCK, SUPERVISOR, "acquire", "reread", "finish")
    )


@derived
def waits_for_a_person(s: State, x: Element) -> object:
    """Whether step `x` is in a person's hands, or waits for an approval."""
    return s.status[x] == Status.manual_intervention or s.status[x] == Status.waiting_approval
