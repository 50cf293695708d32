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
    StepChange,
    StepStatus,
    Store,
    StoreBusyError,
    StoreError,
    open_store,
)

from .support import Clock, commit_on, dump, leased, ok

VERSION_1 = Path(__file__).with_name("version_1.sql")
"""A store as the first version made it, in SQL: one instance, leased, with one commit."""


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


@pytest.mark.parametrize(("version", "advice"), [(3, "upgrade fencepost"), (0, "it is damaged")])
def test_another_schema_version_is_refused_and_left_alone(
    version: int, advice: str, path: Path, clock: Clock
) -> None:
    with open_store(path, clock_ms=clock) as store:
        leased(store)
    execute(path, f"pragma user_version = {version}")
    before = dump(path)
    with pytest.raises(StoreError, match=f"has schema version {version}, and .* reads 1 to 2; {advice}"):
        open_store(path, clock_ms=clock)
    assert dump(path) == before


def test_a_file_of_version_1_is_upgraded_and_keeps_what_it_holds(path: Path, clock: Clock) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(VERSION_1.read_text())
    before = dump(path)
    with open_store(path, clock_ms=clock) as store:
        assert pragma(store, "user_version") == 2
        row = ok(store.read("order-1"))
        assert (row.lease_version, row.state_version, row.steps) == (1, 1, ())
        assert [entry.commit_id for entry in store.log("order-1")] == ["0-1"]
        change = StepChange("charge", StepStatus.RUNNING)
        ok(store.commit(replace(commit_on(row, "0-2"), changes=(change,))))
    kept = {name: dump(path)[name] for name in before if name == "event_log"}
    assert set(before["event_log"]) < set(kept["event_log"])
    schema = "select type, name, sql from sqlite_schema order by name"
    with open_store(path.with_name("new.db"), clock_ms=clock) as store:
        new = store._connection.execute(schema).fetchall()
    with open_store(path, clock_ms=clock) as store:
        upgraded = store._connection.execute(schema).fetchall()
    words = [[(kind, name, sql and sql.split()) for kind, name, sql in each] for each in (new, upgraded)]
    assert words[0] == words[1]


class FailsToUpgrade(sqlite3.Connection):
    """Breaks at the last statement of an upgrade."""

    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        if "user_version = 2" in statement:
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(statement, *arguments)


def test_an_upgrade_that_breaks_leaves_the_file_as_it_was(path: Path, clock: Clock) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(VERSION_1.read_text())
    before = dump(path)
    with pytest.raises(StoreError, match="disk I/O error"):
        open_store(path, clock_ms=clock, connection_class=FailsToUpgrade)
    assert dump(path) == before
    with open_store(path, clock_ms=clock) as store:
        assert ok(store.read("order-1")).state_version == 1


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
        words = r"urandom|randomblob|random\(|strftime|unixepoch|julianday|current_time|datetime\("
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
