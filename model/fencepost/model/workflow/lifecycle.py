"""The life of a step until its success or failure, and the end of the instance (§5, §9): each is a commit.

Which transition is legal is for the store to say; what is known of an effect, only the worker can say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencepost.model.core.state import CLOCK, STORE, WORKER, workers
from fencepost.model.domains import BOOLEAN, Element
from fencepost.model.language import State, derived, every, ite, refuse_unless, when
from fencepost.model.workflow.beliefs import (
    commit_on,
    is_unknown,
    known_undone,
    learn_committed,
    learn_ended,
    learn_intended,
)
from fencepost.model.workflow.state import (
    Cause,
    Knows,
    Status,
    cancel_waits,
    fingerprints,
    is_under_way,
    needs_met,
    steps,
    workflow,
)


def step_commit(
    answered: Callable[..., None], **more: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A commit that changes one step, made by a worker that may lose the answer."""
    return workflow.operation(WORKER, home=STORE, answered=answered, w=workers, x=steps, lost=BOOLEAN, **more)


@step_commit(learn_intended, fingerprint=fingerprints)
def start(s: State, w: Element, x: Element, fingerprint: Element, lost: bool) -> None:
    """A worker starts a step that needs no approval: it commits the intent, and sends nothing yet."""
    commit_on(s, w, lost)
    refuse_unless(s.status[x] == Status.pending, "illegal-transition")
    refuse_unless(s.cause == Cause.none, "unwinding")
    refuse_unless(not cancel_waits(s), "cancel-requested")
    refuse_unless(needs_met(s, x), "dependency-unmet")
    refuse_unless(not s.gated[x], "approval-needed")

    s.state_version = s.state_version + 1
    s.status[x] = Status.running
    s.intent[x] = s.intent[x] + 1
    s.fingerprint[x] = fingerprint


@step_commit(learn_intended, fingerprint=fingerprints, switch="intent_renewed")
def intend_anew(s: State, w: Element, x: Element, fingerprint: Element, lost: bool) -> None:
    """A worker that knows an effect undone gives the step another intent; approval is asked anew (§6)."""
    when(known_undone(s, w, x))
    commit_on(s, w, lost)
    refuse_unless(s.status[x] == Status.running, "illegal-transition")
    refuse_unless(s.cause == Cause.none, "unwinding")
    refuse_unless(not cancel_waits(s), "cancel-requested")

    s.state_version = s.state_version + 1
    s.status[x] = ite(s.gated[x], Status.waiting_approval, Status.running)
    s.intent[x] = s.intent[x] + 1
    s.fingerprint[x] = fingerprint
    s.late[x] = False


@step_commit(learn_ended)
def succeed(s: State, w: Element, x: Element, lost: bool) -> None:
    """A worker that has the receipt commits the step's success with it."""
    when(s.knows[w, x] == Knows.receipt)
    commit_on(s, w, lost)
    refuse_unless(is_under_way(s.status[x]), "illegal-transition")

    s.state_version = s.state_version + 1
    s.status[x] = Status.succeeded
    s.succeeded_at[x] = s.state_version


@step_commit(learn_ended)
def fail(s: State, w: Element, x: Element, lost: bool) -> None:
    """A worker that knows the effect undone commits the step's failure, and the instance unwinds (§10)."""
    when(known_undone(s, w, x))
    commit_on(s, w, lost)
    refuse_unless(is_under_way(s.status[x]), "illegal-transition")

    s.state_version = s.state_version + 1
    s.status[x] = Status.failed
    s.cause = ite(s.cause == Cause.none, Cause.failure, s.cause)


@step_commit(learn_ended)
def hand_over(s: State, w: Element, x: Element, lost: bool) -> None:
    """A worker that does not know what became of the step's effect hands the step to a person."""
    when(is_unknown(s, w, x))
    commit_on(s, w, lost)
    refuse_unless(is_under_way(s.status[x]), "illegal-transition")

    s.state_version = s.state_version + 1
    s.status[x] = Status.manual_intervention


@workflow.operation(WORKER, home=STORE, answered=learn_committed, w=workers, lost=BOOLEAN)
def finish(s: State, w: Element, lost: bool) -> None:
    """A worker commits the end of the instance: succeeded, or with a cause nothing left to unwind."""
    commit_on(s, w, lost)
    refuse_unless(not cancel_waits(s), "cancel-requested")
    refuse_unless(every(steps, lambda x: is_done(s, x)), "unfinished-steps")

    s.state_version = s.state_version + 1
    s.finished = True


@derived
def is_done(s: State, x: Element) -> object:
    """Whether the end of the instance need not wait for step `x`."""
    if s.cause == Cause.none:
        return s.status[x] == Status.succeeded
    return (
        s.status[x] == Status.failed
        or s.status[x] == Status.cancelled
        or s.status[x] == Status.compensated
        or (s.status[x] == Status.succeeded and not s.undoable[x])
    )


# Retries. What makes an error worth one is for the worker to know; here any attempt may be repeated.


@step_commit(learn_committed, switch="retries")
def schedule_retry(s: State, w: Element, x: Element, lost: bool) -> None:
    """A worker leaves a running step to a timer; its key stays what it is."""
    when(s.knows[w, x] != Knows.receipt)
    commit_on(s, w, lost)
    refuse_unless(s.status[x] == Status.running, "illegal-transition")

    s.state_version = s.state_version + 1
    s.status[x] = Status.retry_scheduled
    s.due[x] = False


@workflow.action(CLOCK, switch="retries", x=steps)
def reach_timer(s: State, x: Element) -> None:
    """The time of a step's retry has come."""
    when(s.status[x] == Status.retry_scheduled)

    s.due[x] = True


@step_commit(learn_committed, switch="retries")
def run_again(s: State, w: Element, x: Element, lost: bool) -> None:
    """A worker tries a step again whose timer is due."""
    commit_on(s, w, lost)
    refuse_unless(s.status[x] == Status.retry_scheduled, "illegal-transition")
    refuse_unless(s.cause == Cause.none, "unwinding")
    refuse_unless(s.due[x], "not-due")
    refuse_unless(not cancel_waits(s), "cancel-requested")

    s.state_version = s.state_version + 1
    s.status[x] = Status.running
    s.attempt[x] = s.attempt[x] + 1
    s.due[x] = False
