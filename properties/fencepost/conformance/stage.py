"""A world that is put back between schedules, with the handles on it that stay open.

A stage is a `Session` whose handles pass the gate. Where the adapter has `snapshot` and `restore`, one world
serves for all schedules; otherwise each schedule has a fresh one, and the moves to its start are made again.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from fencepost.conformance.adapter import (
    Answer,
    Capability,
    Commit,
    Downstream,
    EffectsAdapter,
    Observation,
    Surroundings,
    Worker,
)
from fencepost.conformance.drivers import Held, Port
from fencepost.conformance.gate import Gate
from fencepost.conformance.oracle import Rest
from fencepost.conformance.runs import breaks
from fencepost.conformance.session import START_MS, Move, Session, Step
from fencepost.conformance.vocabulary import MappingError, Names, Seen, has_downstream
from fencepost.model.concrete import values_of
from fencepost.model.core.state import workers
from fencepost.model.domains import Element

OWN, COURIER = 0, 1
"""Seats: a worker's own handle, and a connection on which a message of it is still on its way."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A start that the stage can be put back to. `strays` are the names of what broke on the way there."""

    moves: tuple[Move, ...]
    state: Rest
    now_ms: int
    seen: Seen
    snapshot: Any
    names: Any
    handles: Mapping[str, tuple[str, int]]
    strays: tuple[str, ...]
    steps: tuple[Step, ...]


@dataclass(slots=True)
class Stage(Session):
    """One world with its handles. To be closed, or used in a `with`."""

    gate: Gate = field(default_factory=Gate)
    locks: dict[int, Held] = field(default_factory=dict)
    _pool: dict[tuple[str, int, int], tuple[Worker, Port]] = field(default_factory=dict)
    _outside: dict[int, tuple[Downstream, Port]] = field(default_factory=dict)
    _incarnations: dict[str, int] = field(default_factory=dict)
    _nothing: Any = None
    _last: tuple[Any, Observation] | None = None
    _clean: Any = None
    _processors: set[int] | None = None

    @property
    def puts_back(self) -> bool:
        """Whether the adapter can put a world back while its handles stay open."""
        return hasattr(self.plan.adapter, "snapshot") and hasattr(self.plan.adapter, "restore")

    def __enter__(self) -> Self:
        Session.__enter__(self)
        self._processors = _on_one_processor()
        if self.puts_back:
            self._nothing = self._snapshot()
        return self

    def close(self) -> None:
        """Give up all handles and the world, and end the gate's threads."""
        self._close_world()
        self.gate.close()
        if self._processors is not None:
            os.sched_setaffinity(0, self._processors)

    def _close_world(self) -> None:
        opened: list[tuple[Worker | Downstream, Port]] = [*self._pool.values(), *self._outside.values()]
        for handle, port in opened:
            port.task = None
            with suppress(Exception):
                handle.close()
        self._pool.clear()
        self._outside.clear()
        self._handles.clear()
        self._incarnations.clear()
        self.locks.clear()
        self.plan.adapter.close_world(self._world)

    def _snapshot(self) -> Any:
        adapter: Any = self.plan.adapter
        return adapter.snapshot(self._world) if self.puts_back else None

    # -- handles

    def open(self, w: Element, incarnation: int) -> None:
        """A handle for a worker, in an incarnation."""
        self._incarnations[w.label] = incarnation
        self._handles[w.label] = self.seat(w.label, incarnation, OWN)[0]

    def drop(self, w: Element) -> None:
        """The worker dies. Where a world is put back the handle stays open for other schedules."""
        self._handles.pop(w.label)
        incarnation = self._incarnations.pop(w.label)
        if not self.puts_back:
            handle, _ = self._pool.pop((w.label, incarnation, OWN))
            handle.close()

    def deliver(self, commit: Commit) -> Answer:
        """A commit arrives on a connection of its own."""
        return self.seat(commit.owner.worker, commit.owner.incarnation, COURIER)[0].commit(commit)

    def seat(self, name: str, incarnation: int, seat: int) -> tuple[Worker, Port]:
        """A handle of a worker's, and the port that its statements pass."""
        key = (name, incarnation, seat)
        found = self._pool.get(key)
        if found is None:
            port = Port(self.gate, self.locks)
            around = Surroundings(clock_ms=lambda: self.now_ms, watched=port.watched)
            handle = self.plan.adapter.open_worker(self._world, name, incarnation, around)
            found = self._pool[key] = handle, port
        return found

    def open_downstream(self) -> None:
        """The handle on the downstream that the moves to a start use."""
        if Capability.EFFECTS in self.plan.adapter.capabilities:
            self._downstream = self.outside(OWN)[0]

    def outside(self, seat: int) -> tuple[Downstream, Port]:
        """A handle on the downstream, and the port that its statements pass."""
        found = self._outside.get(seat)
        adapter = self.plan.adapter
        if found is None:
            if not isinstance(adapter, EffectsAdapter):
                raise MappingError(f"{adapter.name}: there is no downstream; write what EffectsAdapter names")
            port = Port(self.gate, self.locks)
            around = Surroundings(clock_ms=lambda: self.now_ms, watched=port.watched)
            found = self._outside[seat] = adapter.open_downstream(self._world, around), port
        return found

    def bury(self, port: Port) -> None:
        """A handle's process is dead: its connections are closed as an operating system would."""
        port.kill()
        for key in [key for key, (_, theirs) in self._pool.items() if theirs is port]:
            del self._pool[key]
        for seat in [seat for seat, (_, theirs) in self._outside.items() if theirs is port]:
            del self._outside[seat]

    # -- what is stored

    @property
    def stamp(self) -> Any:
        """The adapter's stamp when it was last looked at; None where there is none."""
        return None if self._last is None else self._last[0]

    def look(self) -> Seen:
        """What is stored now. With `stamp`, an adapter spares looking again at what has not changed."""
        adapter: Any = self.plan.adapter
        stamp = adapter.stamp(self._world) if hasattr(adapter, "stamp") else None
        if stamp is not None and self._last is not None and self._last[0] == stamp:
            return self.names.seen(self._last[1], self.now_ms)
        seen = self.names.seen(adapter.observe(self._world), self.now_ms)
        self._last = (stamp, seen.observation)
        return seen

    # -- starts

    def ready(self, moves: Sequence[Move]) -> Ready:
        """Make the moves in a world that is as fresh, and keep where they lead."""
        self._renew()
        strays: list[str] = []
        played = []
        for move in moves:
            step = self.play(move)
            if step is None:
                continue
            played.append(move)
            strays += breaks(step)
        return Ready(
            tuple(played),
            self.state,
            self.now_ms,
            self.look(),
            self._snapshot(),
            self.names.kept(),
            {name: (name, inc) for name, inc in self._incarnations.items()},
            tuple(strays),
            tuple(self.steps),
        )

    def _renew(self) -> None:
        """A world as fresh, with a handle for each worker."""
        oracle = self.plan.oracle
        self.steps, self.over, self.now_ms, self.names = [], "", START_MS, Names(oracle.scope)
        if self.puts_back:
            self._restore(self._nothing)
        else:
            self._close_world()
            self._world = self.plan.adapter.fresh_world()
            self._last = None
            if has_downstream(oracle.protocol):
                self.open_downstream()
        self._handles.clear()
        self._incarnations.clear()
        self._stand(oracle.runner.initial())
        for w in values_of(workers, oracle.scope):
            if self.model.up[w]:
                self.open(w, self.model.incarnation[w])
        self._seen = self.look()

    def _restore(self, snapshot: Any) -> None:
        adapter: Any = self.plan.adapter
        stamped, clean = hasattr(adapter, "stamp"), self._clean
        if stamped and clean is not None and clean[0] is snapshot and clean[1] == adapter.stamp(self._world):
            return  # the last schedule changed nothing
        self._last = None
        adapter.restore(self._world, snapshot)
        if stamped:
            self._clean = (snapshot, adapter.stamp(self._world))

    def put_back(self, ready: Ready) -> None:
        """The world, the clock and the handles as they were at a start."""
        if not self.puts_back:
            self.ready(ready.moves)
            return
        self._restore(ready.snapshot)
        self.now_ms = ready.now_ms
        self.names.put_back(ready.names)
        self.state = ready.state
        self._handles.clear()
        self._incarnations.clear()
        for label, (name, incarnation) in ready.handles.items():
            self._incarnations[label] = incarnation
            self._handles[label] = self.seat(name, incarnation, OWN)[0]
        self._last = (
            None if not hasattr(self.plan.adapter, "stamp") else (self._clean[1], ready.seen.observation)
        )


def _on_one_processor() -> set[int] | None:
    """Keep this thread, and those that it starts, on one processor; the processors that it had before.

    Only one of them moves at a time, and waking a thread on another processor costs several times as much.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    had = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {random.choice(sorted(had))})
    return had
