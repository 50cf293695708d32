"""What `explore` promises beyond the states themselves: limits, growth, order, misuse."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencepost.checker.native import SearchResult, Seek, StateClaim, StepClaim, codegen, explore, search
from fencepost.checker.native import skeleton as skeleton_module
from fencepost.checker.native import store as store_module
from fencepost.checker.native.job import JobLayout
from fencepost.checker.native.layout import Layout, layout_of
from fencepost.checker.native.search import Progress
from fencepost.checker.native.table import words_of
from fencepost.model import ModelError
from fencepost.model import terms as t
from fencepost.model.ground import GroundModel

from .support import cell, command, counter_model, flag, grid_model, model_of, plain_search, plus

PADDING = {words: tuple(cell(f"pad{i}", -5, (1 << 55) - 1) for i in range(words - 1)) for words in (1, 2, 3)}
GRID = (40, 30, 20)
STATES = 40 * 30 * 20
HUGE = (1 << 20, 1 << 20)


def grid(words: int) -> GroundModel:
    return grid_model(GRID, PADDING[words])


def assert_whole_grid(result: SearchResult) -> None:
    assert result.complete
    assert result.states == STATES
    found = zip(*[result.column(f"x{i}").tolist() for i in range(3)], strict=True)
    assert {(a, b, c): result.depth_of(i) for i, (a, b, c) in enumerate(found)} == {
        (a, b, c): a + b + c for a in range(40) for b in range(30) for c in range(20)
    }
    assert result.transitions == 39 * 30 * 20 + 40 * 29 * 20 + 40 * 30 * 19
    assert result.depth == 39 + 29 + 19 + 1
    assert result.dead_ends == 1
    assert result.first_dead_end == STATES - 1


# -- growth and collisions


@pytest.mark.parametrize("words", [1, 2, 3])
@pytest.mark.parametrize("optimise_after", [None, 0, 5000])
def test_tables_and_arrays_grow_from_nearly_nothing(words: int, optimise_after: int | None) -> None:
    result = explore(grid(words), initial_slots=8, optimise_after=optimise_after)
    assert result.layout.words == words
    assert_whole_grid(result)


@pytest.mark.parametrize("words", [1, 2])
def test_a_table_that_cannot_be_spread_out_is_filled_anew(
    words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered: list[tuple[int, int]] = []
    grow = store_module.Store.grow

    def watched(
        store: store_module.Store, rehash: store_module.Rehash, enter: store_module.Enter, **how: int
    ) -> str | None:
        def enter_and_tell(job: int, first: int, last: int) -> None:
            entered.append((first, last))
            enter(job, first, last)

        return grow(store, rehash, enter_and_tell, **how)

    monkeypatch.setattr(store_module, "LATE_SLOTS", 0)
    monkeypatch.setattr(store_module.Store, "grow", watched)
    assert_whole_grid(explore(grid(words), initial_slots=8))
    assert entered
    assert all(first == 0 and last > 1 for first, last in entered)


@pytest.mark.parametrize("words", [1, 2, 3])
@pytest.mark.parametrize("constant", [1 << 32, -(1 << 32)])
def test_states_are_told_apart_though_all_hashes_are_equal(
    words: int, constant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the constants sends every state to the last bucket, whose overflow goes on at the first."""

    def useless_hash(layout: Layout) -> str:
        return (
            f"define internal i64 @hash({words_of(layout, '%w')}) nounwind alwaysinline {{"
            f"\n  ret i64 {constant}\n}}"
        )

    monkeypatch.setattr(skeleton_module, "hash_function", useless_hash)
    result = explore(grid_model((9, 8, 7), PADDING[words]), initial_slots=8)
    assert result.states == 9 * 8 * 7
    assert len({tuple(result.codes(i).values()) for i in range(result.states)}) == result.states


@pytest.mark.parametrize("highest", [(1 << 32) - 1, (1 << 32) - 2, (1 << 31) - 1])
@pytest.mark.parametrize("optimise_after", [None, 0])
def test_states_that_use_every_bit_of_a_word_are_states(highest: int, optimise_after: int | None) -> None:
    cells = [cell("x", 0, highest), cell("y", 0, (1 << 32) - 1)]
    values = (0, 1, highest - 1, highest)
    commands = [
        command(f"{c.name}={value}", t.TRUE, {c.name: t.integer(value)}) for c in cells for value in values
    ]
    model = model_of(cells, commands)
    result = explore(model, optimise_after=optimise_after)
    assert result.layout.words == 1
    assert result.states == 16
    assert {(c["x"], c["y"]) for c in map(result.codes, range(16))} == {
        (x, y) for x in values for y in values
    }


# -- limits


def test_a_budget_that_is_spent_ends_the_search() -> None:
    result = explore(grid_model(HUGE), budget_s=0)
    assert (result.complete, result.why_incomplete) == (False, "time")
    assert result.states > 1
    assert len(result.path(result.states - 1)) == result.depth_of(result.states - 1)


@pytest.mark.parametrize("words", [1, 2])
def test_a_number_of_states_ends_the_search_and_always_at_the_same_place(words: int) -> None:
    model = grid_model(HUGE, PADDING[words])
    first, second = (explore(model, max_states=30_000, optimise_after=n) for n in (0, None))
    assert (first.complete, first.why_incomplete) == (False, "states")
    assert 30_000 < first.states <= 30_000 + skeleton_module.BLOCK_STATES * 2
    assert first.words == second.words
    assert first.transitions == second.transitions


def test_fewer_states_than_allowed_are_a_complete_search() -> None:
    assert explore(counter_model(9), max_states=10).complete
    assert not explore(counter_model(9), max_states=9).complete


@pytest.mark.parametrize("words", [1, 2])
def test_the_memory_allowed_ends_the_search_and_is_not_exceeded(words: int) -> None:
    result = explore(grid_model(HUGE, PADDING[words]), memory_mb=3)
    assert (result.complete, result.why_incomplete) == (False, "memory")
    assert 1 << 20 < result.peak_bytes <= 3 << 20
    assert result.bytes_per_state * result.states <= result.peak_bytes


def test_more_states_than_an_index_can_number_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "INDEX_LIMIT", 5000)
    result = explore(grid_model(HUGE))
    assert (result.complete, result.why_incomplete) == (False, "index")
    assert 4000 < result.states <= 5000


def test_an_interrupt_gets_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "PROGRESS_SECONDS", 0)

    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explore(grid_model(HUGE), on_progress=interrupt)


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "PROGRESS_SECONDS", 0)
    told: list[Progress] = []
    explore(grid(1), on_progress=told.append)
    assert told[-1].expanded == STATES
    assert [p.states for p in told] == sorted(p.states for p in told)
    assert told[-1].depth == 88
    assert str(told[-1]).startswith("24,000 states, depth 88, ")


# -- order


@pytest.mark.parametrize("words", [1, 2])
def test_the_order_of_states_does_not_depend_on_how_the_code_was_made(
    words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = explore(grid(words))
    same = [explore(grid(words)), explore(grid(words), optimise_after=0, initial_slots=1 << 20)]
    monkeypatch.setattr(search, "FREQUENT", 2.0)
    same.append(explore(grid(words), optimise_after=1))
    monkeypatch.setattr(codegen, "COMMANDS_PER_FUNCTION", 1)
    same.append(explore(grid(words)))
    for result in same:
        assert result.words == expected.words
        assert result.parents == expected.parents
        assert result.enabled == expected.enabled


# -- claims


def test_a_claim_that_is_false_at_the_start_is_hit_at_depth_zero() -> None:
    model = counter_model(5)
    result = explore(model, claims=[StateClaim("positive", t.le(t.integer(1), model.cells[0].term))])
    hit = result.hits["positive"]
    assert (hit.kind, hit.state, hit.command, hit.depth) == ("state", 0, None, 0)
    assert result.trace(hit) == []


def test_constant_claims_and_seeks_are_hit_or_never() -> None:
    model = counter_model(3)
    result = explore(
        model,
        claims=[StateClaim("true", t.TRUE), StateClaim("false", t.FALSE), StepClaim("no step", (t.FALSE,))],
        seeks=[Seek("never", t.FALSE), Seek("at once", t.TRUE), Seek("step", (t.TRUE,))],
    )
    assert {name: hit.depth for name, hit in result.hits.items()} == {
        "false": 0, "no step": 1, "at once": 0, "step": 1,
    }  # fmt: skip


def test_step_claims_are_looked_at_on_self_loops_and_not_on_cut_transitions() -> None:
    x = cell("x", 0, 3)
    model = model_of(
        [x],
        [
            command("stay", t.eq(x.term, t.integer(3)), {}),
            command("leap", t.TRUE, {"x": plus(x.term, 3)}, [(plus(x.term, 3), 0, 3)]),
        ],
    )
    claims = [
        StepClaim("nothing stays", (t.FALSE, t.TRUE)),
        StepClaim("leaps start low", (t.TRUE, t.le(x.term, t.integer(0)))),
    ]
    result = explore(model, claims=claims)
    assert set(result.hits) == {"nothing stays"}
    assert result.hits["nothing stays"].depth == 2
    assert result.enabled == (1, 1)
    assert result.cuts == {1: 1}
    assert result.transitions == 2


def test_stopping_at_the_first_violation_ends_with_its_level() -> None:
    model = grid(1)
    x, y = model.cells[0].term, model.cells[1].term
    claims = [StateClaim("x", t.le(x, t.integer(2))), StateClaim("y", t.le(y, t.integer(5)))]
    result = explore(model, claims=claims, stop="first")
    assert (result.complete, result.why_incomplete) == (False, "stopped")
    assert set(result.hits) == {"x"}
    assert result.states == 4 + 6 + 10
    result = explore(model, claims=claims, stop="all")
    assert {name: hit.depth for name, hit in result.hits.items()} == {"x": 3, "y": 6}
    assert result.depth == 7
    assert explore(model, claims=claims, stop="never").complete


def test_a_search_without_claims_does_not_stop_early() -> None:
    for stop in ("first", "all"):
        assert explore(counter_model(20), stop=stop).complete  # type: ignore[arg-type]


# -- faults and ends


def test_a_fault_is_reported_with_its_command_and_leads_nowhere() -> None:
    x = cell("x", 0, 5)
    model = model_of(
        [x],
        [
            command("count", t.TRUE, {"x": plus(x.term, 1)}, [(plus(x.term, 1), 0, 5)]),
            command("break", t.eq(x.term, t.integer(2)), {}, outcome="fault"),
        ],
    )
    result = explore(model)
    (hit,) = result.faults
    assert (hit.name, hit.kind, hit.command, hit.depth) == ("break", "fault", 1, 3)
    assert [codes for _, codes in result.trace(hit)] == [{"x": 1}, {"x": 2}, None]
    assert result.complete
    assert explore(model, stop="first").states == 4


@pytest.mark.parametrize(("step", "high"), [(1, 9), (-1, 9), (-3, 9)])
def test_a_value_that_would_not_fit_its_field_is_an_internal_error_and_never_written(
    step: int, high: int
) -> None:
    x, y = cell("x", -2, high), cell("y", 0, 1)
    model = model_of([x, y], [command("run", t.TRUE, {"x": plus(x.term, step)})], {"x": 0, "y": 1})
    result = explore(model)
    assert (result.complete, result.why_incomplete) == (False, "internal")
    (hit,) = result.faults
    assert (hit.name, hit.kind, hit.command) == (search.INTERNAL, "internal", 0)
    assert result.trace(hit)[-1] == (0, None)
    assert result.column("y").tolist() == [1] * result.states
    assert result.column("x").tolist() == [step * i for i in range(result.states)]


def test_dead_ends_and_ends_at_the_boundary_are_told_apart() -> None:
    x, stop = cell("x", 0, 4), flag("stop")
    on = t.not_(stop.term)
    model = model_of(
        [x, stop],
        [
            command("count", on, {"x": plus(x.term, 1)}, [(plus(x.term, 1), 0, 4)]),
            command("stop", t.and_([on, t.le(x.term, t.integer(1))]), {"stop": t.TRUE}),
        ],
    )
    result = explore(model)
    assert result.dead_ends == 2
    assert result.first_dead_end is not None
    assert result.codes(result.first_dead_end) == {"x": 0, "stop": 1}
    assert result.boundary_ends == 1
    assert result.first_boundary_end is not None
    assert result.codes(result.first_boundary_end) == {"x": 4, "stop": 0}


@pytest.mark.parametrize("outcome", ["cut", "fault"])
def test_a_state_from_which_a_cut_or_a_fault_is_all_that_leads_on_is_no_dead_end(outcome: str) -> None:
    x = cell("x", 0, 2)
    model = model_of(
        [x],
        [
            command("count", t.not_(t.eq(x.term, t.integer(2))), {"x": plus(x.term, 1)}),
            command("leave", t.eq(x.term, t.integer(2)), {}, outcome=outcome),
        ],
    )
    result = explore(model)
    assert (result.dead_ends, result.boundary_ends, result.first_boundary_end) == (0, 1, 2)
    assert result.cuts == ({1: 1} if outcome == "cut" else {})


def test_models_without_cells_or_commands_have_one_state() -> None:
    for model in (
        model_of([], []),
        model_of([], [command("stay", t.TRUE, {})]),
        model_of([cell("x", 3, 3)], []),
    ):
        result = explore(model, claims=[StateClaim("true", t.TRUE)])
        assert result.complete
        assert (result.states, result.depth) == (1, 1)
        assert result.codes(0) == dict(model.initial)
        assert result.path(0) == []


def test_a_cell_of_one_value_takes_no_bits_and_keeps_it() -> None:
    x, one = cell("x", 0, 3), cell("one", 7, 7)
    step = t.add(x.term, t.add(one.term, t.integer(-6)))
    model = model_of([one, x], [command("add", t.TRUE, {"x": step, "one": one.term}, [(step, 0, 3)])])
    result = explore(model)
    assert result.states == 4
    assert result.column("one").tolist() == [7] * 4
    assert result.layout.bits == 2


def test_what_a_guard_or_the_scope_already_excludes_is_not_tested_again() -> None:
    """Each test of a written value is a branch to a `misfit` block."""
    x = cell("x", 0, 9)
    below = t.not_(t.le(t.integer(9), x.term))
    tests = {
        "unguarded": command("c", t.TRUE, {"x": plus(x.term, 1)}),
        "cut": command("c", t.TRUE, {"x": plus(x.term, 1)}, [(plus(x.term, 1), 0, 9)]),
        "guarded": command("c", below, {"x": plus(x.term, 1)}, [(plus(x.term, 1), 0, 9)]),
        "chosen": command("c", below, {"x": t.ite(t.le(x.term, t.integer(3)), plus(x.term, 1), x.term)}),
    }
    found = {}
    for name, rule in tests.items():
        code = codegen.CommandCode(
            layout_of([x]),
            JobLayout(1, 1),
            [rule],
            watches=[],
            fault_slots={},
            internal_slot=0,
            frequent=None,
        )
        (text,) = code.functions()
        found[name] = (text.count("\nmisfit"), text.count("@record"))
    assert found == {"unguarded": (1, 1), "cut": (1, 0), "guarded": (0, 0), "chosen": (0, 0)}


# -- misuse


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stop": "sometimes"}, "stop at first, all or never"),
        ({"claims": [StateClaim("a", t.TRUE)], "seeks": [Seek("a", t.TRUE)]}, "share the name a"),
        ({"claims": [StepClaim("a", (t.TRUE, t.TRUE))]}, "2 terms for 1 commands"),
    ],
)
def test_misuse_is_refused_with_what_to_do(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore(counter_model(3), **arguments)  # type: ignore[arg-type]


def test_a_claim_over_anything_but_cells_is_refused() -> None:
    with pytest.raises(ModelError, match="no term over the cells"):
        explore(counter_model(3), claims=[StateClaim("odd", t.variable("step refused", t.TRUE.domain))])


def test_numbers_beyond_62_bits_are_refused() -> None:
    x = cell("x", 0, (1 << 61) - 1)
    double = t.add(t.add(x.term, x.term), t.add(x.term, x.term))
    with pytest.raises(ModelError, match="62"):
        explore(model_of([x], [command("grow", t.le(double, t.integer(3)), {})]))
    with pytest.raises(ModelError, match="62"):
        explore(model_of([cell("x", 0, 1 << 63)], []))


@pytest.mark.parametrize("ask", [lambda r: r.codes(4), lambda r: r.path(-1), lambda r: r.depth_of(99)])
def test_a_state_that_is_not_there_is_an_index_error(ask: Callable[[SearchResult], object]) -> None:
    with pytest.raises(IndexError, match="there are 4"):
        ask(explore(counter_model(3)))


def test_the_plain_search_of_these_tests_agrees_on_the_grid() -> None:
    model = grid_model((5, 4, 3))
    assert len(plain_search(model).depth_of) == explore(model).states == 60


def test_what_was_found_is_no_longer_looked_for_in_tuned_code(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    compiled = search.compiled

    def kept(text: str, *, optimise: bool) -> bytes:
        texts.append(text)
        return compiled(text, optimise=optimise)

    monkeypatch.setattr(search, "compiled", kept)
    model = grid(1)
    x, y = model.cells[0].term, model.cells[1].term
    claims = [StateClaim("x", t.le(x, t.integer(2))), StateClaim("y", t.le(y, t.integer(25)))]
    seeks = [
        Seek("steps", (t.TRUE, t.FALSE, t.FALSE)),
        Seek("late", (t.FALSE, t.le(t.integer(28), y), t.FALSE)),
    ]
    result = explore(model, claims=claims, seeks=seeks, stop="never", optimise_after=1000)
    assert {name: hit.depth for name, hit in result.hits.items()} == {"x": 3, "y": 26, "steps": 1, "late": 29}
    quick, tuned = (text.count("call void @record") for text in texts)
    assert (quick, tuned) == (4, 2)
    assert_whole_grid(result)


def test_a_search_that_is_over_when_its_budget_is_spent_is_complete() -> None:
    assert explore(model_of([cell("x", 0, 1)], []), budget_s=0).complete
    assert explore(counter_model(9), max_states=10).complete
