"""What the adapter of the reference gives for replay (§15): see `OfReplay`.

That a run starts is a command of its own here, before the first one of the program, which the model does not
have. It is recorded together with that first one: until then another worker may start the run.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fencepost.conformance import adapter as a
from fencepost.conformance import adapter_replay as r
from fencepost.reference.history import Histories, open_histories
from fencepost.reference.replay import Runtime, run_workflow
from fencepost.reference.replay_values import (
    Activity,
    Command,
    CommandType,
    Differing,
    Differs,
    Ending,
    Finished,
    History,
    Overtaken,
    Recorded,
    Replay,
    ReplayedWorkflow,
    Result,
    UnknownActivity,
)
from fencepost.reference.values import StoreError

RUN, WORKFLOW = "order-1", "order"
"""The one run of each world, and its workflow."""

FRACTION = 2**32
"""A number stands for that many parts of 1 where it is a random one."""

COMMANDS = """
SELECT type, name, arguments, definition, content
FROM commands LEFT JOIN results USING (run, position)
WHERE position > 0 ORDER BY position
"""
"""What the history holds, but for the start of the run; read past `history.py`."""

Runs = Callable[..., Replay]
"""What runs a workflow: `run_workflow`, or something like it that is broken."""


class ReplayWorld(Protocol):
    """What is used of a world: the directory for the file of histories."""

    @property
    def directory(self) -> Path:
        """Where it is made."""
        ...

    @property
    def doors(self) -> dict[str, Any]:
        """Where the back door to it is kept."""
        ...


@dataclass(slots=True)
class FromTheFirstCommand:
    """A history whose start is recorded together with the first command after it."""

    inner: History
    start: tuple[Command, Result | None] | None = None

    @property
    def run(self) -> str:
        """The name of the run."""
        return self.inner.run

    def read(self) -> tuple[Recorded, ...]:
        """All that is recorded."""
        return self.inner.read()

    def append(self, command: Command, result: Result | None) -> bool:
        """Record a command; the start waits for the next one."""
        if command.type is CommandType.START:
            self.start = command, result
            return True
        if self.start is not None and not self.inner.append(*self.start):
            return False
        self.start = None
        return self.inner.append(command, result)

    def settle(self, position: int, result: Result) -> bool:
        """Record a result."""
        return self.inner.settle(position, result)


@dataclass(frozen=True, slots=True)
class RuntimeCommands:
    """The commands of a program, made by the runtime that the workflow is given."""

    runtime: Runtime

    def draw(self, what: str) -> int:
        """The time, a random number or an identifier, as the number that it was made of."""
        if what == "time":
            return self.runtime.now_ms()
        if what == "random":
            return round(self.runtime.random() * FRACTION)
        return int(self.runtime.new_id())

    def call(self, argument: int) -> int:
        """Call the activity that is not idempotent."""
        return int(self.runtime.call("call", argument=argument))

    def send(self, argument: int) -> int:
        """Call the activity that is idempotent."""
        return int(self.runtime.call("send", argument=argument))


@dataclass(frozen=True, slots=True)
class HistoryReplayer:
    """One worker's handle on the file of histories."""

    histories: Histories
    runs: Runs
    wrapped: Callable[[History], History] = field(default=lambda history: history)

    def run(self, program: r.Program, *, definition: str, outside: r.Outside) -> r.Ended:
        """Run the program as a workflow."""

        def function(runtime: Runtime) -> int:
            return program(RuntimeCommands(runtime))

        ended = self.runs(
            ReplayedWorkflow(WORKFLOW, function, definition),
            FromTheFirstCommand(self.wrapped(self.histories.of(RUN))),
            activities={
                "call": Activity(lambda argument: outside.act("call", argument)),
                "send": Activity(lambda _, argument: outside.act("send", argument), idempotent=True),
            },
            clock_ms=outside.draw,
            random=lambda: outside.draw() / FRACTION,
            new_id=lambda: str(outside.draw()),
        ).ended
        return _ended(ended)

    def close(self) -> None:
        """Close the handle."""
        self.histories.close()


class OfReplay:
    """The part of the adapter that is about replay: see `ReplayAdapter`."""

    __slots__ = ()

    def open_replayer(
        self, world: ReplayWorld, name: str, surroundings: a.Surroundings  # noqa: ARG002
    ) -> HistoryReplayer:  # fmt: skip
        """Open the file of histories once more; the first time it is made."""
        return HistoryReplayer(open_histories(_path(world), synchronous="OFF"), run_workflow)

    def observe_history(self, world: ReplayWorld) -> tuple[r.Made, ...]:
        """What the tables hold, by a connection and SQL of its own."""
        if not _path(world).exists():
            return ()
        if "histories" not in world.doors:
            world.doors["histories"] = sqlite3.connect(
                f"{_path(world).absolute().as_uri()}?mode=ro",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
            )
        with closing(world.doors["histories"].execute(COMMANDS)) as rows:
            return tuple(_made(*row) for row in rows)


def _path(world: ReplayWorld) -> Path:
    return world.directory / "histories.db"


def _made(kind: str, name: str, arguments: str, definition: str, content: str | None) -> r.Made:
    given, value = json.loads(arguments), None if content is None else json.loads(content)
    match kind:
        case "now":
            return r.Made("time", 0, definition, value)
        case "random":
            return r.Made("random", 0, definition, None if value is None else round(value * FRACTION))
        case "new-id":
            return r.Made("identifier", 0, definition, None if value is None else int(value))
        case "finish":
            return r.Made("finish", given["value"], definition, None if content is None else 0)
    return r.Made(name, given["argument"], definition, value)


def _ended(ended: Ending) -> r.Ended:
    """How a run ended, in neutral words. A difference at the start is one at the first command."""
    match ended:
        case Finished():
            return r.Ended("finished")
        case Differs():
            differs = ended.difference.what
            kind = differs.value if differs in (Differing.ARGUMENTS, Differing.DEFINITION) else "command"
            return r.Ended("stopped", max(0, ended.difference.position - 1), kind)
        case UnknownActivity():
            return r.Ended("unknown", ended.command.position - 1)
        case Overtaken():
            return r.Ended("overtaken", ended.position - 1)
    raise StoreError(f"the run ended as {ended}, which no program of the checks can bring about")
