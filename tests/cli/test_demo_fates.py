"""Who is killed where, without any process: what the seed decides, and what it may not."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fencepost.cli.killing.fates import KILLS, MOST_STOPS, ONCE, ONCE_WITHOUT_KEYS, Act, Fates, fates
from fencepost.cli.killing.orders import ORDERS
from fencepost.cli.killing.processes import INCARNATIONS_AT_ONCE, Incarnations

ALONG = ("derived", "intent-committed", "sending", "answered", "outcome-committed")

STOPPED = ("sending", Act.STOP_UNTIL_SETTLED)


def lived(ours: Fates, instances: tuple[str, ...]) -> list[tuple[str, str, Act]]:
    """What happens to one worker after the other, none of which is slow; where, in which instance, what."""
    left = dict.fromkeys(instances, len(ORDERS.steps))
    happened = []

    def goes_on(point: str, instance: str) -> bool:
        act = ours.at(point, None if point == "started" else instance, may_stop=False)
        if act is not Act.GO:
            happened.append((point, instance, act))
        return act not in KILLS

    while left:
        instance = next(iter(left))
        left[instance] = left.pop(instance)  # the next one takes another
        if not goes_on("started", instance):
            continue
        ours.acquired(instance, left[instance])
        if not goes_on("acquired", instance):
            continue
        while left[instance] and all(goes_on(point, instance) for point in ALONG[:-1]):
            left[instance] -= 1
            ours.left(instance, left[instance])
            if not goes_on(ALONG[-1], instance):
                break
        else:
            if not left[instance]:
                del left[instance]
    return happened


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kills", [1, 10, 300])
@pytest.mark.parametrize("instances", [1, 2, 20])
def test_the_last_instance_does_not_finish_before_the_last_kill(
    seed: int, kills: int, instances: int
) -> None:
    names = tuple(f"order-{number}" for number in range(instances))
    ours = fates(Random(seed), kills, names, asks=False)
    happened = lived(ours, names)

    assert sum(act in KILLS for _, _, act in happened) == kills
    assert ours.kills_left == 0


def test_the_seed_decides() -> None:
    names = ("order-1", "order-2")

    def run(seed: int) -> list[tuple[str, str, Act]]:
        return lived(fates(Random(seed), 40, names, asks=False), names)

    assert run(1) == run(1) != run(2)


def test_each_kind_of_fault_happens_at_the_first_occasion() -> None:
    ours = fates(Random(0), 100, ("order-1",), asks=True)
    everything = [*ONCE, *ONCE_WITHOUT_KEYS]
    ours.acquired("order-1", len(ORDERS.steps))

    assert [ours.at(point, "order-1", may_stop=True) for point, _ in everything] == [a for _, a in everything]


def test_kills_are_kept_for_what_is_to_happen_once() -> None:
    kept = sum(act in KILLS for _, act in ONCE)
    ours = fates(Random(0), kept, ("order-1",), asks=False)
    ours.acquired("order-1", len(ORDERS.steps))
    by_chance = [ours.at("derived", "order-1", may_stop=False) for _ in range(50)]

    assert [act for act in by_chance if act is not Act.GO] == [Act.KILL]  # the one that is to happen there
    assert ours.kills_left == kept - 1


def test_nobody_is_stopped_when_too_many_are_already() -> None:
    ours = fates(Random(0), 1_000, ("order-1",), asks=False)
    ours.acquired("order-1", len(ORDERS.steps))
    ours.once.clear()
    acts = {ours.at(point, "order-1", may_stop=False) for point in ALONG * 50}

    assert acts & {Act.STOP_UNTIL_TAKEN, Act.STOP_UNTIL_SETTLED} == set()
    assert acts & {Act.KILL, Act.KILL_SOON} == {Act.KILL, Act.KILL_SOON}


def test_when_the_time_is_up_nothing_happens_to_anybody() -> None:
    ours = fates(Random(0), 1_000, ("order-1",), asks=False)
    ours.give_up()

    assert {ours.at(point, "order-1", may_stop=True) for point in ALONG} == {Act.GO}


def test_no_incarnation_is_given_twice_also_after_the_death_of_who_counts(tmp_path: Path) -> None:
    path = tmp_path / "incarnations"
    given = list[int]()
    for lives in (1, INCARNATIONS_AT_ONCE + 1, 2):
        numbers = Incarnations(path)
        given += [next(numbers) for _ in range(lives)]

    assert len(set(given)) == len(given)
    assert given == sorted(given)


@pytest.mark.parametrize("answer", ["ok", "unknown", None])
def test_somebody_is_stopped_again_until_a_fence_has_refused_one(answer: str | None) -> None:
    ours = fates(Random(0), 10, ("order-1",), asks=False)
    times = 0
    for _ in range(2 * MOST_STOPS):
        ours.once = []
        ours.went_on(*STOPPED, answer)
        times += ours.once == [STOPPED]
    assert times == MOST_STOPS


def test_nobody_is_stopped_again_where_a_fence_has_refused_one_or_none_is() -> None:
    ours, without = (
        fates(Random(0), 10, ("order-1",), asks=False, fenced=fenced) for fenced in (True, False)
    )
    ours.once, without.once = [], []
    ours.went_on(*STOPPED, "stale-token")
    for each in (ours, without):
        each.went_on(*STOPPED, "ok")
        assert each.once == []


def test_only_who_was_stopped_until_it_was_too_late_was_to_be_refused() -> None:
    ours = fates(Random(0), 10, ("order-1",), asks=False)
    ours.once = []
    ours.went_on("sending", Act.STOP_UNTIL_TAKEN, "ok")
    ours.went_on("answered", Act.STOP_UNTIL_SETTLED, None)
    assert ours.once == []
