"""Keeps the histories of replays: in a list, or as rows of a SQLite file that are only ever added (§15).

What a history has to do, `replay_values.History` says. Its guards are positions: of two who record the same
position, one is told that the other was first.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from threading import Lock
from types import TracebackType
from typing import Final, Self

from fencepost.reference.database import FileKind, open_file
from fencepost.reference.handle import BEGIN_READING, BEGIN_WRITING, Handle, Record
from fencepost.reference.replay_values import (
    Command,
    CommandType,
    DamagedHistoryError,
    History,
    Outcome,
    Recorded,
    Result,
)
from fencepost.reference.values import ArgumentError, text, whole

APPLICATION_ID: Final = 0x46504859
"""Marks the file as ours ("FPHY"), in the field that SQLite's header has for it."""

SCHEMA: Final = (
    """
    create table commands (
        run text not null check (run <> ''),
        position integer not null check (position >= 0),
        type text not null check (type in ('start', 'now', 'random', 'new-id', 'call', 'sleep', 'finish')),
        name text not null check (name <> ''),
        arguments text not null check (json_valid(arguments)),
        fingerprint text not null check (length(fingerprint) = 64),
        definition text not null check (definition <> ''),
        check ((type = 'start') = (position = 0)),
        primary key (run, position)
    ) strict, without rowid
    """,
    """
    create table results (
        run text not null,
        position integer not null,
        outcome text not null check (outcome in ('value', 'failed', 'attested', 'attested-failed')),
        content text not null check (json_valid(content)),
        primary key (run, position),
        foreign key (run, position) references commands (run, position)
    ) strict, without rowid
    """,
    *(
        f"""
        create trigger {table}_{what}_never before {what} on {table}
        begin select raise(abort, 'a history only grows'); end
        """
        for table in ("commands", "results")
        for what in ("update", "delete")
    ),
)

HISTORIES: Final = FileKind(
    what="file of histories",
    opener="open_histories",
    application_id=APPLICATION_ID,
    version=1,
    schema=SCHEMA,
    upgrades={},
)

APPEND: Final = """
insert into commands (run, position, type, name, arguments, fingerprint, definition)
select :run, :position, :type, :name, :arguments, :fingerprint, :definition
 where :position = 0
    or exists (select 1 from results where run = :run and position = :position - 1)  -- nothing is skipped
on conflict (run, position) do nothing  -- whoever was first stays
"""

SETTLE: Final = """
insert into results (run, position, outcome, content)
select :run, :position, :outcome, :content
 where exists (select 1 from commands where run = :run and position = :position)  -- no result of nothing
on conflict (run, position) do nothing  -- a result is never replaced
"""

READ: Final = """
select position, type, name, arguments, fingerprint, definition, outcome, content
  from commands left join results using (run, position)
 where run = :run
 order by position
"""

RUNS: Final = """
select run from commands where position = 0 order by run
"""

CHANGED: Final = "select changes()"


class MemoryHistory:
    """A history in a list, gone with its process: for tests, and for those who keep it elsewhere.

    `recorded` is what it starts with.
    """

    def __init__(self, run: str, recorded: Iterable[Recorded] = ()) -> None:
        self._run: Final = text("MemoryHistory", "run", run)
        self._recorded: Final = list(recorded)
        self._lock: Final = Lock()

    @property
    def run(self) -> str:
        """The name of the run."""
        return self._run

    def read(self) -> tuple[Recorded, ...]:
        """All that is recorded."""
        with self._lock:
            return tuple(self._recorded)

    def append(self, command: Command, result: Result | None) -> bool:
        """Record a command, if its position is the next and the one before has its result; whether."""
        with self._lock:
            settled = not self._recorded or self._recorded[-1].result is not None
            if command.position != len(self._recorded) or not settled:
                return False
            self._recorded.append(Recorded(command, result))
            return True

    def settle(self, position: int, result: Result) -> bool:
        """Record a result, if the command is there and has none; whether."""
        with self._lock:
            if position >= len(self._recorded) or self._recorded[position].result is not None:
                return False
            self._recorded[position] = Recorded(self._recorded[position].command, result)
            return True


class Histories:
    """One handle on a file of histories. Made by `open_histories`; to be closed, or used in a `with`.

    Threads may share it, processes may not. Every operation may raise `StoreBusyError`, which says that it
    changed nothing, and `StoreError`, after which that is unknown.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._handle: Final = Handle(connection, what="file of histories", opener="open_histories")

    def of(self, run: str) -> History:
        """The history of one run, empty if nothing is recorded of it."""
        return _FileHistory(self._handle, text("Histories.of", "run", run))

    def runs(self) -> tuple[str, ...]:
        """The names of all runs that were started, in the order of their names."""
        with self._handle.transaction(BEGIN_READING):
            return tuple(name for (name,) in self._handle.rows(RUNS, {}))

    def close(self) -> None:
        """Give up the file; twice is harmless."""
        self._handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _FileHistory:
    """The history of one run in a file."""

    def __init__(self, handle: Handle, run: str) -> None:
        self._handle: Final = handle
        self._run: Final = run

    @property
    def run(self) -> str:
        return self._run

    def read(self) -> tuple[Recorded, ...]:
        with self._handle.transaction(BEGIN_READING):
            rows = self._handle.rows(READ, {"run": self._run})
        return tuple(self._recorded_in(row) for row in rows)

    def append(self, command: Command, result: Result | None) -> bool:
        with self._handle.transaction(BEGIN_WRITING):
            self._handle.rows(
                APPEND,
                {
                    "run": self._run,
                    "position": command.position,
                    "type": command.type.value,
                    "name": command.name,
                    "arguments": command.arguments,
                    "fingerprint": command.fingerprint,
                    "definition": command.definition,
                },
            )
            appended = self._changed()
            if appended and result is not None:
                self._record_result(command.position, result)
            return appended

    def settle(self, position: int, result: Result) -> bool:
        whole("History.settle", "position", position)
        with self._handle.transaction(BEGIN_WRITING):
            return self._record_result(position, result)

    def _record_result(self, position: int, result: Result) -> bool:
        self._handle.rows(
            SETTLE,
            {
                "run": self._run,
                "position": position,
                "outcome": result.outcome.value,
                "content": result.content,
            },
        )
        return self._changed()

    def _changed(self) -> bool:
        """Whether the last statement wrote its row."""
        ((count,),) = self._handle.rows(CHANGED, {})
        return bool(count)

    def _recorded_in(self, row: Record) -> Recorded:
        position, kind, name, arguments, fingerprint, definition, outcome, content = row
        try:
            command = Command(position, CommandType(kind), name, arguments, fingerprint, definition)
            return Recorded(command, None if outcome is None else Result(Outcome(outcome), content))
        except (ArgumentError, ValueError) as error:
            raise DamagedHistoryError(
                f"the history of {self._run!r} cannot be read at position {position!r}: {error}"
            ) from error


def open_histories(
    path: str | os.PathLike[str], *, busy_timeout_ms: int = 5_000, synchronous: str = "FULL"
) -> Histories:
    """Open the file of histories at `path`; it is created if there is none.

    `busy_timeout_ms` is how long an operation waits for the write lock: five seconds by default, far longer
    than a healthy writer needs. `synchronous` is SQLite's level; only FULL, the default, and EXTRA keep
    everything recorded through a power cut. Raises `StoreError` for a file of something else, or one that
    cannot be opened.
    """
    connection = open_file(
        path,
        HISTORIES,
        busy_timeout_ms=busy_timeout_ms,
        synchronous=synchronous,
        connection_class=sqlite3.Connection,
    )
    return Histories(connection)
