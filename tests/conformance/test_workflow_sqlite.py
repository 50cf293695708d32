"""The SQLite store holds what is claimed about whole workflows, and the runs really come to it."""

import json
import os

import pytest

from fencepost.checker.verdicts import EXIT_OK, Verdict
from fencepost.conformance import LOCK_STEP, Capability
from fencepost.conformance.chosen_goals import KEPT, as_kept, goals_of, key_of
from fencepost.conformance.counterparts import counterparts
from fencepost.conformance.moves import Move
from fencepost.conformance.plans import Plan
from fencepost.conformance.session import Session
from fencepost.conformance.verify import prepare
from fencepost.model import Scope
from fencepost.reference.adapter import make_reference, make_sqlite

from .workflow_support import SUBJECT, verified_reference

SAYS_NOTHING = {
    "no_stuck_state",  # it asks what could have happened instead
    "without_keys_nothing_is_sent_twice",  # the downstream keeps keys
}
"""The claims that no run of the reference can say anything about."""


def test_all_that_runs_can_tell_of_a_workflow_is_held() -> None:
    report = verified_reference()
    assert [f.claim.name for f in report.refuted] == []
    assert report.of(LOCK_STEP.id).verdict is Verdict.HELD
    held = {f.claim.name for f in report.findings if f.verdict is Verdict.HELD}
    assert held == {LOCK_STEP.name, *(c.name for c in SUBJECT.claims.promises())} - SAYS_NOTHING
    assert report.exit_code == EXIT_OK


def test_what_is_not_exercised_says_why() -> None:
    report = verified_reference()
    silent = {f.claim.name: f.why for f in report.findings if f.verdict is Verdict.NOT_EXERCISED}
    assert set(silent) == SAYS_NOTHING
    assert all(silent.values())


def test_the_bound_names_the_actions_that_are_not_tried_everywhere() -> None:
    _, prepared = prepare(make_reference(), subject=SUBJECT)
    narrow = [name for name, how in prepared.plan.performances.items() if how.sensible is not None]
    assert "intend_anew" in narrow
    for finding in verified_reference().findings:
        said = finding.bound.rpartition("; ")[2]
        assert said == f"{', '.join(narrow[:-1])} and {narrow[-1]} only where somebody would do so"


def test_every_witness_is_seen_on_the_implementation_itself() -> None:
    report = verified_reference()
    named = {w for f in report.findings for w in f.claim.witnesses if f.verdict is Verdict.HELD}
    assert named <= set(report.figures["witnesses"])
    assert report.figures["witnesses"]["an_approval_is_asked_anew"] > 0
    assert report.figures["cut_short"] == 0


def test_the_goals_that_are_kept_are_those_of_this_model_and_these_claims() -> None:
    """So that nothing is looked for anew; with FENCEPOST_REWRITE the slow test below writes them."""
    _, prepared = prepare(make_reference(), subject=SUBJECT)
    plan = prepared.plan
    kept = json.loads(KEPT.read_text())
    assert kept["key"] == key_of(plan, scopes_of(plan))
    assert {c.name for c in (*plan.claims, *plan.witnesses)} <= set(kept["claims"])


def scopes_of(plan: Plan) -> tuple[Scope, ...]:
    return tuple(s.but(switches=s.switches & plan.oracle.scope.switches) for s in plan.reach.goals)


@pytest.mark.slow
def test_the_goals_that_are_kept_are_those_that_the_search_finds() -> None:
    _, prepared = prepare(make_reference(), subject=SUBJECT)
    found = as_kept(prepared.plan, scopes_of(prepared.plan))
    if os.environ.get("FENCEPOST_REWRITE"):
        KEPT.write_text(found)
    assert KEPT.read_text() == found


def test_a_world_begins_with_the_definition_that_the_author_chooses() -> None:
    _, prepared = prepare(make_reference(), subject=SUBJECT)
    with Session(prepared.plan) as session:
        for action, codes in (("gate", (0,)), ("have_no_compensation", (1,)), ("depend", (1, 0))):
            step = session.play(Move(action, codes))
            assert step is not None
            assert step.difference == ""
        workflow = session.seen.observation.workflow
    assert workflow is not None
    first, second = workflow.steps
    assert (first.gated, first.needs) == (True, ())
    assert (second.gated, second.needs) == (False, (first.step,))


def test_an_adapter_without_the_capability_is_not_run_beside_workflows() -> None:
    assert not counterparts()["workflow"].is_had_by(make_sqlite())
    assert Capability.WORKFLOW in make_reference().capabilities
    assert counterparts()["workflow"].is_had_by(make_reference())


def test_runs_go_to_goals_in_worlds_with_as_many_steps_as_they_were_found_with() -> None:
    _, prepared = prepare(make_reference(), subject=SUBJECT)
    sizes = {goal.scope.sizes["step"] for goal in goals_of(prepared.plan) if goal.scope is not None}
    assert sizes == {1, 2}
