"""Opens a database file: settles how the connection behaves, and makes sure that the file is one of ours.

A file that belongs to something else, or to a newer fencepost, is refused before anything in it is changed.
One of an older version is upgraded, in one transaction.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.reference.handle import BEGIN_READING, BEGIN_WRITING, COMMIT, ROLLBACK, is_busy
from fencepost.reference.values import ArgumentError, StoreBusyError, StoreError, shown, whole

OLDEST_SQLITE: Final = (3, 37, 0)
"""The first version with strict tables."""

SYNCHRONOUS: Final = ("OFF", "NORMAL", "FULL", "EXTRA")
"""The levels by SQLite's own numbers. Below FULL a power cut may take back answers already given."""

WRITE_AHEAD_LOG: Final = "pragma journal_mode = wal"
"""Readers and the writer do not wait for each other; one fsync makes a commit durable. The file remembers."""

PRAGMAS: Final = (
    # {synchronous}: FULL, so that what was answered ok outlives a power cut.
    "pragma synchronous = {synchronous}",
    # On systems whose fsync leaves data in the drive's cache, ask for the stronger call; nothing elsewhere.
    "pragma fullfsync = on",
    "pragma foreign_keys = on",
    # What undoes half a statement need not outlive the process; a file for it costs more than the statement.
    "pragma temp_store = memory",
)

_ATTEMPTS: Final = 100
"""How often the change to write-ahead logging is tried while other processes open the same new file."""


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is: its name in messages and that of its opener, its mark, and its tables.

    `schema` makes version 1 in an empty file; `upgrades` holds, by version, what makes the next one of it.
    `version` is the newest.
    """

    what: str
    opener: str
    application_id: int
    version: int
    schema: tuple[str, ...]
    upgrades: Mapping[int, tuple[str, ...]]


def open_file(
    path: str | os.PathLike[str],
    kind: FileKind,
    *,
    busy_timeout_ms: int,
    synchronous: str,
    connection_class: type[sqlite3.Connection],
) -> sqlite3.Connection:
    """A connection to the file, which is created if there is none, and upgraded if it is old.

    Raises `ArgumentError` for settings that cannot be, `StoreBusyError` for a file that stays locked, and
    `StoreError` for one of something else or of a newer version, or that cannot be opened.
    """
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str) or name in ("", ":memory:") or "\0" in name:
        raise ArgumentError(
            f"{kind.opener}: path is {shown(path)}; name a file, since a {kind.what} outlives its process"
        )
    whole(kind.opener, "busy_timeout_ms", busy_timeout_ms, highest=2**31 - 1)
    if synchronous not in SYNCHRONOUS:
        raise ArgumentError(
            f"{kind.opener}: synchronous is {synchronous!r}; choose one of {', '.join(SYNCHRONOUS)}"
        )
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreError(f"SQLite {sqlite3.sqlite_version} has no strict tables; install 3.37 or later")
    try:
        connection = sqlite3.connect(
            name,
            timeout=busy_timeout_ms / 1_000,
            isolation_level=None,  # transactions begin and end where handle.py says so, and nowhere else
            check_same_thread=False,  # the handle has a lock of its own
            factory=connection_class,
        )
    except sqlite3.Error as error:
        raise StoreError(f"cannot open {name!r}: {error}{_obstacle(name)}") from error
    try:
        _prepare(connection, name, kind, busy_timeout_ms=busy_timeout_ms, synchronous=synchronous)
    except sqlite3.Error as error:
        connection.close()
        if is_busy(error):
            raise StoreBusyError(f"{name!r} stayed locked by another handle; open it again later") from error
        raise StoreError(f"cannot use {name!r} as a {kind.what}: {error}{_obstacle(name)}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _obstacle(name: str) -> str:
    """What about the path keeps a database from being used there, as the end of a sentence; or nothing."""
    path = Path(name).absolute()
    if path.is_dir():
        return "; it is a directory, so name a file in it"
    if not path.parent.is_dir():
        return "; does its directory exist? make it first"
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return "; its directory cannot be written to, where SQLite keeps files of its own, too: allow that"
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        return "; the file cannot be read and written by this user: allow that"
    return ""


def _prepare(
    connection: sqlite3.Connection, name: str, kind: FileKind, *, busy_timeout_ms: int, synchronous: str
) -> None:
    connection.execute(f"pragma busy_timeout = {busy_timeout_ms}")
    connection.execute(BEGIN_READING)  # one moment: another process may be creating the tables just now
    _version_of(connection, name, kind)
    connection.execute(ROLLBACK)
    _use_write_ahead_log(connection, name)
    for pragma in PRAGMAS:
        connection.execute(pragma.format(synchronous=synchronous))
    settled = (_pragma(connection, "synchronous"), _pragma(connection, "foreign_keys"))
    if settled != (SYNCHRONOUS.index(synchronous), 1):
        raise StoreError(f"{name!r}: SQLite did not take the settings of the connection, but kept {settled}")
    connection.execute(BEGIN_WRITING)
    version = _version_of(connection, name, kind)
    if version < kind.version:
        steps = [kind.schema] if version == 0 else []
        steps += [kind.upgrades[older] for older in range(max(version, 1), kind.version)]
        for statement in (statement for step in steps for statement in step):
            connection.execute(statement)
        connection.execute(f"pragma application_id = {kind.application_id}")
        connection.execute(f"pragma user_version = {kind.version}")
    connection.execute(COMMIT)  # after an error the caller closes the connection, which rolls back


def _version_of(connection: sqlite3.Connection, name: str, kind: FileKind) -> int:
    """The version of a file of this kind, 0 for an empty file; `StoreError` for anything else."""
    application_id = _pragma(connection, "application_id")
    version = _pragma(connection, "user_version")
    if application_id == kind.application_id and 1 <= version <= kind.version:
        return version
    if application_id == kind.application_id:
        advice = "upgrade fencepost" if version > kind.version else "it is damaged"
        raise StoreError(
            f"{name!r} has schema version {version}, and this fencepost reads 1 to {kind.version}; {advice}"
        )
    ((tables,),) = connection.execute("select count(*) from sqlite_schema")
    if (application_id, version, tables) == (0, 0, 0):
        return 0
    raise StoreError(f"{name!r} is a database of something else; choose another path")


def _use_write_ahead_log(connection: sqlite3.Connection, name: str) -> None:
    """Switch the file to write-ahead logging, unless it has been.

    Only one connection at a time can make the change, and SQLite tells the others at once, without the busy
    timeout. They wait for it by taking the write lock, for which the timeout does hold, and look again.
    """
    for _ in range(_ATTEMPTS):
        try:
            ((mode,),) = connection.execute(WRITE_AHEAD_LOG)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            connection.execute(BEGIN_WRITING)
            connection.execute(ROLLBACK)
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
