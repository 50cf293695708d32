"""Drivers that stop at the gate before each statement: SQLite, any DB-API connection, mappings, locks.

What a worker's handle is built on passes through `Port.watched`. Outside of a schedule nothing is different.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from weakref import WeakSet

from fencepost.conformance.gate import DiedError, Gate, Pending, Task, Touch

T = TypeVar("T")

LOCK_NOT_AVAILABLE = "55P03"
"""PostgreSQL's code for a lock that another session holds, when asked not to wait."""

_RETURNS_LATE = ("insert", "update", "delete", "replace")
"""Statements that, where they return rows, end only when these have been fetched."""


class LockedError(Exception):
    """A lock of Python that another worker holds."""


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
    _raw: list[Any] = field(default_factory=list)
    _cursors: WeakSet[Any] = field(default_factory=WeakSet)

    def watched(self, driver: Any) -> Any:
        """The same driver, stopping before each statement. TypeError for what cannot be watched."""
        self.used = True
        if isinstance(driver, type) and issubclass(driver, sqlite3.Connection):
            return _sqlite_class(driver, self)
        if isinstance(driver, MutableMapping):
            return WatchedMapping(driver, self)
        if hasattr(driver, "cursor") and hasattr(driver, "commit"):
            self._raw.append(driver)
            return WatchedConnection(driver, self)
        if hasattr(driver, "acquire") and hasattr(driver, "release"):
            return WatchedLock(driver, self)
        raise TypeError(
            f"watched: {driver!r} cannot be watched; give a class of sqlite3 connections, "
            "a DB-API connection, a mutable mapping or a lock"
        )

    def pass_on(self, text: str, perform: Callable[[], T]) -> T:
        """Run a statement, in its worker's turn if a schedule is on. DiedError when the worker is dead."""
        if self.dead:
            raise DiedError
        if self.task is None:
            return perform()
        return self.gate.statement(self.task, Pending(text, perform, self))  # type: ignore[no-any-return]

    def blocks(self, error: BaseException) -> bool:
        """Whether an error says that another worker holds a lock, and that waiting can help."""
        if isinstance(error, LockedError):
            return True
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None:
            return bool(code & 0xFF == sqlite3.SQLITE_BUSY and code != sqlite3.SQLITE_BUSY_SNAPSHOT)
        return getattr(error, "sqlstate", getattr(error, "pgcode", None)) == LOCK_NOT_AVAILABLE

    def kill(self) -> None:
        """What an operating system does for a dead process: connections and locks are given up."""
        self.dead = True
        for cursor in list(self._cursors):
            with suppress(Exception):
                sqlite3.Cursor.close(cursor)
        for raw in self._raw:
            with suppress(Exception):
                sqlite3.Connection.close(raw) if isinstance(raw, sqlite3.Connection) else raw.close()
        for key in [key for key, held in self.locks.items() if held.by is self]:
            del self.locks[key]

    def add(self, connection: Any) -> None:
        """A raw connection, to be closed when the worker dies."""
        self._raw.append(connection)

    def note_cursor(self, cursor: Any) -> None:
        """A cursor: a live one keeps its connection, and the connection's locks, alive."""
        self._cursors.add(cursor)


# -- SQLite


def _sqlite_class(  # noqa: C901  # two classes of short methods, which share the port
    base: type[sqlite3.Connection], port: Port
) -> type[sqlite3.Connection]:
    """A class of connections like `base`, whose statements pass through the port."""

    class Cursor(sqlite3.Cursor):
        _rows: deque[Any] | None = None

        def execute(self, sql: str, parameters: Any = (), /) -> Any:
            def perform() -> None:
                word = _first_word(sql)
                _do_not_wait(self.connection, sql, port)
                port.touch = _connection_of(self).touches(word, sql)
                self._rows = None
                sqlite3.Cursor.execute(self, sql, parameters)
                if self.description is not None and word in _RETURNS_LATE:
                    self._rows = deque(sqlite3.Cursor.fetchall(self))

            port.pass_on(sql, perform)
            return self

        def executemany(self, sql: str, parameters: Any, /) -> Any:
            port.pass_on(sql, lambda: self._other(sqlite3.Cursor.executemany, sql, parameters))
            return self

        def executescript(self, script: str, /) -> Any:
            port.pass_on(script, lambda: self._other(sqlite3.Cursor.executescript, script))
            return self

        def _other(self, run: Any, sql: str, *parameters: Any) -> None:
            _do_not_wait(self.connection, sql, port)
            port.touch = _connection_of(self).touches("", sql)
            run(self, sql, *parameters)

        def fetchall(self) -> list[Any]:
            if self._rows is None:
                return super().fetchall()
            rows, self._rows = list(self._rows), deque()
            return rows

        def fetchone(self) -> Any:
            if self._rows is None:
                return super().fetchone()
            return self._rows.popleft() if self._rows else None

        def fetchmany(self, size: int | None = None) -> list[Any]:
            wanted = self.arraysize if size is None else size
            if self._rows is None:
                return super().fetchmany(wanted)
            return [self._rows.popleft() for _ in range(min(wanted, len(self._rows)))]

        def __next__(self) -> Any:
            if self._rows is None:
                return super().__next__()
            if not self._rows:
                raise StopIteration
            return self._rows.popleft()

    class Connection(base):  # type: ignore[valid-type, misc]
        waits = True
        reads_past_writers: bool | None = None
        writing = False

        def __init__(self, *arguments: Any, **named: Any) -> None:
            # Only one thread moves at a time, and the statement of one worker may run in another's thread.
            super().__init__(*arguments[:4], **{**named, "check_same_thread": False})
            port.add(self)

        def cursor(self, factory: Any = Cursor) -> Any:
            if port.dead:
                raise DiedError
            made = super().cursor(factory)
            port.note_cursor(made)
            return made

        def execute(self, sql: str, parameters: Any = (), /) -> Any:
            return self.cursor().execute(sql, parameters)

        def executemany(self, sql: str, parameters: Any, /) -> Any:
            return self.cursor().executemany(sql, parameters)

        def executescript(self, script: str, /) -> Any:
            return self.cursor().executescript(script)

        def touches(self, word: str, sql: str) -> Touch:
            """What a statement is about to touch, unless it changes what others see."""
            if self.reads_past_writers is None:
                self.reads_past_writers = _has_write_ahead_log(self)
            takes_lock = "immediate" in sql.lower() or "exclusive" in sql.lower()
            reads = word == "select" or (word == "begin" and not takes_lock)
            ends = word in ("commit", "end", "rollback")
            if not self.reads_past_writers or not (reads or ends):
                self.writing = True
                return Touch.LOCK if self.reads_past_writers else Touch.ANY
            writing = self.writing
            if ends:
                self.writing = False
            return Touch.LOCK if ends and writing else Touch.NOTHING

        def commit(self) -> None:
            if self.in_transaction:
                port.pass_on("commit", lambda: self._ended("commit", super(Connection, self).commit))

        def rollback(self) -> None:
            if self.in_transaction:
                port.pass_on("rollback", lambda: self._ended("rollback", super(Connection, self).rollback))

        def _ended(self, word: str, end: Callable[[], None]) -> None:
            port.touch = self.touches(word, word)
            end()

        def __exit__(self, *error: object) -> Any:
            self.commit() if error[0] is None else self.rollback()
            return False

    return Connection


def _connection_of(cursor: sqlite3.Cursor) -> Any:
    return cursor.connection


def _first_word(sql: str) -> str:
    return sql.split(None, 1)[0].lower() if sql.strip() else ""


def _has_write_ahead_log(connection: Any) -> bool:
    cursor = sqlite3.Connection.cursor(connection, sqlite3.Cursor)
    ((mode,),) = sqlite3.Cursor.execute(cursor, "pragma journal_mode").fetchall()
    cursor.close()
    return bool(mode == "wal")


def _do_not_wait(connection: Any, sql: str, port: Port) -> None:
    """In a schedule a lock is never waited for: the gate tries the statement again instead."""
    if "busy_timeout" in sql:
        connection.waits = True
    elif connection.waits and port.task is not None:
        cursor = sqlite3.Connection.cursor(connection, sqlite3.Cursor)
        sqlite3.Cursor.execute(cursor, "pragma busy_timeout = 0")
        cursor.close()
        connection.waits = False


# -- DB-API connections


class _Proxy:
    """Whatever is not a statement goes straight through."""

    def __init__(self, raw: Any, port: Port) -> None:
        self._raw, self._port = raw, port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


class WatchedConnection(_Proxy):
    """A DB-API connection."""

    def cursor(self, *arguments: Any, **named: Any) -> WatchedCursor:
        """A cursor whose statements stop at the gate."""
        return WatchedCursor(self._raw.cursor(*arguments, **named), self._port)

    def execute(self, text: str, *arguments: Any, **named: Any) -> Any:
        """Some drivers have this short form."""
        return self._port.pass_on(text, lambda: self._raw.execute(text, *arguments, **named))

    def commit(self) -> None:
        """End the transaction."""
        self._port.pass_on("commit", self._raw.commit)

    def rollback(self) -> None:
        """Give the transaction up."""
        self._port.pass_on("rollback", self._raw.rollback)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.commit() if error[0] is None else self.rollback()


class WatchedCursor(_Proxy):
    """A DB-API cursor."""

    def execute(self, text: str, *arguments: Any, **named: Any) -> WatchedCursor:
        """Run a statement."""
        self._port.pass_on(text, lambda: self._raw.execute(text, *arguments, **named))
        return self

    def executemany(self, text: str, *arguments: Any, **named: Any) -> WatchedCursor:
        """Run a statement for each of several rows: one step."""
        self._port.pass_on(text, lambda: self._raw.executemany(text, *arguments, **named))
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(self._raw)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._raw.close()


# -- mappings and locks


class WatchedMapping(MutableMapping[Any, Any]):
    """A mapping: each read and each write is a statement, as are `get`, `setdefault`, `pop` and `update`.

    Mappings inside of it are watched too. Other values that can change, such as lists, are not.
    """

    def __init__(self, raw: MutableMapping[Any, Any], port: Port, name: str = "") -> None:
        self._raw, self._port, self._name = raw, port, name

    def _do(self, text: str, perform: Callable[[], Any]) -> Any:
        found = self._port.pass_on(text, perform)
        return self._inside(text, found)

    def _inside(self, text: str, value: Any) -> Any:
        return WatchedMapping(value, self._port, text) if isinstance(value, MutableMapping) else value

    def _place(self, key: Any) -> str:
        return f"{self._name}[{key!r}]"

    def __getitem__(self, key: Any) -> Any:
        return self._do(self._place(key), lambda: self._raw[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._port.pass_on(f"{self._place(key)} = {value!r}", lambda: self._raw.__setitem__(key, value))

    def __delitem__(self, key: Any) -> None:
        self._port.pass_on(f"del {self._place(key)}", lambda: self._raw.__delitem__(key))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._port.pass_on(f"iter({self._name})", lambda: list(self._raw)))

    def __len__(self) -> int:
        return self._port.pass_on(f"len({self._name})", lambda: len(self._raw))

    def __contains__(self, key: object) -> bool:
        return self._port.pass_on(f"{key!r} in {self._name}", lambda: key in self._raw)

    def get(self, key: Any, default: Any = None) -> Any:
        """One read."""
        return self._do(self._place(key), lambda: self._raw.get(key, default))

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """One step: a read, and a write where nothing is."""
        text = f"{self._name}.setdefault({key!r}, {default!r})"
        return self._do(text, lambda: self._raw.setdefault(key, default))

    def pop(self, key: Any, *default: Any) -> Any:
        """One step: a read and a removal."""
        return self._do(f"{self._name}.pop({key!r})", lambda: self._raw.pop(key, *default))

    def update(self, *others: Any, **named: Any) -> None:
        """One step: several writes."""
        shown = ", ".join([repr(dict(o)) for o in others] + [f"{k}={v!r}" for k, v in named.items()])
        self._port.pass_on(f"{self._name}.update({shown})", lambda: self._raw.update(*others, **named))

    def clear(self) -> None:
        """One step."""
        self._port.pass_on(f"{self._name}.clear()", self._raw.clear)

    def keys(self) -> Any:
        """One read of all keys."""
        return self._port.pass_on(f"{self._name}.keys()", lambda: list(self._raw.keys()))

    def values(self) -> Any:
        """One read of all values."""
        text = f"{self._name}.values()"
        found = self._port.pass_on(text, lambda: list(self._raw.values()))
        return [self._inside(text, value) for value in found]

    def items(self) -> Any:
        """One read of everything."""
        text = f"{self._name}.items()"
        found = self._port.pass_on(text, lambda: list(self._raw.items()))
        return [(key, self._inside(self._place(key), value)) for key, value in found]

    def __repr__(self) -> str:
        return f"watched {self._raw!r}"


@dataclass(slots=True)
class Held:
    """A watched lock that is held: by which handle, and how many times."""

    lock: Any
    by: Port
    times: int = 1


class WatchedLock:
    """A lock of Python: taking it is a yield point, and a worker that waits for it is blocked.

    The lock itself is never taken, since one worker's step may run in another's thread; who holds it is kept
    beside it. A dead worker's locks are given up.
    """

    def __init__(self, raw: Any, port: Port) -> None:
        self._raw, self._port = raw, port
        self._again = hasattr(raw, "_is_owned")

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002
        """Take the lock. Without `blocking`, or with a time to wait, False when another worker holds it."""
        waits = blocking and timeout < 0
        try:
            self._port.pass_on("acquire the lock", lambda: self._take(waits=waits))
        except _NotWaitingError:
            return False
        return True

    def _take(self, *, waits: bool) -> None:
        locks = self._port.locks
        held = locks.get(id(self._raw))
        if held is None:
            locks[id(self._raw)] = Held(self._raw, self._port)
        elif held.by is self._port and self._again:
            held.times += 1
        else:
            raise LockedError if waits else _NotWaitingError

    def release(self) -> None:
        """Give the lock up: no yield point, since nobody else can tell when it happens."""
        if self._port.dead or (self._port.task is not None and self._port.task.dying):
            return
        held = self._port.locks.get(id(self._raw))
        if held is None or (self._again and held.by is not self._port):
            raise RuntimeError("release of a lock that is not held")
        held.times -= 1
        if held.times == 0:
            del self._port.locks[id(self._raw)]
            self._port.gate.unblock()

    def locked(self) -> bool:
        """Whether anybody holds it."""
        return id(self._raw) in self._port.locks

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


class _NotWaitingError(Exception):
    """The lock is held, and the worker goes on without it."""
