"""The life of an instance: what is claimed of it is explored, and exercised in some scope."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.checker.explore import check
from fencepost.checker.native import explore
from fencepost.checker.plain import search
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Verdict
from fencepost.model import Scope
from fencepost.model.ground import ground_model
from fencepost.model.mutate import without
from fencepost.model.workflow import workflow
from fencepost.model.workflow.scopes import GROUPS, RESULTS_FORGOTTEN, SMALL, SWEEP
from fencepost.model.workflow.state import Status
from fencepost.properties import WORKFLOW
from fencepost.properties.workflow import LEGAL

PINNED = json.loads((Path(__file__).parent / "pinned_workflow.json").read_text())
"""By scope: distinct states, transitions, cuts, and the claims whose premise is out of reach there.

A change of a number needs its reason in the commit.
"""


def test_every_scope_is_pinned() -> None:
    assert set(PINNED) == set(workflow.scopes)


LONG = {name for scopes in GROUPS.values() for name in scopes} - {*SMALL}
"""What is searched only where there is time; `make test-all` does."""


@pytest.mark.parametrize(
    "scope", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in workflow.scopes]
)
def test_no_claim_is_refuted_in_a_scope_and_those_that_it_exercises_hold(scope: str) -> None:
    report = check(Subject(workflow, WORKFLOW), scope=scope, traces=False)
    counts = {k: report.figures[k] for k in ("states", "transitions", "cut")}
    idle = [f.claim.name for f in report.findings if f.verdict is Verdict.UNDETERMINED]
    assert [f.claim.name for f in report.refuted] == []
    assert {**counts, "not_exercised": idle} == PINNED[scope]
    assert all(f.why.startswith("never exercised") for f in report.findings if f.claim.name in idle)


@pytest.mark.parametrize("claim", [c.name for c in WORKFLOW.promises()])
def test_every_claim_is_exercised_in_some_scope(claim: str) -> None:
    for scopes in (SMALL, SWEEP, GROUPS["small"], GROUPS["usual"]):
        assert any(claim not in PINNED[scope]["not_exercised"] for scope in scopes)


def test_a_result_of_a_former_intent_is_no_receipt_of_the_present_one() -> None:
    """The downstream forgot that it declined, and a second copy of the call took effect (§4, §6)."""
    merged_blindly = without(
        workflow, "merges-any-result", merge=("refuse_unless(s.result_of[r] == s.intent[x]",)
    )
    claims = ["receipt_is_true"]
    as_it_is = check(Subject(workflow, WORKFLOW), scope=RESULTS_FORGOTTEN, claims=claims, traces=False)
    broken = check(Subject(merged_blindly, WORKFLOW), scope=RESULTS_FORGOTTEN, claims=claims)
    assert [f.verdict for f in as_it_is.findings] == [Verdict.BOUNDED]
    assert [f.claim.name for f in broken.refuted] == claims


def test_every_status_has_its_transitions_and_the_ends_have_none() -> None:
    assert {status for status, _ in LEGAL} == set(Status.members)
    assert {status for status, targets in LEGAL if not targets} == {
        Status.failed,
        Status.cancelled,
        Status.compensated,
    }


def _tiny(*switches: str) -> Scope:
    return workflow.scopes["undone"].but(
        name="tiny",
        sizes={"worker": 1, "step": 1, "call": 1, "request": 1, "fingerprint": 1},
        bounds={
            "lease_version": 2,
            "state_version": 3,
            "intent_version": 1,
            "attempt": 1,
            "incarnation": 0,
        },
        switches=frozenset(switches),
    )


@pytest.mark.parametrize(
    "switches",
    [
        ("keyed", "cancels"),
        ("retries", "fenced", "reply_lost"),
        pytest.param(("gates",), marks=pytest.mark.slow),
        pytest.param(("operator", "declining"), marks=pytest.mark.slow),
    ],
    ids=", ".join,
)
def test_the_plain_search_agrees_with_the_compiled_one(switches: tuple[str, ...]) -> None:
    scope = _tiny(*switches)
    plain = search(workflow, scope)
    compiled = explore(ground_model(workflow, scope))  # `check` would leave out history that no claim reads
    assert plain.complete
    assert compiled.complete
    counts = (compiled.states, compiled.transitions, sum(compiled.cuts.values()))
    assert (plain.states, plain.transitions, plain.cut) == counts
