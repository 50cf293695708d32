"""The store: leases, commits, steps and the event log on SQLite (§1 to §6).

Each operation is one transaction. One that may write takes the database's write lock first, then moves the
store's now, then runs one guarded statement of `sql.py`. If that touched no row, the same transaction asks
which of the statement's own guards refused. Now is persisted even then: what was judged over stays over,
whatever the clock does next.

Left out: the inbox, retries, approvals and compensation (§4, §9 to §12).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from fencepost.reference import codes, sql_steps
from fencepost.reference.guards import explanation_of, guards_of
from fencepost.reference.handle import BEGIN_READING, BEGIN_WRITING, Arguments, Handle, Record
from fencepost.reference.sql import STATEMENTS, Statements
from fencepost.reference.values import (
    MAX_TIME_MS,
    Answer,
    ArgumentError,
    Commit,
    Entry,
    Evidence,
    Intent,
    Ok,
    Owner,
    Refused,
    Row,
    StepChange,
    StepEntry,
    StepRow,
    StepStatus,
    StoreError,
    checked_owner,
    text,
    whole,
)

ROW_COLUMNS: Final = 7
"""How many columns of `instances` stand first in every record that tells of a row."""


class Store:
    """One handle on a store. Made by `open_store`; to be closed, or used in a `with`.

    Processes share the file, never the handle: each opens its own. Threads may share a handle; its
    operations then run one after the other. Every operation may raise `ArgumentError` and `StoreBusyError`,
    which say that the call changed nothing, and `StoreError`, after which its answer is unknown (§2).
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        clock_ms: Callable[[], int],
        statements: Statements = STATEMENTS,
    ) -> None:
        self._handle: Final = Handle(connection, what="store", opener="open_store")
        self._connection: Final = connection
        self._clock_ms: Final = clock_ms
        self._statements: Final = statements
        self._refusals: Final = {
            statement: (tuple(guard.code for guard in guards_of(statement)), explanation_of(statement))
            for statement in (
                statements.create,
                statements.acquire,
                statements.renew,
                statements.release,
                statements.commit,
                statements.read,
            )
        }

    # The lease: gate 1.

    def create(self, instance: str) -> Answer[Row]:
        """Begin an instance, as a trigger does (§4): running, both versions 0, no owner."""
        return self._change(self._statements.create, {"instance": text("create", "instance", instance)})

    def acquire(self, instance: str, owner: Owner, *, lease_ms: int) -> Answer[Row]:
        """Take the lease for `lease_ms` milliseconds, if none is live. Raises the lease version (§3).

        The row comes with its steps, all of one moment.
        """
        arguments = _caller("acquire", instance, owner) | _duration("acquire", lease_ms)
        with self._writing() as now_ms:
            return self._with_steps(self._guarded(self._statements.acquire, {**arguments, "now_ms": now_ms}))

    def renew(self, instance: str, owner: Owner, lease_version: int, *, lease_ms: int) -> Answer[Row]:
        """Extend a live lease to `lease_ms` milliseconds from now; never shortens or revives it (§3)."""
        arguments = (
            _caller("renew", instance, owner)
            | {"lease_version": whole("renew", "lease_version", lease_version)}
            | _duration("renew", lease_ms)
        )
        return self._change(self._statements.renew, arguments)

    def release(self, instance: str, owner: Owner, lease_version: int) -> Answer[Row]:
        """End the lease for good, live or not; twice is ok (§3). Owner and lease version stay."""
        arguments = _caller("release", instance, owner) | {
            "lease_version": whole("release", "lease_version", lease_version)
        }
        return self._change(self._statements.release, arguments)

    # The commit: gate 2.

    def commit(self, commit: Commit) -> Answer[Entry]:
        """Accept the commit if its owner's lease is live and both versions are those expected (§4).

        A commit id that is already in the instance's log is answered with the entry that it made, before all
        guards, whatever else the commit says. What it changes in steps is written in the same transaction,
        and one change that §5 or §6 does not have refuses the whole commit.
        """
        if not isinstance(commit, Commit):
            raise ArgumentError(f"commit: expected a Commit, not {commit!r}; pass Commit(...)")
        arguments: dict[str, str | int | None] = {
            "instance": commit.instance,
            "worker": commit.owner.worker,
            "incarnation": commit.owner.incarnation,
            "commit_id": commit.commit_id,
            "expected_state_version": commit.expected_state_version,
            "expected_lease_version": commit.expected_lease_version,
            "event": commit.event,
            "payload": commit.payload,
            "finishes": int(commit.finishes),
        }
        with self._writing() as now_ms:
            arguments["now_ms"] = now_ms
            logged = self._find_commit(commit.instance, commit.commit_id)
            if logged is not None:
                return Ok(logged)
            if not (commit.changes or commit.finishes):
                return self._compare_and_set(arguments)
            self._connection.execute(sql_steps.SAVEPOINT)
            accepted = self._compare_and_set(arguments)
            if isinstance(accepted, Refused) or self._change_steps(commit, accepted.value):
                return accepted
            self._connection.execute(sql_steps.ROLLBACK_TO_SAVEPOINT)
            row = self._with_steps(self._guarded(self._statements.read, arguments))
            return Refused(codes.ILLEGAL_TRANSITION, row.value if isinstance(row, Ok) else None)

    def _compare_and_set(self, arguments: dict[str, str | int | None]) -> Answer[Entry]:
        changed = self._guarded(self._statements.commit, arguments)
        if isinstance(changed, Refused):
            return changed
        arguments["state_version"] = changed.value.state_version
        return Ok(_entry(self._rows(self._statements.append, arguments)[0]))

    def _change_steps(self, commit: Commit, entry: Entry) -> bool:
        """Write what an accepted commit changes in steps; False as soon as one change is not legal."""
        for change in commit.changes:
            arguments = _change(change, commit, entry)
            self._connection.execute(self._statements.begin_step, arguments)
            if not self._rows(self._statements.change_step, arguments):
                return False
            self._connection.execute(self._statements.append_step, arguments)
        if not commit.finishes:
            return True
        return bool(self._rows(self._statements.finish, {"instance": commit.instance}))

    # Reading.

    def read(self, instance: str) -> Answer[Row]:
        """The row as it stands, with its steps (§1)."""
        arguments = {"instance": text("read", "instance", instance)}
        with self._reading():
            return self._with_steps(self._guarded(self._statements.read, arguments))

    def ask(self, instance: str, commit_id: str) -> Answer[tuple[Entry | None, Row]]:
        """The question after a lost reply (§4): the entry of a commit id, if any, and the row with it.

        No entry, and a lease version above the commit's: it never will be accepted. No entry and the same
        lease version: undecided, so send the same commit again. Both are seen at one moment.
        """
        text("ask", "commit_id", commit_id)
        arguments = {"instance": text("ask", "instance", instance)}
        with self._reading():
            row = self._with_steps(self._guarded(self._statements.read, arguments))
            if isinstance(row, Refused):
                return row
            return Ok((self._find_commit(instance, commit_id), row.value))

    def log(self, instance: str) -> tuple[Entry, ...]:
        """The accepted commits in `state_version` order (§4); none if there is no such instance."""
        arguments = {"instance": text("log", "instance", instance)}
        with self._reading():
            return tuple(_entry(record) for record in self._rows(self._statements.log, arguments))

    def step_log(self, instance: str) -> tuple[StepEntry, ...]:
        """What each accepted commit changed in steps, in `state_version` order, then by step (§4)."""
        arguments = {"instance": text("step_log", "instance", instance)}
        with self._reading():
            return tuple(_step_entry(record) for record in self._rows(self._statements.step_log, arguments))

    def unfinished(self, *, after: str = "", most: int = 100) -> tuple[str, ...]:
        """Up to `most` instances that a worker could get further: running, and no step ended otherwise.

        In the order of their names, from the first after `after`; the default begins at the beginning, and a
        hundred names at a time are few to hold and many to ask for at once.
        """
        text("unfinished", "after", after, may_be_empty=True)
        whole("unfinished", "most", most, lowest=1)
        arguments: dict[str, str | int] = {"after": after, "most": most}
        with self._reading():
            return tuple(instance for (instance,) in self._rows(self._statements.unfinished, arguments))

    # The handle itself.

    def close(self) -> None:
        """Give up the handle; twice is harmless. Nothing is lost: what was answered is in the file."""
        self._handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Transactions.

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """One transaction under the write lock; gives the store's now, in milliseconds."""
        with self._handle.transaction(BEGIN_WRITING):
            yield self._advance_clock()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """One transaction that sees a single moment and waits for no writer."""
        with self._handle.transaction(BEGIN_READING):
            yield

    def _advance_clock(self) -> int:
        """Now: the later of the clock, read under the write lock, and the high-water mark (§1)."""
        reading_ms = whole("clock_ms", "its reading", self._clock_ms(), highest=MAX_TIME_MS)
        ((now_ms,),) = self._rows(self._statements.advance_clock, {"clock_ms": reading_ms})
        return int(now_ms)

    # Statements.

    def _change(self, statement: str, arguments: Arguments) -> Answer[Row]:
        with self._writing() as now_ms:
            return self._guarded(statement, {**arguments, "now_ms": now_ms})

    def _guarded(self, statement: str, arguments: Arguments) -> Answer[Row]:
        """Run a statement; when it touches no row, refuse by its first guard that does not hold."""
        touched = self._rows(statement, arguments)
        if touched:
            return Ok(_row(touched[0]))
        codes, explanation = self._refusals[statement]
        (record,) = self._rows(explanation, arguments)
        for code, holds in zip(codes, record[ROW_COLUMNS:], strict=True):
            if not holds:
                return Refused(code, None if record[0] is None else _row(record))
        raise StoreError(f"a statement touched no row although each guard in its text holds:\n{statement}")

    def _with_steps(self, answer: Answer[Row]) -> Answer[Row]:
        """The answer, its row with the steps of the same moment."""
        if isinstance(answer, Refused):
            return answer
        records = self._rows(self._statements.read_steps, {"instance": answer.value.instance})
        return Ok(replace(answer.value, steps=tuple(map(_step, records)))) if records else answer

    def _find_commit(self, instance: str, commit_id: str) -> Entry | None:
        found = self._rows(self._statements.find_commit, {"instance": instance, "commit_id": commit_id})
        return _entry(found[0]) if found else None

    def _rows(self, statement: str, arguments: Arguments) -> list[Record]:
        return self._connection.execute(statement, arguments).fetchall()


def _caller(who: str, instance: str, owner: Owner) -> dict[str, str | int]:
    checked_owner(who, owner)
    return {
        "instance": text(who, "instance", instance),
        "worker": owner.worker,
        "incarnation": owner.incarnation,
    }


def _duration(who: str, lease_ms: int) -> dict[str, int]:
    return {"lease_ms": whole(who, "lease_ms", lease_ms, lowest=1, highest=MAX_TIME_MS)}


def _row(record: Record) -> Row:
    """A row from the columns that every statement on `instances` begins with."""
    instance, worker, incarnation, lease_version, expires_at_ms, state_version, status = record[:ROW_COLUMNS]
    owner = None if worker is None else Owner(worker, incarnation)
    return Row(instance, owner, lease_version, expires_at_ms, state_version, status)


def _entry(record: Record) -> Entry:
    instance, state_version, lease_version, worker, incarnation, *rest = record
    return Entry(instance, state_version, lease_version, Owner(worker, incarnation), *rest)


def _step(record: Record) -> StepRow:
    instance, step, status, attempt, version, key, fingerprint, resource, operation, *rest = record
    parameters, revision, compensation, intent_lease_version, unwinding, receipt, *rest = rest
    evidence, former_evidence, reason, from_status, state_version = rest
    intent = None
    if version is not None:
        intent = Intent(version, key, fingerprint, resource, operation, parameters, revision, compensation)
    return StepRow(
        instance=instance,
        step=step,
        status=StepStatus(status),
        attempt=attempt,
        intent=intent,
        intent_lease_version=intent_lease_version,
        unwinding=unwinding,
        receipt=receipt,
        evidence=None if evidence is None else Evidence(evidence),
        former_evidence=None if former_evidence is None else Evidence(former_evidence),
        reason=reason,
        from_status=None if from_status is None else StepStatus(from_status),
        state_version=state_version,
    )


def _step_entry(record: Record) -> StepEntry:
    instance, state_version, step, status, attempt, version, key, unwinding, receipt, evidence = record
    return StepEntry(
        instance=instance,
        state_version=state_version,
        step=step,
        status=StepStatus(status),
        attempt=attempt,
        intent_version=version,
        key=key,
        unwinding=unwinding,
        receipt=receipt,
        evidence=None if evidence is None else Evidence(evidence),
    )


def _change(change: StepChange, commit: Commit, entry: Entry) -> dict[str, str | int | None]:
    """The parameters of the statements that change one step."""
    intent = change.intent
    return {
        "instance": commit.instance,
        "state_version": entry.state_version,
        "lease": commit.expected_lease_version,
        "step": change.step,
        "to": change.status.value,
        "again": change.another_attempt,
        "unwinding": change.unwinding,
        "receipt": change.receipt,
        "proof": None if change.evidence is None else change.evidence.value,
        "reason": change.reason,
        "version": None if intent is None else intent.intent_version,
        "idempotency_key": None if intent is None else intent.key,
        "fingerprint": None if intent is None else intent.fingerprint,
        "resource": None if intent is None else intent.resource,
        "operation": None if intent is None else intent.operation,
        "parameters": None if intent is None else intent.parameters,
        "expected_revision": None if intent is None else intent.expected_revision,
        "compensation": None if intent is None else intent.compensation,
    }
