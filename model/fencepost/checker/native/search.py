"""Breadth-first search of a ground model in machine code: level by level, and the same way each time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from typing import Literal

from fencepost.checker.native.codegen import CommandCode, check_function, entry_words
from fencepost.checker.native.job import JobLayout, Watch
from fencepost.checker.native.layout import layout_of
from fencepost.checker.native.machine import Machine, code_cache, compiled
from fencepost.checker.native.memory import physical_bytes
from fencepost.checker.native.result import Hit, HitKind, SearchResult
from fencepost.checker.native.skeleton import BLOCK_STATES, skeleton
from fencepost.checker.native.store import PARENT_BYTES, Store
from fencepost.model import terms as t
from fencepost.model.ground import GroundModel

MEMORY_SHARE = 0.9
"""Share of the machine's memory that a search may use when it is not told how much."""

CHUNK_SECONDS = 0.03
"""Aim for one call of native code; between calls come interrupts, the budget and progress."""

FIRST_CHUNK = 256 * BLOCK_STATES
"""States per call until the code is tuned: a fixed number, so that tuning is the same in each run."""

TUNING_STATES = 1 << 14
TUNING_STATES_LATE = 1 << 17
"""Expanded states after which the code is compiled again, optimised: while the search widens, and anyway."""

TUNING_STATES_PER_CHARACTER = 1
"""How many states, for each character of the code, are expanded first: about as long as optimising takes."""

FREQUENT = 0.05
"""A command taken from this share of the states gets code without a branch, if its effects are constants."""

TUNING_RATIO = 10
"""Optimising takes a few times as long as compiling quickly; a budget should be much longer."""

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
    halted: Callable[[], bool] | None = None,
    optimise_after: int | None = None,
    initial_slots: int = 1 << 15,
) -> SearchResult:
    """Search `model` breadth-first from its initial state, checking `claims` and looking for `seeks`.

    `stop` says when to end before everything is searched: ``first``, after the level in which a claim was
    violated or a fault happened; ``all``, after the level in which the last of all claims and seeks was hit;
    ``never``. `budget_s` counts seconds from the call on, compiling included. With `max_states` the search
    ends after the block of states in which more are found, always at the same place. `memory_mb` (2**20
    bytes) limits table, states and parent links together; without it nine tenths of the machine's memory do.
    The search ends soon after `halted` says so. One search uses one thread, and several may run at once.

    The result never depends on the rest. `optimise_after` is the number of expanded states after which the
    code is compiled again, optimised by what was seen: 0 at once, None when it is likely to pay.
    `initial_slots` is the size of the table at the start.

    Raises ValueError for names that occur twice, terms that do not match the commands or a number that makes
    no sense, ModelError for a model whose numbers need more than 62 bits.
    """
    started = time.perf_counter()
    if stop not in ("first", "all", "never"):
        raise ValueError(f"stop={stop!r}: stop at first, all or never")
    watched = _watched(model, claims, seeks)
    search = _Search(
        model,
        watched,
        claims=len(claims),
        stop=stop,
        optimise_after=optimise_after,
        initial_slots=initial_slots,
        max_states=max_states,
    )
    allowed = (memory_limit_mb() if memory_mb is None else memory_mb) << 20
    limits = _Limits(None if budget_s is None else started + budget_s, max_states, allowed, halted)
    return search.run(limits, on_progress)


def memory_limit_mb() -> int:
    """How much memory (MiB) a search may use that is given no limit."""
    return int((physical_bytes() or 1 << 62) * MEMORY_SHARE) >> 20


def _watched(
    model: GroundModel, claims: Sequence[StateClaim | StepClaim], seeks: Sequence[Seek]
) -> list[Watch]:
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
    halted: Callable[[], bool] | None


class _Code:
    """The compiled functions of a search."""

    def __init__(self, made: bytes, *, optimised: bool) -> None:
        self._machine = Machine(made)
        self.first = self._machine.function("first", None, c_void_p)
        self.enter = self._machine.function("enter", None, c_void_p, c_int64, c_int64)
        self.expand = self._machine.function("expand", c_int64, c_void_p, c_int64, c_int64)
        self.rehash = self._machine.function(
            "rehash", c_int64, c_void_p, c_int64, c_void_p, c_void_p, c_int64
        )
        self.optimised = optimised


class _Search:
    """One search: its code, its memory, and the loop over levels."""

    def __init__(
        self,
        model: GroundModel,
        watched: list[Watch],
        *,
        claims: int,
        stop: Stop,
        optimise_after: int | None,
        initial_slots: int,
        max_states: int | None,
    ) -> None:
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
        started = time.perf_counter()
        self.chunk = FIRST_CHUNK
        self.optimise_after = optimise_after
        self.cache = code_cache()
        self.text = ""
        self.code = self._first_code()
        self.store = Store(
            self.places,
            words=self.layout.words,
            entry_bytes=8 * entry_words(self.layout),
            most=self.most,
            initial_slots=initial_slots,
            max_states=max_states,
        )
        self.compile_seconds = time.perf_counter() - started

    def _text(self, watched: list[Watch], frequent: set[int] | None) -> str:
        """The text of all functions: quickly compiled, or fast when these commands are taken often."""
        code = CommandCode(
            self.layout,
            self.places,
            self.model.commands,
            watches=watched,
            fault_slots=self.fault_slots,
            internal_slot=self.internal_slot,
            frequent=frequent,
        )
        functions = [*code.functions(), check_function(self.layout, watched)]
        loop = skeleton(
            self.layout, self.places, steps=len(functions) - 1, fetch=frequent is None, most=self.most
        )
        return "\n".join([*functions, loop])

    def _first_code(self) -> _Code:
        """Code to start with."""
        if self.optimise_after == 0:
            text = self._text(self.watched, set(range(self.places.commands)))
            return _Code(self._made(text, lambda: text, optimise=True), optimised=True)
        self.text = self._text(self.watched, None)
        return _Code(self._made(self.text, lambda: self.text, optimise=False), optimised=False)

    def _tuned_code(self, expanded: int) -> _Code:
        """Code optimised by what so many expanded states showed; it no longer looks for what was found."""
        started = time.perf_counter()
        taken = self.store.job[self.places.taken : self.places.cut]
        frequent = {i for i, n in enumerate(taken) if n > FREQUENT * expanded}
        watched = [watch for watch in self.watched if self._found(watch.slot) is None]
        key = f"{sorted(frequent)} {[watch.slot for watch in watched]}\n{self.text}"
        code = _Code(self._made(key, lambda: self._text(watched, frequent), optimise=True), optimised=True)
        self.compile_seconds += time.perf_counter() - started
        return code

    def _made(self, key: str, text: Callable[[], str], *, optimise: bool) -> bytes:
        """The object for a text, kept under `key`."""
        kind = "optimised" if optimise else "quick"
        made = self.cache.get(kind, key)
        if made is None:
            made = compiled(text(), optimise=optimise)
            self.cache.put(kind, key, made)
        return made

    # -- levels

    def run(self, limits: _Limits, on_progress: Callable[[Progress], None] | None) -> SearchResult:
        """Search until everything is found or something ends it."""
        started = time.perf_counter()
        compiled = self.compile_seconds
        self._seed()
        reports = _Reports(on_progress, started)
        level_starts = [0]
        first, last = 0, 1
        why: str | None = None
        while first < last and why is None:
            why = self._level(first, last, limits, reports)
            first, last = last, self.store.count
            reports.depth += 1
            if first < last:
                level_starts.append(first)
                why = why or self._satisfied()
        seconds = time.perf_counter() - started - (self.compile_seconds - compiled)
        return self._result(level_starts, why, seconds)

    def _seed(self) -> None:
        words = self.layout.pack(self.model.initial)
        with self.store.states.view(8 * len(words)) as start:
            start[:] = b"".join(word.to_bytes(8, sys.byteorder) for word in words)
        self.store.job[self.places.COUNT] = 1
        self.code.enter(self.store.address, 0, 1)
        self.code.first(self.store.address)

    def _level(self, first: int, last: int, limits: _Limits, reports: _Reports) -> str | None:
        """Expand the states from `first` up to `last`; or say why not all."""
        store, at = self.store, first
        while at < last:
            before = time.perf_counter()
            end = min(at + self.chunk, last)
            reached = self.code.expand(store.address, at, end)
            now = time.perf_counter()
            if self.code.optimised and end - at == self.chunk == reached - at:
                self.chunk = _next_chunk(self.chunk, now - before)
            at = reached
            why = self._why(limits, now)
            if why is None and reached < end:
                why = store.grow(
                    self.code.rehash, self.code.enter, expanded=at, memory_bytes=limits.memory_bytes
                )
            if why is not None:
                over = at == last == store.count and why != "internal"  # nothing is left to stop
                return None if over else why
            reports.tell(store.count, at, now)
            if not self.code.optimised and self._worth_tuning(at, limits, now):
                self.code = self._tuned_code(at)
        return None

    def _worth_tuning(self, expanded: int, limits: _Limits, now: float) -> bool:
        """Whether the search is likely to go on for longer than optimising takes."""
        if self.optimise_after is not None:
            return expanded >= self.optimise_after
        if limits.deadline is not None and limits.deadline - now < TUNING_RATIO * self.compile_seconds:
            return False
        cost = TUNING_STATES_PER_CHARACTER * len(self.text)
        waiting = self.store.count - expanded
        return expanded >= max(TUNING_STATES_LATE, 2 * cost) or (
            expanded >= max(TUNING_STATES, cost) and waiting > expanded // 4
        )

    def _found(self, slot: int) -> tuple[int, int] | None:
        """State and command of a hit."""
        start = self.places.found + 2 * slot
        state, command = self.store.job[start : start + 2]
        return (state, command) if state >= 0 else None

    def _why(self, limits: _Limits, now: float) -> str | None:
        """Why to stop in the middle of a level."""
        if self._found(self.internal_slot):
            return "internal"
        if limits.deadline is not None and now > limits.deadline:
            return "time"
        if limits.halted is not None and limits.halted():
            return "halted"
        if limits.max_states is not None and self.store.count > limits.max_states:
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

    def _result(self, level_starts: list[int], why: str | None, seconds: float) -> SearchResult:
        store, places, job = self.store, self.places, self.store.job
        count, used = store.count, store.bytes_now()
        taken = tuple(job[places.taken : places.cut])
        cuts = {i: n for i, n in enumerate(job[places.cut : places.found]) if n}
        store.table.free()
        store.buffer.free()
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
            dead_ends=job[places.DEAD],
            first_dead_end=job[places.FIRST_DEAD] if job[places.DEAD] else None,
            boundary_ends=job[places.BOUNDARY],
            first_boundary_end=job[places.FIRST_BOUNDARY] if job[places.BOUNDARY] else None,
            seconds=seconds,
            compile_seconds=self.compile_seconds,
            bytes_per_state=used / count,
            peak_bytes=store.peak_bytes,
            level_starts=level_starts,
            words=store.states.view(count * store.state_bytes).cast("Q"),
            parents=store.parents.view(count * PARENT_BYTES).cast("I"),
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


class _Reports:
    """Progress, told at most every tenth of a second."""

    def __init__(self, on_progress: Callable[[Progress], None] | None, started: float) -> None:
        self.on_progress = on_progress
        self.started = started
        self.next = started + PROGRESS_SECONDS
        self.depth = 1

    def tell(self, states: int, expanded: int, now: float) -> None:
        """Report, if it is time."""
        if self.on_progress is not None and now >= self.next:
            self.next = now + PROGRESS_SECONDS
            self.on_progress(Progress(states, expanded, self.depth, now - self.started))


def _next_chunk(chunk: int, seconds: float) -> int:
    """How many states to expand in the next call, a whole number of blocks."""
    factor = min(4.0, CHUNK_SECONDS / max(seconds, 1e-6))
    return max(BLOCK_STATES, int(chunk * factor) // BLOCK_STATES * BLOCK_STATES)
