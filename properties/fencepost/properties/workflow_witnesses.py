"""What must be reachable for the promises about a workflow to say anything."""

from __future__ import annotations

from fencepost.model import State, Step, derived, some, switched
from fencepost.model.core.state import workers
from fencepost.model.workflow.state import (
    Answer,
    Cause,
    Deed,
    Knows,
    Stands,
    Status,
    Wish,
    calls,
    requests,
    steps,
)
from fencepost.properties.workflow import WORKFLOW, lands, moves, waits_for_a_person
from fencepost.properties.workflow_requests import is_spent


@derived
def is_refused(step: Step, code: str) -> object:
    """Whether this step is a commit that is refused so."""
    return step.refused and step.outcome == code


@WORKFLOW.sometimes()
def an_instance_succeeds(s: State) -> object:
    """The instance is finished, and nothing was undone."""
    return s.finished and s.cause == Cause.none


@WORKFLOW.sometimes()
def an_instance_ends_undone(s: State) -> object:
    """The instance is finished, and a step that succeeded was undone."""
    return s.finished and some(steps, lambda x: s.status[x] == Status.compensated)


@WORKFLOW.sometimes()
def a_stale_commit_is_refused(before: State, after: State, step: Step) -> object:
    """A former owner tries to start a step, and is refused."""
    return step.action == "start" and step.outcome == "stale-lease-version"


@WORKFLOW.sometimes()
def an_owner_commits_too_late(before: State, after: State, step: Step) -> object:
    """The latest owner's commit arrives when its lease is over, and is refused."""
    return step.action == "start" and step.outcome == "lease-expired"


@WORKFLOW.sometimes()
def a_step_succeeds(s: State) -> object:
    """A step has succeeded, and no operator said so."""
    return some(steps, lambda x: s.status[x] == Status.succeeded and not s.attested[x])


@WORKFLOW.sometimes()
def a_step_fails(before: State, after: State) -> object:
    """A step that ran fails, since its effect has not happened."""
    return some(steps, lambda x: moves(before, after, x, Status.running, Status.failed))


@WORKFLOW.sometimes()
def a_step_succeeds_after_takeover(before: State, after: State) -> object:
    """A step that an earlier owner sent succeeds under a later one, while another has succeeded before."""
    return before.lease_version >= 2 and some(
        steps,
        steps,
        lambda x, y: (
            x != y
            and before.status[y] == Status.succeeded
            and moves(before, after, x, Status.running, Status.succeeded)
        ),
    )


@WORKFLOW.sometimes()
def a_step_waits_for_another(before: State, after: State, step: Step) -> object:
    """A step is to start whose dependency has not succeeded, and that is refused."""
    return step.action == "start" and step.outcome == "dependency-unmet"


@WORKFLOW.sometimes()
def a_call_is_answered_from_the_record(before: State, after: State, step: Step) -> object:
    """A call whose effect has happened arrives again, is answered ok, and nothing happens."""
    return step.action == "decide_call" and step.outcome == "ok" and some(
        calls,
        lambda c: (
            before.call[c].present
            and not before.call[c].buries
            and after.reply[c] == Answer.ok
            and before.reply[c] != Answer.ok
            and not lands(before, after, c)
        ),
    )  # fmt: skip


@WORKFLOW.sometimes()
def a_stale_call_is_refused(before: State, after: State, step: Step) -> object:
    """A former owner's call arrives after the new owner's, and is refused."""
    return step.action == "decide_call" and step.outcome == "stale-token" and after.contacted >= 1


@WORKFLOW.sometimes()
def another_step_has_raised_the_fence(before: State, after: State, step: Step) -> object:
    """A former owner's call is refused because of what a later owner did for another step."""
    return (
        step.action == "decide_call"
        and step.outcome == "stale-token"
        and some(
            calls,
            steps,
            lambda c, y: (
                before.call[c].present
                and before.in_flight[c]
                and before.call[c].token < before.fence
                and before.call[c].step != y
                and before.happened[y, Deed.act, before.intent[y]]
                and not before.happened[before.call[c].step, Deed.act, before.call[c].intent]
            ),
        )
    )


@WORKFLOW.sometimes()
def what_nobody_can_ask_is_left_to_a_person(before: State, after: State) -> object:
    """Without keys, a step whose effect was sent goes to a person: it may not be sent again."""
    return not switched("keyed") and some(
        steps,
        workers,
        lambda x, w: (
            moves(before, after, x, Status.running, Status.manual_intervention)
            and before.knows[w, x] == Knows.sent
        ),
    )


@WORKFLOW.sometimes()
def a_step_is_called_off_after_a_tombstone(before: State, after: State) -> object:
    """A step that ran is cancelled because its key is buried."""
    return some(
        steps,
        lambda x: (
            moves(before, after, x, Status.running, Status.cancelled)
            and before.buried[x, Deed.act, before.intent[x]]
        ),
    )


@WORKFLOW.sometimes()
def a_late_call_meets_the_tombstone(before: State, after: State, step: Step) -> object:
    """A call arrives after the tombstone under its key, and is refused."""
    return step.action == "decide_call" and step.outcome == "tombstoned"


@WORKFLOW.sometimes()
def a_step_is_tried_again(before: State, after: State) -> object:
    """The timer of a step is due, and it runs again."""
    return some(steps, lambda x: moves(before, after, x, Status.retry_scheduled, Status.running))


@WORKFLOW.sometimes()
def a_cancel_meets_a_start(before: State, after: State, step: Step) -> object:
    """A worker is to start a step while a cancel waits in the inbox, and is refused."""
    return step.action == "start" and step.outcome == "cancel-requested"


@WORKFLOW.sometimes()
def a_cancelled_instance_ends(s: State) -> object:
    """A cancel was consumed, and the instance is finished."""
    return s.finished and s.cause == Cause.cancel


@WORKFLOW.sometimes()
def a_cancel_comes_too_late(before: State, after: State, step: Step) -> object:
    """A cancel arrives when the instance is finished, and is refused."""
    return step.action == "record_request" and step.outcome == "finished"


@WORKFLOW.sometimes()
def an_approved_step_runs(before: State, after: State) -> object:
    """An approval is spent, and the step runs."""
    return some(steps, lambda x: moves(before, after, x, Status.waiting_approval, Status.running))


@WORKFLOW.sometimes()
def an_approval_of_something_else_is_refused(before: State, after: State, step: Step) -> object:
    """A step is to run on an approval of another intent than is stored, and is refused."""
    return (
        step.action == "run_approved"
        and step.outcome == "no-such-request"
        and some(
            steps,
            requests,
            lambda x, r: (
                before.status[x] == Status.waiting_approval
                and before.stands[r] == Stands.inbox
                and before.wish[r] == Wish.approve
                and before.about[r] == x
                and before.approves[r].present
                and before.approves[r] != before.fingerprint[x]
            ),
        )
    )


@WORKFLOW.sometimes()
def a_late_approval_is_honoured(before: State, after: State) -> object:
    """The deadline of an approval has passed when it is spent; it was recorded before."""
    return some(
        steps, lambda x: before.late[x] and moves(before, after, x, Status.waiting_approval, Status.running)
    )


@WORKFLOW.sometimes()
def a_late_approval_is_refused(before: State, after: State, step: Step) -> object:
    """An approval arrives after its deadline, and is refused."""
    return step.action == "record_request" and step.outcome == "deadline-passed"


@WORKFLOW.sometimes()
def an_approval_does_not_come(before: State, after: State) -> object:
    """A step fails because nobody has approved of it in time."""
    return some(steps, lambda x: moves(before, after, x, Status.waiting_approval, Status.failed))


@WORKFLOW.sometimes()
def an_approval_is_asked_anew(before: State, after: State) -> object:
    """A step that ran waits for the approval of another intent."""
    return some(steps, lambda x: moves(before, after, x, Status.running, Status.waiting_approval))


@WORKFLOW.sometimes()
def a_step_is_undone(before: State, after: State) -> object:
    """The compensation of a step has its receipt, and the step is compensated."""
    return some(steps, lambda x: moves(before, after, x, Status.compensating, Status.compensated))


@WORKFLOW.sometimes()
def a_compensation_is_handed_over(s: State) -> object:
    """A step is in a person's hands because of its compensation."""
    return some(steps, lambda x: s.status[x] == Status.manual_intervention and s.undoing[x])


@WORKFLOW.sometimes()
def two_steps_are_undone(s: State) -> object:
    """One step was undone, and another is being undone that succeeded before it."""
    return some(
        steps,
        steps,
        lambda x, y: (
            s.status[x] == Status.compensated
            and s.status[y] == Status.compensating
            and s.succeeded_at[y] < s.succeeded_at[x]
        ),
    )


@WORKFLOW.sometimes()
def a_request_arrives_again(before: State, after: State, step: Step) -> object:
    """A second copy of a request arrives, and nothing happens."""
    return step.action == "record_request" and step.outcome == "ok" and some(
        requests,
        lambda r: before.arriving[r] and not after.arriving[r] and before.stands[r] == Stands.consumed,
    )  # fmt: skip


@WORKFLOW.sometimes()
def a_late_result_is_merged(before: State, after: State, step: Step) -> object:
    """A step succeeds with a receipt that its former owner got too late."""
    return step.action == "merge" and step.outcome == "ok"


@WORKFLOW.sometimes()
def a_late_result_stays(before: State, after: State) -> object:
    """A late result is recorded in the inbox of an instance that has ended without it."""
    return before.finished and some(
        requests, lambda r: before.stands[r] == Stands.nowhere and after.stands[r] == Stands.inbox
    )


@WORKFLOW.sometimes()
def an_operator_attests(before: State, after: State) -> object:
    """An operator's word settles a step."""
    return some(steps, lambda x: after.attested[x] and not before.attested[x])


@WORKFLOW.sometimes()
def a_decision_is_overtaken(before: State, after: State) -> object:
    """Two decisions are over with one commit, of which it honours one."""
    return some(
        requests,
        requests,
        lambda q, r: (
            q != r
            and before.wish[q] != before.wish[r]
            and is_spent(before, after, q)
            and is_spent(before, after, r)
        ),
    )


@WORKFLOW.sometimes()
def nobody_was_asked(before: State, after: State, step: Step) -> object:
    """A decision arrives about a step that waits for none, and is refused."""
    return step.action == "record_request" and step.outcome == "nothing-to-decide"


@WORKFLOW.sometimes()
def a_step_waits_for_a_person(s: State) -> object:
    """A step is in a person's hands, or waits for an approval."""
    return some(steps, lambda x: waits_for_a_person(s, x))
