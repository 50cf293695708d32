"""Teeth: each claim about a workflow is shown able to fail, by variants that break it and no other."""

from __future__ import annotations

import pytest

from fencepost.checker.explore import check
from fencepost.checker.subject import Subject
from fencepost.model.mutate import REFUSAL, mutants, without
from fencepost.model.workflow import workflow
from fencepost.model.workflow.variants import VARIANTS
from fencepost.model.workflow.variants_of_steps import COMMITS
from fencepost.properties import REGISTRY, WORKFLOW

GATE_2 = ("stale-lease-version", "not-the-owner", "finished", "lease-expired", "stale-state-version")


def test_every_claim_is_broken_by_a_variant() -> None:
    broken = {claim for v in VARIANTS.values() for claim in v.breaks}
    assert [c.name for c in WORKFLOW.promises() if c.name not in broken] == []


def test_a_variant_that_breaks_nothing_says_that_it_is_correct() -> None:
    assert [v.name for v in VARIANTS.values() if v.story.startswith("Correct") != (not v.breaks)] == []


@pytest.mark.parametrize(
    "commit",
    [c if c in ("start", "succeed", "finish") else pytest.param(c, marks=pytest.mark.slow) for c in COMMITS],
)
def test_both_locks_of_gate_2_open_let_a_former_owner_through_in_every_commit(commit: str) -> None:
    opened = without(workflow, f"former-owner-{commit}", **{commit: GATE_2[:2]})
    needed = workflow.actions[commit].switch
    scope = workflow.scopes["late"].but(
        name="two owners",
        sizes={"worker": 2, "step": 1, "call": 1, "request": 1, "fingerprint": 1},
        bounds={**workflow.scopes["late"].bounds, "intent_version": 2},
        switches={"keyed", "cancels"} | ({needed} if needed else set()),
    )
    report = check(Subject(opened, WORKFLOW), scope=scope, claims=["S1"], traces=False)
    assert [f.claim.name for f in report.refuted] == ["stale_worker_never_overrides"]


def test_refusals_come_in_the_registry_s_order_of_precedence() -> None:
    ranks = {r.code: i for i, r in enumerate(REGISTRY)}
    for commit in COMMITS:
        codes = [m.text.split('"')[1] for m in mutants(workflow, (REFUSAL,)) if m.action == commit]
        gate, own = ([c for c in codes if (c in GATE_2) is first] for first in (True, False))
        order = [ranks[c] for c in (*gate, *own)]
        assert order == sorted(order), commit
