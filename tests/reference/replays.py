"""What the tests of replay share: sources that never repeat themselves, a ledger of calls, deaths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from fencepost.reference import (
    NO_IMPLICIT_INPUTS,
    Activity,
    Command,
    History,
    ImplicitInputs,
    Recorded,
    Replay,
    ReplayedWorkflow,
    Result,
    Runtime,
    Waiting,
    run_workflow,
)


class KilledError(BaseException):
    """The process dies here: no handler of an `Exception` sees it."""


@dataclass
class Outside:
    """The world outside: each answer is a new one, and each call of an activity is written down.

    At the point whose number is `dies_at`, counted from 0, the process dies.
    """

    implicit: ImplicitInputs = NO_IMPLICIT_INPUTS
    dies_at: int | None = None
    points: int = 0
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    activities: dict[str, Activity] = field(default_factory=dict)
    ticks: Any = field(default_factory=lambda: count(1_000, 7))

    def __post_init__(self) -> None:
        self.activities.setdefault("charge", Activity(self.charge))
        self.activities.setdefault("send", Activity(self.send, idempotent=True))

    def now_ms(self) -> int:
        return next(self.ticks)

    def random(self) -> float:
        return next(self.ticks) % 100 / 100

    def new_id(self) -> str:
        return f"id-{next(self.ticks)}"

    def charge(self, **arguments: Any) -> Any:
        return self.performed("charge", arguments)

    def send(self, key: str, **arguments: Any) -> Any:
        return self.performed(key, arguments)

    def performed(self, key: str, arguments: dict[str, Any]) -> Any:
        self.point()
        self.calls.append((key, arguments))
        self.point()
        return {"number": next(self.ticks), "of": arguments}

    def point(self) -> None:
        self.points += 1
        if self.points - 1 == self.dies_at:
            raise KilledError

    def run(
        self,
        function: Callable[..., object],
        history: History,
        arguments: dict[str, Any] | None = None,
        *,
        definition: str = "v1",
    ) -> Replay:
        return run_workflow(
            ReplayedWorkflow("order", function, definition),
            Mortal(history, self),
            arguments,
            activities=self.activities,
            clock_ms=self.now_ms,
            random=self.random,
            new_id=self.new_id,
            implicit=self.implicit,
        )


@dataclass
class Mortal:
    """A history whose user may die before and after each of its operations."""

    kept: History
    outside: Outside

    @property
    def run(self) -> str:
        return self.kept.run

    def read(self) -> tuple[Recorded, ...]:
        return self.kept.read()

    def append(self, command: Command, result: Result | None) -> bool:
        self.outside.point()
        done = self.kept.append(command, result)
        self.outside.point()
        return done

    def settle(self, position: int, result: Result) -> bool:
        self.outside.point()
        done = self.kept.settle(position, result)
        self.outside.point()
        return done


def ended(outside: Outside, function: Callable[..., object], history: History, **arguments: Any) -> Any:
    """How a run ends that does not wait for long."""
    for _ in range(9):
        ending = outside.run(function, history, arguments or None).ended
        if not isinstance(ending, Waiting):
            return ending
    raise AssertionError("it still waits")


def takes_two(ctx: Runtime) -> Any:
    return [ctx.call("charge", cents=500, to="ada"), ctx.call("send", to="ada")]
