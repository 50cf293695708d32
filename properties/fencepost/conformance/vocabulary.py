"""From an implementation's words to the model's: what one run names, and what was seen at one moment.

A line per stored variable says where in it the variable is read; the lines stand in a module per protocol
(see `counterparts`). A variable that has none is an error that says what to write; one that the
implementation does not show is *not observed*, and claims that read it are not exercised.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from fencepost.conformance.adapter import Commit, Entry, Held, Ledger, Observation, Owner, Row
from fencepost.model import FencepostError, Scope, absent
from fencepost.model import Protocol as ModelProtocol
from fencepost.model.concrete import RunningState, values_of
from fencepost.model.core.state import workers
from fencepost.model.domains import Element
from fencepost.model.effects.state import DOWNSTREAM

ASSUMES = "one instance, one clock, only calls that a worker of the protocol makes"
"""What all runs have in common, whatever their scope: for the bound of what was run."""


class MappingError(FencepostError):
    """The protocol has something that is not mapped to implementations; the message says what to write."""


class CannotEmbedError(FencepostError):
    """What is stored has no counterpart in the model; the message says what it is."""


def message(model: RunningState, c: Element) -> Any:
    """What was sent under this name: a commit, or a request to the downstream."""
    return model.call[c] if "call" in vars(model) else model.request[c]


class Landing(NamedTuple):
    """Effects that took place between two looks: how many, and of which request, if of any."""

    request: str
    times: int


class Handles(Protocol):
    """What a run has open beside a protocol that is not about the workers of the core, and what it knows."""

    landed: list[Landing]
    """What took place outside, with the messages that brought it about."""

    def observe(self) -> Any:
        """What is stored, in the words of the protocol: `Observation.more`."""
        ...

    def close(self) -> None:
        """Give up all of it."""
        ...


@dataclass(slots=True)
class Names:
    """The names that one run uses in the implementation, and what they stand for in the model."""

    scope: Scope
    commit_ids: dict[str, Element] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)
    """Commits that change the step, by their ids."""
    receipts: dict[str, str] = field(default_factory=dict)
    """The receipt that was last told under a key."""
    intents: dict[Any, Any] = field(default_factory=dict)
    """The intents that were stored, for when a store no longer keeps those before the present one."""
    landed: list[Landing] = field(default_factory=list)
    """The effects that took place, with the requests that brought them about."""
    deciding: str = ""
    """The request that is being decided, or was decided last."""
    handles: Handles | None = None
    """What the run has open, where that is not the handles of workers."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What the module of a protocol remembers of its own."""

    def commit_id(self, sender: Owner, c: Element) -> str:
        """The id of a commit: who sends it, in which incarnation, and which one it is."""
        made = f"{sender.worker}.{sender.incarnation}.{c.label}"
        self.commit_ids[made] = c
        return made

    def receipt_of(self, key: str) -> str:
        """The receipt that was last told under a key, or what stands for one that nobody was told."""
        return self.receipts.get(key, "received")

    def key(self, version: int) -> str:
        """The idempotency key of an intent (§6)."""
        return f"order-1:charge:account-v{version}"

    def seen(self, observation: Observation, now_ms: int) -> Seen:
        """An observation, read with these names: effects that are new are of the request decided last."""
        ledger = observation.ledger
        if ledger is not None:
            new = len(ledger.happened) - sum(landing.times for landing in self.landed)
            if new > 0:
                self.landed.append(Landing(self.deciding, new))
            if new < 0:
                raise CannotEmbedError("fewer effects have happened than before; `happened` is to have all")
        if self.handles is not None:
            more = self.handles.observe()
            return Seen(replace(observation, more=more), now_ms, self, tuple(self.handles.landed))
        return Seen(observation, now_ms, self, tuple(self.landed))

    def let_go(self, request: str) -> None:
        """A request of which nothing is on its way any more is forgotten: its name may be another's next."""
        self.landed = [
            landing._replace(request=f"former {request}") if landing.request == request else landing
            for landing in self.landed
        ]

    def kept(self) -> Names:
        """All that is remembered, to be put back."""
        return Names(
            self.scope,
            dict(self.commit_ids),
            dict(self.commits),
            dict(self.receipts),
            dict(self.intents),
            list(self.landed),
            notes=dict(self.notes),
        )

    def put_back(self, kept: Names) -> None:
        """Remember what was remembered then, and nothing else."""
        now = kept.kept()
        self.commit_ids, self.commits, self.receipts = now.commit_ids, now.commits, now.receipts
        self.intents, self.landed, self.deciding, self.notes = now.intents, now.landed, "", now.notes

    def owner(self, raw: tuple[Element, int]) -> Owner:
        """An owner of the model, as the implementation names it."""
        return Owner(raw[0].label, raw[1])

    def raw_owner(self, owner: Owner | None) -> Any:
        """An owner that is stored, as a value of the model."""
        if owner is None:
            return absent
        for element in values_of(workers, self.scope):
            if element.label == owner.worker:
                return (element, owner.incarnation)
        raise CannotEmbedError(f"an owner named {owner.worker!r} is stored, and no worker has that name")


@dataclass(frozen=True, slots=True)
class Seen:
    """An observation with all that it takes to read it: the moment, the run's names, and who did what.

    `landed` are the effects in the ledger, with the requests that they are of.
    """

    observation: Observation
    now_ms: int
    names: Names
    landed: tuple[Landing, ...] = ()

    @property
    def row(self) -> Row:
        """The row."""
        return self.observation.row

    @property
    def ledger(self) -> Ledger:
        """The downstream."""
        return self.observation.ledger or Ledger()

    def told(
        self, row: Row | None, entry: Entry | None, asked_for: str | None, held: Held | None = None
    ) -> Seen:
        """The same as an answer tells it: the row, if the commit asked for is in the log, what is held."""
        log, ledger = self.observation.log, self.observation.ledger
        if log is not None and asked_for is not None:
            log = tuple(e for e in log if e.commit_id != asked_for) + (() if entry is None else (entry,))
        if ledger is not None and held is not None:
            ledger = replace(ledger, held=(*(h for h in ledger.held if h.key != held.key), held))
        seen = replace(self.observation, row=row or self.row, log=log, ledger=ledger)
        return replace(self, observation=seen)


def has_downstream(protocol: ModelProtocol) -> bool:
    """Whether a protocol speaks of effects."""
    return any(variable.home == DOWNSTREAM for variable in protocol.variables.values())
