"""Recovery (§8): whoever dies where, what becomes of the effect, and of old requests that come late."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fencepost.reference import (
    Effect,
    Ended,
    Evidence,
    Owner,
    Run,
    StepStatus,
    observe,
    observe_downstream,
)

from .support import ADA, BOB, code, ok
from .worlds import (
    CLASSES,
    FENCED_AND_QUERYABLE,
    KEYED,
    QUERYABLE,
    STEPS,
    Counted,
    DeathError,
    Make,
    World,
    Zombie,
    die_at,
)

# Death anywhere.


def points_of_a_run(make: Make, options: dict[str, Any]) -> int:
    counted = Counted()
    world = make(**options)
    world.run(
        ADA,
        at_store=counted.around,
        at_downstream=counted.around,
        at=lambda name: counted.around(name, lambda: None),
        steps=STEPS[:1],
    )
    return len(counted.seen)


def run_and_die(world: World, number: int, *, after: bool) -> str:
    counted = Counted(number, after)
    with pytest.raises(DeathError):
        world.run(
            ADA,
            at_store=counted.around,
            at_downstream=counted.around,
            at=lambda name: counted.around(name, lambda: None),
            steps=STEPS[:1],
        )
    return counted.seen[-1]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("options", CLASSES.values(), ids=CLASSES)
def test_whoever_dies_where_the_heir_leaves_the_step_as_its_downstream_allows(
    options: dict[str, Any], after: bool, make: Make
) -> None:
    total = points_of_a_run(make, options)
    assert total >= 12
    statuses = set()
    for number in range(1, total + 1):
        world = make(**options)
        run_and_die(world, number, after=after)
        happened = world.effects()
        before = observe(world.path).step("order-1", "charge")
        was_open = before is not None and before.status is StepStatus.RUNNING
        world.expire()
        world.run(BOB, steps=STEPS[:1])
        step = world.step()
        statuses.add(step.status)
        if options.get("keyed", True) or options == FENCED_AND_QUERYABLE:
            assert (step.status, world.effects()) == (StepStatus.SUCCEEDED, 1)
        elif options == QUERYABLE and was_open:
            assert world.effects() == happened
            expected = StepStatus.SUCCEEDED if happened else StepStatus.MANUAL_INTERVENTION
            assert step.status is expected
        elif was_open:
            assert world.effects() == happened
            assert step.status is StepStatus.MANUAL_INTERVENTION
            assert step.from_status is StepStatus.RUNNING
        else:
            assert (step.status, world.effects()) == (StepStatus.SUCCEEDED, 1)
        assert (step.receipt is not None) == (step.status is StepStatus.SUCCEEDED)
    assert StepStatus.SUCCEEDED in statuses


@pytest.mark.parametrize("options", [KEYED, FENCED_AND_QUERYABLE], ids=["keyed", "fenced and queryable"])
def test_recovery_may_die_anywhere_too(options: dict[str, Any], make: Make) -> None:
    total = points_of_a_run(make, options)
    for first in range(4, total + 1, 2):
        for second in range(1, 16):
            world = make(**options)
            run_and_die(world, first, after=True)
            world.expire()
            counted = Counted(second, after=bool(second % 2))
            try:
                world.run(
                    BOB,
                    at_store=counted.around,
                    at_downstream=counted.around,
                    at=lambda name, counted=counted: counted.around(name, lambda: None),
                    steps=STEPS[:1],
                )
            except DeathError:
                pass
            world.expire()
            world.run(Owner("cyd", 0), steps=STEPS[:1])
            assert (world.step().status, world.effects()) == (StepStatus.SUCCEEDED, 1), (first, second)


def test_a_stored_intent_is_sent_again_as_it_was_whatever_the_code_says_now(
    make: Make,
) -> None:
    world = make()
    number = 7
    assert run_and_die(world, number, after=False) in ("intent-committed", "sending", "apply")
    world.expire()
    dearer = (replace(STEPS[0], effect=Effect("payment", "charge", {"cents": 900})),)
    assert world.run(BOB, steps=dearer).ended == Ended.FINISHED
    (effect,) = observe_downstream(world.ledger).effects
    assert (effect.parameters, effect.token) == ('{"cents":500}', 2)


def test_succeeded_steps_are_not_run_again(make: Make) -> None:
    world = make()

    def die_at_ship(request: str) -> None:
        if request == "derived" and observe(world.path).step("order-1", "charge") is not None:
            raise DeathError

    with pytest.raises(DeathError):
        world.run(ADA, at=die_at_ship)
    world.expire()
    sent: list[str] = []

    def look(name: str, call: Callable[[], Any]) -> Any:
        sent.append(name)
        return call()

    assert world.run(BOB, at_downstream=look).ended == Ended.FINISHED
    assert sent == ["apply"]
    assert (world.effects("payment"), world.effects("parcel")) == (1, 1)


def test_an_absent_effect_is_sent_again_as_the_next_intent(make: Make) -> None:
    world = make(**FENCED_AND_QUERYABLE)
    with pytest.raises(DeathError):
        world.run(ADA, at=die_at("sending"))
    world.expire()
    assert world.run(BOB).ended == Ended.FINISHED
    step = world.step()
    assert step.intent is not None
    assert (step.intent.intent_version, step.intent.key) == (2, "order-1:charge:payment-v2")
    assert (step.former_evidence, step.attempt) == (Evidence.FENCED_AND_NOT_FOUND, 2)


def test_a_late_request_after_takeover_is_refused_by_a_fence(make: Make) -> None:
    world = make()

    def meanwhile() -> None:
        world.expire()
        assert world.run(BOB).ended == Ended.FINISHED

    zombie = Zombie(meanwhile)
    assert world.run(ADA, at_downstream=zombie.around) == Run(Ended.LOST, "order-1", "charge", "stale-token")
    assert code(zombie.answers[0]) == "stale-token"
    assert world.effects() == 1


def test_a_late_request_after_takeover_is_deduplicated_by_a_key(make: Make) -> None:
    world = make(fenced=False)

    def meanwhile() -> None:
        world.expire()
        assert world.run(BOB).ended == Ended.FINISHED

    zombie = Zombie(meanwhile)
    assert world.run(ADA, at_downstream=zombie.around).ended == Ended.LOST
    assert ok(zombie.answers[0]).receipt == world.step().receipt
    assert world.effects() == 1


def test_a_late_request_after_unwinding_is_refused_by_the_tombstone(make: Make) -> None:
    world = make(fenced=False)

    def meanwhile() -> None:
        world.expire()
        assert world.unwind(BOB).ended == Ended.STOPPED

    zombie = Zombie(meanwhile)
    assert world.run(ADA, at_downstream=zombie.around).ended == Ended.LOST
    assert code(zombie.answers[0]) == "tombstoned"
    assert (world.step().status, world.effects()) == (StepStatus.CANCELLED, 0)


def test_a_late_request_still_lands_where_nothing_keeps_it_out(make: Make) -> None:
    """Why a person decides there: what was not found may still be on its way."""
    world = make(**QUERYABLE)

    def meanwhile() -> None:
        world.expire()
        assert world.run(BOB).ended == Ended.STOPPED
        assert world.step().status is StepStatus.MANUAL_INTERVENTION

    zombie = Zombie(meanwhile)
    assert world.run(ADA, at_downstream=zombie.around).ended == Ended.LOST
    assert world.effects() == 1


def test_a_late_request_at_a_fenced_and_queryable_downstream_is_kept_out_before_it_is_asked(
    make: Make,
) -> None:
    world = make(**FENCED_AND_QUERYABLE)
    asked: list[str] = []

    def meanwhile() -> None:
        world.expire()

        def look(name: str, call: Callable[[], Any]) -> Any:
            asked.append(name)
            return call()

        assert world.run(BOB, at_downstream=look).ended == Ended.FINISHED

    zombie = Zombie(meanwhile)
    assert world.run(ADA, at_downstream=zombie.around).ended == Ended.LOST
    assert code(zombie.answers[0]) == "stale-token"
    assert asked[:3] == ["raise_fence", "query", "apply"]
    assert world.effects() == 1
