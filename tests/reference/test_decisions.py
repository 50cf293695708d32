"""What a person decides is about what they were asked: not about what happens before or afterwards (§12)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    Owner,
    StepStatus,
    Store,
    cancel,
    decide,
    observe_downstream,
    resume,
    status,
)

from .orders import NAME, MakeOrders, Orders, maker, order
from .support import ADA, BOB, code, ok
from .worlds import KEYED, OPAQUE, DeathError

RUNNING, SUCCEEDED, FAILED = StepStatus.RUNNING, StepStatus.SUCCEEDED, StepStatus.FAILED
LATER = order("2")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeOrders]:
    with maker(tmp_path) as made:
        yield made


def silent(times: list[int]) -> Callable[[str, Callable[[], Any]], Any]:
    """A downstream that takes requests for effects and answers none, and counts them."""

    def call(name: str, apply: Callable[[], Any]) -> Any:
        answer = apply()
        if name == "apply":
            times.append(len(times))
            raise DeathError
        return answer

    return call


def handed_over(make: MakeOrders) -> Orders:
    """The first step of an order may have happened, and its downstream cannot be asked."""
    world = make(**OPAQUE)
    lose(world)
    return world


def lose(world: Orders, owner: Owner = ADA) -> None:
    """A worker dies with the answer of the downstream; the next one hands the step over."""
    with pytest.raises(DeathError):
        world.work(owner, at_downstream=silent([]))
    world.clock.now_ms += 1_000
    world.work(BOB)
    assert world.step("reserve").status is StepStatus.MANUAL_INTERVENTION


def said(world: Orders, to: StepStatus, who: str) -> None:
    with world.opened() as (store, _):
        ok(decide(store, NAME, step="reserve", status=to, requester=who, request_id=f"{who}: {to}"))


def reserved(world: Orders) -> int:
    return sum(effect.operation == "reserve" for effect in observe_downstream(world.ledger).effects)


@pytest.mark.parametrize("passing_ms", [0, 1_000])
@pytest.mark.parametrize("first", [RUNNING, FAILED, SUCCEEDED])
def test_a_decision_that_another_one_overtook_settles_nothing_that_happens_later(
    first: StepStatus, passing_ms: int, make: MakeOrders
) -> None:
    world = handed_over(make)
    said(world, first, "alice")
    world.clock.now_ms += passing_ms
    said(world, RUNNING, "bob")
    before = reserved(world)
    lose(world, Owner("carl", 1))
    assert reserved(world) == before + 1
    assert world.work(BOB) == []
    assert world.step("reserve").status is StepStatus.MANUAL_INTERVENTION
    said(world, SUCCEEDED, "eve")
    world.work(BOB)
    assert world.step("reserve").status is SUCCEEDED
    assert reserved(world) == before + 1


@pytest.mark.parametrize("to", [RUNNING, SUCCEEDED, FAILED])
def test_a_step_that_waits_for_nobody_is_not_decided(to: StepStatus, make: MakeOrders) -> None:
    world = make(**KEYED)
    with world.opened() as (store, _):
        answer = decide(store, NAME, step="reserve", status=to, requester="eve", request_id="early")
        assert code(answer) == "nothing-to-decide"
        assert store.inbox(NAME) == ()


def test_a_decision_that_is_known_is_answered_as_before(make: MakeOrders) -> None:
    world = handed_over(make)

    def again(store: Store) -> object:
        return ok(
            decide(store, NAME, step="reserve", status=SUCCEEDED, requester="eve", request_id="1")
        ).number

    with world.opened() as (store, _):
        first = again(store)
        world.work(BOB)
        assert world.step("reserve").status is SUCCEEDED
        assert again(store) == first


def test_a_decision_that_is_overtaken_is_over_with_the_one_that_is_honoured(make: MakeOrders) -> None:
    world = handed_over(make)
    said(world, FAILED, "alice")
    said(world, SUCCEEDED, "bob")
    world.work(BOB)
    with world.opened() as (store, _):
        over = {each.request.requester: each.consumed_by for each in store.inbox(NAME)}
    assert over["alice"] == over["bob"] == world.step("reserve").state_version


def test_an_instance_is_resumed_as_often_as_somebody_was_asked(make: MakeOrders) -> None:
    world = make(**KEYED)
    with world.opened() as (store, _):
        assert code(resume(store, NAME, requester="eve", request_id="early")) == "nothing-to-decide"
        world.work(ADA, workflows=(LATER,))
        for who in ("alice", "bob"):
            ok(resume(store, NAME, requester=who, request_id=f"resumed by {who}"))
        with pytest.raises(DeathError):
            world.work(BOB, at=until_resumed, workflows=(order(),))
        world.clock.now_ms += 1_000
        assert world.row().manual_cause is None
        world.work(ADA, workflows=(LATER,))
        assert world.row().manual_cause is not None
        assert world.work(BOB, workflows=(order(),)) == []
        assert world.row().manual_cause is not None


def test_the_status_tells_what_was_decided_and_is_not_yet_honoured(make: MakeOrders) -> None:
    world = handed_over(make)
    with world.opened() as (store, _):
        assert ok(status(store, NAME)).waits_for.startswith("a person: reserve: ")
        said(world, SUCCEEDED, "eve")
        seen = ok(status(store, NAME))
        assert (seen.waits_for, seen.next) == ("", "decide reserve")
        ok(cancel(store, NAME, requester="zoe"))
        assert ok(status(store, NAME)).next == "decide reserve"
        world.work(BOB)
        seen = ok(status(store, NAME))
        assert (seen.status, seen.waits_for, seen.next) == ("cancelled", "", "")


def test_of_an_instance_that_is_no_workflow_nobody_says_what_comes_next(make: MakeOrders) -> None:
    with make(**KEYED).opened() as (store, _):
        ok(store.create("bare"))
        assert ok(status(store, "bare")).lines == ("bare: running",)


def until_resumed(point: str) -> None:
    if point == "after: resumed by a person":
        raise DeathError
