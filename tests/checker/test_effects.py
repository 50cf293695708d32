"""Outside effects: what is claimed of them is explored, exercised somewhere, and shown able to fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.checker.explore import check
from fencepost.checker.native import explore
from fencepost.checker.plain import search
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Verdict
from fencepost.model import ModelError, Scope
from fencepost.model.effects import effects
from fencepost.model.effects.variants import VARIANTS
from fencepost.model.ground import ground_model
from fencepost.model.mutate import with_lines
from fencepost.properties import EFFECTS

PINNED = json.loads((Path(__file__).parent / "pinned_effects.json").read_text())
"""By scope: distinct states, transitions, cuts, and the claims whose premise is out of reach there.

A change of a number needs its reason in the commit.
"""

CLASSES = {
    "opaque": (),
    "queryable": ("queryable",),
    "keyed": ("keyed", "declining"),
    "fenced": ("fenced",),
    "revisioned": ("revisioned", "revision_moved"),
    "fenced and queryable": ("fenced", "queryable"),
    "fenced, keyed and revisioned": ("fenced", "keyed", "revisioned"),
    "keyed in two transactions": ("keyed", "two_transactions"),
    "keyed and forgetful": ("fenced", "keyed", "record_volatile", "record_expired"),
    "keyed anew": ("keyed", "key_per_retry", "request_lost"),
}
"""Kinds of downstreams by the switches that make them."""


def test_every_scope_is_pinned() -> None:
    assert set(PINNED) == set(effects.scopes)


IN_THE_TABLE = ("small", "rederived", "fenced-queryable")
"""Scopes of which a table on a page speaks, which the short run compares."""


@pytest.mark.parametrize(
    "scope",
    [pytest.param(s, marks=pytest.mark.slow if s in IN_THE_TABLE else ()) for s in effects.scopes],
)
def test_no_claim_is_refuted_in_a_scope_and_those_that_it_exercises_hold(scope: str) -> None:
    report = check(Subject(effects, EFFECTS), scope=scope, traces=False)
    counts = {k: report.figures[k] for k in ("states", "transitions", "cut")}
    idle = [f.claim.name for f in report.findings if f.verdict is Verdict.UNDETERMINED]
    assert [f.claim.name for f in report.refuted] == []
    assert {**counts, "not_exercised": idle} == PINNED[scope]
    assert all(f.why.startswith("never exercised") for f in report.findings if f.claim.name in idle)


@pytest.mark.parametrize("claim", [c.name for c in EFFECTS.promises()])
def test_every_claim_is_exercised_in_some_scope(claim: str) -> None:
    assert any(claim not in facts["not_exercised"] for facts in PINNED.values())


def test_every_claim_that_no_fault_breaks_alone_is_broken_by_a_variant_or_a_fault() -> None:
    broken = {claim for v in VARIANTS.values() for claim in v.breaks}
    left = [c.name for c in EFFECTS.promises() if c.name not in broken and not c.needs_off]
    assert left == ["effect_lands_on_the_revision_it_expected"]  # the sweep breaks it, line by line


def _tiny(*switches: str) -> Scope:
    return effects.scopes["small"].but(
        name="tiny",
        sizes={"worker": 2, "call": 1, "fingerprint": 2 if "declining" in switches else 1},
        bounds={"lease_version": 2, "state_version": 2, "intent_version": 1, "incarnation": 0, "revision": 1},
        switches=frozenset(switches),
    )


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow) if "keyed" in switches else kind
        for kind, switches in CLASSES.items()
    ],
)
def test_the_plain_search_agrees_with_the_compiled_one_on_every_kind_of_downstream(kind: str) -> None:
    scope = _tiny(*CLASSES[kind])
    plain = search(effects, scope)
    compiled = explore(ground_model(effects, scope))  # `check` would leave out history that no claim reads
    assert plain.complete
    assert compiled.complete
    counts = (compiled.states, compiled.transitions, sum(compiled.cuts.values()))
    assert (plain.states, plain.transitions, plain.cut) == counts


def test_a_variant_can_change_a_line_of_a_helper() -> None:
    made = with_lines(effects, "made", commit={" and known_undone(s, w))": ")"})
    assert list(made.actions) == list(effects.actions)
    assert made.actions["commit"].function is not effects.actions["commit"].function


@pytest.mark.parametrize("piece", ["no such line", "s.knows[w]"])
def test_a_piece_of_text_that_names_no_line_or_several_is_refused(piece: str) -> None:
    with pytest.raises(ModelError, match="lines of commit"):
        with_lines(effects, "made", commit={piece: ""})
