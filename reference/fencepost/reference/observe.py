"""Looks at a store through a back door: what the tables hold, by another connection and other SQL.

Whoever checks the store must not ask the store. So nothing here calls `store.py` or reads `sql.py`; only the
words for what is seen (`Row`, `StepRow`, `Entry`) are shared. The connection cannot write.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from fencepost.reference.values import (
    Entry,
    Evidence,
    Intent,
    Owner,
    Row,
    StepEntry,
    StepRow,
    StepStatus,
    StoreError,
)

ROWS: Final = """
SELECT instance, lease_version, state_version, status, expires_at_ms, owner_worker, owner_incarnation
FROM instances ORDER BY instance
"""

ENTRIES: Final = """
SELECT instance, state_version, lease_version, owner_worker, owner_incarnation,
       commit_id, committed_at_ms, event, payload
FROM event_log ORDER BY instance, state_version
"""

STEPS: Final = """
SELECT instance, step, state_version, status, from_status, reason, attempt, unwinding, receipt,
       evidence, former_evidence, intent_lease_version, intent_version, idempotency_key, fingerprint,
       resource, operation, parameters, expected_revision, compensation
FROM steps ORDER BY instance, step
"""

STEP_ENTRIES: Final = """
SELECT instance, step, state_version, status, attempt, intent_version, idempotency_key,
       receipt, unwinding, evidence
FROM step_log ORDER BY instance, state_version, step
"""


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that the tables hold at one moment.

    `now_ms` is the high-water mark of the store's now. `rows`, each with its steps, are ordered by instance,
    `entries` by instance and state version, `step_entries` also by step.
    """

    now_ms: int
    rows: tuple[Row, ...]
    entries: tuple[Entry, ...]
    step_entries: tuple[StepEntry, ...] = ()

    def row(self, instance: str) -> Row | None:
        """The row of one instance, if it is there."""
        return next((row for row in self.rows if row.instance == instance), None)

    def log(self, instance: str) -> tuple[Entry, ...]:
        """The event log of one instance, in `state_version` order."""
        return tuple(entry for entry in self.entries if entry.instance == instance)

    def step(self, instance: str, step: str) -> StepRow | None:
        """One step of one instance, if it has a row."""
        row = self.row(instance)
        return next((each for each in row.steps if each.step == step), None) if row else None

    def step_log(self, instance: str) -> tuple[StepEntry, ...]:
        """What the commits of one instance changed in steps, in `state_version` order, then by step."""
        return tuple(entry for entry in self.step_entries if entry.instance == instance)


class Observer:
    """A lasting connection for who looks often; to be closed, or used in a `with`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        address = f"{Path(path).absolute().as_uri()}?mode=ro"
        try:
            self._connection: Final = sqlite3.connect(
                address, uri=True, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            name = os.fspath(path)
            raise StoreError(f"observe: cannot open {name!r}: {error}; is there a store?") from error

    def observe(self) -> Observation:
        """What the tables hold now. Raises `StoreError` if they cannot be read."""
        try:
            self._connection.execute("BEGIN")
            try:
                ((now_ms,),) = self._connection.execute("SELECT now_ms FROM clock")
                rows = [_row(record) for record in self._connection.execute(ROWS)]
                entries = [_entry(record) for record in self._connection.execute(ENTRIES)]
                steps: dict[str, list[StepRow]] = {}
                for record in self._connection.execute(STEPS):
                    steps.setdefault(record[0], []).append(_step(record))
                changes = [_step_entry(record) for record in self._connection.execute(STEP_ENTRIES)]
                rows = [
                    replace(row, steps=tuple(steps[row.instance])) if row.instance in steps else row
                    for row in rows
                ]
                return Observation(now_ms, tuple(rows), tuple(entries), tuple(changes))
            finally:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise StoreError(f"observe: cannot read the tables of a store: {error}") from error

    def close(self) -> None:
        """Give up the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def observe(path: str | os.PathLike[str]) -> Observation:
    """What the tables of the store at `path` hold now. Raises `StoreError` if they cannot be read."""
    with Observer(path) as observer:
        return observer.observe()


def _row(record: tuple[Any, ...]) -> Row:
    instance, lease_version, state_version, status, expires_at_ms, worker, incarnation = record
    return Row(
        instance=instance,
        owner=None if worker is None else Owner(worker, incarnation),
        lease_version=lease_version,
        expires_at_ms=expires_at_ms,
        state_version=state_version,
        status=status,
    )


def _entry(record: tuple[Any, ...]) -> Entry:
    instance, state_version, lease_version, worker, incarnation, *rest = record
    commit_id, committed_at_ms, event, payload = rest
    return Entry(
        instance=instance,
        state_version=state_version,
        lease_version=lease_version,
        owner=Owner(worker, incarnation),
        commit_id=commit_id,
        event=event,
        payload=payload,
        committed_at_ms=committed_at_ms,
    )


def _step(record: tuple[Any, ...]) -> StepRow:
    instance, step, state_version, status, from_status, reason, attempt, unwinding, receipt, *rest = record
    evidence, former_evidence, intent_lease_version, *intent = rest
    return StepRow(
        instance=instance,
        step=step,
        status=StepStatus(status),
        attempt=attempt,
        intent=None if intent[0] is None else Intent(*intent),
        intent_lease_version=intent_lease_version,
        unwinding=unwinding,
        receipt=receipt,
        evidence=Evidence(evidence) if evidence else None,
        former_evidence=Evidence(former_evidence) if former_evidence else None,
        reason=reason,
        from_status=StepStatus(from_status) if from_status else None,
        state_version=state_version,
    )


def _step_entry(record: tuple[Any, ...]) -> StepEntry:
    instance, step, state_version, status, attempt, intent_version, key, *rest = record
    receipt, unwinding, evidence = rest
    return StepEntry(
        instance=instance,
        state_version=state_version,
        step=step,
        status=StepStatus(status),
        attempt=attempt,
        intent_version=intent_version,
        key=key,
        unwinding=unwinding,
        receipt=receipt,
        evidence=Evidence(evidence) if evidence else None,
    )
