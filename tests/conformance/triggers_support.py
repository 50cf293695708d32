"""Adapters of the SQLite store for triggers and notifications (§13), right and with something wrong."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from fencepost.conformance import (
    EVERYTHING,
    Answer,
    Capability,
    Conformance,
    Ok,
    Refused,
    Surroundings,
    verify,
)
from fencepost.conformance.adapter_triggers import Note, Trigger
from fencepost.conformance.subjects import subject_of
from fencepost.reference import BROKEN_DOWNSTREAMS, STATEMENTS, sql, sql_inbox
from fencepost.reference.adapter import SqliteAdapter, World
from fencepost.reference.adapter_triggers import LedgerRecipient, StoreDesk, StoreHand, notification_of
from fencepost.reference.broken_stores import BROKEN, without_guards
from fencepost.reference.downstream import Downstream, open_downstream
from fencepost.reference.sql import Statements
from fencepost.reference.values import Notification

TRIGGERS = frozenset(EVERYTHING | {Capability.TRIGGERS})


@cache
def verified_triggers(name: str = "", examples: int = 0) -> Conformance:
    """The report on one of the adapters, the right one without a name; found once in a process."""
    adapter = ODD[name]() if name else SqliteAdapter(capabilities=TRIGGERS)
    return verify(adapter, subject=subject_of("triggers"), examples=examples, seed=1)


def _store(statements: Statements) -> Callable[[], SqliteAdapter]:
    return lambda: SqliteAdapter(capabilities=TRIGGERS, statements=statements)


def _replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


# -- Desks.


@dataclass
class LateDesk:
    """Writes the dedup record after the row, in a transaction of its own: when it is called the next time."""

    inner: StoreDesk
    path: str
    pending: Trigger | None = None

    def deliver(self, trigger: Trigger) -> Answer:
        told = self.inner.deliver(trigger)
        if self.pending is not None:
            with closing(sqlite3.connect(self.path)) as connection, connection:
                connection.execute(
                    "insert or ignore into triggers values (?, ?, ?, ?, '', '', 0)",
                    (
                        self.pending.source,
                        self.pending.event,
                        self.pending.fingerprint,
                        self.pending.instance,
                    ),
                )
        self.pending = trigger
        return told

    def close(self) -> None:
        self.inner.close()


@dataclass
class TalkingDesk:
    """Tells who comes with another payload of the instance that there is."""

    inner: StoreDesk
    path: str

    def deliver(self, trigger: Trigger) -> Answer:
        told = self.inner.deliver(trigger)
        if not isinstance(told, Refused):
            return told
        with closing(sqlite3.connect(self.path)) as connection:
            ((instance,),) = connection.execute(
                "select instance from triggers where source = ? and event_id = ?",
                (trigger.source, trigger.event),
            )
        return Refused(told.code, instance=instance)

    def close(self) -> None:
        self.inner.close()


class WithDesk(SqliteAdapter):
    """The store with another desk."""

    def __init__(self, desk: Callable[[StoreDesk, str], Any], **details: Any) -> None:
        super().__init__(capabilities=TRIGGERS, **details)
        object.__setattr__(self, "desk", desk)

    def open_desk(self, world: Any, surroundings: Surroundings) -> Any:
        return vars(self)["desk"](super().open_desk(world, surroundings), str(world.path))


# -- Hands.


class WithHand(SqliteAdapter):
    """The store; one call of its hands does something more, in a transaction of its own."""

    def __init__(self, call: str, *statements: str) -> None:
        super().__init__(capabilities=TRIGGERS)
        object.__setattr__(self, "after", (call, statements))

    def open_hand(self, world: Any, name: str, incarnation: int, surroundings: Surroundings) -> Any:
        return AndThen(super().open_hand(world, name, incarnation, surroundings), world, *vars(self)["after"])


@dataclass
class AndThen:
    """A hand after one of whose calls something else is done, if it was accepted."""

    inner: StoreHand
    world: World
    call: str
    statements: tuple[str, ...]

    def acquire(self, instance: str, *, lease_ms: int) -> Answer:
        return self._then("acquire", self.inner.acquire(instance, lease_ms=lease_ms), instance)

    def finish(self, instance: str, commit_id: str) -> Answer:
        return self._then("finish", self.inner.finish(instance, commit_id), instance)

    def intend(self, note: Note) -> Answer:
        return self._then("intend", self.inner.intend(note), note.instance)

    def record(self, note: Note) -> Answer:
        return self._then("record", self.inner.record(note), note.instance)

    def _then(self, call: str, told: Answer, instance: str) -> Answer:
        if call == self.call and isinstance(told, Ok):
            with closing(sqlite3.connect(self.world.path)) as connection, connection:
                for statement in self.statements:
                    connection.execute(statement, {"instance": instance})
        return told

    def close(self) -> None:
        self.inner.close()


class SendingFirst(SqliteAdapter):
    """The store with hands that send before they commit."""

    def __init__(self) -> None:
        super().__init__(capabilities=TRIGGERS)

    def open_hand(self, world: Any, name: str, incarnation: int, surroundings: Surroundings) -> Any:
        return SendsFirst(
            super().open_hand(world, name, incarnation, surroundings),
            self.open_recipient(world, surroundings),
        )


@dataclass
class SendsFirst:
    """A hand that sends a notification at once, and commits its intent when it commits what came of it."""

    inner: StoreHand
    recipient: LedgerRecipient

    def acquire(self, instance: str, *, lease_ms: int) -> Answer:
        return self.inner.acquire(instance, lease_ms=lease_ms)

    def finish(self, instance: str, commit_id: str) -> Answer:
        return self.inner.finish(instance, commit_id)

    def intend(self, note: Note) -> Answer:
        return self.recipient.take(note)

    def record(self, note: Note) -> Answer:
        told = self.inner.intend(note)
        return self.inner.record(note) if isinstance(told, Ok) else told

    def close(self) -> None:
        self.inner.close()
        self.recipient.close()


# -- Recipients.


@dataclass
class OtherKeys:
    """A recipient to which a notification is sent otherwise than it should be."""

    downstream: Downstream
    sent_as: Callable[[Note], Notification]

    def take(self, note: Note) -> Answer:
        import fencepost.reference.adapter_triggers as module

        was = module.notification_of
        module.notification_of = self.sent_as
        try:
            return LedgerRecipient(self.downstream).take(note)
        finally:
            module.notification_of = was

    def close(self) -> None:
        self.downstream.close()


class WithRecipient(SqliteAdapter):
    """The store with another recipient."""

    def __init__(self, sent_as: Callable[[Note], Notification] = notification_of, **details: Any) -> None:
        super().__init__(capabilities=TRIGGERS)
        object.__setattr__(self, "other", (sent_as, {"keyed": True, **details}))

    def open_recipient(self, world: Any, surroundings: Surroundings) -> Any:
        super().open_recipient(world, surroundings).close()  # which makes the file
        sent_as, details = vars(self)["other"]
        return OtherKeys(
            open_downstream(
                world.directory / "recipient.db", clock_ms=surroundings.clock_ms, synchronous="OFF", **details
            ),
            sent_as,
        )


def _to_version_0(note: Note) -> Notification:
    """As the notification to the first version of the target, though it says where it goes."""
    first, meant = notification_of(replace(note, target_version=0)), notification_of(note)
    return replace(meant, key=first.key, fingerprint=first.fingerprint)


_find_nothing = f"{sql_inbox.FIND_TRIGGER.rstrip()} and false\n"
_MOVED = f"{sql_inbox.KNOWN}\nupdate instances set state_version = state_version + 1"
_RETURNED = sql_inbox.BEGIN[sql_inbox.BEGIN.index("returning") :]
_FORGET_TRIGGER = (
    "drop trigger if exists triggers_are_not_deleted",
    "delete from triggers where instance = :instance",
)
_FORGET_INTENTS = (
    "drop trigger if exists notifications_stay",
    "delete from notifications where instance = :instance and receipt is null",
)
_FORGET_RECEIPTS = (
    "drop trigger if exists notifications_are_kept",
    "update notifications set receipt = null where instance = :instance",
)
_record_the_first = _replaced(sql_inbox.RECORD_TRIGGER, "insert into", "insert or ignore into")

ODD: Mapping[str, Callable[[], SqliteAdapter]] = {
    "record-not-looked-at": _store(
        replace(STATEMENTS, find_trigger=_find_nothing, record_trigger=_record_the_first)
    ),
    "record-after-the-row": lambda: WithDesk(
        LateDesk, statements=replace(STATEMENTS, record_trigger="select 1")
    ),
    "event-id-alone": _store(
        replace(
            STATEMENTS,
            find_trigger=_replaced(sql_inbox.FIND_TRIGGER, "source = :source and ", ""),
        )
    ),
    "payload-not-compared": _store(
        replace(STATEMENTS, redeliver=without_guards(sql_inbox.REDELIVER, "key-conflict"))
    ),
    "conflict-names-the-instance": lambda: WithDesk(TalkingDesk),
    "redelivery-moves-the-row": _store(
        replace(
            STATEMENTS,
            redeliver=_MOVED + sql_inbox.REDELIVER.partition("from instances")[2] + _RETURNED,
        )
    ),
    "purged-at-the-end": lambda: WithHand("finish", *_FORGET_TRIGGER),
    "sends-uncommitted": SendingFirst,
    "takeover-forgets-what-is-to-be-sent": lambda: WithHand("acquire", *_FORGET_INTENTS),
    "takeover-begins-anew": lambda: WithHand("acquire", *_FORGET_RECEIPTS),
    "acquire-moves-the-state": lambda: WithHand(
        "acquire", "update instances set state_version = state_version + 1 where instance = :instance"
    ),
    "acquired-after-the-end": _store(replace(STATEMENTS, acquire=without_guards(sql.ACQUIRE, "finished"))),
    "commits-after-the-end": _store(BROKEN["commits-after-the-end"]),
    "key-without-the-target": lambda: WithRecipient(_to_version_0),
    "recipient-keeps-no-record": lambda: WithRecipient(keyed=False),
    "record-in-memory": lambda: WithRecipient(statements=BROKEN_DOWNSTREAMS["record-in-memory"]),
}
"""Stores, desks and recipients with something wrong; most are like the variant of the model of that name."""
