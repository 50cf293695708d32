"""What a run beside triggers has open, and what the harness knows: leases, names, who was told what (§13).

The model leaves leases out: there any worker commits. So before a commit the harness takes the lease itself
where its worker has none, and does not count that lease version. Every message reaches a process of its own,
so that what is only in memory does not count as kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fencepost.conformance.adapter import Answer, Ok, Surroundings
from fencepost.conformance.adapter_triggers import (
    Begun,
    Desk,
    Hand,
    Recipient,
    Trigger,
    Triggered,
    TriggersAdapter,
)
from fencepost.conformance.vocabulary import CannotEmbedError, Landing
from fencepost.model import Scope
from fencepost.model.concrete import values_of
from fencepost.model.domains import Element
from fencepost.model.triggers.state import instances

if TYPE_CHECKING:
    from fencepost.conformance.session import Session

LEASE_MS = 1_000_000
"""A lease that does not run out by itself in a run: leases are not what this is about."""


@dataclass(slots=True)
class Handles:
    """What one run has open, and what the harness knows: who was told what, what was decided last."""

    adapter: TriggersAdapter
    world: Any
    around: Surroundings
    scope: Scope
    desk: Desk = field(init=False)
    recipient: Recipient = field(init=False)
    target: int = 0
    """Changes of the target so far."""
    commits: int = 0
    """Commits of an end so far, each of which has an id of its own."""
    told: dict[str, str | None] = field(default_factory=dict)
    """By request: the instance that the answer on its way back names."""
    deciding: tuple[Element, Trigger] | None = None
    """The trigger that is being decided, until the next look, with the model's name for what it may begin."""
    taking: str = ""
    """The notice that was decided last, until the next look."""
    landed: list[Landing] = field(default_factory=list)
    _last: Triggered = field(default_factory=Triggered)
    _meant: list[Element] = field(default_factory=list)
    """The model's names that triggers were decided with, the last one first."""
    _at_desk: str = ""
    _at_recipient: str = ""
    _elements: dict[str, Element] = field(default_factory=dict)
    _inputs: dict[str, Trigger] = field(default_factory=dict)
    _hands: dict[str, Hand] = field(default_factory=dict)
    _incarnations: dict[str, int] = field(default_factory=dict)
    _uncounted: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open the desk and the recipient; hands are opened when they are needed."""
        self.desk = self.adapter.open_desk(self.world, self.around)
        self.recipient = self.adapter.open_recipient(self.world, self.around)

    def observe(self) -> Triggered:
        """What is stored; what has reached a target since the last look is of the notice decided last."""
        seen = self.adapter.observe_triggers(self.world)
        new = len(seen.received) - sum(landing.times for landing in self.landed)
        if new > 0:
            self.landed.append(Landing(self.taking, new))
        self.taking = ""
        if self.deciding is not None:
            meant, trigger = self.deciding
            self._meant.insert(0, meant)
            for row in seen.rows:
                self._inputs.setdefault(row.instance, trigger)
        self.deciding, self._last = None, seen
        return seen

    def close(self) -> None:
        """Give up all of them."""
        for hand in self._hands.values():
            hand.close()
        self._hands.clear()
        self.desk.close()
        self.recipient.close()

    # -- hands

    def row(self, instance: str) -> Begun | None:
        """The row of an instance, as it was at the last look."""
        return next((row for row in self._last.rows if row.instance == instance), None)

    def take_over(self, instance: str) -> Answer:
        """A worker that has never been acquires the lease of an instance; refused, it is gone again."""
        incarnation = self._incarnations.get(instance, 0) + 1
        hand = self._opened(instance, incarnation)
        told = hand.acquire(instance, lease_ms=LEASE_MS)
        if not isinstance(told, Ok):
            hand.close()
            return told
        if instance in self._hands:
            self._hands.pop(instance).close()
        self._hands[instance], self._incarnations[instance] = hand, incarnation
        return told

    def _opened(self, instance: str, incarnation: int) -> Hand:
        return self.adapter.open_hand(self.world, f"worker-of-{instance}", incarnation, self.around)

    def hand(self, session: Session, instance: str) -> Hand | Answer:
        """The hand with the lease of an instance; takes the lease first where none has it.

        After the end of the instance it is that of the last owner, whose calls come late then. What is
        answered instead of a lease is the answer.
        """
        row = self.row(instance)
        if row is not None and row.finished:
            if instance not in self._hands:
                self._hands[instance] = self._opened(instance, self._incarnations.get(instance, 0))
            return self._hands[instance]
        if instance not in self._hands or row is None or not row.live(session.now_ms):
            outlive(session, row)
            told = self.take_over(instance)
            if not isinstance(told, Ok):
                return told
            self._uncounted[instance] = self._uncounted.get(instance, 0) + 1
        return self._hands[instance]

    def crash(self, instance: str) -> None:
        """The worker of an instance dies."""
        if instance in self._hands:
            self._hands.pop(instance).close()

    def desk_for(self, request: str) -> Desk:
        """The desk, opened anew unless it has just had a copy of this request: memory is not to count."""
        if request != self._at_desk:
            self.restart_desk()
        self._at_desk = request
        return self.desk

    def recipient_for(self, notice: str) -> Recipient:
        """The recipient, opened anew unless it has just had a copy of this notice."""
        if notice != self._at_recipient:
            self.restart_recipient()
        self._at_recipient = notice
        return self.recipient

    def restart_desk(self) -> None:
        """The desk is closed and opened again."""
        self.desk.close()
        self.desk = self.adapter.open_desk(self.world, self.around)

    def restart_recipient(self) -> None:
        """The recipient is closed and opened again."""
        self.recipient.close()
        self.recipient = self.adapter.open_recipient(self.world, self.around)

    # -- names

    def element(self, name: str) -> Element:
        """The model's name for an instance: for a new one that of the trigger decided last, if it is free."""
        found = self._elements.get(name)
        if found is None:
            names = (*self._meant, *values_of(instances, self.scope))
            free = [i for i in names if i not in self._elements.values()]
            if not free:
                raise CannotEmbedError(f"there are more instances than ids; the last is {name!r}")
            found = self._elements[name] = free[0]
        return found

    def named(self, i: Element) -> str:
        """What the implementation calls an instance of the model."""
        return next((name for name, element in self._elements.items() if element == i), i.label)

    def input_of(self, row: Begun) -> Trigger:
        """What an instance began from: what its row says, or the trigger that was decided when it began."""
        found = row.input or self._inputs.get(row.instance)
        if found is None:
            raise CannotEmbedError(f"the instance {row.instance!r} began, and no trigger was being decided")
        return found

    def counted(self, row: Begun) -> int:
        """The lease version without the leases that the harness took for itself."""
        return row.lease_version - self._uncounted.get(row.instance, 0)


def outlive(session: Session, row: Begun | None) -> None:
    """Let the clock come to the end of a lease that is live."""
    if row is not None and row.expires_at_ms is not None:
        session.now_ms = max(session.now_ms, row.expires_at_ms)
