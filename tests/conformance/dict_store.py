"""A store in a dictionary, for the checks of single statements: right with its lock, wrong without."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from fencepost.conformance import (
    EVERYTHING,
    Answer,
    Capability,
    Commit,
    Entry,
    Observation,
    Ok,
    Owner,
    Refused,
    Row,
    Surroundings,
)


@dataclass
class DictWorld:
    stored: dict[str, Any] = field(
        default_factory=lambda: {
            "owner": None, "lease": 0, "ends": None, "state": 0, "finished": False, "log": (),
        }
    )  # fmt: skip
    locks: tuple[Any, Any] = field(default_factory=lambda: (threading.RLock(), threading.RLock()))


def row_of(stored: Mapping[str, Any]) -> Row:
    return Row(stored["owner"], stored["lease"], stored["ends"], stored["state"], stored["finished"])


class DictWorker:
    """Reads all in one step, decides, and writes in one step: right only if nobody comes between."""

    def __init__(self, adapter: DictAdapter, world: DictWorld, owner: Owner, around: Surroundings) -> None:
        self.adapter, self.owner, self.clock_ms = adapter, owner, around.clock_ms
        self.stored = around.watched(world.stored)
        self.locks = [around.watched(lock) for lock in world.locks]

    def _locked(self, *, backwards: bool = False) -> Any:
        if self.adapter.locking == "none":
            return nullcontext()
        if self.adapter.locking == "two":
            return Both(self.locks[::-1] if backwards else self.locks)
        return self.locks[0]

    def _read(self) -> dict[str, Any]:
        return dict(self.stored.items())

    def _write(self, **changed: Any) -> Ok:
        self.stored.update(changed)
        return Ok()

    def acquire(self, *, lease_ms: int) -> Answer:
        with self._locked():
            row = row_of(self._read())
            if row.finished:
                return Refused("finished")
            if row.live(self.clock_ms()):
                return Refused("lease-live")
            ends = self.clock_ms() + lease_ms
            if self.adapter.in_two_writes:
                self.stored["lease"] = row.lease_version + 1
            self._write(owner=self.owner, lease=row.lease_version + 1, ends=ends)
            return Ok(row=Row(self.owner, row.lease_version + 1, ends, row.state_version, row.finished))

    def _holds(self, row: Row, lease: int, owner: Owner) -> str:
        if row.lease_version != lease:
            return "stale-lease-version"
        return "" if row.owner == owner else "not-the-owner"

    def renew(self, lease_version: int, *, lease_ms: int) -> Answer:
        with self._locked(backwards=True):
            row = row_of(self._read())
            code = self._holds(row, lease_version, self.owner)
            code = code or ("" if row.live(self.clock_ms()) else "lease-expired")
            return (
                Refused(code)
                if code
                else self._write(ends=max(row.expires_at_ms or 0, self.clock_ms() + lease_ms))
            )

    def release(self, lease_version: int) -> Answer:
        with self._locked():
            code = self._holds(row_of(self._read()), lease_version, self.owner)
            return Refused(code) if code else self._write(ends=None)

    def commit(self, commit: Commit) -> Answer:
        with self._locked():
            stored = self._read()
            found = [e for e in stored["log"] if e.commit_id == commit.commit_id]
            if found:
                return Ok(entry=found[0])
            row = row_of(stored)
            code = self._holds(row, commit.lease_version, commit.owner)
            code = code or ("finished" if row.finished else "")
            code = code or ("" if row.live(self.clock_ms()) else "lease-expired")
            code = code or ("" if row.state_version == commit.state_version else "stale-state-version")
            if code:
                return Refused(code)
            entry = Entry(commit.commit_id, row.state_version + 1, commit.lease_version, commit.owner)
            self._write(state=entry.state_version, finished=commit.finishes, log=(*stored["log"], entry))
            return Ok(entry=entry)

    def ask(self, commit_id: str) -> Answer:
        with self._locked():
            stored = self._read()
        found = [e for e in stored["log"] if e.commit_id == commit_id]
        return Ok(row=row_of(stored), entry=found[0] if found else None)

    def read(self) -> Answer:
        with self._locked():
            return Ok(row=row_of(self._read()))

    def close(self) -> None:
        pass


class Both:
    def __init__(self, locks: list[Any]) -> None:
        self.locks = locks

    def __enter__(self) -> None:
        for lock in self.locks:
            lock.acquire()

    def __exit__(self, *error: object) -> None:
        for lock in reversed(self.locks):
            lock.release()


@dataclass
class DictAdapter:
    """`locking` is "one", "two" (renewals take them the other way round) or "none"."""

    name: str = "dictionary"
    locking: str = "one"
    in_two_writes: bool = False
    model_variant: str = ""
    deviations: Mapping[str, str] = field(default_factory=dict)
    capabilities: frozenset[Capability] = EVERYTHING - {
        Capability.VERSIONS,
        *(c for c in Capability if c.value == "effects"),
    }
    passed: Callable[[DictWorker], Any] = lambda worker: worker
    opened: Any = field(default_factory=count)

    def fresh_world(self) -> DictWorld:
        return DictWorld()

    def open_worker(self, world: DictWorld, name: str, incarnation: int, surroundings: Surroundings) -> Any:
        next(self.opened)
        return self.passed(DictWorker(self, world, Owner(name, incarnation), surroundings))

    def observe(self, world: DictWorld) -> Observation:
        return Observation(row_of(world.stored), world.stored["log"])

    def close_world(self, world: DictWorld) -> None:
        pass


@dataclass
class RewindingDictAdapter(DictAdapter):
    """The same, put back between schedules."""

    def snapshot(self, world: DictWorld) -> dict[str, Any]:
        return copy.copy(world.stored)

    def restore(self, world: DictWorld, snapshot: dict[str, Any]) -> None:
        world.stored.clear()
        world.stored.update(snapshot)
