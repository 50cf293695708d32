"""The adapter of the SQLite store for the conformance checks, and stores that are broken on purpose.

The only module of the reference that knows the conformance checks. A broken store is the store with one SQL
statement replaced and nothing else, so that whatever is found wrong with it is wrong in that statement.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from fencepost.conformance import adapter as a
from fencepost.reference import sql
from fencepost.reference.observe import Observer
from fencepost.reference.opening import open_store
from fencepost.reference.sql import STATEMENTS, Statements
from fencepost.reference.store import Store
from fencepost.reference.values import Answer, Commit, Entry, Ok, Owner, Refused, Row, StoreError

INSTANCE = "order-1"
"""The one instance of each world."""

RAM_DISK = Path("/dev/shm")  # noqa: S108  # where a directory of our own is made
"""Files there cost no wait for a disk. Locking is that of files all the same, which a memory database's is
not.
"""


@dataclass(frozen=True, slots=True)
class World:
    """One storage: the file of the store, in a directory of its own, and the back door."""

    directory: Path
    path: Path
    observer: Observer


@dataclass(frozen=True, slots=True)
class StoreWorker:
    """One handle on the store, under one owner's name."""

    store: Store
    owner: Owner

    def acquire(self, *, lease_ms: int) -> a.Answer:
        """Acquire, as this owner."""
        return _called(lambda: self.store.acquire(INSTANCE, self.owner, lease_ms=lease_ms), _ok_row)

    def renew(self, lease_version: int, *, lease_ms: int) -> a.Answer:
        """Renew, as this owner."""
        return _called(
            lambda: self.store.renew(INSTANCE, self.owner, lease_version, lease_ms=lease_ms), _ok_row
        )

    def release(self, lease_version: int) -> a.Answer:
        """Release, as this owner."""
        return _called(lambda: self.store.release(INSTANCE, self.owner, lease_version), _ok_row)

    def commit(self, commit: a.Commit) -> a.Answer:
        """Commit what the commit says, as its own owner."""
        sent = Commit(
            instance=INSTANCE,
            owner=Owner(commit.owner.worker, commit.owner.incarnation),
            commit_id=commit.commit_id,
            expected_state_version=commit.state_version,
            expected_lease_version=commit.lease_version,
            event="finished" if commit.finishes else "progressed",
            finishes=commit.finishes,
        )
        return _called(lambda: self.store.commit(sent), lambda entry: a.Ok(entry=_entry(entry)))

    def ask(self, commit_id: str) -> a.Answer:
        """Ask for a commit id."""
        return _called(
            lambda: self.store.ask(INSTANCE, commit_id),
            lambda both: a.Ok(row=_row(both[1]), entry=None if both[0] is None else _entry(both[0])),
        )

    def read(self) -> a.Answer:
        """Read the row."""
        return _called(lambda: self.store.read(INSTANCE), _ok_row)

    def close(self) -> None:
        """Close the handle."""
        self.store.close()


@dataclass(frozen=True, slots=True)
class SqliteAdapter:
    """The SQLite store in files of a temporary directory, with the statements that it is to use."""

    name: str = "sqlite"
    statements: Statements = STATEMENTS
    model_variant: str = ""
    deviations: Mapping[str, str] = field(default_factory=dict)
    capabilities: frozenset[a.Capability] = a.EVERYTHING

    def fresh_world(self) -> World:
        """A new file with one instance, copied from one that the store made."""
        where = RAM_DISK if RAM_DISK.is_dir() and os.access(RAM_DISK, os.W_OK) else None
        directory = Path(tempfile.mkdtemp(prefix="fencepost-", dir=where))
        path = directory / "store.db"
        path.write_bytes(_fresh_file(self.statements))
        return World(directory, path, Observer(path))

    def open_worker(
        self, world: World, name: str, incarnation: int, surroundings: a.Surroundings
    ) -> StoreWorker:
        """Open the file once more."""
        store = open_store(
            world.path,
            clock_ms=surroundings.clock_ms,
            synchronous="OFF",  # no power cut is tried; the death of a process loses nothing all the same
            statements=self.statements,
            connection_class=surroundings.watched(sqlite3.Connection),
        )
        return StoreWorker(store, Owner(name, incarnation))

    def observe(self, world: World) -> a.Observation:
        """What the tables hold, by the store's own back door."""
        seen = world.observer.observe()
        row = seen.row(INSTANCE)
        if row is None:
            raise StoreError(f"observe: there is no row {INSTANCE!r}")
        return a.Observation(_row(row), tuple(_entry(entry) for entry in seen.log(INSTANCE)))

    def close_world(self, world: World) -> None:
        """Delete the file."""
        world.observer.close()
        shutil.rmtree(world.directory, ignore_errors=True)


def make_sqlite(statements: Statements | None = None, **details: Any) -> SqliteAdapter:
    """The adapter of the SQLite store; `statements` replaces its SQL, `details` its other fields."""
    return SqliteAdapter(statements=STATEMENTS if statements is None else statements, **details)


@cache
def _fresh_file(statements: Statements) -> bytes:
    """The file of a new store with one instance, as the store itself makes it."""
    with tempfile.TemporaryDirectory(prefix="fencepost-") as directory:
        path = Path(directory, "store.db")
        with open_store(path, clock_ms=lambda: 0, synchronous="OFF", statements=statements) as store:
            created = store.create(INSTANCE)
        if not isinstance(created, Ok):
            raise StoreError(f"fresh_world: the instance was not created: {created}")
        return path.read_bytes()  # closed, and so all in one file


def _called(call: Callable[[], Answer[Any]], accepted: Callable[[Any], a.Ok]) -> a.Answer:
    try:
        answer = call()
    except StoreError as error:
        return a.Unknown(f"{type(error).__name__}: {error}")
    if isinstance(answer, Refused):
        return a.Refused(answer.code, None if answer.observed is None else _row(answer.observed))
    return accepted(answer.value)


def _ok_row(row: Row) -> a.Ok:
    return a.Ok(row=_row(row))


def _owner(owner: Owner | None) -> a.Owner | None:
    return None if owner is None else a.Owner(owner.worker, owner.incarnation)


def _row(row: Row) -> a.Row:
    return a.Row(
        owner=_owner(row.owner),
        lease_version=row.lease_version,
        expires_at_ms=row.expires_at_ms,
        state_version=row.state_version,
        finished=row.status != "running",
    )


def _entry(entry: Entry) -> a.Entry:
    return a.Entry(entry.commit_id, entry.state_version, entry.lease_version, _owner(entry.owner))


# Stores that are broken on purpose.


def without_guards(statement: str, *codes: str) -> str:
    """The statement without the guards of these refusals."""
    lines = [
        line for line in statement.splitlines() if not line.endswith(tuple(f"-- refuse: {c}" for c in codes))
    ]
    if len(lines) != len(statement.splitlines()) - len(codes):
        raise StoreError(f"the statement has not exactly one guard for each of {', '.join(codes)}")
    return "\n".join(lines)


_GATES = ("stale-lease-version", "not-the-owner", "lease-expired")
"""What a commit that trusts something else than the lease leaves out."""

_FIND_NOTHING = f"{sql.FIND_COMMIT.rstrip()} and false\n"

BROKEN: Mapping[str, Statements] = {
    "late-commit-by-id": replace(
        STATEMENTS, commit=without_guards(sql.COMMIT_STATE, *_GATES, "finished", "stale-state-version")
    ),
    "status-only-guard": replace(
        STATEMENTS, commit=without_guards(sql.COMMIT_STATE, *_GATES, "stale-state-version")
    ),
    "state-version-only-guard": replace(STATEMENTS, commit=without_guards(sql.COMMIT_STATE, *_GATES)),
    "lease-version-not-raised": replace(
        STATEMENTS,
        acquire=sql.ACQUIRE.replace(
            "lease_version = lease_version + 1", "lease_version = max(lease_version, 1)"
        ),
        commit=without_guards(sql.COMMIT_STATE, "not-the-owner"),
    ),
    "no-state-version-check": replace(
        STATEMENTS, commit=without_guards(sql.COMMIT_STATE, "stale-state-version")
    ),
    "takeover-from-a-live-owner": replace(STATEMENTS, acquire=without_guards(sql.ACQUIRE, "lease-live")),
    "renewal-revives": replace(STATEMENTS, renew=without_guards(sql.RENEW, "lease-expired")),
    "release-by-anyone": replace(
        STATEMENTS, release=without_guards(sql.RELEASE, "stale-lease-version", "not-the-owner")
    ),
    "no-commit-id": replace(STATEMENTS, find_commit=_FIND_NOTHING),
    "commits-after-the-end": replace(STATEMENTS, commit=without_guards(sql.COMMIT_STATE, "finished")),
    "commits-after-expiry": replace(STATEMENTS, commit=without_guards(sql.COMMIT_STATE, "lease-expired")),
    "owner-not-compared": replace(STATEMENTS, commit=without_guards(sql.COMMIT_STATE, "not-the-owner")),
}
"""Each store under the name of the variant of the model that it is like."""

LYING: Mapping[str, Statements] = {
    # Says ok, and gives an entry, and writes nothing.
    "ok-but-not-committed": replace(
        STATEMENTS,
        commit=sql.COMMIT_STATE.replace(
            "state_version = state_version + 1", "state_version = state_version"
        ).replace("iif(:finishes, 'succeeded', status)", "iif(:finishes, status, status)"),
        append=re.sub(
            r"insert into .*?\nvalues \((.*)\)  -- effect.*", r"select \1", sql.APPEND, flags=re.DOTALL
        ),
    ),
    # Raises the state version and says that it refused, since an update that returns nothing looks undone.
    "refused-but-committed": replace(STATEMENTS, commit=sql.COMMIT_STATE.partition("returning")[0]),
    # Tells of a lease version that is not the one it gave.
    "tells-of-another-version": replace(
        STATEMENTS,
        acquire=sql.ACQUIRE.replace(
            "owner_incarnation, lease_version,", "owner_incarnation, lease_version + 1,"
        ),
    ),
    # Reads a row as it was before the last commit.
    "reads-an-old-row": replace(
        STATEMENTS, read=sql.READ.replace("state_version, status", "max(state_version - 1, 0), status")
    ),
    # Judges a commit one millisecond late: it is accepted at the very end of the lease.
    "live-at-its-end": replace(
        STATEMENTS, commit=sql.COMMIT_STATE.replace(":now_ms < expires_at_ms", ":now_ms <= expires_at_ms")
    ),
    # Counts a renewal from now, also when that shortens the lease.
    "renewal-shortens": replace(
        STATEMENTS,
        renew=sql.RENEW.replace("max(expires_at_ms, :now_ms + :lease_ms)", ":now_ms + :lease_ms"),
    ),
}
"""Stores whose answers are not what they do, or that are wrong in time, which no variant of the model is."""
