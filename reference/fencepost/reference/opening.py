"""Opens a store: settles how the connection behaves, and makes sure that the file is one of ours.

A file that belongs to something else, or to a newer fencepost, is refused before anything in it is changed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from typing import Final

from fencepost.reference import sql
from fencepost.reference.sql import STATEMENTS, Statements
from fencepost.reference.store import Store, is_busy
from fencepost.reference.values import ArgumentError, StoreBusyError, StoreError, whole

OLDEST_SQLITE: Final = (3, 37, 0)
"""The first version with strict tables."""

SYNCHRONOUS: Final = ("OFF", "NORMAL", "FULL", "EXTRA")
"""The levels by SQLite's own numbers. Below FULL a power cut may take back answers already given."""

_ATTEMPTS: Final = 100
"""How often the change to write-ahead logging is tried while other processes open the same new file."""


def open_store(
    path: str | os.PathLike[str],
    *,
    clock_ms: Callable[[], int],
    busy_timeout_ms: int = 5_000,
    synchronous: str = "FULL",
    statements: Statements = STATEMENTS,
    connection_class: type[sqlite3.Connection] = sqlite3.Connection,
) -> Store:
    """Open the store in the file at `path`; the file is created if there is none.

    `clock_ms` gives milliseconds since a moment that all users of the file agree on. It is called once in
    each operation that may write, under the write lock. `busy_timeout_ms` is how long an operation waits for
    that lock: five seconds by default, far longer than a healthy writer needs. `synchronous` is SQLite's
    level; only FULL, the default, and EXTRA keep every answer through a power cut. `statements` and
    `connection_class` replace parts, so that tests can break the store or watch it.

    Raises `StoreError` for a file that is no store, that a newer fencepost made, or that cannot be opened.
    """
    name = os.fspath(path)
    if not isinstance(name, str) or name in ("", ":memory:"):
        raise ArgumentError(f"open_store: path is {name!r}; name a file, since a store outlives its process")
    if not callable(clock_ms):
        raise ArgumentError(
            f"open_store: clock_ms must be a function, not {clock_ms!r}; pass one that gives milliseconds"
        )
    whole("open_store", "busy_timeout_ms", busy_timeout_ms, highest=2**31 - 1)
    if synchronous not in SYNCHRONOUS:
        raise ArgumentError(
            f"open_store: synchronous is {synchronous!r}; choose one of {', '.join(SYNCHRONOUS)}"
        )
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreError(f"SQLite {sqlite3.sqlite_version} has no strict tables; install 3.37 or later")
    try:
        connection = sqlite3.connect(
            name,
            timeout=busy_timeout_ms / 1_000,
            isolation_level=None,  # transactions begin and end where store.py says so, and nowhere else
            check_same_thread=False,  # the store has a lock of its own
            factory=connection_class,
        )
    except sqlite3.Error as error:
        raise StoreError(f"cannot open {name!r}: {error}; does its directory exist?") from error
    try:
        _prepare(connection, name, busy_timeout_ms=busy_timeout_ms, synchronous=synchronous)
        return Store(connection, clock_ms=clock_ms, statements=statements)
    except sqlite3.Error as error:
        connection.close()
        if is_busy(error):
            raise StoreBusyError(f"{name!r} stayed locked by another handle; open it again later") from error
        raise StoreError(f"cannot use {name!r} as a store: {error}") from error
    except BaseException:
        connection.close()
        raise


def _prepare(connection: sqlite3.Connection, name: str, *, busy_timeout_ms: int, synchronous: str) -> None:
    connection.execute(f"pragma busy_timeout = {busy_timeout_ms}")
    connection.execute(sql.BEGIN_READING)  # one moment: another process may be creating the tables just now
    _is_ours(connection, name)
    connection.execute(sql.ROLLBACK)
    _use_write_ahead_log(connection, name)
    for pragma in sql.PRAGMAS:
        connection.execute(pragma.format(synchronous=synchronous))
    settled = (_pragma(connection, "synchronous"), _pragma(connection, "foreign_keys"))
    if settled != (SYNCHRONOUS.index(synchronous), 1):
        raise StoreError(f"{name!r}: SQLite did not take the settings of the connection, but kept {settled}")
    connection.execute(sql.BEGIN_WRITING)
    if not _is_ours(connection, name):
        for statement in sql.SCHEMA:
            connection.execute(statement)
    connection.execute(sql.COMMIT)  # after an error the caller closes the connection, which rolls back


def _is_ours(connection: sqlite3.Connection, name: str) -> bool:
    """True for a store of this version, False for an empty file; `StoreError` for anything else."""
    application_id = _pragma(connection, "application_id")
    version = _pragma(connection, "user_version")
    if application_id == sql.APPLICATION_ID and version == sql.SCHEMA_VERSION:
        return True
    if application_id == sql.APPLICATION_ID:
        advice = "upgrade fencepost" if version > sql.SCHEMA_VERSION else "migrate the file"
        raise StoreError(
            f"{name!r} has schema version {version}, and this fencepost reads {sql.SCHEMA_VERSION}; {advice}"
        )
    ((tables,),) = connection.execute("select count(*) from sqlite_schema")
    if (application_id, version, tables) == (0, 0, 0):
        return False
    raise StoreError(f"{name!r} is a database of something else; choose another path")


def _use_write_ahead_log(connection: sqlite3.Connection, name: str) -> None:
    """Switch the file to write-ahead logging, unless it has been.

    Only one connection at a time can make the change, and SQLite tells the others at once, without the busy
    timeout. They wait for it by taking the write lock, for which the timeout does hold, and look again.
    """
    for _ in range(_ATTEMPTS):
        try:
            ((mode,),) = connection.execute(sql.WRITE_AHEAD_LOG)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            connection.execute(sql.BEGIN_WRITING)
            connection.execute(sql.ROLLBACK)
            continue
        if mode != "wal":
            raise StoreError(
                f"{name!r} cannot have a write-ahead log, only {mode!r}; use a local file system"
            )
        return
    raise StoreBusyError(f"{name!r} stayed locked while its write-ahead log was switched on; try again")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    ((value,),) = connection.execute(f"pragma {name}")
    return whole("SQLite", name, value, lowest=-(2**31))
