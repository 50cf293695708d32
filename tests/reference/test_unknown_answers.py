"""Answers that are lost (§2), and steps that are given up (§7): nothing is guessed away."""

from collections.abc import Callable
from typing import Any

import pytest

from fencepost.reference import (
    Ended,
    Evidence,
    Owner,
    Refused,
    Run,
    StepStatus,
    StoreBusyError,
    StoreError,
    Unknown,
    observe,
)

from .support import ADA, BOB, LEASE_MS, Clock, ok
from .worlds import (
    CLASSES,
    FENCED_AND_QUERYABLE,
    QUERYABLE,
    STEPS,
    Counted,
    DeathError,
    Make,
    die_at,
    lose_the_answer,
)

# Lost answers.


@pytest.mark.parametrize("operation", ["acquire", "commit", "read", "renew", "release", "ask"])
@pytest.mark.parametrize("arrives", [True, False])
def test_a_lost_answer_of_the_store_is_followed_up(operation: str, arrives: bool, make: Make) -> None:
    world = make()
    lost: list[str] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        if name == operation and lost.count(name) < 2 and (name != "commit" or len(lost) % 2 == 0):
            lost.append(name)
            return lose_the_answer(call if arrives else lambda: None)
        return call()

    run = world.run(ADA, at_store=around)
    world.expire()
    if run.ended != Ended.FINISHED:
        assert world.run(BOB).ended == Ended.FINISHED
    assert (world.effects("payment"), world.effects("parcel")) == (1, 1)


def test_every_commit_may_lose_its_first_answer(make: Make) -> None:
    world = make()
    lost: set[int] = set()
    commits = iter(range(100))

    def around(name: str, call: Callable[[], Any]) -> Any:
        if name == "commit" and (number := next(commits)) % 2 == 0:
            lost.add(number)
            return lose_the_answer(call)
        return call()

    assert world.run(ADA, at_store=around).ended == Ended.FINISHED
    assert len(lost) == 7  # two for each step, and the last
    assert (world.effects("payment"), world.effects("parcel")) == (1, 1)
    assert len(observe(world.path).entries) == 7


def test_a_commit_that_never_will_be_accepted_ends_the_run(make: Make) -> None:
    world = make()

    def around(name: str, call: Callable[[], Any]) -> Any:
        if name == "commit":
            world.expire()
            with world.opened() as (store, _):
                ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS))
            raise StoreError("the connection is lost")
        return call()

    assert world.run(ADA, at_store=around) == Run(Ended.LOST, "order-1", None, "stale-lease-version")
    assert world.effects() == 0


def test_a_store_that_stays_busy_is_undecided(make: Make) -> None:
    def around(name: str, call: Callable[[], Any]) -> Any:
        if name == "commit":
            raise StoreBusyError("locked")
        return call()

    world = make()
    assert world.run(ADA, at_store=around).ended == Ended.UNDECIDED
    assert world.effects() == 0


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("options", CLASSES.values(), ids=CLASSES)
def test_an_unknown_answer_of_the_downstream_is_not_guessed_away(
    options: dict[str, Any], arrives: bool, make: Make
) -> None:
    world = make(**options)

    def lose(name: str, call: Callable[[], Any]) -> Any:
        if name != "apply":
            return call()
        if arrives:
            call()
        return Unknown("timeout")

    first = world.run(ADA, at_downstream=lose, steps=STEPS[:1])
    asks = options.get("keyed", True) or options == FENCED_AND_QUERYABLE
    assert first.ended == (
        Ended.UNDECIDED if asks else Ended.FINISHED if options == QUERYABLE and arrives else Ended.STOPPED
    )
    if asks:
        assert world.step().status is StepStatus.RUNNING
        assert world.run(ADA, steps=STEPS[:1]).ended == Ended.FINISHED  # released, so at once
        assert world.effects() == 1
    elif options == QUERYABLE and arrives:
        assert (world.step().status, world.effects()) == (StepStatus.SUCCEEDED, 1)
    else:
        assert world.step().status is StepStatus.MANUAL_INTERVENTION
        assert "it may have happened" in (world.step().reason or "")


def test_what_is_in_progress_stays_running(make: Make) -> None:

    world = make()
    run = world.run(ADA, at_downstream=lambda _, __: Refused("in-progress", None))
    assert run == Run(Ended.UNDECIDED, "order-1", "charge", "in-progress")
    assert world.step().status is StepStatus.RUNNING


def test_an_expired_key_goes_to_a_person(make: Make, clock: Clock) -> None:
    world = make()
    with pytest.raises(DeathError):
        world.run(ADA, at=die_at("answered"))
    world.expire()
    with world.opened() as (_, downstream):
        downstream.expire_records(before_ms=clock.now_ms)
    assert world.run(BOB) == Run(Ended.STOPPED, "order-1", "charge", "key-expired")
    assert world.step().status is StepStatus.MANUAL_INTERVENTION
    assert world.effects() == 1


# Unwinding.


def test_a_pending_step_is_cancelled(make: Make) -> None:
    world = make()
    assert world.unwind(ADA) == Run(Ended.STOPPED, "order-1", "charge", "the order was withdrawn")
    assert world.step().status is StepStatus.CANCELLED
    assert world.run(BOB).ended == Ended.STOPPED
    assert world.effects() == 0


@pytest.mark.parametrize("options", CLASSES.values(), ids=CLASSES)
@pytest.mark.parametrize("point", ["sending", "answered"])
def test_an_unknown_step_is_unwound_as_its_downstream_allows(
    point: str, options: dict[str, Any], make: Make
) -> None:
    world = make(**options)
    with pytest.raises(DeathError):
        world.run(ADA, at=die_at(point))
    happened = world.effects()
    world.expire()
    assert world.unwind(BOB).ended == Ended.STOPPED
    step = world.step()
    assert step.unwinding == "the order was withdrawn"
    assert world.effects() == happened
    if options.get("keyed", True):
        expected = StepStatus.SUCCEEDED if happened else StepStatus.CANCELLED
        assert (step.status, step.evidence) == (expected, None if happened else Evidence.TOMBSTONED)
    elif options == FENCED_AND_QUERYABLE:
        expected = StepStatus.SUCCEEDED if happened else StepStatus.CANCELLED
        assert (step.status, step.evidence) == (expected, None if happened else Evidence.FENCED_AND_NOT_FOUND)
    elif options == QUERYABLE and happened:
        assert step.status is StepStatus.SUCCEEDED
    else:
        assert step.status is StepStatus.MANUAL_INTERVENTION


def test_unwinding_that_died_is_taken_up_by_whoever_comes_next(make: Make) -> None:
    for number in range(1, 12):
        world = make()
        with pytest.raises(DeathError):
            world.run(ADA, at=die_at("sending"))
        world.expire()
        counted = Counted(number)
        try:
            world.unwind(BOB, at_store=counted.around, at_downstream=counted.around)
        except DeathError:
            pass
        world.expire()
        committed = world.step().unwinding is not None
        run = world.run(Owner("cyd", 0), steps=STEPS[:1])
        if committed:
            assert run.ended == Ended.STOPPED
            assert (world.step().status, world.effects()) == (StepStatus.CANCELLED, 0)
        else:
            assert (world.step().status, world.effects()) == (StepStatus.SUCCEEDED, 1)


def test_a_step_that_has_its_outcome_keeps_it(make: Make) -> None:
    world = make()
    with pytest.raises(DeathError):
        world.run(ADA, at=die_at("outcome-committed"))
    world.expire()
    before = world.step()
    assert world.unwind(BOB).ended == Ended.STOPPED
    assert world.step() == before
