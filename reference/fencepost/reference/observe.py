"""Looks at a store through a back door: what the tables hold, by another connection and other SQL.

Whoever checks the store must not ask the store. So nothing here calls `store.py` or reads `sql.py`; only the
words for what is seen (`Row`, `StepRow`, `Entry`, `Requested`) are shared. The connection cannot write.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from fencepost.reference.values import (
    Definition,
    Entry,
    Evidence,
    Intent,
    Notification,
    Owner,
    Row,
    StepEntry,
    StepRow,
    StepStatus,
    StoreError,
)
from fencepost.reference.values_inbox import (
    Migration,
    Notified,
    Origin,
    Request,
    Requested,
    RequestKind,
)

ROWS: Final = """
SELECT instance, lease_version, state_version, status, expires_at_ms, owner_worker, owner_incarnation,
       deadline_at_ms, unwinding_cause, manual_cause, definition, definition_fingerprint
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
       resource, operation, parameters, expected_revision, compensation,
       needs_approval, approval_fingerprint, approval_deadline_at_ms, approved_by, deadline_at_ms,
       most_attempts, timer_at_ms, error_class, result, succeeded_at_version, attested,
       undo_lease_version, undo_receipt, undo_attempt, undo_version, undo_key, undo_fingerprint,
       undo_resource, undo_operation, undo_parameters, undo_expected_revision
FROM steps ORDER BY instance, step
"""

DEPENDENCIES: Final = "SELECT instance, step, needs FROM dependencies ORDER BY instance, step, needs"

REQUESTS: Final = """
SELECT instance, number, recorded_at_ms, consumed_by, kind, request_id, requester, step, decision,
       intent_version, idempotency_key, fingerprint, receipt, reason
FROM inbox ORDER BY instance, number
"""

ORIGINS: Final = """
SELECT source, event_id, fingerprint, instance, input, implicit_inputs, triggered_at_ms
FROM triggers ORDER BY source, event_id
"""

NOTIFICATIONS: Final = """
SELECT instance, state_version, receipt, kind, recipient, target_version, idempotency_key, fingerprint,
       parameters
FROM notifications ORDER BY instance, state_version, kind, recipient, target_version
"""

MIGRATIONS: Final = """
SELECT migration, from_definition, from_fingerprint, to_definition, to_fingerprint
FROM migrations ORDER BY migration
"""

CHECKPOINTS: Final = "SELECT instance, checkpoint FROM checkpoints ORDER BY instance"

STEP_ENTRIES: Final = """
SELECT instance, step, state_version, status, attempt, intent_version, idempotency_key,
       receipt, unwinding, evidence
FROM step_log ORDER BY instance, state_version, step
"""


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that the tables hold at one moment.

    `now_ms` is the high-water mark of the store's now. `rows`, each with its steps, are ordered by instance,
    `entries` by instance and state version, `step_entries` also by step, `requests` by instance and number,
    `origins` by source and event, `notifications` by instance and state version, `migrations` by name.
    `checkpoints` are bytes by instance.
    """

    now_ms: int
    rows: tuple[Row, ...]
    entries: tuple[Entry, ...]
    step_entries: tuple[StepEntry, ...] = ()
    requests: tuple[Requested, ...] = ()
    origins: tuple[Origin, ...] = ()
    notifications: tuple[Notified, ...] = ()
    migrations: tuple[Migration, ...] = ()
    checkpoints: tuple[tuple[str, bytes], ...] = ()

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

    def inbox(self, instance: str) -> tuple[Requested, ...]:
        """The requests to one instance, by number."""
        return tuple(each for each in self.requests if each.instance == instance)


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
                return self._everything()
            finally:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise StoreError(f"observe: cannot read the tables of a store: {error}") from error

    def _everything(self) -> Observation:
        execute = self._connection.execute
        ((now_ms,),) = execute("SELECT now_ms FROM clock")
        needs: dict[tuple[str, str], list[str]] = {}
        for instance, step, needed in execute(DEPENDENCIES):
            needs.setdefault((instance, step), []).append(needed)
        steps: dict[str, list[StepRow]] = {}
        for record in execute(STEPS):
            steps.setdefault(record[0], []).append(_step(record, needs.get(record[:2], [])))
        rows = [_row(record) for record in execute(ROWS)]
        return Observation(
            now_ms=now_ms,
            rows=tuple(
                replace(row, steps=tuple(steps[row.instance])) if row.instance in steps else row
                for row in rows
            ),
            entries=tuple(map(_entry, execute(ENTRIES))),
            step_entries=tuple(map(_step_entry, execute(STEP_ENTRIES))),
            requests=tuple(map(_requested, execute(REQUESTS))),
            origins=tuple(Origin(*record) for record in execute(ORIGINS)),
            notifications=tuple(map(_notified, execute(NOTIFICATIONS))),
            migrations=tuple(
                Migration(name, Definition(former, former_fingerprint), Definition(later, later_fingerprint))
                for name, former, former_fingerprint, later, later_fingerprint in execute(MIGRATIONS)
            ),
            checkpoints=tuple(execute(CHECKPOINTS)),
        )

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
    instance, lease_version, state_version, status, expires_at_ms, worker, incarnation, *rest = record
    deadline_at_ms, unwinding_cause, manual_cause, definition, fingerprint = rest
    return Row(
        instance=instance,
        owner=None if worker is None else Owner(worker, incarnation),
        lease_version=lease_version,
        expires_at_ms=expires_at_ms,
        state_version=state_version,
        status=status,
        unwinding_cause=unwinding_cause,
        manual_cause=manual_cause,
        definition=Definition(definition, fingerprint) if definition else None,
        deadline_at_ms=deadline_at_ms,
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


def _step(record: tuple[Any, ...], needs: list[str]) -> StepRow:
    instance, step, state_version, status, from_status, reason, attempt, unwinding, receipt, *rest = record
    evidence, former_evidence, intent_lease_version, *rest = rest
    intent, rest = rest[:8], rest[8:]
    needs_approval, approval_fingerprint, approval_deadline_at_ms, approved_by, deadline_at_ms, *rest = rest
    most_attempts, timer_at_ms, error_class, result, succeeded_at_version, attested, *rest = rest
    undo_lease_version, undo_receipt, undo_attempt, *undo = rest
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
        depends_on=tuple(needs),
        needs_approval=needs_approval == 1,
        approval_fingerprint=approval_fingerprint,
        approval_deadline_at_ms=approval_deadline_at_ms,
        approved_by=approved_by,
        deadline_at_ms=deadline_at_ms,
        most_attempts=most_attempts,
        timer_at_ms=timer_at_ms,
        error_class=error_class,
        result=result,
        succeeded_at_version=succeeded_at_version,
        attested=attested == 1,
        undo=None if undo[0] is None else Intent(*undo),
        undo_lease_version=undo_lease_version,
        undo_receipt=undo_receipt,
        undo_attempt=undo_attempt,
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


def _requested(record: tuple[Any, ...]) -> Requested:
    instance, number, recorded_at_ms, consumed_by, kind, request_id, requester, *rest = record
    step, decision, intent_version, key, fingerprint, receipt, reason = rest
    return Requested(
        instance=instance,
        number=number,
        recorded_at_ms=recorded_at_ms,
        consumed_by=consumed_by,
        request=Request(
            kind=RequestKind(kind),
            request_id=request_id,
            requester=requester,
            step=step,
            decision=decision,
            intent_version=intent_version,
            key=key,
            fingerprint=fingerprint,
            receipt=receipt,
            reason=reason,
        ),
    )


def _notified(record: tuple[Any, ...]) -> Notified:
    instance, state_version, receipt, *rest = record
    return Notified(instance, state_version, Notification(*rest), receipt)
