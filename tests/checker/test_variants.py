"""Teeth: each variant of each protocol breaks the claims that it names, by a shortest run of that length."""

from __future__ import annotations

from functools import cache

import pytest

from fencepost.checker.changed import Base
from fencepost.checker.explore import check, without_unread_history
from fencepost.checker.native import StateClaim, StepClaim, explore
from fencepost.checker.subject import BUILT_IN

EVERY = [(model, name) for model, built_in in BUILT_IN.items() for name in built_in.variants]


def scope_of(model: str, name: str) -> str:
    return BUILT_IN[model].variants[name].scope or BUILT_IN[model].sweep_scopes[0]


@cache
def base(model: str, scope: str) -> Base:
    protocol = BUILT_IN[model].protocol
    return Base(protocol, protocol.scopes[scope])


def broken_by(model: str, name: str, claims: list[str]) -> dict[str, int]:
    """By claim, the length of the shortest run: the search ends when the last of these claims is broken.

    Only what a variant changes is grounded anew.
    """
    built_in = BUILT_IN[model]
    chosen = built_in.subject().chosen(claims)
    variant = built_in.variants[name]
    ground, terms = base(model, scope_of(model, name)).changed(variant.protocol, chosen)
    ground, terms = without_unread_history(ground, terms)
    looked = [StepClaim(n, x) if isinstance(x, tuple) else StateClaim(n, x) for n, x in terms.items()]
    found = explore(ground, claims=looked)
    assert found.faults == []
    return {n: hit.depth for n, hit in found.hits.items()}


@pytest.mark.parametrize(("model", "name"), EVERY)
def test_a_variant_breaks_the_claims_that_it_names_at_that_length(model: str, name: str) -> None:
    breaks = BUILT_IN[model].variants[name].breaks
    assert broken_by(model, name, list(breaks)) == dict(breaks)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "name"), EVERY)
def test_a_variant_breaks_no_other_claim(model: str, name: str) -> None:
    report = check(BUILT_IN[model].subject(name), scope=scope_of(model, name), traces=False)
    assert report.notes == ()
    breaks = BUILT_IN[model].variants[name].breaks
    assert {f.claim.name: f.details["steps"] for f in report.refuted} == dict(breaks)
