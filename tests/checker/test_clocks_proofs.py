"""What is claimed of clocks is proved for all sizes, and what a variant breaks is not."""

from __future__ import annotations

import pytest

from fencepost.checker.proofs import prove
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Verdict
from fencepost.model.clocks import clocks
from fencepost.model.clocks.variants import VARIANTS
from fencepost.properties import CLOCKS

BUDGET_S = 300.0
"""On a busy machine; alone it takes about a second."""


def test_every_claim_about_clocks_is_proved_for_all_sizes() -> None:
    report = prove(Subject(clocks, CLOCKS), counterexamples=False, budget_s=BUDGET_S)
    assert {f.claim.name: f.verdict.value for f in report.findings} == {
        c.name: "PROVED" for c in CLOCKS.promises()
    }
    assert report.figures["failed_invariants"] == []
    assert "every combination of the world's switches" in report.figures["bound"]


@pytest.mark.parametrize("name", ["commits-under-any-version", "goes-by-the-clock", "counts-from-the-answer"])
def test_no_claim_that_a_variant_breaks_is_proved_of_it(name: str) -> None:
    variant = VARIANTS[name]
    subject = Subject(variant.protocol, CLOCKS, variant=name, unbroken=clocks)
    report = prove(subject, claims=list(variant.breaks), counterexamples=False, budget_s=BUDGET_S)
    assert {f.verdict for f in report.findings} == {Verdict.UNDETERMINED}
