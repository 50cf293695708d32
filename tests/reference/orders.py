"""What the tests of workflows share: an order with every kind of step, a world for it, and people."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost.reference import (
    Approval,
    Checkpoints,
    Context,
    Downstream,
    Effect,
    EffectRequest,
    Notice,
    Owner,
    Retry,
    RetryableError,
    Row,
    Run,
    StepRow,
    StepStatus,
    Store,
    Workflow,
    approve,
    decide,
    observe,
    observe_downstream,
    open_downstream,
    open_store,
    resume,
    start,
    work,
)

from .support import LEASE_MS, Clock, ok
from .worlds import Between, DeathError

NAME = "order-1"
CARL = Owner("carl", 7)


def order(version: str = "1", *, attempts: int = 5) -> Workflow:
    """Fan-out after reserve, fan-in before ship; a retry, a gate, compensations, a notification."""
    made = Workflow("order", version=version)
    retry = Retry(attempts=attempts, delay_ms=10)

    @made.step(retry=retry)
    def reserve(ctx: Context) -> Effect:
        return Effect("stock", "reserve", {"item": ctx.input["item"]})

    @reserve.compensation
    def put_back(ctx: Context) -> Effect:
        return Effect("stock", "put back", {"receipt": ctx.receipt})

    @made.step(after=("reserve",), retry=retry)
    def charge(ctx: Context) -> Effect:
        if ctx.attempt == 1:
            raise RetryableError("no-rate", "the rate is not known yet")
        return Effect(
            "payment", "charge", {"cents": ctx.input["cents"], "stock": ctx.receipts.get("reserve")}
        )

    @charge.compensation
    def refund(ctx: Context) -> Effect:
        return Effect("payment", "refund", {"receipt": ctx.receipt})

    @made.step(after=("reserve",))
    def weigh(ctx: Context) -> dict[str, int]:
        return {"grams": 100 * ctx.implicit["scale"]}

    @made.step(after=("charge", "weigh"), approval=Approval(), retry=retry)
    def ship(ctx: Context) -> Effect:
        return Effect("parcel", "ship", {"grams": ctx.results["weigh"]["grams"]})

    @ship.notification
    def shipped(ctx: Context) -> Notice:
        return Notice("shipped", ctx.input["mail"], {"parcel": ctx.receipt})

    @made.step(after=("ship",))
    def close(ctx: Context) -> str:
        return f"closed with {ctx.receipts.get('ship')}"

    return made


ORDER = order()
FORWARD = ("stock reserve", "payment charge", "parcel ship")
BACK = ("payment refund", "stock put back")


def single(retry: Retry, **more: Any) -> Workflow:
    """One step with an effect."""
    made = Workflow("single", version="1", deadline_ms=more.pop("instance_deadline_ms", None))

    @made.step(retry=retry, **more)
    def pay(ctx: Context) -> Effect:
        return Effect("payment", "pay", {"cents": ctx.input["cents"]})

    return made


THRICE = single(Retry(attempts=3, delay_ms=1_000))


def no_parcels(request: EffectRequest) -> str | None:
    """A downstream that declines to ship."""
    return "no carrier" if request.operation == "ship" else None


@dataclass
class Orders:
    """A store and a downstream; the clock moves only by hand."""

    path: Path
    ledger: Path
    clock: Clock
    options: dict[str, Any]
    runs: list[Run] = field(default_factory=list)
    checkpoints: Checkpoints | None = None

    handles: list[tuple[Store, Downstream]] = field(default_factory=list)

    @contextmanager
    def opened(self, *, anew: bool = False) -> Iterator[tuple[Store, Downstream]]:
        """The handles of this world, or others: deaths leave nothing open in between two statements."""
        if not self.handles or anew:
            self.handles.append(
                (
                    open_store(
                        self.path, clock_ms=self.clock, synchronous="OFF", checkpoints=self.checkpoints
                    ),
                    open_downstream(self.ledger, clock_ms=self.clock, synchronous="OFF", **self.options),
                )
            )
        yield self.handles[-1 if anew else 0]

    def close(self) -> None:
        for store, downstream in self.handles:
            store.close()
            downstream.close()
        self.handles.clear()

    def begin(self, workflow: Workflow = ORDER, name: str = NAME) -> None:
        what = {"item": "lamp", "cents": 500, "mail": "zoe"}
        with self.opened() as (store, _):
            ok(
                start(
                    store,
                    workflow,
                    source="shop",
                    event_id=name,
                    input=what,
                    implicit={"scale": 3},
                    instance=name,
                )
            )

    def work(
        self,
        owner: Owner,
        *,
        at: Callable[[str], None] = lambda _: None,
        at_store: Callable[[str, Callable[[], Any]], Any] = lambda _, call: call(),
        at_downstream: Callable[[str, Callable[[], Any]], Any] = lambda _, call: call(),
        workflows: tuple[Workflow, ...] = (ORDER,),
    ) -> list[Run]:
        """What a worker does until there is nothing to do now."""
        runs: list[Run] = []
        with self.opened() as (store, downstream):
            work(
                Between(store, at_store),  # type: ignore[arg-type]
                Between(downstream, at_downstream),
                owner=owner,
                workflows=workflows,
                lease_ms=LEASE_MS,
                monotonic_ms=self.clock,
                heard=runs.append,
                at=at,
            )
        self.runs += runs
        return runs

    def finish(self, owner: Owner, *, decides: bool = True, **more: Any) -> Row:
        """Work, let time pass, approve, and decide what nobody can know, until the instance is finished."""
        for number in range(60):
            if self.row().status in ("succeeded", "failed", "cancelled"):
                return self.row()
            self.work(owner, **more)
            self.clock.now_ms += LEASE_MS
            with self.opened() as (store, _):
                row = self.row()
                for step in row.steps:
                    if step.status is StepStatus.WAITING_APPROVAL:
                        approve(store, NAME, step=step.step, requester="eve")
                    elif step.status is StepStatus.MANUAL_INTERVENTION and decides:
                        self._decide(store, step, number)
        raise AssertionError(f"not finished: {self.row()}, {self.runs[-3:]}")

    def _decide(self, store: Store, step: StepRow, number: int) -> None:
        """A person looks into the ledger, which no worker can, and says what is true."""
        intent = step.undo or step.intent
        assert intent is not None
        happened = bool(observe_downstream(self.ledger).effects_of(intent.key))
        if step.undo is not None:
            to = StepStatus.COMPENSATED
        elif happened:
            to = StepStatus.SUCCEEDED
        elif step.reason is not None and "declined" in step.reason:
            to = StepStatus.FAILED
        else:
            to = StepStatus.RUNNING if self.row().unwinding_cause is None else StepStatus.CANCELLED
        ok(decide(store, NAME, step=step.step, status=to, requester="eve", request_id=f"decision {number}"))

    def resume(self) -> None:
        with self.opened() as (store, _):
            ok(resume(store, NAME, requester="eve", request_id=f"resume {self.row().state_version}"))

    def row(self) -> Row:
        with self.opened() as (store, _):
            return ok(store.read(NAME))

    def step(self, name: str) -> StepRow:
        return next(step for step in self.row().steps if step.step == name)

    def statuses(self) -> dict[str, str]:
        return {step.step: step.status.value for step in self.row().steps}

    def effects(self) -> list[str]:
        """What happened outside, in its order."""
        return [f"{each.resource} {each.operation}" for each in observe_downstream(self.ledger).effects]

    def check(self) -> None:
        """Whatever happened: no intent twice, no gap in the log, no request consumed twice, receipts true."""
        ledger, stored = observe_downstream(self.ledger), observe(self.path)
        keys = [effect.key for effect in ledger.effects]
        assert len(set(keys)) == len(keys), self.effects()
        versions = [entry.state_version for entry in stored.log(NAME)]
        assert versions == list(range(1, self.row().state_version + 1))
        happened = {f"receipt-{effect.number}": effect.key for effect in ledger.effects}
        for step in self.row().steps:
            if step.intent is not None:
                assert step.receipt is None or happened[step.receipt] == step.intent.key
                if step.status in ("failed", "cancelled"):
                    assert not ledger.effects_of(step.intent.key)
                if step.status is StepStatus.SUCCEEDED:
                    assert ledger.effects_of(step.intent.key)
            if step.undo is not None and step.undo_receipt is not None:
                assert happened[step.undo_receipt] == step.undo.key


@dataclass
class Points:
    """Counts the points of a pass; at the one of a given number it calls `then`, or dies."""

    stop_at: int = 10**9
    then: Callable[[], None] | None = None
    seen: list[str] = field(default_factory=list)

    def __call__(self, point: str) -> None:
        self.seen.append(point)
        if len(self.seen) == self.stop_at:
            if self.then is None:
                raise DeathError
            self.then()


MakeOrders = Callable[..., Orders]


@contextmanager
def maker(directory: Path) -> Iterator[MakeOrders]:
    """Makes worlds with an order each; only the last one is kept open."""
    made: list[Orders] = []

    def make(*, workflow: Workflow = ORDER, checkpoints: Checkpoints | None = None, **options: Any) -> Orders:
        for each in made[-1:]:
            each.close()
        number = len(made)
        made.append(Orders(directory / f"s-{number}.db", directory / f"l-{number}.db", Clock(), options))
        made[-1].checkpoints = checkpoints
        made[-1].begin(workflow)
        return made[-1]

    yield make
    for each in made:
        each.close()
