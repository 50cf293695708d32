"""What an adapter gives for triggers and notifications (§13), in neutral words: `Capability.TRIGGERS`.

Three kinds of handle: a desk, where sources hand in their events; hands, each of which works on instances for
one worker in one incarnation; and the recipient of notifications. As everywhere, the adapter decides nothing
and remembers nothing, and says by a back door what is stored. Other instances of a world are not shown here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from fencepost.conformance.adapter import Adapter, Answer, Surroundings


@dataclass(frozen=True, slots=True)
class Trigger:
    """An event as its source delivers it, with the fingerprint of its payload.

    `instance` is a name for the instance that it begins, if it begins one. An implementation that makes names
    of its own need not use it.
    """

    source: str
    event: str
    fingerprint: str
    instance: str


@dataclass(frozen=True, slots=True)
class Note:
    """A notification by its parts: there is one for each instance, kind and version of the target."""

    instance: str
    kind: str
    target_version: int


@dataclass(frozen=True, slots=True)
class Begun:
    """The row of one instance. `input` is the event that it began from, None where the row does not say.

    `expires_at_ms` is None when the lease was given back, or never taken.
    """

    instance: str
    lease_version: int
    expires_at_ms: int | None
    state_version: int
    finished: bool
    input: Trigger | None = None

    def live(self, now_ms: int) -> bool:
        """Whether the lease is live: ``now < expires_at``."""
        return self.expires_at_ms is not None and now_ms < self.expires_at_ms


@dataclass(frozen=True, slots=True)
class Triggered:
    """What is stored, seen by a back door.

    `rows` are the instances that began from triggers, `known` the dedup records, `intended` the notifications
    that are committed to be sent, with those that were, and `recorded` those that are committed as sent. Of
    the recipient, `kept` is what it knows by its keys, and `received` all that has reached its targets, in
    order, as often as it did.
    """

    rows: tuple[Begun, ...] = ()
    known: tuple[Trigger, ...] = ()
    intended: tuple[Note, ...] = ()
    recorded: tuple[Note, ...] = ()
    kept: tuple[Note, ...] = ()
    received: tuple[Note, ...] = ()


class Desk(Protocol):
    """A handle on the store for those who hand in triggers. An exception counts as no answer."""

    def deliver(self, trigger: Trigger) -> Answer:
        """Hand in a trigger: `Ok` with the `instance` that there is for it, this one or an earlier one."""
        ...

    def close(self) -> None:
        """Give up the handle, as the death of its process does."""
        ...


class Hand(Protocol):
    """A handle on the store of one worker in one incarnation. An exception counts as no answer.

    Without a live lease of its own nothing but `acquire` is asked of it, but for what comes after the end of
    an instance. Each commit goes by the versions that stand.
    """

    def acquire(self, instance: str, *, lease_ms: int) -> Answer:
        """Take the lease of an instance for `lease_ms` milliseconds."""
        ...

    def finish(self, instance: str, commit_id: str) -> Answer:
        """Commit the end of an instance, under this id."""
        ...

    def intend(self, note: Note) -> Answer:
        """Commit that a notification is to be sent, and send nothing. Once committed, asking again is ok."""
        ...

    def record(self, note: Note) -> Answer:
        """Commit that a notification was sent. Once that is committed, asking for it again is ok."""
        ...

    def close(self) -> None:
        """Give up the handle, as the death of its process does."""
        ...


class Recipient(Protocol):
    """A handle on the recipient of notifications. An exception counts as no answer."""

    def take(self, note: Note) -> Answer:
        """A notification arrives, under the key that the implementation makes for it: `Ok`, new or not."""
        ...

    def close(self) -> None:
        """Give up the handle, as the death of the recipient does. What it has answered may not be lost."""
        ...


@runtime_checkable
class TriggersAdapter(Adapter, Protocol):
    """An adapter with `Capability.TRIGGERS`: its worlds begin without any instance that a trigger began."""

    def open_desk(self, world: Any, surroundings: Surroundings) -> Desk:
        """A desk of its own on the world's storage."""
        ...

    def open_hand(self, world: Any, name: str, incarnation: int, surroundings: Surroundings) -> Hand:
        """A hand of its own on the world's storage, as a process of that worker would have."""
        ...

    def open_recipient(self, world: Any, surroundings: Surroundings) -> Recipient:
        """A handle of its own on the recipient. Its records outlive it, in the world."""
        ...

    def observe_triggers(self, world: Any) -> Triggered:
        """What is stored now, read past the code under test. This is trusted: it must not lie."""
        ...
