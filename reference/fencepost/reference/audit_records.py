"""What an audit compares (§17): two databases, and what workers and requesters were answered; and its words.

The journal is what workers and requesters told of, each thing before they did anything else, so that one that
is killed has told of every answer that it can have acted on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

from fencepost.reference.downstream_observe import DownstreamObservation
from fencepost.reference.observe import Observation
from fencepost.reference.values import Entry, InstanceStatus, Owner, Row, StepEntry, StepRow, StepStatus

OK: Final = "ok"
"""The answer of a call that was accepted; any other is the code of a refusal, or `UNKNOWN`."""

UNKNOWN: Final = "unknown"
"""No answer, and so nothing is claimed of the call (§2)."""

FINISHED: Final = (InstanceStatus.SUCCEEDED, InstanceStatus.FAILED, InstanceStatus.CANCELLED)

ENDED_WITHOUT: Final = (StepStatus.FAILED, StepStatus.CANCELLED)
"""How a step ends whose effect did not happen."""


@dataclass(frozen=True, slots=True)
class Acquired:
    """A lease that a worker was given: the versions of the row that came with it."""

    instance: str
    owner: Owner
    lease_version: int
    state_version: int


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that a worker asked for, and what it was answered."""

    instance: str
    commit_id: str
    answer: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A request for an effect that a worker sent, and what it was answered; with ok, the receipt."""

    instance: str
    key: str
    answer: str
    receipt: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that somebody without a lease made, and what it was answered; with ok, its number.

    `seen_version` is the state version of a row that was read after the answer had come: whatever has a
    higher one came later than the request.
    """

    instance: str
    request_id: str
    kind: str
    answer: str
    number: int | None = None
    seen_version: int | None = None


@dataclass(frozen=True, slots=True)
class Triggered:
    """An event that was delivered, and what that was answered; with ok, the instance that it began."""

    source: str
    event_id: str
    answer: str
    instance: str | None = None


@dataclass(slots=True)
class Journal:
    """What all were answered, each in the order in which it was told; calls of the dead may lack."""

    acquired: list[Acquired] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    triggered: list[Triggered] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Records:
    """Everything that is compared: both databases, the journal, and the instances that there must be."""

    instances: tuple[str, ...]
    store: Observation
    downstream: DownstreamObservation
    journal: Journal


Found: TypeAlias = tuple[str, bool, list[str]]
"""What was counted, whether what is claimed of really happened, and what is wrong."""

Item = TypeVar("Item")
Group = TypeVar("Group")


def grouped(items: Iterable[Item], of: Callable[[Item], Group]) -> Mapping[Group, list[Item]]:
    """The items by what a function says of each, in their order."""
    groups: dict[Group, list[Item]] = defaultdict(list)
    for item in items:
        groups[of(item)].append(item)
    return groups


def logs(records: Records) -> Iterator[tuple[Row, list[Entry]]]:
    """Each row and its event log."""
    by_instance = grouped(records.store.entries, lambda entry: entry.instance)
    for row in records.store.rows:
        yield row, by_instance.get(row.instance, [])


def steps(records: Records) -> Iterator[StepRow]:
    """All steps of all instances."""
    for row in records.store.rows:
        yield from row.steps


def step_logs(records: Records) -> Mapping[tuple[str, str], list[StepEntry]]:
    """What commits left of each step, by instance and step, in the order of the commits."""
    return grouped(records.store.step_entries, lambda entry: (entry.instance, entry.step))


def starts(entries: Iterable[StepEntry]) -> Iterator[StepEntry]:
    """The entries in the log of one step that start it: for the first time, or for another attempt."""
    former: StepEntry | None = None
    for entry in entries:
        begins = former is None or former.status is not StepStatus.RUNNING or entry.attempt > former.attempt
        if entry.status is StepStatus.RUNNING and begins:
            yield entry
        former = entry


def first(entries: Iterable[StepEntry], status: StepStatus) -> int | None:
    """The state version at which a step had a status for the first time."""
    return next((entry.state_version for entry in entries if entry.status is status), None)


def whose(step: StepRow | StepEntry) -> str:
    """A step in words."""
    return f"{step.step} of {step.instance}"


def named(owner: Owner) -> str:
    """An owner in words: both name and incarnation."""
    return f"{owner.worker}/{owner.incarnation}"
