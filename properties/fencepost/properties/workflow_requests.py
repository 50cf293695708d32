"""What is promised about retries, cancelling, approval, compensation and requests: S13, S16–S18, S20, S26."""

from __future__ import annotations

from fencepost.model import State, Step, derived, every, some, switched
from fencepost.model.core.state import workers
from fencepost.model.domains import Element, Member
from fencepost.model.workflow.state import (
    Cause,
    Deed,
    Knows,
    Stands,
    Status,
    Wish,
    intent_versions,
    is_decision,
    requests,
    steps,
)
from fencepost.properties.workflow import WORKFLOW, has_ended, moves, runs, step_is_alike

# §9: retries.


@WORKFLOW.each_step("S20", section="§9", witnesses=("a_step_is_tried_again",))
def timer_fires_once(before: State, after: State) -> object:
    """A step is tried again only when its timer was due, once for each time, and the attempts count it."""
    return every(
        steps,
        lambda x: (
            (
                (after.attempt[x] != before.attempt[x])
                == moves(before, after, x, Status.retry_scheduled, Status.running)
            )
            and (
                after.attempt[x] == before.attempt[x]
                or (after.attempt[x] == before.attempt[x] + 1 and before.due[x] and not after.due[x])
            )
            and (not after.due[x] or before.due[x] or before.status[x] == Status.retry_scheduled)
            and not (moves(before, after, x, Status.running, Status.retry_scheduled) and after.due[x])
        ),
    )


# §10: cancelling and unwinding.


@derived
def is_spent(before: State, after: State, r: Element) -> object:
    """Whether a commit consumes request `r` in this step."""
    return before.stands[r] != Stands.consumed and after.stands[r] == Stands.consumed


@derived
def starts(before: State, after: State, x: Element) -> object:
    """Whether step `x` starts in this step, is tried again, or is given another intent."""
    runs_anew = after.status[x] == Status.running and before.status[x] != Status.running
    return runs_anew or after.intent[x] != before.intent[x]


@WORKFLOW.each_step(
    "S16",
    section="§10",
    witnesses=("a_cancel_meets_a_start", "a_cancelled_instance_ends"),
)
def cancel_is_honoured(before: State, after: State) -> object:
    """After an accepted cancel no step starts, and the instance does not end succeeded."""
    return every(
        requests,
        lambda r: (
            before.wish[r] != Wish.cancel
            or before.stands[r] == Stands.nowhere
            or (
                every(steps, lambda x: not starts(before, after, x))
                and (before.finished or not after.finished or after.cause != Cause.none)
            )
        ),
    )


@WORKFLOW.always("S16", section="§10", witnesses=("an_instance_ends_undone", "a_cancelled_instance_ends"))
def what_is_given_up_has_a_cause(s: State) -> object:
    """Where a step failed, is cancelled or undone, or a cancel is consumed, the instance unwinds."""
    return s.cause != Cause.none or (
        every(steps, lambda x: not has_ended(s, x) and s.status[x] != Status.compensating)
        and every(requests, lambda r: s.stands[r] != Stands.consumed or s.wish[r] != Wish.cancel)
    )


@WORKFLOW.each_step(
    "S16", section="§10", witnesses=("an_instance_ends_undone", "a_cancelled_instance_ends", "a_step_fails")
)
def unwinding_has_a_reason(before: State, after: State) -> object:
    """An instance unwinds when a step fails or is given up, or on a cancel or rejection that this spends."""
    return (
        before.cause != Cause.none
        or after.cause == Cause.none
        or (
            after.cause == Cause.failure
            and some(steps, lambda x: runs(before, x) or (has_ended(after, x) and not has_ended(before, x)))
        )
        or some(
            requests,
            lambda r: (
                is_spent(before, after, r)
                and (before.wish[r] == Wish.cancel or before.wish[r] == Wish.reject)
            ),
        )
    )


@WORKFLOW.each_step("S16", section="§10", witnesses=("an_instance_ends_undone",))
def who_unwinds_goes_on_unwinding(before: State, after: State) -> object:
    """From the commit of a cause on no step starts, and the cause stays."""
    return before.cause == Cause.none or (
        after.cause == before.cause
        and every(steps, lambda x: not starts(before, after, x) and (
            after.status[x] != Status.waiting_approval or before.status[x] == Status.waiting_approval))
    )  # fmt: skip


@WORKFLOW.each_step("S16", section="§10", witnesses=("a_cancel_comes_too_late",))
def a_cancel_after_the_end_is_refused(before: State, after: State) -> object:
    """Nothing is recorded in the inbox of a finished instance but a result that comes late."""
    return not before.finished or every(
        requests,
        lambda r: (
            before.stands[r] != Stands.nowhere
            or after.stands[r] == Stands.nowhere
            or before.wish[r] == Wish.late_result
        ),
    )


# §11: approval.


@WORKFLOW.each_step(
    "S17", section="§11", witnesses=("an_approved_step_runs", "an_approval_of_something_else_is_refused")
)
def approval_spent_once(before: State, after: State) -> object:
    """A step that waits runs only on an approval of its stored intent, recorded in time, that this spends."""
    return every(
        steps,
        lambda x: (
            not moves(before, after, x, Status.waiting_approval, Status.running)
            or some(
                requests,
                lambda r: (
                    is_spent(before, after, r)
                    and before.wish[r] == Wish.approve
                    and before.about[r] == x
                    and before.in_time[r]
                    and before.approves[r].present
                    and before.approves[r] == before.fingerprint[x]
                    and after.fingerprint[x] == before.fingerprint[x]
                ),
            )
        ),
    )


@WORKFLOW.each_step("S17", section="§11", witnesses=("an_approved_step_runs",))
def a_gated_step_waits(before: State, after: State) -> object:
    """A step that needs an approval begins by waiting for it, before the deadline, with each new intent."""
    return every(
        steps,
        lambda x: (
            not before.gated[x]
            or after.intent[x] == before.intent[x]
            or (after.status[x] == Status.waiting_approval and not after.late[x])
        ),
    )


@WORKFLOW.each_step(
    "S17",
    section="§11",
    witnesses=("a_late_approval_is_honoured", "a_late_approval_is_refused", "an_approval_does_not_come"),
)
def an_approval_in_time_is_honoured(before: State, after: State) -> object:
    """A step does not fail for want of an approval before the deadline, nor while one is recorded."""
    return every(
        steps,
        requests,
        lambda x, r: (
            not moves(before, after, x, Status.waiting_approval, Status.failed)
            or (
                before.late[x]
                and (
                    before.stands[r] != Stands.inbox
                    or before.wish[r] != Wish.approve
                    or before.about[r] != x
                    or not before.approves[r].present
                    or before.approves[r] != before.fingerprint[x]
                )
            )
        ),
    )


@WORKFLOW.each_step("S17", section="§11", witnesses=("a_late_approval_is_refused",))
def approvals_are_recorded_in_time(before: State, after: State) -> object:
    """An approval is recorded only before the deadline of the step that it names."""
    return every(
        steps,
        requests,
        lambda x, r: (
            before.stands[r] != Stands.nowhere
            or after.stands[r] == Stands.nowhere
            or before.wish[r] != Wish.approve
            or before.about[r] != x
            or not before.late[x]
        ),
    )


# §12: compensation.


@WORKFLOW.each_step("S18", section="§12", witnesses=("a_step_is_undone", "two_steps_are_undone"))
def compensation_in_order(before: State, after: State) -> object:
    """A step is undone only when nothing is under way and no later success is left that can be undone."""
    return every(
        steps,
        lambda x: (
            not moves(before, after, x, Status.succeeded, Status.compensating)
            or (
                before.cause != Cause.none
                and before.undoable[x]
                and every(
                    steps,
                    lambda y: (
                        has_ended(before, y)
                        or (
                            before.status[y] == Status.succeeded
                            and (not before.undoable[y] or before.succeeded_at[y] <= before.succeeded_at[x])
                        )
                    ),
                )
            )
        ),
    )


@WORKFLOW.each_step("S18", section="§12", witnesses=("two_steps_are_undone",))
def successes_are_dated(before: State, after: State) -> object:
    """A success is dated by the state version of its commit, and the date stays."""
    return every(
        steps,
        lambda x: (
            (after.status[x] == Status.succeeded and before.status[x] != Status.succeeded
             and after.succeeded_at[x] == after.state_version)
            or ((after.status[x] != Status.succeeded or before.status[x] == Status.succeeded)
                and after.succeeded_at[x] == before.succeeded_at[x])
        ),
    )  # fmt: skip


@WORKFLOW.always("S18", section="§12", witnesses=("a_step_is_undone",))
def only_what_happened_is_undone(s: State) -> object:
    """A compensation takes place only for an effect that happened, or that an operator attests."""
    return every(
        steps,
        intent_versions,
        lambda x, i: not s.happened[x, Deed.undo, i] or s.happened[x, Deed.act, i] or s.attested[x],
    )


# §4: requests.


@WORKFLOW.each_step("S26", section="§4", witnesses=("a_request_arrives_again",))
def request_consumed_once(before: State, after: State) -> object:
    """A request is consumed in a commit that comes after it was recorded, once, and never goes back."""
    return every(
        requests,
        lambda r: (
            after.stands[r] == before.stands[r]
            or (before.stands[r] == Stands.nowhere and after.stands[r] == Stands.inbox)
            or (before.stands[r] == Stands.inbox and after.stands[r] == Stands.consumed
                and after.state_version == before.state_version + 1)
        ),
    )  # fmt: skip


@WORKFLOW.each_step("S26", section="§4", witnesses=("a_request_arrives_again",))
def a_request_alone_changes_nothing(before: State, after: State) -> object:
    """A request that is recorded moves no lease, no state version, no step and not the instance."""
    return every(
        requests, lambda r: before.stands[r] != Stands.nowhere or after.stands[r] == Stands.nowhere
    ) or (
        after.owner == before.owner
        and after.lease_version == before.lease_version
        and after.live == before.live
        and after.state_version == before.state_version
        and after.finished == before.finished
        and after.cause == before.cause
        and every(steps, lambda x: step_is_alike(before, after, x))
    )


@WORKFLOW.each_step("S26", section="§4", witnesses=("an_approved_step_runs",))
def a_commit_consumes_at_most_what_it_does(before: State, after: State) -> object:
    """A commit that consumes a request does what it asks, and to other steps nothing but call them off."""
    return every(
        requests,
        steps,
        lambda r, x: (
            not is_spent(before, after, r)
            or (
                does_as_asked(before, after, r, x)
                and (before.wish[r] != Wish.cancel or after.cause != Cause.none)
            )
        ),
    )


@derived
def does_as_asked(before: State, after: State, r: Element, x: Element) -> object:
    """Whether what request `r` asks of step `x` happens to it in this step; if nothing, at most its end."""
    if before.about[r] != x:
        return after.status[x] == before.status[x] or (
            after.cause != Cause.none and after.status[x] == Status.cancelled
        )
    if before.wish[r] == Wish.approve:
        return moves(before, after, x, Status.waiting_approval, Status.running)
    if before.wish[r] == Wish.reject:
        return (
            moves(before, after, x, Status.waiting_approval, Status.cancelled) and after.cause != Cause.none
        )
    if before.wish[r] == Wish.late_result:
        is_its_own = before.result_of[r] == before.intent[x]
        return is_its_own and runs(before, x) and after.status[x] == Status.succeeded
    # Of several decisions one is honoured, and all are over with it.
    return before.status[x] == Status.manual_intervention and some(
        requests,
        lambda q: (
            is_spent(before, after, q) and before.about[q] == x and decides_so(before, q, after.status[x])
        ),
    )


@WORKFLOW.each_step("S26", section="§4", witnesses=("a_late_result_is_merged", "a_late_result_stays"))
def late_results_are_kept(before: State, after: State) -> object:
    """A late result is consumed only by the success of its step, under the stored key; any other stays."""
    return every(
        requests,
        lambda r: (
            before.wish[r] != Wish.late_result
            or after.stands[r] == before.stands[r]
            or (before.stands[r] == Stands.nowhere and after.stands[r] == Stands.inbox)
            or some(
                steps,
                lambda x: (
                    before.about[r] == x
                    and before.result_of[r] == before.intent[x]
                    and before.happened[x, Deed.act, before.intent[x]]
                    and runs(before, x)
                    and after.status[x] == Status.succeeded
                ),
            )
        ),
    )


@WORKFLOW.each_step("S26", section="§4", witnesses=("a_late_result_stays",))
def a_late_result_is_never_refused(before: State, after: State, step: Step) -> object:
    """A late result that reaches the inbox is recorded, whatever became of the instance."""
    return (
        step.action != "record_request"
        or not step.refused
        or every(
            requests,
            lambda r: before.wish[r] != Wish.late_result or after.arriving[r] or not before.arriving[r],
        )
    )


@WORKFLOW.each_step("S26", section="§4", witnesses=("a_late_result_is_merged", "a_step_succeeds"))
def a_success_has_its_receipt(before: State, after: State) -> object:
    """A step succeeds when its owner has the receipt, or spends a late result or an operator's word."""
    return every(
        steps,
        lambda x: (
            not runs(before, x)
            or after.status[x] != Status.succeeded
            or some(
                workers,
                lambda w: (
                    before.believes[w].present
                    and before.believes[w].lease == before.lease_version
                    and before.knows[w, x] == Knows.receipt
                ),
            )
            or some(requests, lambda r: is_spent(before, after, r) and before.wish[r] == Wish.late_result)
        ),
    )


@WORKFLOW.each_step("S26", section="§4", witnesses=("a_cancelled_instance_ends",))
def an_instance_is_cancelled_only_if_asked(before: State, after: State) -> object:
    """An instance comes to be cancelled only by a commit that consumes a cancel or a rejection."""
    return (
        after.cause == before.cause
        or after.cause != Cause.cancel
        or some(
            requests,
            lambda r: (
                is_spent(before, after, r)
                and (before.wish[r] == Wish.cancel or before.wish[r] == Wish.reject)
            ),
        )
    )


@WORKFLOW.each_step("S26", section="§12", witnesses=("an_operator_attests",))
def a_person_decides(before: State, after: State) -> object:
    """A step leaves a person's hands only by a decision about it that is consumed, or by being called off."""
    return every(
        steps,
        lambda x: (
            before.status[x] != Status.manual_intervention
            or after.status[x] == Status.manual_intervention
            or some(
                requests,
                lambda r: is_spent(before, after, r) and before.about[r] == x
                and decides_so(before, r, after.status[x]),
            )
        ),
    )  # fmt: skip


@WORKFLOW.always("S26", section="§12", witnesses=("a_decision_is_overtaken", "nobody_was_asked"))
def a_decision_is_about_what_waits(s: State) -> object:
    """A decision that stands in the inbox is about a step that waits for one, as it was handed over."""
    return every(
        requests,
        steps,
        lambda r, x: (
            s.stands[r] != Stands.inbox
            or not is_decision(s, r)
            or s.about[r] != x
            or s.status[x] == Status.manual_intervention
        ),
    )


@derived
def decides_so(s: State, r: Element, now: Member) -> object:
    """Whether what an operator decided by request `r` gives a step this status."""
    return (
        (s.wish[r] == Wish.run_again and now == Status.running)
        or (s.wish[r] == Wish.succeeded and now == Status.succeeded)
        or (s.wish[r] == Wish.failed and now == Status.failed)
        or (s.wish[r] == Wish.compensated and now == Status.compensated)
    )


@WORKFLOW.each_step("S13", section="§12", witnesses=("an_operator_attests",))
def attested_keys_are_buried(before: State, after: State) -> object:
    """Where keys are kept, how an effect ended is attested only by an owner that knows it undone."""
    return not switched("keyed") or every(
        steps,
        lambda x: (
            after.attested[x] == before.attested[x]
            or before.undoing[x]
            or some(workers, lambda w: (
                before.believes[w].present and before.believes[w].lease == before.lease_version
                and before.knows[w, x] == Knows.not_happened))
        ),
    )  # fmt: skip
