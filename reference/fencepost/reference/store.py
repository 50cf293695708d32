"""The store: leases, commits, steps, requests and the event log on SQLite (§1 to §6, §9 to §14).

Each operation is one transaction. One that may write takes the database's write lock first, then moves the
store's now, then runs one guarded statement of `sql.py`. If that touched no row, the same transaction asks
which of the statement's own guards refused (`running.py`). Now is persisted even then: what was judged over
stays over, whatever the clock does next.

When a worker retries, gives up or compensates is not decided here; only whether it may.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, Self

from fencepost.reference import inbox, sql_steps
from fencepost.reference.checkpoint import Checkpoints, Stored
from fencepost.reference.handle import Record
from fencepost.reference.records import (
    Parameters,
    change_parameters,
    commit_parameters,
    entry_of,
    move_parameters,
    notification_parameters,
    notified_of,
    origin_of,
    requested_of,
    step_entry_of,
)
from fencepost.reference.running import Running
from fencepost.reference.sql import STATEMENTS, Statements
from fencepost.reference.values import (
    MAX_TIME_MS,
    Answer,
    ArgumentError,
    Commit,
    Entry,
    Ok,
    Owner,
    Refused,
    Row,
    StepChange,
    StepEntry,
    StepStatus,
    StoreError,
    checked_owner,
    text,
    whole,
)
from fencepost.reference.values_inbox import (
    Beginning,
    Migration,
    Notified,
    Origin,
    Request,
    Requested,
    Timer,
)

WAYS_BACK: Final = (StepStatus.COMPENSATING, StepStatus.COMPENSATED)
"""What a step becomes by another statement than those on the way forward."""


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
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.checkpoints: Final = checkpoints
        self._run: Final = Running(connection, clock_ms=clock_ms, statements=statements)
        self._connection: Final = connection
        self._statements: Final = statements

    # The lease: gate 1.

    def create(self, instance: str) -> Answer[Row]:
        """Begin an instance by its name alone: running, both versions 0, no owner. `trigger` does more."""
        return self._change(self._statements.create, {"instance": text("create", "instance", instance)})

    def acquire(self, instance: str, owner: Owner, *, lease_ms: int) -> Answer[Row]:
        """Take the lease for `lease_ms` milliseconds, if none is live. Raises the lease version (§3).

        The row comes with its steps, all of one moment.
        """
        arguments = _caller("acquire", instance, owner) | _duration("acquire", lease_ms)
        run = self._run
        with run.writing() as now_ms:
            return run.with_steps(run.guarded(self._statements.acquire, {**arguments, "now_ms": now_ms}))

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
        guards, whatever else the commit says. All that it consumes and changes is written in the same
        transaction, and one part that is refused refuses the whole commit.
        """
        if not isinstance(commit, Commit):
            raise ArgumentError(f"commit: expected a Commit, not {commit!r}; pass Commit(...)")
        run, arguments = self._run, commit_parameters(commit)
        with run.writing() as now_ms:
            arguments["now_ms"] = now_ms
            logged = self._find_commit(commit.instance, commit.commit_id)
            if logged is not None:
                return Ok(logged)
            parts = list(self._parts(commit))
            if parts:
                self._connection.execute(sql_steps.SAVEPOINT)
            accepted = self._compare_and_set(arguments)
            if isinstance(accepted, Refused):
                return accepted
            code = self._write(parts, arguments)
            if code is None:
                self._seal(commit.instance, accepted.value.lease_version)
                return accepted
            self._connection.execute(sql_steps.ROLLBACK_TO_SAVEPOINT)
            return run.seen(code, commit.instance)

    def _compare_and_set(self, arguments: Parameters) -> Answer[Entry]:
        changed = self._run.guarded(self._statements.commit, arguments)
        if isinstance(changed, Refused):
            return changed
        arguments["state_version"] = changed.value.state_version
        return Ok(entry_of(self._run.rows(self._statements.append, arguments)[0]))

    def _parts(self, commit: Commit) -> Iterator[tuple[str, Parameters]]:
        """What a commit does after its compare-and-set: guarded statements, in their order."""
        statements = self._statements
        for number in commit.used:
            yield statements.consume, {"number": number, "used": 1}
        if commit.move is not None:
            yield statements.move, move_parameters(commit.move)
        for number in commit.requests:
            yield statements.consume, {"number": number, "used": 0}
        for change in commit.changes:
            yield self._statement_of(change), change_parameters(change)
        for notification in commit.notifications:
            yield statements.notify, notification_parameters(notification)
        if commit.finishes:
            yield statements.finish, {}

    def _statement_of(self, change: StepChange) -> str:
        if change.decision is not None:
            return self._statements.settle_step
        if change.status in WAYS_BACK:
            return self._statements.compensate_step
        return self._statements.change_step

    def _write(self, parts: list[tuple[str, Parameters]], arguments: Parameters) -> str | None:
        """Write the parts of an accepted commit; the code of the first that is refused, if one is."""
        for statement, more in parts:
            both = arguments | more
            if statement == self._statements.change_step:
                self._connection.execute(self._statements.begin_step, both)
            code = self._run.refusal(statement, both)
            if code is not None:
                return code
            if more.get("decision") is not None:
                self._connection.execute(self._statements.overtake, {"step": None} | both)
            if "step" in more:
                self._connection.execute(self._statements.append_step, both)
        return None

    def _seal(self, instance: str, lease_version: int) -> None:
        """Write the checkpoint of what now stands, as a commit under this lease version left it (§14)."""
        if self.checkpoints is None:
            return
        row = self._run.read(instance)
        if isinstance(row, Refused):
            raise StoreError(f"the row of {instance!r} went missing within a transaction")
        sealed = self.checkpoints.sealed(row.value, lease_version=lease_version)
        self._run.rows(self._statements.write_checkpoint, {"instance": instance, "checkpoint": sealed})

    # Those without a lease.

    def trigger(self, source: str, event_id: str, beginning: Beginning) -> Answer[Row]:
        """Begin the one instance of an event, in one transaction with its steps and the event's record (§13).

        An event that is known is answered with the instance that it began, whatever name is given for it now;
        with another fingerprint of its input it is refused. So is the name of an instance that is there.
        """
        return inbox.trigger(self._run, source, event_id, beginning)

    def request(self, instance: str, request: Request) -> Answer[Requested]:
        """Put a request into the inbox of an instance (§4, §10, §11). It takes effect in a commit, or never.

        One whose id is there already is answered with what is there, before all guards; as something else
        under that id it is refused.
        """
        return inbox.request(self._run, instance, request)

    def register_migration(self, migration: Migration) -> Answer[Migration]:
        """Register a way from one definition to another (§14), once under each name; twice the same is ok."""
        return inbox.register_migration(self._run, migration)

    def delivered(self, instance: str, key: str, receipt: str) -> Answer[Notified]:
        """Record the receipt of a notification (§13), also after the end of its instance; the first stays."""
        return inbox.delivered(self._run, instance, key, receipt)

    def vouch(self, instance: str, *, expected_state_version: int) -> Answer[Row]:
        """Write the checkpoint of an instance anew, on a person's word that row and steps are right (§14).

        For an instance whose checkpoint is bad, or that has none because workers without checkpoints ran it.
        It makes whatever stands there the truth: first compare it with what happened. Refused while a lease
        is live, and if the state version is not the one that was looked at.
        """
        expected = whole("vouch", "expected_state_version", expected_state_version)
        name = text("vouch", "instance", instance)
        arguments: Parameters = {"instance": name, "expected_state_version": expected}
        if self.checkpoints is None:
            raise ArgumentError(
                "vouch: the store keeps no checkpoints; open it with checkpoints=Checkpoints()"
            )
        with self._run.writing() as now_ms:
            row = self._run.guarded(self._statements.vouch, {**arguments, "now_ms": now_ms})
            if isinstance(row, Ok):
                self._seal(instance, self._stored(row.value).lease_version)
            return self._run.with_steps(row)

    # Reading.

    def read(self, instance: str) -> Answer[Row]:
        """The row as it stands, with its steps (§1)."""
        text("read", "instance", instance)
        with self._run.reading():
            return self._run.read(instance)

    def stored(self, instance: str) -> Answer[Stored]:
        """The row with its steps, and its checkpoint, all of one moment: to check one by the other (§8)."""
        text("stored", "instance", instance)
        with self._run.reading():
            row = self._run.read(instance)
            return row if isinstance(row, Refused) else Ok(self._stored(row.value))

    def _stored(self, row: Row) -> Stored:
        found = self._run.rows(
            self._statements.read_checkpoint, {"instance": row.instance, "state_version": row.state_version}
        )
        ((lease_version, checkpoint),) = found
        return Stored(row, lease_version, checkpoint)

    def ask(self, instance: str, commit_id: str) -> Answer[tuple[Entry | None, Row]]:
        """The question after a lost reply (§4): the entry of a commit id, if any, and the row with it.

        No entry, and a lease version above the commit's: it never will be accepted. No entry and the same
        lease version: undecided, so send the same commit again. Both are seen at one moment.
        """
        text("ask", "commit_id", commit_id)
        text("ask", "instance", instance)
        with self._run.reading():
            row = self._run.read(instance)
            if isinstance(row, Refused):
                return row
            return Ok((self._find_commit(instance, commit_id), row.value))

    def log(self, instance: str) -> tuple[Entry, ...]:
        """The accepted commits in `state_version` order (§4); none if there is no such instance."""
        return tuple(map(entry_of, self._of("log", instance, self._statements.log)))

    def step_log(self, instance: str) -> tuple[StepEntry, ...]:
        """What each accepted commit changed in steps, in `state_version` order, then by step (§4)."""
        return tuple(map(step_entry_of, self._of("step_log", instance, self._statements.step_log)))

    def inbox(self, instance: str, *, unconsumed: bool = False) -> tuple[Requested, ...]:
        """The requests to an instance by their numbers, or those that no commit has consumed (§4)."""
        records = self._of("inbox", instance, self._statements.inbox, unconsumed=unconsumed)
        return tuple(map(requested_of, records))

    def origin(self, instance: str) -> Origin | None:
        """What an instance began with (§13, §15); None if no trigger began it."""
        records = self._of("origin", instance, self._statements.origin)
        return origin_of(records[0]) if records else None

    def notifications(self, instance: str) -> tuple[Notified, ...]:
        """The notifications of an instance, in the order in which they were committed (§13)."""
        return tuple(map(notified_of, self._of("notifications", instance, self._statements.notifications)))

    def undelivered(self, *, after: str = "", most: int = 100) -> tuple[Notified, ...]:
        """Up to `most` notifications without a receipt, of instances after `after`, by instance (§13)."""
        records = self._page("undelivered", self._statements.undelivered, after, most)
        return tuple(map(notified_of, records))

    def now_ms(self) -> int:
        """The store's now in milliseconds (§1), for who looks ahead; its mark is not moved."""
        with self._run.reading():
            return self._run.now_ms()

    # What there is to do. Pages begin after the name `after`, by default at the first, and have up to `most`
    # names; a hundred are few to hold and many to ask for at once.

    def unfinished(self, *, after: str = "", most: int = 100) -> tuple[str, ...]:
        """Instances of a worker without ways back: running, and no step ended otherwise than well."""
        records = self._page("unfinished", self._statements.unfinished, after, most)
        return tuple(instance for (instance,) in records)

    def open_instances(self, *, after: str = "", most: int = 100) -> tuple[str, ...]:
        """Instances that are not finished (§1), in the order of their names."""
        records = self._page("open_instances", self._statements.open_instances, after, most)
        return tuple(instance for (instance,) in records)

    def workable(self, *, after: str = "", most: int = 100) -> tuple[str, ...]:
        """Instances that nobody has leased, and where a worker finds something to do now (§8, §9)."""
        records = self._page("workable", self._statements.workable, after, most)
        return tuple(instance for (instance,) in records)

    def runnable_steps(self, instance: str) -> tuple[str, ...]:
        """The pending steps of a running instance that depend on nothing that has not succeeded (§5)."""
        records = self._of("runnable_steps", instance, self._statements.runnable_steps)
        return tuple(step for (step,) in records)

    def due_timers(self, *, most: int = 100) -> tuple[Timer, ...]:
        """Timers that may fire on the store's now, the one that is due the longest first (§9)."""
        records = self._page("due_timers", self._statements.due_timers, "", most)
        return tuple(Timer(*record) for record in records)

    # The handle itself.

    def close(self) -> None:
        """Give up the handle; twice is harmless. Nothing is lost: what was answered is in the file."""
        self._run.handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Statements.

    def _change(self, statement: str, arguments: Parameters) -> Answer[Row]:
        with self._run.writing() as now_ms:
            return self._run.guarded(statement, {**arguments, "now_ms": now_ms})

    def _find_commit(self, instance: str, commit_id: str) -> Entry | None:
        found = self._run.rows(self._statements.find_commit, {"instance": instance, "commit_id": commit_id})
        return entry_of(found[0]) if found else None

    def _of(self, who: str, instance: str, statement: str, **more: bool) -> list[Record]:
        """What a query gives for one instance."""
        text(who, "instance", instance)
        with self._run.reading():
            return self._run.rows(statement, {"instance": instance, **more})

    def _page(self, who: str, statement: str, after: str, most: int) -> list[Record]:
        """One page of what a query gives for many instances."""
        text(who, "after", after, may_be_empty=True)
        whole(who, "most", most, lowest=1)
        with self._run.reading():
            return self._run.rows(statement, {"after": after, "most": most, "now_ms": self._run.now_ms()})


def _caller(who: str, instance: str, owner: Owner) -> Parameters:
    checked_owner(who, owner)
    return {
        "instance": text(who, "instance", instance),
        "worker": owner.worker,
        "incarnation": owner.incarnation,
    }


def _duration(who: str, lease_ms: int) -> Parameters:
    return {"lease_ms": whole(who, "lease_ms", lease_ms, lowest=1, highest=MAX_TIME_MS)}
