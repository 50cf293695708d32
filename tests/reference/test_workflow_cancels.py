"""Cancels at every point, and two workers that race (§3, §10)."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    Ok,
    Owner,
    Refused,
    approve,
    cancel,
    observe,
    observe_downstream,
    open_downstream,
    open_store,
    start,
    work,
)

from .orders import BACK, FORWARD, NAME, MakeOrders, Orders, Points, maker, order
from .support import ADA, BOB, code, ok
from .worlds import FENCED_AND_QUERYABLE, KEYED, OPAQUE, DeathError

CLASSES = pytest.mark.parametrize(
    "options", [KEYED, FENCED_AND_QUERYABLE, OPAQUE], ids=["keyed", "fenced", "opaque"]
)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeOrders]:
    with maker(tmp_path) as made:
        yield made


def cancelled(world: Orders) -> bool:
    """Ask for a cancel; whether it will be honoured."""
    with world.opened() as (store, _):
        return isinstance(cancel(store, NAME, requester="zoe", reason="too slow"), Ok)


def how_many(make: MakeOrders, options: dict[str, Any]) -> int:
    seen = Points()
    make(**options).finish(ADA, at=seen)
    return len(seen.seen)


def check_honoured(world: Orders, where: object) -> None:
    """The instance is cancelled, and what happened was undone, unless nothing is registered for it."""
    world.check()
    assert world.row().status == "cancelled", where
    assert all(run.ended != "refused" for run in world.runs), where
    happened = [name for name in world.effects() if "notification" not in name]
    done = [name for name in happened if name in FORWARD]
    undone = [name for name in happened if name in BACK]
    assert done == list(FORWARD[: len(done)]), where
    assert undone == list(BACK[-len(undone) :] if undone else ()), where
    assert len(undone) == min(len(done), 2), (where, happened)
    for step in world.row().steps:
        assert step.status in ("cancelled", "compensated", "succeeded"), (where, step)


@CLASSES
def test_a_cancel_at_any_point_is_honoured_or_comes_too_late(
    options: dict[str, Any], make: MakeOrders
) -> None:
    honoured, late = 0, 0
    for number in range(1, how_many(make, options) + 1):
        world = make(**options)
        answers: list[bool] = []

        def ask(world: Orders = world, answers: list[bool] = answers) -> None:
            answers.append(cancelled(world))

        world.finish(ADA, at=Points(number, then=ask))
        if answers == [True]:
            honoured += 1
            check_honoured(world, number)
        else:
            late += 1
            assert world.row().status == "succeeded"
    assert honoured > 40
    assert late > 0


@CLASSES
def test_a_cancel_and_a_crash_at_the_same_point_are_survived(
    options: dict[str, Any], make: MakeOrders
) -> None:
    if options == OPAQUE:
        options = {**OPAQUE, "queryable": True}
    for number in range(1, how_many(make, options) + 1):
        world = make(**options)
        answers: list[bool] = []

        def ask_and_die(world: Orders = world, answers: list[bool] = answers) -> None:
            answers.append(cancelled(world))
            raise DeathError

        with pytest.raises(DeathError):
            world.finish(ADA, at=Points(number, then=ask_and_die))
        world.clock.now_ms += 1_000
        world.finish(BOB)
        if answers == [True] and world.row().status != "succeeded":
            check_honoured(world, number)
        else:
            assert answers == [False], number


def test_a_cancel_before_anything_starts_leaves_nothing_done(make: MakeOrders) -> None:
    world = make()
    assert cancelled(world)
    world.work(ADA)
    assert world.row().status == "cancelled"
    assert world.effects() == []
    assert set(world.statuses().values()) == {"cancelled"}
    with world.opened() as (store, _):
        assert code(cancel(store, NAME, requester="zoe", request_id="again")) == "finished"
        assert [each.event for each in store.log(NAME)] == ["unwinds", "finished"]
        assert [each.consumed_by for each in store.inbox(NAME)] == [1]


def test_a_cancel_while_the_instance_unwinds_is_noted(make: MakeOrders) -> None:
    world = make(decline=lambda request: "no" if request.operation == "charge" else None)
    at = Points()

    def ask(point: str) -> None:
        at(point)
        if point == "before: reserve: compensating":
            cancelled(world)

    world.finish(ADA, at=ask)
    assert world.row().status == "failed"
    assert [each.consumed_by is not None for each in observe(world.path).requests] == [True]


@pytest.mark.parametrize("first_ms", [1, 30_000], ids=["leases that run out at first", "long leases"])
def test_workers_that_race_over_many_instances_do_everything_once(tmp_path: Path, first_ms: int) -> None:
    workflow = order(attempts=10_000)  # each takeover counts
    path, ledger, names = tmp_path / "s.db", tmp_path / "l.db", [f"order-{n}" for n in range(4)]
    began = time.monotonic_ns()
    over = threading.Event()
    errors: list[BaseException] = []

    def clock_ms() -> int:
        return (time.monotonic_ns() - began) // 1_000_000

    def worker(number: int) -> None:
        try:
            with (
                open_store(path, clock_ms=clock_ms, synchronous="OFF") as store,
                open_downstream(ledger, clock_ms=clock_ms, synchronous="OFF") as downstream,
            ):
                lease_ms = first_ms
                while not over.wait(0.001):
                    work(
                        store,
                        downstream,
                        owner=Owner(f"worker-{number}", number),
                        workflows=[workflow],
                        lease_ms=lease_ms,
                        monotonic_ms=clock_ms,
                        stop=over.is_set,
                    )
                    lease_ms = min(2 * lease_ms, 30_000)  # however slow the machine is, one is long enough
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    with open_store(path, clock_ms=clock_ms, synchronous="OFF") as store:
        what = {"item": "lamp", "cents": 500, "mail": "zoe"}
        for name in names:
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
        threads = [threading.Thread(target=worker, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        while not errors and store.open_instances():
            for name in store.open_instances():
                approve(store, name, step="ship", requester="eve")
            over.wait(0.002)
        over.set()
        for thread in threads:
            thread.join()
        assert errors == []
        assert [ok(store.read(name)).status for name in names] == ["succeeded"] * len(names)
    happened = [effect.key for effect in observe_downstream(ledger).effects]
    assert len(set(happened)) == len(happened)
    for name in names:
        log = observe(path).log(name)
        assert [entry.state_version for entry in log] == list(range(1, len(log) + 1))


def test_what_is_refused_is_an_answer(make: MakeOrders) -> None:
    world = make()
    with world.opened() as (store, _):
        assert isinstance(cancel(store, "nobody", requester="zoe"), Refused)
        assert code(approve(store, NAME, step="ship", requester="eve")) == "illegal-transition"
        assert code(approve(store, NAME, step="charge", requester="eve")) == "no-such-step"
        assert code(approve(store, "nobody", step="ship", requester="eve")) == "no-such-instance"
