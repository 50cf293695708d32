"""What is claimed of recovery is proved for all sizes, with a key or where nobody tampers."""

from __future__ import annotations

import dataclasses

import pytest

from fencepost.checker.proofs import prove
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Report, Verdict
from fencepost.model.recovery import recovery
from fencepost.properties import RECOVERY, Claims
from fencepost.properties.recovery import KEYLESS

BUDGET_S = 300.0
"""On a busy machine; alone it takes some seconds."""

NEEDY = sorted(c.name for c in RECOVERY.promises() if c.needs_off)


def _proved(*needs_off: str) -> Report:
    """The proof of the same claims as if those that need a key needed these switches off."""
    claims = Claims("recovery", {n: c for n, c in RECOVERY.claims.items() if n not in NEEDY})
    others = claims.joined(dataclasses.replace(RECOVERY.claims[n], needs_off=needs_off) for n in NEEDY)
    return prove(Subject(recovery, others), counterexamples=False, budget_s=BUDGET_S)


def test_every_claim_about_recovery_is_proved_for_all_sizes() -> None:
    proved = prove(Subject(recovery, RECOVERY), counterexamples=False, budget_s=BUDGET_S)
    assert {f.claim.name: f.verdict.value for f in proved.findings} == {
        c.name: "PROVED" for c in RECOVERY.promises()
    }
    assert proved.figures["failed_invariants"] == []
    assert proved.of("recovery_repeats_nothing").bound.endswith("switches, with mac_key_missing off")
    assert proved.of("a_damaged_checkpoint_is_never_resumed").bound.endswith("of the world's switches")


def test_where_nobody_tampers_no_key_is_needed() -> None:
    proved = _proved("checkpoint_tampered")
    assert [f.claim.name for f in proved.findings if f.verdict is not Verdict.PROVED] == []


@pytest.fixture(scope="module")
def without_assumptions() -> Report:
    """The proof of the same claims as if none of them needed a key."""
    return _proved()


@pytest.mark.parametrize("name", NEEDY)
def test_no_claim_that_needs_a_key_is_proved_without(without_assumptions: Report, name: str) -> None:
    assert RECOVERY.claims[name].needs_off == KEYLESS
    assert without_assumptions.of(name).verdict is Verdict.UNDETERMINED


def test_the_other_claims_are_proved_all_the_same(without_assumptions: Report) -> None:
    names = [f.claim.name for f in without_assumptions.findings if f.verdict is Verdict.PROVED]
    assert sorted(names) == sorted(c.name for c in RECOVERY.promises() if not c.needs_off)
