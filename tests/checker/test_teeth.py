"""For each claim, by how many of the single changes that were tried it is broken."""

from __future__ import annotations

import pytest

from fencepost.checker.subject import BUILT_IN, Subject, load
from fencepost.checker.teeth import FIRST, ORDER, teeth
from fencepost.checker.verdicts import Verdict
from fencepost.model import State
from fencepost.model.mutate import mutants
from fencepost.properties import Claims

from .test_together import counting


def test_a_claim_that_a_change_breaks_can_fail_and_the_change_is_named() -> None:
    finding = teeth(counting(), scopes=["other"]).of("B")

    assert finding.verdict is Verdict.CAN_FAIL
    assert "count: without `when(s.m == 0)`" in finding.details["broken_by"]
    assert finding.why.startswith(f"broken by {len(finding.details['broken_by'])} of ")


def test_a_claim_that_nothing_breaks_is_undetermined() -> None:
    finding = teeth(counting(), scopes=["low"]).of("A")

    assert (finding.verdict, finding.details["broken_by"]) == (Verdict.UNDETERMINED, [])
    assert f"none of {finding.details['tried']} single changes tried broke it" in finding.why


def test_what_the_budget_left_no_time_for_is_said() -> None:
    finding = teeth(counting(), scopes=["low"], budget_s=0.0).of("A")

    assert finding.verdict is Verdict.UNDETERMINED
    assert "the budget left no time" in finding.why


@pytest.mark.parametrize("model", FIRST)
def test_the_changes_that_are_tried_first_exist(model: str) -> None:
    names = [m.name for m in mutants(BUILT_IN[model].protocol, ORDER)]
    scopes = BUILT_IN[model].protocol.scopes

    assert [start for _, start in FIRST[model] if not any(n.startswith(start) for n in names)] == []
    assert [scope for scope, _ in FIRST[model] if scope not in scopes] == []


# That a variant breaks each claim, the short run sees elsewhere.
@pytest.mark.parametrize(
    "model", ["core", *(pytest.param(m, marks=pytest.mark.slow) for m in BUILT_IN if m != "core")]
)
def test_every_claim_is_broken_by_what_is_tried_first(model: str) -> None:
    report = teeth(load(model=model), kinds=())

    assert [f.claim.name for f in report.findings if f.verdict is not Verdict.CAN_FAIL] == []


def test_a_claim_that_is_false_in_the_unchanged_model_has_not_been_seen_to_fail_by_a_change() -> None:
    report = teeth(counting(), scopes=["low", "high"])
    finding = report.of("C")

    assert (finding.verdict, finding.details["broken_by"]) == (Verdict.UNDETERMINED, [])
    assert "broken already in the unchanged model, in scope high" in finding.why
    assert report.of("B").verdict is Verdict.UNDETERMINED


def test_a_claim_that_is_false_only_with_a_switch_on_that_it_needs_off_can_still_fail() -> None:
    subject = counting()
    own = Claims("own")

    @own.always("E", needs_off=("second",))
    def the_second_stays(s: State) -> object:
        """The second number stays where it is."""
        return s.m == 0

    found = teeth(Subject(subject.protocol, own), scopes=["low", "other"]).of("E")
    assert "unchanged model" not in found.why


def test_two_scopes_of_one_name_are_two_scopes() -> None:
    subject = counting()
    scope = subject.scope("other")
    finding = teeth(subject, scopes=[scope, scope.but(bounds={"number": 0})]).of("B")

    assert finding.verdict is Verdict.CAN_FAIL


def test_a_variant_says_nothing_of_claims_that_promise_nothing_in_its_scope(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its scope has a fault on against which most of the claims that it breaks say nothing."""
    monkeypatch.setattr("fencepost.checker.teeth.FIRST", {})
    built_in = BUILT_IN["recovery"]
    variant = built_in.variants["hash-not-compared-without-a-key"]
    on = built_in.protocol.scopes[variant.scope].switches
    promised = {n for n in variant.breaks if not on & set(built_in.claims.claims[n].needs_off)}
    assert set() < promised < set(variant.breaks)

    report = teeth(load(model="recovery"), kinds=())
    named = {f.claim.name for f in report.findings if variant.name in f.details.get("variants", ())}
    assert named <= promised
