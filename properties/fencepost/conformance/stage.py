"""A world that is put back between schedules, with the handles on it that stay open.

A stage is a `Session` whose handles pass the gate. Where the adapter has `snapshot` and `restore`, one world
serves for all schedules; otherwise each schedule has a fresh one, and the moves to its start are made again.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from threading import Thread
from typing import Any, Self, TypeVar

from fencepost.checker.subject import UsageError
from fencepost.conformance.adapter import (
    Answer,
    Commit,
    Downstream,
    EffectsAdapter,
    Observation,
    Surroundings,
    Worker,
)
from fencepost.conformance.counterparts import counterpart_of
from fencepost.conformance.drivers import Held, Port
from fencepost.conformance.gate import DiedError, Gate, Task
from fencepost.conformance.moves import START_MS, Move, Step
from fencepost.conformance.oracle import Rest
from fencepost.conformance.runs import breaks
from fencepost.conformance.session import Session
from fencepost.conformance.sqlite_driver import main_word
from fencepost.conformance.vocabulary import MappingError, Names, Seen, has_downstream
from fencepost.model import FencepostError
from fencepost.model.concrete import values_of
from fencepost.model.core.state import workers
from fencepost.model.domains import Element

T = TypeVar("T")

CLOSING_S = 2.0
"""How long a world may take to close when code under test is still in it."""

WAITED_S, MOST_WAITED = 1.0, 3
"""So long and so often `observe` may wait for a lock in vain; then it is told not to."""

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
    processor: int | None = None
    """Which of the processors it keeps to; None for any of them."""
    _pool: dict[tuple[str, int, int], tuple[Worker, Port]] = field(default_factory=dict)
    _outside: dict[int, tuple[Downstream, Port]] = field(default_factory=dict)
    _incarnations: dict[str, int] = field(default_factory=dict)
    _waited: int = 0
    _nothing: tuple[Any, Any] = (None, None)
    """A fresh world: the snapshot, and what is seen of it."""
    _last: tuple[Any, Observation] | None = None
    _kept: Observation | None = None
    """What was seen last, for when a lock is in the way of looking."""
    _clean: Any = None
    _processors: set[int] | None = None

    @property
    def puts_back(self) -> bool:
        """Whether the adapter can put a world back while its handles stay open."""
        return hasattr(self.plan.adapter, "snapshot") and hasattr(self.plan.adapter, "restore")

    def __enter__(self) -> Self:
        self.gate.patience_s = getattr(self.plan.adapter, "patience_s", self.gate.patience_s)
        Session.__enter__(self)
        self._processors = _on_one_processor(self.processor)
        if self.puts_back:
            self._nothing = self._snapshot(), self._seen.observation
        return self

    def close(self) -> None:
        """Give up all handles and the world, and end the gate's threads."""
        if self.gate.abandoned and not self.gate.close():
            self._leave_world()
        else:
            self._close_world()
            self.gate.close()
        if self._processors is not None:
            os.sched_setaffinity(0, self._processors)

    def _leave_world(self) -> None:
        """Somebody is still in a call, in a thread that ends with the process: nothing is waited for."""
        closing = Thread(target=self.plan.adapter.close_world, args=(self._world,), daemon=True)
        closing.start()
        closing.join(CLOSING_S)

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
        return self._adapters("snapshot", adapter.snapshot, self._world) if self.puts_back else None

    def _adapters(self, name: str, method: Callable[..., T], *arguments: Any, locks: bool = False) -> T:
        """Call a method of the adapter's. What it throws is no fault of the checks, and is said by name.

        With `locks` another worker's lock may be in the way; that error is handed on.
        """
        try:
            return method(*arguments)
        except (FencepostError, DiedError, KeyboardInterrupt):
            raise
        except Exception as error:
            if locks and Port(self.gate, self.locks).blocks(error):
                raise
            raise UsageError(
                f"{self.plan.adapter.name}: the adapter's `{name}` failed: {type(error).__name__}: {error}"
            ) from error

    # -- handles

    def open(self, w: Element, incarnation: int) -> None:
        """A handle for a worker, in an incarnation: opened now, since its process begins with that."""
        former = self._pool.pop((w.label, incarnation, OWN), None)
        if former is not None:
            with suppress(Exception):
                former[0].close()
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
            adapter = self.plan.adapter
            handle = self._adapters(
                "open_worker", adapter.open_worker, self._world, name, incarnation, around, locks=True
            )
            found = self._pool[key] = handle, port
        return found

    def open_downstream(self) -> None:
        """The handle on the downstream that the moves to a start use."""
        if counterpart_of(self.plan.oracle.protocol).is_had_by(self.plan.adapter):
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
            handle = self._adapters(
                "open_downstream", adapter.open_downstream, self._world, around, locks=True
            )
            found = self._outside[seat] = handle, port
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
        """What is stored now. With `stamp`, an adapter spares looking again at what has not changed.

        Where a lock is in the way of looking, as that of a writer is without a write-ahead log, nothing can
        have been changed that others see, and it is as it was.
        """
        adapter: Any = self.plan.adapter
        if self._kept is not None and any(_waits_to_commit(task) for task in self.gate.tasks):
            return self.names.seen(self._kept, self.now_ms)
        began = time.monotonic()
        try:
            stamp = None
            if hasattr(adapter, "stamp"):
                stamp = self._adapters("stamp", adapter.stamp, self._world, locks=True)
            if stamp is not None and self._last is not None and self._last[0] == stamp:
                return self.names.seen(self._last[1], self.now_ms)
            observed = self._adapters("observe", adapter.observe, self._world, locks=True)
        except FencepostError:
            raise
        except Exception as error:  # a lock
            if self._kept is None:
                raise UsageError(
                    f"{adapter.name}: `observe` is kept out by a lock ({error}), and nobody is in a call"
                ) from error
            self._waited = self._waited + 1 if time.monotonic() - began >= WAITED_S else 0
            if self._waited >= MOST_WAITED:
                raise UsageError(
                    f"{adapter.name}: `observe` waits for a lock ({error}), which nobody gives up meanwhile; "
                    "let it not wait, such as with sqlite3.connect(path, timeout=0)"
                ) from error
            return self.names.seen(self._kept, self.now_ms)
        seen = self.names.seen(observed, self.now_ms)
        self._last, self._kept = (stamp, seen.observation), seen.observation
        return seen

    def _look(self) -> Seen:
        seen = self.look()
        self.names.deciding = ""
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
            self._restore(*self._nothing)
        else:
            self._close_world()
            self._world = self._adapters("fresh_world", self.plan.adapter.fresh_world)
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

    def _restore(self, snapshot: Any, seen: Observation) -> None:
        """Put the world back, and look whether it is as it was seen when the snapshot was made."""
        adapter: Any = self.plan.adapter
        stamped, clean = hasattr(adapter, "stamp"), self._clean
        if stamped and clean is not None and clean[0] is snapshot and clean[1] == self._stamp():
            return  # the last schedule changed nothing
        self._last = None
        self._adapters("restore", adapter.restore, self._world, snapshot)
        now = self._adapters("observe", adapter.observe, self._world)
        if now != seen:
            wrong = next(f.name for f in fields(seen) if getattr(seen, f.name) != getattr(now, f.name))
            raise UsageError(
                f"{adapter.name}: the adapter's `restore` did not put back the {wrong}: it was "
                f"{getattr(seen, wrong)} when `snapshot` was taken, and is {getattr(now, wrong)}"
            )
        if stamped:
            self._clean = (snapshot, self._stamp())

    def _stamp(self) -> Any:
        adapter: Any = self.plan.adapter
        return self._adapters("stamp", adapter.stamp, self._world)

    def put_back(self, ready: Ready) -> None:
        """The world, the clock and the handles as they were at a start."""
        if not self.puts_back:
            self.ready(ready.moves)
            return
        self._restore(ready.snapshot, ready.seen.observation)
        self.now_ms, self._kept = ready.now_ms, ready.seen.observation
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


def _waits_to_commit(task: Task) -> bool:
    """Whether it waits for readers before its commit, as SQLite does without a write-ahead log.

    Nobody else can have written since, and nobody can begin to read.
    """
    if task.done or task.pending is None or not hasattr(task.kept_out, "sqlite_errorcode"):
        return False
    return main_word(task.pending.text) in ("commit", "end")


def _on_one_processor(number: int | None) -> set[int] | None:
    """Keep this thread, and those that it starts, on one processor; the processors that it had before.

    Only one of them moves at a time, and waking a thread on another processor costs several times as much.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    had = os.sched_getaffinity(0)
    these = sorted(had)
    chosen = random.choice(these) if number is None else these[number % len(these)]
    os.sched_setaffinity(0, {chosen})
    return had
