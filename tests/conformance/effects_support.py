"""A store and a downstream in dictionaries, about as small as an adapter can be, with bugs to switch on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from fencepost.checker.verdicts import Verdict
from fencepost.conformance import (
    Ability,
    Answer,
    Capability,
    Commit,
    Conformance,
    Effect,
    Entry,
    Happened,
    Held,
    Ledger,
    Observation,
    Ok,
    Owner,
    Refused,
    Row,
    StepEntry,
    Surroundings,
    Worker,
    verify,
)
from fencepost.conformance.subjects import EFFECTS_SUBJECT
from fencepost.reference import BROKEN_DOWNSTREAMS, DOWNSTREAM_STATEMENTS
from fencepost.reference.adapter import make_sqlite

CLASSES: Mapping[str, tuple[Ability, ...]] = {
    "fenced, keyed and revisioned": (Ability.FENCED, Ability.KEYED, Ability.REVISIONED),
    "keyed": (Ability.KEYED,),
    "fenced and queryable": (Ability.FENCED, Ability.QUERYABLE),
    "queryable": (Ability.QUERYABLE,),
    "fenced": (Ability.FENCED,),
    "revisioned": (Ability.REVISIONED,),
    "opaque": (),
}


@cache
def verified_effects(name: str, broken: str = "", examples: int = 0) -> Conformance:
    """The report on the SQLite store with a downstream of one class, found once in a process."""
    statements = BROKEN_DOWNSTREAMS[broken] if broken else DOWNSTREAM_STATEMENTS
    adapter = make_sqlite(downstream=CLASSES[name], name=broken or name, downstream_statements=statements)
    return verify(adapter, subject=EFFECTS_SUBJECT, examples=examples, seed=1)


def by_name(report: Conformance) -> dict[str, Verdict]:
    """The verdict of each claim, by its name."""
    return {finding.claim.name: finding.verdict for finding in report.findings}


@dataclass
class Tables:
    """All that one world keeps."""

    row: Row = field(default_factory=lambda: Row(None, 0, None, 0, finished=False))
    log: tuple[Entry, ...] = ()
    steps: tuple[StepEntry, ...] = ()
    intents: tuple[Any, ...] = ()
    receipt: str | None = None
    happened: tuple[Happened, ...] = ()
    held: dict[str, Held] = field(default_factory=dict)


@dataclass
class DictWorker:
    """Acquires and commits, with the guards of §3 and §4."""

    tables: Tables
    owner: Owner
    around: Surroundings
    bug: str

    def acquire(self, *, lease_ms: int) -> Answer:
        row, now_ms = self.tables.row, self.around.clock_ms()
        if row.finished or row.live(now_ms):
            return Refused("finished" if row.finished else "lease-live", row)
        self.tables.row = replace(
            row, owner=self.owner, lease_version=row.lease_version + 1, expires_at_ms=now_ms + lease_ms
        )
        return Ok(row=self.tables.row)

    def commit(self, commit: Commit) -> Answer:
        tables, row, change = self.tables, self.tables.row, commit.change
        assert change is not None
        for holds, code in (
            (row.lease_version == commit.lease_version, "stale-lease-version"),
            (row.owner == commit.owner, "not-the-owner"),
            (not row.finished, "finished"),
            (row.live(self.around.clock_ms()), "lease-expired"),
            (row.state_version == commit.state_version, "stale-state-version"),
        ):
            if not holds:
                return Refused(code, row)
        version = row.state_version + 1
        entry = Entry(commit.commit_id, version, commit.lease_version, commit.owner)
        tables.row = replace(row, state_version=version, finished=commit.finishes)
        tables.log += (entry,)
        if change.intent is not None:
            tables.intents += (change.intent,)
        if self.bug != "forgets the receipt":
            tables.receipt = change.receipt
        unwinds = change.unwinding is not None
        tables.steps += (StepEntry(version, change.status, len(tables.intents), unwinding=unwinds),)
        return Ok(entry=entry)

    def read(self) -> Answer:
        return Ok(row=self.tables.row)

    def renew(self, lease_version: int, *, lease_ms: int) -> Answer:
        raise NotImplementedError

    def release(self, lease_version: int) -> Answer:
        raise NotImplementedError

    def ask(self, commit_id: str) -> Answer:
        raise NotImplementedError

    def close(self) -> None:
        pass


@dataclass
class DictDownstream:
    """A downstream that keeps keys."""

    tables: Tables
    bug: str

    def apply(self, effect: Effect) -> Answer:
        return self._decide(effect.key, effect.fingerprint, "declined" if effect.declines else "receipt")

    def tombstone(self, key: str, fingerprint: str, *, token: int) -> Answer:  # noqa: ARG002
        return self._decide(key, fingerprint, "tombstone", buries=True)

    def _decide(self, key: str, fingerprint: str, kind: str, *, buries: bool = False) -> Answer:
        held = self.tables.held.get(key)
        if held is None:
            held = self.tables.held[key] = Held(key, kind, fingerprint)
            if kind == "receipt":
                self.tables.happened += (Happened(key, fingerprint, 0),) * (2 if self.bug == "twice" else 1)
        if held.fingerprint != fingerprint:
            return Refused("key-conflict")
        if held.kind == "tombstone" and not buries:
            return Refused("tombstoned")
        return Ok(held=held)

    def query(self, key: str) -> Answer:
        return Ok(held=self.tables.held.get(key, Held(key, "nothing")))

    def raise_fence(self, token: int) -> Answer:
        raise NotImplementedError

    def change_elsewhere(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        if self.bug == "in memory":
            self.tables.held.clear()


@dataclass
class DictEffects:
    """The adapter."""

    bug: str = ""
    downstream: frozenset[Ability] = frozenset({Ability.KEYED, Ability.DECLINES, Ability.RESTARTS})
    capabilities: frozenset[Capability] = frozenset(
        {Capability.READ, Capability.CODES, Capability.LOG, Capability.EFFECTS}
    )
    model_variant: str = ""
    deviations: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.bug or "dictionaries"

    def fresh_world(self) -> Tables:
        return Tables()

    def open_worker(self, world: Tables, name: str, incarnation: int, surroundings: Surroundings) -> Worker:
        return DictWorker(world, Owner(name, incarnation), surroundings, self.bug)

    def open_downstream(self, world: Tables, surroundings: Surroundings) -> DictDownstream:  # noqa: ARG002
        return DictDownstream(world, self.bug)

    def observe(self, world: Tables) -> Observation:
        ledger = Ledger(world.happened, tuple(world.held.values()))
        return Observation(world.row, world.log, world.steps, world.intents, world.receipt, ledger)

    def close_world(self, world: Tables) -> None:
        pass


@cache
def verified_dictionaries(bug: str = "") -> Conformance:
    """The report on the small adapter with one of its bugs, found once in a process."""
    return verify(DictEffects(bug), subject=EFFECTS_SUBJECT, examples=0)
