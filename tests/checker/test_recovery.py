"""Recovery: what is claimed of it is explored, exercised somewhere, and shown able to fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.checker.explore import check
from fencepost.checker.native import explore
from fencepost.checker.plain import search
from fencepost.checker.subject import Subject, built_in
from fencepost.checker.verdicts import Report, Verdict
from fencepost.model import Scope
from fencepost.model.ground import ground_model
from fencepost.model.recovery import recovery
from fencepost.model.recovery.scopes import CHECKPOINTS, DEFINITIONS, WHAT_IF
from fencepost.model.recovery.variants import VARIANTS
from fencepost.properties import RECOVERY
from fencepost.properties.needs_off import WHY_RECOVERY
from fencepost.properties.recovery import KEYLESS

PINNED = json.loads((Path(__file__).parent / "pinned_recovery.json").read_text())
"""By scope: distinct states, transitions, cuts, and the claims whose premise is out of reach there.

A change of a number needs its reason in the commit.
"""

FAULTS = {
    "none": (),
    "crashes": ("crash", "pause"),
    "answers lost": ("reply_lost",),
    "checkpoints": CHECKPOINTS,
    "checkpoints without a key": (*CHECKPOINTS, "mac_key_missing"),
    "definitions": DEFINITIONS,
}
"""What goes wrong in the scopes that are searched twice."""

ONLY_IN_A_SWEEP = ["refused_changes_nothing", "a_refusal_leaves_the_checkpoint_alone"]
"""Claims that no variant breaks: the sweep does, with a refusal that is answered and not obeyed."""


def test_every_scope_is_pinned() -> None:
    assert set(PINNED) == set(recovery.scopes)


@pytest.mark.parametrize(
    "scope",
    [pytest.param(s, marks=pytest.mark.slow if s == "answers-lost" else ()) for s in recovery.scopes],
)
def test_no_claim_is_refuted_in_a_scope_and_those_that_it_exercises_hold(scope: str) -> None:
    report = check(Subject(recovery, RECOVERY), scope=scope, traces=False)
    counts = {k: report.figures[k] for k in ("states", "transitions", "cut")}
    idle = [f.claim.name for f in report.findings if f.verdict is Verdict.UNDETERMINED]
    assert [f.claim.name for f in report.refuted] == []
    assert {**counts, "not_exercised": idle} == PINNED[scope]
    assert all(f.why.startswith("never exercised") for f in report.findings if f.claim.name in idle)


@pytest.mark.parametrize("claim", [c.name for c in RECOVERY.promises()])
def test_every_claim_is_exercised_where_one_looks_by_default(claim: str) -> None:
    among = built_in("recovery").scopes
    assert any(claim not in PINNED[scope]["not_exercised"] for scope in among)


def test_without_a_key_accidents_and_other_versions_are_found_all_the_same() -> None:
    idle = PINNED["no-key"]["not_exercised"]
    assert idle == [c.name for c in RECOVERY.promises() if c.needs_off == KEYLESS]


@pytest.mark.parametrize("claim_id", RECOVERY.ids())
def test_each_claim_about_recovery_has_a_witness(claim_id: str) -> None:
    assert RECOVERY.witnesses_of(claim_id)


def _variant(name: str) -> Report:
    variant = VARIANTS[name]
    subject = Subject(variant.protocol, RECOVERY, variant=name, unbroken=recovery)
    return check(subject, scope=variant.scope, traces=False)


def test_every_claim_is_broken_by_a_variant_or_in_a_sweep() -> None:
    broken = {claim for v in VARIANTS.values() for claim in v.breaks}
    assert [c.name for c in RECOVERY.promises() if c.name not in broken] == ONLY_IN_A_SWEEP


def test_compared_with_the_raised_lease_version_no_former_owner_s_checkpoint_is_ever_resumed() -> None:
    witness = "a_checkpoint_of_a_former_owner_is_resumed"
    kept = check(Subject(recovery, RECOVERY), scope="quick", traces=False).figures["witnesses"]
    assert witness in kept
    assert witness not in _variant("lease-version-of-the-row").figures["witnesses"]


@pytest.mark.parametrize(
    "switch", [pytest.param(s, marks=pytest.mark.slow if s == "pause" else ()) for s in WHAT_IF]
)
def test_a_fault_breaks_exactly_the_claims_that_need_it_off(switch: str) -> None:
    reports = [check(Subject(recovery, RECOVERY), scope=scope, traces=False) for scope in WHAT_IF[switch]]
    broken = {f.claim.name for report in reports for f in report.refuted}
    assert broken == {c.name for c in RECOVERY.promises() if switch in c.needs_off}


def test_every_fault_is_in_a_scope_where_every_claim_holds_or_is_tried_apart() -> None:
    keyed = [scope.switches for scope in recovery.scopes.values() if not scope.switches & set(KEYLESS)]
    held = {switch for switches in keyed for switch in switches}
    assert held | set(WHAT_IF) == set(recovery.switches)
    assert not held & set(WHAT_IF)


def test_every_fault_that_a_claim_needs_off_has_its_reason() -> None:
    assert set(WHY_RECOVERY) == {(c.name, s) for c in RECOVERY.promises() for s in c.needs_off}


def _tiny(*switches: str) -> Scope:
    return recovery.scopes["small"].but(
        name="tiny",
        bounds={"lease_version": 2, "state_version": 2, "incarnation": 0, "step": 1, "definition": 1},
        sizes={"worker": 1 if "checkpoint_replayed" in switches else 2},
        switches=frozenset(switches),
    )


@pytest.mark.parametrize(
    "kind",
    [
        "none",
        "crashes",
        "definitions",
        *(
            pytest.param(k, marks=pytest.mark.slow)
            for k in FAULTS
            if k.startswith(("answers", "checkpoints"))
        ),
    ],
)
def test_the_plain_search_agrees_with_the_compiled_one_whatever_goes_wrong(kind: str) -> None:
    scope = _tiny(*FAULTS[kind])
    if "definition_changed" in scope.switches:
        scope = scope.but(sizes={"worker": 1}, bounds={**scope.bounds, "incarnation": 2})
    plain = search(recovery, scope)
    compiled = explore(ground_model(recovery, scope))  # `check` would leave out history that no claim reads
    assert plain.complete
    assert compiled.complete
    counts = (compiled.states, compiled.transitions, sum(compiled.cuts.values()))
    assert (plain.states, plain.transitions, plain.cut) == counts
