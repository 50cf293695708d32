"""Triggers and notifications: what is claimed of them is explored, exercised somewhere, and able to fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.checker.explore import check
from fencepost.checker.native import explore
from fencepost.checker.plain import search
from fencepost.checker.subject import BUILT_IN, Subject
from fencepost.checker.verdicts import Verdict
from fencepost.model.ground import ground_model
from fencepost.model.triggers import triggers
from fencepost.model.triggers.scopes import SWEEP, WHAT_IF
from fencepost.model.triggers.variants import VARIANTS
from fencepost.properties import TRIGGERS, Kind
from fencepost.properties.needs_off import WHY_TRIGGERS

PINNED = json.loads((Path(__file__).parent / "pinned_triggers.json").read_text())
"""By scope: distinct states, transitions, cuts, and the claims whose premise is out of reach there.

A change of a number needs its reason in the commit.
"""

SUBJECT = Subject(triggers, TRIGGERS)

TINY = {
    "as it should be": ("crash", "reply_lost", "trigger_duplicated", "notice_duplicated", "payload_changed"),
    "in two transactions": ("two_transactions",),
    "forgetful": ("record_expired", "record_volatile"),
    "keyed anew": ("key_per_retry", "trigger_lost", "notice_lost"),
}
"""Switches under which both searches are compared."""


def test_every_scope_is_pinned() -> None:
    assert set(PINNED) == set(triggers.scopes)


@pytest.mark.parametrize("scope", list(triggers.scopes))
def test_no_claim_is_refuted_in_a_scope_and_those_that_it_exercises_hold(scope: str) -> None:
    report = check(SUBJECT, scope=scope, traces=False)
    counts = {k: report.figures[k] for k in ("states", "transitions", "cut")}
    idle = [f.claim.name for f in report.findings if f.verdict is Verdict.UNDETERMINED]
    assert [f.claim.name for f in report.refuted] == []
    assert {**counts, "not_exercised": idle} == PINNED[scope]
    assert all(f.why.startswith("never exercised") for f in report.findings if f.claim.name in idle)


@pytest.mark.parametrize("claim", [c.name for c in TRIGGERS.promises()])
def test_every_claim_is_exercised_in_the_scopes_that_are_looked_at_by_default(claim: str) -> None:
    assert any(claim not in PINNED[scope]["not_exercised"] for scope in BUILT_IN["triggers"].scopes)


def test_every_claim_is_broken_by_a_variant() -> None:
    broken = {claim for v in VARIANTS.values() for claim in v.breaks}
    assert [c.name for c in TRIGGERS.promises() if c.name not in broken] == []


def test_every_witness_and_every_supporting_invariant_is_for_a_claim() -> None:
    named = {w for c in TRIGGERS.promises() for w in c.witnesses}
    assert {c.name for c in TRIGGERS.of_kind(Kind.SOMETIMES)} == named
    assert all(TRIGGERS.witnesses_of(claim_id) for claim_id in TRIGGERS.ids())
    assert all(set(c.supports) <= set(TRIGGERS.ids()) for c in TRIGGERS.of_kind(Kind.SUPPORTING))


def test_every_fault_that_a_claim_needs_off_has_its_reason() -> None:
    assert set(WHY_TRIGGERS) == {(c.name, s) for c in TRIGGERS.promises() for s in c.needs_off}


def test_every_fault_that_is_off_in_all_scopes_or_in_those_for_sweeps_is_tried() -> None:
    on_somewhere = {s for name in SWEEP for s in triggers.scopes[name].switches}
    assert set(triggers.switches) - on_somewhere == set(WHAT_IF)


@pytest.mark.parametrize("switch", WHAT_IF)
def test_a_fault_breaks_exactly_the_claims_that_need_it_off_and_exercises_the_others(switch: str) -> None:
    reports = [check(SUBJECT, scope=scope, traces=False) for scope in WHAT_IF[switch]]
    assert all(r.figures["complete"] for r in reports)
    broken = {f.claim.name for r in reports for f in r.refuted}
    reached = {w for r in reports for w in r.figures["witnesses"]}
    assert broken == {c.name for c in TRIGGERS.promises() if switch in c.needs_off}
    assert [c.name for c in TRIGGERS.promises() if not set(c.witnesses) <= reached] == []


@pytest.mark.parametrize("kind", TINY)
def test_the_plain_search_agrees_with_the_compiled_one(kind: str) -> None:
    scope = triggers.scopes["small"].but(
        name="tiny",
        sizes={**dict.fromkeys(triggers.scopes["small"].sizes, 1), "event": 2, "instance": 2},
        bounds={"lease_version": 1, "state_version": 1, "target_version": 1},
        switches=frozenset(TINY[kind]),
    )
    plain = search(triggers, scope)
    compiled = explore(ground_model(triggers, scope))  # `check` would leave out history that no claim reads
    assert plain.complete
    assert compiled.complete
    counts = (compiled.states, compiled.transitions, sum(compiled.cuts.values()))
    assert (plain.states, plain.transitions, plain.cut) == counts
