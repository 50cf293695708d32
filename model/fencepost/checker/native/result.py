"""What a search found, and how to get from the initial state to any state it reached."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from fencepost.checker.native.evaluate import successor
from fencepost.checker.native.layout import WORD_MASK, Layout
from fencepost.model.ground import GroundModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HitKind = Literal["state", "step", "fault", "internal"]


@dataclass(frozen=True, slots=True)
class Hit:
    """Where, at the shortest distance, a claim is false, something sought is true, or a fault happens.

    `state` is the index of the state, or of the state before the step. `depth` counts the steps up to and
    including it.
    """

    name: str
    kind: HitKind
    state: int
    command: int | None
    depth: int


@dataclass(slots=True)
class SearchResult:
    """States are numbered in the order in which they were found; number 0 is the initial state.

    `depth` is the number of levels, the initial state's included, as other checkers count it. `cuts` are
    transitions that left the scope, `enabled` those taken, by command number. A *dead end* has no transition
    at all; a *boundary end* has none that is taken but some that are cut or are faults. `bytes_per_state`
    counts table, states and parent links at the end of the search, `peak_bytes` the largest total while it
    ran. `words` are the packed states one after the other, `parents` the number of the state that each was
    first reached from.
    """

    model: GroundModel = field(repr=False)
    layout: Layout = field(repr=False)
    states: int
    transitions: int
    depth: int
    complete: bool
    why_incomplete: str | None
    cuts: dict[int, int]
    enabled: tuple[int, ...] = field(repr=False)
    faults: list[Hit]
    hits: dict[str, Hit]
    dead_ends: int
    first_dead_end: int | None
    boundary_ends: int
    first_boundary_end: int | None
    seconds: float
    compile_seconds: float
    bytes_per_state: float
    peak_bytes: int
    level_starts: list[int] = field(repr=False)
    words: memoryview = field(repr=False)
    parents: memoryview = field(repr=False)

    def codes(self, state: int) -> dict[str, int]:
        """The code of every cell of state number `state`."""
        self._check(state)
        size = self.layout.words
        return self.layout.unpack(self.words[state * size : (state + 1) * size])

    def column(self, cell: str) -> NDArray[np.int64]:
        """The code of one cell in every state, by state number."""
        import numpy as np

        place = self.layout.places[cell]
        words = np.frombuffer(self.words, np.uint64).reshape(self.states, self.layout.words)
        bits = (words[:, place.word] & np.uint64(place.mask & WORD_MASK)) >> np.uint64(place.shift)
        return bits.astype(np.int64) + place.low

    def depth_of(self, state: int) -> int:
        """How many steps state number `state` is away from the initial state."""
        self._check(state)
        return bisect_right(self.level_starts, state) - 1

    def path(self, state: int) -> list[tuple[int, dict[str, int]]]:
        """A shortest path to state number `state`: for each step its command and the codes it led to."""
        self._check(state)
        chain = [state]
        while chain[-1]:
            chain.append(self.parents[chain[-1]])
        before = self.codes(0)
        steps: list[tuple[int, dict[str, int]]] = []
        for index in reversed(chain[:-1]):
            after = self.codes(index)
            command = next(i for i, c in enumerate(self.model.commands) if successor(c, before) == after)
            steps.append((command, after))
            before = after
        return steps

    def trace(self, hit: Hit) -> list[tuple[int, dict[str, int] | None]]:
        """The path to a hit, its own step included; a step that leads nowhere ends in None."""
        steps: list[tuple[int, dict[str, int] | None]] = [*self.path(hit.state)]
        if hit.command is not None:
            command = self.model.commands[hit.command]
            steps.append(
                (hit.command, None if hit.kind == "internal" else successor(command, self.codes(hit.state)))
            )
        return steps

    def _check(self, state: int) -> None:
        if not 0 <= state < self.states:
            raise IndexError(f"no state number {state}; there are {self.states}")
