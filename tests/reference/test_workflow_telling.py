"""What a former owner learned too late, whom to tell, and a worker between instances (§3, §4, §13)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    Context,
    Notice,
    StoreError,
    Workflow,
    deliver,
    observe,
    work,
)

from .orders import CARL, NAME, THRICE, MakeOrders, Points, maker, no_parcels
from .support import ADA, BOB, LEASE_MS
from .worlds import FENCED_AND_QUERYABLE, KEYED, OPAQUE, Between, DeathError


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeOrders]:
    with maker(tmp_path) as made:
        yield made


# Late results and notifications.


@pytest.mark.parametrize("options", [KEYED, FENCED_AND_QUERYABLE, OPAQUE], ids=["keyed", "fenced", "opaque"])
def test_a_receipt_that_comes_too_late_is_merged_by_the_next_owner(
    options: dict[str, Any], make: MakeOrders
) -> None:
    world = make(workflow=THRICE, **options)

    def sleep(point: str) -> None:
        if point == "answered":
            world.clock.now_ms += LEASE_MS

    (run,) = world.work(ADA, at=sleep, workflows=(THRICE,))
    assert (run.ended, run.why) == ("lost", "lease-expired")
    (late,) = observe(world.path).requests
    assert (late.request.kind, late.request.receipt, late.consumed_by) == ("late-result", "receipt-1", None)
    calls: list[str] = []

    def look(name: str, call: Callable[[], Any]) -> Any:
        calls.append(name)
        return call()

    world.work(BOB, at_downstream=look, workflows=(THRICE,))
    assert (world.row().status, world.step("pay").receipt, calls) == ("succeeded", "receipt-1", [])
    assert observe(world.path).requests[0].consumed_by is not None


def test_a_receipt_that_comes_after_the_next_owner_settled_stays_as_evidence(make: MakeOrders) -> None:
    world = make(workflow=THRICE)

    def meanwhile(point: str) -> None:
        if point == "answered":
            world.clock.now_ms += LEASE_MS
            world.work(BOB, workflows=(THRICE,))

    world.work(ADA, at=meanwhile, workflows=(THRICE,))
    (late,) = observe(world.path).requests
    assert (late.request.receipt, late.consumed_by, world.row().status) == ("receipt-1", None, "succeeded")
    assert world.effects() == ["payment pay"]


def test_the_receipt_of_a_compensation_that_comes_too_late_is_kept_as_evidence(make: MakeOrders) -> None:
    world = make(decline=no_parcels)
    slept: list[str] = []

    def sleep(point: str) -> None:
        if point == "answered" and "compensating" in world.statuses().values() and not slept:
            slept.append(point)
            world.clock.now_ms += LEASE_MS

    world.finish(ADA, at=sleep)
    (late,) = [each for each in observe(world.path).requests if each.request.kind == "late-result"]
    undo = world.step("charge").undo
    assert undo is not None
    assert (late.request.key, late.request.receipt, late.consumed_by) == (undo.key, "receipt-3", None)
    assert world.row().status == "failed"
    world.check()


def telling() -> Workflow:
    made = Workflow("telling", version="1")
    step = made.step(name="think")(lambda _: "thought")

    @step.notification
    def twice(_: Context) -> Notice:
        return Notice("thought", "zoe")

    @step.notification
    def again(_: Context) -> Notice:
        return Notice("thought", "zoe", "the same target")

    @step.notification
    def broken(_: Context) -> Notice:
        raise LookupError("who?")

    return made


def test_one_notification_for_each_target_and_a_broken_one_is_noted(make: MakeOrders) -> None:
    workflow = telling()
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    assert (world.row().status, world.effects()) == ("succeeded", ["notification thought"])
    (entry,) = [each for each in observe(world.path).log(NAME) if each.payload]
    assert entry.payload == "no notification: LookupError: who?"


def test_what_cannot_be_told_now_is_told_later_and_holds_nothing_up(make: MakeOrders) -> None:
    workflow = telling()
    world = make(workflow=workflow)

    def silent(name: str, call: Callable[[], Any]) -> Any:
        if name == "apply":
            raise StoreError("no connection")
        return call()

    world.work(ADA, at_downstream=silent, workflows=(workflow,))
    with world.opened() as (store, downstream):
        assert world.row().status == "succeeded"
        assert [each.receipt for each in store.notifications(NAME)] == [None]
        assert deliver(store, downstream) == 1
        assert deliver(store, downstream) == 0
        assert [each.receipt for each in store.notifications(NAME)] == ["receipt-1"]


@pytest.mark.parametrize("options", [KEYED, FENCED_AND_QUERYABLE], ids=["keyed", "fenced"])
def test_nobody_is_told_twice_after_a_crash_anywhere(options: dict[str, Any], make: MakeOrders) -> None:
    workflow = telling()
    everywhere = Points()
    make(workflow=workflow, **options).work(ADA, at=everywhere, workflows=(workflow,))
    for number in range(1, len(everywhere.seen) + 1):
        world = make(workflow=workflow, **options)
        with pytest.raises(DeathError):
            world.work(ADA, at=Points(number), workflows=(workflow,))
        world.clock.now_ms += LEASE_MS
        world.work(CARL, workflows=(workflow,))
        assert (world.row().status, world.effects()) == ("succeeded", ["notification thought"]), number
        with world.opened() as (store, _):
            assert [each.receipt for each in store.notifications(NAME)] == ["receipt-1"]


def test_no_effect_starts_after_the_lease_by_the_workers_own_clock(make: MakeOrders) -> None:
    """Of an opaque downstream, nothing else would hold it back."""
    world = make(workflow=THRICE, **OPAQUE)

    def sleep(point: str) -> None:
        if point == "after: pay: started":
            world.clock.now_ms += LEASE_MS

    (run,) = world.work(ADA, at=sleep, workflows=(THRICE,))
    assert (run.ended, run.why, world.effects()) == ("lost", "lease-expired", [])


# The worker.


def test_a_worker_that_loses_one_lease_goes_on_with_the_next_instance(make: MakeOrders) -> None:
    world = make(workflow=THRICE)
    world.begin(THRICE, "order-2")
    slept: list[str] = []

    def sleep(point: str) -> None:
        if point == "answered" and not slept:
            slept.append(point)
            world.clock.now_ms += LEASE_MS

    lost, finished = world.work(ADA, at=sleep, workflows=(THRICE,))[:2]
    assert (lost.instance, lost.ended) == ("order-1", "lost")
    assert (finished.instance, finished.ended) == ("order-2", "finished")


def test_a_worker_that_waits_survives_a_store_that_does_not_answer(make: MakeOrders) -> None:
    world = make(workflow=THRICE)
    calls = {"workable": 2, "undelivered": 1}
    waited: list[int] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        if calls.get(name):
            calls[name] -= 1
            raise StoreError("locked")
        return call()

    with world.opened() as (store, downstream):
        passes = work(
            Between(store, around),  # type: ignore[arg-type]
            downstream,
            owner=ADA,
            workflows=[THRICE],
            lease_ms=LEASE_MS,
            monotonic_ms=world.clock,
            stop=lambda: len(waited) > 3,
            wait=lambda: waited.append(1),
        )
    assert (passes, len(waited), world.row().status) == (1, 4, "succeeded")
    assert not any(calls.values())
    with pytest.raises(StoreError, match="locked"):
        world.work(ADA, at_store=lambda name, call: lose_the_store() if name == "workable" else call())


def lose_the_store() -> None:
    raise StoreError("locked")
