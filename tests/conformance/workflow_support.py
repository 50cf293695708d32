"""What the tests of workflows share: the report on the reference, and runs of broken stores."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from fencepost.conformance import Conformance, verify
from fencepost.conformance.chosen_goals import goals_of
from fencepost.conformance.goals import Goal
from fencepost.conformance.moves import Step
from fencepost.conformance.plans import Plan
from fencepost.conformance.runs import shortened
from fencepost.conformance.subjects import subject_of
from fencepost.conformance.verify import Search, prepare
from fencepost.conformance.workflow_sights import SIGHTS
from fencepost.reference.adapter import SqliteAdapter, make_reference
from fencepost.reference.broken_workflows import BROKEN_WORKFLOWS

SUBJECT = subject_of("workflow")

ALONE = {sight.name for sight in SIGHTS}


@cache
def verified_reference() -> Conformance:
    """The report on the reference, found once in a process."""
    return verify(make_reference(), subject=SUBJECT, examples=20, seed=1)


def broken_adapter(name: str) -> SqliteAdapter:
    """The reference with one of the broken stores, and no schema to make up for it."""
    return replace(make_reference(), name=name, statements=BROKEN_WORKFLOWS[name], schema_checks=False)


def broken_by(adapter: SqliteAdapter, claim: str) -> tuple[Plan, list[Step]] | None:
    """The shortest run that breaks a claim, among those to what the claim speaks of."""
    _, prepared = prepare(adapter, subject=SUBJECT)
    search = Search(prepared)
    search.to_goals([goal for goal in goals_of(prepared.plan) if _is_about(goal, claim)])
    if claim not in search.broken:
        return None
    plan, steps = search.broken[claim]
    return plan, shortened(plan, [step.move for step in steps], claim)


def _is_about(goal: Goal, claim: str) -> bool:
    names = {goal.name, *goal.also}
    operation = OPERATIONS.get(claim, "no operation")
    witnesses = set(SUBJECT.claims.claims[claim].witnesses)
    return bool(
        names & (ALONE | witnesses)
        or any(name.endswith(f"would break {claim}") or name.startswith(f"{operation}: ") for name in names)
    )


OPERATIONS = {
    "timer_fires_once": "run_again",
    "compensation_in_order": "compensate",
    "receipt_is_true": "attest",
    "an_instance_ends_with_its_steps": "finish",
    "who_unwinds_goes_on_unwinding": "start",
    "what_is_given_up_has_a_cause": "call_off",
    "an_approval_in_time_is_honoured": "give_up_waiting",
    "request_consumed_once": "acknowledge_cancel",
    "legal_transitions_only": "hand_over",
}
"""By claim, the operation whose goals are gone to as well."""
