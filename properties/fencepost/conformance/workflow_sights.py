"""Situations of a workflow that runs go to besides: one guard alone stands in the way of something wrong.

The search for goals takes the shortest way to a refusal, and so mostly refuses what is wrong for several
reasons, or of a step that has just begun. These are the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fencepost.model import State, Step, every, some
from fencepost.model.domains import Element, Member
from fencepost.model.workflow.state import Cause, Deed, Stands, Status, Wish, requests, steps
from fencepost.properties import Claim, Kind

Predicate = Callable[[State, State, Step], object]

ENDS = (Status.failed, Status.cancelled, Status.compensated, Status.succeeded)
"""Where a step stays, whatever is tried."""

AT_ANY_TIME = ("start", "hand_over", "schedule_retry", "run_again", "give_up_waiting", "call_off",
               "compensate", "hand_over_compensation")  # fmt: skip
"""Commits that a worker can try of any step."""


def _tried_at(action: str, status: Member) -> Predicate:
    def tried(before: State, after: State, step: Step) -> object:  # noqa: ARG001
        """A commit is tried of a step that has come to an end."""
        return step.action == action and step.refused and some(steps, lambda x: before.status[x] == status)

    return tried


def finish_meets_a_cancel(before: State, after: State, step: Step) -> object:  # noqa: ARG001
    """All steps have succeeded, and a cancel alone keeps the instance from its end."""
    return (
        step.action == "finish"
        and step.outcome == "cancel-requested"
        and every(steps, lambda x: before.status[x] == Status.succeeded)
    )


def what_cannot_be_undone_is_to_be(before: State, after: State, step: Step) -> object:  # noqa: ARG001
    """Nothing but the lack of a compensation keeps a step from being undone."""
    return (
        step.action == "compensate"
        and step.outcome == "illegal-transition"
        and before.cause != Cause.none
        and some(steps, lambda x: before.status[x] == Status.succeeded and not before.undoable[x])
        and every(steps, lambda x: before.status[x] == Status.succeeded or before.status[x] == Status.failed)
    )


def a_rejection_is_taken_for_an_approval(before: State, after: State, step: Step) -> object:  # noqa: ARG001
    """What alone is wrong with a decision is that it says no."""
    return (
        step.action == "run_approved"
        and step.outcome == "no-such-request"
        and some(steps, requests, lambda x, r: _decides(before, r, x, Wish.reject))
    )


def an_approval_of_another_step_is_tried(before: State, after: State, step: Step) -> object:  # noqa: ARG001
    """What alone is wrong with an approval is that it is about another step."""
    return (
        step.action == "run_approved"
        and step.outcome == "no-such-request"
        and every(steps, lambda x: before.status[x] == Status.waiting_approval)
        and some(steps, requests, lambda x, r: _decides(before, r, x, Wish.approve))
    )


def _decides(s: State, r: Element, x: Element, wish: Member) -> object:
    return (
        s.stands[r] == Stands.inbox
        and s.wish[r] == wish
        and s.about[r] == x
        and s.approves[r].present
        and s.approves[r] == s.fingerprint[x]
        and s.status[x] == Status.waiting_approval
    )


def a_word_about_another_step_is_tried(before: State, after: State, step: Step) -> object:  # noqa: ARG001
    """What alone is wrong with an operator's decision is that it is about another step."""
    return (
        step.action == "run_by_hand"
        and step.outcome == "no-such-request"
        and every(steps, lambda x: before.status[x] == Status.manual_intervention)
        and some(requests, lambda r: before.stands[r] == Stands.inbox and before.wish[r] == Wish.run_again)
    )


def something_is_undone_past_a_person(before: State, after: State, step: Step) -> object:  # noqa: ARG001
    """What alone keeps a step from being undone is another one, which is in a person's hands."""
    return (
        step.action == "compensate"
        and step.outcome == "unfinished-steps"
        and some(steps, lambda x: before.status[x] == Status.succeeded and before.undoable[x])
        and every(
            steps,
            lambda x: before.status[x] == Status.succeeded or before.status[x] == Status.manual_intervention,
        )
    )


def what_happened_is_to_be_approved_again(before: State, after: State, step: Step) -> object:  # noqa: ARG001
    """Nothing but that it runs, and has taken effect, keeps a step from waiting for another approval."""
    return (
        step.action == "ask_approval"
        and step.outcome == "illegal-transition"
        and before.cause == Cause.none
        and some(
            steps,
            lambda x: before.status[x] == Status.running and before.happened[x, Deed.act, before.intent[x]],
        )
        and every(steps, lambda x: before.status[x] == Status.running)
    )


def _ends_at_the_second_gate(action: str) -> Predicate:
    def ends(before: State, after: State, step: Step) -> object:
        """A step that waits for the approval of another intent goes on."""
        return (
            step.action == action
            and step.outcome == "ok"
            and some(
                steps,
                lambda x: (
                    before.intent[x] > 1
                    and before.status[x] == Status.waiting_approval
                    and after.status[x] != Status.waiting_approval
                ),
            )
        )

    return ends


def another_intent_succeeds(before: State, after: State, step: Step) -> object:  # noqa: ARG001
    """A step succeeds with another intent than its first, behind a gate."""
    return some(
        steps,
        lambda x: (
            before.gated[x]
            and before.intent[x] > 1
            and before.status[x] == Status.running
            and after.status[x] == Status.succeeded
        ),
    )


def a_spent_approval_is_tried_again(before: State, after: State, step: Step) -> object:  # noqa: ARG001
    """What alone is wrong with an approval of another intent is that the first was started with it."""
    return (
        step.action == "run_approved"
        and step.outcome == "no-such-request"
        and every(steps, lambda x: before.status[x] == Status.waiting_approval and before.intent[x] > 1)
        and every(requests, lambda r: before.stands[r] != Stands.inbox)
    )


def _all() -> Iterator[Claim]:
    for action in AT_ANY_TIME:
        for status in ENDS:
            yield _sight(f"{action} of what has {status.name}", _tried_at(action, status))
    yield _sight("finish_meets_a_cancel", finish_meets_a_cancel)
    for action in ("run_approved", "take_no", "give_up_waiting"):
        yield _sight(f"{action} of another intent", _ends_at_the_second_gate(action))
    for sight in (
        another_intent_succeeds,
        a_spent_approval_is_tried_again,
        what_cannot_be_undone_is_to_be,
        a_rejection_is_taken_for_an_approval,
        an_approval_of_another_step_is_tried,
        a_word_about_another_step_is_tried,
        something_is_undone_past_a_person,
        what_happened_is_to_be_approved_again,
    ):
        yield _sight(sight.__name__, sight)


def _sight(name: str, predicate: Predicate) -> Claim:
    return Claim("", name, Kind.SOMETIMES, predicate, str(predicate.__doc__))


SIGHTS = list(_all())
