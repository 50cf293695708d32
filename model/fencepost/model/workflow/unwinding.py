"""Cancelling and unwinding (§10), and compensation (§12).

From the commit of the cause on no step starts. What has not run is cancelled; what is under way is resolved;
then what succeeded is undone, the latest first.
"""

from __future__ import annotations

from fencepost.model.core.state import STORE, WORKER, workers
from fencepost.model.domains import BOOLEAN, Element
from fencepost.model.language import State, derived, every, ite, refuse_unless, when
from fencepost.model.workflow.beliefs import (
    commit_on,
    known_undone,
    learn_committed,
    learn_ended,
    learn_intended,
    sees_under_way,
)
from fencepost.model.workflow.lifecycle import step_commit
from fencepost.model.workflow.state import (
    Cause,
    Knows,
    Stands,
    Status,
    Wish,
    is_under_way,
    requests,
    steps,
    workflow,
)


@workflow.operation(
    WORKER, home=STORE, answered=learn_committed, switch="cancels", w=workers, r=requests, lost=BOOLEAN
)
def acknowledge_cancel(s: State, w: Element, r: Element, lost: bool) -> None:
    """A worker consumes a cancel, and the instance unwinds unless it does so already."""
    commit_on(s, w, lost)
    refuse_unless(s.stands[r] == Stands.inbox and s.wish[r] == Wish.cancel, "no-such-request")

    s.state_version = s.state_version + 1
    s.stands[r] = Stands.consumed
    s.cause = ite(s.cause == Cause.none, Cause.cancel, s.cause)


@step_commit(learn_committed)
def give_up(s: State, w: Element, x: Element, lost: bool) -> None:
    """A worker commits that the instance unwinds because of a step whose effect is still under way."""
    when(sees_under_way(s, w, x))
    commit_on(s, w, lost)
    refuse_unless(is_under_way(s.status[x]), "illegal-transition")
    refuse_unless(s.cause == Cause.none, "unwinding")

    s.state_version = s.state_version + 1
    s.cause = Cause.failure


@step_commit(learn_ended)
def call_off(s: State, w: Element, x: Element, lost: bool) -> None:
    """A worker cancels a step of an instance that unwinds, whose effect cannot have happened."""
    when(known_undone(s, w, x) or not sees_under_way(s, w, x))
    commit_on(s, w, lost)
    refuse_unless(may_be_called_off(s, x), "illegal-transition")
    refuse_unless(s.cause != Cause.none, "not-unwinding")

    s.state_version = s.state_version + 1
    s.status[x] = Status.cancelled


@derived
def may_be_called_off(s: State, x: Element) -> object:
    """Whether a step with this status can be cancelled."""
    return (
        s.status[x] == Status.pending or s.status[x] == Status.waiting_approval or is_under_way(s.status[x])
    )


@step_commit(learn_intended)
def compensate(s: State, w: Element, x: Element, lost: bool) -> None:
    """A worker begins to undo the latest success that is left, once nothing else is under way."""
    commit_on(s, w, lost)
    refuse_unless(s.status[x] == Status.succeeded and s.undoable[x], "illegal-transition")
    refuse_unless(s.cause != Cause.none, "not-unwinding")
    refuse_unless(every(steps, lambda y: is_resolved(s, y)), "unfinished-steps")
    refuse_unless(every(steps, lambda y: is_undone_later(s, y, x)), "not-in-order")

    s.state_version = s.state_version + 1
    s.status[x] = Status.compensating


@derived
def is_resolved(s: State, x: Element) -> object:
    """Whether step `x` has come to a success or to its end."""
    return (
        s.status[x] == Status.succeeded
        or s.status[x] == Status.failed
        or s.status[x] == Status.cancelled
        or s.status[x] == Status.compensated
    )


@derived
def is_undone_later(s: State, y: Element, x: Element) -> object:
    """Whether step `y` need not be undone before step `x`: it succeeded earlier, or cannot be undone."""
    return s.status[y] != Status.succeeded or not s.undoable[y] or s.succeeded_at[y] <= s.succeeded_at[x]


@step_commit(learn_ended)
def end_compensation(s: State, w: Element, x: Element, lost: bool) -> None:
    """A worker that has the receipt of a compensation commits that the step is undone."""
    when(s.knows[w, x] == Knows.receipt)
    commit_on(s, w, lost)
    refuse_unless(s.status[x] == Status.compensating, "illegal-transition")

    s.state_version = s.state_version + 1
    s.status[x] = Status.compensated


@step_commit(learn_ended)
def hand_over_compensation(s: State, w: Element, x: Element, lost: bool) -> None:
    """A worker hands a step to a person whose compensation it cannot bring about; the unwinding stops."""
    when(s.knows[w, x] != Knows.receipt)
    commit_on(s, w, lost)
    refuse_unless(s.status[x] == Status.compensating, "illegal-transition")

    s.state_version = s.state_version + 1
    s.status[x] = Status.manual_intervention
    s.undoing[x] = True
