"""Opens a store."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from typing import Final

from fencepost.reference import sql
from fencepost.reference.checkpoint import Checkpoints
from fencepost.reference.database import FileKind, open_file
from fencepost.reference.sql import STATEMENTS, Statements
from fencepost.reference.store import Store
from fencepost.reference.values import ArgumentError

STORE: Final = FileKind(
    what="store",
    opener="open_store",
    application_id=sql.APPLICATION_ID,
    version=sql.SCHEMA_VERSION,
    schema=sql.SCHEMA,
    upgrades=sql.UPGRADES,
)


def open_store(
    path: str | os.PathLike[str],
    *,
    clock_ms: Callable[[], int],
    busy_timeout_ms: int = 5_000,
    synchronous: str = "FULL",
    checkpoints: Checkpoints | None = None,
    statements: Statements = STATEMENTS,
    connection_class: type[sqlite3.Connection] = sqlite3.Connection,
) -> Store:
    """Open the store in the file at `path`; the file is created if there is none, upgraded if it is old.

    `clock_ms` gives milliseconds since a moment that all users of the file agree on. It is called once in
    each operation that may write, under the write lock. `busy_timeout_ms` is how long an operation waits for
    that lock: five seconds by default, far longer than a healthy writer needs. `synchronous` is SQLite's
    level; only FULL, the default, and EXTRA keep every answer through a power cut. With `checkpoints`
    each commit writes one, and whoever acquires an instance checks it before and after (§8, §14); none are
    kept by default. `statements` and `connection_class` replace parts, so that tests can break the store or
    watch it.

    Raises `StoreError` for a file that is no store, that a newer fencepost made, or that cannot be opened.
    """
    if not callable(clock_ms):
        raise ArgumentError(
            f"open_store: clock_ms must be a function, not {clock_ms!r}; pass one that gives milliseconds"
        )
    if checkpoints is not None and not isinstance(checkpoints, Checkpoints):
        raise ArgumentError(
            f"open_store: checkpoints must be Checkpoints, not a {type(checkpoints).__name__}; "
            "pass Checkpoints(mac_key=...)"
        )
    connection = open_file(
        path,
        STORE,
        busy_timeout_ms=busy_timeout_ms,
        synchronous=synchronous,
        connection_class=connection_class,
    )
    try:
        return Store(connection, clock_ms=clock_ms, statements=statements, checkpoints=checkpoints)
    except BaseException:
        connection.close()
        raise
