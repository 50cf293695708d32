"""Bounded model checking finds what breadth-first search finds, at the same length."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from fencepost.checker.smt import SearchResult, bmc
from fencepost.model import terms as t
from fencepost.model.ground import GroundModel, ground_model

from .small_protocol import CLAIMS, LEASES, SMALL, STEPS, VARIANTS
from .support import Models, evaluate, shortest, step

DEPTH = 8


def assert_is_a_run(model: GroundModel, found: SearchResult, broken: Any) -> None:
    assert found.states[0] == model.initial
    assert len(found.states) == len(found.commands) + 1 == found.depth + 1
    for before, number, after in zip(found.states, found.commands, found.states[1:], strict=False):
        assert step(model, number, dict(before)) == after
    if isinstance(broken, t.Term):
        assert not evaluate(broken, found.states[-1])
    else:
        assert not evaluate(broken[found.commands[-1]], found.states[-2])


@pytest.mark.parametrize("seed", range(60))
def test_a_run_is_found_exactly_where_there_is_one_and_is_a_shortest(seed: int) -> None:
    models = Models(random.Random(seed))
    model = models.model()
    # Claims that are seldom false, so that runs have some length.
    rare = [t.or_([models.truth(2), models.truth(2), models.truth(1)]) for _ in range(2)]
    claims = {"one": rare[0], "two": rare[1]}
    steps = {"step": tuple(t.or_([rare[0], term]) for term in models.step_claim(model))}
    everything: dict[str, Any] = {**claims, **steps}
    lengths = [n for claim in everything.values() if (n := shortest(model, claim, DEPTH)) is not None]
    found = bmc(model, claims, DEPTH, steps=steps)
    if not lengths:
        assert found.status == "none"
        assert found.depth == DEPTH or found.ended
    else:
        assert (found.status, found.depth) == ("broken", min(lengths))
        assert_is_a_run(model, found, everything[found.claim])


def test_models_by_chance_have_long_runs_and_none_among_them() -> None:
    lengths = set()
    for seed in range(60):
        models = Models(random.Random(seed))
        model = models.model()
        claims = [t.or_([models.truth(2), models.truth(2), models.truth(1)]) for _ in range(4)]
        lengths |= {shortest(model, claim, DEPTH) for claim in claims}
    assert {None, 0, 1, 2, 3} <= lengths


def test_a_model_without_moves_ends_at_once() -> None:
    models = Models(random.Random(0))
    model = models.model()
    still = replace(model, commands=())
    found = bmc(still, {"anything": t.TRUE}, DEPTH)
    assert (found.status, found.depth, found.ended) == ("none", 0, True)


def test_without_time_nothing_is_known() -> None:
    model = ground_model(LEASES, SMALL)
    found = bmc(model, {}, DEPTH, budget_s=0)
    assert (found.status, found.depth) == ("unknown", -1)


def step_terms(model: GroundModel) -> dict[str, tuple[t.Term, ...]]:
    return {name: model.step_claim(f) for name, f in STEPS.items()}


@pytest.mark.parametrize(
    ("variant", "claim", "length"),
    [
        ("live", "taken_over_only_after_expiry", 2),
        ("lease", "stale_worker_never_overrides", 5),
        ("state", "accepted_on_the_current_state", 5),
        ("expired", "accepted_only_while_live", 4),
    ],
)
def test_a_missing_guard_gives_a_shortest_run(variant: str, claim: str, length: int) -> None:
    model = ground_model(VARIANTS[variant], SMALL)
    broken = step_terms(model)[claim]
    found = bmc(model, {}, length, steps={claim: broken})
    assert bmc(model, {}, length - 1, steps={claim: broken}).status == "none"
    assert (found.status, found.claim, found.depth) == ("broken", claim, length)
    assert_is_a_run(model, found, broken)
    assert shortest(model, broken, length) == length


def test_the_lease_protocol_keeps_its_claims_for_a_while() -> None:
    model = ground_model(LEASES, SMALL)
    claims = {name: model.state_claim(f) for name, f in CLAIMS.items()}
    found = bmc(model, claims, 6, steps=step_terms(model))
    assert (found.status, found.depth) == ("none", 6)
