"""Runs the statements of a store: one transaction for each operation, and the reason when one touches no row.

Each operation that may write takes the database's write lock first, then moves the store's now. A guarded
statement that touched no row is followed, in the same transaction, by the query that says which of its guards
refused; both come out of the one text (`guards.py`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from fencepost.reference import sql_inbox, sql_steps, sql_undo
from fencepost.reference.guards import EXPLANATION, explanation_of, guards_of
from fencepost.reference.handle import BEGIN_READING, BEGIN_WRITING, Arguments, Handle, Record
from fencepost.reference.records import ROW_COLUMNS, row_of, step_of
from fencepost.reference.sql import Statements
from fencepost.reference.values import MAX_TIME_MS, Answer, Ok, Refused, Row, StoreError, whole

EXPLANATIONS: Final = {
    "create": EXPLANATION,
    "acquire": EXPLANATION,
    "renew": EXPLANATION,
    "release": EXPLANATION,
    "commit": EXPLANATION,
    "read": EXPLANATION,
    "begin": EXPLANATION,
    "vouch": EXPLANATION,
    "redeliver": sql_inbox.REDELIVER_EXPLANATION,
    "request": sql_inbox.REQUEST_EXPLANATION,
}
"""By statement, the query that says which of its guards refused, behind the row of the instance."""

PARTS: Final = {
    "consume": sql_inbox.CONSUME_EXPLANATION,
    "move": sql_undo.MOVE_EXPLANATION,
    "change_step": sql_steps.CHANGE_EXPLANATION,
    "compensate_step": sql_undo.UNDO_EXPLANATION,
    "settle_step": sql_undo.SETTLE_EXPLANATION,
    "notify": sql_inbox.NOTIFY_EXPLANATION,
    "finish": sql_steps.FINISH_EXPLANATION,
    "register_migration": sql_inbox.MIGRATION_EXPLANATION,
    "deliver": sql_inbox.DELIVER_EXPLANATION,
}
"""The same for statements that do not tell of a row; the query gives nothing but the guards."""


class Running:
    """The statements of one handle on a store, and its transactions."""

    def __init__(
        self, connection: sqlite3.Connection, *, clock_ms: Callable[[], int], statements: Statements
    ) -> None:
        self.handle: Final = Handle(connection, what="store", opener="open_store")
        self.statements: Final = statements
        self._clock_ms: Final = clock_ms
        self._refusals: Final = {
            statement: (
                tuple(guard.code for guard in guards_of(statement)),
                explanation_of(statement, template),
            )
            for statement, template in (
                (getattr(statements, name), template) for name, template in (EXPLANATIONS | PARTS).items()
            )
        }

    @contextmanager
    def writing(self) -> Iterator[int]:
        """One transaction under the write lock; gives the store's now, in milliseconds."""
        with self.handle.transaction(BEGIN_WRITING):
            ((now_ms,),) = self.rows(self.statements.advance_clock, {"clock_ms": self._reading_ms()})
            yield int(now_ms)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One transaction that sees a single moment and waits for no writer."""
        with self.handle.transaction(BEGIN_READING):
            yield

    def now_ms(self) -> int:
        """The store's now, for who only reads: the high-water mark is not moved."""
        ((now_ms,),) = self.rows(self.statements.peek_clock, {"clock_ms": self._reading_ms()})
        return int(now_ms)

    def _reading_ms(self) -> int:
        """The clock's reading. Under the write lock, so that now is the later of it and the mark (§1)."""
        return whole("clock_ms", "its reading", self._clock_ms(), highest=MAX_TIME_MS)

    def rows(self, statement: str, arguments: Arguments) -> list[Record]:
        """Run a statement and give all its rows."""
        return self.handle.connection.execute(statement, arguments).fetchall()

    def guarded(self, statement: str, arguments: Arguments) -> Answer[Row]:
        """Run a statement; when it touches no row, refuse by its first guard that does not hold."""
        touched = self.rows(statement, arguments)
        return Ok(row_of(touched[0])) if touched else self.refused(statement, arguments)

    def refused(self, statement: str, arguments: Arguments) -> Refused[Row]:
        """Why a statement of `EXPLANATIONS` touched no row, and the row as it stands."""
        codes, explanation = self._refusals[statement]
        (record,) = self.rows(explanation, arguments)
        code = _first(statement, codes, record[ROW_COLUMNS:])
        return Refused(code, None if record[0] is None else row_of(record))

    def refusal(self, statement: str, arguments: Arguments) -> str | None:
        """Run a statement of `PARTS`; if it touches no row, the code of its first guard that fails."""
        return None if self.rows(statement, arguments) else self.reason(statement, arguments)

    def reason(self, statement: str, arguments: Arguments) -> str:
        """Why a statement of `PARTS` touched no row."""
        codes, explanation = self._refusals[statement]
        (record,) = self.rows(explanation, arguments)
        return _first(statement, codes, record)

    def with_steps(self, answer: Answer[Row]) -> Answer[Row]:
        """The answer, its row with the steps of the same moment."""
        if isinstance(answer, Refused):
            return answer
        records = self.rows(self.statements.read_steps, {"instance": answer.value.instance})
        return Ok(replace(answer.value, steps=tuple(map(step_of, records)))) if records else answer

    def read(self, instance: str) -> Answer[Row]:
        """The row as it stands, with its steps."""
        return self.with_steps(self.guarded(self.statements.read, {"instance": instance}))

    def seen(self, code: str, instance: str) -> Refused[Row]:
        """A refusal with the row as it stands, and its steps."""
        row = self.read(instance)
        return Refused(code, row.value if isinstance(row, Ok) else None)


def _first(statement: str, codes: tuple[str, ...], verdicts: Record) -> str:
    for code, holds in zip(codes, verdicts, strict=True):
        if not holds:
            return code
    raise StoreError(f"a statement touched no row although each guard in its text holds:\n{statement}")
