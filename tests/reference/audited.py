"""A run with every kind of trouble, for the tests of the audit: its two databases, and what was answered."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fencepost.reference import (
    Answer,
    Commit,
    EffectRequest,
    Entry,
    Ok,
    Owner,
    Refused,
    Requested,
    Row,
    StepStatus,
    Store,
    StoreError,
    approve,
    cancel,
    decide,
    observe,
    observe_downstream,
    open_downstream,
    open_store,
    start,
    work,
)
from fencepost.reference.audit import (
    OK,
    UNKNOWN,
    Acquired,
    Asked,
    Committed,
    Journal,
    Records,
    Sent,
    Triggered,
)

from .orders import ORDER
from .support import ADA, BOB, LEASE_MS, Clock

WELL, FAILS, CANCELLED, BY_HAND = "order-1", "order-2", "order-3", "order-4"
"""One that succeeds, one whose last effect is declined, one that is cancelled, one that a person settles."""

INSTANCES = (WELL, FAILS, CANCELLED, BY_HAND)
INPUT = {"item": "lamp", "cents": 500, "mail": "zoe"}


def said(answer: Answer[Any] | Any) -> str:
    """The word for an answer."""
    return answer.code if isinstance(answer, Refused) else OK if isinstance(answer, Ok) else UNKNOWN


def declines(request: EffectRequest) -> str | None:
    """No parcel for the one that fails, and no refund for the one that a person settles."""
    if (request.instance, request.operation) in ((FAILS, "ship"), (BY_HAND, "ship"), (BY_HAND, "refund")):
        return "not today"
    return None


@dataclass
class Told:
    """A store whose answers are written down."""

    store: Store
    journal: Journal

    def acquire(self, instance: str, owner: Owner, *, lease_ms: int) -> Answer[Row]:
        answer = self.store.acquire(instance, owner, lease_ms=lease_ms)
        if isinstance(answer, Ok):
            row = answer.value
            self.journal.acquired.append(Acquired(instance, owner, row.lease_version, row.state_version))
        return answer

    def commit(self, commit: Commit) -> Answer[Entry]:
        answer = self.store.commit(commit)
        self.journal.committed.append(Committed(commit.instance, commit.commit_id, said(answer)))
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


@dataclass
class ToldOf:
    """A downstream whose answers are written down; the first one is lost if so told."""

    downstream: Any
    journal: Journal
    loses: list[str] = field(default_factory=list)

    def apply(self, request: EffectRequest) -> Any:
        answer = self.downstream.apply(request)
        if request.operation in self.loses:
            self.loses.remove(request.operation)
            self.journal.sent.append(Sent(request.instance, request.key, UNKNOWN))
            raise StoreError("the connection is lost")
        receipt = answer.value.receipt if isinstance(answer, Ok) else None
        self.journal.sent.append(Sent(request.instance, request.key, said(answer), receipt))
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.downstream, name)


@dataclass
class Troubled:
    """The run: four orders, two workers, of which one is paused twice until the other has taken over."""

    directory: Path
    clock: Clock = field(default_factory=Clock)
    journal: Journal = field(default_factory=Journal)
    paused_at: list[str] = field(default_factory=lambda: ["answered", "sending"])

    @property
    def store(self) -> Path:
        return self.directory / "store.db"

    @property
    def ledger(self) -> Path:
        return self.directory / "ledger.db"

    def run(self) -> None:
        with (
            open_store(self.store, clock_ms=self.clock, synchronous="OFF") as store,
            open_downstream(
                self.ledger, clock_ms=self.clock, synchronous="OFF", decline=declines
            ) as downstream,
        ):
            for instance in INSTANCES:
                self.deliver(store, instance)
            self.deliver(store, WELL)
            told, told_of = Told(store, self.journal), ToldOf(downstream, self.journal, ["charge"])
            for _ in range(40):
                self.work(told, told_of, ADA, paused=True)
                self.clock.now_ms += LEASE_MS
                for instance in INSTANCES:
                    self.speak(store, instance)

    def deliver(self, store: Store, instance: str) -> None:
        answer = start(
            store,
            ORDER,
            source="shop",
            event_id=instance,
            input=INPUT,
            implicit={"scale": 3},
            instance=instance,
        )
        began = answer.value.instance if isinstance(answer, Ok) else None
        self.journal.triggered.append(Triggered("shop", instance, said(answer), began))

    def work(self, told: Told, told_of: ToldOf, owner: Owner, *, paused: bool = False) -> None:
        def at(point: str) -> None:
            if paused and self.paused_at and point == self.paused_at[0]:
                self.paused_at.pop(0)
                self.clock.now_ms += LEASE_MS
                self.work(told, told_of, BOB)

        work(
            told,  # type: ignore[arg-type]
            told_of,
            owner=owner,
            workflows=(ORDER,),
            lease_ms=LEASE_MS,
            monotonic_ms=lambda: 0,  # a clock that stands still: it never learns by itself
            at=at,
        )

    def speak(self, store: Store, instance: str) -> None:
        """What people say to an instance: cancel, approve, or decide what nobody else can."""
        answer = store.read(instance)
        assert isinstance(answer, Ok)
        row = answer.value
        if instance == CANCELLED and row.state_version > 3:
            self.asked(store, instance, "cancel", cancel(store, instance, requester="zoe", request_id="c"))
        for step in row.steps:
            if step.status is StepStatus.WAITING_APPROVAL and instance != CANCELLED:
                for who in ("eve", "eli"):
                    asked = approve(store, instance, step=step.step, requester=who, request_id=who)
                    self.asked(store, instance, who, asked)
            if step.status is StepStatus.MANUAL_INTERVENTION:
                decided = decide(
                    store,
                    instance,
                    step=step.step,
                    status=StepStatus.COMPENSATED,
                    requester="eve",
                    request_id="decision",
                )
                self.asked(store, instance, "decision", decided)

    def asked(self, store: Store, instance: str, request_id: str, answer: Answer[Requested]) -> None:
        seen = store.read(instance)
        assert isinstance(seen, Ok)
        kind, name = ("cancel", "c") if request_id == "cancel" else ("decision", request_id)
        number = answer.value.number if isinstance(answer, Ok) else None
        self.journal.asked.append(Asked(instance, name, kind, said(answer), number, seen.value.state_version))

    def records(self, directory: Path | None = None) -> Records:
        """What is there to be audited; of a copy in another directory, if named."""
        where = directory or self.directory
        return Records(
            instances=INSTANCES,
            store=observe(where / "store.db"),
            downstream=observe_downstream(where / "ledger.db"),
            journal=replace(
                self.journal,
                **{name: list(getattr(self.journal, name)) for name in Journal.__slots__},
            ),
        )
