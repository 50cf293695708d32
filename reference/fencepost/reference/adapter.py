"""The adapter of the SQLite store for the conformance checks.

With `broken_stores`, the only module of the reference that knows them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from fencepost.conformance import adapter as a
from fencepost.conformance.adapter_workflow import Definition
from fencepost.conformance.recovering import RecoveringAdapter
from fencepost.reference import adapter_workflow as workflows
from fencepost.reference.adapter_replay import OfReplay
from fencepost.reference.adapter_triggers import Door, OfTriggers
from fencepost.reference.downstream import open_downstream
from fencepost.reference.downstream_observe import (
    AppliedEffect,
    DownstreamObservation,
    DownstreamObserver,
    KeyRecord,
)
from fencepost.reference.downstream_sql import DOWNSTREAM_STATEMENTS, DownstreamStatements
from fencepost.reference.downstream_values import (
    DECLINED,
    WRONG_REVISION,
    DownstreamAnswer,
    EffectRequest,
    NotFound,
    Receipt,
    RecordedRefusal,
    Tombstone,
    Unknown,
)
from fencepost.reference.observe import Observer
from fencepost.reference.opening import open_store
from fencepost.reference.rewind import Contents, Rewinder
from fencepost.reference.sql import STATEMENTS, Statements
from fencepost.reference.store import Store
from fencepost.reference.values import (
    FINISHED,
    Answer,
    Commit,
    Entry,
    InstanceStatus,
    Intent,
    Move,
    Ok,
    Owner,
    Refused,
    Row,
    StepEntry,
    StoreError,
)

INSTANCE = "order-1"
"""The one instance of each world."""

STEP, OPERATION, RESOURCE, PARAMETERS = "charge", "charge", "account", '{"cents":500}'
"""The one step with an outside effect, and what the effect is."""

EFFECT = (RESOURCE, OPERATION, PARAMETERS)

ELSEWHERE = "elsewhere"
"""The instance for which somebody else changes the resource; also how the keys of such effects begin."""

RAM_DISK = Path("/dev/shm")  # noqa: S108  # where a directory of our own is made
"""Files there cost no wait for a disk. Locking is that of files all the same, which a memory database's is
not.
"""


@dataclass(frozen=True, slots=True)
class World:
    """One storage: the file of the store, in a directory of its own, and the back door.

    `outside` is None where there is no downstream.
    """

    directory: Path
    path: Path
    observer: Observer
    rewinder: Rewinder
    outside: Outside | None = None
    doors: dict[str, Door] = field(default_factory=dict)
    """Back doors to what else there is in it, opened when they are needed."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The file of the downstream, and its back door."""

    path: Path
    observer: DownstreamObserver
    rewinder: Rewinder


@dataclass(frozen=True, slots=True)
class StoreWorker:
    """One handle on the store, under one owner's name."""

    store: Store
    owner: Owner
    clock_ms: Callable[[], int]

    def acquire(self, *, lease_ms: int) -> a.Answer:
        """Acquire, as this owner."""
        return _called(lambda: self.store.acquire(INSTANCE, self.owner, lease_ms=lease_ms), _ok_row)

    def renew(self, lease_version: int, *, lease_ms: int) -> a.Answer:
        """Renew, as this owner."""
        return _called(
            lambda: self.store.renew(INSTANCE, self.owner, lease_version, lease_ms=lease_ms), _ok_row
        )

    def release(self, lease_version: int) -> a.Answer:
        """Release, as this owner."""
        return _called(lambda: self.store.release(INSTANCE, self.owner, lease_version), _ok_row)

    def commit(self, commit: a.Commit) -> a.Answer:
        """Commit what the commit says, as its own owner."""
        unwinds = commit.unwinds
        sent = Commit(
            instance=INSTANCE,
            owner=Owner(commit.owner.worker, commit.owner.incarnation),
            commit_id=commit.commit_id,
            expected_state_version=commit.state_version,
            expected_lease_version=commit.lease_version,
            event="finished" if commit.finishes else "progressed",
            finishes=commit.finishes,
            changes=() if commit.change is None else (workflows.step_change(commit.change, STEP, EFFECT),),
            move=None if unwinds is None else Move(InstanceStatus.UNWINDING, cause=unwinds),
            requests=() if commit.consumes is None else (commit.consumes,),
        )
        return _called(lambda: self.store.commit(sent), lambda entry: a.Ok(entry=_entry(entry)))

    def ask(self, commit_id: str) -> a.Answer:
        """Ask for a commit id."""
        return _called(
            lambda: self.store.ask(INSTANCE, commit_id),
            lambda both: a.Ok(row=_row(both[1]), entry=None if both[0] is None else _entry(both[0])),
        )

    def read(self) -> a.Answer:
        """Read the row."""
        return _called(lambda: self.store.read(INSTANCE), _ok_row)

    def close(self) -> None:
        """Close the handle."""
        self.store.close()


@dataclass(frozen=True, slots=True)
class SqliteAdapter(OfTriggers, OfReplay):
    """The SQLite store in files of a temporary directory, with the statements that it is to use.

    `worker` is how a worker calls the store. The files are made in `directory`; without one, on the RAM disk
    where there is one, else where temporary files go. Without `schema_checks` the triggers and checks of the
    schema are left out, so that the statements alone decide.
    """

    name: str = "sqlite"
    statements: Statements = STATEMENTS
    model_variant: str = ""
    deviations: Mapping[str, str] = field(default_factory=dict)
    capabilities: frozenset[a.Capability] = a.EVERYTHING
    worker: type[StoreWorker] = StoreWorker
    directory: Path | None = None
    downstream: frozenset[a.Ability] = frozenset()
    downstream_statements: DownstreamStatements = DOWNSTREAM_STATEMENTS
    schema_checks: bool = True

    def fresh_world(self) -> World:
        """A new file with one instance, copied from one that the store made."""
        ram_disk = RAM_DISK if RAM_DISK.is_dir() and os.access(RAM_DISK, os.W_OK) else None
        directory = Path(tempfile.mkdtemp(prefix="fencepost-", dir=self.directory or ram_disk))
        path = directory / "store.db"
        path.write_bytes(_fresh_file(self.statements))
        if not self.schema_checks:
            workflows.drop_triggers(path)
        outside = None
        if a.Capability.EFFECTS in self.capabilities:
            there = directory / "downstream.db"
            there.write_bytes(_fresh_downstream())
            outside = Outside(there, DownstreamObserver(there), Rewinder(there))
        return World(directory, path, Observer(path), Rewinder(path), outside)

    def open_worker(
        self, world: World, name: str, incarnation: int, surroundings: a.Surroundings
    ) -> StoreWorker:
        """Open the file once more."""
        return self.worker(self._opened(world, surroundings), Owner(name, incarnation), surroundings.clock_ms)

    def _opened(self, world: World, surroundings: a.Surroundings) -> Store:
        return open_store(
            world.path,
            clock_ms=surroundings.clock_ms,
            synchronous="OFF",  # no power cut is tried; the death of a process loses nothing all the same
            statements=self.statements,
            connection_class=surroundings.watched(
                sqlite3.Connection if self.schema_checks else workflows.Unchecked
            ),
        )

    def observe(self, world: World) -> a.Observation:
        """What the tables hold, by the store's own back door."""
        seen = world.observer.observe()
        row = seen.row(INSTANCE)
        if row is None:
            raise StoreError(f"observe: there is no row {INSTANCE!r}")
        observed = a.Observation(_row(row), tuple(_entry(entry) for entry in seen.log(INSTANCE)))
        if world.outside is None:
            return observed
        if row.definition is not None:
            ledger = self._ledger(world.outside.observer.observe())
            return replace(observed, ledger=ledger, workflow=workflows.seen_of(seen, INSTANCE))
        step = seen.step(INSTANCE, STEP)
        return replace(
            observed,
            steps=tuple(_step_entry(entry) for entry in seen.step_log(INSTANCE)),
            intents=() if step is None or step.intent is None else (_neutral_intent(step.intent),),
            receipt=None if step is None else step.receipt,
            ledger=self._ledger(world.outside.observer.observe()),
        )

    def _ledger(self, seen: DownstreamObservation) -> a.Ledger:
        happened = [each for each in seen.effects if each.instance == INSTANCE]
        if a.Ability.KEYED in self.downstream:
            held = [_held_record(r) for r in seen.records if not r.key.startswith(ELSEWHERE)]
        elif a.Ability.QUERYABLE in self.downstream:
            held = [_held_effect(e) for e in happened if e is seen.effects_of(e.key)[0]]
        else:
            held = []
        return a.Ledger(
            happened=tuple(a.Happened(each.key, each.fingerprint, each.token) for each in happened),
            held=tuple(held),
            fence=seen.fence(INSTANCE, RESOURCE) or 0,
            revision=dict(seen.revisions).get(RESOURCE, 0),
        )

    def open_downstream(self, world: World, surroundings: a.Surroundings) -> LedgerHandle:
        """Open the downstream's file once more."""
        if world.outside is None:
            raise StoreError("open_downstream: this world has no downstream; make it with downstream=…")
        can = self.downstream
        return LedgerHandle(
            world.outside.path,
            surroundings,
            self.downstream_statements,
            fenced=a.Ability.FENCED in can,
            keyed=a.Ability.KEYED in can,
            queryable=a.Ability.QUERYABLE in can,
            revisioned=a.Ability.REVISIONED in can,
        )

    def recovering(self) -> RecoveringAdapter:
        """The adapter of its recoveries."""
        from fencepost.reference.adapter_recovery import RecoveringSqlite

        return RecoveringSqlite(
            self.name, model_variant=self.model_variant, deviations=self.deviations, directory=self.directory
        )

    def begin(self, world: World, definition: Definition) -> None:
        """Begin the instance anew, with a definition."""
        world.rewinder.put_back(workflows.begun(self.statements, definition, INSTANCE))

    def open_requester(self, world: World, surroundings: a.Surroundings) -> workflows.StoreRequester:
        """Open the file once more."""
        return workflows.StoreRequester(self._opened(world, surroundings), INSTANCE)

    def stamp(self, world: World) -> tuple[int, ...]:
        """SQLite's own numbers for what has been committed to each file."""
        return tuple(rewinder.stamp() for rewinder in _rewinders(world))

    def snapshot(self, world: World) -> tuple[Contents, ...]:
        """What all tables hold."""
        return tuple(rewinder.contents() for rewinder in _rewinders(world))

    def restore(self, world: World, snapshot: tuple[Contents, ...]) -> None:
        """Make all tables hold that again; handles stay open, since they remember nothing of it."""
        for rewinder, contents in zip(_rewinders(world), snapshot, strict=True):
            rewinder.put_back(contents)

    def close_world(self, world: World) -> None:
        """Delete the file."""
        world.observer.close()
        for door in world.doors.values():
            door.close()
        if world.outside is not None:
            world.outside.observer.close()
        for rewinder in _rewinders(world):
            rewinder.close()
        shutil.rmtree(world.directory, ignore_errors=True)


def make_sqlite(
    statements: Statements | None = None,
    *,
    downstream: Iterable[a.Ability] | None = None,
    **details: Any,
) -> SqliteAdapter:
    """The adapter of the SQLite store; `statements` replaces its SQL, `details` its other fields.

    With `downstream`, what it can do, there is one, and effects are checked too; empty, it is opaque. That
    it restarts and declines goes without saying.
    """
    if downstream is not None:
        details["downstream"] = frozenset(downstream) | {a.Ability.DECLINES, a.Ability.RESTARTS}
        details["capabilities"] = details.get("capabilities", a.EVERYTHING) | {a.Capability.EFFECTS}
    return SqliteAdapter(statements=STATEMENTS if statements is None else statements, **details)


def make_reference() -> SqliteAdapter:
    """The adapter of all that the reference has, with a downstream that has every ability."""
    return make_sqlite(
        downstream=(a.Ability.FENCED, a.Ability.KEYED, a.Ability.REVISIONED),
        capabilities=frozenset(a.Capability),
    )


class LedgerHandle:
    """One handle on the downstream. What it is told to decline, it declines by its own business."""

    def __init__(
        self,
        path: Path,
        surroundings: a.Surroundings,
        statements: DownstreamStatements,
        **classes: bool,
    ) -> None:
        self._declines = False
        self._downstream = open_downstream(
            path,
            clock_ms=surroundings.clock_ms,
            synchronous="OFF",
            statements=statements,
            decline=lambda _: "too much" if self._declines else None,
            connection_class=surroundings.watched(sqlite3.Connection),
            **classes,
        )

    def apply(self, effect: a.Effect) -> a.Answer:
        """Apply the effect."""
        request = EffectRequest(
            INSTANCE,
            RESOURCE,
            OPERATION,
            PARAMETERS,
            effect.fingerprint,
            effect.key,
            effect.token,
            effect.revision,
        )
        self._declines = effect.declines
        answer = _outside(lambda: self._downstream.apply(request))
        self._declines = False
        if not self._downstream.capabilities.keyed:
            return a.Ok() if isinstance(answer, a.Ok) else answer
        if isinstance(answer, a.Refused) and answer.code in (DECLINED, WRONG_REVISION):
            return a.Ok(held=a.Held(effect.key, "declined", effect.fingerprint))  # it is recorded as that
        return answer

    def tombstone(self, key: str, fingerprint: str, *, token: int) -> a.Answer:
        """Write a tombstone."""
        return _outside(
            lambda: self._downstream.tombstone(
                key, fingerprint, instance=INSTANCE, resource=RESOURCE, token=token
            )
        )

    def query(self, key: str) -> a.Answer:
        """Ask by the key."""
        return _outside(lambda: self._downstream.query(key))

    def raise_fence(self, token: int) -> a.Answer:
        """Record the token."""
        return _outside(lambda: self._downstream.raise_fence(INSTANCE, RESOURCE, token=token))

    def change_elsewhere(self) -> None:
        """An effect of another instance on the same resource."""
        key = f"{ELSEWHERE}-{secrets.token_hex(8)}"
        self._downstream.apply(EffectRequest(ELSEWHERE, RESOURCE, OPERATION, PARAMETERS, "f", key, 0))

    def close(self) -> None:
        """Close the handle."""
        self._downstream.close()


@cache
def _fresh_file(statements: Statements) -> bytes:
    """The file of a new store with one instance, as the store itself makes it."""
    with tempfile.TemporaryDirectory(prefix="fencepost-") as directory:
        path = Path(directory, "store.db")
        with open_store(path, clock_ms=lambda: 0, synchronous="OFF", statements=statements) as store:
            created = store.create(INSTANCE)
        if not isinstance(created, Ok):
            raise StoreError(f"fresh_world: the instance was not created: {created}")
        return path.read_bytes()  # closed, and so all in one file


@cache
def _fresh_downstream() -> bytes:
    """The file of a new downstream; its statements and classes are the opener's business."""
    with tempfile.TemporaryDirectory(prefix="fencepost-") as directory:
        path = Path(directory, "downstream.db")
        open_downstream(path, clock_ms=lambda: 0, synchronous="OFF").close()
        return path.read_bytes()


def _rewinders(world: World) -> tuple[Rewinder, ...]:
    return (world.rewinder,) if world.outside is None else (world.rewinder, world.outside.rewinder)


def _outside(call: Callable[[], DownstreamAnswer[Any]]) -> a.Answer:
    """The answer of the downstream: what it holds, in neutral words."""
    try:
        answer = call()
    except StoreError as error:
        return a.Unknown(f"{type(error).__name__}: {error}")
    match answer:
        case Refused():
            return a.Refused(answer.code)
        case Unknown():
            return a.Unknown(answer.why)
    match answer.value:
        case Receipt() as found:
            return a.Ok(held=a.Held(found.key, "receipt", found.fingerprint, found.receipt))
        case Tombstone() as found:
            return a.Ok(held=a.Held(found.key, "tombstone", found.fingerprint))
        case RecordedRefusal() as found:
            return a.Ok(held=a.Held(found.key, "declined", found.fingerprint))
        case NotFound() as found:
            return a.Ok(held=a.Held(found.key, "nothing"))
    return a.Ok()


def _held_record(record: KeyRecord) -> a.Held:
    kind = "declined" if record.kind == "refusal" else record.kind
    receipt = None if record.effect is None else f"receipt-{record.effect}"
    return a.Held(record.key, kind, record.fingerprint, receipt)


def _held_effect(effect: AppliedEffect) -> a.Held:
    return a.Held(effect.key, "receipt", effect.fingerprint, f"receipt-{effect.number}")


def _step_entry(entry: StepEntry) -> a.StepEntry:
    return a.StepEntry(
        entry.state_version,
        entry.status.value,
        entry.intent_version or 0,
        unwinding=entry.unwinding is not None,
    )


def _neutral_intent(intent: Intent) -> a.Intent:
    return a.Intent(intent.intent_version, intent.key, intent.fingerprint, intent.expected_revision)


def _called(call: Callable[[], Answer[Any]], accepted: Callable[[Any], a.Ok]) -> a.Answer:
    try:
        answer = call()
    except StoreError as error:
        return a.Unknown(f"{type(error).__name__}: {error}")
    if isinstance(answer, Refused):
        return a.Refused(answer.code, None if answer.observed is None else _row(answer.observed))
    return accepted(answer.value)


def _ok_row(row: Row) -> a.Ok:
    return a.Ok(row=_row(row))


def _owner(owner: Owner | None) -> a.Owner | None:
    return None if owner is None else a.Owner(owner.worker, owner.incarnation)


def _row(row: Row) -> a.Row:
    return a.Row(
        owner=_owner(row.owner),
        lease_version=row.lease_version,
        expires_at_ms=row.expires_at_ms,
        state_version=row.state_version,
        finished=row.status in FINISHED,
    )


def _entry(entry: Entry) -> a.Entry:
    return a.Entry(entry.commit_id, entry.state_version, entry.lease_version, _owner(entry.owner))
