"""The SQLite store holds what is claimed about triggers and notifications, and so does any right store."""

from __future__ import annotations

import pytest

from fencepost.checker.subject import UsageError
from fencepost.checker.verdicts import EXIT_OK, Verdict
from fencepost.conformance import EVERYTHING, Capability, ConformanceSuite, verify, verify_all
from fencepost.conformance.counterparts import (
    counterpart_of,
    observed_variables,
    performance_of,
    stored_variables,
)
from fencepost.conformance.runs import play
from fencepost.conformance.session import Move, Plan, Session
from fencepost.conformance.subjects import subject_of
from fencepost.conformance.verify import goals_of, prepare
from fencepost.model.triggers import triggers
from fencepost.reference.adapter import SqliteAdapter, make_reference, make_sqlite

from .dict_triggers import DictTriggers, verified_dictionaries
from .support import OddAdapter, refuted
from .triggers_support import TRIGGERS, verified_triggers

SUBJECT = subject_of("triggers")


def plan_of(adapter: object) -> Plan:
    return prepare(adapter, subject=SUBJECT)[0]  # type: ignore[arg-type]


def test_every_claim_about_triggers_is_held_and_exercised() -> None:
    report = verified_triggers(examples=20)
    assert {f.claim.name: f.verdict for f in report.findings} == dict.fromkeys(
        ["every_step_is_the_models", *(c.name for c in SUBJECT.claims.promises())], Verdict.HELD
    )
    assert report.exit_code == EXIT_OK
    assert all("grade O" in finding.method for finding in report.findings)


def test_each_refusal_of_the_model_comes_about() -> None:
    kinds = verified_triggers(examples=20).figures["kinds"]
    for refusal in ("decide_trigger: key-conflict", "acquire: finished", "finish: finished"):
        assert kinds[refusal] > 0
    for refusal in ("intend_notice: finished", "record_notice: finished"):
        assert kinds[refusal] > 0


def test_a_store_with_names_of_its_own_is_held_too() -> None:
    report = verified_dictionaries()
    assert refuted(report) == {}
    assert report.exit_code == EXIT_OK


def test_the_mapping_is_complete_and_has_nothing_else() -> None:
    counterpart = counterpart_of(triggers)
    assert counterpart.model == "triggers"
    assert set(counterpart.performances) == set(triggers.actions)
    assert set(counterpart.stored) == set(stored_variables(triggers))
    assert observed_variables(triggers, TRIGGERS) == stored_variables(triggers)
    for action in triggers.actions.values():
        performance_of(triggers, action)


def test_every_journey_is_a_run_of_the_model() -> None:
    plan = plan_of(DictTriggers())
    journeys = counterpart_of(triggers).journeys
    assert journeys is not None
    assert set(journeys(plan.oracle.scope)) <= set(goals_of(plan))
    for journey in journeys(plan.oracle.scope):
        assert len(play(plan, [Move(*step) for step in journey.steps])) == len(journey.steps), journey.name


def test_leases_that_the_harness_takes_for_a_commit_are_not_counted() -> None:
    with Session(plan_of(SqliteAdapter(capabilities=TRIGGERS))) as session:
        for action in ("send_trigger", "decide_trigger", "finish"):
            assert session.play(Move(action, session.choices(action)[0])) is not None
        assert [step.difference for step in session.steps] == ["", "", ""]
        (row,) = session.steps[-1].observation.more.rows
        (_, _, _, lease_version, state_version, finished), *_ = session.state[triggers.position("row")]
    assert (row.lease_version, row.state_version, row.finished) == (1, 1, True)
    assert (lease_version, state_version, finished) == (0, 1, True)


def test_an_adapter_without_triggers_is_not_asked_about_them() -> None:
    report = verify_all(make_sqlite(), examples=0, claims=["S5", "lock-step"])
    assert {f.claim.id for f in report.findings} == {"S5", "lock-step"}
    with pytest.raises(UsageError, match=r"declare Capability\.TRIGGERS and write what TriggersAdapter"):
        verify(make_sqlite(), subject=SUBJECT)


def test_an_adapter_that_declares_triggers_and_cannot_do_them_is_told_what_to_write() -> None:
    with pytest.raises(UsageError, match=r"has no observe_triggers, open_desk, open_hand, open_recipient"):
        verify(OddAdapter(), subject=SUBJECT, examples=0)


def test_triggers_are_none_of_the_capabilities_that_go_without_saying() -> None:
    assert Capability.TRIGGERS not in EVERYTHING
    assert Capability.TRIGGERS in make_reference().capabilities


def test_one_call_covers_triggers_as_well() -> None:
    report = verify_all(make_reference(), examples=0, claims=["S21-trigger", "S21-notification"])
    assert {f.claim.id: f.verdict for f in report.findings} == {
        "S21-trigger": Verdict.HELD,
        "S21-notification": Verdict.HELD,
    }


class TestTriggersOfSqlite(ConformanceSuite):
    """The suite asks about triggers what it asks about all else."""

    adapter = staticmethod(lambda: SqliteAdapter(capabilities=TRIGGERS))
    claims = ("S21-trigger", "S21-notification")
    examples = 0
    test_statements = None  # type: ignore[assignment]  # it is the core's alone
