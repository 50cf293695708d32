"""A trip: a seat and a hotel, payment once somebody approves of it, and the way back when it is declined."""

import tempfile
from pathlib import Path
from typing import Any

from fencepost.reference import (
    Approval,
    Context,
    Effect,
    EffectRequest,
    Notice,
    Ok,
    Owner,
    Retry,
    RetryableError,
    Run,
    StepStatus,
    Workflow,
    approve,
    decide,
    events,
    open_downstream,
    open_store,
    start,
    status,
    work,
)

trip = Workflow("trip", version="1")


@trip.step(retry=Retry(attempts=3, delay_ms=1_000))
def quote(ctx: Context) -> dict[str, int]:
    """A result without an effect; the first attempt cannot decide yet."""
    if ctx.attempt == 1:
        raise RetryableError("no-rate", "the rate is not known yet")
    return {"cents": 100 * ctx.input["nights"]}


@trip.step()
def seat(ctx: Context) -> Effect:
    """An effect; the worker sends it under a key of its own, and again under the same one."""
    return Effect("airline", "reserve", {"to": ctx.input["to"]})


@seat.compensation
def give_the_seat_back(ctx: Context) -> Effect:
    """What undoes it, by its receipt."""
    return Effect("airline", "release", {"receipt": ctx.receipt})


@trip.step()
def hotel(ctx: Context) -> Effect:
    """This has no compensation."""
    return Effect("hotel", "reserve", {"nights": ctx.input["nights"]})


@trip.step(after=("quote", "seat", "hotel"), approval=Approval(deadline_ms=86_400_000))
def pay(ctx: Context) -> Effect:
    """What is to be paid is shown to who approves, and is sent as it was shown."""
    return Effect("bank", "pay", {"cents": ctx.results["quote"]["cents"]})


@pay.notification
def paid(ctx: Context) -> Notice:
    """Somebody is told when it has succeeded."""
    return Notice("paid", ctx.input["mail"], {"receipt": ctx.receipt})


def no_money(request: EffectRequest) -> str | None:
    """What the downstream declines, in words."""
    return "no money" if request.resource == "bank" and request.operation == "pay" else None


def told(run: Run) -> None:
    """How each pass ended."""
    print(f"  {run.instance}: {run.ended}", *([run.why] if run.why else []), sep=", ")


now_ms = [0]


def clock_ms() -> int:
    """The time, which moves by hand here."""
    return now_ms[0]


with (
    tempfile.TemporaryDirectory() as folder,
    open_store(Path(folder) / "trips.db", clock_ms=clock_ms) as store,
    open_downstream(Path(folder) / "ledger.db", clock_ms=clock_ms, decline=no_money) as downstream,
):
    me: dict[str, Any] = {
        "owner": Owner("worker-a", incarnation=1),
        "workflows": [trip],
        "lease_ms": 30_000,
        "monotonic_ms": clock_ms,
        "heard": told,
    }
    wanted = {"to": "Oslo", "nights": 3, "mail": "zoe@example.org"}
    start(store, trip, source="web", event_id="17", input=wanted, instance="trip-17")
    print("worker-a")
    work(store, downstream, **me)
    now_ms[0] += 1_000
    print("worker-a, when the timer is due")
    work(store, downstream, **me)

    print("eve")
    early = decide(store, "trip-17", step="seat", status=StepStatus.FAILED, requester="eve", request_id="1")
    print("  decides about seat, of which nobody asked her:", getattr(early, "code", "ok"))
    agreed = approve(store, "trip-17", step="pay", requester="eve")
    print("  approves of pay:", getattr(agreed, "code", "ok"))
    print("worker-a")
    work(store, downstream, **me)

    seen = status(store, "trip-17")
    assert isinstance(seen, Ok)
    print(*seen.value.lines, sep="\n")
    print(*events(store, "trip-17"), sep="\n")
