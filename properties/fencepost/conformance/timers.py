"""Timers and deadlines of approvals: moments on the clock, which come when the model says so.

They are far apart, and farther than any lease lasts, so that each can come without another. The clock stands
still before one that has not come in the model.
"""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.conformance.adapter_workflow import StepSeen
from fencepost.conformance.vocabulary import Seen

APART_MS = 1_000
"""How far each lies beyond all others: the leases and waits of one run are shorter together."""


def later_ms(seen: Seen, now_ms: int) -> int:
    """A moment for a timer or a deadline that is set now."""
    return max(now_ms, *_moments(seen)) + APART_MS


def moment_of(seen: Seen, step: str) -> int:
    """The moment that a step waits for; now where it waits for none."""
    found = [
        at for each in _steps(seen) if each.step == step for at in (_waited_for(each),) if at is not None
    ]
    return found[0] if found else seen.now_ms


def comes_next(seen: Seen, step: str, *, renews: bool) -> bool:
    """Whether a step's moment is the first that is to come, and a live lease lasts or `renews` beyond it."""
    moment_ms, row = moment_of(seen, step), seen.row
    ends_before = row.live(seen.now_ms) and (row.expires_at_ms or 0) <= moment_ms
    return (renews or not ends_before) and all(moment_ms <= at for at in _ahead(seen, seen.now_ms))


def lease_ends_first(seen: Seen) -> bool:
    """Whether the lease runs out before any of these moments."""
    ends_ms = seen.row.expires_at_ms
    return ends_ms is None or all(ends_ms < at for at in _ahead(seen, seen.now_ms))


def before_all(seen: Seen, was_ms: int, now_ms: int) -> int:
    """The time, but before the next of these moments."""
    return min([now_ms, *(at - 1 for at in _ahead(seen, was_ms))])


def _ahead(seen: Seen, now_ms: int) -> Iterator[int]:
    return (at for at in _moments(seen) if at > now_ms)


def _steps(seen: Seen) -> tuple[StepSeen, ...]:
    workflow = seen.observation.workflow
    return () if workflow is None else workflow.steps


def _waited_for(step: StepSeen) -> int | None:
    return step.approval_until_ms if step.timer_at_ms is None else step.timer_at_ms


def _moments(seen: Seen) -> list[int]:
    """All that are stored, also those of steps that have gone on, and the beginning of time."""
    found = [at for step in _steps(seen) for at in (step.timer_at_ms, step.approval_until_ms)]
    return [0, *(at for at in found if at is not None)]
