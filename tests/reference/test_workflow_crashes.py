"""A crash at every point of a whole workflow, forward and back: another worker finishes it (§6, §8, §12)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .orders import BACK, CARL, FORWARD, MakeOrders, Orders, Points, maker, no_parcels
from .support import ADA, BOB
from .worlds import CLASSES, FENCED_AND_QUERYABLE, KEYED, OPAQUE, DeathError


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeOrders]:
    with maker(tmp_path) as made:
        yield made


def points(make: MakeOrders, options: dict[str, Any], prepare: Callable[[Orders], None]) -> list[str]:
    """The points that a worker passes when nothing goes wrong."""
    world = make(**options)
    prepare(world)
    seen = Points()
    world.finish(ADA, at=seen)
    return seen.seen


def finish_after_death(world: Orders, number: int, *, second: int | None = None) -> str:
    """Ada dies at a point; bob, if he dies too, at a later one; whoever is left finishes."""
    for owner, dies_at in ((ADA, number), (BOB, second)):
        if dies_at is None:
            continue
        at = Points(dies_at)
        try:
            world.finish(owner, at=at)
        except DeathError:
            world.clock.now_ms += 1_000
        else:
            return world.row().status
    return world.finish(CARL).status


def nothing(_: Orders) -> None:
    pass


@pytest.mark.parametrize("options", CLASSES.values(), ids=CLASSES)
def test_without_faults_each_effect_happens_once_and_everybody_is_told(
    options: dict[str, Any], make: MakeOrders
) -> None:
    world = make(**options)
    assert world.finish(ADA).status == "succeeded"
    world.check()
    assert world.effects() == [*FORWARD[:2], "parcel ship", "notification shipped"]
    with world.opened() as (store, _):
        assert [each.receipt for each in store.notifications("order-1")] == ["receipt-4"]
    assert world.step("charge").attempt == 2
    assert world.step("close").result == '"closed with receipt-3"'


@pytest.mark.parametrize("options", [KEYED, FENCED_AND_QUERYABLE, OPAQUE], ids=["keyed", "fenced", "opaque"])
def test_after_a_crash_anywhere_another_worker_finishes(options: dict[str, Any], make: MakeOrders) -> None:
    everywhere = points(make, options, nothing)
    assert len(everywhere) > 40
    for number in range(1, len(everywhere) + 1):
        world = make(**options)
        status = finish_after_death(world, number)
        where = (number, everywhere[number - 1], world.effects())
        assert status == "succeeded", where
        world.check()
        assert [name for name in world.effects() if "notification" not in name] == list(FORWARD), where


@pytest.mark.parametrize("options", [KEYED, FENCED_AND_QUERYABLE], ids=["keyed", "fenced"])
def test_after_a_crash_anywhere_on_the_way_back_each_compensation_runs_once(
    options: dict[str, Any], make: MakeOrders
) -> None:
    options = {**options, "decline": no_parcels}
    everywhere = points(make, options, nothing)
    assert len(everywhere) > 40
    for number in range(1, len(everywhere) + 1):
        world = make(**options)
        status = finish_after_death(world, number)
        where = (number, everywhere[number - 1], world.effects(), world.statuses())
        assert status == "failed", where
        world.check()
        assert world.effects() == [*FORWARD[:2], *BACK], where
        assert world.statuses() == {
            "reserve": "compensated",
            "charge": "compensated",
            "weigh": "succeeded",
            "ship": "failed",
            "close": "cancelled",
        }


def test_after_a_crash_on_the_way_back_a_person_settles_what_an_opaque_downstream_leaves_open(
    make: MakeOrders,
) -> None:
    options = {**OPAQUE, "decline": no_parcels}
    for number in range(1, len(points(make, options, nothing)) + 1):
        world = make(**options)
        assert finish_after_death(world, number) == "failed", number
        world.check()
        assert world.statuses()["charge"] == "compensated"


@pytest.mark.parametrize("options", [KEYED, FENCED_AND_QUERYABLE], ids=["keyed", "fenced"])
def test_a_second_crash_within_the_recovery_changes_nothing(
    options: dict[str, Any], make: MakeOrders
) -> None:
    everywhere = points(make, options, nothing)
    for number, second in zip(
        range(1, len(everywhere) + 1, 3), [*range(1, 9)] * len(everywhere), strict=False
    ):
        world = make(**options)
        assert finish_after_death(world, number, second=second) == "succeeded", (number, second)
        world.check()
        assert [name for name in world.effects() if "notification" not in name] == list(FORWARD)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(o, id=name, marks=() if name in ("keyed", "opaque") else pytest.mark.slow)
        for name, o in CLASSES.items()
    ],
)
def test_a_worker_that_is_paused_anywhere_while_another_finishes_does_nothing_twice(
    options: dict[str, Any], make: MakeOrders
) -> None:
    """The zombie resumes, sends what it was about to send, and is refused or deduplicated."""
    safe = options.get("keyed", True) or options.get("fenced", True)
    for number in range(1, len(points(make, options, nothing)) + 1):
        world = make(**options)

        def meanwhile(world: Orders = world) -> None:
            world.clock.now_ms += 1_000
            world.finish(BOB)

        world.finish(ADA, at=Points(number, then=meanwhile))
        assert world.row().status == "succeeded"
        if safe:
            world.check()
