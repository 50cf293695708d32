"""The orders that the demo runs, without any process: the names of the points, and what is left to do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from fencepost.cli.killing.orders import COURSES, ORDERS, Course, declines, input_of, name_of, steps_left
from fencepost.cli.killing.points import POINTS, Points
from fencepost.reference import (
    Downstream,
    Ok,
    Owner,
    StepStatus,
    Store,
    approve,
    cancel,
    decide,
    open_downstream,
    open_store,
    start,
    work,
)

ADA = Owner("ada", 1)

Place = tuple[Store, Downstream]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    time = iter(range(1_000, 10**9, 10))  # each look at the clock is 10 ms later

    def clock_ms() -> int:
        return next(time)

    with (
        open_store(tmp_path / "store.db", clock_ms=clock_ms, synchronous="OFF") as store,
        open_downstream(
            tmp_path / "ledger.db", clock_ms=clock_ms, synchronous="OFF", decline=declines
        ) as downstream,
    ):
        yield store, downstream


def lived(place: Place, course: Course) -> tuple[list[str], list[int]]:
    """The points of an order from its beginning to its end, and how many steps were left at each."""
    store, downstream = place
    instance = name_of(COURSES.index(course), instances=len(COURSES))
    start(store, ORDERS, source="shop", event_id=instance, input=input_of(instance), instance=instance)
    seen, left = list[str](), list[int]()

    def at(point: str) -> None:
        answer = store.read(instance)
        assert isinstance(answer, Ok)
        seen.append(point)
        left.append(steps_left(answer.value))

    while store.open_instances():
        work(
            store,
            downstream,
            owner=ADA,
            workflows=(ORDERS,),
            lease_ms=10**6,
            monotonic_ms=lambda: 0,
            at=Points(at),
        )
        answer = store.read(instance)
        assert isinstance(answer, Ok)
        for step in answer.value.steps:
            if step.status is StepStatus.WAITING_APPROVAL and course is Course.CANCELLED:
                cancel(store, instance, requester="zoe")
            elif step.status is StepStatus.WAITING_APPROVAL:
                approve(store, instance, step=step.step, requester="eve")
            elif step.status is StepStatus.MANUAL_INTERVENTION:
                decide(
                    store,
                    instance,
                    step=step.step,
                    status=StepStatus.COMPENSATED,
                    requester="eve",
                    request_id="decision",
                )
    return seen, left


EFFECT = ["derived", "intent-committed", "sending", "answered"]
DONE = [*EFFECT, "outcome-committed"]
UNDO = ["derived", "undo-committed", "undo-sending", "undo-answered"]
UNDONE = [*UNDO, "undone-committed"]
TOLD = ["telling", "telling-answered", "telling-recorded"]


def without_retry(seen: list[str]) -> list[str]:
    """The points but those of the step that is tried again and of the takings of the lease."""
    assert seen.count("retry-committed") == 1
    quote = seen.index("retry-committed")
    kept = [*seen[: quote - 2], *seen[quote + 1 :]]
    again = next(
        i
        for i, (one, two) in enumerate(pairwise(kept))
        if (one, two) == ("intent-committed", "outcome-committed")
    )
    kept = [*kept[: again - 1], *kept[again + 2 :]]
    return [point for point in kept if point != "acquired"]


def test_the_points_of_an_order_that_goes_well_have_names_that_say_where_it_is(place: Place) -> None:
    seen, _ = lived(place, Course.WELL)
    assert without_retry(seen) == [*DONE, *DONE, "approval-asked", *DONE, *TOLD, *DONE, "finished"]


def test_the_same_request_has_another_name_on_the_way_back(place: Place) -> None:
    seen, _ = lived(place, Course.BY_HAND)
    forward = [*DONE, *DONE, "approval-asked", *DONE, *TOLD, *EFFECT, "unwinding-committed"]
    decided = ["handed-over", "tombstone-answered", "decision-committed"]
    back = [*UNDONE, *UNDONE, *UNDO, *decided, "finished"]
    assert without_retry(seen) == [*forward, *back]


def test_a_cancelled_order_is_undone_from_where_it_stands(place: Place) -> None:
    seen, _ = lived(place, Course.CANCELLED)
    assert without_retry(seen) == [
        *DONE,
        *DONE,
        "approval-asked",
        "unwinding-committed",
        *UNDONE,
        *UNDONE,
        "finished",
    ]


@pytest.mark.parametrize("course", [Course.WELL, Course.FAILS, Course.BY_HAND, Course.CANCELLED])
def test_nothing_is_left_when_and_only_when_the_end_is_next(course: Course, place: Place) -> None:
    seen, left = lived(place, course)
    assert {point for point, steps in zip(seen, left, strict=True) if steps == 0} <= {
        "outcome-committed",
        "undone-committed",
        "decision-committed",
        "acquired",
        "finished",
    }
    assert left[-1] == 0
    assert seen.count("finished") == 1
    assert [steps for point, steps in zip(seen, left, strict=True) if point == "sending" and not steps] == []


def test_each_point_that_is_told_of_is_explained(place: Place) -> None:
    for course in (Course.WELL, Course.BY_HAND, Course.CANCELLED):
        assert {*lived(place, course)[0]} <= {*POINTS}


def test_names_of_orders_sort_as_their_numbers_do() -> None:
    names = [name_of(number, instances=120) for number in range(120)]
    assert names == sorted(names)
    assert len({*names}) == 120
