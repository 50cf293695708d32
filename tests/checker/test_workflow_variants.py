"""Teeth: each claim about a workflow is shown able to fail, by variants that break it and no other."""

from __future__ import annotations

from functools import cache

import pytest

from fencepost.checker.changed import Base
from fencepost.checker.explore import ALIKE, check, without_unread_history
from fencepost.checker.native import StateClaim, StepClaim, explore
from fencepost.checker.subject import Subject
from fencepost.model.fresh import unused_are_alike
from fencepost.model.mutate import REFUSAL, mutants, without
from fencepost.model.variants import Variant
from fencepost.model.workflow import workflow
from fencepost.model.workflow.variants import VARIANTS
from fencepost.model.workflow.variants_of_steps import COMMITS
from fencepost.properties import REGISTRY, WORKFLOW

GATE_2 = ("stale-lease-version", "not-the-owner", "finished", "lease-expired", "stale-state-version")

CHECKED_AS_A_PERSON_WOULD = ("start-ignores-a-cancel", "undoes-in-rising-order", "hands-over-what-it-knows")
"""Variants of which a whole check is compared with the short way that the tests take."""


@cache
def _base(scope: str) -> Base:
    return Base(workflow, workflow.scopes[scope])


def _broken_by(variant: Variant) -> dict[str, int]:
    """By claim, the length of the shortest run. Only what a variant changes is grounded anew."""
    model, terms = _base(variant.scope).changed(variant.protocol, WORKFLOW.promises())
    model, terms = without_unread_history(model, terms)
    claims = [StepClaim(n, x) if isinstance(x, tuple) else StateClaim(n, x) for n, x in terms.items()]
    found = explore(model, claims=[*claims, StateClaim(ALIKE, unused_are_alike(model))], seeks=[])
    assert found.complete
    assert found.faults == []
    assert ALIKE not in found.hits
    return {name: hit.depth for name, hit in found.hits.items()}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_breaks_exactly_the_claims_that_it_names_at_that_length(name: str) -> None:
    assert _broken_by(VARIANTS[name]) == dict(VARIANTS[name].breaks)


@pytest.mark.parametrize("name", CHECKED_AS_A_PERSON_WOULD)
def test_a_whole_check_of_a_variant_says_the_same(name: str) -> None:
    variant = VARIANTS[name]
    subject = Subject(variant.protocol, WORKFLOW, variant=name, unbroken=workflow)
    report = check(subject, scope=variant.scope, traces=False)
    assert report.notes == ()
    assert {f.claim.name: f.details["steps"] for f in report.refuted} == dict(variant.breaks)


def test_every_claim_is_broken_by_a_variant() -> None:
    broken = {claim for v in VARIANTS.values() for claim in v.breaks}
    assert [c.name for c in WORKFLOW.promises() if c.name not in broken] == []


def test_a_variant_that_breaks_nothing_says_that_it_is_correct() -> None:
    assert [v.name for v in VARIANTS.values() if v.story.startswith("Correct") != (not v.breaks)] == []


@pytest.mark.parametrize("commit", COMMITS)
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
