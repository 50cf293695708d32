"""What is claimed of triggers is proved for all sizes, with the switches off that each claim needs."""

from __future__ import annotations

import dataclasses

import pytest

from fencepost.checker.proofs import prove
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Report, Verdict
from fencepost.model.triggers import triggers
from fencepost.properties import TRIGGERS, Claims, Kind

BUDGET_S = 300.0
"""On a busy machine; alone it takes a second."""

NEEDY = sorted(c.name for c in TRIGGERS.promises() if c.needs_off)
SUPPORTING = [c.name for c in TRIGGERS.of_kind(Kind.SUPPORTING)]


def _proved(claims: Claims) -> Report:
    return prove(Subject(triggers, claims), counterexamples=False, budget_s=BUDGET_S)


@pytest.fixture(scope="module")
def proved() -> Report:
    """The proof of all claims."""
    return _proved(TRIGGERS)


def test_every_claim_about_triggers_is_proved_for_all_sizes(proved: Report) -> None:
    assert {f.claim.name: f.verdict.value for f in proved.findings} == {
        c.name: "PROVED" for c in TRIGGERS.promises()
    }
    assert proved.figures["failed_invariants"] == []


def test_what_is_proved_names_the_switches_that_are_off(proved: Report) -> None:
    off = "with record_expired, record_volatile, two_transactions and key_per_retry off"
    assert proved.of("one_instance_per_trigger").bound.endswith(
        f"every combination of the world's switches, {off}"
    )
    assert proved.of("S14").bound.endswith("every combination of the world's switches")


@pytest.fixture(scope="module")
def without_assumptions() -> Report:
    """The proof of the same claims as if none of them needed a switch off."""
    claims = Claims("triggers", {n: c for n, c in TRIGGERS.claims.items() if n not in NEEDY})
    return _proved(claims.joined(dataclasses.replace(TRIGGERS.claims[n], needs_off=()) for n in NEEDY))


def test_exactly_the_claims_that_need_switches_off_are_not_proved_without(
    without_assumptions: Report,
) -> None:
    verdicts = {f.claim.name: f.verdict for f in without_assumptions.findings}
    assert sorted(n for n, v in verdicts.items() if v is not Verdict.PROVED) == NEEDY
    assert {verdicts[n] for n in NEEDY} == {Verdict.UNDETERMINED}


@pytest.mark.parametrize("invariant", SUPPORTING)
def test_every_supporting_invariant_is_needed_by_a_proof(invariant: str) -> None:
    claims = Claims("triggers", {n: c for n, c in TRIGGERS.claims.items() if n != invariant})
    report = _proved(claims)
    assert [f.claim.name for f in report.findings if f.verdict is not Verdict.PROVED] != []
