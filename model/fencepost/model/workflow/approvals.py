"""Approval (§11): a step waits for somebody's decision on one intent, which is spent once."""

from __future__ import annotations

from fencepost.model.core.state import CLOCK, workers
from fencepost.model.domains import Element
from fencepost.model.language import State, ite, refuse_unless, some, when
from fencepost.model.workflow.beliefs import commit_on, learn_ended, learn_intended
from fencepost.model.workflow.lifecycle import step_commit
from fencepost.model.workflow.state import (
    Cause,
    Stands,
    Status,
    Wish,
    approves,
    cancel_waits,
    fingerprints,
    is_offered,
    needs_met,
    requests,
    steps,
    workflow,
)

assert workers  # a parameter of every commit  # noqa: S101


@step_commit(learn_ended, switch="gates", fingerprint=fingerprints)
def ask_approval(s: State, w: Element, x: Element, fingerprint: Element, lost: bool) -> None:
    """A worker commits the intent for which a step waits to be approved."""
    commit_on(s, w, lost)
    refuse_unless(s.status[x] == Status.pending, "illegal-transition")
    refuse_unless(s.cause == Cause.none, "unwinding")
    refuse_unless(not cancel_waits(s), "cancel-requested")
    refuse_unless(needs_met(s, x), "dependency-unmet")

    s.state_version = s.state_version + 1
    s.status[x] = Status.waiting_approval
    s.intent[x] = s.intent[x] + 1
    s.fingerprint[x] = fingerprint


@step_commit(learn_intended, switch="gates", r=requests)
def run_approved(s: State, w: Element, x: Element, r: Element, lost: bool) -> None:
    """A worker spends an approval of the stored intent, and the step runs."""
    commit_on(s, w, lost)
    refuse_unless(approves(s, r, x), "no-such-request")
    refuse_unless(s.status[x] == Status.waiting_approval, "illegal-transition")
    refuse_unless(s.cause == Cause.none, "unwinding")
    refuse_unless(not cancel_waits(s), "cancel-requested")

    s.state_version = s.state_version + 1
    s.status[x] = Status.running
    s.stands[r] = Stands.consumed


@step_commit(learn_ended, switch="gates", r=requests)
def take_no(s: State, w: Element, x: Element, r: Element, lost: bool) -> None:
    """A worker consumes a rejection: the step is cancelled, and the instance unwinds."""
    commit_on(s, w, lost)
    refuse_unless(is_offered(s, r, Wish.reject, x), "no-such-request")
    refuse_unless(s.status[x] == Status.waiting_approval, "illegal-transition")

    s.state_version = s.state_version + 1
    s.status[x] = Status.cancelled
    s.stands[r] = Stands.consumed
    s.cause = ite(s.cause == Cause.none, Cause.cancel, s.cause)


@workflow.action(CLOCK, switch="gates", x=steps)
def reach_deadline(s: State, x: Element) -> None:
    """The deadline of a step's approval has come."""
    when(s.status[x] == Status.waiting_approval)

    s.late[x] = True


@step_commit(learn_ended, switch="gates")
def give_up_waiting(s: State, w: Element, x: Element, lost: bool) -> None:
    """A worker fails a step whose approval has not come in time; one that is recorded is honoured."""
    commit_on(s, w, lost)
    refuse_unless(s.status[x] == Status.waiting_approval, "illegal-transition")
    refuse_unless(s.late[x], "not-due")
    refuse_unless(not some(requests, lambda r: approves(s, r, x)), "approval-recorded")

    s.state_version = s.state_version + 1
    s.status[x] = Status.failed
    s.cause = ite(s.cause == Cause.none, Cause.failure, s.cause)
