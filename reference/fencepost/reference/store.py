"""The store: leases, commits and the event log on SQLite (§1 to §4).

Each operation is one transaction. One that may write takes the database's write lock first, then moves the
store's now, then runs one guarded statement of `sql.py`. If that touched no row, the same transaction asks
which of the statement's own guards refused. Now is persisted even then: what was judged over stays over,
whatever the clock does next.

Left out: steps, effects, the inbox and cancellation (§5 and after). They are not needed to say who may
commit.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import RLock
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from fencepost.reference import sql
from fencepost.reference.guards import explanation_of, guards_of
from fencepost.reference.sql import STATEMENTS, Statements
from fencepost.reference.values import (
    MAX_TIME_MS,
    Answer,
    ArgumentError,
    Commit,
    Entry,
    Ok,
    Owner,
    Refused,
    Row,
    StoreBusyError,
    StoreError,
    checked_owner,
    text,
    whole,
)

Arguments: TypeAlias = Mapping[str, str | int]
Record: TypeAlias = tuple[Any, ...]

ROW_COLUMNS: Final = 7
"""How many columns of `instances` stand first in every record that tells of a row."""


class Store:
    """One handle on a store. Made by `open_store`; to be closed, or used in a `with`.

    Processes share the file, never the handle: each opens its own. Threads may share a handle; its
    operations then run one after the other. Every operation may raise `ArgumentError` and `StoreBusyError`,
    which say that the call changed nothing, and `StoreError`, after which its answer is unknown (§2).
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        clock_ms: Callable[[], int],
        statements: Statements = STATEMENTS,
    ) -> None:
        self._connection: Final = connection
        self._clock_ms: Final = clock_ms
        self._statements: Final = statements
        self._refusals: Final = {
            statement: (tuple(guard.code for guard in guards_of(statement)), explanation_of(statement))
            for statement in (
                statements.create,
                statements.acquire,
                statements.renew,
                statements.release,
                statements.commit,
                statements.read,
            )
        }
        self._lock: Final = RLock()
        self._process: Final = os.getpid()

    # The lease: gate 1.

    def create(self, instance: str) -> Answer[Row]:
        """Begin an instance, as a trigger does (§4): running, both versions 0, no owner."""
        return self._change(self._statements.create, {"instance": text("create", "instance", instance)})

    def acquire(self, instance: str, owner: Owner, *, lease_ms: int) -> Answer[Row]:
        """Take the lease for `lease_ms` milliseconds, if none is live. Raises the lease version (§3)."""
        arguments = _caller("acquire", instance, owner) | _duration("acquire", lease_ms)
        return self._change(self._statements.acquire, arguments)

    def renew(self, instance: str, owner: Owner, lease_version: int, *, lease_ms: int) -> Answer[Row]:
        """Extend a live lease to `lease_ms` milliseconds from now; never shortens or revives it (§3)."""
        arguments = (
            _caller("renew", instance, owner)
            | {"lease_version": whole("renew", "lease_version", lease_version)}
            | _duration("renew", lease_ms)
        )
        return self._change(self._statements.renew, arguments)

    def release(self, instance: str, owner: Owner, lease_version: int) -> Answer[Row]:
        """End the lease for good, live or not; twice is ok (§3). Owner and lease version stay."""
        arguments = _caller("release", instance, owner) | {
            "lease_version": whole("release", "lease_version", lease_version)
        }
        return self._change(self._statements.release, arguments)

    # The commit: gate 2.

    def commit(self, commit: Commit) -> Answer[Entry]:
        """Accept the commit if its owner's lease is live and both versions are those expected (§4).

        A commit id that is already in the instance's log is answered with the entry that it made, before all
        guards, whatever else the commit says.
        """
        if not isinstance(commit, Commit):
            raise ArgumentError(f"commit: expected a Commit, not {commit!r}; pass Commit(...)")
        arguments: dict[str, str | int] = {
            "instance": commit.instance,
            "worker": commit.owner.worker,
            "incarnation": commit.owner.incarnation,
            "commit_id": commit.commit_id,
            "expected_state_version": commit.expected_state_version,
            "expected_lease_version": commit.expected_lease_version,
            "event": commit.event,
            "payload": commit.payload,
            "finishes": int(commit.finishes),
        }
        with self._writing() as now_ms:
            arguments["now_ms"] = now_ms
            logged = self._find_commit(commit.instance, commit.commit_id)
            if logged is not None:
                return Ok(logged)
            changed = self._guarded(self._statements.commit, arguments)
            if isinstance(changed, Refused):
                return changed
            arguments["state_version"] = changed.value.state_version
            return Ok(_entry(self._rows(self._statements.append, arguments)[0]))

    # Reading.

    def read(self, instance: str) -> Answer[Row]:
        """The row as it stands (§1)."""
        arguments = {"instance": text("read", "instance", instance)}
        with self._reading():
            return self._guarded(self._statements.read, arguments)

    def ask(self, instance: str, commit_id: str) -> Answer[tuple[Entry | None, Row]]:
        """The question after a lost reply (§4): the entry of a commit id, if any, and the row with it.

        No entry, and a lease version above the commit's: it never will be accepted. No entry and the same
        lease version: undecided, so send the same commit again. Both are seen at one moment.
        """
        text("ask", "commit_id", commit_id)
        arguments = {"instance": text("ask", "instance", instance)}
        with self._reading():
            row = self._guarded(self._statements.read, arguments)
            if isinstance(row, Refused):
                return row
            return Ok((self._find_commit(instance, commit_id), row.value))

    def log(self, instance: str) -> tuple[Entry, ...]:
        """The accepted commits in `state_version` order (§4); none if there is no such instance."""
        arguments = {"instance": text("log", "instance", instance)}
        with self._reading():
            return tuple(_entry(record) for record in self._rows(self._statements.log, arguments))

    # The handle itself.

    def close(self) -> None:
        """Give up the handle; twice is harmless. Nothing is lost: what was answered is in the file."""
        with self._lock, _translated():
            self._forbid_other_process()
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Transactions.

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """One transaction under the write lock; gives the store's now, in milliseconds."""
        with self._transaction(sql.BEGIN_WRITING):
            yield self._advance_clock()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """One transaction that sees a single moment and waits for no writer."""
        with self._transaction(sql.BEGIN_READING):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._lock, _translated():
            self._forbid_other_process()
            self._begin(begin)
            try:
                yield
                self._connection.execute(sql.COMMIT)
            except BaseException:
                with suppress(sqlite3.Error):
                    if self._connection.in_transaction:
                        self._connection.execute(sql.ROLLBACK)
                raise

    def _begin(self, begin: str) -> None:
        try:
            self._connection.execute(begin)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            raise StoreBusyError(
                "another handle kept the database locked for the whole busy timeout; nothing was changed, "
                "so try again, or open the store with a longer busy_timeout_ms"
            ) from error

    def _forbid_other_process(self) -> None:
        if os.getpid() != self._process:
            raise StoreError(
                f"this store was opened in process {self._process} and is used in its fork {os.getpid()}; "
                "SQLite handles do not survive a fork, so call open_store in each process"
            )

    def _advance_clock(self) -> int:
        """Now: the later of the clock, read under the write lock, and the high-water mark (§1)."""
        reading_ms = whole("clock_ms", "its reading", self._clock_ms(), highest=MAX_TIME_MS)
        ((now_ms,),) = self._rows(self._statements.advance_clock, {"clock_ms": reading_ms})
        return int(now_ms)

    # Statements.

    def _change(self, statement: str, arguments: Arguments) -> Answer[Row]:
        with self._writing() as now_ms:
            return self._guarded(statement, {**arguments, "now_ms": now_ms})

    def _guarded(self, statement: str, arguments: Arguments) -> Answer[Row]:
        """Run a statement; when it touches no row, refuse by its first guard that does not hold."""
        touched = self._rows(statement, arguments)
        if touched:
            return Ok(_row(touched[0]))
        codes, explanation = self._refusals[statement]
        (record,) = self._rows(explanation, arguments)
        for code, holds in zip(codes, record[ROW_COLUMNS:], strict=True):
            if not holds:
                return Refused(code, None if record[0] is None else _row(record))
        raise StoreError(f"a statement touched no row although each guard in its text holds:\n{statement}")

    def _find_commit(self, instance: str, commit_id: str) -> Entry | None:
        found = self._rows(self._statements.find_commit, {"instance": instance, "commit_id": commit_id})
        return _entry(found[0]) if found else None

    def _rows(self, statement: str, arguments: Arguments) -> list[Record]:
        return self._connection.execute(statement, arguments).fetchall()


def is_busy(error: sqlite3.Error) -> bool:
    """Whether the database was locked by another handle."""
    extended_code = getattr(error, "sqlite_errorcode", 0)  # errors of the driver itself have none
    return extended_code & 0xFF == sqlite3.SQLITE_BUSY


@contextmanager
def _translated() -> Iterator[None]:
    """Turn the database's own errors into `StoreError`, so that callers need not know the driver."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"the database failed: {error}") from error


def _caller(who: str, instance: str, owner: Owner) -> dict[str, str | int]:
    checked_owner(who, owner)
    return {
        "instance": text(who, "instance", instance),
        "worker": owner.worker,
        "incarnation": owner.incarnation,
    }


def _duration(who: str, lease_ms: int) -> dict[str, int]:
    return {"lease_ms": whole(who, "lease_ms", lease_ms, lowest=1, highest=MAX_TIME_MS)}


def _row(record: Record) -> Row:
    """A row from the columns that every statement on `instances` begins with."""
    instance, worker, incarnation, lease_version, expires_at_ms, state_version, status = record[:ROW_COLUMNS]
    owner = None if worker is None else Owner(worker, incarnation)
    return Row(instance, owner, lease_version, expires_at_ms, state_version, status)


def _entry(record: Record) -> Entry:
    instance, state_version, lease_version, worker, incarnation, *rest = record
    return Entry(instance, state_version, lease_version, Owner(worker, incarnation), *rest)
