"""What is claimed of replay is proved for all sizes, and what a variant breaks is not."""

from __future__ import annotations

import pytest

from fencepost.checker.proofs import prove
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Verdict
from fencepost.model.replay import replay
from fencepost.model.replay.variants import VARIANTS
from fencepost.properties import REPLAY

BUDGET_S = 300.0
"""On a busy machine; alone it takes some five seconds."""


def test_every_claim_about_replay_is_proved_for_all_sizes() -> None:
    report = prove(Subject(replay, REPLAY), counterexamples=False, budget_s=BUDGET_S)
    assert {f.claim.name: f.verdict.value for f in report.findings} == {
        c.name: "PROVED" for c in REPLAY.promises()
    }
    assert report.figures["failed_invariants"] == []
    assert report.figures["bound"].endswith("every combination of the world's switches")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["compares-only-the-name", "settles-blindly", "calls-again"])
def test_no_claim_that_a_variant_breaks_is_proved_of_it(name: str) -> None:
    variant = VARIANTS[name]
    subject = Subject(variant.protocol, REPLAY, variant=name, unbroken=replay)
    report = prove(subject, claims=list(variant.breaks), counterexamples=False, budget_s=BUDGET_S)
    assert {f.verdict for f in report.findings} == {Verdict.UNDETERMINED}
