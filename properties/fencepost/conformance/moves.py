"""What a run of whole calls is made of: moves, which go in, and steps, which come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fencepost.conformance.adapter import Answer, Observation
from fencepost.conformance.oracle import Transition

START_MS = 1_000
LEASE_MS = 10

WAIT = "wait"
"""A move that no action of the model makes: time passes, no lease ends, and nothing may change."""

RESTART = "restart_downstream"
"""Another one: the downstream is closed and opened again, and nothing may change.

In the model it is a fault, since there the records are lost by it.
"""

LAST_MOMENT_MS = 1_000_000
"""A wait longer than any lease: it lasts until the last millisecond in which the lease is live."""


@dataclass(frozen=True, slots=True)
class Move:
    """What is done next: an action with the codes of its arguments, and the time that goes with it.

    `wait_ms` passes before the action, but never so much that a live lease ends; when the action is that the
    lease runs out, it is how long after the end the clock then stands. `lease_ms` is asked for when a lease
    is.
    """

    action: str
    arguments: tuple[int, ...] = ()
    wait_ms: int = 0
    lease_ms: int = LEASE_MS


@dataclass(frozen=True, slots=True)
class Step:
    """What came of a move.

    `told` is the whole answer as it came; `transition` is None where the model has no such state.
    `difference` is the first difference from the model, as a sentence; `broken` are the names of the claims
    that the step breaks, and `witnessed` those of the witnesses that it reaches.
    """

    move: Move
    label: str
    now_ms: int
    expected: str
    answered: str
    told: Answer | None
    observation: Observation
    transition: Transition | None = None
    difference: str = ""
    broken: tuple[str, ...] = ()
    witnessed: tuple[str, ...] = ()

    @property
    def record(self) -> tuple[Any, ...]:
        """What the implementation did: to be the same when the same moves are made again."""
        return (self.label, self.now_ms, self.answered, self.told, self.observation)
