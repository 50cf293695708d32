"""Runners of replays (§15), the right one and some that are broken in one line, and a history that is."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import cache
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from fencepost.conformance import EVERYTHING, Capability, Conformance, Surroundings, verify
from fencepost.conformance.subjects import subject_of
from fencepost.reference import replay, replay_report
from fencepost.reference.adapter import SqliteAdapter
from fencepost.reference.adapter_replay import HistoryReplayer, Runs
from fencepost.reference.keys import canonical_json, fingerprint
from fencepost.reference.replay_values import Command, CommandType, Difference, Recorded, Result

REPLAY = frozenset(EVERYTHING | {Capability.REPLAY})


def _with_lines(module: ModuleType, lines: Mapping[str, str], **others: Any) -> ModuleType:
    """A copy of a module with some of its lines replaced, each of which is there once."""
    text = Path(str(module.__file__)).read_text()
    for old, new in lines.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    name = f"{module.__name__}_{abs(hash(text))}"
    made = module_from_spec(spec_from_loader(name, None))  # type: ignore[arg-type]
    sys.modules[name] = made  # where dataclasses look for it
    exec(compile(text, f"{module.__file__} (changed)", "exec"), vars(made))  # noqa: S102
    vars(made).update(others)
    return made


def _runs(lines: Mapping[str, str], **others: Any) -> Runs:
    found: Runs = _with_lines(replay, lines, **others).run_workflow
    return found


def _comparing(lines: Mapping[str, str]) -> Runs:
    """A runner that compares commands otherwise."""
    return _runs({}, difference=_with_lines(replay_report, lines).difference)


def _told_of_the_next(run: str, history: tuple[Recorded, ...], now: Command) -> Difference | None:
    """A report that names the position after the right one."""
    found = replay_report.difference(run, history, now)
    if found is None:
        return None
    return replace(found, recorded=replace(found.recorded, position=found.recorded.position + 1))


def _unnamed(
    position: int, kind: CommandType, name: str, arguments: dict[str, Any], *, definition: str
) -> Command:
    """A command whose fingerprint is that of its arguments alone."""
    hashed = fingerprint("command", "arguments", 1, arguments)
    return Command(position, kind, name, canonical_json(arguments), hashed, definition)


_SERVED = """        recorded = self.find(now)
        if recorded is not None and recorded.result is not None:
            return self.served_from(recorded.result)
        with self.apart_from_the_workflow():
"""
_AT_ONCE = f"{_SERVED}            result = Result(Outcome.VALUE, canonical_json(make()))\n"
_CALL = f"{_SERVED}            activity = self.activity(now.name)\n"
_DRAWN_ANEW = """            self.position += 1
            self.served += 1
            return json.loads(canonical_json(make()))
"""
_ANEW = "return self.served_from(recorded.result)"
_UNKNOWN = "if recorded is not None and not activity.idempotent:"
_STARTED = "if recorded is None and not self.history.append(now, None):"
_SETTLED = "if not self.history.settle(now.position, result):"
_APPENDED = "if not self.history.append(now, result):"

RUNNERS: Mapping[str, Callable[[], Runs]] = {
    "type-not-compared": lambda: _runs({}, command=_unnamed, difference=_with_lines(
        replay_report,
        {"if recorded.type != now.type:": "if False:", "if recorded.name != now.name:": "if False:"},
    ).difference),
    "name-not-compared": lambda: _runs({}, command=_unnamed, difference=_with_lines(
        replay_report, {"if recorded.name != now.name:": "if False:"},
    ).difference),
    "name-taken-for-arguments": lambda: _comparing({"if recorded.name != now.name:": "if False:"}),
    "arguments-not-compared": lambda: _comparing(
        {"if recorded.fingerprint != now.fingerprint:": "if False:"}
    ),
    "definition-not-compared": lambda: _comparing(
        {"return Differing.DEFINITION if recorded.definition != now.definition else None": "return None"}
    ),
    "stops-at-what-is-the-same": lambda: _comparing(
        {
            "return Differing.DEFINITION if recorded.definition != now.definition else None": (
                "return Differing.NAME if now.name == 'send' else None"
            )
        }
    ),
    "tells-of-another-position": lambda: _runs({}, difference=_told_of_the_next),
    "recorded-draw-not-used": lambda: _runs(
        {_AT_ONCE: _AT_ONCE.replace(f"            {_ANEW}\n", _DRAWN_ANEW)}
    ),
    "activity-asked-again": lambda: _runs({
        _CALL: _CALL.replace(f"            {_ANEW}\n", "            pass\n"),
        _UNKNOWN: f"{_UNKNOWN[:-1]} and recorded.result is None:",
        _SETTLED: "if recorded is not None and recorded.result is not None:\n"
                  "                pass\n"
                  f"            elif {_SETTLED[3:]}",
    }),
    "unknown-activity-called-again": lambda: _runs({_UNKNOWN: "if False:"}),
    "start-not-recorded": lambda: _runs({
        _STARTED: "if False:",
        _SETTLED: "if not self.history.append(now, result):",
    }),
    "result-before-it-acts": lambda: _runs({
        _STARTED: "if recorded is None and not self.history.append(now, Result(Outcome.VALUE, '0')):",
        _SETTLED: "if False:",
    }),
    "overtaken-by-a-command": lambda: _runs({_APPENDED: f"{_APPENDED[:-1]} and now.position == 0:"}),
    "overtaken-by-a-result": lambda: _runs({_SETTLED: f"{_SETTLED[:-1]} and False:"}),
}  # fmt: skip
"""Broken runners, each under what is wrong with it."""


class Overwrites:
    """A history that takes every result, and puts it in the place of what is there."""

    def __init__(self, inner: Any, path: Path) -> None:
        self.inner, self.path, self.run = inner, path, inner.run

    def read(self) -> tuple[Recorded, ...]:
        found: tuple[Recorded, ...] = self.inner.read()
        return found

    def append(self, command: Command, result: Result | None) -> bool:
        return bool(self.inner.append(command, result))

    def settle(self, position: int, result: Result) -> bool:
        if not self.inner.settle(position, result):
            with closing(sqlite3.connect(self.path)) as connection, connection:
                connection.execute("drop trigger if exists results_update_never")
                connection.execute(
                    "update results set content = ? where position = ?", (result.content, position)
                )
        return True


class OddReplayer(SqliteAdapter):
    """The reference's histories with another runner, or with what a handle's history is wrapped in."""

    def __init__(self, name: str, runs: Runs, wrapped: Callable[[Any, Path], Any] = lambda h, _: h) -> None:
        super().__init__(name=name, capabilities=REPLAY)
        object.__setattr__(self, "odd", (runs, wrapped))

    def open_replayer(self, world: Any, name: str, surroundings: Surroundings) -> Any:
        runs, wrapped = vars(self)["odd"]
        made = super().open_replayer(world, name, surroundings)
        path = world.directory / "histories.db"
        return HistoryReplayer(made.histories, runs, lambda history: wrapped(history, path))


def odd(name: str) -> SqliteAdapter:
    """One of the adapters; the right one without a name."""
    if not name:
        return SqliteAdapter(capabilities=REPLAY)
    if name == "result-replaced":
        return OddReplayer(name, replay.run_workflow, Overwrites)
    return OddReplayer(name, RUNNERS[name]())


@cache
def verified_replay(name: str = "", examples: int = 0) -> Conformance:
    """The report on one of the adapters, the right one without a name; found once in a process."""
    return verify(odd(name), subject=subject_of("replay"), examples=examples, seed=1)
