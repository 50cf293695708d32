"""The words of the store: owners, rows, steps, log entries, commits, answers and errors (§1, §2, §5, §6).

Times are whole milliseconds on the store's clock and end in `_ms`; versions are whole numbers from 0 to
`MAX_VERSION`. Everything here is immutable.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
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


class HandleError(StoreError):
    """A handle that is of no use any more: closed, or of another process. The call changed nothing."""


class ArgumentError(StoreError, ValueError):
    """An argument that no state of the store could make right. The call changed nothing."""


def shown(value: object) -> str:
    """A value for a message, whatever it is."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  # a `__repr__` of somebody else's, or a number of too many digits
        return f"a {type(value).__name__} that cannot be shown"


def text(who: str, what: str, value: object, *, may_be_empty: bool = False) -> str:
    """The value, if it is text that the database can keep; `ArgumentError` otherwise."""
    if not isinstance(value, str):
        raise ArgumentError(f"{who}: {what} must be a str, not {shown(value)}; pass the text itself")
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
        raise ArgumentError(f"{who}: {what} must be an int, not {shown(value)}; convert it first")
    if not lowest <= value <= highest:
        raise ArgumentError(
            f"{who}: {what} is {shown(value)}; pass a whole number from {lowest} to {highest}"
        )
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


class StepStatus(StrEnum):
    """Where a step stands (§5)."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    MANUAL_INTERVENTION = "manual_intervention"
    WAITING_APPROVAL = "waiting_approval"
    RETRY_SCHEDULED = "retry_scheduled"
    COMPENSATING = "compensating"
    COMPENSATED = "compensated"


class InstanceStatus(StrEnum):
    """Where an instance stands (§1)."""

    RUNNING = "running"
    UNWINDING = "unwinding"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    MANUAL_INTERVENTION = "manual_intervention"


FINISHED: Final = frozenset({InstanceStatus.SUCCEEDED, InstanceStatus.FAILED, InstanceStatus.CANCELLED})
"""The statuses in which an instance is finished (§1)."""


class Evidence(StrEnum):
    """How it is known that the effect of an intent did not happen (§6); there is no other way to know."""

    UNSENT = "unsent"
    """The intent was committed under this very lease, and its owner knows that it did not send it.

    A request that was refused before anybody looked at it, since it makes no sense, was not sent.
    """
    TOMBSTONED = "tombstoned"
    """Its key holds a tombstone, for a reason that was committed first."""
    RECORDED_REFUSAL = "recorded-refusal"
    """Its key holds a refusal."""
    FENCED_AND_NOT_FOUND = "fenced-and-not-found"
    """The fence stood above every token that it was sent under, and a query after that found nothing."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What an effect is to be, as it is committed before it is sent; nobody derives it again (§6).

    `parameters` is canonical JSON text, `fingerprint` the hash over it: `keys.py` makes both, and the key.
    `expected_revision` is the resource's revision at a downstream that has such, else None; `compensation`
    is any text that names what would undo the effect, or None.
    """

    intent_version: int
    key: str
    fingerprint: str
    resource: str
    operation: str
    parameters: str
    expected_revision: int | None = None
    compensation: str | None = None

    def __post_init__(self) -> None:
        whole("Intent", "intent_version", self.intent_version, lowest=1)
        for name in ("key", "fingerprint", "resource", "operation", "parameters"):
            text("Intent", name, getattr(self, name))
        if self.expected_revision is not None:
            whole("Intent", "expected_revision", self.expected_revision)
        if self.compensation is not None:
            text("Intent", "compensation", self.compensation)


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step of an instance as one transaction saw it (§5). A step without a row is pending.

    `intent_lease_version` is the lease version under which the intent was committed. `unwinding` is the
    reason, committed before a tombstone is written, for giving the effect up. `evidence` says how it is known
    that the effect did not happen, where the step has ended without it or waits for the approval of another
    intent; `former_evidence` says so of the intent before this one. `state_version` is that of the last
    commit that changed the step, `succeeded_at_version` that of its success. Deadlines and the timer are
    times on the store's clock. `approval_fingerprint` is what an approval is asked for, `approved_by` the
    number of the request that gave the last one. `attested`: nothing is claimed about receipt or evidence but
    an operator's word (§12). `undo` is the intent of the compensation, once that has begun, `undo_receipt`
    its receipt.
    """

    instance: str
    step: str
    status: StepStatus
    attempt: int
    intent: Intent | None
    intent_lease_version: int | None
    unwinding: str | None
    receipt: str | None
    evidence: Evidence | None
    former_evidence: Evidence | None
    reason: str | None
    from_status: StepStatus | None
    state_version: int
    depends_on: tuple[str, ...] = ()
    needs_approval: bool = False
    approval_fingerprint: str | None = None
    approval_deadline_at_ms: int | None = None
    approved_by: int | None = None
    deadline_at_ms: int | None = None
    most_attempts: int | None = None
    timer_at_ms: int | None = None
    error_class: str | None = None
    result: str | None = None
    succeeded_at_version: int | None = None
    attested: bool = False
    undo: Intent | None = None
    undo_lease_version: int | None = None
    undo_receipt: str | None = None
    undo_attempt: int = 0

    @property
    def asked_version(self) -> int:
        """The version of the intent that an approval is for, while one is asked for: the next (§11)."""
        return 1 if self.intent is None else self.intent.intent_version + 1


@dataclass(frozen=True, slots=True)
class StepChange:
    """What one commit changes in one step (§5, §6). Whatever is None stays as it is.

    `status` is where the step goes; naming the status that it has is legal only together with a receipt,
    another attempt, a timer or the reason for unwinding. A new `intent` goes with `running`; one that takes
    another's place also needs `evidence` that the former did not happen, and is another attempt. Where it
    needs an approval, it comes with that, and the evidence with `waiting_approval`, when it is asked for.

    With `compensating`, `intent`, `receipt` and `another_attempt` are those of the compensation (§12).
    `timer_at_ms` goes with `retry_scheduled` and `compensating`, `error_class` says what went wrong, and
    `result` refers to what a success gave. `approval_fingerprint` goes with `waiting_approval`: what is to be
    approved, until when at the latest. `request` is the number of an approval decision or of a late result,
    `decision` that of an operator decision, which this change consumes.
    """

    step: str
    status: StepStatus
    intent: Intent | None = None
    another_attempt: bool = False
    unwinding: str | None = None
    receipt: str | None = None
    evidence: Evidence | None = None
    reason: str | None = None
    result: str | None = None
    error_class: str | None = None
    timer_at_ms: int | None = None
    approval_fingerprint: str | None = None
    approval_deadline_at_ms: int | None = None
    request: int | None = None
    decision: int | None = None

    def __post_init__(self) -> None:
        text("StepChange", "step", self.step)
        _one_of("StepChange", "status", self.status, StepStatus)
        if self.intent is not None and not isinstance(self.intent, Intent):
            raise ArgumentError(f"StepChange: intent must be an Intent, not {self.intent!r}")
        if not isinstance(self.another_attempt, bool):
            raise ArgumentError(f"StepChange: another_attempt must be a bool, not {self.another_attempt!r}")
        for name in ("unwinding", "receipt", "reason", "result", "error_class", "approval_fingerprint"):
            if getattr(self, name) is not None:
                text("StepChange", name, getattr(self, name))
        for name in ("timer_at_ms", "approval_deadline_at_ms"):
            if getattr(self, name) is not None:
                whole("StepChange", name, getattr(self, name), highest=MAX_TIME_MS)
        for name in ("request", "decision"):
            if getattr(self, name) is not None:
                whole("StepChange", name, getattr(self, name), lowest=1)
        if self.request is not None and self.decision is not None:
            raise ArgumentError("StepChange: request and decision are both given; one change consumes one")
        if self.evidence is not None:
            _one_of("StepChange", "evidence", self.evidence, Evidence)


@dataclass(frozen=True, slots=True)
class StepEntry:
    """What one accepted commit left of one step that it changed: the step log, beside the event log (§4).

    `evidence` is what the commit itself gave, be it for the intent named here or for the one before it.
    """

    instance: str
    state_version: int
    step: str
    status: StepStatus
    attempt: int
    intent_version: int | None
    key: str | None
    unwinding: str | None
    receipt: str | None
    evidence: Evidence | None


@dataclass(frozen=True, slots=True)
class Definition:
    """Which definition an instance follows: its id, and the fingerprint of its code (§14)."""

    id: str
    fingerprint: str

    def __post_init__(self) -> None:
        text("Definition", "id", self.id)
        text("Definition", "fingerprint", self.fingerprint)


@dataclass(frozen=True, slots=True)
class Move:
    """What one commit changes in the status of its instance, other than finishing it (§8, §10, §14).

    To `unwinding` or `manual_intervention` with a cause. Out of `manual_intervention`, back to where it came
    from, by an operator's `decision`, whose number the commit so consumes, or by a `migration`: the name of
    one that is registered, which gives the instance another `definition`. A migration may also go with the
    status that the instance has.
    """

    status: InstanceStatus
    cause: str | None = None
    decision: int | None = None
    definition: Definition | None = None
    migration: str | None = None

    def __post_init__(self) -> None:
        _one_of("Move", "status", self.status, InstanceStatus)
        if self.status in FINISHED:
            raise ArgumentError(f"Move: status is {self.status}; end an instance with Commit(finishes=True)")
        for name in ("cause", "migration"):
            if getattr(self, name) is not None:
                text("Move", name, getattr(self, name))
        if self.decision is not None:
            whole("Move", "decision", self.decision, lowest=1)
        if self.definition is not None and not isinstance(self.definition, Definition):
            raise ArgumentError(f"Move: definition must be a Definition, not {self.definition!r}")
        if (self.definition is None) != (self.migration is None):
            raise ArgumentError("Move: give both definition and migration, or none of them")


@dataclass(frozen=True, slots=True)
class Notification:
    """What somebody is to be told: committed as an intent before it is sent, and sent under its key (§13).

    `recipient` and `target_version` say where to; there is one for each instance, kind and target version.
    """

    kind: str
    recipient: str
    target_version: int
    key: str
    fingerprint: str
    parameters: str

    def __post_init__(self) -> None:
        for name in ("kind", "recipient", "key", "fingerprint", "parameters"):
            text("Notification", name, getattr(self, name))
        whole("Notification", "target_version", self.target_version)


@dataclass(frozen=True, slots=True)
class Row:
    """The durable row of one instance, as one transaction saw it (§1).

    `expires_at_ms` is None, meaning minus infinity, when the lease was released or never given: it is not
    live at any time. `owner` is None only before the first lease; after it, the last owner stays. `steps`
    are filled in, in the order of their names, by `acquire`, `read` and `ask`; elsewhere they are empty.
    `unwinding_cause` says why the instance began to unwind, `manual_cause` why it waits for a person.
    `definition` is what it is pinned to, if anything (§14); `deadline_at_ms` a time on the store's clock.
    """

    instance: str
    owner: Owner | None
    lease_version: int
    expires_at_ms: int | None
    state_version: int
    status: str
    steps: tuple[StepRow, ...] = ()
    unwinding_cause: str | None = None
    manual_cause: str | None = None
    definition: Definition | None = None
    deadline_at_ms: int | None = None


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
    instance, whose steps must all have ended: as succeeded, or else as failed or cancelled when one of them
    is, with nothing left to compensate. `changes` names each step at most once; `move` changes the status of
    the instance before them. `requests` are the numbers of the cancels that the commit consumes, beside those
    that its changes and its move name.
    """

    instance: str
    owner: Owner
    commit_id: str
    expected_state_version: int
    expected_lease_version: int
    event: str
    payload: str = ""
    finishes: bool = False
    changes: tuple[StepChange, ...] = ()
    move: Move | None = None
    requests: tuple[int, ...] = ()
    notifications: tuple[Notification, ...] = ()

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
        if self.move is not None and not isinstance(self.move, Move):
            raise ArgumentError(f"Commit: move must be a Move, not {self.move!r}")
        _all_of("changes", self.changes, StepChange)
        _all_of("requests", self.requests, int)
        for number in self.requests:
            whole("Commit", "requests", number, lowest=1)
        _all_of("notifications", self.notifications, Notification)
        if len({change.step for change in self.changes}) < len(self.changes):
            raise ArgumentError("Commit: changes name one step twice; make two commits of them")
        if len(set(self.consumed)) < len(self.consumed):
            raise ArgumentError("Commit: one request is named twice; each takes effect once")

    @property
    def consumed(self) -> tuple[int, ...]:
        """The numbers of all requests that the commit consumes."""
        return (*self.requests, *self.used)

    @property
    def used(self) -> tuple[int, ...]:
        """The numbers that its move and its changes name."""
        named = [number for c in self.changes for number in (c.request, c.decision)]
        named += [] if self.move is None else [self.move.decision]
        return tuple(number for number in named if number is not None)


def _all_of(what: str, value: object, kind: type) -> None:
    if not isinstance(value, tuple) or not all(isinstance(each, kind) for each in value):
        raise ArgumentError(f"Commit: {what} must be a tuple of {kind.__name__}, not {value!r}")


def checked_owner(who: str, value: object) -> Owner:
    """The value, if it is an `Owner`; `ArgumentError` otherwise."""
    if not isinstance(value, Owner):
        raise ArgumentError(
            f"{who}: owner must be an Owner, not {shown(value)}; pass Owner(worker, incarnation)"
        )
    return value


def _one_of(who: str, what: str, value: object, kinds: type[StrEnum]) -> None:
    if not isinstance(value, kinds):
        raise ArgumentError(f"{who}: {what} must be one of {kinds.__name__}, not {value!r}")


Value = TypeVar("Value")
Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True)
class Ok(Generic[Value]):
    """The call happened (or, for a commit id already in the log, had happened), with what it made (§2)."""

    value: Value


@dataclass(frozen=True, slots=True)
class Refused(Generic[Seen]):
    """The call definitely changed nothing (§2): why, and what was seen to stand, None if there is nothing.

    What a store shows is the row.
    """

    code: str
    observed: Seen | None


Answer: TypeAlias = Ok[Value] | Refused[Row]
"""What every operation of the store gives back: `Ok` with a value, or `Refused` with a code."""
