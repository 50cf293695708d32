"""What the statements of a handle pass: SQLite, DB-API connections, mappings and locks stop at the gate.

What a worker's handle is built on passes through `Port.watched`. Outside of a schedule nothing is different.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakSet

from fencepost.conformance.gate import DiedError, Gate, Pending, Task, Touch
from fencepost.conformance.sqlite_driver import sqlite_class
from fencepost.conformance.watched import (
    Held,
    LockedError,
    WatchedConnection,
    WatchedLock,
    WatchedMapping,
)

T = TypeVar("T")

LOCK_NOT_AVAILABLE = "55P03"
"""PostgreSQL's code for a lock that another session holds, when asked not to wait."""

IN_THE_WAY = ("40001", "40P01")
"""Its codes for a transaction that another one made impossible: it has to begin again."""


@dataclass(slots=True, eq=False)
class Port:
    """Where the statements of one handle pass. `task` is the worker that uses the handle now."""

    gate: Gate
    locks: dict[int, Held]
    """Who holds which of the watched locks; one table for all handles."""
    task: Task | None = None
    dead: bool = False
    touch: Touch = Touch.ANY
    used: bool = False
    """Whether anything was given to be watched."""
    _open: WeakSet[Any] = field(default_factory=WeakSet)
    _cursors: WeakSet[Any] = field(default_factory=WeakSet)

    def watched(self, driver: Any) -> Any:
        """The same driver, stopping before each statement. TypeError for what cannot be watched."""
        self.used = True
        if isinstance(driver, type) and issubclass(driver, sqlite3.Connection):
            return sqlite_class(driver, self)
        if isinstance(driver, sqlite3.Connection):
            raise TypeError(
                "watched: a connection of sqlite3 that is already open cannot be watched; give the class, "
                "and open it with what comes back: "
                "sqlite3.connect(path, factory=around.watched(sqlite3.Connection))"
            )
        if isinstance(driver, MutableMapping):
            return WatchedMapping(driver, self)
        if hasattr(driver, "cursor") and hasattr(driver, "commit"):
            connection = WatchedConnection(driver, self)
            self._open.add(connection)
            return connection
        if hasattr(driver, "acquire") and hasattr(driver, "release"):
            return WatchedLock(driver, self)
        raise TypeError(
            f"watched: {driver!r} cannot be watched; give a class of sqlite3 connections, "
            "a DB-API connection, a mutable mapping or a lock"
        )

    def pass_on(self, text: str, perform: Callable[[], T]) -> T:
        """Run a statement, in its worker's turn if a schedule is on. DiedError when the worker is dead."""
        self.check()
        if self.task is None:
            return perform()
        return self.gate.statement(self.task, Pending(text, perform, self))  # type: ignore[no-any-return]

    def check(self) -> None:
        """DiedError when the worker is dead, or is about to be."""
        if self.dead:
            raise DiedError
        if self.task is not None and self.task.dying:
            self.gate.refuse(self.task)

    def blocks(self, error: BaseException) -> bool:
        """Whether an error says that another worker holds a lock, and that waiting can help."""
        if isinstance(error, LockedError):
            return True
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None:
            return bool(code & 0xFF == sqlite3.SQLITE_BUSY and code != sqlite3.SQLITE_BUSY_SNAPSHOT)
        return bool(_sqlstate(error) == LOCK_NOT_AVAILABLE)

    def denies(self, error: BaseException) -> bool:
        """Whether an error says that another worker was in the way, and that waiting cannot help."""
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None:
            return bool(code == sqlite3.SQLITE_BUSY_SNAPSHOT or code & 0xFF == sqlite3.SQLITE_LOCKED)
        return _sqlstate(error) in IN_THE_WAY

    def kill(self) -> None:
        """What an operating system does for a dead process: connections and locks are given up."""
        self.dead = True
        for cursor in list(self._cursors):
            with suppress(Exception):
                sqlite3.Cursor.close(cursor)
        for connection in list(self._open):
            with suppress(Exception):
                if isinstance(connection, sqlite3.Connection):
                    sqlite3.Connection.close(connection)
                else:
                    connection.close()
        for key in [key for key, held in self.locks.items() if held.by is self]:
            del self.locks[key]

    def add(self, connection: Any) -> None:
        """A connection, to be closed when the worker dies, unless nobody holds it any more."""
        self._open.add(connection)

    def note_cursor(self, cursor: Any) -> None:
        """A cursor: a live one keeps its connection, and the connection's locks, alive."""
        self._cursors.add(cursor)


def _sqlstate(error: BaseException) -> Any:
    return getattr(error, "sqlstate", getattr(error, "pgcode", None))


__all__ = ["Held", "LockedError", "Port"]
