"""The words of the store: owners, rows, log entries, commits, answers and errors (§1, §2).

Times are whole milliseconds on the store's clock and end in `_ms`; versions are whole numbers from 0 to
`MAX_VERSION`. Everything here is immutable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

MAX_VERSION: Final = 2**63 - 1
"""The last version of either kind: what a signed 64-bit column holds."""

MAX_TIME_MS: Final = 2**62 - 1
"""The last reading of a clock and the longest lease; their sum still fits the column."""


class StoreError(Exception):
    """Broken code or a broken environment. Refusals are never raised: they are answers.

    Unless the class says otherwise the call may or may not have happened: its answer is *unknown* (§2), and
    the caller re-reads or asks for its commit id.
    """


class StoreBusyError(StoreError):
    """Another handle kept the database locked for the whole busy timeout. The call changed nothing."""


class ArgumentError(StoreError, ValueError):
    """An argument that no state of the store could make right. The call changed nothing."""


def text(who: str, what: str, value: object, *, may_be_empty: bool = False) -> str:
    """The value, if it is text that the database can keep; `ArgumentError` otherwise."""
    if not isinstance(value, str):
        raise ArgumentError(f"{who}: {what} must be a str, not {value!r}; pass the text itself")
    if not value and not may_be_empty:
        raise ArgumentError(f"{who}: {what} is empty; give it at least one character")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(f"{who}: {what} {value!r} is not valid Unicode: {error.reason}") from error
    return value


def whole(who: str, what: str, value: object, *, lowest: int = 0, highest: int = MAX_VERSION) -> int:
    """The value, if it is an int (and no bool) within bounds; `ArgumentError` otherwise."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentError(f"{who}: {what} must be an int, not {value!r}; convert it first")
    if not lowest <= value <= highest:
        raise ArgumentError(f"{who}: {what} is {value}; pass a whole number from {lowest} to {highest}")
    return value


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a lease: a worker's name and its incarnation, and only both together (§1).

    A restarted worker keeps its name and has a new incarnation, and so is another owner.
    """

    worker: str
    incarnation: int

    def __post_init__(self) -> None:
        text("Owner", "worker", self.worker)
        whole("Owner", "incarnation", self.incarnation)


@dataclass(frozen=True, slots=True)
class Row:
    """The durable row of one instance, as one transaction saw it (§1).

    `expires_at_ms` is None, meaning minus infinity, when the lease was released or never given: it is not
    live at any time. `owner` is None only before the first lease; after it, the last owner stays.
    """

    instance: str
    owner: Owner | None
    lease_version: int
    expires_at_ms: int | None
    state_version: int
    status: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One accepted commit in the event log (§4).

    `state_version` is the version that the commit made; `lease_version` and `owner` are those it was made
    under.
    """

    instance: str
    state_version: int
    lease_version: int
    owner: Owner
    commit_id: str
    event: str
    payload: str
    committed_at_ms: int


@dataclass(frozen=True, slots=True)
class Commit:
    """One compare-and-set that a worker asks for, with the versions that it believes to stand (§4).

    `commit_id` (incarnation and counter) is the same in every attempt at one commit, and never used for
    another. `event` names what happened, `payload` is any text; the store reads neither. `finishes` ends the
    instance.
    """

    instance: str
    owner: Owner
    commit_id: str
    expected_state_version: int
    expected_lease_version: int
    event: str
    payload: str = ""
    finishes: bool = False

    def __post_init__(self) -> None:
        text("Commit", "instance", self.instance)
        checked_owner("Commit", self.owner)
        text("Commit", "commit_id", self.commit_id)
        whole("Commit", "expected_state_version", self.expected_state_version)
        whole("Commit", "expected_lease_version", self.expected_lease_version)
        text("Commit", "event", self.event)
        text("Commit", "payload", self.payload, may_be_empty=True)
        if not isinstance(self.finishes, bool):
            raise ArgumentError(f"Commit: finishes must be True or False, not {self.finishes!r}")


def checked_owner(who: str, value: object) -> Owner:
    """The value, if it is an `Owner`; `ArgumentError` otherwise."""
    if not isinstance(value, Owner):
        raise ArgumentError(f"{who}: owner must be an Owner, not {value!r}; pass Owner(worker, incarnation)")
    return value


Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Ok(Generic[Value]):
    """The call happened (or, for a commit id already in the log, had happened), with what it made (§2)."""

    value: Value


@dataclass(frozen=True, slots=True)
class Refused:
    """The call definitely changed nothing (§2): why, and the row that stood, None if there is none."""

    code: str
    observed: Row | None


Answer: TypeAlias = Ok[Value] | Refused
"""What every operation gives back: `Ok` with a value, or `Refused` with a code."""
