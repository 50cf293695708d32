"""What a worker does next with an instance (§5, §8 to §12): a plain decision on its row, its inbox and now.

Nothing here reads or writes anything. What is decided on what stood a moment ago may be refused by the store
in the commit; then the worker decides anew.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fencepost.reference.values import FINISHED, Row, StepRow, StepStatus
from fencepost.reference.values_inbox import Requested, RequestKind


class What(StrEnum):
    """The kinds of things that there are to do."""

    WAIT = "wait"
    FINISH = "finish"
    START = "start"
    """Start a step whose dependencies have succeeded."""
    ASK = "ask"
    """Ask for the approval of a step whose dependencies have succeeded."""
    APPROVED = "approved"
    """Start a step that was approved."""
    REJECTED = "rejected"
    EXPIRED = "expired"
    """Nobody decided on an approval in time."""
    SETTLE = "settle"
    """Find out about a step that an earlier owner left running."""
    AGAIN = "again"
    """The timer of a retry is due."""
    GIVE_UP = "give up"
    """Resolve a step that may not start again, because its time is over."""
    MERGE = "merge"
    """A late result of a former owner says what became of a step."""
    DECIDE = "decide"
    """An operator decided about a step."""
    RESUME = "resume"
    """An operator decided that the instance goes on."""
    UNWIND = "unwind"
    """Begin to unwind."""
    CONSUME = "consume"
    """Take note of cancels in an instance that unwinds already."""
    CANCEL_REST = "cancel rest"
    """Cancel what has not started."""
    RESOLVE = "resolve"
    """Find out about an effect before anything is compensated, or prevent it."""
    UNDO = "undo"
    """Begin the compensation of a step."""
    UNDO_AGAIN = "undo again"
    """Go on with a compensation that has begun."""


STARTS: Final = (What.START, What.ASK, What.APPROVED, What.AGAIN, What.UNDO, What.FINISH)
"""What begins something new, which those who only recover leave to a worker."""


@dataclass(frozen=True, slots=True)
class Todo:
    """What to do, with which step, for which request in the inbox, and why."""

    what: What
    step: str = ""
    request: Requested | None = None
    why: str = ""


NOT_STARTED: Final = (StepStatus.PENDING, StepStatus.WAITING_APPROVAL)
ON_THE_WAY: Final = (StepStatus.RUNNING, StepStatus.RETRY_SCHEDULED)
DEADLINE: Final = "the deadline of the instance has passed"


def next_todo(row: Row, requests: Sequence[Requested], now_ms: int, *, ignored: Collection[int] = ()) -> Todo:
    """What to do next at the store's time `now_ms`; `ignored` are requests that could not be honoured."""
    if row.status in FINISHED:
        return Todo(What.WAIT, why=row.status)
    standing = [each for each in requests if each.consumed_by is None and each.number not in ignored]
    if row.manual_cause is not None:
        return _resumed(row, standing)
    asked = _late(row, standing) or _decided(row, standing, now_ms)
    if asked is not None:
        return asked
    if row.unwinding_cause is not None:
        return _back(row, standing, now_ms)
    return _forward(row, standing, now_ms)


def cancels(requests: Sequence[Requested]) -> tuple[Requested, ...]:
    """The cancels among requests that no commit has consumed."""
    return tuple(
        each for each in requests if each.request.kind is RequestKind.CANCEL and each.consumed_by is None
    )


def _resumed(row: Row, standing: Sequence[Requested]) -> Todo:
    for each in reversed(standing):
        if each.request.kind is RequestKind.OPERATOR_DECISION and each.request.step is None:
            return Todo(What.RESUME, request=each)
    return Todo(What.WAIT, why=f"a person: {row.manual_cause}")


def _late(row: Row, standing: Sequence[Requested]) -> Todo | None:
    """A late result under the stored key and fingerprint of a step that is still open."""
    for step in row.steps:
        if step.status not in ON_THE_WAY:
            continue
        for each in standing:
            if _is_result_of(step, each) and step.receipt in (None, each.request.receipt):
                return Todo(What.MERGE, step.step, each)
    return None


def _decided(row: Row, standing: Sequence[Requested], now_ms: int) -> Todo | None:
    """A decision about a step that waits for a person: the newest that can be honoured."""
    for step in row.steps:
        if step.status is not StepStatus.MANUAL_INTERVENTION:
            continue
        happened = step.receipt is not None or any(_is_result_of(step, each) for each in standing)
        for each in reversed(standing):
            asked = each.request
            if asked.kind is RequestKind.OPERATOR_DECISION and asked.step == step.step and asked.decision:
                to = StepStatus(asked.decision)
                if _can_become(row, step, to, now_ms, happened=happened) and not (
                    to is StepStatus.RUNNING and cancels(standing)
                ):
                    return Todo(What.DECIDE, step.step, each)
    return None


def _is_result_of(step: StepRow, each: Requested) -> bool:
    """Whether a request is a late result under the stored key and fingerprint of a step."""
    asked = each.request
    if asked.kind is not RequestKind.LATE_RESULT or asked.step != step.step or step.intent is None:
        return False
    return (asked.key, asked.fingerprint) == (step.intent.key, step.intent.fingerprint)


def _can_become(row: Row, step: StepRow, to: StepStatus, now_ms: int, *, happened: bool) -> bool:
    compensating = step.from_status is StepStatus.COMPENSATING
    if compensating or to is StepStatus.COMPENSATED:
        return compensating and to is StepStatus.COMPENSATED
    if to is StepStatus.RUNNING:
        in_time = not _passed(step.deadline_at_ms, now_ms) and not _passed(row.deadline_at_ms, now_ms)
        return in_time and row.unwinding_cause is None and step.receipt is None and step.unwinding is None
    return to is StepStatus.SUCCEEDED or not happened


def _forward(row: Row, standing: Sequence[Requested], now_ms: int) -> Todo:
    """While the instance runs: end what cannot go on, settle what is open, then start what may start."""
    cause = _cause(row, standing, now_ms)
    if cause:
        return Todo(What.UNWIND, why=cause)
    for step in row.steps:
        over = _passed(step.deadline_at_ms, now_ms)
        if step.status is StepStatus.RUNNING:
            return Todo(
                What.GIVE_UP if over and step.intent else What.SETTLE, step.step, why="deadline-passed"
            )
        if step.status is StepStatus.RETRY_SCHEDULED and over:
            return Todo(What.GIVE_UP, step.step, why="deadline-passed")
    succeeded = {step.step for step in row.steps if step.status is StepStatus.SUCCEEDED}
    for step in row.steps:
        todo = _startable(step, succeeded, standing, now_ms)
        if todo is not None:
            return todo
    if len(succeeded) == len(row.steps):
        return Todo(What.FINISH)
    return Todo(What.WAIT, why=waits_for(row))


def _startable(
    step: StepRow, succeeded: Collection[str], standing: Sequence[Requested], now_ms: int
) -> Todo | None:
    if step.status is StepStatus.RETRY_SCHEDULED and _passed(step.timer_at_ms, now_ms):
        return Todo(What.AGAIN, step.step)
    if step.status is StepStatus.WAITING_APPROVAL:
        return _at_the_gate(step, standing, now_ms)
    if step.status is StepStatus.PENDING and all(needed in succeeded for needed in step.depends_on):
        return Todo(What.ASK if step.needs_approval else What.START, step.step)
    return None


def _at_the_gate(step: StepRow, standing: Sequence[Requested], now_ms: int) -> Todo | None:
    """A decision recorded in time is honoured however late it is read (§11)."""
    about = [
        each
        for each in standing
        if each.request.kind is RequestKind.APPROVAL_DECISION and each.request.step == step.step
    ]
    for each in about:
        asked = each.request
        if (asked.fingerprint, asked.intent_version) == (step.approval_fingerprint, step.asked_version):
            approved = asked.decision == "approved"
            return Todo(What.APPROVED if approved else What.REJECTED, step.step, each)
    if _passed(step.approval_deadline_at_ms, now_ms):
        why = f"{step.step}: nobody decided in time"
        # A decision on something else stands in the way of failing the step, but decides nothing.
        return Todo(What.UNWIND if about else What.EXPIRED, step.step, why=why)
    return None


def _cause(row: Row, standing: Sequence[Requested], now_ms: int) -> str:
    """Why the instance has to unwind, if it has to."""
    for each in cancels(standing):
        why = f": {each.request.reason}" if each.request.reason else ""
        return f"cancelled by {each.request.requester}{why}"
    for step in row.steps:
        if step.status in (StepStatus.FAILED, StepStatus.CANCELLED):
            return f"{step.step}: {step.reason or step.status}"
    if _passed(row.deadline_at_ms, now_ms) and any(s.status in NOT_STARTED + ON_THE_WAY for s in row.steps):
        return DEADLINE
    for step in row.steps:
        if step.status in NOT_STARTED and _passed(step.deadline_at_ms, now_ms):
            return f"{step.step}: its deadline has passed"
    return ""


def _back(row: Row, standing: Sequence[Requested], now_ms: int) -> Todo:
    """While the instance unwinds: nothing starts, what is open is resolved, then the last success first."""
    if cancels(standing):
        return Todo(What.CONSUME)
    if any(step.status in NOT_STARTED for step in row.steps):
        return Todo(What.CANCEL_REST)
    for step in row.steps:
        if step.status in ON_THE_WAY:
            return Todo(What.RESOLVE, step.step)
    for step in row.steps:
        if step.status is StepStatus.COMPENSATING and (
            step.timer_at_ms is None or _passed(step.timer_at_ms, now_ms)
        ):
            return Todo(What.UNDO_AGAIN, step.step)
    if any(step.status in (StepStatus.COMPENSATING, StepStatus.MANUAL_INTERVENTION) for step in row.steps):
        return Todo(What.WAIT, why=waits_for(row))
    undoable = [
        s for s in row.steps if s.status is StepStatus.SUCCEEDED and s.intent and s.intent.compensation
    ]
    if undoable:
        return Todo(What.UNDO, max(undoable, key=lambda step: step.succeeded_at_version or 0).step)
    return Todo(What.FINISH)


def waits_for(row: Row) -> str:
    """In words, what an instance waits for that is not finished; empty if a worker could go on."""
    if row.manual_cause is not None:
        return f"a person: {row.manual_cause}"
    waits = []
    for step in row.steps:
        match step.status:
            case StepStatus.WAITING_APPROVAL:
                waits.append(f"approval of {step.step}")
            case StepStatus.MANUAL_INTERVENTION:
                waits.append(f"a person: {step.step}: {step.reason}")
            case StepStatus.RETRY_SCHEDULED | StepStatus.COMPENSATING if step.timer_at_ms is not None:
                waits.append(f"the timer of {step.step} at {step.timer_at_ms} ms")
            case _:
                pass
    return "; ".join(waits)


def _passed(at_ms: int | None, now_ms: int) -> bool:
    return at_ms is not None and at_ms <= now_ms
