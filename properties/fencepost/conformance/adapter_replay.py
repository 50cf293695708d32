"""What an adapter gives for replay (§15), in neutral words: `Capability.REPLAY`.

The checks bring the code: a program that asks for one command after another, and activities that act when
they are told to. The adapter has the implementation run that program over the history of the one run in its
world, and says by a back door what is recorded. It decides nothing and remembers nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from fencepost.conformance.adapter import Adapter, Surroundings

DRAWS = ("time", "random", "identifier")
"""What can be drawn: the time, a random number, and an identifier that nobody else has."""


@dataclass(frozen=True, slots=True)
class Made:
    """One recorded command: `what` is one of `DRAWS`, ``call``, ``send`` (which is idempotent) or ``finish``.

    `argument` is what it was made with, 0 for what is drawn; `result` is None as long as none is recorded.
    """

    what: str
    argument: int
    definition: str
    result: int | None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run over the history ended: ``finished``, ``stopped``, ``unknown`` or ``overtaken``.

    ``stopped`` is that a command is not the recorded one, ``unknown`` that an activity that is not idempotent
    was started and has no result, ``overtaken`` that somebody else recorded something first. `position`, from
    0 at the first command of the program, is where; None where the implementation does not say. Of a stop,
    `differs` is the first difference, ``command`` (its type or its name), ``arguments`` or ``definition``;
    empty where that is not said.
    """

    how: str
    position: int | None = None
    differs: str = ""


class Commands(Protocol):
    """What the implementation gives to a program: each of its commands, and the recorded answer to it."""

    def draw(self, what: str) -> int:
        """One of `DRAWS`, as a number."""
        ...

    def call(self, argument: int) -> int:
        """What the activity gives that is not idempotent."""
        ...

    def send(self, argument: int) -> int:
        """What the activity gives that is idempotent."""
        ...


Program = Callable[[Commands], int]
"""The code of a definition. What it returns is the argument of the last command, the end."""


class Outside(Protocol):
    """What is not recorded: where values come from, and what activities do. Given by the checks."""

    def draw(self) -> int:
        """The next number: it stands for the time, for chance, or for an identifier. It only ever rises."""
        ...

    def act(self, what: str, argument: int) -> int:
        """The activity, ``call`` or ``send``, with its argument. Called wherever the implementation acts."""
        ...


class Replayer(Protocol):
    """One worker's handle on the history. It is used by one thread at a time, and not always by the same."""

    def run(self, program: Program, *, definition: str, outside: Outside) -> Ended:
        """Run a program from its first line until it ends or is stopped.

        An error that is no `Exception` is the death of the worker: it is to pass through, and nothing may be
        recorded because of it.
        """
        ...

    def close(self) -> None:
        """Give up the handle, as the death of its process does. What was recorded may not be lost."""
        ...


@runtime_checkable
class ReplayAdapter(Adapter, Protocol):
    """An adapter with `Capability.REPLAY`: the history of each world is empty at first."""

    def open_replayer(self, world: Any, name: str, surroundings: Surroundings) -> Replayer:
        """A handle of its own on the world's history, as a process of that worker would have."""
        ...

    def observe_history(self, world: Any) -> tuple[Made, ...]:
        """The commands that are recorded, by their positions, read past the code under test."""
        ...
