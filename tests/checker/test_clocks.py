"""Clocks: what is claimed of them is explored, exercised somewhere, and shown able to fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.checker.explore import check
from fencepost.checker.native import explore
from fencepost.checker.plain import search
from fencepost.checker.subject import BUILT_IN, Subject
from fencepost.checker.verdicts import Verdict
from fencepost.model import State
from fencepost.model.clocks import clocks
from fencepost.model.clocks.scopes import GROUPS, SWEEP, WHAT_IF
from fencepost.model.clocks.variants import VARIANTS
from fencepost.model.ground import ground_model
from fencepost.properties import CLOCKS, Claims, Kind
from fencepost.properties.needs_off import WHY_CLOCKS

PINNED = json.loads((Path(__file__).parent / "pinned_clocks.json").read_text())
"""By scope: distinct states, transitions, cuts, and the claims whose premise is out of reach there.

A change of a number needs its reason in the commit.
"""


def test_every_scope_is_pinned() -> None:
    assert set(PINNED) == set(clocks.scopes)


@pytest.mark.parametrize(
    "scope",
    [pytest.param(n, marks=pytest.mark.slow) if n in GROUPS["large"] else n for n in clocks.scopes],
)
def test_no_claim_is_refuted_in_a_scope_and_those_that_it_exercises_hold(scope: str) -> None:
    report = check(Subject(clocks, CLOCKS), scope=scope, traces=False)
    counts = {k: report.figures[k] for k in ("states", "transitions", "cut")}
    idle = [f.claim.name for f in report.findings if f.verdict is Verdict.UNDETERMINED]
    assert report.notes == ()
    assert [f.claim.name for f in report.refuted] == []
    assert {**counts, "not_exercised": idle} == PINNED[scope]
    assert all(f.why.startswith("never exercised") for f in report.findings if f.claim.name in idle)


@pytest.mark.parametrize("claim", [c.name for c in CLOCKS.promises()])
def test_every_claim_is_exercised_in_a_scope_that_is_looked_at_by_default_and_in_one_for_sweeps(
    claim: str,
) -> None:
    for looked_at in (BUILT_IN["clocks"].scopes, SWEEP):
        assert any(claim not in PINNED[scope]["not_exercised"] for scope in looked_at)


def test_every_witness_and_every_supporting_invariant_is_for_a_claim() -> None:
    named = {w for c in CLOCKS.promises() for w in c.witnesses}
    assert {c.name for c in CLOCKS.of_kind(Kind.SOMETIMES)} == named
    assert all(set(c.supports) <= set(CLOCKS.ids()) for c in CLOCKS.of_kind(Kind.SUPPORTING))


def test_every_claim_is_broken_by_a_variant() -> None:
    broken = {claim for v in VARIANTS.values() for claim in v.breaks}
    assert [c.name for c in CLOCKS.promises() if c.name not in broken] == []


def test_every_fault_is_in_a_scope_where_every_claim_holds_or_is_tried_apart() -> None:
    on_somewhere = {s for name in SWEEP for s in clocks.scopes[name].switches}
    assert on_somewhere | set(WHAT_IF) == set(clocks.switches)
    assert not on_somewhere & set(WHAT_IF)


@pytest.mark.parametrize("switch", WHAT_IF)
def test_a_fault_breaks_exactly_the_claims_that_need_it_off_and_exercises_the_others(switch: str) -> None:
    reports = [check(Subject(clocks, CLOCKS), scope=scope, traces=False) for scope in WHAT_IF[switch]]
    broken = {f.claim.name for r in reports for f in r.refuted}
    reached = {w for r in reports for w in r.figures["witnesses"]}
    assert broken == {c.name for c in CLOCKS.promises() if switch in c.needs_off}
    assert [c.name for c in CLOCKS.promises() if not set(c.witnesses) <= reached] == []


def test_every_fault_that_a_claim_needs_off_has_its_reason() -> None:
    assert set(WHY_CLOCKS) == {(c.name, s) for c in CLOCKS.promises() for s in c.needs_off}


BOLD = Claims("bold", about="clocks")


@BOLD.each_step(witnesses=("a_second_lease_is_given",))
def an_effect_takes_place_only_under_the_lease_that_stands(before: State, after: State) -> object:
    """No effect of a former owner takes place once its lease was taken over."""
    return after.effects == before.effects or after.fence == before.lease_version


@BOLD.sometimes()
def a_second_lease_is_given(s: State) -> object:
    """A lease was taken over."""
    return s.lease_version == 2


def test_a_lease_alone_stops_no_effect_even_when_all_clocks_agree() -> None:
    """The effect started in time and arrives after the takeover: no clock is wrong, only the network slow."""
    scope = clocks.scopes["quick"].but(name="right clocks", switches=frozenset())
    report = check(Subject(clocks, BOLD), scope=scope)
    (found,) = report.refuted
    assert found.trace is not None
    assert [step.label.partition("(")[0] for step in found.trace.steps][-1] == "take_effect"


@pytest.mark.parametrize(
    "switches", [("clock_skewed",), ("clock_stepped_back", "tokens_exhausted"), ("partitioned",)]
)
def test_the_plain_search_agrees_with_the_compiled_one(switches: tuple[str, ...]) -> None:
    bounds = {"moment": 2, "tick": 1, "lease_version": 2, "state_version": 1}
    scope = clocks.scopes["quick"].but(name="tiny", bounds=bounds, switches=frozenset(switches))
    plain = search(clocks, scope)
    compiled = explore(ground_model(clocks, scope))
    assert plain.complete
    assert compiled.complete
    counts = (compiled.states, compiled.transitions, sum(compiled.cuts.values()))
    assert (plain.states, plain.transitions, plain.cut) == counts
