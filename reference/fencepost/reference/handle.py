"""One connection to one database file: its transactions, and the errors that callers see.

What the store and the downstream have in common. It knows nothing of leases or effects.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any, Final, TypeAlias

from fencepost.reference.values import HandleError, StoreBusyError, StoreError

Arguments: TypeAlias = Mapping[str, str | int | bytes | None]
Record: TypeAlias = tuple[Any, ...]

BEGIN_WRITING: Final = "begin immediate"
BEGIN_READING: Final = "begin deferred"
COMMIT: Final = "commit"
ROLLBACK: Final = "rollback"


class Handle:
    """A connection that one process uses, one transaction at a time. `what` and `opener` are for messages."""

    def __init__(self, connection: sqlite3.Connection, *, what: str, opener: str) -> None:
        self.connection: Final = connection
        self._what: Final = what
        self._opener: Final = opener
        self._lock: Final = RLock()
        self._process: Final = os.getpid()
        self._closed = False

    @contextmanager
    def transaction(self, begin: str) -> Iterator[None]:
        """All that happens within, or nothing; other threads wait."""
        with self._lock, translated():
            self._forbid_other_process()
            self._forbid_closed()
            self._begin(begin)
            try:
                yield
                self.connection.execute(COMMIT)
            except BaseException:
                with suppress(sqlite3.Error):
                    if self.connection.in_transaction:
                        self.connection.execute(ROLLBACK)
                raise

    def rows(self, statement: str, arguments: Arguments) -> list[Record]:
        """Run one statement and give all its rows."""
        return self.connection.execute(statement, arguments).fetchall()

    def close(self) -> None:
        """Give up the connection; twice is harmless."""
        with self._lock, translated():
            self._forbid_other_process()
            self.connection.close()
            self._closed = True

    def _begin(self, begin: str) -> None:
        try:
            self.connection.execute(begin)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            raise StoreBusyError(
                "another handle kept the database locked for the whole busy timeout; nothing was changed, "
                f"so try again, or open the {self._what} with a longer busy_timeout_ms"
            ) from error

    def _forbid_other_process(self) -> None:
        if os.getpid() != self._process:
            raise HandleError(
                f"this {self._what} was opened in process {self._process} and is used in its fork "
                f"{os.getpid()}; SQLite handles do not survive a fork, so call {self._opener} in each process"
            )

    def _forbid_closed(self) -> None:
        if self._closed:
            raise HandleError(
                f"this {self._what} is closed, so nothing was asked or changed; call {self._opener} again"
            )


def is_busy(error: sqlite3.Error) -> bool:
    """Whether the database was locked by another handle."""
    extended_code = getattr(error, "sqlite_errorcode", 0)  # errors of the driver itself have none
    return extended_code & 0xFF == sqlite3.SQLITE_BUSY


@contextmanager
def translated() -> Iterator[None]:
    """Turn the database's own errors into `StoreError`, so that callers need not know the driver."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"the database failed: {error}") from error
