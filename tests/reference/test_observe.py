"""The back door shows what the tables hold, whatever the store says."""

import ast
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.reference import STATEMENTS, Observation, Observer, Store, StoreError, observe, open_store

from .support import BOB, Clock, commit_on, dump, leased, ok


def test_it_shows_clock_rows_and_log(store: Store, path: Path, clock: Clock) -> None:
    second = leased(store, "order-2")
    clock.now_ms += 1
    first = leased(store, "order-1", BOB)
    entries = (ok(store.commit(commit_on(first))), ok(store.commit(commit_on(second))))
    seen = observe(path)
    assert seen == Observation(
        now_ms=clock.now_ms,
        rows=(replace(first, state_version=1), replace(second, state_version=1)),
        entries=entries,
    )
    assert seen.row("order-1") == replace(first, state_version=1)
    assert seen.row("order-3") is None
    assert seen.log("order-2") == entries[1:]


def test_it_does_not_believe_the_store(path: Path, clock: Clock) -> None:
    lying = replace(STATEMENTS, read=STATEMENTS.read.replace("state_version, status", "7, 'succeeded'"))
    with open_store(path, clock_ms=clock, statements=lying) as store:
        leased(store)
        assert ok(store.read("order-1")).state_version == 7
        row = observe(path).row("order-1")
        assert row is not None
        assert (row.state_version, row.status) == (0, "running")


def test_it_sees_no_half_of_a_transaction_and_waits_for_none(store: Store, path: Path) -> None:
    row = leased(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer, Observer(path) as observer:
        before = observer.observe()
        writer.execute("begin immediate")
        writer.execute("update instances set lease_version = 2, expires_at_ms = null")
        assert observer.observe() == before
        writer.execute("commit")
        assert observer.observe().row("order-1") == replace(row, lease_version=2, expires_at_ms=None)


def test_it_cannot_write(store: Store, path: Path) -> None:
    leased(store)
    before = dump(path)
    with Observer(path) as observer, pytest.raises(sqlite3.OperationalError, match="readonly"):
        observer._connection.execute("update instances set lease_version = 2")
    assert dump(path) == before


def test_it_sees_a_store_that_nobody_has_open(path: Path, clock: Clock) -> None:
    with open_store(path, clock_ms=clock) as store:
        row = leased(store)
    assert observe(path).rows == (row,)
    assert observe(str(path)).rows == (row,)


def test_it_sees_what_a_dead_process_left_in_the_write_ahead_log(store: Store, path: Path) -> None:
    row = leased(store)
    left = path.with_name("left by the dead?.db")
    for suffix in ("", "-wal"):
        Path(f"{left}{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    assert observe(left).rows == (row,)


def test_what_is_no_store_is_an_error(path: Path) -> None:
    with pytest.raises(StoreError, match="is there a store"):
        observe(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table notes (note text)")
    with pytest.raises(StoreError, match="cannot read the tables"):
        observe(path)


def test_it_shares_no_code_with_the_store() -> None:
    source = Path(observe.__code__.co_filename)
    imported = {
        node.module for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.ImportFrom)
    }
    ours = {module for module in imported if module and module.startswith("fencepost")}
    assert ours == {"fencepost.reference.values", "fencepost.reference.values_inbox"}  # words only
