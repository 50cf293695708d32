"""Connections of SQLite that stop at the gate before each statement, in scripts too."""

from __future__ import annotations

import re
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fencepost.conformance.gate import Touch

if TYPE_CHECKING:
    from fencepost.conformance.drivers import Port

_WRITES = ("insert", "update", "delete", "replace")
"""Statements that, where they return rows, end only when these have been fetched."""

_SET_ASIDE = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", re.DOTALL)
_MAIN = re.compile(r"[()]|\b(?:select|values|insert|update|delete|replace)\b")


@lru_cache(maxsize=1024)
def main_word(sql: str) -> str:
    """The word that says what a statement does: its first one, behind comments and `with`."""
    plain = _SET_ASIDE.sub(" ", sql).lower().lstrip(" \t\r\n;(")
    first = re.match(r"\w+", plain)
    word = "" if first is None else first.group()
    if word != "with":
        return word
    depth = 0
    for found in _MAIN.finditer(plain):
        if found.group() in "()":
            depth += 1 if found.group() == "(" else -1
        elif depth == 0:
            return found.group()
    return word


def split(script: str) -> Iterator[str]:
    """The statements of a script, each of them one step."""
    rest = ""
    for part in re.split(r"(?<=;)", script):
        rest += part
        if sqlite3.complete_statement(rest):
            if main_word(rest):
                yield rest.strip()
            rest = ""
    if main_word(rest):
        yield rest.strip()


def sqlite_class(  # noqa: C901  # two classes of short methods, which share the port
    base: type[sqlite3.Connection], port: Port
) -> type[sqlite3.Connection]:
    """A class of connections like `base`, whose statements pass through the port."""

    class Cursor(sqlite3.Cursor):
        _rows: deque[Any] | None = None
        _count: int | None = None

        def execute(self, sql: str, parameters: Any = (), /) -> Any:
            def perform() -> None:
                word = main_word(sql)
                _do_not_wait(self.connection, sql, port)
                port.touch = _connection_of(self).touches(word, sql)
                self._rows = self._count = None
                sqlite3.Cursor.execute(self, sql, parameters)
                if self.description is not None and word in _WRITES:
                    self._rows = deque(sqlite3.Cursor.fetchall(self))

            port.pass_on(sql, perform)
            return self

        def executemany(self, sql: str, parameters: Any, /) -> Any:
            """One step in a transaction; otherwise each row is a transaction, and so a step."""
            rows, connection = list(parameters), _connection_of(self)
            if connection.in_transaction or not _commits_each(connection):
                port.pass_on(sql, lambda: self._many(sql, rows))
                return self
            count = 0
            for row in rows:
                self.execute(sql, row)
                count += max(self.rowcount, 0)
            self._count = count
            return self

        def _many(self, sql: str, rows: list[Any]) -> None:
            _do_not_wait(self.connection, sql, port)
            port.touch = _connection_of(self).touches("", sql)
            self._rows = self._count = None
            sqlite3.Cursor.executemany(self, sql, rows)

        def executescript(self, script: str, /) -> Any:
            """Each of its statements is a step; as it is without the gate, a commit goes before them."""
            connection = _connection_of(self)
            level, legacy = connection.isolation_level, getattr(connection, "autocommit", -1) == -1
            if legacy:
                connection.commit()
                if level is not None:
                    connection.isolation_level = None
            try:
                for statement in split(script):
                    self.execute(statement)
                    sqlite3.Cursor.fetchall(self)
            finally:
                if legacy and level is not None:
                    with suppress(sqlite3.Error):
                        object.__setattr__(connection, "isolation_level", level)
            return self

        @property
        def rowcount(self) -> int:
            if self._count is not None:
                return self._count
            return int(super().rowcount)

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

    def refused_to_the_dead(name: str) -> Any:
        def method(self: Any, *arguments: Any, **named: Any) -> Any:
            port.check()
            return getattr(super(Connection, self), name)(*arguments, **named)

        return method

    class Connection(base):  # type: ignore[valid-type, misc]
        waits = True
        reads_past_writers: bool | None = None
        writing = False

        def __init__(self, *arguments: Any, **named: Any) -> None:
            # Only one thread moves at a time, and the statement of one worker may run in another's thread.
            super().__init__(*arguments[:4], **{**named, "check_same_thread": False})
            port.add(self)

        def __setattr__(self, name: str, value: Any) -> None:
            if name in ("isolation_level", "autocommit"):
                port.check()
                if self.in_transaction and value in (None, True):
                    self.commit()  # which setting it does, and that is a step
            super().__setattr__(name, value)

        def cursor(self, factory: Any = Cursor) -> Any:
            port.check()
            if isinstance(factory, type) and not issubclass(factory, Cursor):
                factory = type(factory.__name__, (factory, Cursor), {})
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
            _do_not_wait(self, word, port)
            port.touch = self.touches(word, word)
            end()

        def __exit__(self, *error: object) -> Any:
            self.commit() if error[0] is None else self.rollback()
            return False

    for name in ("backup", "blobopen", "deserialize", "load_extension"):
        if hasattr(base, name):
            setattr(Connection, name, refused_to_the_dead(name))
    return Connection


def _connection_of(cursor: sqlite3.Cursor) -> Any:
    return cursor.connection


def _commits_each(connection: Any) -> bool:
    autocommit = getattr(connection, "autocommit", -1)
    return bool(autocommit is True or (autocommit == -1 and connection.isolation_level is None))


def _has_write_ahead_log(connection: Any) -> bool:
    cursor = sqlite3.Connection.cursor(connection, sqlite3.Cursor)
    try:
        ((mode,),) = sqlite3.Cursor.execute(cursor, "pragma journal_mode").fetchall()
    finally:
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
