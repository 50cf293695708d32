"""Breadth-first search of a ground model in machine code: every state once, level by level, the same way each time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fencepost.checker.native.codegen import CommandCode, JobLayout, Watch, check_function, entry_words
from fencepost.checker.native.layout import Layout, layout_of
from fencepost.checker.native.machine import Machine
from fencepost.checker.native.memory import Block, physical_bytes
from fencepost.checker.native.result import Hit, HitKind, SearchResult
from fencepost.checker.native.skeleton import BLOCK_STATES, skeleton
from fencepost.checker.native.table import BUCKET_BYTES, BUCKET_SLOTS
from fencepost.model import terms as t
from fencepost.model.ground import GroundModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

INDEX_LIMIT = (1 << 32) - 2
"""Parent links and table slots hold 32 bits: more states than this are refused."""

FULLEST = 0.8
"""Share of slots in use at which the table grows: with buckets of eight, few overflow below it."""

GROWTH = (1.5, 1.25, 1.1)
"""By which factor the table grows: the first that fits into the memory allowed."""

MEMORY_SHARE = 0.9
"""Share of the machine's memory that a search may use when it is not told how much."""

CHUNK_SECONDS = 0.03
"""Aim for one call of native code; between calls come interrupts, the budget and progress."""

PROGRESS_SECONDS = 0.1
INTERNAL = "a written value fits its field"

Stop = Literal["first", "all", "never"]


@dataclass(frozen=True, slots=True)
class StateClaim:
    """A term over cells that must hold in every state."""

    name: str
    term: t.Term


@dataclass(frozen=True, slots=True)
class StepClaim:
    """One term per command, over the cells before the step, that must hold on every transition."""

    name: str
    terms: tuple[t.Term, ...]


@dataclass(frozen=True, slots=True)
class Seek:
    """Something to find: a term over one state, or one per command over the cells before the step."""

    name: str
    terms: t.Term | tuple[t.Term, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is: states found and expanded, the level it expands, seconds since its start."""

    states: int
    expanded: int
    depth: int
    seconds: float

    def __str__(self) -> str:
        rate = self.states / self.seconds if self.seconds else 0.0
        return f"{self.states:,} states, depth {self.depth}, {self.seconds:.1f} s, {rate:,.0f} states/s"


def explore(
    model: GroundModel,
    *,
    claims: Sequence[StateClaim | StepClaim] = (),
    seeks: Sequence[Seek] = (),
    budget_s: float | None = None,
    max_states: int | None = None,
    memory_mb: int | None = None,
    stop: Stop = "all",
    on_progress: Callable[[Progress], None] | None = None,
    threads: int = 1,
    initial_slots: int = 1 << 15,
) -> SearchResult:
    """Search `model` breadth-first from its initial state, checking `claims` and looking for `seeks`.

    `stop` says when to end before everything is searched: ``first``, after the level in which a claim was violated or a
    fault happened; ``all``, after the level in which the last of all claims and seeks was hit; ``never``. `budget_s`
    counts seconds from the call on, compiling included. With `max_states` the search ends after the block of states
    that reaches that number. `memory_mb` (2**20 bytes) limits table, states and parent links together; without it nine
    tenths of the machine's memory do. More than one of `threads` is accepted and one is used. `initial_slots` is the
    size of the table at the start.

    Raises ValueError for names that occur twice, terms that do not match the commands or a number that makes no sense,
    ModelError for a model whose numbers need more than 62 bits.
    """
    started = time.perf_counter()
    if threads < 1 or stop not in ("first", "all", "never"):
        raise ValueError(f"threads={threads}, stop={stop!r}: use at least one thread; stop at first, all or never")
    watched = _watched(model, claims, seeks)
    search = _Search(model, watched, claims=len(claims), stop=stop, initial_slots=initial_slots)
    allowed = memory_mb << 20 if memory_mb is not None else int((physical_bytes() or 1 << 62) * MEMORY_SHARE)
    limits = _Limits(None if budget_s is None else started + budget_s, max_states, allowed)
    return search.run(limits, on_progress, compile_seconds=time.perf_counter() - started)


def _watched(model: GroundModel, claims: Sequence[StateClaim | StepClaim], seeks: Sequence[Seek]) -> list[Watch]:
    watched: list[Watch] = []
    for slot, item in enumerate([*claims, *seeks]):
        terms = item.term if isinstance(item, StateClaim) else item.terms
        state, steps = (terms, None) if isinstance(terms, t.Term) else (None, terms)
        if steps is not None and len(steps) != len(model.commands):
            raise ValueError(f"{item.name} has {len(steps)} terms for {len(model.commands)} commands")
        watched.append(Watch(item.name, slot, isinstance(item, Seek), state, steps))
    names = [watch.name for watch in watched]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"claims or seeks share the name {', '.join(twice)}; give each its own")
    return watched


@dataclass(frozen=True, slots=True)
class _Limits:
    deadline: float | None
    max_states: int | None
    memory_bytes: int


class _Search:
    """One search: its code, its memory, and the loop over levels."""

    def __init__(
        self, model: GroundModel, watched: list[Watch], *, claims: int, stop: Stop, initial_slots: int
    ) -> None:
        import numpy as np

        self.model = model
        self.watched = watched
        self.claims = claims
        self.stop = stop
        self.layout = layout_of(model.cells)
        faults = [i for i, command in enumerate(model.commands) if command.outcome == "fault"]
        self.fault_slots = {command: len(watched) + i for i, command in enumerate(faults)}
        self.internal_slot = len(watched) + len(faults)
        self.places = JobLayout(len(model.commands), self.internal_slot + 1)
        self.most = max(1, sum(command.moves for command in model.commands))
        self.machine = Machine(self._text())
        self.expand = self.machine.function("expand", c_int64, c_void_p, c_int64, c_int64)
        self.rehash = self.machine.function("rehash", None, c_void_p, c_void_p, c_int64, c_void_p)
        self.job: NDArray[np.int64] = np.zeros(self.places.size, np.int64)
        self.job[self.places.found :] = -1
        self.state_bytes = 8 * self.layout.words
        self.buffer = Block(BLOCK_STATES * self.most * 8 * entry_words(self.layout))
        self.buckets = max(1, initial_slots // BUCKET_SLOTS)
        while self._limit(self.buckets) < BLOCK_STATES * self.most + 1:
            self.buckets += self.buckets // 2 + 1
        self.table = Block(self.buckets * BUCKET_BYTES)
        self.states = Block(self._limit(self.buckets) * self.state_bytes)
        self.parents = Block(self._limit(self.buckets) * 4)
        self.peak_bytes = 0

    def _text(self) -> str:
        code = CommandCode(
            self.layout,
            self.places,
            self.model.commands,
            watches=self.watched,
            fault_slots=self.fault_slots,
            internal_slot=self.internal_slot,
        )
        functions = code.functions()
        check = check_function(self.layout, self.watched)
        loop = skeleton(
            self.layout, self.places, steps=len(functions), check=check is not None, most=self.most
        )
        return "\n".join([*functions, *([check] if check else []), loop])

    # -- memory

    def _limit(self, buckets: int) -> int:
        """How many states a table of so many buckets may hold."""
        return min(int(buckets * BUCKET_SLOTS * FULLEST), INDEX_LIMIT)

    def _point(self) -> None:
        """Tell the native code where everything is."""
        job, places = self.job, self.places
        job[places.STATES], job[places.PARENTS] = self.states.address, self.parents.address
        job[places.TABLE], job[places.BUCKETS] = self.table.address, self.buckets
        job[places.BUFFER], job[places.LIMIT] = self.buffer.address, self._limit(self.buckets)

    def _used_bytes(self, states: int, table_bytes: int) -> int:
        return table_bytes + states * (self.state_bytes + 4) + self.buffer.size_bytes

    def _grow(self, memory_bytes: int) -> str | None:
        """Enlarge table and arrays; or say why not."""
        count = int(self.job[self.places.COUNT])
        needed = count + BLOCK_STATES * self.most
        if needed > INDEX_LIMIT:
            return "index"
        for factor in GROWTH:
            buckets = int(self.buckets * factor) + 1
            if self._limit(buckets) < needed:
                buckets = int(needed / FULLEST / BUCKET_SLOTS) + 2
            both = self.table.size_bytes + buckets * BUCKET_BYTES
            if self._used_bytes(self._limit(buckets), both) > memory_bytes:
                continue
            try:
                self.states.grow(self._limit(buckets) * self.state_bytes)
                self.parents.grow(self._limit(buckets) * 4)
                table = Block(buckets * BUCKET_BYTES)
            except (MemoryError, OSError):
                continue
            self.peak_bytes = max(self.peak_bytes, self._used_bytes(count, both))
            old, old_buckets = self.table, self.buckets
            self.table, self.buckets = table, buckets
            self._point()
            fills = Block(buckets)
            self.rehash(self.job.ctypes.data, old.address, old_buckets, fills.address)
            fills.free()
            old.free()
            return None
        return "memory"

    # -- levels

    def run(
        self, limits: _Limits, on_progress: Callable[[Progress], None] | None, *, compile_seconds: float
    ) -> SearchResult:
        """Search until everything is found or something ends it."""
        started = time.perf_counter()
        self._seed()
        level_starts, chunk = [0], 16 * BLOCK_STATES
        next_report = started + PROGRESS_SECONDS
        first, last = 0, 1
        why: str | None = None
        while first < last and why is None:
            at = first
            while at < last and why is None:
                before = time.perf_counter()
                end = min(at + chunk, last)
                reached = self.expand(self.job.ctypes.data, at, end)
                now = time.perf_counter()
                if reached < end:
                    why = self._why(limits, now) or self._grow(limits.memory_bytes)
                else:
                    why = self._why(limits, now)
                    if end - at == chunk:
                        chunk = _next_chunk(chunk, now - before)
                at = reached
                if on_progress is not None and now >= next_report:
                    next_report = now + PROGRESS_SECONDS
                    on_progress(Progress(self._count(), at, len(level_starts), now - started))
            if at < last:
                break
            first, last = last, self._count()
            if first < last:
                level_starts.append(first)
                why = why or self._satisfied()
        complete = first >= last and (why is None or why != "internal")
        return self._result(
            level_starts, None if complete else why, seconds=time.perf_counter() - started, compiling=compile_seconds
        )

    def _seed(self) -> None:
        words = self.layout.pack(self.model.initial)
        with self.states.view(self.state_bytes) as start:
            start[:] = b"".join(word.to_bytes(8, "little") for word in words)
        self.job[self.places.COUNT] = 1
        self._point()
        self.peak_bytes = self._used_bytes(1, self.table.size_bytes)
        self.machine.function("seed", None, c_void_p)(self.job.ctypes.data)

    def _count(self) -> int:
        return int(self.job[self.places.COUNT])

    def _found(self, slot: int) -> tuple[int, int] | None:
        """State and command of a hit."""
        start = self.places.found + 2 * slot
        state, command = int(self.job[start]), int(self.job[start + 1])
        return (state, command) if state >= 0 else None

    def _why(self, limits: _Limits, now: float) -> str | None:
        """Why to stop in the middle of a level."""
        if self._found(self.internal_slot):
            return "internal"
        if limits.deadline is not None and now > limits.deadline:
            return "time"
        if limits.max_states is not None and self._count() >= limits.max_states:
            return "states"
        return None

    def _satisfied(self) -> str | None:
        """Whether what was found by the end of a level is enough."""
        found = [self._found(watch.slot) is not None for watch in self.watched]
        if self.stop == "first":
            faults = any(self._found(slot) for slot in self.fault_slots.values())
            return "stopped" if faults or any(found[: self.claims]) else None
        return "stopped" if self.stop == "all" and found and all(found) else None

    # -- results

    def _result(
        self, level_starts: list[int], why: str | None, *, seconds: float, compiling: float
    ) -> SearchResult:
        import numpy as np

        count, places, job = self._count(), self.places, self.job
        used = self._used_bytes(count, self.table.size_bytes)
        taken = tuple(int(n) for n in job[places.taken : places.taken + places.commands])
        cuts = {i: int(n) for i, n in enumerate(job[places.cut : places.cut + places.commands]) if n}
        self.table.free()
        words = np.frombuffer(self.states.view(count * self.state_bytes), np.uint64)
        result = SearchResult(
            model=self.model,
            layout=self.layout,
            states=count,
            transitions=sum(taken),
            depth=len(level_starts),
            complete=why is None,
            why_incomplete=why,
            cuts=cuts,
            enabled=taken,
            faults=[],
            hits={},
            dead_ends=int(job[places.DEAD]),
            first_dead_end=int(job[places.FIRST_DEAD]) if job[places.DEAD] else None,
            boundary_ends=int(job[places.BOUNDARY]),
            first_boundary_end=int(job[places.FIRST_BOUNDARY]) if job[places.BOUNDARY] else None,
            seconds=seconds,
            compile_seconds=compiling,
            bytes_per_state=used / count,
            peak_bytes=max(self.peak_bytes, used),
            level_starts=level_starts,
            words=words.reshape(count, self.layout.words),
            parents=np.frombuffer(self.parents.view(count * 4), np.uint32),
        )
        self._hits(result)
        return result

    def _hits(self, result: SearchResult) -> None:
        for watch in self.watched:
            kind: HitKind = "state" if watch.steps is None else "step"
            hit = self._hit(watch.name, kind, watch.slot, result)
            if hit is not None:
                result.hits[watch.name] = hit
        for command, slot in self.fault_slots.items():
            hit = self._hit(self.model.commands[command].label, "fault", slot, result)
            if hit is not None:
                result.faults.append(hit)
        hit = self._hit(INTERNAL, "internal", self.internal_slot, result)
        if hit is not None:
            result.faults.append(hit)

    def _hit(self, name: str, kind: HitKind, slot: int, result: SearchResult) -> Hit | None:
        found = self._found(slot)
        if found is None:
            return None
        state, command = found
        steps = 0 if kind == "state" else 1
        return Hit(name, kind, state, command if command >= 0 else None, result.depth_of(state) + steps)


def _next_chunk(chunk: int, seconds: float) -> int:
    """How many states to expand in the next call, a whole number of blocks."""
    factor = min(4.0, CHUNK_SECONDS / max(seconds, 1e-6))
    return max(BLOCK_STATES, int(chunk * factor) // BLOCK_STATES * BLOCK_STATES)
