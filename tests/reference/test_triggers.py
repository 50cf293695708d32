"""Triggers, notifications (§13), definitions and their migrations (§14), and what there is to do."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    ArgumentError,
    Beginning,
    Definition,
    InstanceStatus,
    Migration,
    Move,
    Notification,
    Notified,
    Ok,
    Origin,
    Refused,
    StepChange,
    StepPlan,
    Store,
    cancellation,
    notification_key,
    observe,
    operator_decision,
)

from .lifecycle import (
    CANCELLED,
    DEFINITION,
    FAILED,
    HAND_OVER,
    LATER,
    LONG_MS,
    MANUAL,
    RETRY,
    RUNNING,
    UNWIND,
    WAITING,
    asked,
    beginning,
    begun,
    commit,
    started,
    step_of,
    succeeded,
    undoing,
)
from .support import BOB, LEASE_MS, Clock, code, dump, ok, refusal

PLANS = (
    StepPlan("charge", deadline_at_ms=9_000, most_attempts=3),
    StepPlan("pack"),
    StepPlan("ship", ("pack", "charge"), needs_approval=True, approval_deadline_at_ms=8_000),
)


def test_a_trigger_begins_an_instance_with_all_that_is_known_of_it(store: Store, path: Path) -> None:
    row = ok(store.trigger("shop", "event-7", beginning(*PLANS, deadline_at_ms=10_000)))
    assert (row.instance, row.status, row.owner) == ("order-1", "running", None)
    assert (row.lease_version, row.state_version) == (0, 0)
    assert (row.definition, row.deadline_at_ms) == (DEFINITION, 10_000)
    assert [(s.step, s.depends_on, s.needs_approval, s.status, s.state_version) for s in row.steps] == [
        ("charge", (), False, "pending", 0),
        ("pack", (), False, "pending", 0),
        ("ship", ("charge", "pack"), True, "pending", 0),
    ]
    assert (row.steps[0].deadline_at_ms, row.steps[0].most_attempts) == (9_000, 3)
    assert row.steps[2].approval_deadline_at_ms == 8_000
    origin = Origin("shop", "event-7", "input-1", "order-1", "orders/1.json", "tz=UTC", 1_000)
    assert store.origin("order-1") == origin
    seen = observe(path)
    assert (seen.rows, seen.origins) == ((row,), (origin,))
    assert ok(store.read("order-1")) == row
    assert store.log("order-1") == ()  # a trigger is no commit


def test_an_event_begins_one_instance_however_often_it_is_delivered(
    store: Store, path: Path, clock: Clock
) -> None:
    first = ok(store.trigger("shop", "event-7", beginning(*PLANS)))
    before = dump(path)
    clock.now_ms += 1
    for other in (beginning(*PLANS), beginning(instance="order-2"), replace(beginning(), definition=LATER)):
        assert store.trigger("shop", "event-7", other) == Ok(first)
    assert dump(path) == before


def test_a_delivery_after_the_end_is_answered_with_the_instance_that_has_ended(store: Store) -> None:
    begun(store)
    ok(commit(store, finishes=True))
    assert ok(store.trigger("shop", "order-1", beginning())).status == "succeeded"


def test_another_input_of_an_event_is_refused_and_told_of_no_instance(store: Store, path: Path) -> None:
    ok(store.trigger("shop", "event-7", beginning()))
    before = dump(path)
    answer = store.trigger("shop", "event-7", replace(beginning(), fingerprint="input-2"))
    assert answer == Refused("key-conflict", None)
    assert dump(path) == before


def test_events_of_different_sources_are_different_events(store: Store) -> None:
    ok(store.trigger("shop", "event-7", beginning(instance="order-1")))
    ok(store.trigger("desk", "event-7", beginning(instance="order-2")))
    assert store.open_instances() == ("order-1", "order-2")


def test_another_event_does_not_take_the_name_of_an_instance(store: Store, path: Path) -> None:
    ok(store.create("order-1"))
    before = dump(path)
    answer = refusal(store.trigger("shop", "event-7", beginning(*PLANS)))
    assert answer.code == "instance-exists"
    assert dump(path) == before
    ok(store.trigger("shop", "event-7", beginning(*PLANS, instance="order-2")))


def test_an_instance_that_was_created_by_name_has_no_origin(store: Store) -> None:
    row = ok(store.create("order-1"))
    assert (store.origin("order-1"), row.definition) == (None, None)


def test_a_planned_step_holds_up_the_end_as_long_as_it_is_pending(store: Store) -> None:
    begun(store, StepPlan("charge"))
    assert code(commit(store, finishes=True)) == "unfinished-steps"
    ok(commit(store, StepChange("charge", CANCELLED), move=UNWIND, finishes=True))


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("two steps have one name", lambda: beginning(StepPlan("a"), StepPlan("a"))),
        ("'a' depends on 'b', which is no step of these", lambda: beginning(StepPlan("a", ("b",)))),
        ("a depend on each other in a circle", lambda: beginning(StepPlan("a", ("a",)))),
        ("a, b depend on", lambda: beginning(StepPlan("a", ("b",)), StepPlan("b", ("a",)), StepPlan("c"))),
        ("steps must be a tuple of StepPlan", lambda: Beginning("i", DEFINITION, "", "f", "", ("a",))),
        ("definition must be a Definition", lambda: Beginning("i", "order", "", "f", "")),
        ("fingerprint is empty", lambda: Beginning("i", DEFINITION, "", "", "")),
        ("deadline_at_ms is -1", lambda: beginning(deadline_at_ms=-1)),
        ("depends_on must be a tuple", lambda: StepPlan("a", ["b"])),
        ("needs_approval must be a bool", lambda: StepPlan("a", needs_approval=1)),
        ("most_attempts is 0", lambda: StepPlan("a", most_attempts=0)),
        ("Definition: id is empty", lambda: Definition("", "f")),
    ],
)
def test_a_beginning_that_cannot_be_is_an_error(message: str, make: Any) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


# Definitions (§14).

BETTER = Migration("to-2", DEFINITION, LATER)


def migrated(status: InstanceStatus = InstanceStatus.RUNNING, name: str = "to-2") -> Move:
    return Move(status, definition=LATER, migration=name)


def test_an_instance_changes_its_definition_only_by_a_registered_migration(store: Store, path: Path) -> None:
    begun(store, StepPlan("charge"))
    before = dump(path)
    assert code(commit(store, move=migrated())) == "no-such-migration"
    assert dump(path) == before
    assert store.register_migration(BETTER) == Ok(BETTER) == store.register_migration(BETTER)
    assert code(commit(store, move=migrated(name="to-3"))) == "no-such-migration"
    ok(commit(store, started("charge"), move=migrated()))
    row = ok(store.read("order-1"))
    assert (row.definition, row.status, row.state_version) == (LATER, "running", 1)
    assert code(commit(store, move=migrated())) == "no-such-migration"  # it leads from the former one
    assert observe(path).migrations == (BETTER,)


def test_another_migration_does_not_take_the_name_of_one(store: Store) -> None:
    ok(store.register_migration(BETTER))
    assert code(store.register_migration(replace(BETTER, later=DEFINITION))) == "key-conflict"


def test_an_instance_whose_definition_nobody_has_waits_with_its_steps_unchanged(store: Store) -> None:
    begun(store, StepPlan("charge"))
    ok(commit(store, started("charge")))
    steps = ok(store.read("order-1")).steps
    ok(commit(store, move=HAND_OVER))
    row = ok(store.read("order-1"))
    assert (row.status, row.manual_cause, row.steps) == (
        "manual_intervention",
        "the definition is another one",
        steps,
    )
    assert store.workable() == ()
    ok(store.register_migration(BETTER))
    ok(commit(store, move=migrated()))
    assert ok(store.read("order-1")).status == "running"


def test_a_migration_keeps_an_instance_unwinding(store: Store) -> None:
    begun(store, StepPlan("charge"))
    ok(store.register_migration(BETTER))
    ok(commit(store, move=UNWIND))
    assert code(commit(store, move=migrated())) == "unwinding"
    ok(commit(store, move=migrated(InstanceStatus.UNWINDING)))
    assert ok(store.read("order-1")).unwinding_cause == UNWIND.cause


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("status is succeeded; end an instance with", lambda: Move(InstanceStatus.SUCCEEDED)),
        ("status must be one of InstanceStatus", lambda: Move("unwinding")),
        ("give both definition and migration", lambda: Move(InstanceStatus.RUNNING, migration="m")),
        ("cause is empty", lambda: Move(InstanceStatus.UNWINDING, cause="")),
        ("decision is 0", lambda: Move(InstanceStatus.RUNNING, decision=0)),
    ],
)
def test_a_move_that_cannot_be_is_an_error(message: str, make: Any) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


# Notifications.


def told(kind: str = "shipped", version: int = 1, **changes: Any) -> Notification:
    key = notification_key("order-1", kind, "ada", version)
    return replace(Notification(kind, "ada", version, key, "print", "{}"), **changes)


def test_a_notification_is_committed_with_what_it_tells_and_delivered_later(store: Store, path: Path) -> None:
    begun(store, StepPlan("ship"))
    ok(commit(store, started("ship")))
    ok(commit(store, succeeded("ship"), notifications=(told(),), finishes=True))
    stored = Notified("order-1", 2, told(), None)
    assert store.notifications("order-1") == store.undelivered() == (stored,)
    before = dump(path)
    delivered = replace(stored, receipt="sent-1")
    assert store.delivered("order-1", told().key, "sent-1") == Ok(delivered)  # after the end
    assert store.delivered("order-1", told().key, "sent-1") == Ok(delivered)
    assert code(store.delivered("order-1", told().key, "sent-2")) == "key-conflict"
    assert code(store.delivered("order-1", "another", "sent-1")) == "no-such-notification"
    assert store.undelivered() == ()
    assert observe(path).notifications == (delivered,)
    changed = {table for table, rows in dump(path).items() if rows != before[table]}
    assert changed == {"notifications"}


def test_there_is_one_notification_for_each_kind_and_version_of_the_target(store: Store) -> None:
    begun(store)
    ok(commit(store, notifications=(told(), told(version=2), told("charged"))))
    assert code(commit(store, notifications=(told(),))) == "key-conflict"
    assert code(commit(store, notifications=(told(key="another"),))) == "key-conflict"
    assert code(commit(store, notifications=(told(version=3, key=told().key),))) == "key-conflict"
    assert len(store.notifications("order-1")) == 3


def test_undelivered_notifications_come_by_page(store: Store) -> None:
    for number in (1, 2, 3):
        instance = f"order-{number}"
        begun(store, instance=instance)
        ok(commit(store, instance=instance, notifications=(told(key=f"key-{number}"),)))
    assert [each.instance for each in store.undelivered(most=2)] == ["order-1", "order-2"]
    assert [each.instance for each in store.undelivered(after="order-2")] == ["order-3"]


# What there is to do.


def idle(store: Store, *plans: StepPlan, instance: str) -> None:
    """An instance that nobody has leased."""
    row = begun(store, *plans, instance=instance)
    assert row.owner is not None
    ok(store.release(instance, row.owner, row.lease_version))


def take(store: Store, instance: str, *changes: StepChange, **more: Any) -> None:
    """One commit by somebody who acquires the instance for it and gives it up."""
    row = ok(store.acquire(instance, BOB, lease_ms=LEASE_MS))
    ok(commit(store, *changes, instance=instance, **more))
    ok(store.release(instance, BOB, row.lease_version))


def test_an_instance_is_workable_when_somebody_could_do_something_now(store: Store, clock: Clock) -> None:
    gated = StepPlan("ship", needs_approval=True, approval_deadline_at_ms=3_000)
    wait = StepChange("ship", WAITING, approval_fingerprint="f")
    retry = StepChange("charge", RETRY, timer_at_ms=2_000, error_class="busy")
    idle(store, StepPlan("charge"), instance="a starts")
    idle(store, StepPlan("charge"), instance="b retries")
    take(store, "b retries", started("charge", "b retries"))
    take(store, "b retries", retry)
    idle(store, gated, instance="c waits")
    take(store, "c waits", wait)
    idle(store, StepPlan("charge"), instance="d hands over")
    take(store, "d hands over", started("charge", "d hands over"))
    take(store, "d hands over", StepChange("charge", MANUAL, reason="who knows"))
    idle(store, instance="e ends")
    begun(store, StepPlan("charge"), instance="f leased")
    idle(store, instance="g ended")
    take(store, "g ended", finishes=True)
    assert store.workable() == ("a starts", "e ends")
    waiting = ("b retries", "c waits", "d hands over")
    assert store.open_instances() == ("a starts", *waiting, "e ends", "f leased")
    clock.now_ms = 2_000
    assert store.workable() == ("a starts", "b retries", "e ends")
    clock.now_ms = 3_000
    assert store.workable() == ("a starts", "b retries", "c waits", "e ends")
    decision = operator_decision("1", requester="eve", step="charge", status=RUNNING)
    asked(store, decision, "d hands over")
    assert store.workable(after="b", most=2) == ("b retries", "c waits")
    assert store.workable(after="c waits") == ("d hands over", "e ends")
    clock.now_ms = LONG_MS + 1_000
    assert "f leased" in store.workable()


def test_a_cancel_and_what_is_left_to_undo_make_an_instance_workable(store: Store) -> None:
    idle(store, StepPlan("a"), StepPlan("b", needs_approval=True), instance="order-1")
    take(store, "order-1", started("a", compensation="refund"))
    take(store, "order-1", succeeded("a"), StepChange("b", WAITING, approval_fingerprint="f"))
    assert store.workable() == ()
    number = asked(store, cancellation("1", requester="eve"))
    assert store.workable() == ("order-1",)
    take(store, "order-1", StepChange("b", CANCELLED), move=UNWIND, requests=(number,))
    assert store.workable() == ("order-1",)
    take(store, "order-1", undoing("a"))
    assert store.workable() == ("order-1",)
    take(store, "order-1", StepChange("a", MANUAL, reason="the refund was declined"))
    assert store.workable() == ()


def test_what_a_person_has_to_decide_first_and_what_waits_is_not_workable(store: Store) -> None:
    idle(store, StepPlan("a"), StepPlan("b"), instance="order-1")
    take(store, "order-1", started("a", compensation="refund"), started("b", compensation="refund"))
    take(store, "order-1", succeeded("a"))
    take(store, "order-1", succeeded("b"), move=UNWIND)
    assert store.workable() == ("order-1",)
    take(store, "order-1", undoing("b"))
    take(store, "order-1", replace(undoing("b"), intent=None, timer_at_ms=5_000, error_class="busy"))
    assert store.workable() == ()
    take(store, "order-1", StepChange("b", MANUAL, reason="the refund was declined"))
    assert store.workable() == ()


def test_a_failure_that_is_not_unwound_yet_makes_an_instance_workable(store: Store) -> None:
    idle(store, StepPlan("a"), StepPlan("b", ("a",)), instance="order-1")
    take(store, "order-1", StepChange("a", RUNNING))
    take(store, "order-1", StepChange("a", FAILED))
    assert (store.workable(), store.runnable_steps("order-1")) == (("order-1",), ())


def test_steps_are_runnable_when_all_that_they_depend_on_has_succeeded(store: Store) -> None:
    begun(store, *PLANS)
    assert store.runnable_steps("order-1") == ("charge", "pack")
    ok(commit(store, started("charge"), started("pack")))
    ok(commit(store, succeeded("charge")))
    assert store.runnable_steps("order-1") == ()
    ok(commit(store, succeeded("pack")))
    assert store.runnable_steps("order-1") == ("ship",)
    ok(commit(store, move=UNWIND))
    assert store.runnable_steps("order-1") == ()


def test_timers_of_an_instance_that_unwinds_do_not_fire(store: Store, clock: Clock) -> None:
    begun(store, StepPlan("charge"))
    ok(commit(store, started("charge")))
    ok(commit(store, StepChange("charge", RETRY, timer_at_ms=1_500, error_class="busy")))
    clock.now_ms = 1_500
    assert len(store.due_timers()) == 1
    ok(commit(store, move=UNWIND))
    assert store.due_timers() == ()
    assert step_of(store, "charge").status is RETRY


@pytest.mark.parametrize(
    ("name", "uses"),
    [
        ("open_instances", "open_instances"),
        ("workable", "open_instances"),
        ("unfinished", "instances_by_status"),
        ("due_timers", "timers"),
        ("undelivered", "undelivered"),
        ("inbox", "PRIMARY KEY"),
        ("runnable_steps", "PRIMARY KEY"),
    ],
)
def test_a_query_for_work_is_answered_by_an_index_in_its_order(name: str, uses: str, store: Store) -> None:
    """So that ten thousand unfinished instances, or finished ones, do not slow it down."""
    arguments = {"after": "", "most": 10, "now_ms": 0, "instance": "order-1", "unconsumed": True}
    plan = store._connection.execute(f"explain query plan {getattr(store._statements, name)}", arguments)
    lines = [line for *_, line in plan]
    assert any(uses in line for line in lines[:1]), lines
    assert not [line for line in lines if line.startswith("SCAN") and uses not in line], lines
    assert not [line for line in lines if "ORDER BY" in line], lines
