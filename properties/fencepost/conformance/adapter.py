"""What an implementation gives so that it can be validated: a small adapter, in neutral words.

An adapter opens worlds (one instance on one storage, empty at first), opens workers on them (independent
handles, as two processes would have), passes the operations of §3 and §4 on, and says what is stored by a
back door. It decides nothing and remembers nothing. One whose commits change a step with an outside effect
also opens the downstream (§6, §7): that is an `EffectsAdapter`, and others need none of it. Who runs it
chooses the schedule, the clock and the faults: whole operations or single statements, which is why every
driver goes through `Surroundings.watched`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from fencepost.conformance.adapter_workflow import WorkflowSeen


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
    EFFECTS = "effects"
    """Commits carry what they change in a step, and there is a downstream: see `EffectsAdapter` (§6, §7)."""
    WORKFLOW = "workflow"
    """Instances have several steps, an inbox and ways back: see `WorkflowAdapter` (§4, §9 to §12)."""
    TRIGGERS = "triggers"
    """Events begin instances, and notifications go out: see `adapter_triggers.TriggersAdapter` (§13)."""
    RECOVERY = "recovery"
    """There are checkpoints and pinned definitions: see `recovering.RecoveryAdapter` (§8, §14)."""
    REPLAY = "replay"
    """Workflows are run again over their histories: see `adapter_replay.ReplayAdapter` (§15)."""


EVERYTHING = frozenset(Capability) - {
    Capability.EFFECTS,
    Capability.WORKFLOW,
    Capability.TRIGGERS,
    Capability.RECOVERY,
    Capability.REPLAY,
}
"""All capabilities of §3 and §4. Acquiring, committing and observing the row are none but required."""


class Ability(Enum):
    """What a downstream can do (§7). Closed by default: what is not listed is never asked for."""

    FENCED = "fenced"
    """It keeps the highest token, and refuses a lower one."""
    KEYED = "keyed"
    """It keeps what became of a key, gives it instead of a second effect, and takes tombstones."""
    QUERYABLE = "queryable"
    """It can be asked by key what took effect; a keyed one always can."""
    REVISIONED = "revisioned"
    """It refuses an effect that expects another revision, and others can change the resource."""
    DECLINES = "declines"
    """It can be made to decline an effect, such as one with an amount above a limit."""
    RESTARTS = "restarts"
    """It can be closed and opened again, as after a death: what it keeps in memory is gone."""


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
class Intent:
    """The intent of the step's effect (§6). `revision` is None where the downstream has no revisions.

    `undoable` says whether a compensation is registered with it (§12).
    """

    version: int
    key: str
    fingerprint: str
    revision: int | None = None
    undoable: bool = False


@dataclass(frozen=True, slots=True)
class StepChange:
    """What a commit changes in one step (§5, §6); what is None stays as it is.

    `status` is one of §5. `unwinding` is the reason to give a running step up, `reason` why a person has to
    look. `evidence` says how it is known that the effect of the former intent did not happen: ``unsent``,
    ``tombstoned``, ``recorded-refusal`` or ``fenced-and-not-found``.

    The others are for a world with several steps (`Capability.WORKFLOW`): which `step`, and the number of
    what the change consumes: a `request` for approval, or an operator's `decision`. `timer_at_ms` goes with
    ``retry_scheduled``, `approval_until_ms` with ``waiting_approval``; both are times on the store's clock.
    With ``waiting_approval`` the intent is the one that is to be approved; of a step that ran, `evidence` is
    about the former one. With ``compensating`` the intent, and with ``compensated`` the receipt, is the
    compensation's.
    """

    status: str
    intent: Intent | None = None
    unwinding: str | None = None
    receipt: str | None = None
    evidence: str | None = None
    reason: str | None = None
    step: str = ""
    request: int | None = None
    decision: int | None = None
    timer_at_ms: int | None = None
    approval_until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StepEntry:
    """How one accepted commit left the step: its status, and the version of its intent, 0 without one."""

    state_version: int
    status: str
    intent_version: int
    unwinding: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """What a downstream keeps under a key: `kind` is ``receipt``, ``declined``, ``tombstone`` or ``nothing``.

    ``declined`` is a refusal for good, be it for the revision or for reasons of the downstream's own.
    """

    key: str
    kind: str
    fingerprint: str = ""
    receipt: str | None = None


@dataclass(frozen=True, slots=True)
class Happened:
    """One effect that took place: the truth, whatever the downstream keeps of it."""

    key: str
    fingerprint: str
    token: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """A downstream, seen by a back door. `happened` is all that took place, in order, and never shrinks.

    `fence` and `revision` are 0 before the first and where there is none.
    """

    happened: tuple[Happened, ...] = ()
    held: tuple[Held, ...] = ()
    fence: int = 0
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """What is stored, seen by a back door. `log` is None where it cannot be seen.

    The others are there with `Capability.EFFECTS`: how each commit left the step, the intents that are still
    stored, the step's receipt, and the downstream. Of a world that was begun with a definition all steps and
    the inbox are in `workflow`, and of these the downstream alone. `more` is what is seen besides where
    another protocol is checked, in the words of that one.
    """

    row: Row
    log: tuple[Entry, ...] | None = None
    steps: tuple[StepEntry, ...] = ()
    intents: tuple[Intent, ...] = ()
    receipt: str | None = None
    ledger: Ledger | None = None
    workflow: WorkflowSeen | None = None
    more: Any = None


@dataclass(frozen=True, slots=True)
class Commit:
    """One compare-and-set, as its sender made it (§4). With `finishes` it ends the instance.

    `unwinds` is the cause for which the instance unwinds from this commit on, ``failure`` or ``cancel``;
    `consumes` the number of the cancel that it consumes (§10).
    """

    commit_id: str
    owner: Owner
    lease_version: int
    state_version: int
    finishes: bool
    change: StepChange | None = None
    unwinds: str | None = None
    consumes: int | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """A request to a downstream (§6). With `declines` it is to be one that the downstream declines."""

    key: str
    fingerprint: str
    token: int
    revision: int | None = None
    declines: bool = False


@dataclass(frozen=True, slots=True)
class Ok:
    """The call was accepted: with the row, or the entry of the commit, where the answer carries it.

    A downstream that keeps keys tells what it holds: to an effect, a tombstone or a query. That it declined,
    and keeps it, is such an answer, and no refusal. A trigger is told of its `instance`.
    """

    row: Row | None = None
    entry: Entry | None = None
    held: Held | None = None
    instance: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The call definitely changed nothing (§2): the code, and the row where the answer carries it.

    `instance` is the instance that a trigger is told of all the same, where the answer names one.
    """

    code: str
    observed: Row | None = None
    instance: str | None = None


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


@runtime_checkable
class Downstream(Protocol):
    """One handle on the downstream of a world. An exception counts as no answer."""

    def apply(self, effect: Effect) -> Answer:
        """Apply the effect; where keys are kept, `Ok` with what is held under its key from now on."""
        ...

    def tombstone(self, key: str, fingerprint: str, *, token: int) -> Answer:
        """Give an effect up (§7): `Ok` with what is held under the key. Only asked where keys are kept."""
        ...

    def query(self, key: str) -> Answer:
        """Ask by the key: `Ok` with what is held. Only asked where keys are kept or it is queryable."""
        ...

    def raise_fence(self, token: int) -> Answer:
        """Record a token and do nothing else. Only asked of a fenced one."""
        ...

    def change_elsewhere(self) -> None:
        """Somebody else changes the resource: its revision rises. Only asked of a revisioned one."""
        ...

    def close(self) -> None:
        """Give up the handle, as the death of the downstream does."""
        ...


@runtime_checkable
class EffectsAdapter(Adapter, Protocol):
    """An adapter with `Capability.EFFECTS`: one step with one outside effect, and a downstream for it."""

    @property
    def downstream(self) -> frozenset[Ability]:
        """What the downstream can do; nothing at all is an opaque one."""
        ...

    def open_downstream(self, world: Any, surroundings: Surroundings) -> Downstream:
        """A handle of its own on the world's downstream. Records outlive it, in the world."""
        ...


class RewindingAdapter(Adapter, Protocol):
    """What an adapter may have besides, so that thousands of schedules are run in one world.

    Only for implementations whose handles remember nothing of what is stored: they stay open. Without these,
    each schedule has a world of its own, and the moves to its start are made again.
    """

    def snapshot(self, world: Any) -> Any:
        """All that is stored, also what `observe` does not show."""
        ...

    def restore(self, world: Any, snapshot: Any) -> None:
        """Make the world hold exactly that again."""
        ...

    def stamp(self, world: Any) -> Any:
        """A value that is another one whenever anything has been changed that another handle can read.

        With it the world is not looked at again after a statement that changed nothing, and statements that
        only read are not tried in both orders.
        """
        ...
