"""Triggers and notifications in dictionaries, about as small as an adapter can be, with bugs to switch on.

Its instances have names of its own, and its rows say what they began from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from fencepost.conformance import (
    Answer,
    Capability,
    Conformance,
    Observation,
    Ok,
    Refused,
    Row,
    Surroundings,
    Worker,
    verify,
)
from fencepost.conformance.adapter_triggers import Begun, Note, Trigger, Triggered
from fencepost.conformance.subjects import subject_of


@dataclass
class Tables:
    """All that one world keeps, and its handles use: the dictionaries are the desk, the hand and all else."""

    bug: str
    rows: dict[str, Begun] = field(default_factory=dict)
    known: dict[tuple[str, str], Trigger] = field(default_factory=dict)
    intended: list[Note] = field(default_factory=list)
    recorded: list[Note] = field(default_factory=list)
    kept: list[Note] = field(default_factory=list)
    received: list[Note] = field(default_factory=list)
    clock_ms: int = 0

    def deliver(self, trigger: Trigger) -> Answer:
        found = self.known.get((trigger.source, trigger.event))
        if found is None:
            name = f"{trigger.source}/{trigger.event}"
            found = replace(trigger, instance=name)
            self.known[trigger.source, trigger.event] = found
            self.rows[name] = Begun(name, 0, None, 0, finished=False, input=found)
            if self.bug == "two at once":
                self.rows[f"{name}-again"] = replace(self.rows[name], instance=f"{name}-again")
        if found.fingerprint != trigger.fingerprint:
            return Refused("key-conflict")
        return Ok(instance="another" if self.bug == "tells of another" else found.instance)

    def acquire(self, instance: str, *, lease_ms: int) -> Answer:
        row = self.rows[instance]
        if row.finished:
            return Refused("finished")
        self.rows[instance] = replace(row, lease_version=row.lease_version + 1, expires_at_ms=lease_ms)
        return Ok()

    def finish(self, instance: str, commit_id: str) -> Answer:  # noqa: ARG002
        return self._commit(instance, finished=True)

    def intend(self, note: Note) -> Answer:
        if note in self.intended and self.bug != "intends it twice":
            return Ok()
        if self.bug == "sends it first":
            self.take(note)
        told = self._commit(note.instance)
        if isinstance(told, Ok) and note not in self.intended:
            self.intended.append(note)
        return told

    def record(self, note: Note) -> Answer:
        if note in self.recorded and self.bug != "records it twice":
            return Ok()
        told = self._commit(note.instance)
        if isinstance(told, Ok):
            self.recorded.append(note)
        return told

    def _commit(self, instance: str, **changes: bool) -> Answer:
        row = self.rows[instance]
        if row.finished:
            return Refused("finished")
        self.rows[instance] = replace(row, state_version=row.state_version + 1, **changes)
        return Ok()

    def take(self, note: Note) -> Answer:
        if note not in self.kept:
            self.kept.append(note)
            self.received += [note] * (2 if self.bug == "takes it twice" else 1)
        return Ok()

    def close(self) -> None:
        if self.bug == "recipient in memory":
            self.kept.clear()


@dataclass
class DictTriggers:
    """The adapter."""

    bug: str = ""
    capabilities: frozenset[Capability] = frozenset({Capability.CODES, Capability.TRIGGERS})
    model_variant: str = ""
    deviations: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.bug or "dictionaries"

    def fresh_world(self) -> Tables:
        return Tables(self.bug)

    def open_worker(self, world: Tables, name: str, incarnation: int, surroundings: Surroundings) -> Worker:
        raise NotImplementedError

    def open_desk(self, world: Tables, surroundings: Surroundings) -> Tables:  # noqa: ARG002
        return world

    def open_hand(
        self, world: Tables, name: str, incarnation: int, surroundings: Surroundings  # noqa: ARG002
    ) -> Tables:  # fmt: skip
        return world

    def open_recipient(self, world: Tables, surroundings: Surroundings) -> Tables:  # noqa: ARG002
        return world

    def observe(self, world: Tables) -> Observation:  # noqa: ARG002
        return Observation(Row(None, 0, None, 0, finished=False))

    def observe_triggers(self, world: Tables) -> Triggered:
        return Triggered(
            tuple(world.rows.values()),
            tuple(world.known.values()),
            tuple(world.intended),
            tuple(world.recorded),
            tuple(world.kept),
            tuple(world.received),
        )

    def close_world(self, world: Tables) -> None:
        pass


@cache
def verified_dictionaries(bug: str = "") -> Conformance:
    """The report on the small adapter with one of its bugs, found once in a process."""
    return verify(DictTriggers(bug), subject=subject_of("triggers"), examples=0)
