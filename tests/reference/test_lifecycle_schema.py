"""What the database itself holds of the lifecycle: a writer that goes past the store is repelled too."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from fencepost.reference import (
    Migration,
    Notification,
    StepChange,
    StepPlan,
    StepStatus,
    Store,
    approval,
    cancellation,
    late_result,
)

from .lifecycle import (
    CANCELLED,
    DEFINITION,
    LATER,
    MANUAL,
    RETRY,
    UNWIND,
    WAITING,
    asked,
    begun,
    commit,
    intent_of,
    started,
    succeeded,
    undoing,
)
from .support import Clock, dump, ok
from .test_transitions import KINDS, PAIRS, make

RUNS, UNWINDS = "order-1", "order-2"


@pytest.fixture
def back_door(store: Store, path: Path) -> Iterator[sqlite3.Connection]:
    """Another connection to a store with an instance that runs, and one that unwinds."""
    gated = StepPlan("gated", needs_approval=True)
    begun(
        store,
        *(StepPlan(name) for name in ("running", "retry", "manual", "pending")),
        gated,
        StepPlan("behind", ("pending",)),
        instance=RUNS,
    )
    ok(
        commit(
            store,
            started("running"),
            started("retry"),
            started("manual"),
            StepChange("gated", WAITING, approval_fingerprint="print of gated"),
        )
    )
    late = intent_of("running")
    asked(store, approval("a", requester="eve", step="gated", fingerprint="print of gated"))
    asked(
        store,
        late_result("b", requester="ada", step="running", key=late.key, fingerprint="f", receipt="r"),
    )
    told = Notification("shipped", "ada", 1, "key", "print", "{}")
    ok(
        commit(
            store,
            StepChange("retry", RETRY, timer_at_ms=1_500, error_class="busy"),
            StepChange("manual", MANUAL, reason="who knows"),
            notifications=(told,),
        )
    )
    begun(store, *(StepPlan(name) for name in ("first", "second", "open")), instance=UNWINDS)
    for name in ("first", "second"):
        ok(commit(store, started(name, UNWINDS, compensation="refund"), instance=UNWINDS))
        ok(commit(store, succeeded(name), instance=UNWINDS))
    number = asked(store, cancellation("c", requester="eve"), UNWINDS)
    ok(commit(store, StepChange("open", CANCELLED), move=UNWIND, requests=(number,), instance=UNWINDS))
    ok(commit(store, undoing("second", UNWINDS), instance=UNWINDS))
    ok(store.register_migration(Migration("to-2", DEFINITION, LATER)))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma foreign_keys = on")
        yield connection


UNDO = "undo_version = 1, undo_key = 'k', undo_fingerprint = 'f', undo_resource = 'r', undo_attempt = 1"
UNDO += ", undo_operation = 'o', undo_parameters = '{}', undo_lease_version = 1"


@pytest.mark.parametrize(
    ("step", "assignment", "why"),
    [
        ("pending", "status = 'running', attempt = 1, needs_approval = 1", "CHECK|back to pending"),
        ("behind", "status = 'running', attempt = 1, state_version = 3", "before what it depends on"),
        ("gated", "status = 'running', attempt = 1", "CHECK|consumed by the commit"),  # without an approval
        ("gated", "status = 'running', attempt = 1, approved_by = 1", "consumed by the commit that uses"),
        ("gated", "status = 'running', attempt = 1, approved_by = 7", "consumed by the commit|FOREIGN"),
        ("gated", "approval_fingerprint = null", "CHECK"),
        ("running", "status = 'waiting_approval'", "CHECK|only as listed"),
        ("running", "status = 'retry_scheduled', error_class = 'busy'", "CHECK"),  # without a timer
        ("running", "status = 'retry_scheduled', timer_at_ms = 1500", "CHECK"),  # without an error
        ("running", "timer_at_ms = 1500", "CHECK"),
        ("running", "succeeded_at_version = 1", "CHECK"),
        ("running", "status = 'compensating', succeeded_at_version = 1, " + UNDO, "CHECK|only as listed"),
        ("running", "attested = 2", "CHECK"),
        ("running", "most_attempts = 0", "CHECK"),
        ("running", UNDO, "CHECK"),
        ("retry", "timer_at_ms = null", "CHECK"),
        ("retry", "receipt = 'r'", "CHECK"),
        ("manual", "status = 'running', from_status = null, reason = null", "a person decides"),
        ("manual", "status = 'failed', from_status = null, attested = 1", "a person decides"),
        ("manual", "from_status = 'succeeded'", "CHECK"),
        ("second", "undo_key = 'another'", "compensation is not overwritten"),
        ("second", "undo_version = 2", "compensation is not overwritten"),
        ("second", "undo_parameters = '[]'", "compensation is not overwritten"),
        ("second", "status = 'compensated'", "CHECK"),  # without a receipt
        ("second", "status = 'succeeded'", "CHECK|only as listed"),
        ("second", "status = 'running', succeeded_at_version = null", "CHECK|only as listed"),
        ("first", "status = 'compensating', " + UNDO, "compensated first"),
        ("first", "status = 'running', succeeded_at_version = null", "terminal"),
        ("open", "status = 'running', attempt = 1", "terminal"),
        ("first", "succeeded_at_version = 1", "terminal"),
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
        ("update instances set status = 'running' where instance = 'order-2'", "CHECK"),
        ("update instances set status = 'succeeded' where instance = 'order-2'", "CHECK"),
        ("update instances set unwinding_cause = null where instance = 'order-2'", "CHECK|goes on unwinding"),
        ("update instances set unwinding_cause = 'x' where instance = 'order-2'", "goes on unwinding"),
        ("update instances set status = 'unwinding' where instance = 'order-1'", "CHECK"),
        ("update instances set status = 'manual_intervention'", "CHECK"),
        ("update instances set manual_cause = 'x'", "CHECK"),
        ("update instances set definition_fingerprint = 'other'", "pinned to its definition"),
        ("update instances set definition = null", "CHECK|pinned"),
        ("update instances set deadline_at_ms = -1", "CHECK"),
        ("update migrations set to_fingerprint = 'other'", "stays as it is"),
        ("delete from migrations", "stays as it is"),
        ("insert into migrations values ('to-2', 'a', 'b', 'c', 'd')", "UNIQUE"),
        ("update inbox set consumed_by = 1", "consumed once"),
        ("update inbox set consumed_by = null", "consumed once"),
        ("update inbox set receipt = 'other' where number = 2", "consumed once"),
        ("update inbox set decision = 'rejected' where number = 1", "consumed once"),
        ("delete from inbox", "no request is deleted"),
        ("update triggers set input = 'other'", "stays"),
        ("delete from triggers", "stays"),
        ("insert into triggers values ('shop', 'order-1', 'f', 'order-1', '', '', 1)", "UNIQUE"),
        ("update dependencies set needs = 'running'", "stays"),
        ("delete from dependencies", "stays"),
        ("insert into dependencies values ('order-1', 'behind', 'nothing')", "FOREIGN"),
        ("insert into dependencies values ('order-1', 'behind', 'behind')", "CHECK"),
        ("update notifications set parameters = '[]'", "only the receipt"),
        ("delete from notifications", "no notification is deleted"),
        (
            "insert into notifications values ('order-1', 'shipped', 'ada', 1, 'k', 'f', '{}', 1, null)",
            "UNIQUE",
        ),
        ("insert into notifications values ('order-1', 'x', 'ada', 1, 'key', 'f', '{}', 1, null)", "UNIQUE"),
        ("insert into notifications values ('order-1', 'x', 'ada', 1, 'k', 'f', '{}', 9, null)", "FOREIGN"),
    ],
)
def test_other_writes_that_the_store_never_makes_are_repelled(
    statement: str, why: str, back_door: sqlite3.Connection, path: Path
) -> None:
    before = dump(path)
    with pytest.raises(sqlite3.IntegrityError, match=why):
        back_door.execute(statement)
    assert dump(path) == before


REQUEST: dict[str, object] = {
    "instance": RUNS,
    "number": 3,
    "request_id": "another",
    "kind": "cancel",
    "requester": "eve",
    "recorded_at_ms": 1,
}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"number": 2}, "numbered|UNIQUE"),
        ({"number": 4}, "numbered"),
        ({"consumed_by": 2}, "numbered"),
        ({"request_id": "a"}, "UNIQUE"),
        ({"instance": "order-9", "number": 1}, "FOREIGN"),
        ({"kind": "wish"}, "CHECK"),
        ({"step": "running"}, "CHECK"),
        ({"kind": "approval-decision", "step": "gated", "decision": "approved"}, "CHECK"),
        ({"kind": "operator-decision", "step": "running", "decision": "pending"}, "CHECK"),
        ({"kind": "operator-decision", "decision": "running"}, "CHECK"),
        ({"kind": "operator-decision", "step": "running", "decision": "resumed"}, "CHECK"),
        ({"kind": "operator-decision"}, "CHECK"),
        ({"kind": "late-result", "step": "running", "receipt": "r"}, "CHECK"),
        ({"kind": "operator-decision", "step": "nothing", "decision": "running"}, "FOREIGN"),
        *(({name: None}, "NOT NULL|numbered") for name in REQUEST),
    ],
)
def test_no_insert_makes_a_request_that_nobody_makes(
    changes: dict[str, object], why: str, back_door: sqlite3.Connection, path: Path
) -> None:
    request = REQUEST | changes
    columns, values = ", ".join(request), ", ".join(f":{name}" for name in request)
    before = dump(path)
    with pytest.raises(sqlite3.IntegrityError, match=why):
        back_door.execute(f"insert into inbox ({columns}) values ({values})", request)
    assert dump(path) == before


def test_a_cancel_in_the_inbox_holds_up_a_start_past_the_store_too(
    store: Store, back_door: sqlite3.Connection
) -> None:
    asked(store, cancellation("d", requester="eve"), RUNS)
    start = "update steps set status = 'running', attempt = 2, timer_at_ms = null where step = 'retry'"
    with pytest.raises(sqlite3.IntegrityError, match="no step starts"):
        back_door.execute(start)


WRITTEN = {  # what else has to be written lest a check repels the status before the list of §5 does
    RETRY: "timer_at_ms = 1500, error_class = 'busy'",
    MANUAL: "from_status = 'running', reason = 'x'",
    StepStatus.FAILED: "attested = 1",
    StepStatus.CANCELLED: "attested = 1",
}
CAME = {
    "pending": StepStatus.PENDING,
    "waiting": WAITING,
    "running": StepStatus.RUNNING,
    "retry": RETRY,
    "failed": StepStatus.FAILED,
    "cancelled": StepStatus.CANCELLED,
    "compensated": StepStatus.COMPENSATED,
}
UNLISTED = [
    (kind, to) for kind, to in product(CAME, StepStatus) if to not in (*PAIRS.get(CAME[kind], ()), CAME[kind])
]


@pytest.mark.parametrize(("kind", "to"), UNLISTED)
def test_a_step_changes_past_the_store_only_as_listed(
    kind: str, to: StepStatus, store: Store, path: Path, clock: Clock
) -> None:
    make(store, clock, KINDS[kind], "running", "order-1")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        before = dump(path)
        more = f", {WRITTEN[to]}" if to in WRITTEN else ""
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(f"update steps set status = '{to}', state_version = 9{more}")
        assert dump(path) == before
