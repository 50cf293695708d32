"""The parts below the search: places of cells, intervals of terms, trees of guards, growing memory."""

from __future__ import annotations

import ctypes
import random

import pytest

from fencepost.checker.native import memory
from fencepost.checker.native.branching import Fork, Leaf, Tree, size_of, trees_of
from fencepost.checker.native.layout import WORD_BITS, layout_of
from fencepost.checker.native.memory import LARGE_PAGE_BYTES, Block
from fencepost.checker.native.ranges import Ranges
from fencepost.model import ModelError
from fencepost.model import terms as t

from .support import Chance, Codes, cell, colour, evaluate, flag, plus, random_model

# -- layout


@pytest.mark.parametrize("seed", range(50))
def test_packing_and_unpacking_gives_the_codes_back(seed: int) -> None:
    rng = random.Random(seed)
    cells = []
    for i in range(rng.randint(1, 40)):
        low = rng.choice([0, -1, 5, -(1 << rng.randint(1, 60))])
        cells.append(cell(f"x{i}", low, low + rng.choice([0, 1, 2, 7, 8, (1 << rng.randint(1, 60)) - 1])))
    layout = layout_of(cells)
    taken: set[tuple[int, int]] = set()
    for place in layout.places.values():
        assert place.shift + place.bits <= WORD_BITS
        bits = {(place.word, place.shift + i) for i in range(place.bits)}
        assert not bits & taken
        taken |= bits
    for _ in range(20):
        codes = {c.name: rng.choice([c.low, c.high, rng.randint(c.low, c.high)]) for c in cells}
        words = layout.pack(codes)
        assert layout.unpack(words) == codes
        assert len(words) == layout.words
        if layout.words == 1:
            assert words[0] != layout.unused


def test_cells_go_to_the_first_word_with_room() -> None:
    layout = layout_of(
        [cell("a", 0, (1 << 40) - 1), cell("b", 0, (1 << 30) - 1), cell("c", 0, (1 << 24) - 1)]
    )
    assert [layout.places[n].word for n in "abc"] == [0, 1, 0]
    assert layout.words == 2


def test_a_word_whose_every_pattern_is_a_state_has_no_unused_one() -> None:
    assert layout_of([cell("a", 0, (1 << 32) - 1), cell("b", 1, 1 << 32)]).unused is None
    assert layout_of([cell("a", 0, (1 << 32) - 1), cell("b", 1, (1 << 32) - 1)]).unused == 0xFFFFFFFF << 32
    assert layout_of([flag("a")]).unused == 2


def test_a_code_outside_its_cell_is_not_packed() -> None:
    with pytest.raises(ValueError, match=r"x = 4 lies outside 1\.\.3"):
        layout_of([cell("x", 1, 3)]).pack({"x": 4})


# -- ranges


@pytest.mark.parametrize("seed", range(40))
def test_a_value_lies_in_its_interval_wherever_the_assumption_holds(seed: int) -> None:
    rng = random.Random(seed)
    cells = [cell("a", -2, 3), cell("b", 0, 5), cell("c", 1, 2), flag("f"), colour("k")]
    places = layout_of(cells).places
    chance = Chance(rng, cells)
    for _ in range(20):
        guard = t.and_([chance.truth(2) for _ in range(3)])
        term = chance.number(3)
        ranges = Ranges(places)
        before = ranges.of(term)
        ranges.assume(guard)
        low, high = ranges.of(term)
        assert before[0] <= low
        assert high <= before[1]
        for _ in range(100):
            codes = {c.name: rng.randint(c.low, c.high) for c in cells}
            if evaluate(guard, codes):
                assert low <= evaluate(term, codes) <= high


def test_a_guard_narrows_what_it_compares() -> None:
    x = cell("x", 0, 9)
    ranges = Ranges(layout_of([x]).places)
    ranges.assume(t.and_([t.le(x.term, t.integer(6)), t.not_(t.le(x.term, t.integer(2)))]))
    assert ranges.of(plus(x.term, 1)) == (4, 7)
    ranges.assume(t.eq(x.term, t.integer(5)))
    assert ranges.of(t.negate(x.term)) == (-5, -5)


def test_a_sum_that_needs_too_many_bits_is_refused() -> None:
    x = cell("x", 0, 1 << 61)
    with pytest.raises(ModelError, match="x"):
        Ranges(layout_of([x]).places).of(t.add(x.term, x.term))


# -- branching


def enabled(trees: tuple[Tree, ...], codes: Codes) -> list[int]:
    found: list[int] = []
    for tree in trees:
        if isinstance(tree, Leaf):
            found.append(tree.command)
        elif isinstance(tree, Fork):
            found += enabled(tree.then if evaluate(tree.condition, codes) else tree.otherwise, codes)
        else:
            for value, below in tree.cases:
                if evaluate(tree.subject, codes) == value:
                    found += enabled(below, codes)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_trees_reach_exactly_the_commands_whose_guards_hold(seed: int) -> None:
    rng = random.Random(seed)
    model, _, _ = random_model(seed)
    guards = [c.guard for c in model.commands]
    guards += [t.and_(rng.sample(guards, 2)), t.TRUE, t.FALSE, t.not_(guards[0])]
    trees = trees_of(guards)
    assert sum(map(size_of, trees)) == sum(guard is not t.FALSE for guard in guards)
    for _ in range(50):
        codes = {c.name: rng.randint(c.low, c.high) for c in model.cells}
        assert sorted(enabled(trees, codes)) == [i for i, g in enumerate(guards) if evaluate(g, codes)]


def test_commands_of_one_action_stand_below_one_test() -> None:
    a, b, x = flag("a"), flag("b"), cell("x", 0, 3)
    guards = [
        t.and_([a.term, b.term]),
        t.and_([a.term, t.not_(b.term)]),
        t.and_([t.not_(a.term), t.eq(x.term, t.integer(1))]),
        t.eq(x.term, t.integer(2)),
    ]
    (test, other) = trees_of(guards)
    assert isinstance(test, Fork)
    assert test.condition is a.term
    assert size_of(test) == 3
    assert size_of(other) == 1


# -- memory


def test_a_block_keeps_its_contents_when_it_grows_and_the_rest_is_zero() -> None:
    block = Block(100)
    ctypes.memset(block.address, 7, block.size_bytes)
    filled = block.size_bytes
    block.grow(3 * LARGE_PAGE_BYTES + 1)
    assert block.size_bytes == 4 * LARGE_PAGE_BYTES
    with block.view(block.size_bytes) as view:
        assert bytes(view[:filled]) == b"\x07" * filled
        assert not any(view[filled:])
    block.free()


def test_a_block_grows_by_copying_where_the_system_cannot_move_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(_map: object, _size_bytes: int) -> None:
        raise SystemError("no mremap")

    monkeypatch.setattr(memory, "_resize", cannot)
    block = Block(100)
    ctypes.memset(block.address, 9, block.size_bytes)
    filled = block.size_bytes
    block.grow(LARGE_PAGE_BYTES)
    with block.view(block.size_bytes) as view:
        assert bytes(view[:filled]) == b"\x09" * filled
        assert not any(view[filled:])


def test_a_block_does_not_shrink() -> None:
    block = Block(1 << 16)
    block.grow(10)
    assert block.size_bytes == 1 << 16
