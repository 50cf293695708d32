"""All readings of a model mean the same: the test that holds them together.

A protocol is run by `Runner`, which executes its Python functions on concrete states, and beside it the
ground commands, which were made by tracing the same functions, are run by a tiny interpreter. Both must find
the same states, and in each the same moves, with the same outcomes and successors, the same moves that the
scope cuts, and the same truth of every claim. The compiled and the solver's reading are made from the ground
commands, and join at the end.

What is *cut* means the same in all: a number that a move writes, or an index above its domain that it reads,
lies outside of the scope; or a fresh element is asked for, none is left, and the move would be possible with
one more.
"""

from __future__ import annotations

import random
from collections import Counter as Tally
from pathlib import Path

import pytest

from fencepost.model import ModelError, PathLimitError, Scope
from fencepost.model import terms as t
from fencepost.model.core import core
from fencepost.model.domains import INTEGER, Boolean
from fencepost.properties.claims import Kind
from fencepost.properties.core import CORE

from .both import Both
from .grounded import compiled
from .random_models import Writer
from .support import Model, benchmark_lease

MODELS, QUICK_MODELS, MODELS_PER_TEST, STATES_PER_MODEL = 200, 80, 20, 40
STATES_OF_A_TINY_MODEL = 2_000
LEASE_STATES, LEASE_MOVES = 1_956, 8_430


def random_both(seed: int, directory: Path) -> Both | None:
    """The random model of a seed, with its claims; None when it forks too often to be read."""
    model = Model(directory, Writer(seed).model(), preamble="")
    names = model.names
    sizes = {name: n for name, n in names["SIZES"].items() if name in model.protocol.sorts()}
    try:
        both = Both(model.protocol, Scope("random", sizes, names["BOUNDS"], names["SWITCHES"]))
    except PathLimitError:
        return None
    for name, value in names.items():
        if name.startswith(("claim_", "step_claim_")):
            try:
                both.add_claim(value)
            except ModelError as error:
                assert "may not be there" in error.what  # noqa: PT017
    return both


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=() if first < QUICK_MODELS else pytest.mark.slow)
        for first in range(0, MODELS, MODELS_PER_TEST)
    ],
)
def test_random_models_mean_the_same_run_and_traced(first: int, tmp_path: Path) -> None:
    numbers: Tally[str] = Tally()
    for seed in range(first, first + MODELS_PER_TEST):
        both = random_both(seed, tmp_path)
        if both is not None:
            try:
                both.search(STATES_PER_MODEL)
            except AssertionError as error:
                error.add_note(f"the random model of seed {seed}")
                raise
            numbers += both.numbers
            numbers["models"] += 1
            numbers["claims"] += len(both.claims) + len(both.step_claims)
    assert numbers["models"] > 0.9 * MODELS_PER_TEST
    rare = [
        n
        for n in ("states", "moves", "refused", "cut", "fault", "claims")
        if numbers[n] < MODELS_PER_TEST / 4
    ]
    assert rare == [], numbers


CORE_SCOPES = {
    "one worker restarts": core.scopes["small"].but(
        sizes={"worker": 1, "commit": 1},
        bounds={"lease_version": 2, "state_version": 1, "incarnation": 1},
    ),
    "two workers, one lease": core.scopes["small"].but(
        sizes={"worker": 2, "commit": 1},
        bounds={"lease_version": 1, "state_version": 1, "incarnation": 0},
    ),
}


@pytest.mark.parametrize(
    "scope",
    [
        pytest.param(s, id=name, marks=pytest.mark.slow if s.sizes["worker"] > 1 else ())
        for name, s in CORE_SCOPES.items()
    ],
)
def test_the_core_and_its_claims_mean_the_same_run_and_traced(scope: Scope) -> None:
    both = Both(core, scope)
    for claim in CORE.claims.values():
        both.add_claim(claim.predicate)
    assert {c.kind for c in CORE.claims.values()} == set(Kind)
    both.search(20_000, claims_in_every=5)
    assert both.numbers["cut"] > 0
    assert both.numbers["refused"] > 0
    assert both.numbers["fault"] == 0


def test_the_benchmark_model_means_the_same_run_and_traced() -> None:
    lease = benchmark_lease()
    both = Both(*lease.lease(2, 2))
    for claim in lease.CLAIMS:
        both.add_claim(claim)
    both.search(20_000)
    assert both.numbers == {"states": LEASE_STATES, "moves": LEASE_MOVES, "refused": 0}


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_the_compiled_reading_finds_the_same_states(first: int, tmp_path: Path) -> None:
    from fencepost.checker.native import explore

    compared = 0
    for seed in range(first, first + 20):
        both = random_both(seed, tmp_path)
        if both is None:
            continue
        depths, numbers = both.ground.search(STATES_OF_A_TINY_MODEL)
        if len(depths) > STATES_OF_A_TINY_MODEL:
            continue
        result = explore(both.model, stop="never")
        columns = [result.column(name).tolist() for name in both.ground.places]
        found = {codes: result.depth_of(i) for i, codes in enumerate(zip(*columns, strict=True))}
        assert found == depths, f"the random model of seed {seed}"
        assert (result.transitions, sum(result.cuts.values())) == (numbers["moves"], numbers["cut"])
        compared += 1
    assert compared >= 5


def test_the_compiled_reading_finds_the_same_states_of_the_core() -> None:
    from fencepost.checker.native import explore

    both = Both(core, CORE_SCOPES["one worker restarts"])
    depths, numbers = both.ground.search(20_000)
    result = explore(both.model, stop="never")
    assert (result.states, result.depth) == (len(depths), max(depths.values()) + 1)
    assert (result.transitions, sum(result.cuts.values())) == (numbers["moves"], numbers["cut"])


@pytest.mark.parametrize("integers", [False, True], ids=["bit vectors", "integers"])
def test_the_solver_reads_guards_and_updates_the_same(integers: bool, tmp_path: Path) -> None:
    from fencepost.checker.smt.finite import Cells

    pick, compared = random.Random(1), 0
    for seed in range(20):
        both = random_both(seed, tmp_path)
        if both is None:
            continue
        states = list(both.ground.search(200)[0])
        commands = pick.sample(both.model.commands, min(10, len(both.model.commands)))
        terms = [
            term
            for c in commands
            for term in (c.guard, *c.updates.values(), *(number for number, _, _ in c.fits))
        ]
        cells = Cells(both.model.cells, terms, integers=integers)
        value = compiled(terms, both.ground.places)
        for state in pick.sample(states, min(5, len(states))):
            known = [
                (cells.cell(cell), cells.formula(t.constant(code, cell.domain)))
                for cell, code in zip(both.model.cells, state, strict=True)
            ]
            found = [cells.z3.simplify(cells.z3.substitute(cells.formula(term), *known)) for term in terms]
            expected = [
                cells.formula(
                    t.constant(number, term.domain if isinstance(term.domain, Boolean) else INTEGER)
                )
                for number, term in zip(value(state), terms, strict=True)
            ]
            assert all(a.eq(cells.z3.simplify(b)) for a, b in zip(found, expected, strict=True))
            compared += len(terms)
    assert compared > 1000
