"""Models written to a real file, as users write them: their lines are what errors must name."""

from __future__ import annotations

import importlib.util
import itertools
import re
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fencepost.model import Action, ModelError, Protocol, Scope
from fencepost.model.run import Rest, Runner
from fencepost.model.trace import trace_action, trace_claim

PREAMBLE = '''"""A small model, for tests."""

import functools
import operator
import random
import time
from time import monotonic

from fencepost.model import *

workers = Sort("worker")
keys = Sort("key")
versions = Counter("version")
Phase = Enumeration("Phase", "idle", "held", "down")
Answer = Enumeration("Answer", "none", "ok", "taken", "stale-version")
Lease = Record("Lease", worker=workers, version=versions)
small = Range(-1, 2)

p = Protocol("small", answers=Answer)
p.switch("crash", "a worker dies")


def variable(name, domain, first, home="store"):
    p.variable(name, domain, first, home=home, meaning=name)


variable("n", versions, 0)
variable("m", versions, 1)
variable("level", small, 0)
variable("flag", BOOLEAN, False)
variable("phase", Phase, Phase.idle)
variable("who", workers, workers.element(0))
variable("holder", Optional(workers), absent)
variable("seen", Optional(versions), absent)
variable("lease", Optional(Lease), absent)
variable("up", Family(workers, of=BOOLEAN), True)
variable("idle", Family(workers, of=BOOLEAN), True)
variable("ticks", Family(workers, of=versions), 0)
variable("at", Family(workers, of=Phase), Phase.idle)
variable("log", Family(versions, of=Optional(workers)), absent)
variable("slot", Family(small, of=BOOLEAN), False)
variable("used", Family(keys, of=BOOLEAN), False)
variable("leases", Family(keys, of=Optional(Lease)), absent)
variable("allowed", Family(workers, keys, of=BOOLEAN), False)
variable("answer", Answer, Answer.none, "network")
variable("kept", versions, 0, "worker")
variable("past", Family(versions, of=BOOLEAN), False, HISTORY)
variable("last", versions, 0, HISTORY)

SCOPE = Scope("test", {"worker": 2, "key": 2}, {"version": 2}, frozenset({"crash"}))
'''

_NUMBERS = itertools.count(1)


class Model:
    """A model in a file of its own: its names, and the line that bears a mark."""

    def __init__(self, directory: Path, text: str, preamble: str = PREAMBLE) -> None:
        whole = f"{preamble}\n\n{text}"
        self.path = directory / f"model_{next(_NUMBERS)}.py"
        self.path.write_text(whole, encoding="utf-8")
        self.names: dict[str, Any] = {"__name__": self.path.stem}
        exec(compile(whole, str(self.path), "exec"), self.names)  # noqa: S102
        self.lines = whole.splitlines()

    @property
    def protocol(self) -> Protocol:
        protocol: Protocol = self.names["p"]
        return protocol

    @property
    def scope(self) -> Scope:
        scope: Scope = self.names["SCOPE"]
        return scope

    def action(self, name: str = "act") -> Action:
        return self.protocol.actions[name]

    def marked(self, mark: str = "# <- here") -> int:
        """The number of the one line with the mark."""
        (number,) = [i for i, line in enumerate(self.lines, start=1) if mark in line]
        return number

    def runner(self, **changes: Any) -> Runner:
        return Runner(self.protocol, self.scope.but(**changes))

    def trace(self) -> None:
        """Read everything in the file symbolically: the action `act`, or else the claim."""
        if "claim" in self.names:
            trace_claim(self.protocol, self.names["claim"])
        else:
            trace_action(self.protocol, self.action())

    def run(self) -> None:
        """Run everything in the file in the first state: the action `act`, or else the claim."""
        runner = self.runner()
        first = runner.initial()
        if "claim" in self.names:
            runner.holds(self.names["claim"], first)
        else:
            list(runner.transitions(first))


def assert_names_the_line(model: Model, error: ModelError, *words: str) -> None:
    """That an error says where it is wrong, to the line, and says all of `words`."""
    assert (error.site.file, error.site.line) == (str(model.path), model.marked()), str(error)
    assert str(error).startswith(f"{model.path}:{model.marked()} in ")
    missing = [word for word in words if word not in str(error)]
    assert missing == [], str(error)


def reachable(runner: Runner, limit: int = 10_000) -> list[Rest]:
    """All states, breadth first."""
    first = runner.initial()
    seen, found = {first}, [first]
    for state in found:
        for transition in runner.transitions(state):
            if transition.state not in seen:
                seen.add(transition.state)
                found.append(transition.state)
        assert len(found) <= limit
    return found


def benchmark_lease() -> Any:
    """The module of the common benchmark model, which is no part of a package."""
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "models" / "lease.py"
    spec = importlib.util.spec_from_file_location("benchmark_lease", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Case(NamedTuple):
    """One case of a file in `cases`: name, whole text, what differs before it, and what is expected."""

    name: str
    text: str
    before: dict[str, int]
    expected: tuple[str, ...]


def cases(file: str) -> list[Case]:
    """The cases of a file in `cases`, whose head says how they are written."""
    _, *parts = (Path(__file__).parent / "cases" / file).read_text(encoding="utf-8").split("\n=== ")
    return [_case(part) for part in parts]


def _case(part: str) -> Case:
    name, *lines = part.rstrip("\n").split("\n")
    before = {}
    if lines[0].startswith("before "):
        before = {cell: int(code) for cell, _, code in (x.partition("=") for x in lines.pop(0).split()[1:])}
    text, expected = "\n".join(lines[:-1]), lines[-1].removeprefix("-> ")
    if not re.search(r"^ *@p\.(action|operation)|^def claim\(|^p\.|^declared = ", text, re.MULTILINE):
        text = '@p.action("worker")\ndef act(s):\n' + textwrap.indent(text, "    ")
    return Case(name, f"{text}\n", before, tuple(expected.split(" | ")))


def parametrize(file: str) -> pytest.MarkDecorator:
    """One test for each case of a file."""
    found = cases(file)
    return pytest.mark.parametrize("case", found, ids=[case.name for case in found])
