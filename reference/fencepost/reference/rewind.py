"""Puts a store's file back to what it held before, past the store, while handles on it stay open.

For tests that run thousands of schedules from the same state. No store does this: the event log is
append-only, and its own triggers say so. They are passed over here, and only here, by a connection for which
the statements of triggers are compiled to nothing.
"""

from __future__ import annotations

import os
import sqlite3
from typing import Any, Final, TypeAlias

Contents: TypeAlias = tuple[tuple[tuple[Any, ...], ...], ...]
"""The rows of each table, in the order of the tables."""


class Rewinder:
    """Reads and rewrites all tables, by a connection that is opened when it is first needed; to be closed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path: Final = path
        self._opened: _Tables | None = None

    @property
    def _tables(self) -> _Tables:
        if self._opened is None:
            self._opened = _Tables(self._path)
        return self._opened

    def contents(self) -> Contents:
        """What all tables hold."""
        tables = self._tables
        return tuple(tuple(tables.execute(text).fetchall()) for text in tables.read)

    def put_back(self, contents: Contents) -> None:
        """Make all tables hold that again. Raises sqlite3.OperationalError while another handle writes."""
        tables = self._tables
        execute = tables.execute
        execute("begin immediate")
        try:
            for text, delete, insert, rows in zip(
                tables.read, tables.delete, tables.insert, contents, strict=True
            ):
                if tuple(execute(text).fetchall()) == rows:
                    continue
                execute(delete)
                for row in rows:
                    execute(insert, row)
            execute("commit")
        except BaseException:
            execute("rollback")
            raise

    def stamp(self) -> int:
        """A number that is another one whenever another connection has committed a change since."""
        ((found,),) = self._tables.execute("pragma data_version")
        return int(found)

    def close(self) -> None:
        """Give up the connection."""
        if self._opened is not None:
            self._opened.connection.close()


class _Tables:
    """A connection past the triggers, and what it says to each table."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.connection: Final = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.execute: Final = self.connection.execute
        for pragma in ("synchronous = off", "foreign_keys = off", "busy_timeout = 1000"):
            self.execute(f"pragma {pragma}")
        tables = self.execute(
            "select name, (select count(*) from pragma_table_info(s.name)) from sqlite_schema s "
            "where type = 'table' and name not like 'sqlite_%' order by name"
        ).fetchall()
        self.connection.set_authorizer(_without_triggers)
        self.read: Final = [f'select * from "{name}"' for name, _ in tables]  # noqa: S608  # our own names
        self.delete: Final = [f'delete from "{name}"' for name, _ in tables]  # noqa: S608
        self.insert: Final = [
            f'insert into "{name}" values ({", ".join("?" * columns)})'  # noqa: S608
            for name, columns in tables
        ]


def _without_triggers(action: int, first: Any, second: Any, database: Any, trigger: Any) -> int:
    del action, first, second, database
    return sqlite3.SQLITE_IGNORE if trigger else sqlite3.SQLITE_OK
