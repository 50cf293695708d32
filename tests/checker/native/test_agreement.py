"""The compiled search finds what a plain one finds, on the benchmark model and on models by chance."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from fencepost.checker.native import Hit, SearchResult, Seek, StateClaim, StepClaim, codegen, emit, explore
from fencepost.model.ground import GroundModel, ground_model

from .support import INTERNAL, Plain, plain_search, plain_step, random_model

MODELS = 120
MODELS_PER_TEST = 20
LEASE = Path(__file__).resolve().parents[3] / "benchmarks" / "models" / "lease.py"


@pytest.fixture(scope="module")
def lease() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lease_for_native_tests", LEASE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lease_model(lease: ModuleType, workers: int, versions: int, *, bug: bool = False) -> GroundModel:
    return ground_model(*lease.lease(workers, versions, seeded_bug=bug))


def lease_claims(lease: ModuleType, model: GroundModel) -> list[StateClaim]:
    return [StateClaim(claim.__name__, model.state_claim(claim)) for claim in lease.CLAIMS]


def assert_same(result: SearchResult, plain: Plain, model: GroundModel) -> None:
    names = [c.name for c in model.cells]
    states = list(zip(*[result.column(name).tolist() for name in names], strict=True))
    assert len(states) == len(set(states)) == result.states
    assert {key: result.depth_of(i) for i, key in enumerate(states)} == plain.depth_of
    assert list(result.enabled) == plain.taken
    assert result.transitions == sum(plain.taken)
    assert result.cuts == plain.cuts
    assert {hit.name: (hit.kind, hit.depth) for hit in result.hits.values()} == plain.hits
    assert {hit.name: hit.depth for hit in result.faults} == plain.faults
    assert (result.dead_ends, result.boundary_ends) == (plain.dead_ends, plain.boundary_ends)


def assert_path(result: SearchResult, model: GroundModel, state: int) -> None:
    codes = dict(model.initial)
    path = result.path(state)
    assert len(path) == result.depth_of(state)
    for number, after in path:
        assert plain_step(model, number, codes) == after
        codes = after
    assert codes == result.codes(state)


@pytest.mark.parametrize("versions", [2, 3])
def test_the_benchmark_model_has_the_states_of_the_plain_search(lease: ModuleType, versions: int) -> None:
    model = lease_model(lease, 2, versions)
    claims = lease_claims(lease, model)
    result = explore(model, claims=claims)
    assert result.complete
    if versions == 2:
        plain = plain_search(model, claims=claims)
        assert_same(result, plain, model)
        assert result.depth == plain.levels
    else:
        assert (result.states, result.transitions, result.depth) == (18_092, 95_016, 26)
    assert_path(result, model, result.states - 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("versions", "counts"), [(4, (991_060, 7_503_211, 34)), (5, (7_825_092, 66_979_867, 42))]
)
def test_large_benchmark_models_have_the_counts_of_other_tools(
    lease: ModuleType, versions: int, counts: tuple[int, int, int]
) -> None:
    model = lease_model(lease, 3, versions)
    result = explore(model, claims=lease_claims(lease, model))
    assert (result.states, result.transitions, result.depth) == counts
    assert result.hits == {}


def test_the_seeded_bug_is_found_at_its_known_distance(lease: ModuleType) -> None:
    model = lease_model(lease, 3, 4, bug=True)
    result = explore(model, claims=lease_claims(lease, model), stop="first")
    assert set(result.hits) == {"one_effect"}
    hit = result.hits["one_effect"]
    assert hit.depth == 6
    assert_path(result, model, hit.state)
    assert result.codes(hit.state)["effects"] == 2


@pytest.mark.parametrize("first_seed", range(0, MODELS, MODELS_PER_TEST))
def test_models_by_chance_have_the_states_of_the_plain_search(
    first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if first_seed % (2 * MODELS_PER_TEST):  # the ways of large terms, on small ones
        monkeypatch.setattr(codegen, "COSTLY", 0)
        monkeypatch.setattr(emit, "PIECE", 1)
    for seed in range(first_seed, first_seed + MODELS_PER_TEST):
        model, claims, seeks = random_model(seed)
        plain = plain_search(model, claims=claims, seeks=seeks)
        result = explore(
            model,
            claims=claims,
            seeks=seeks,
            stop="never",
            initial_slots=8,
            optimise_after=0 if seed % 2 else None,
        )
        if INTERNAL in plain.faults:
            assert_internal(result, plain, model)
            continue
        assert result.complete, seed
        assert_same(result, plain, model)
        assert result.depth == plain.levels
        for hit in result.hits.values():
            assert_hit(result, model, hit, [*claims, *seeks])
        assert_path(result, model, result.states - 1)
        assert_stops_early(model, claims, seeks)


def assert_internal(result: SearchResult, plain: Plain, model: GroundModel) -> None:
    assert (result.complete, result.why_incomplete) == (False, "internal")
    (hit,) = [hit for hit in result.faults if hit.kind == "internal"]
    assert hit.depth == plain.faults[INTERNAL]
    assert hit.command is not None
    assert plain_step(model, hit.command, result.codes(hit.state)) == INTERNAL
    for name in (c.name for c in model.cells):
        place = result.layout.places[name]
        assert place.low <= result.column(name).min() <= result.column(name).max() <= place.high


def assert_hit(
    result: SearchResult, model: GroundModel, hit: Hit, watched: list[StateClaim | StepClaim | Seek]
) -> None:
    from .support import evaluate

    item = next(w for w in watched if w.name == hit.name)
    terms = item.term if isinstance(item, StateClaim) else item.terms
    term = terms[hit.command or 0] if isinstance(terms, tuple) else terms
    assert bool(evaluate(term, result.codes(hit.state))) == isinstance(item, Seek)
    trace = result.trace(hit)
    assert len(trace) == hit.depth
    if hit.command is not None:
        assert trace[-1] == (hit.command, plain_step(model, hit.command, result.codes(hit.state)))


def assert_stops_early(model: GroundModel, claims: list[StateClaim | StepClaim], seeks: list[Seek]) -> None:
    for stop in ("first", "all"):
        plain = plain_search(model, claims=claims, seeks=seeks, stop=stop)
        result = explore(model, claims=claims, seeks=seeks, stop=stop)  # type: ignore[arg-type]
        assert_same(result, plain, model)
