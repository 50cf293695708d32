"""Definitions and beginnings: what an instance is pinned to, migrations, damage (§8, §13 to §15)."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    Approval,
    ArgumentError,
    Context,
    Definition,
    Effect,
    Notice,
    Retry,
    RetryableError,
    Run,
    Workflow,
    approve,
    observe,
    recover,
    run_instance,
    start,
)

from .orders import NAME, ORDER, THRICE, MakeOrders, Orders, Points, maker, order
from .support import ADA, BOB, LEASE_MS, code, dump, ok
from .worlds import Between, DeathError

LATER = order("2")


def migrating() -> Workflow:
    made = order("2")
    made.migrates(ORDER.definition, name="order 1 to 2")
    return made


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeOrders]:
    with maker(tmp_path) as made:
        yield made


def dead(make: MakeOrders, number: int = 12) -> Orders:
    """An order that ada left half-done."""
    world = make()
    with pytest.raises(DeathError):
        world.work(ADA, at=Points(number))
    world.clock.now_ms += LEASE_MS
    return world


def test_other_code_leaves_the_steps_as_they_are_and_hands_the_instance_over(make: MakeOrders) -> None:
    world = dead(make)
    before = world.row().steps
    (run,) = world.work(BOB, workflows=(LATER,))
    assert run.why.startswith("a person: definition: it began with ")
    assert (world.row().status, world.row().steps) == ("manual_intervention", before)
    assert world.work(BOB, workflows=(LATER,)) == []
    world.resume()
    assert world.finish(BOB).status == "succeeded"
    world.check()


def test_a_resumed_instance_is_not_taken_by_code_that_may_not_go_on_with_it(make: MakeOrders) -> None:
    world = dead(make)
    world.work(BOB, workflows=(LATER,))
    world.resume()
    before = world.row()
    (run,) = world.work(BOB, workflows=(LATER,))
    assert run.ended == "waiting"
    assert world.row() == before


@pytest.mark.parametrize("number", [1, 5, 9, 13, 17])
def test_with_a_migration_the_new_code_goes_on_after_a_commit_that_says_so(
    number: int, make: MakeOrders
) -> None:
    world, workflow = dead(make, number), migrating()
    assert world.finish(BOB, workflows=(workflow,)).status == "succeeded"
    world.check()
    assert world.row().definition == workflow.definition
    (entry,) = [each for each in observe(world.path).log(NAME) if each.event == "migrated"]
    assert entry.payload == "order 1 to 2"


def test_a_migration_that_crashes_anywhere_is_made_once(make: MakeOrders) -> None:
    for number in range(1, 8):
        world, workflow = dead(make), migrating()
        with pytest.raises(DeathError):
            world.work(BOB, at=Points(number), workflows=(workflow,))
        world.clock.now_ms += LEASE_MS
        assert world.finish(ADA, workflows=(workflow,)).status == "succeeded"
        assert [each.event for each in observe(world.path).log(NAME)].count("migrated") == 1


def test_recover_takes_a_handed_over_instance_to_the_code_that_migrates_it(make: MakeOrders) -> None:
    world, workflow = dead(make), migrating()
    world.work(BOB, workflows=(LATER,))
    assert world.work(BOB, workflows=(workflow,)) == []
    run = recovered(world, workflow)
    assert run.ended == "waiting"
    assert (world.row().status, world.row().definition) == ("running", workflow.definition)
    assert world.finish(BOB, workflows=(workflow,)).status == "succeeded"


def recovered(world: Orders, workflow: Workflow = ORDER) -> Run:
    with world.opened() as (store, downstream):
        return recover(
            store,
            downstream,
            owner=BOB,
            instance=NAME,
            workflows=[workflow],
            lease_ms=LEASE_MS,
            monotonic_ms=world.clock,
        )


def test_recover_settles_what_was_left_and_starts_nothing(make: MakeOrders) -> None:
    world = dead(make, 6)
    assert world.statuses()["reserve"] == "running"
    run = recovered(world)
    assert (run.ended, run.why) == ("waiting", "a worker: start charge")
    assert set(world.statuses().values()) == {"succeeded", "pending"}
    assert world.effects() == ["stock reserve"]
    before = world.row().lease_version
    assert recovered(world).why == "a worker: start charge"
    assert world.row().lease_version == before


def test_the_definition_is_checked_again_on_the_row_that_acquire_returned(make: MakeOrders) -> None:
    """Between bob's look and his lease, somebody migrates the instance: what bob checked no longer counts."""
    world, workflow = dead(make), migrating()
    done: list[bool] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        if name == "acquire" and not done:
            done.append(True)
            recovered(world, workflow)
        return call()

    with world.opened() as (store, downstream):
        run = run_instance(
            Between(store, around),  # type: ignore[arg-type]
            downstream,
            owner=ADA,
            instance=NAME,
            workflows=[ORDER],
            lease_ms=LEASE_MS,
            monotonic_ms=world.clock,
        )
    assert run.why.startswith("a person: definition: ")
    assert (world.row().status, world.row().definition) == ("manual_intervention", workflow.definition)


def test_a_migration_that_lacks_a_step_of_the_instance_is_none(make: MakeOrders) -> None:
    world = dead(make)
    fewer = Workflow("order", version="2")
    fewer.step(name="reserve")(lambda _: None)
    fewer.migrates(ORDER.definition, name="fewer steps")
    world.work(BOB, workflows=(fewer,))
    assert world.row().status == "manual_intervention"


def without_ship() -> Workflow:
    made = Workflow("order", version="2")
    for name in ("reserve", "charge", "weigh", "close"):
        step = made.step(name=name)(lambda _: None)
        if name in ("reserve", "charge"):
            step.compensation(lambda _: Effect("payment", "undo", {}))
    return made


def without_undo() -> Workflow:
    made = Workflow("order", version="2")
    for name in ("reserve", "charge", "weigh", "ship", "close"):
        made.step(name=name)(lambda _: None)
    return made


@pytest.mark.parametrize(
    ("later", "lacks"),
    [
        (without_ship, "the step 'ship', which is pending, is missing"),
        (without_undo, "the step 'reserve' has no compensation, and began with 'put_back'"),
    ],
)
def test_a_migration_that_does_not_fit_is_named_with_what_it_lacks(
    later: Callable[[], Workflow], lacks: str, make: MakeOrders
) -> None:
    world, workflow = dead(make), later()
    workflow.migrates(ORDER.definition, name="order 1 to 2")
    began = f"definition: it began with {ORDER.definition.fingerprint[:12]}"
    (run,) = world.work(BOB, workflows=(LATER, workflow))
    assert run.why == f"a person: {began}, and the migration 'order 1 to 2' does not fit: {lacks}"
    assert world.row().manual_cause == run.why.removeprefix("a person: ")


def test_a_migration_that_does_not_fit_is_named_also_to_who_comes_after_the_hand_over(
    make: MakeOrders,
) -> None:
    world, workflow = dead(make), without_ship()
    workflow.migrates(ORDER.definition, name="order 1 to 2")
    world.work(BOB, workflows=(LATER,))
    cause = world.row().manual_cause
    lacks = "the migration 'order 1 to 2' does not fit: the step 'ship', which is pending, is missing"
    assert recovered(world, workflow).why == f"a person: {cause}; {lacks}"
    world.resume()
    assert recovered(world, workflow).why == f"a worker: resume; {lacks}"
    assert recovered(world, LATER).why == "a worker: resume"


def test_a_migration_that_lacks_another_intent_is_named(make: MakeOrders) -> None:
    first, second = (Workflow("anew", version=version) for version in "12")
    for workflow in (first, second):
        workflow.step(name="pay", approval=Approval())(lambda _: Effect("payment", "pay", {"by": "card"}))
    first.steps["pay"].instead(lambda _: Effect("payment", "pay", {"by": "cash"}))
    second.migrates(first.definition, name="cards only")
    world = make(workflow=first, decline=lambda r: "no" if "card" in r.parameters else None)
    world.work(ADA, workflows=(first,))
    with world.opened() as (store, _):
        ok(approve(store, NAME, step="pay", requester="eve"))
        world.work(ADA, workflows=(first,))
        ok(approve(store, NAME, step="pay", requester="eve"))
    world.work(BOB, workflows=(second,))
    assert "'pay' waits for the approval of another intent, and has no" in (world.row().manual_cause or "")


def test_a_migration_is_made_from_the_definition_in_the_store(make: MakeOrders) -> None:
    """Where the former code is gone."""
    world, workflow = dead(make), order("2")
    with world.opened() as (store, _):
        former = ok(store.read(NAME)).definition
    assert former is not None
    workflow.migrates(former, name="order 1 to 2")
    assert world.finish(BOB, workflows=(workflow,)).status == "succeeded"


def test_what_waits_for_a_worker_says_so_without_a_blank_at_the_end(make: MakeOrders) -> None:
    """The end of an instance names no step."""
    world = make(workflow=THRICE)
    with pytest.raises(DeathError):
        world.work(ADA, at=dying("before: finished"), workflows=(THRICE,))
    world.clock.now_ms += LEASE_MS
    assert recovered(world, THRICE).why == "a worker: finish"


def dying(where: str) -> Callable[[str], None]:
    def die(point: str) -> None:
        if point == where:
            raise DeathError

    return die


def test_a_migration_does_not_take_an_instance_away_from_a_person_who_has_another_question(
    make: MakeOrders,
) -> None:
    """The compensation could not be made: only a decision takes the instance on, and then the migration."""
    first, second = (Workflow("order", version=version) for version in "12")
    for workflow, undo in ((first, broken), (second, lambda _: Effect("payment", "undo", {}))):
        workflow.step(name="pay")(lambda _: Effect("payment", "pay", {})).compensation(named("undo", undo))
        workflow.step(name="fail", after=("pay",))(broken)
    second.migrates(first.definition, name="mended")
    world = make(workflow=first)
    world.work(ADA, workflows=(first,))
    before = world.row()
    assert recovered(world, second).why == f"a person: {before.manual_cause}"
    assert world.row().state_version == before.state_version
    world.resume()
    world.work(BOB, workflows=(second,))
    assert (world.row().status, world.row().definition) == ("failed", second.definition)
    assert world.effects() == ["payment pay", "payment undo"]


def broken(_: Context) -> Effect:
    raise LookupError("which account?")


def named(name: str, function: Callable[[Context], Effect]) -> Callable[[Context], Effect]:
    def called(ctx: Context) -> Effect:
        return function(ctx)

    called.__name__ = name
    return called


def test_a_worker_with_both_versions_goes_on_with_each(make: MakeOrders) -> None:
    world = dead(make)
    world.begin(LATER, "order-2")
    assert world.finish(BOB, workflows=(LATER, ORDER)).status == "succeeded"
    with world.opened() as (store, _):
        assert ok(store.read(NAME)).definition == ORDER.definition
        assert ok(store.read("order-2")).definition == LATER.definition
        assert ok(store.read("order-2")).status == "running"


def test_instances_of_workflows_that_a_worker_does_not_have_are_left_alone(make: MakeOrders) -> None:
    world = make()
    before = world.row()
    (run,) = world.work(BOB, workflows=(Workflow("invoice", version="1"),))
    assert (run.ended, run.why) == ("waiting", "code of 'order'")
    assert world.row() == before


def test_a_damaged_beginning_is_reported_and_nothing_is_written(make: MakeOrders) -> None:
    world = make()
    with closing(sqlite3.connect(world.path)) as connection, connection:
        connection.execute("drop trigger triggers_stay")
        connection.execute("update triggers set input = replace(input, '500', '5')")
    before = dump(world.path)
    (run,) = world.work(BOB)
    assert (run.ended, run.why.partition(":")[0]) == ("refused", "damaged")
    after = dump(world.path)
    assert {name for name in before if before[name] != after[name]} == {"instances"}
    assert (world.row().state_version, world.row().expires_at_ms) == (0, None)


# Beginnings.


def test_one_instance_for_each_event_however_often_it_comes(make: MakeOrders) -> None:
    world = make()
    with world.opened() as (store, _):
        first = ok(start(store, ORDER, source="shop", event_id="7", input={"cents": 5}))
        assert first.instance == "shop:7"
        assert ok(start(store, ORDER, source="shop", event_id="7", input={"cents": 5.0})) == first
        assert code(start(store, ORDER, source="shop", event_id="7", input={"cents": 6})) == "key-conflict"
        taken = start(store, ORDER, source="shop", event_id="8", input={}, instance="shop:7")
        assert code(taken) == "instance-exists"
        with pytest.raises(ArgumentError, match="no steps"):
            start(store, Workflow("empty", version="1"), source="shop", event_id="9")
        with pytest.raises(ArgumentError, match="JSON"):
            start(store, ORDER, source="shop", event_id="9", input={1, 2})


# Workflows as they are written.


def test_the_fingerprint_is_that_of_everything_an_instance_is_pinned_to() -> None:
    def made(**changes: Any) -> Definition:
        whole = {"version": "1", "name": "b", "after": ("a",), "approval": None, "resource": "payment"}
        whole |= changes
        workflow = Workflow("w", version=str(whole.pop("version")))
        workflow.step(name="a")(lambda _: None)
        step = workflow.step(**whole)(lambda _: None)  # type: ignore[arg-type]
        if changes.get("name") == "undo":
            step.compensation(lambda _: Effect("payment", "undo", {}))
        return workflow.definition

    assert made() == made()
    others: list[dict[str, Any]] = [
        {"version": "2"},
        {"name": "c"},
        {"name": "undo"},
        {"after": ()},
        {"approval": Approval()},
        {"approval": Approval(deadline_ms=1)},
        {"resource": None},
    ]
    assert len({made().fingerprint, *(made(**other).fingerprint for other in others)}) == len(others) + 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda w: w.step(name="a")(lambda _: None), "has a step 'a' already"),
        (lambda w: w.step(name="b", after=("aa",))(lambda _: None), "did you mean 'a'"),
        (lambda w: w.step(name="b", after="a"), "must be a tuple"),
        (lambda w: w.step(name="b", deadline_ms=0), "deadline_ms is 0"),
        (lambda w: w.steps["a"].compensation(lambda _: None), "has one already"),
        (lambda w: w.migrates(Definition("other", "f"), name="m"), "within 'w' only"),
        (lambda w: w.migrates("1", name="m"), "must be a Definition"),
        (lambda _: Retry(attempts=0), "attempts is 0"),
        (lambda _: Approval(deadline_ms=0), "deadline_ms is 0"),
        (lambda _: Notice("", "zoe"), "kind is empty"),
        (lambda _: RetryableError(""), "error_class is empty"),
        (lambda _: Workflow("", version="1"), "definition_id is empty"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_written(wrong: Callable[[Any], Any], message: str) -> None:
    workflow = Workflow("w", version="1")
    workflow.step(name="a")(lambda _: None).compensation(lambda _: Effect("payment", "undo", {}))
    with pytest.raises(ArgumentError, match=message):
        wrong(workflow)


def test_the_wait_before_a_retry_doubles_up_to_the_longest() -> None:
    retry = Retry(attempts=9, delay_ms=10, longest_delay_ms=100)
    assert [retry.after_ms(attempt) for attempt in (1, 2, 3, 4, 5, 1_000)] == [10, 20, 40, 80, 100, 100]
    assert Retry(delay_ms=500, longest_delay_ms=100).after_ms(3) == 500


def test_a_step_is_given_what_was_recorded_and_what_it_depends_on() -> None:
    seen: list[Context] = []
    workflow = Workflow("w", version="1")
    step = workflow.step(name="a")(lambda ctx: seen.append(ctx))
    context = Context("i", "a", 1, {"x": 1}, None, {}, {})
    assert step(context) is None
    assert seen == [context]
