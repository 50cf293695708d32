"""Retries, timers, deadlines and lost answers of workflows, forward and back (§9, §12)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    Approval,
    Context,
    Effect,
    EffectRequest,
    Refused,
    Retry,
    RetryableError,
    StepStatus,
    StoreError,
    Workflow,
    approve,
    observe_downstream,
)

from .orders import NAME, THRICE, MakeOrders, Points, maker, no_parcels, single
from .support import ADA, BOB, LEASE_MS, ok
from .worlds import FENCED_AND_QUERYABLE, KEYED, OPAQUE, QUERYABLE, DeathError, lose_the_answer


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeOrders]:
    with maker(tmp_path) as made:
        yield made


def losing(times: int, *, applied: bool) -> Callable[[str, Callable[[], Any]], Any]:
    """A downstream whose first answers are lost, after the effect or before it."""
    left = [times]

    def around(name: str, call: Callable[[], Any]) -> Any:
        if name != "apply" or not left[0]:
            return call()
        left[0] -= 1
        if applied:
            return lose_the_answer(call)
        raise StoreError("no connection")

    return around


@pytest.mark.parametrize("options", [KEYED, FENCED_AND_QUERYABLE], ids=["keyed", "fenced"])
@pytest.mark.parametrize("applied", [True, False])
def test_a_lost_answer_is_followed_by_the_same_intent_when_its_timer_is_due(
    options: dict[str, Any], applied: bool, make: MakeOrders
) -> None:
    world = make(workflow=THRICE, **options)
    world.work(ADA, at_downstream=losing(1, applied=applied), workflows=(THRICE,))
    step = world.step("pay")
    assert (step.status, step.attempt, step.error_class) == ("retry_scheduled", 1, "unknown")
    assert step.timer_at_ms == world.clock.now_ms + 1_000
    before = world.row().lease_version
    world.clock.now_ms += 999
    assert world.work(BOB, workflows=(THRICE,)) == []
    assert world.row().lease_version == before
    world.clock.now_ms += 1
    world.work(BOB, workflows=(THRICE,))
    assert world.row().status == "succeeded"
    assert world.step("pay").attempt == (1 if applied and options else 2)
    assert world.effects() == ["payment pay"]


@pytest.mark.parametrize("options", [KEYED, FENCED_AND_QUERYABLE], ids=["keyed", "fenced"])
def test_when_the_attempts_are_used_up_the_effect_is_prevented_and_the_step_fails(
    options: dict[str, Any], make: MakeOrders
) -> None:
    world = make(workflow=THRICE, **options)
    lost = losing(99, applied=False)
    for _ in range(3):
        world.work(ADA, at_downstream=lost, workflows=(THRICE,))
        world.clock.now_ms += 60_000
    step = world.step("pay")
    assert (step.status, step.attempt) == ("failed", 3)
    assert step.evidence == ("fenced-and-not-found" if options else "tombstoned")
    assert world.row().status == "failed"
    assert world.effects() == []


def test_an_effect_that_happened_counts_though_the_attempts_are_used_up(make: MakeOrders) -> None:
    world = make(workflow=THRICE)
    lost = losing(99, applied=True)
    for _ in range(3):
        world.work(ADA, at_downstream=lost, workflows=(THRICE,))
        world.clock.now_ms += 60_000
    assert (world.step("pay").status, world.row().status) == ("succeeded", "succeeded")
    assert world.effects() == ["payment pay"]


def test_at_an_opaque_downstream_a_lost_answer_is_for_a_person(make: MakeOrders) -> None:
    world = make(workflow=THRICE, **OPAQUE)
    (run,) = world.work(ADA, at_downstream=losing(1, applied=True), workflows=(THRICE,))
    assert run.why.startswith("a person: pay: unknown: StoreError: the connection is lost")
    assert world.step("pay").status is StepStatus.MANUAL_INTERVENTION


def test_where_only_a_receipt_settles_anything_nothing_is_sent_twice(make: MakeOrders) -> None:
    """The answer and the query after it are lost: later only the query is repeated."""
    world = make(workflow=THRICE, **QUERYABLE)

    def around(name: str, call: Callable[[], Any]) -> Any:
        if name == "query":
            raise StoreError("no connection")
        return lose_the_answer(call)

    world.work(ADA, at_downstream=around, workflows=(THRICE,))
    assert world.step("pay").status is StepStatus.RETRY_SCHEDULED
    world.clock.now_ms += 1_000
    world.work(ADA, at_downstream=around, workflows=(THRICE,))
    assert world.step("pay").status is StepStatus.RETRY_SCHEDULED
    world.clock.now_ms += 1_000
    world.work(BOB, workflows=(THRICE,))
    assert (world.row().status, world.effects()) == ("succeeded", ["payment pay"])


def test_what_a_step_raises_may_say_anything(make: MakeOrders) -> None:
    workflow = raising(ValueError("\ud800" * 5_000))
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    assert world.row().status == "failed"


def test_takeovers_count_as_attempts(make: MakeOrders) -> None:
    world = make(workflow=THRICE)

    def die(point: str) -> None:
        if point == "sending":
            raise DeathError

    for attempt in range(1, 4):
        with pytest.raises(DeathError):
            world.work(ADA, at=die, workflows=(THRICE,))
        assert world.step("pay").attempt == attempt
        world.clock.now_ms += LEASE_MS
    world.work(BOB, workflows=(THRICE,))
    assert (world.step("pay").status, world.step("pay").evidence) == ("failed", "tombstoned")
    assert world.effects() == []


def test_an_answer_in_progress_is_retried(make: MakeOrders) -> None:
    world = make(workflow=THRICE)
    answers = [Refused("in-progress", None)]
    world.work(
        ADA,
        at_downstream=lambda name, call: answers.pop() if name == "apply" and answers else call(),
        workflows=(THRICE,),
    )
    assert world.step("pay").error_class == "in-progress"
    world.clock.now_ms += 1_000
    world.work(ADA, workflows=(THRICE,))
    assert world.step("pay").attempt == 2
    assert world.row().status == "succeeded"


# What the function of a step raises.


def raising(error: Exception, *, approval: Approval | None = None, attempts: int = 2) -> Workflow:
    made = Workflow("raising", version="1")

    @made.step(retry=Retry(attempts=attempts, delay_ms=10), approval=approval)
    def think(_: Context) -> str:
        raise error

    @made.step(after=("think",))
    def go_on(_: Context) -> str:
        return "never"

    return made


def test_what_a_step_raises_is_its_failure_and_not_the_workers(make: MakeOrders) -> None:
    workflow = raising(ValueError("no such item"))
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    row = world.row()
    assert (row.status, row.unwinding_cause) == ("failed", "think: ValueError: no such item")
    assert (world.step("think").error_class, world.step("think").attempt) == ("ValueError", 1)
    assert world.statuses() == {"think": "failed", "go_on": "cancelled"}


def test_a_retryable_error_is_retried_within_the_budget(make: MakeOrders) -> None:
    workflow = raising(RetryableError("busy"))
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    assert world.step("think").status is StepStatus.RETRY_SCHEDULED
    world.clock.now_ms += 10
    world.work(ADA, workflows=(workflow,))
    assert (world.step("think").status, world.step("think").attempt) == ("failed", 2)
    assert world.step("think").error_class == "busy"


def test_a_gated_step_whose_function_fails_before_its_approval_is_cancelled_since_it_never_began(
    make: MakeOrders,
) -> None:
    workflow = raising(ValueError("no such item"), approval=Approval())
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    assert (world.row().status, world.step("think").error_class) == ("cancelled", "ValueError")


@pytest.mark.parametrize("error", [ValueError("gone"), RetryableError("busy")], ids=["final", "retryable"])
def test_a_gated_step_whose_function_fails_after_its_approval_has_failed_wherever_a_worker_dies(
    error: Exception, make: MakeOrders
) -> None:
    """The approval is spent, no intent was committed: nothing has happened, which is a failure (§5, §6)."""
    for number in range(1, 12):
        broken = [False]
        workflow = Workflow("gated", version="1")

        @workflow.step(approval=Approval(), retry=Retry(delay_ms=10))
        def pay(_: Context, broken: list[bool] = broken) -> Effect:
            if broken[0]:
                raise error
            return Effect("payment", "pay", {})

        world = make(workflow=workflow)
        world.work(ADA, workflows=(workflow,))
        with world.opened() as (store, _):
            ok(approve(store, NAME, step="pay", requester="eve"))
        broken[0] = True
        points = Points(number)
        try:
            world.work(ADA, at=points, workflows=(workflow,))
        except DeathError:
            started = world.step("pay").status is StepStatus.RUNNING
            broken[0] = not started  # it could decide again; its approval is spent all the same
            world.clock.now_ms += 1_000
            world.work(BOB, workflows=(workflow,))
        assert (world.row().status, world.statuses()) == ("failed", {"pay": "failed"}), points.seen
        assert (world.step("pay").attempt, world.effects()) == (1, [])
        with world.opened() as (store, _):
            assert [each.consumed_by is not None for each in store.inbox(NAME)] == [True]


def test_an_effect_on_another_resource_than_declared_is_not_sent(make: MakeOrders) -> None:
    workflow = single(Retry(), resource="parcel")
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    assert (world.step("pay").error_class, world.effects()) == ("wrong-resource", [])


def test_what_json_does_not_have_is_the_steps_failure(make: MakeOrders) -> None:
    workflow = Workflow("sets", version="1")
    workflow.step(name="give")(lambda _: {1, 2})
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    assert (world.row().status, world.step("give").error_class) == ("failed", "ArgumentError")


# Deadlines.


@pytest.mark.parametrize(
    "more", [{"deadline_ms": 500}, {"instance_deadline_ms": 500}], ids=["step", "instance"]
)
def test_after_its_deadline_a_step_does_not_start_again(more: dict[str, Any], make: MakeOrders) -> None:
    workflow = single(Retry(delay_ms=1_000), **more)
    world = make(workflow=workflow)
    world.work(ADA, at_downstream=losing(1, applied=False), workflows=(workflow,))
    world.clock.now_ms += 1_000
    world.work(ADA, workflows=(workflow,))
    assert world.step("pay").evidence == "tombstoned"
    assert world.row().status == ("failed" if "deadline_ms" in more else "cancelled")
    assert world.effects() == []


@pytest.mark.parametrize(
    "more", [{"deadline_ms": 500}, {"instance_deadline_ms": 500}], ids=["step", "instance"]
)
def test_after_its_deadline_a_step_does_not_start_at_all(more: dict[str, Any], make: MakeOrders) -> None:
    workflow = single(Retry(), **more)
    world = make(workflow=workflow)
    world.clock.now_ms += 500
    world.work(ADA, workflows=(workflow,))
    assert (world.row().status, world.effects()) == ("cancelled", [])
    assert "deadline" in str(world.row().unwinding_cause)


# Compensations.


def refusing(request: EffectRequest) -> str | None:
    return "closed" if request.operation == "refund" else no_parcels(request)


def test_a_declined_compensation_waits_for_a_person_and_nothing_else_is_undone(make: MakeOrders) -> None:
    world = make(decline=refusing)
    with pytest.raises(AssertionError, match="not finished"):
        world.finish(ADA, decides=False)
    step = world.step("charge")
    assert (step.status, step.from_status) == ("manual_intervention", "compensating")
    assert step.reason == "its compensation failed: declined: closed"
    assert world.step("reserve").status is StepStatus.SUCCEEDED
    assert world.finish(BOB).status == "failed"
    assert (world.step("charge").status, world.step("charge").attested) == ("compensated", True)
    assert world.effects() == ["stock reserve", "payment charge", "stock put back"]


@pytest.mark.parametrize("options", [KEYED, FENCED_AND_QUERYABLE], ids=["keyed", "fenced"])
def test_a_compensation_is_retried_under_its_key_and_then_waits_for_a_person(
    options: dict[str, Any], make: MakeOrders
) -> None:
    world = make(**options, decline=no_parcels)

    def around(name: str, call: Callable[[], Any]) -> Any:
        if name == "apply" and world.step("charge").status == "compensating":
            raise StoreError("no connection")
        return call()

    with pytest.raises(AssertionError, match="not finished"):
        world.finish(ADA, at_downstream=around, decides=False)
    step = world.step("charge")
    assert (step.status, step.undo_attempt) == ("manual_intervention", 5)
    assert step.undo is not None
    tombstone = observe_downstream(world.ledger).record(step.undo.key)
    assert tombstone is None
    assert world.finish(BOB).status == "failed"
    tombstone = observe_downstream(world.ledger).record(step.undo.key)
    assert (tombstone is not None and tombstone.kind == "tombstone") == (options == KEYED)


def test_a_compensation_that_cannot_be_made_stops_the_instance_until_a_person_resumes_it(
    make: MakeOrders,
) -> None:
    workflow = Workflow("undo", version="1")
    broken = [True]

    @workflow.step()
    def pay(_: Context) -> Effect:
        return Effect("payment", "pay", {})

    @pay.compensation
    def refund(_: Context) -> Effect:
        if broken[0]:
            raise LookupError("which account?")
        return Effect("payment", "refund", {})

    @workflow.step(after=("pay",))
    def fail(_: Context) -> None:
        raise ValueError

    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    cause = "the compensation of pay cannot be made: LookupError: which account?"
    assert (world.row().status, world.row().manual_cause) == ("manual_intervention", cause)
    broken[0] = False
    assert world.work(ADA, workflows=(workflow,)) == []
    world.resume()
    world.work(BOB, workflows=(workflow,))
    assert (world.row().status, world.effects()) == ("failed", ["payment pay", "payment refund"])


def test_a_request_on_its_way_does_not_land_after_the_same_owner_asked_what_became_of_it(
    make: MakeOrders,
) -> None:
    """Its own first request is held up; before it sends again it takes a new lease, and fences that off."""
    workflow = single(Retry(attempts=3, delay_ms=0))
    world = make(workflow=workflow, **FENCED_AND_QUERYABLE)
    held: list[Callable[[], Any]] = []

    def hold_the_first(name: str, call: Callable[[], Any]) -> Any:
        if name == "apply" and not held:
            held.append(call)
            raise StoreError("no answer in time")
        return call()

    world.work(ADA, at_downstream=hold_the_first, workflows=(workflow,))
    assert (world.row().status, world.row().lease_version) == ("succeeded", 2)
    late = held[0]()
    assert isinstance(late, Refused)
    assert late.code == "stale-token"
    assert world.effects() == ["payment pay"]
