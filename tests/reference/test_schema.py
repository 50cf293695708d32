"""The schema repeats what the database can hold: a writer that goes past the store is repelled too."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fencepost.reference import MAX_VERSION, Store

from .support import commit_on, dump, leased, ok


@pytest.fixture
def back_door(store: Store, path: Path) -> Iterator[sqlite3.Connection]:
    """Another connection to a store with one leased instance and two entries in its log."""
    row = leased(store)
    ok(store.commit(commit_on(row, "0-1")))
    ok(store.commit(commit_on(ok(store.read("order-1")), "0-2")))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma foreign_keys = on")
        yield connection


ENTRY = {
    "instance": "order-1",
    "state_version": 3,
    "lease_version": 1,
    "owner_worker": "ada",
    "owner_incarnation": 0,
    "commit_id": "0-3",
    "event": "charged",
    "payload": "",
    "committed_at_ms": 1_000,
}


COLUMNS = "instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status"


def insert_entry(connection: sqlite3.Connection, **changes: object) -> None:
    entry = ENTRY | changes
    columns, values = ", ".join(entry), ", ".join(f":{name}" for name in entry)
    connection.execute(f"insert into event_log ({columns}) values ({values})", entry)


def test_the_entry_that_the_cases_vary_is_accepted_as_it_is(back_door: sqlite3.Connection) -> None:
    insert_entry(back_door)


@pytest.mark.parametrize(
    ("assignment", "why"),
    [
        ("status = 'unwinding'", "CHECK"),
        ("status = null", "NOT NULL"),
        ("instance = ''", "CHECK"),
        ("instance = null", "NOT NULL"),
        ("lease_version = -1", "CHECK|never falls"),
        ("lease_version = null", "NOT NULL"),
        ("lease_version = 'two'", "cannot store TEXT"),
        ("lease_version = 1.5", "cannot store REAL"),
        (f"lease_version = {MAX_VERSION} + 1", "cannot store REAL"),  # SQLite goes on in floating point
        (f"expires_at_ms = {MAX_VERSION} + 1", "cannot store REAL"),
        ("lease_version = 0", "CHECK|never falls"),
        ("state_version = state_version - 1", "never falls"),
        ("state_version = null", "NOT NULL"),
        ("owner_worker = ''", "CHECK"),
        ("owner_worker = null", "CHECK"),
        ("owner_incarnation = null", "CHECK"),
        ("owner_incarnation = -1", "CHECK"),
        ("owner_worker = null, owner_incarnation = null", "CHECK"),
        ("expires_at_ms = -1", "CHECK"),
        ("expires_at_ms = x'00'", "cannot store BLOB"),
    ],
)
def test_no_update_makes_a_row_that_no_operation_makes(
    assignment: str, why: str, back_door: sqlite3.Connection, path: Path
) -> None:
    before = dump(path)
    with pytest.raises(sqlite3.IntegrityError, match=why):
        back_door.execute(f"update instances set {assignment}")
    assert dump(path) == before


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"instance": "order-2"}, "FOREIGN KEY"),
        ({"state_version": 2}, "UNIQUE"),
        ({"state_version": 0}, "CHECK"),
        ({"commit_id": "0-1"}, "UNIQUE"),
        ({"commit_id": ""}, "CHECK"),
        ({"lease_version": 0}, "CHECK"),
        ({"owner_worker": ""}, "CHECK"),
        ({"owner_incarnation": -1}, "CHECK"),
        ({"event": ""}, "CHECK"),
        ({"payload": b"bytes"}, "cannot store BLOB"),
        ({"committed_at_ms": -1}, "CHECK"),
        *(({name: None}, "NOT NULL") for name in ENTRY),
    ],
)
def test_no_insert_makes_an_entry_that_no_commit_makes(
    changes: dict[str, object], why: str, back_door: sqlite3.Connection, path: Path
) -> None:
    before = dump(path)
    with pytest.raises(sqlite3.IntegrityError, match=why):
        insert_entry(back_door, **changes)
    assert dump(path) == before


@pytest.mark.parametrize(
    "statement",
    [
        "update event_log set payload = 'other'",
        "update event_log set state_version = state_version + 1",
        "delete from event_log",
        "delete from event_log where state_version = 2",
    ],
)
def test_the_event_log_is_not_rewritten(statement: str, back_door: sqlite3.Connection, path: Path) -> None:
    before = dump(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        back_door.execute(statement)
    assert dump(path) == before


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("insert into instances select * from instances", "UNIQUE"),
        (f"insert into instances ({COLUMNS}) values ('order-2', null, null, 1, null, 0, 'running')", "CHECK"),
        (f"insert into instances ({COLUMNS}) values ('order-2', null, null, 0, 500, 0, 'running')", "CHECK"),
        (f"insert into instances ({COLUMNS}) values ('order-2', 'ada', 0, 0, null, 0, 'running')", "CHECK"),
        ("delete from instances", "FOREIGN KEY"),
        ("update instances set instance = 'order-2'", "FOREIGN KEY"),
        ("insert into clock values (2, 0)", "CHECK"),
        ("update clock set now_ms = -1", "CHECK"),
        ("update clock set now_ms = 'noon'", "cannot store TEXT"),
    ],
)
def test_other_writes_that_the_store_never_makes_are_repelled(
    statement: str, why: str, back_door: sqlite3.Connection
) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=why):
        back_door.execute(statement)
