"""What a worker process does: it runs the instances of a store, and tells its supervisor of each point.

All that is special to this workflow, and to this way to run one, is here. The supervisor knows a worker only
by the lines that it writes, each a JSON object:

    {"at": "sending"}                      a point between two steps; the worker waits there for leave
    {"acquired": [instance, incarnation, lease version, state version, steps left]}
    {"committed": [instance, commit id, answer]}
    {"sent": [instance, key, answer, receipt]}
    {"ended": true}                        nothing is left to do
    {"failed": "what an error says"}       it ends, and should not

What a call was answered is told before the worker does anything else, so that what a killed worker did not
tell of, it had not heard either.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from fencepost.reference import (
    STATEMENTS,
    Answer,
    Capabilities,
    Commit,
    Effect,
    EffectRequest,
    Entry,
    Ok,
    Owner,
    Receipt,
    Refused,
    Row,
    Step,
    StepStatus,
    Store,
    TakesEffects,
    open_store,
    run_worker,
)
from fencepost.reference.audit import OK, UNKNOWN
from fencepost.reference.downstream_http import HttpDownstream
from fencepost.reference.downstream_values import DownstreamAnswer

STEPS: Final = (
    Step("charge", Effect("payment", "charge", {"cents": 500})),
    Step("reserve", Effect("stock", "reserve", {"items": 1})),
    Step("ship", Effect("parcel", "ship", {"express": True})),
)
"""The workflow of every instance."""

POINTS: Final = {
    "started": "the process has begun, and opens the store",
    "acquired": "it has the lease",
    "derived": "it has derived key and fingerprint",
    "intent-committed": "its intent is in the store",
    "sending": "it is about to send the effect",
    "answered": "the downstream has answered",
    "outcome-committed": "the receipt is in the store",
    "fence-raised": "it has fenced off who had the lease before",
    "query-answered": "it knows whether the effect happened",
}
"""Where a worker waits for leave, in the order of §6, and what is true there."""

IDLE_SECONDS: Final = 0.002  # between two looks for work, so that a lease that ends is soon taken
BUSY_TIMEOUT_MS: Final = 60_000  # nobody holds the write lock for long, but a busy machine is slow
TIMEOUT_MS: Final = 10_000  # for an answer of the downstream, which is killed but never stopped


@dataclass(frozen=True, slots=True)
class Settings:
    """What all workers of a run have in common; JSON can hold it.

    `statements` are SQL texts of the store that are other than usual, by name. `broken_downstream` and
    `broken_worker` name what is wrong there on purpose.
    """

    store: str
    ledger: str
    lease_ms: int
    keyed: bool = True
    broken_downstream: str | None = None
    broken_worker: str | None = None
    statements: Mapping[str, str] = field(default_factory=dict)


def clock_ms() -> int:
    """The time of day, on which all processes of one machine agree, in milliseconds."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """A worker's own clock, in milliseconds."""
    return time.monotonic_ns() // 1_000_000


class Line:
    """The line to the supervisor. Once that is gone, so is the worker."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection: Final = connection

    def tell(self, **what: Any) -> None:
        """Write one line; it is read even if the worker is killed right after."""
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


class WatchedStore:
    """A store that tells what acquire and commit are answered."""

    def __init__(self, store: Store, line: Line) -> None:
        self._store: Final = store
        self._line: Final = line

    def acquire(self, instance: str, owner: Owner, *, lease_ms: int) -> Answer[Row]:
        """Acquire, and tell of a lease that is given."""
        answer = self._store.acquire(instance, owner, lease_ms=lease_ms)
        if isinstance(answer, Ok):
            row = answer.value
            left = len(STEPS) - sum(step.status is StepStatus.SUCCEEDED for step in row.steps)
            self._line.tell(
                acquired=[instance, owner.incarnation, row.lease_version, row.state_version, left]
            )
        return answer

    def commit(self, commit: Commit) -> Answer[Entry]:
        """Commit, and tell of the answer."""
        said = UNKNOWN
        try:
            answer = self._store.commit(commit)
            said = answer.code if isinstance(answer, Refused) else OK
        finally:
            self._line.tell(committed=[commit.instance, commit.commit_id, said])
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
        said, receipt = UNKNOWN, None
        if isinstance(answer, Ok):
            said, receipt = OK, answer.value.receipt
        elif isinstance(answer, Refused):
            said = answer.code
        self._line.tell(sent=[request.instance, request.key, said, receipt])
        if said == UNKNOWN and self._settings.broken_worker == "silence-is-success":
            lost = f"receipt-of-{request.key}"
            known = (request.key, request.fingerprint, request.instance, request.resource, request.token)
            return Ok(Receipt(lost, *known, revision=None))
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._downstream, name)


def work(settings: Settings, owner: Owner, port: int, connection: socket.socket) -> None:
    """Run whatever is unfinished, until nothing is; the body of a worker process."""
    line = Line(connection)
    try:
        line.at("started")
        # A death loses nothing that was written, only a power cut could: so nobody waits for the disk.
        with open_store(
            settings.store,
            clock_ms=clock_ms,
            busy_timeout_ms=BUSY_TIMEOUT_MS,
            synchronous="OFF",
            statements=replace(STATEMENTS, **settings.statements),
        ) as store:
            can = Capabilities(fenced=True, keyed=settings.keyed, queryable=True, revisioned=False)
            downstream = HttpDownstream(port, timeout_ms=TIMEOUT_MS, capabilities=can)
            run_worker(
                cast("Store", WatchedStore(store, line)),
                cast("TakesEffects", WatchedDownstream(downstream, line, owner, settings)),
                owner,
                lambda _: STEPS,
                stop=lambda: False,
                most=1_000_000_000,
                lease_ms=settings.lease_ms,
                monotonic_ms=monotonic_ms,
                wait=lambda: time.sleep(IDLE_SECONDS),
                at=line.at,
            )
        line.tell(ended=True)
    except Exception as error:  # noqa: BLE001  # it is told to the supervisor, which counts it as a mistake
        line.tell(failed=f"{type(error).__name__}: {error}")


def begin(settings: Settings, instances: int) -> tuple[str, ...]:
    """Make the store with its instances, all of them still to be run; their names, in order."""
    width = len(str(instances))
    names = tuple(f"order-{number:0{width}}" for number in range(1, instances + 1))
    with open_store(settings.store, clock_ms=clock_ms, synchronous="OFF") as store:
        for name in names:
            store.create(name)
    return names
