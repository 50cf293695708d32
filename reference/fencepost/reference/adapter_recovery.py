"""Recovery over checkpoints, for the conformance checks: the part of the adapter that runs it (§8, §14).

A world has one instance of `order`, in the store with checkpoints. A worker does what `session.begin` and
`driving` do, one part at a time, and with their own code: look at the checkpoint, acquire, look again and
resume, then commits. Of each step there are two, one that starts at once and one that waits for an approval,
since an instance begins with all its steps; those that were not run are cancelled when it ends.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from fencepost.conformance import adapter as a
from fencepost.conformance import recovering as r
from fencepost.reference.checkpoint import Checkpoints
from fencepost.reference.driving import code_for, hand_over, migrate
from fencepost.reference.flows import approve, start
from fencepost.reference.observe import Observation, Observer
from fencepost.reference.opening import open_store
from fencepost.reference.passes import OvertakenError, Pass
from fencepost.reference.session import Ended, RunEndsError, Session, advise
from fencepost.reference.sql import STATEMENTS, Statements
from fencepost.reference.store import Store
from fencepost.reference.values import (
    FINISHED,
    Definition,
    InstanceStatus,
    Move,
    Ok,
    Owner,
    Refused,
    Row,
    StepChange,
    StepRow,
    StepStatus,
    StoreError,
)
from fencepost.reference.values_inbox import RequestKind
from fencepost.reference.workflow import Approval, Workflow

INSTANCE: Final = "order-1"
MAC_KEY: Final = b"of the conformance checks alone"
KEYED: Final = Checkpoints(mac_key=MAC_KEY)
MOST_STEPS, MOST_DEFINITIONS = 2, 2
"""As many as the scopes of runs let an instance have."""

RAM_DISK: Final = Path("/dev/shm")  # noqa: S108  # where a directory of our own is made

NO_DOWNSTREAM: Any = None
"""The steps have no effects, and nobody is told anything."""


@cache
def workflow_of(definition: int, migrations: frozenset[tuple[int, int]] = frozenset()) -> Workflow:
    """The code of a definition, with the migrations to it that are registered."""
    made = Workflow("order", version=str(definition))
    for number in range(MOST_STEPS):
        made.step(name=f"step-{number}")(lambda _: None)
        made.step(name=f"gated-{number}", approval=Approval())(lambda _: None)
    for former, later in sorted(migrations):
        if later == definition:
            made.migrates(_definitions()[former], name=f"from {former} to {later}")
    return made


@cache
def _definitions() -> tuple[Definition, ...]:
    return tuple(workflow_of(number).definition for number in range(MOST_DEFINITIONS))


def _number_of(definition: Definition | None) -> int:
    if definition is None or definition not in _definitions():
        raise StoreError(f"observe: the definition {definition} is none of those that were deployed")
    return _definitions().index(definition)


# How steps are read: by the store's words, and in a checkpoint.


def _steps(statuses: Mapping[str, str]) -> r.Steps:
    now = "pending"
    if StepStatus.RUNNING in statuses.values():
        now = "running"
    elif StepStatus.WAITING_APPROVAL in statuses.values():
        now = "waiting"
    return r.Steps(sum(status == StepStatus.SUCCEEDED for status in statuses.values()), now)


def _steps_of(rows: tuple[StepRow, ...]) -> r.Steps:
    return _steps({row.step: row.status for row in rows})


@dataclass(slots=True)
class RecoveryWorld:
    """One storage, its back door, what was reported, and the migrations that are registered.

    `kept` are the bytes of all checkpoints that were seen, by how they read.
    """

    directory: Path
    path: Path
    observer: Observer
    reports: list[str] = field(default_factory=list)
    migrations: set[tuple[int, int]] = field(default_factory=set)
    kept: dict[r.Checkpoint, bytes] = field(default_factory=dict)


class RecoveringStoreWorker:
    """One worker, with its handle on the store and its recovery, which is gone when the handle is."""

    def __init__(self, world: RecoveryWorld, store: Store, owner: Owner, clock_ms: Callable[[], int]) -> None:
        self.world: Final = world
        self.store: Final = store
        self.owner: Final = owner
        self.clock_ms: Final = clock_ms
        self.definition = 0
        self.phase = "idle"
        self.session: Session | None = None
        self.commits = 0

    def deploy(self, definition: int) -> None:
        """Its code is of this definition."""
        self.definition = definition

    @property
    def workflows(self) -> list[Workflow]:
        """Its code, with the migrations that are registered by now."""
        return [workflow_of(self.definition, frozenset(self.world.migrations))]

    def recovered(self) -> r.Recovered:
        """How far it is."""
        if self.session is None:
            return r.Recovered(self.phase)
        row, beyond = self.session.row, self.phase in ("resumed", "misfit")
        steps = _steps_of(row.steps) if beyond else r.Steps()
        return r.Recovered(self.phase, steps, (row.lease_version, row.state_version))

    def stop(self) -> None:
        """It takes itself for no owner any more."""
        self.phase, self.session = "idle", None

    def unheard(self) -> None:
        """It has no answer to acquire, or to what it did with its lease."""
        phase = "checked" if self.phase in ("checked", "acquired") else "idle"
        self.stop()
        self.phase = phase

    # The parts of a recovery.

    def check(self) -> a.Answer:
        """Look at the checkpoint before acquiring."""
        try:
            advise(self.store, INSTANCE)
        except RunEndsError as ends:
            return self._ended(ends)
        self.phase = "checked"
        return a.Ok()

    def acquire(self, *, lease_ms: int) -> a.Answer:
        """Acquire, as this owner."""
        answer = self.store.acquire(INSTANCE, self.owner, lease_ms=lease_ms)
        if isinstance(answer, Refused):
            return a.Refused(answer.code, None if answer.observed is None else neutral_row(answer.observed))
        self._own(answer.value, lease_ms)
        return a.Ok(row=neutral_row(answer.value))

    def _own(self, row: Row, lease_ms: int) -> None:
        deadline_ms = self.clock_ms() + lease_ms
        self.session = Session(
            self.store, NO_DOWNSTREAM, self.owner, row, lease_ms, deadline_ms, self.clock_ms
        )
        self.session.see(row)
        self.session.commits = self.commits  # a lease that is adopted has had commits under its version
        self.phase = "acquired"

    def read(self) -> a.Answer:
        """Read the row, and adopt a lease of its own that it finds there."""
        row = answered(self.store.read(INSTANCE))
        if row.owner == self.owner:
            self._own(row, lease_ms=1)
        return a.Ok(row=neutral_row(row))

    def resume(self) -> a.Answer:
        """Check again and take up the steps; where the checkpoint is bad, report it and release."""
        session = self._in_hand()
        try:
            self.take_up(session)
        except RunEndsError as ends:
            return self._ended(ends)
        self.compare_code(session)
        return a.Ok()

    def take_up(self, session: Session) -> None:
        """Check the checkpoint on the row that acquire returned, and see the steps as it has them."""
        session.check()

    def compare_code(self, session: Session) -> None:
        """Go on with the steps only where the code is that of the instance's definition."""
        workflow, migration = code_for(session.row, self.workflows)
        self.phase = "resumed" if workflow is not None and migration is None else "misfit"

    def _ended(self, ends: RunEndsError) -> a.Answer:
        """What became of a part that ended the recovery."""
        self.stop()
        if ends.run.ended is Ended.BAD_CHECKPOINT:
            self.world.reports.append(ends.run.why)
            return a.Ok()
        if ends.run.ended is Ended.UNDECIDED:
            return a.Unknown(ends.run.why)
        return a.Refused(ends.run.why)

    def _in_hand(self) -> Session:
        if self.session is None:
            raise StoreError("there is no lease to go on with")
        return self.session

    # Commits.

    def change(self, what: str) -> a.Answer:
        """Commit a change."""
        session = self._in_hand()
        before = session.row.state_version
        self.commits += 1
        try:
            code = self._committed(session, what)
        except OvertakenError as error:
            code = str(error)
        except RunEndsError as ends:
            if session.row.state_version == before:
                return self._ended(ends)
            code = None  # it ended because all was done
        if code is None:
            return a.Ok()
        self.stop()
        return a.Refused(code)

    def _committed(self, session: Session, what: str) -> str | None:
        """The code of the refusal, None if it is accepted."""
        if what in ("migrate", "hand-over"):
            self._settle_definition(session)
            return None
        number = _steps_of(session.row.steps).done
        plain, gated = f"step-{number}", f"gated-{number}"
        statuses = {step.step: step.status for step in session.row.steps}
        running = gated if statuses.get(gated) is StepStatus.RUNNING else plain
        match what:
            case "start":
                return session.attempt(what, StepChange(plain, StepStatus.RUNNING))
            case "wait":
                waits = StepChange(gated, StepStatus.WAITING_APPROVAL, approval_fingerprint="what it does")
                return session.attempt(what, waits)
            case "wake":
                return session.attempt(what, StepChange(gated, StepStatus.RUNNING, request=self._approval()))
            case "succeed":
                return session.attempt(what, StepChange(running, StepStatus.SUCCEEDED))
            case "finish":
                rest = [n for n, status in statuses.items() if status is StepStatus.PENDING and n != running]
                cancelled = [StepChange(name, StepStatus.CANCELLED) for name in rest]
                last = StepChange(running, StepStatus.SUCCEEDED)
                move = Move(InstanceStatus.UNWINDING, cause="cancel") if cancelled else None
                return session.attempt(what, last, *cancelled, finishes=True, move=move)
        raise StoreError(f"change: {what!r} is none of the changes; see RecoveringWorker.change")

    def _settle_definition(self, session: Session) -> None:
        """Migrate the instance if that is registered, or hand it to a person."""
        workflow, migration = code_for(session.row, self.workflows)
        if workflow is None or migration is None:
            hand_over(session)
        origin = self.store.origin(INSTANCE)
        if origin is None:
            raise StoreError(f"the origin of {INSTANCE} is not there")
        migrate(Pass(session, workflow, origin, NO_DOWNSTREAM), migration)
        self.phase = "resumed"

    def _approval(self) -> int | None:
        """The number of an approval that nobody has consumed."""
        found = [
            each.number
            for each in self.store.inbox(INSTANCE, unconsumed=True)
            if each.request.kind is RequestKind.APPROVAL_DECISION
        ]
        return found[0] if found else None

    # What no recovery asks for.

    def renew(self, lease_version: int, *, lease_ms: int) -> a.Answer:
        """Not asked for."""
        raise NotImplementedError

    def release(self, lease_version: int) -> a.Answer:
        """Not asked for by itself."""
        raise NotImplementedError

    def commit(self, commit: a.Commit) -> a.Answer:
        """Not asked for: see `change`."""
        raise NotImplementedError

    def ask(self, commit_id: str) -> a.Answer:
        """Not asked for."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the handle."""
        self.store.close()


@dataclass(frozen=True, slots=True)
class RecoveringSqlite:
    """Recoveries over the SQLite store, with what is asked of a checkpoint, and how a worker does it."""

    name: str = "sqlite"
    checkpoints: Checkpoints = KEYED
    statements: Statements = STATEMENTS
    worker: type[RecoveringStoreWorker] = RecoveringStoreWorker
    model_variant: str = ""
    deviations: Mapping[str, str] = field(default_factory=dict)
    capabilities: frozenset[a.Capability] = frozenset(
        {a.Capability.READ, a.Capability.RELEASE, a.Capability.CODES, a.Capability.RECOVERY}
    )
    directory: Path | None = None

    @property
    def has_mac_key(self) -> bool:
        """Whether checkpoints have a MAC."""
        return self.checkpoints.mac_key is not None

    def fresh_world(self) -> RecoveryWorld:
        """A new file with one instance, copied from one that the store made."""
        ram_disk = RAM_DISK if RAM_DISK.is_dir() and os.access(RAM_DISK, os.W_OK) else None
        directory = Path(tempfile.mkdtemp(prefix="fencepost-", dir=self.directory or ram_disk))
        path = directory / "store.db"
        path.write_bytes(_fresh_file())
        return RecoveryWorld(directory, path, Observer(path))

    def open_worker(
        self, world: RecoveryWorld, name: str, incarnation: int, surroundings: a.Surroundings
    ) -> RecoveringStoreWorker:
        """Open the file once more."""
        store = open_store(
            world.path,
            clock_ms=surroundings.clock_ms,
            synchronous="OFF",  # no power cut is tried; the death of a process loses nothing all the same
            checkpoints=self.checkpoints,
            statements=self.statements,
            connection_class=surroundings.watched(sqlite3.Connection),
        )
        return self.worker(world, store, Owner(name, incarnation), surroundings.clock_ms)

    def observe(self, world: RecoveryWorld) -> r.RecoveryObservation:
        """What the tables hold, by the store's own back door."""
        seen = world.observer.observe()
        row = seen.row(INSTANCE)
        if row is None:
            raise StoreError(f"observe: there is no row {INSTANCE!r}")
        log = seen.log(INSTANCE)
        return r.RecoveryObservation(
            neutral_row(row),
            version=row.state_version,
            standing=_steps_of(row.steps),
            definition=_number_of(row.definition),
            committed_under=log[-1].lease_version if log else 0,
            manual=row.manual_cause is not None,
            checkpoint=self._checkpoint(world, seen),
            come=any(
                each.consumed_by is None and each.request.kind is RequestKind.APPROVAL_DECISION
                for each in seen.inbox(INSTANCE)
            ),
            reported=bool(world.reports),
        )

    def _checkpoint(self, world: RecoveryWorld, seen: Observation) -> r.Checkpoint | None:
        data = dict(seen.checkpoints).get(INSTANCE)
        if data is None:
            return None
        members = json.loads(data)
        mac, digest = self._seals(members)
        found = r.Checkpoint(
            readable=members["format"] == 1,
            ours=members["instance"] == INSTANCE,
            lease_version=members["lease_version"],
            state_version=members["state_version"],
            definition=_number_of(Definition(*members["definition"])),
            steps=_steps({step["step"]: step["status"] for step in members["content"]["steps"]}),
            hash_fits=members["hash"] == digest,
            mac_fits=members["mac"] == mac,
        )
        world.kept[found] = data
        return found

    def _seals(self, members: Mapping[str, Any]) -> tuple[str | None, str]:
        """The MAC that such a checkpoint is to have, and the hash that goes with the MAC that it has."""
        body = {name: value for name, value in members.items() if name not in ("mac", "hash")}
        key = self.checkpoints.mac_key
        mac = None if key is None else hmac.new(key, _text(body), hashlib.sha256).hexdigest()
        return mac, hashlib.sha256(_text({**body, "mac": members["mac"]})).hexdigest()

    def register_migration(self, world: RecoveryWorld, former: int, later: int) -> None:
        """All workers learn of it."""
        world.migrations.add((former, later))

    def give(self, world: RecoveryWorld, *, now_ms: int) -> None:
        """Approve the step that waits."""
        with open_store(world.path, clock_ms=lambda: now_ms, synchronous="OFF") as store:
            row = answered(store.read(INSTANCE))
            (waiting,) = [each.step for each in row.steps if each.status is StepStatus.WAITING_APPROVAL]
            answered(approve(store, INSTANCE, step=waiting, requester="eve"))

    def plant(self, world: RecoveryWorld, checkpoint: r.Checkpoint | None) -> None:
        """Write the table of checkpoints by the back door."""
        with closing(sqlite3.connect(world.path, isolation_level=None)) as connection:
            connection.execute("delete from checkpoints where instance = ?", (INSTANCE,))
            if checkpoint is not None:
                data = world.kept.get(checkpoint) or self._made(world, checkpoint)
                connection.execute("insert into checkpoints values (?, ?)", (INSTANCE, data))

    def _made(self, world: RecoveryWorld, wanted: r.Checkpoint) -> bytes:
        """The bytes of a checkpoint that nobody has written."""
        like = next((k for k in reversed(world.kept) if k.steps == wanted.steps), None)
        members = json.loads(world.kept[like or next(reversed(world.kept))])
        if like is None:
            _set_steps(members["content"]["steps"], wanted.steps)
        pinned = _definitions()[wanted.definition]
        members |= {
            "format": 1 if wanted.readable else 2,
            "instance": INSTANCE if wanted.ours else "order-2",
            "lease_version": wanted.lease_version,
            "state_version": wanted.state_version,
            "definition": [pinned.id, pinned.fingerprint],
        }
        mac, _ = self._seals(members)
        no_fit = (None, f"{mac}0"[1:], "0" * 64) if mac else 3 * ("0" * 64,)
        members["mac"] = mac if wanted.mac_fits else no_fit[wanted.state_version % 3]
        _, digest = self._seals(members)
        members["hash"] = digest if wanted.hash_fits else "0" * 64
        return _text(members)

    def close_world(self, world: RecoveryWorld) -> None:
        """Delete the file."""
        world.observer.close()
        shutil.rmtree(world.directory, ignore_errors=True)


def _text(members: Mapping[str, Any]) -> bytes:
    """The form of a checkpoint, written here once more: the back door does not ask the code under test."""
    return json.dumps(members, sort_keys=True, separators=(",", ":")).encode()


def _set_steps(steps: list[dict[str, Any]], wanted: r.Steps) -> None:
    """Make the steps of a checkpoint read like these."""
    for step in steps:
        kind, _, number = step["step"].partition("-")
        here = int(number) == wanted.done
        status = "pending"
        if kind == "step" and int(number) < wanted.done:
            status = "succeeded"
        elif here and kind == "step" and wanted.now == "running":
            status = "running"
        elif here and kind == "gated" and wanted.now == "waiting":
            status = "waiting_approval"
        step["status"] = status


@cache
def _fresh_file() -> bytes:
    """The file of a new store with one instance, as the store itself makes it."""
    with tempfile.TemporaryDirectory(prefix="fencepost-") as directory:
        path = Path(directory, "store.db")
        with open_store(path, clock_ms=lambda: 0, synchronous="OFF") as store:
            answered(start(store, workflow_of(0), source="shop", event_id="1", instance=INSTANCE))
        return path.read_bytes()  # closed, and so all in one file


def answered(answer: Any) -> Any:
    """The value of an answer of which nothing but ok is possible here."""
    if not isinstance(answer, Ok):
        raise StoreError(f"refused: {answer}")
    return answer.value


def neutral_row(row: Row) -> a.Row:
    """The row in the words of the conformance checks."""
    return a.Row(
        owner=None if row.owner is None else a.Owner(row.owner.worker, row.owner.incarnation),
        lease_version=row.lease_version,
        expires_at_ms=row.expires_at_ms,
        state_version=row.state_version,
        finished=row.status in FINISHED,
    )
