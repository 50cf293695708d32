"""What an implementation gives so that it can be validated: a small adapter, in neutral words.

An adapter opens worlds (one instance on one storage, empty at first), opens workers on them (independent
handles, as two processes would have), passes the operations of §3 and §4 on, and says what is stored by a
back door. It decides nothing and remembers nothing. Who runs it chooses the schedule, the clock and the
faults: now whole operations, later single statements, which is why every driver goes through
`Surroundings.watched`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, runtime_checkable


class Capability(Enum):
    """What an implementation offers. Closed by default: what is not listed is never asked for."""

    RENEW = "renew"
    """A live lease can be extended (§3)."""
    RELEASE = "release"
    """The owner can end its lease for good (§3)."""
    READ = "read"
    """A worker can read the row (§3, after a lost reply)."""
    ASK = "ask"
    """A worker can ask what became of a commit, by its id (§4)."""
    CODES = "codes"
    """Refusals carry the code that applies first (§2). Without it, any refusal stands for the right one."""
    VERSIONS = "versions"
    """Answers carry the row that they were decided on (§2)."""
    LOG = "log"
    """`observe` sees the event log (§4)."""


EVERYTHING = frozenset(Capability)
"""All capabilities. Acquiring, committing and observing the row are no capabilities but required."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A worker by name and incarnation; only both together own anything (§1)."""

    worker: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class Row:
    """The durable row of the instance (§1). `expires_at_ms` is None when released or never leased."""

    owner: Owner | None
    lease_version: int
    expires_at_ms: int | None
    state_version: int
    finished: bool

    def live(self, now_ms: int) -> bool:
        """Whether the lease is live: ``now < expires_at``."""
        return self.expires_at_ms is not None and now_ms < self.expires_at_ms


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the event log: the state version that a commit made, and what the commit named.

    `lease_version` and `owner` are None where the implementation does not keep them.
    """

    commit_id: str
    state_version: int
    lease_version: int | None = None
    owner: Owner | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What is stored, seen by a back door. `log` is None where it cannot be seen."""

    row: Row
    log: tuple[Entry, ...] | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """One compare-and-set, as its sender made it (§4). With `finishes` it ends the instance."""

    commit_id: str
    owner: Owner
    lease_version: int
    state_version: int
    finishes: bool


@dataclass(frozen=True, slots=True)
class Ok:
    """The call was accepted: with the row, or the entry of the commit, where the answer carries it."""

    row: Row | None = None
    entry: Entry | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The call definitely changed nothing (§2): the code, and the row where the answer carries it."""

    code: str
    observed: Row | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """No answer: the call may or may not have happened (§2)."""

    why: str


Answer = Ok | Refused | Unknown


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a worker is given by whoever runs it: the store's clock, in milliseconds, and `watched`.

    An adapter passes its database driver (the connection, or the class of connections) through `watched` and
    uses what comes back, so that a schedule can stop between two statements. Where nobody watches, the same
    thing comes back.
    """

    clock_ms: Callable[[], int]
    watched: Callable[[Any], Any] = lambda driver: driver


@runtime_checkable
class Worker(Protocol):
    """One handle on a world, of one worker in one incarnation. An exception counts as no answer."""

    def acquire(self, *, lease_ms: int) -> Answer:
        """Take the lease for `lease_ms` milliseconds."""
        ...

    def renew(self, lease_version: int, *, lease_ms: int) -> Answer:
        """Extend the lease of that version to `lease_ms` milliseconds from now."""
        ...

    def release(self, lease_version: int) -> Answer:
        """End the lease of that version."""
        ...

    def commit(self, commit: Commit) -> Answer:
        """Send a commit. It is given as its sender made it, which may be long ago."""
        ...

    def ask(self, commit_id: str) -> Answer:
        """What became of a commit: `Ok` with its entry or none, and the row of the same moment."""
        ...

    def read(self) -> Answer:
        """The row: `Ok` with it."""
        ...

    def close(self) -> None:
        """Give up the handle, as the death of its process does. Nothing that was answered may be lost."""
        ...


class Adapter(Protocol):
    """An implementation, as far as it is to be validated.

    `model_variant` names the variant of the model that the implementation follows ("" for the protocol
    itself), and `deviations` the claims that it does not hold, by id, with the reason. Both are strict: a run
    passes when its results equal the declaration, so a claim that is declared not to hold must be seen to
    break.
    """

    @property
    def name(self) -> str:
        """What reports call the implementation."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it offers."""
        ...

    @property
    def model_variant(self) -> str:
        """The variant of the model that it follows, or ""."""
        ...

    @property
    def deviations(self) -> Mapping[str, str]:
        """The claims that it is declared not to hold, with the reason."""
        ...

    def fresh_world(self) -> Any:
        """A new storage with one instance on it: not leased, nothing committed, both versions 0."""
        ...

    def open_worker(self, world: Any, name: str, incarnation: int, surroundings: Surroundings) -> Worker:
        """A handle of its own on the world's storage, as a process of that worker would have."""
        ...

    def observe(self, world: Any) -> Observation:
        """What is stored now, read past the code under test. This is trusted: it must not lie."""
        ...

    def close_world(self, world: Any) -> None:
        """The world is not needed any more; its handles are closed."""
        ...
