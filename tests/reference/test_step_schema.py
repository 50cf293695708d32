"""What the database itself holds of steps: a writer that goes past the store is repelled too (§5, §6)."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fencepost.reference import Evidence, StepChange, StepStatus, Store

from .support import changed, dump, intent, leased, ok


@pytest.fixture
def back_door(store: Store, path: Path) -> Iterator[sqlite3.Connection]:
    """Another connection to a store whose order-1 has a step of each kind."""
    leased(store)
    started = [
        StepChange(name, StepStatus.RUNNING, intent=intent(key=name))
        for name in ("running", "succeeded", "failed", "manual")
    ]
    ok(changed(store, *started, StepChange("plain", StepStatus.RUNNING)))
    ok(
        changed(
            store,
            StepChange("succeeded", StepStatus.SUCCEEDED, receipt="receipt-1"),
            StepChange("failed", StepStatus.FAILED, evidence=Evidence.RECORDED_REFUSAL),
            StepChange("manual", StepStatus.MANUAL_INTERVENTION, reason="who knows"),
        )
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma foreign_keys = on")
        yield connection


@pytest.mark.parametrize(
    ("step", "assignment", "why"),
    [
        ("running", "status = 'done'", "CHECK"),
        ("running", "status = 'succeeded'", "CHECK"),  # without a receipt
        ("running", "status = 'failed'", "CHECK"),  # without evidence
        ("running", "status = 'cancelled'", "CHECK"),
        ("running", "status = 'failed', evidence = 'a hunch'", "CHECK"),
        ("running", "status = 'cancelled', evidence = 'tombstoned'", "CHECK"),  # without the reason first
        ("running", "status = 'failed', evidence = 'unsent', receipt = 'r'", "CHECK"),
        ("running", "evidence = 'unsent'", "CHECK"),
        ("running", "status = 'manual_intervention', reason = 'x'", "CHECK"),  # without where from
        ("running", "status = 'manual_intervention', from_status = 'running'", "CHECK"),
        ("running", "status = 'pending'", "CHECK|pending"),
        ("running", "intent_version = 2", "CHECK"),  # without evidence on the former
        ("running", "intent_version = 2, former_evidence = 'a hunch'", "CHECK"),
        ("running", "intent_version = 3, former_evidence = 'unsent'", "not overwritten"),
        ("running", "intent_version = null", "not overwritten|CHECK"),
        ("running", "idempotency_key = 'another'", "not overwritten"),
        ("running", "fingerprint = 'another'", "not overwritten"),
        ("running", "resource = 'another'", "not overwritten"),
        ("running", "operation = 'another'", "not overwritten"),
        ("running", "parameters = '{}'", "not overwritten"),
        ("running", "expected_revision = 7", "not overwritten"),
        ("running", "compensation = 'refund'", "not overwritten"),
        ("running", "intent_lease_version = 2", "not overwritten"),
        ("running", "attempt = 0", "CHECK"),
        ("running", "attempt = null", "NOT NULL"),
        ("running", "receipt = ''", "CHECK"),
        ("running", "unwinding = ''", "CHECK"),
        ("plain", "receipt = 'receipt-1'", "CHECK"),  # without an intent
        ("plain", "status = 'failed', evidence = 'unsent'", "CHECK"),
        ("plain", "intent_version = 1", "CHECK"),  # without the rest of it
        ("plain", "idempotency_key = 'plain'", "CHECK"),
        ("plain", "compensation = 'refund'", "CHECK"),
        ("succeeded", "receipt = 'receipt-2'", "not overwritten|terminal"),
        ("succeeded", "receipt = null", "CHECK|not overwritten|terminal"),
        ("succeeded", "status = 'running'", "terminal"),
        ("succeeded", "attempt = attempt + 1", "terminal"),
        ("failed", "status = 'running', evidence = null", "terminal"),
        ("manual", "reason = null", "CHECK"),
        ("manual", "from_status = 'pending'", "CHECK"),
        ("manual", "state_version = 0", "CHECK"),
    ],
)
def test_no_update_makes_a_step_that_no_commit_makes(
    step: str, assignment: str, why: str, back_door: sqlite3.Connection, path: Path
) -> None:
    before = dump(path)
    with pytest.raises(sqlite3.IntegrityError, match=why):
        back_door.execute(f"update steps set {assignment} where step = '{step}'")
    assert dump(path) == before


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("delete from steps", "no step is deleted"),
        ("update step_log set status = 'failed'", "append-only"),
        ("delete from step_log", "append-only"),
        ("insert into step_log select instance, 9, step, status, 1, 1, '', '', '', null from steps", "FOREI"),
        ("insert into step_log select * from step_log", "UNIQUE"),
    ],
)
def test_other_writes_that_the_store_never_makes_are_repelled(
    statement: str, why: str, back_door: sqlite3.Connection, path: Path
) -> None:
    before = dump(path)
    with pytest.raises(sqlite3.IntegrityError, match=why):
        back_door.execute(statement)
    assert dump(path) == before


STEP = {"instance": "order-1", "step": "another", "status": "pending", "attempt": 0, "state_version": 1}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"instance": "order-2"}, "FOREIGN KEY"),
        ({"step": ""}, "CHECK"),
        ({"step": "running"}, "UNIQUE"),
        ({"status": "running"}, "CHECK"),  # without an attempt
        ({"attempt": -1}, "CHECK"),
        ({"state_version": 0}, "CHECK"),
        *(({name: None}, "NOT NULL") for name in STEP),
    ],
)
def test_no_insert_makes_a_step_that_no_commit_makes(
    changes: dict[str, object], why: str, back_door: sqlite3.Connection, path: Path
) -> None:
    step = STEP | changes
    columns, values = ", ".join(step), ", ".join(f":{name}" for name in step)
    before = dump(path)
    with pytest.raises(sqlite3.IntegrityError, match=why):
        back_door.execute(f"insert into steps ({columns}) values ({values})", step)
    assert dump(path) == before


def test_a_reason_for_unwinding_and_a_receipt_stay(back_door: sqlite3.Connection) -> None:
    back_door.execute("update steps set unwinding = 'why', receipt = 'r' where step = 'running'")
    for assignment, why in (
        ("unwinding = 'another'", "goes on unwinding"),
        ("unwinding = null", "goes on unwinding"),
        ("receipt = 'another'", "receipt is not overwritten"),
        ("receipt = null", "receipt is not overwritten"),
        ("intent_version = 2, former_evidence = 'unsent'", "not overwritten|goes on unwinding"),
    ):
        with pytest.raises(sqlite3.IntegrityError, match=why):
            back_door.execute(f"update steps set {assignment} where step = 'running'")
