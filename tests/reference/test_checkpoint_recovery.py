"""Recovery over checkpoints (§8): checked before and after acquire; crashes and races anywhere."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    Checkpoints,
    EffectRequest,
    Owner,
    Run,
    StoreError,
    recover,
    run_instance,
)
from fencepost.reference.checkpoint import steps_of

from .checkpoints import KEY, checkpoint, rehashed, spoil
from .orders import CARL, FORWARD, NAME, ORDER, MakeOrders, Orders, Points, maker, no_parcels, order
from .support import ADA, BOB, LEASE_MS, dump, ok
from .worlds import Between, Counted, DeathError, lose_the_answer

KEYED = Checkpoints(mac_key=KEY)
PLAIN = Checkpoints()

Around = Callable[[str, Callable[[], Any]], Any]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeOrders]:
    with maker(tmp_path) as made:
        yield made


def dead(make: MakeOrders, number: int = 12, kept: Checkpoints = KEYED) -> Orders:
    """An order that ada left half-done."""
    world = make(checkpoints=kept)
    with pytest.raises(DeathError):
        world.work(ADA, at=Points(number))
    world.clock.now_ms += LEASE_MS
    return world


def one_pass(world: Orders, owner: Owner = BOB, *, around: Around | None = None, **more: Any) -> Run:
    with world.opened() as (store, downstream):
        run: Callable[..., Run] = more.pop("run", run_instance)
        return run(
            Between(store, around or (lambda _, call: call())),
            downstream,
            owner=owner,
            instance=NAME,
            workflows=more.pop("workflows", [ORDER]),
            lease_ms=LEASE_MS,
            monotonic_ms=world.clock,
            **more,
        )


def before_acquire(do: Callable[[], object]) -> Around:
    """Does something between the first check and the lease."""
    done: list[bool] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        if name == "acquire" and not done:
            done.append(True)
            do()
        return call()

    return around


# Nothing wrong.


@pytest.mark.parametrize("kept", [KEYED, PLAIN], ids=["keyed", "plain"])
def test_with_checkpoints_an_order_runs_as_without(kept: Checkpoints, make: MakeOrders) -> None:
    world = make(checkpoints=kept)
    assert world.finish(ADA).status == "succeeded"
    world.check()
    assert world.effects() == [*FORWARD, "notification shipped"]
    assert {run.ended for run in world.runs} <= {"waiting", "finished"}


@pytest.mark.parametrize("decline", [None, no_parcels], ids=["forward", "back"])
def test_at_every_point_of_an_order_the_checkpoint_holds_the_steps_as_they_stand(
    decline: Callable[[EffectRequest], str | None] | None, make: MakeOrders
) -> None:
    world = make(checkpoints=KEYED, **({} if decline is None else {"decline": decline}))
    seen = set()

    def look(_: str) -> None:
        with world.opened() as (store, _downstream):
            stored = ok(store.stored(NAME))
            found = KEYED.check(stored)
        if found is not None:
            assert steps_of(found) == stored.row.steps
            seen.add(found.state_version)

    world.finish(ADA, at=look)
    look("at the end")
    assert seen == set(range(1, world.row().state_version + 1))
    assert len(seen) > 8


# Something wrong: what the store holds is as before, but for a lease that is over.


def steps_changed(data: bytes) -> bytes:
    return rehashed(
        data, content={"status": "running", "unwinding_cause": None, "manual_cause": None, "steps": []}
    )


HARM: dict[str, tuple[Callable[[bytes], bytes | None], str]] = {
    "lost": (lambda _: None, "is lost"),
    "emptied": (lambda _: b"", "is cut short"),
    "cut short": (lambda data: data[:-2], "is cut short"),
    "flipped": (lambda data: data.replace(b"charge", b"charde", 1), "its hash is not that of the rest"),
    "tampered with": (steps_changed, "was tampered with"),
    "another format": (lambda data: rehashed(data, KEY, format=2), "has format 2"),
    "another instance": (lambda data: rehashed(data, KEY, instance="order-2"), "is that of 'order-2'"),
    "another lease version": (lambda data: rehashed(data, KEY, lease_version=7), "is of lease version 7"),
    "another state version": (lambda data: rehashed(data, KEY, state_version=1), "is of state version 1"),
    "another definition": (
        lambda data: rehashed(data, KEY, definition=["order", "x"]),
        "is of definition order x",
    ),
}


def assert_only_the_lease(before: dict[str, Any], after: dict[str, Any], world: Orders) -> None:
    assert {name for name in before if before[name] != after[name]} <= {"instances"}
    assert world.row().expires_at_ms is None


@pytest.mark.parametrize(("harm", "words"), HARM.values(), ids=HARM)
def test_a_bad_checkpoint_is_reported_before_a_lease_is_taken(
    harm: Callable[[bytes], bytes | None], words: str, make: MakeOrders
) -> None:
    world = dead(make)
    spoil(world.path, harm)
    before = dump(world.path)
    for run in (run_instance, recover):
        found = one_pass(world, run=run)
        assert found.ended == "bad-checkpoint"
        assert words in found.why
        assert f"the checkpoint of '{NAME}' " in found.why
    assert dump(world.path) == before


@pytest.mark.parametrize(("harm", "words"), HARM.values(), ids=HARM)
def test_a_checkpoint_that_goes_bad_before_acquire_is_found_after_it_and_the_lease_released(
    harm: Callable[[bytes], bytes | None], words: str, make: MakeOrders
) -> None:
    world = dead(make)
    lease_version = world.row().lease_version
    spoiled: list[dict[str, Any]] = []

    def do() -> None:
        spoil(world.path, harm)
        spoiled.append(dump(world.path))

    run = one_pass(world, around=before_acquire(do))
    assert run.ended == "bad-checkpoint"
    assert words in run.why
    assert_only_the_lease(spoiled[0], dump(world.path), world)
    assert world.row().lease_version == lease_version + 1
    assert world.effects() == ["stock reserve"]


def test_a_worker_goes_on_with_other_instances_and_reports_the_bad_one(make: MakeOrders) -> None:
    world = dead(make)
    world.begin(ORDER, "order-2")
    spoil(world.path, lambda data: data[:-1])
    runs = world.work(BOB)
    assert {run.instance: run.ended for run in runs} == {NAME: "bad-checkpoint", "order-2": "waiting"}


def test_an_older_checkpoint_put_back_is_refused(make: MakeOrders) -> None:
    world = make(checkpoints=KEYED)
    kept: list[bytes] = []
    number = 1
    while number < 20:
        world = dead(make, number)
        found = checkpoint(world.path)
        if found is not None and found not in kept:
            kept.append(found)
        number += 1
    assert len(kept) > 3
    for older in kept[:-1]:
        spoil(world.path, lambda _, older=older: older)
        assert "is of state version" in one_pass(world).why


def test_the_checkpoint_of_a_commit_that_was_refused_is_refused(make: MakeOrders) -> None:
    """Ada's commit is refused, for bob took over; what she would have written has the same state version."""
    world = dead(make)
    before = checkpoint(world.path)
    assert before is not None
    ada_lease, state = world.row().lease_version, world.row().state_version
    with pytest.raises(DeathError):
        world.work(BOB, at=Points(6))
    world.clock.now_ms += LEASE_MS
    assert world.row().state_version > state
    stands = world.row().state_version
    spoil(world.path, lambda _: rehashed(before, KEY, state_version=stands, lease_version=ada_lease))
    assert "is of lease version 1, and the row is from a commit with 2" in one_pass(world).why


def test_what_is_resumed_is_the_checkpoint_that_was_checked(make: MakeOrders) -> None:
    """Where nothing is asked of it, it is believed, whatever the row says: so each question is needed."""
    world = dead(make)
    assert world.step("reserve").status == "succeeded"
    spoil(world.path, steps_begun_anew)
    for store, _ in world.handles:
        store.close()
    world.handles.clear()
    world.checkpoints = Checkpoints(checks=())
    run = one_pass(world)
    assert (run.ended, run.why) == ("refused", "illegal-transition")  # it would have started it once more


def steps_begun_anew(data: bytes) -> bytes:
    content = json.loads(data)["content"]
    for step in content["steps"]:
        step |= {"status": "pending", "intent": None, "receipt": None}
    return rehashed(data, content=content)


def test_a_row_changed_past_the_store_is_not_resumed(make: MakeOrders) -> None:
    world = dead(make)
    with closing(sqlite3.connect(world.path)) as connection, connection:
        connection.execute("drop trigger receipts_are_kept")
        connection.execute("drop trigger terminal_steps_stay")
        connection.execute("update steps set receipt = 'forged' where step = 'reserve'")
    run = one_pass(world)
    assert run.ended == "bad-checkpoint"
    assert "the row differs from it in step 'reserve': receipt" in run.why


def test_a_person_vouches_and_the_work_goes_on(make: MakeOrders) -> None:
    world = dead(make)
    spoil(world.path, lambda _: None)
    assert one_pass(world).ended == "bad-checkpoint"
    with world.opened() as (store, _):
        ok(store.vouch(NAME, expected_state_version=world.row().state_version))
    assert world.finish(BOB).status == "succeeded"
    world.check()


def test_a_bad_checkpoint_goes_before_another_definition(make: MakeOrders) -> None:
    """Nothing is written on the word of a checkpoint that is not sound."""
    world = dead(make)
    spoil(world.path, lambda data: data[:-1])
    before = dump(world.path)
    assert one_pass(world, workflows=[order("2")]).ended == "bad-checkpoint"
    assert dump(world.path) == before


def test_other_code_hands_over_by_a_commit_with_a_checkpoint_and_a_migration_is_one(make: MakeOrders) -> None:
    world = dead(make)
    steps = world.row().steps
    assert one_pass(world, workflows=[order("2")]).why.startswith("a person: definition: ")
    assert (world.row().status, world.row().steps) == ("manual_intervention", steps)
    later = order("2")
    later.migrates(ORDER.definition, name="order 1 to 2")
    assert one_pass(world, run=recover, workflows=[later]).ended == "waiting"
    assert (world.row().definition, world.row().status) == (later.definition, "running")
    with world.opened() as (store, _):
        found = KEYED.check(ok(store.stored(NAME)))
    assert found is not None
    assert found.definition == later.definition
    assert world.finish(CARL, workflows=(later,)).status == "succeeded"


def test_a_lease_taken_anew_within_a_pass_is_checked_too(make: MakeOrders) -> None:
    """Fenced and queryable: after a refusal the worker takes a token above its own, which is an acquire."""

    def decline(request: EffectRequest) -> str | None:
        return "no" if request.operation == "reserve" else None

    world = make(checkpoints=KEYED, keyed=False, decline=decline)
    calls: list[str] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        if name == "acquire" and "acquire" in calls:
            spoil(world.path, lambda data: data[:-1])
        calls.append(name)
        return call()

    assert one_pass(world, around=around).ended == "bad-checkpoint"
    assert calls.count("acquire") == 2
    assert (world.row().lease_version, world.row().expires_at_ms) == (2, None)


# Answers that are lost.


@pytest.mark.parametrize("lost", range(1, 4))
def test_a_store_that_does_not_answer_to_a_check_is_asked_again(lost: int, make: MakeOrders) -> None:
    world = dead(make)
    calls: list[str] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        calls.append(name)
        if name == "stored" and calls.count(name) <= lost:
            return lose_the_answer(call)
        return call()

    run = one_pass(world, around=around)
    assert run.ended == ("undecided" if lost == 3 else "waiting")


def test_a_release_after_a_bad_checkpoint_that_is_not_heard_changes_nothing_else(make: MakeOrders) -> None:
    world = dead(make)
    harm = before_acquire(lambda: spoil(world.path, lambda data: data[:-1]))

    def around(name: str, call: Callable[[], Any]) -> Any:
        if name == "release":
            raise StoreError("no answer")
        return harm(name, call)

    version = world.row().state_version
    assert one_pass(world, around=around).ended == "bad-checkpoint"
    assert world.row().state_version == version


# Crashes and races.


def calls_of_a_recovery(make: MakeOrders) -> int:
    counted = Counted()
    one_pass(dead(make), around=counted.around, at=lambda name: counted.around(name, lambda: None))
    return len(counted.seen)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_recovery_may_die_anywhere(after: bool, make: MakeOrders) -> None:
    total = calls_of_a_recovery(make)
    assert total > 20
    for number in range(1, total + 1):
        world = dead(make)
        counted = Counted(number, after)
        with pytest.raises(DeathError):
            one_pass(
                world,
                around=counted.around,
                at=lambda name, counted=counted: counted.around(name, lambda: None),
            )
        world.clock.now_ms += LEASE_MS
        with world.opened() as (store, _):
            assert KEYED.check(ok(store.stored(NAME))) is not None
        assert world.finish(CARL).status == "succeeded", (number, counted.seen[-1])
        assert "bad-checkpoint" not in {run.ended for run in world.runs}
        world.check()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_recovery_that_finds_a_bad_checkpoint_may_die_anywhere(after: bool, make: MakeOrders) -> None:
    """Whoever comes after finds it too, and the instance is as it was."""
    found: list[str] = []
    for number in range(1, 100):
        world, counted, harmed = dead(make), Counted(number, after), []
        version, steps = world.row().state_version, world.row().steps

        def do(world: Orders = world, harmed: list[bool] = harmed) -> None:
            harmed.append(True)
            spoil(world.path, lambda data: data[:-1])

        harm = before_acquire(do)

        def around(
            name: str, call: Callable[[], Any], counted: Counted = counted, harm: Around = harm
        ) -> Any:
            return harm(name, lambda: counted.around(name, call))

        try:
            assert one_pass(world, around=around).ended == "bad-checkpoint"
            break
        except DeathError:
            found.append(counted.seen[-1])
        world.clock.now_ms += LEASE_MS
        if harmed:
            assert one_pass(world, CARL).ended == "bad-checkpoint", number
            assert (world.row().state_version, world.row().steps) == (version, steps)
        else:
            assert one_pass(world, CARL).ended == "waiting", number
    assert found[-4:] == ["stored", "acquire", "stored", "release"]


def test_of_two_recoveries_that_race_one_goes_on_and_none_reports_a_bad_checkpoint(make: MakeOrders) -> None:
    """Bob is paused anywhere in his recovery, while carl recovers and goes on."""
    number = 0
    while True:
        number += 1
        world = dead(make)
        counted: list[str] = []

        def around(
            name: str,
            call: Callable[[], Any],
            counted: list[str] = counted,
            world: Orders = world,
            number: int = number,
        ) -> Any:
            counted.append(name)
            if len(counted) == number:
                world.clock.now_ms += LEASE_MS
                one_pass(world, CARL)
            return call()

        run = one_pass(world, around=around)
        assert run.ended in ("waiting", "lost", "not-acquired"), (number, run)
        if len(counted) < number:
            break
        world.clock.now_ms += LEASE_MS
        assert world.finish(ADA).status == "succeeded"
        world.check()
        assert "bad-checkpoint" not in {each.ended for each in world.runs}
    assert number > 20


def test_a_lease_that_is_lost_before_the_second_check_is_lost_and_no_bad_checkpoint(make: MakeOrders) -> None:
    world = dead(make)
    calls: list[str] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        calls.append(name)
        if name == "stored" and calls.count("acquire"):
            world.clock.now_ms += LEASE_MS
            one_pass(world, CARL)
        return call()

    assert one_pass(world, around=around).ended == "lost"
    assert calls[-1] == "stored"  # under the new owner's token nothing is committed, sent or released
