"""What the adapter of the SQLite store gives for triggers and notifications (§13): see `OfTriggers`.

A hand commits the intent of a notification as workers do, and that it was sent by a commit of its own beside
the receipt. Workers record the receipt alone, which changes no row, and so they may after the end as well.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from fencepost.conformance import adapter as a
from fencepost.conformance import adapter_triggers as t
from fencepost.reference.downstream import Downstream, open_downstream
from fencepost.reference.downstream_observe import DownstreamObserver
from fencepost.reference.downstream_values import EffectRequest
from fencepost.reference.keys import canonical_json, fingerprint, notification_key
from fencepost.reference.observe import Observer
from fencepost.reference.opening import open_store
from fencepost.reference.sql import Statements
from fencepost.reference.store import Store
from fencepost.reference.values import (
    FINISHED,
    Commit,
    Definition,
    Notification,
    Ok,
    Owner,
    Refused,
    StoreError,
)
from fencepost.reference.values_inbox import Beginning, Notified, Origin

DEFINITION = Definition("order", "order-v1")
"""What instances are pinned to that triggers begin."""

RECIPIENT, RESOURCE = "customer", "notification"
"""Who is told, and what a downstream calls that."""


class Door(Protocol):
    """A back door that stays open."""

    def close(self) -> None:
        """Give it up."""
        ...


class TriggersWorld(Protocol):
    """What is used of a world: its directory, the store's file, and the back door to it."""

    @property
    def directory(self) -> Path:
        """Where the recipient's file is made."""
        ...

    @property
    def path(self) -> Path:
        """The file of the store."""
        ...

    @property
    def observer(self) -> Observer:
        """The back door."""
        ...

    @property
    def doors(self) -> dict[str, Any]:
        """Where the back door to the recipient is kept."""
        ...


@dataclass(frozen=True, slots=True)
class StoreDesk:
    """A handle on the store for those who hand in triggers."""

    store: Store

    def deliver(self, trigger: t.Trigger) -> a.Answer:
        """Trigger the instance of the event; a refusal tells what it tells."""
        beginning = Beginning(trigger.instance, DEFINITION, "", trigger.fingerprint, "")
        answer = _asked(lambda: self.store.trigger(trigger.source, trigger.event, beginning))
        if isinstance(answer, Ok):
            return a.Ok(instance=answer.value.instance)
        if isinstance(answer, Refused) and answer.observed is not None:
            return a.Refused(answer.code, instance=answer.observed.instance)
        return _told(answer)

    def close(self) -> None:
        """Close the handle."""
        self.store.close()


@dataclass(frozen=True, slots=True)
class StoreHand:
    """A handle on the store of one owner. The ids of a notification's commits are made of its key."""

    store: Store
    owner: Owner

    def acquire(self, instance: str, *, lease_ms: int) -> a.Answer:
        """Acquire, as this owner."""
        return _told(_asked(lambda: self.store.acquire(instance, self.owner, lease_ms=lease_ms)))

    def finish(self, instance: str, commit_id: str) -> a.Answer:
        """Commit the end."""
        return self._commit(instance, commit_id, "finished", finishes=True)

    def intend(self, note: t.Note) -> a.Answer:
        """Commit the notification, without a receipt."""
        wanted = notification_of(note)
        return self._commit(note.instance, f"intend/{wanted.key}", "intended", notifications=(wanted,))

    def record(self, note: t.Note) -> a.Answer:
        """Commit that it was sent, and record its receipt."""
        key = notification_of(note).key
        told = self._commit(note.instance, f"told/{key}", "told")
        if not isinstance(told, a.Ok):
            return told
        return _told(_asked(lambda: self.store.delivered(note.instance, key, "received")))

    def _commit(self, instance: str, commit_id: str, event: str, **what: Any) -> a.Answer:
        row = _asked(lambda: self.store.read(instance))
        if not isinstance(row, Ok):
            return _told(row)
        commit = Commit(
            instance=instance,
            owner=self.owner,
            commit_id=commit_id,
            expected_state_version=row.value.state_version,
            expected_lease_version=row.value.lease_version,
            event=event,
            **what,
        )
        return _told(_asked(lambda: self.store.commit(commit)))

    def close(self) -> None:
        """Close the handle."""
        self.store.close()


@dataclass(frozen=True, slots=True)
class LedgerRecipient:
    """A keyed downstream of notifications."""

    downstream: Downstream

    def take(self, note: t.Note) -> a.Answer:
        """Apply the notification as an effect."""
        sent = notification_of(note)
        request = EffectRequest(
            note.instance, RESOURCE, sent.kind, sent.parameters, sent.fingerprint, sent.key, 0
        )
        return _told(_asked(lambda: self.downstream.apply(request)))

    def close(self) -> None:
        """Close the handle."""
        self.downstream.close()


class HasStatements(Protocol):
    """What is used of the rest of the adapter."""

    @property
    def statements(self) -> Statements:
        """The statements that the store is to use."""
        ...


class OfTriggers:
    """The part of the adapter that is about triggers and notifications: see `TriggersAdapter`."""

    __slots__ = ()

    def open_desk(self: HasStatements, world: TriggersWorld, surroundings: a.Surroundings) -> StoreDesk:
        """Open the store's file once more."""
        return StoreDesk(_store(self.statements, world, surroundings))

    def open_hand(
        self: HasStatements, world: TriggersWorld, name: str, incarnation: int, surroundings: a.Surroundings
    ) -> StoreHand:
        """Open the store's file once more."""
        return StoreHand(_store(self.statements, world, surroundings), Owner(name, incarnation))

    def open_recipient(self, world: TriggersWorld, surroundings: a.Surroundings) -> LedgerRecipient:
        """Open the recipient's file once more; the first time it is made."""
        path = _recipient_of(world)
        if not path.exists():
            path.write_bytes(_fresh_recipient())
        downstream = open_downstream(path, clock_ms=surroundings.clock_ms, synchronous="OFF", keyed=True)
        return LedgerRecipient(downstream)

    def observe_triggers(self, world: TriggersWorld) -> t.Triggered:
        """What the tables of both files hold, by their own back doors."""
        seen = world.observer.observe()
        if "recipient" not in world.doors:
            world.doors["recipient"] = DownstreamObserver(_recipient_of(world))
        outside = world.doors["recipient"].observe()
        received = {each.number: _note(each.instance, each.operation, each.parameters)
                    for each in outside.effects}  # fmt: skip
        return t.Triggered(
            rows=tuple(
                t.Begun(
                    row.instance,
                    row.lease_version,
                    row.expires_at_ms,
                    row.state_version,
                    row.status in FINISHED,
                )
                for row in seen.rows
                if row.definition == DEFINITION
            ),
            known=tuple(map(_known, seen.origins)),
            intended=tuple(map(_stored, seen.notifications)),
            recorded=tuple(_stored(each) for each in seen.notifications if each.receipt is not None),
            kept=tuple(received[r.effect] for r in outside.records if r.effect is not None),
            received=tuple(received.values()),
        )


def notification_of(note: t.Note) -> Notification:
    """A notification as the store and the recipient have it."""
    parameters = {"target_version": note.target_version}
    return Notification(
        note.kind,
        RECIPIENT,
        note.target_version,
        notification_key(note.instance, note.kind, RECIPIENT, note.target_version),
        fingerprint(note.kind, RESOURCE, 1, parameters),
        canonical_json(parameters),
    )


def _note(instance: str, kind: str, parameters: str) -> t.Note:
    return t.Note(instance, kind, json.loads(parameters)["target_version"])


def _stored(notified: Notified) -> t.Note:
    stored = notified.notification
    return t.Note(notified.instance, stored.kind, stored.target_version)


def _known(origin: Origin) -> t.Trigger:
    return t.Trigger(origin.source, origin.event_id, origin.fingerprint, origin.instance)


def _recipient_of(world: TriggersWorld) -> Path:
    return world.directory / "recipient.db"


@cache
def _fresh_recipient() -> bytes:
    """The file of a new recipient."""
    with tempfile.TemporaryDirectory(prefix="fencepost-") as directory:
        path = Path(directory, "recipient.db")
        open_downstream(path, clock_ms=lambda: 0, synchronous="OFF", keyed=True).close()
        return path.read_bytes()  # closed, and so all in one file


def _store(statements: Statements, world: TriggersWorld, surroundings: a.Surroundings) -> Store:
    return open_store(
        world.path,
        clock_ms=surroundings.clock_ms,
        synchronous="OFF",  # no power cut is tried; the death of a process loses nothing all the same
        statements=statements,
        connection_class=surroundings.watched(sqlite3.Connection),
    )


def _asked(call: Callable[[], Any]) -> Any:
    """The answer of the store, or that there is none."""
    try:
        return call()
    except StoreError as error:
        return a.Unknown(f"{type(error).__name__}: {error}")


def _told(answer: Any) -> a.Answer:
    """An answer of which only the code matters."""
    match answer:
        case Refused():
            return a.Refused(answer.code)
        case a.Unknown():
            return answer
    return a.Ok()
