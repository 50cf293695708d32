"""What is claimed of outside effects is proved for all sizes, with the switches off that each claim needs."""

from __future__ import annotations

import dataclasses

import pytest

from fencepost.checker.proofs import prove
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Report, Verdict
from fencepost.model.effects import effects
from fencepost.properties import EFFECTS, Claims

BUDGET_S = 300.0
"""On a busy machine; alone it takes some ten seconds."""

NEEDY = sorted(c.name for c in EFFECTS.promises() if c.needs_off)


@pytest.fixture(scope="module")
def proved() -> Report:
    """The proof of all claims."""
    return prove(Subject(effects, EFFECTS), counterexamples=False, budget_s=BUDGET_S)


@pytest.mark.slow  # they stand in a table on a page, which the short run compares
def test_every_claim_about_effects_is_proved_for_all_sizes(proved: Report) -> None:
    assert {f.claim.name: f.verdict.value for f in proved.findings} == {
        c.name: "PROVED" for c in EFFECTS.promises()
    }
    assert proved.figures["failed_invariants"] == []


@pytest.mark.slow
def test_what_is_proved_names_the_switches_that_are_off(proved: Report) -> None:
    off = "with record_expired, record_volatile and two_transactions off"
    found = proved.of("same_key_same_intent")
    assert found.bound.endswith(f"every combination of the world's switches, {off}")
    assert found.why.endswith(f"obligations by induction, {off}")
    assert proved.of("S11").bound.endswith("switches, with record_volatile off")
    assert proved.of("S25").bound.endswith("every combination of the world's switches")
    assert proved.figures["bound"].endswith("switches, with those off that the claim needs off")


@pytest.fixture(scope="module")
def without_assumptions() -> Report:
    """The proof of the same claims as if none of them needed a switch off."""
    claims = Claims("effects", {n: c for n, c in EFFECTS.claims.items() if n not in NEEDY})
    bold = claims.joined(dataclasses.replace(EFFECTS.claims[n], needs_off=()) for n in NEEDY)
    return prove(Subject(effects, bold), counterexamples=False, budget_s=BUDGET_S)


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDY)
def test_no_claim_is_proved_without_the_switches_off_that_it_needs(
    without_assumptions: Report, name: str
) -> None:
    assert without_assumptions.of(name).verdict is Verdict.UNDETERMINED


@pytest.mark.slow
def test_the_other_claims_are_proved_all_the_same(without_assumptions: Report) -> None:
    names = [f.claim.name for f in without_assumptions.findings if f.verdict is Verdict.PROVED]
    assert sorted(names) == sorted(c.name for c in EFFECTS.promises() if not c.needs_off)
