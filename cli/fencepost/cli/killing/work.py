"""What a worker process does: it runs the instances of a store, and tells its supervisor of each point.

The supervisor knows a worker only by the lines that it writes, each a JSON object:

    {"at": "sending"}                      a point between two steps; the worker waits there for leave
    {"acquired": [instance, incarnation, lease version, state version, steps left]}
    {"left": [instance, steps left]}       after a commit that was accepted
    {"committed": [instance, commit id, answer]}
    {"sent": [instance, key, answer, receipt]}
    {"asked": [instance, request id, kind, answer, number, state version]}
    {"triggered": [source, event id, answer, instance]}
    {"ended": true}                        nothing is left to do
    {"failed": "what an error says"}       it ends, and should not

What a call was answered is told before the worker does anything else, so that what a killed worker did not
tell of, it had not heard either. Who cancels, approves and decides tells in the same way, in `people.py`.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from fencepost.cli.killing.orders import ORDERS, input_of, name_of, steps_left
from fencepost.cli.killing.points import Points
from fencepost.reference import (
    STATEMENTS,
    Answer,
    Capabilities,
    Commit,
    EffectRequest,
    Entry,
    Ok,
    Owner,
    Receipt,
    Refused,
    Request,
    Requested,
    Row,
    Store,
    TakesEffects,
    open_store,
    start,
)
from fencepost.reference import work as work_on
from fencepost.reference.audit import OK, UNKNOWN, Triggered
from fencepost.reference.downstream_http import HttpDownstream
from fencepost.reference.downstream_values import DownstreamAnswer

SHOP: Final = "shop"
"""Where the events come from that begin orders; the id of each is the name of its order."""

IDLE_SECONDS: Final = 0.002  # between two looks for work, so that a lease that ends is soon taken
BUSY_TIMEOUT_MS: Final = 60_000  # nobody holds the write lock for long, but a busy machine is slow
TIMEOUT_MS: Final = 10_000  # for an answer of the downstream, which is killed but never stopped


@dataclass(frozen=True, slots=True)
class Settings:
    """What all processes of a run have in common; JSON can hold it.

    `keyed` says whether the downstream keeps idempotency keys; without them it has a fence and can be asked,
    unless it is `opaque` (§7). `seed` is for people's chances. `statements` are SQL texts of the store that
    are other than usual, by name. `broken_downstream` and `broken_worker` name what is wrong on purpose.
    """

    store: str
    ledger: str
    lease_ms: int
    keyed: bool = True
    opaque: bool = False
    seed: int = 0
    broken_downstream: str | None = None
    broken_worker: str | None = None
    statements: Mapping[str, str] = field(default_factory=dict)

    @property
    def capabilities(self) -> Capabilities:
        """What the downstream can do."""
        able = not self.opaque
        return Capabilities(fenced=able, keyed=able and self.keyed, queryable=able, revisioned=False)


def clock_ms() -> int:
    """The time of day, on which all processes of one machine agree, in milliseconds."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """A worker's own clock, in milliseconds."""
    return time.monotonic_ns() // 1_000_000


def opened(settings: Settings) -> Store:
    """A handle on the store, for one process."""
    # A death loses nothing that was written, only a power cut could: so nobody waits for the disk.
    return open_store(
        settings.store,
        clock_ms=clock_ms,
        busy_timeout_ms=BUSY_TIMEOUT_MS,
        synchronous="OFF",
        statements=replace(STATEMENTS, **settings.statements),
    )


class Line:
    """The line to the supervisor. Once that is gone, so is the process."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection: Final = connection

    def tell(self, **what: Any) -> None:
        """Write one line; it is read even if the process is killed right after."""
        try:
            self._connection.sendall(json.dumps(what).encode() + b"\n")
        except OSError:
            os._exit(1)

    def at(self, point: str) -> None:
        """Tell of a point, and wait there for leave."""
        self.tell(at=point)
        try:
            leave = self._connection.recv(1)
        except OSError:
            leave = b""
        if not leave:
            os._exit(1)


def said(answer: Ok[Any] | Refused[Any]) -> str:
    """The word for an answer."""
    return answer.code if isinstance(answer, Refused) else OK


class WatchedStore:
    """A store that tells what acquire, commit and request are answered."""

    def __init__(self, store: Store, line: Line) -> None:
        self._store: Final = store
        self._line: Final = line
        self._changed: str | None = None

    def acquire(self, instance: str, owner: Owner, *, lease_ms: int) -> Answer[Row]:
        """Acquire, and tell of a lease that is given."""
        answer = self._store.acquire(instance, owner, lease_ms=lease_ms)
        if isinstance(answer, Ok):
            row = answer.value
            versions = (row.lease_version, row.state_version)
            self._line.tell(acquired=[instance, owner.incarnation, *versions, steps_left(row)])
        return answer

    def commit(self, commit: Commit) -> Answer[Entry]:
        """Commit, and tell of the answer."""
        word = UNKNOWN
        try:
            answer = self._store.commit(commit)
            word = said(answer)
        finally:
            self._line.tell(committed=[commit.instance, commit.commit_id, word])
        self._changed = commit.instance if word == OK else None
        return answer

    def read(self, instance: str) -> Answer[Row]:
        """Read, and tell what is left to do, if that has changed."""
        answer = self._store.read(instance)
        if isinstance(answer, Ok) and instance == self._changed:
            self._changed = None
            self._line.tell(left=[instance, steps_left(answer.value)])
        return answer

    def request(self, instance: str, request: Request) -> Answer[Requested]:
        """Put a request into the inbox, and tell of the answer, and of the state version after it."""
        answer = self._store.request(instance, request)
        number = version = None
        if isinstance(answer, Ok):
            seen, number = self._store.read(instance), answer.value.number
            version = seen.value.state_version if isinstance(seen, Ok) else None
        self._line.tell(
            asked=[instance, request.request_id, request.kind.value, said(answer), number, version]
        )
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class WatchedDownstream:
    """A downstream that tells what requests for effects are answered; and the mistakes of a broken worker."""

    def __init__(self, downstream: TakesEffects, line: Line, owner: Owner, settings: Settings) -> None:
        self._downstream: Final = downstream
        self._line: Final = line
        self._owner: Final = owner
        self._settings: Final = settings
        self.capabilities: Final = downstream.capabilities

    def apply(self, request: EffectRequest) -> DownstreamAnswer[Receipt]:
        """Send the request, and tell of the answer."""
        if self._settings.broken_worker == "key-per-retry":
            request = replace(request, key=f"{request.key}-try-{self._owner.incarnation}")
        answer = self._downstream.apply(request)
        word, receipt = UNKNOWN, None
        if isinstance(answer, Ok):
            word, receipt = OK, answer.value.receipt
        elif isinstance(answer, Refused):
            word = answer.code
        self._line.tell(sent=[request.instance, request.key, word, receipt])
        if word == UNKNOWN and self._settings.broken_worker == "silence-is-success":
            lost = f"receipt-of-{request.key}"
            known = (request.key, request.fingerprint, request.instance, request.resource, request.token)
            return Ok(Receipt(lost, *known, revision=None))
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._downstream, name)


def work(settings: Settings, owner: Owner, port: int, connection: socket.socket) -> None:
    """Work on whatever is unfinished, until nothing is; the body of a worker process."""
    line = Line(connection)
    try:
        line.at("started")
        with opened(settings) as store:
            downstream = HttpDownstream(port, timeout_ms=TIMEOUT_MS, capabilities=settings.capabilities)
            work_on(
                cast("Store", WatchedStore(store, line)),
                cast("TakesEffects", WatchedDownstream(downstream, line, owner, settings)),
                owner=owner,
                workflows=(ORDERS,),
                lease_ms=settings.lease_ms,
                monotonic_ms=monotonic_ms,
                stop=lambda: nothing_left(store, settings),
                wait=lambda: time.sleep(IDLE_SECONDS),
                at=Points(line.at),
            )
        line.tell(ended=True)
    except Exception as error:  # noqa: BLE001  # it is told to the supervisor, which counts it as a mistake
        line.tell(failed=f"{type(error).__name__}: {error}")


def nothing_left(store: Store, settings: Settings) -> bool:
    """Whether all instances are finished, and all who can be told are: only a key lets that be late (§13)."""
    return not store.open_instances(most=1) and not (
        settings.capabilities.keyed and store.undelivered(most=1)
    )


def begin(settings: Settings, instances: int) -> tuple[tuple[str, ...], list[Triggered]]:
    """Make the store with its orders, all still to be run; their names in order, and what was answered."""
    names = tuple(name_of(number, instances=instances) for number in range(instances))
    with opened(settings) as store:
        return names, [deliver_event(store, name, input_of(name)) for name in names]


def deliver_event(store: Store, instance: str, content: dict[str, Any]) -> Triggered:
    """Deliver the event of an order, be it for the first time or again."""
    answer = start(store, ORDERS, source=SHOP, event_id=instance, input=content, instance=instance)
    began = answer.value.instance if isinstance(answer, Ok) else None
    return Triggered(SHOP, instance, said(answer), began)
