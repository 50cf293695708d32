"""Several handles on one file, one handle in several threads, and handles that die half-way."""

import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    HandleError,
    Ok,
    Owner,
    Store,
    StoreBusyError,
    StoreError,
    open_downstream,
    open_histories,
    open_store,
)

from .support import ADA, LEASE_MS, Clock, code, commit_on, dump, leased, ok, request


def run_together(*tasks: Callable[[], object]) -> None:
    """Run each task in a thread of its own, from one starting signal; the first error is raised here."""
    together = threading.Barrier(len(tasks))
    errors: list[BaseException] = []

    def run(task: Callable[[], object]) -> None:
        together.wait()
        try:
            task()
        except BaseException as error:  # noqa: BLE001 - it is raised in the main thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_of_two_handles_that_acquire_at_once_exactly_one_succeeds(path: Path, clock: Clock) -> None:
    names = [f"order-{number}" for number in range(50)]
    won: dict[str, list[str]] = {"ada": [], "bob": []}
    with open_store(path, clock_ms=clock, synchronous="OFF") as store:
        for name in names:
            ok(store.create(name))

    def take_all(worker: str) -> None:
        with open_store(path, clock_ms=clock, synchronous="OFF", busy_timeout_ms=60_000) as store:
            for name in names:
                answer = store.acquire(name, Owner(worker, 0), lease_ms=LEASE_MS)
                if isinstance(answer, Ok):
                    won[worker].append(name)
                else:
                    assert answer.code == "lease-live"

    run_together(lambda: take_all("ada"), lambda: take_all("bob"))
    assert sorted(won["ada"] + won["bob"]) == sorted(names)


def test_threads_may_share_one_handle(store: Store) -> None:
    leased(store)

    def commit_many(worker: str) -> None:
        accepted = 0
        while accepted < 50:
            row = ok(store.read("order-1"))
            answer = store.commit(commit_on(row, f"{worker}-{accepted}"))
            if isinstance(answer, Ok):
                accepted += 1
            else:
                assert answer.code == "stale-state-version"

    run_together(lambda: commit_many("one"), lambda: commit_many("two"))
    assert [entry.state_version for entry in store.log("order-1")] == list(range(1, 101))


def test_what_one_handle_did_another_sees(store: Store, path: Path, clock: Clock) -> None:
    row = leased(store)
    with open_store(path, clock_ms=clock) as other:
        assert ok(other.read("order-1")) == row
        ok(other.commit(commit_on(row)))
    assert code(store.commit(commit_on(row, "0-2"))) == "stale-state-version"


def test_handles_share_one_now(store: Store, path: Path) -> None:
    row = leased(store)
    with open_store(path, clock_ms=lambda: 10**6) as ahead:
        assert code(ahead.commit(commit_on(row))) == "lease-expired"
    assert code(store.commit(commit_on(row))) == "lease-expired"


def test_the_clock_is_read_under_the_write_lock(path: Path) -> None:
    """Read before the wait for the lock, it would judge a lease by a time long gone."""
    locked: list[bool] = []

    def clock_ms() -> int:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            try:
                other.execute("begin immediate")
            except sqlite3.OperationalError:
                locked.append(True)
            else:
                locked.append(False)
        return 1_000

    with open_store(path, clock_ms=clock_ms) as store:
        row = leased(store)
        ok(store.commit(commit_on(row)))
        ok(store.read("order-1"))
        ok(store.ask("order-1", "0-1"))
    assert locked == [True] * 3  # create, acquire and commit; reading looks at no clock


def test_a_lock_that_is_not_given_up_is_reported_and_nothing_is_changed(path: Path, clock: Clock) -> None:
    with (
        open_store(path, clock_ms=clock, busy_timeout_ms=1) as store,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        row = leased(store)
        before = dump(path)
        other.execute("begin immediate")
        with pytest.raises(StoreBusyError, match="nothing was changed"):
            store.commit(commit_on(row))
        assert ok(store.read("order-1")) == row  # readers do not wait
        other.execute("rollback")
        assert dump(path) == before
        ok(store.commit(commit_on(row)))


def test_a_clock_that_calls_its_own_store_is_an_error(path: Path) -> None:
    stores: list[Store] = []

    def clock_ms() -> int:
        if stores:
            stores[0].create("inner")
        return 1_000

    with open_store(path, clock_ms=clock_ms) as store:
        stores.append(store)
        with pytest.raises(StoreError, match="within a transaction"):
            store.create("outer")
        stores.clear()
        assert code(store.read("outer")) == "no-such-instance"
        ok(store.create("outer"))


CLOSED: dict[str, tuple[Callable[[Path], Any], Callable[[Any], Any]]] = {
    "store": (lambda path: open_store(path, clock_ms=Clock()), lambda store: store.create("order-1")),
    "reading": (lambda path: open_store(path, clock_ms=Clock()), lambda store: store.now_ms()),
    "downstream": (
        lambda path: open_downstream(path, clock_ms=Clock()),
        lambda downstream: downstream.apply(request()),
    ),
    "file of histories": (open_histories, lambda histories: histories.of("order-1").read()),
}


@pytest.mark.parametrize(("opens", "uses"), CLOSED.values(), ids=CLOSED)
def test_a_closed_handle_is_an_error_after_which_nothing_has_changed_and_closing_twice_is_not(
    opens: Callable[[Path], Any], uses: Callable[[Any], Any], path: Path
) -> None:
    handle = opens(path)
    before = dump(path)
    handle.close()
    handle.close()
    with pytest.raises(HandleError, match="is closed, so nothing was asked or changed; call open_"):
        uses(handle)
    assert dump(path) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # the child only asserts and leaves
def test_a_handle_is_refused_in_a_forked_child(store: Store) -> None:
    leased(store)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            store.read("order-1")
        except StoreError as error:
            status = 0 if "call open_store in each process" in str(error) else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    ok(store.read("order-1"))


class DeathError(BaseException):
    """The process is gone: nothing that the code does afterwards has any effect."""


class Dying(sqlite3.Connection):
    """A connection on which the process dies at a given statement, before or after it; none runs later."""

    before_death: int = sys.maxsize
    after_the_statement: bool = False

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self.before_death -= 1
        if self.before_death < 0 or (self.before_death == 0 and not self.after_the_statement):
            raise DeathError
        cursor = super().execute(*arguments)
        if self.before_death == 0:
            cursor.close()  # or the traceback would keep it, and with it the lock, alive
            raise DeathError
        return cursor


@pytest.mark.parametrize("after_the_statement", [False, True])
def test_death_at_any_statement_of_a_commit_leaves_all_of_it_or_nothing(
    after_the_statement: bool, tmp_path: Path, clock: Clock
) -> None:
    outcomes = []
    for statement in range(1, 8):
        path = tmp_path / f"store-{statement}.db"
        store = open_store(path, clock_ms=clock, connection_class=Dying)
        connection = store._connection
        assert isinstance(connection, Dying)
        row = leased(store)
        commit = commit_on(row)
        connection.after_the_statement = after_the_statement
        connection.before_death = statement
        try:
            store.commit(commit)
        except DeathError:
            died = True
        else:
            died = False
        connection.close()
        with open_store(path, clock_ms=clock) as heir:
            entry, row = ok(heir.ask("order-1", commit.commit_id))
            log = heir.log("order-1")
            assert log == (() if entry is None else (entry,))
            assert row.state_version == len(log)
            outcomes.append((died, len(log)))
            assert heir.commit(commit) == Ok(heir.log("order-1")[0])  # sent again, it is there once
    # begin, clock, look for the id, compare and set, append, commit: the last of them decides.
    accepted = 5 if after_the_statement else 6
    assert outcomes == [(True, 0)] * accepted + [(True, 1)] * (6 - accepted) + [(False, 1)]


def test_an_error_in_the_middle_of_an_operation_rolls_it_back(path: Path, clock: Clock) -> None:
    class Failing(sqlite3.Connection):
        def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
            if "insert into event_log" in statement:
                raise sqlite3.OperationalError("disk I/O error")
            return super().execute(statement, *arguments)

    with open_store(path, clock_ms=clock, connection_class=Failing) as store:
        row = leased(store)
        with pytest.raises(StoreError, match="disk I/O error"):
            store.commit(commit_on(row))
        assert ok(store.read("order-1")) == row
        assert ok(store.renew("order-1", ADA, 1, lease_ms=1)) == row
