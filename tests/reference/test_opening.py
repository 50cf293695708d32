"""Opening a store: whose file it is, and how the connection behaves."""

import ast
import re
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fencepost.reference
from fencepost.reference import (
    ArgumentError,
    Checkpoints,
    Evidence,
    StepChange,
    StepStatus,
    Store,
    StoreBusyError,
    StoreError,
    approve,
    open_store,
    operator_decision,
)

from . import lifecycle, orders
from .support import ADA, LEASE_MS, Clock, commit_on, dump, leased, ok

VERSION_1 = Path(__file__).with_name("version_1.sql")
"""A store as the first version made it, in SQL: one instance, leased, with one commit."""

VERSION_2 = Path(__file__).with_name("version_2.sql")
"""One as the second version made it: five instances, and steps of every kind."""

VERSION_3 = Path(__file__).with_name("version_3.sql")
"""One as the third version made it: orders, one finished, one undone, one at its gate, one left half-done."""

VERSION_4 = Path(__file__).with_name("version_4.sql")
"""One as the fourth version made it: orders with checkpoints, one of them with a second intent, approved."""

OLDER = pytest.mark.parametrize(
    "version", [VERSION_1, VERSION_2, VERSION_3, VERSION_4], ids=["1", "2", "3", "4"]
)


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def pragma(store: Store, name: str) -> object:
    ((value,),) = store._connection.execute(f"pragma {name}")
    return value


def test_what_was_answered_is_there_after_reopening(path: Path, clock: Clock) -> None:
    with open_store(path, clock_ms=clock) as store:
        row = leased(store)
        entry = ok(store.commit(commit_on(row)))
    with open_store(str(path), clock_ms=clock) as store:
        assert store.log("order-1") == (entry,)
        assert ok(store.read("order-1")).state_version == 1


def test_the_connection_is_durable_by_default(path: Path, clock: Clock) -> None:
    with open_store(path, clock_ms=clock) as store:
        settings = {name: pragma(store, name) for name in ("journal_mode", "synchronous", "foreign_keys")}
        assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
        assert pragma(store, "busy_timeout") == 5_000
        assert store._connection.isolation_level is None


@pytest.mark.parametrize(("level", "number"), [("OFF", 0), ("NORMAL", 1), ("FULL", 2), ("EXTRA", 3)])
def test_another_durability_is_taken_when_asked_for(
    level: str, number: int, path: Path, clock: Clock
) -> None:
    with open_store(path, clock_ms=clock, synchronous=level, busy_timeout_ms=7) as store:
        assert (pragma(store, "synchronous"), pragma(store, "busy_timeout")) == (number, 7)


def test_a_database_of_something_else_is_refused_and_left_alone(path: Path, clock: Clock) -> None:
    execute(path, "create table notes (note text)", "insert into notes values ('mine')")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is a database of something else"):
        open_store(path, clock_ms=clock)
    assert path.read_bytes() == before
    assert dump(path) == {"notes": [("mine",)]}


@pytest.mark.parametrize("mark", ["application_id = 42", "user_version = 1"])
def test_an_empty_database_that_something_else_has_marked_is_refused(
    mark: str, path: Path, clock: Clock
) -> None:
    execute(path, f"pragma {mark}")
    with pytest.raises(StoreError, match="is a database of something else"):
        open_store(path, clock_ms=clock)


@pytest.mark.parametrize(("version", "advice"), [(6, "upgrade fencepost"), (0, "it is damaged")])
def test_another_schema_version_is_refused_and_left_alone(
    version: int, advice: str, path: Path, clock: Clock
) -> None:
    with open_store(path, clock_ms=clock) as store:
        leased(store)
    execute(path, f"pragma user_version = {version}")
    before = dump(path)
    with pytest.raises(StoreError, match=f"has schema version {version}, and .* reads 1 to 5; {advice}"):
        open_store(path, clock_ms=clock)
    assert dump(path) == before


def make_old(path: Path, version: Path) -> dict[str, list[dict[str, Any]]]:
    """A file of an older version; its rows, by table and by the names of their columns."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(version.read_text())
    return named_rows(path)


def named_rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        tables = connection.execute("select name from sqlite_schema where type = 'table'").fetchall()
        return {
            name: [dict(row) for row in connection.execute(f"select * from {name}")] for (name,) in tables
        }


@OLDER
def test_a_file_of_an_older_version_is_upgraded_and_keeps_every_row(
    version: Path, path: Path, clock: Clock
) -> None:
    before = make_old(path, version)
    with open_store(path, clock_ms=clock) as store:
        assert pragma(store, "user_version") == 5
        assert store._connection.execute("pragma foreign_key_check").fetchall() == []
        assert store._connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    after = named_rows(path)
    for table, rows in before.items():
        kept = [{name: row[name] for name in rows[0]} for row in after[table]] if rows else after[table]
        assert kept == rows, table


def test_the_tables_of_an_upgraded_file_are_those_of_a_new_one(path: Path, clock: Clock) -> None:
    found = []
    for version in (None, VERSION_1, VERSION_2, VERSION_3, VERSION_4):
        file = path.with_name(f"{version and version.stem}.db")
        if version is not None:
            make_old(file, version)
        with open_store(file, clock_ms=clock) as store:
            schema = store._connection.execute("select type, name, sql from sqlite_schema order by name")
            found.append([(kind, name, sql and sql.split()) for kind, name, sql in schema])
    assert all(each == found[0] for each in found)
    assert len(found[0]) > 20


def test_work_goes_on_in_a_file_of_version_1(path: Path, clock: Clock) -> None:
    make_old(path, VERSION_1)
    with open_store(path, clock_ms=clock) as store:
        row = ok(store.read("order-1"))
        assert (row.lease_version, row.state_version, row.steps) == (1, 1, ())
        assert [entry.commit_id for entry in store.log("order-1")] == ["0-1"]
        change = StepChange("charge", StepStatus.RUNNING)
        ok(store.commit(replace(commit_on(row, "0-2"), changes=(change,))))


def test_work_goes_on_in_a_file_of_version_2(path: Path, clock: Clock) -> None:
    """A step left running gets its outcome, one that was handed over a person's decision, one is undone."""
    make_old(path, VERSION_2)
    clock.now_ms = 1_200
    with open_store(path, clock_ms=clock) as store:
        before = {step.step: step for step in ok(store.read("order-1")).steps}
        assert (before["again"].attempt, before["again"].former_evidence) == (2, "fenced-and-not-found")
        assert (before["done"].receipt, before["done"].succeeded_at_version) == ("receipt-1", 2)
        assert (before["given-up"].evidence, before["asked"].from_status) == ("tombstoned", "running")
        assert len(store.step_log("order-1")) == 17
        ok(store.acquire("order-1", ADA, lease_ms=LEASE_MS))
        ok(
            lifecycle.commit(
                store,
                StepChange("held", StepStatus.SUCCEEDED, receipt="receipt-2"),
                *(StepChange(name, StepStatus.SUCCEEDED, receipt=name) for name in ("again", "running")),
            )
        )
        decided = operator_decision("1", requester="eve", step="asked", status=StepStatus.FAILED)
        number = lifecycle.asked(store, decided)
        failed = StepChange("asked", StepStatus.FAILED, decision=number)
        ok(lifecycle.commit(store, failed, move=lifecycle.UNWIND))
        ok(lifecycle.commit(store, lifecycle.undoing("done")))
        undone = StepChange("done", StepStatus.COMPENSATED, receipt="refunded")
        ok(lifecycle.commit(store, undone, finishes=True))
        assert ok(store.read("order-1")).status == "failed"
        assert [ok(store.read(f"order-{n}")).status for n in range(2, 6)] == [
            "succeeded",
            "failed",
            "cancelled",
            "running",
        ]


def test_work_goes_on_in_a_file_of_version_3(path: Path, tmp_path: Path) -> None:
    """Once somebody has vouched, what was left half-done is settled, and what waits is approved."""
    make_old(path, VERSION_3)
    clock = Clock(10_000)
    kept = Checkpoints(mac_key=b"0123456789abcdef")
    world = orders.Orders(path, tmp_path / "ledger.db", clock, {}, checkpoints=kept)
    with world.opened() as (store, _):
        ok(approve(store, "order-3", step="ship", requester="eve"))
        assert {run.instance: run.ended for run in world.work(ADA)} == {
            "order-3": "bad-checkpoint",
            "order-4": "bad-checkpoint",
        }
        for name in ("order-3", "order-4"):
            before = ok(store.read(name))
            ok(store.vouch(name, expected_state_version=before.state_version))
        for _ in range(3):
            world.work(ADA)
            clock.now_ms += LEASE_MS
            for name in ("order-3", "order-4"):
                approve(store, name, step="ship", requester="eve")
        assert [ok(store.read(f"order-{n}")).status for n in range(1, 5)] == [
            "succeeded",
            "cancelled",
            "succeeded",
            "succeeded",
        ]
    world.close()


def test_work_goes_on_in_a_file_of_version_4(path: Path) -> None:
    """What runs waits for the approval of another intent; the checkpoints that are there are still good."""
    make_old(path, VERSION_4)
    clock, kept = Clock(10_000), Checkpoints(mac_key=b"0123456789abcdef")
    with open_store(path, clock_ms=clock, checkpoints=kept) as store:
        for number in range(1, 6):
            assert kept.check(ok(store.stored(f"order-{number}"))) is not None
        for name in ("order-1", "order-2", "order-3"):
            ok(store.acquire(name, ADA, lease_ms=LEASE_MS))
        for name, version in (("order-2", 2), ("order-3", 3)):
            anew = StepChange(
                "ship",
                StepStatus.WAITING_APPROVAL,
                approval_fingerprint=f"print of {name}",
                approval_deadline_at_ms=60_000,
                evidence=Evidence.RECORDED_REFUSAL,
            )
            ok(lifecycle.commit(store, anew, instance=name))
            number = ok(approve(store, name, step="ship", requester="eve")).number
            intent = lifecycle.intent_of("ship", name, version=version, fingerprint=f"print of {name}")
            change = StepChange("ship", StepStatus.RUNNING, intent=intent, request=number)
            ok(lifecycle.commit(store, change, instance=name))
        number = ok(approve(store, "order-1", step="ship", requester="eve")).number
        ok(
            lifecycle.commit(
                store, replace(lifecycle.started("ship", "order-1"), request=number), instance="order-1"
            )
        )
        for name, version in (("order-1", 1), ("order-2", 2), ("order-3", 3)):
            step = lifecycle.step_of(store, "ship", name)
            assert (step.status, step.intent and step.intent.intent_version) == ("running", version)


class FailsToUpgrade(sqlite3.Connection):
    """Breaks at the last statement of an upgrade."""

    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        if "user_version = 5" in statement:
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(statement, *arguments)


@OLDER
def test_an_upgrade_that_breaks_leaves_the_file_as_it_was(version: Path, path: Path, clock: Clock) -> None:
    before = make_old(path, version)
    with pytest.raises(StoreError, match="disk I/O error"):
        open_store(path, clock_ms=clock, connection_class=FailsToUpgrade)
    assert named_rows(path) == before
    with open_store(path, clock_ms=clock) as store:
        assert ok(store.read("order-1")).state_version >= 1


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path, clock: Clock) -> None:
    path.write_text("Dear diary, " * 100)
    with pytest.raises(StoreError, match="file is not a database"):
        open_store(path, clock_ms=clock)
    assert path.read_text() == "Dear diary, " * 100


def test_an_empty_file_becomes_a_store(path: Path, clock: Clock) -> None:
    path.touch()
    with open_store(path, clock_ms=clock) as store:
        leased(store)


def test_a_missing_directory_is_an_error(path: Path, clock: Clock) -> None:
    with pytest.raises(StoreError, match="does its directory exist"):
        open_store(path / "deeper" / "store.db", clock_ms=clock)


def test_a_store_that_would_not_outlive_its_process_is_refused(clock: Clock) -> None:
    for name in ("", ":memory:"):
        with pytest.raises(ArgumentError, match="name a file"):
            open_store(name, clock_ms=clock)


def test_wrong_settings_are_errors(path: Path, clock: Clock) -> None:
    with pytest.raises(ArgumentError, match="choose one of OFF, NORMAL, FULL, EXTRA"):
        open_store(path, clock_ms=clock, synchronous="full")
    with pytest.raises(ArgumentError, match="clock_ms must be a function, not 12"):
        open_store(path, clock_ms=12)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="busy_timeout_ms is -1"):
        open_store(path, clock_ms=clock, busy_timeout_ms=-1)
    assert not path.exists()


def test_a_file_that_stays_locked_is_reported_as_busy(path: Path, clock: Clock) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin exclusive")
        with pytest.raises(StoreBusyError, match="stayed locked"):
            open_store(path, clock_ms=clock, busy_timeout_ms=1)


class SlowToSwitch(sqlite3.Connection):
    """A connection to a new file on which another process is switching the write-ahead log on."""

    refusals: int = 1

    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        if "journal_mode" in statement and self.refusals > 0:
            self.refusals -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return super().execute(statement, *arguments)


class NeverSwitching(SlowToSwitch):
    refusals = 10**9


def test_a_file_that_another_process_is_just_preparing_is_waited_for(path: Path, clock: Clock) -> None:
    with open_store(path, clock_ms=clock, connection_class=SlowToSwitch) as store:
        assert pragma(store, "journal_mode") == "wal"
    with pytest.raises(StoreBusyError, match="stayed locked while its write-ahead log was switched on"):
        open_store(path, clock_ms=clock, connection_class=NeverSwitching)


def test_many_may_open_a_new_file_at_once(tmp_path: Path, clock: Clock) -> None:
    for attempt in range(10):
        together = threading.Barrier(4)
        opened: list[Store] = []

        def open_together(
            path: Path, together: threading.Barrier = together, opened: list[Store] = opened
        ) -> None:
            together.wait()
            opened.append(open_store(path, clock_ms=clock, synchronous="OFF", busy_timeout_ms=60_000))

        path = tmp_path / f"store-{attempt}.db"
        threads = [threading.Thread(target=open_together, args=(path,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(opened) == 4
        leased(opened[0])
        for store in opened:
            assert ok(store.read("order-1")).lease_version == 1
            store.close()


def test_time_and_chance_come_in_as_arguments_only() -> None:
    package = Path(fencepost.reference.__file__).parent
    # All but the program that serves a downstream, which is where a clock comes in, and the adapter's parts.
    names = {path.stem for path in package.glob("*.py")} - {"downstream_http", "adapter", "rewind"}
    assert {"store", "sql_steps", "worker", "recovery", "downstream"} <= names
    for name in sorted(names):
        source = (package / f"{name}.py").read_text()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imported = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not imported & {"time", "datetime", "random", "secrets", "uuid"}, name
        words = r"urandom|randomblob|strftime|unixepoch|julianday|current_time|datetime\("
        if "sql" in name:  # in Python, what is called so is an argument
            words += r"|random\("
        assert re.search(words, source) is None, name


def test_importing_the_reference_needs_only_the_standard_library() -> None:
    source = Path(fencepost.reference.__file__).parents[2]
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import fencepost.reference as r; print(r.open_store)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
