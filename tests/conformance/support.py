"""What the tests of the conformance checks share: verdicts found once, and adapters that do something odd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fencepost.checker.verdicts import Verdict
from fencepost.conformance import (
    Answer,
    Capability,
    Commit,
    Conformance,
    Observation,
    Surroundings,
    Worker,
    verify,
)
from fencepost.reference import STATEMENTS, Statements
from fencepost.reference.adapter import SqliteAdapter, make_sqlite
from fencepost.reference.broken_stores import BROKEN, LYING

EXAMPLES = 25
"""Random runs where something is held. What is broken is found on the way to the goals, without any."""

STORES: Mapping[str, Statements] = {"sqlite": STATEMENTS, **BROKEN, **LYING}


@cache
def verified(name: str) -> Conformance:
    """The report on one of the stores, found once in a process."""
    return verify(make_sqlite(STORES[name], name=name), examples=EXAMPLES if name == "sqlite" else 0, seed=1)


def refuted(report: Conformance) -> dict[str, int]:
    """The names of the refuted claims, with the number of steps that are shown."""
    found = {}
    for finding in report.findings:
        if finding.verdict is Verdict.REFUTED:
            assert finding.trace is not None
            found[finding.claim.name] = len(finding.trace.steps)
    return found


@dataclass(frozen=True)
class Wrapped:
    """A worker whose answers pass through a function: (operation, answer) to answer."""

    worker: Worker
    passed: Callable[[str, Answer], Answer]

    def acquire(self, *, lease_ms: int) -> Answer:
        return self.passed("acquire", self.worker.acquire(lease_ms=lease_ms))

    def renew(self, lease_version: int, *, lease_ms: int) -> Answer:
        return self.passed("renew", self.worker.renew(lease_version, lease_ms=lease_ms))

    def release(self, lease_version: int) -> Answer:
        return self.passed("release", self.worker.release(lease_version))

    def commit(self, commit: Commit) -> Answer:
        return self.passed("commit", self.worker.commit(commit))

    def ask(self, commit_id: str) -> Answer:
        return self.passed("ask", self.worker.ask(commit_id))

    def read(self) -> Answer:
        return self.passed("read", self.worker.read())

    def close(self) -> None:
        self.worker.close()


@dataclass
class OddAdapter:
    """The SQLite store with something odd between it and the checks; counts what is asked of it."""

    inner: SqliteAdapter = field(default_factory=make_sqlite)
    passed: Callable[[str, Answer], Answer] = lambda _, answer: answer
    name: str = "odd"
    model_variant: str = ""
    deviations: Mapping[str, str] = field(default_factory=dict)
    capabilities: frozenset[Capability] = frozenset(Capability)
    asked: Counter[str] = field(default_factory=Counter)
    opened: list[tuple[int, str, int]] = field(default_factory=list)

    def fresh_world(self) -> Any:
        self.asked["fresh_world"] += 1
        return self.inner.fresh_world()

    def open_worker(self, world: Any, name: str, incarnation: int, surroundings: Surroundings) -> Worker:
        self.opened.append((self.asked["fresh_world"], name, incarnation))
        return Wrapped(self.inner.open_worker(world, name, incarnation, surroundings), self._passed)

    def _passed(self, operation: str, answer: Answer) -> Answer:
        self.asked[operation] += 1
        return self.passed(operation, answer)

    def observe(self, world: Any) -> Observation:
        return self.inner.observe(world)

    def close_world(self, world: Any) -> None:
        self.asked["close_world"] += 1
        self.inner.close_world(world)
