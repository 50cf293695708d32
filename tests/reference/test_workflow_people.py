"""People: approvals, and an operator's decisions about what nobody else can settle (§5, §11, §12)."""

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
    StepStatus,
    Unknown,
    Workflow,
    approval,
    approve,
    cancel,
    decide,
    events,
    observe,
    observe_downstream,
    reject,
    status,
)

from .orders import NAME, MakeOrders, Orders, Points, maker
from .support import ADA, BOB, code, ok
from .worlds import FENCED_AND_QUERYABLE, KEYED, OPAQUE, QUERYABLE, DeathError


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeOrders]:
    with maker(tmp_path) as made:
        yield made


def gated(deadline_ms: int | None = None, cents: Callable[[], int] = lambda: 500) -> Workflow:
    made = Workflow("gated", version="1")

    @made.step(approval=Approval(deadline_ms=deadline_ms))
    def pay(_: Context) -> Effect:
        return Effect("payment", "pay", {"cents": cents()})

    return made


def test_nothing_happens_before_the_approval_and_one_approval_serves_once(make: MakeOrders) -> None:
    workflow = gated()
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    assert (world.statuses(), world.effects()) == ({"pay": "waiting_approval"}, [])
    with world.opened() as (store, _):
        assert ok(status(store, NAME)).waits_for == "approval of pay"
        first = ok(approve(store, NAME, step="pay", requester="eve"))
        assert ok(approve(store, NAME, step="pay", requester="eve")) == first
        seen = ok(status(store, NAME))
        assert (seen.waits_for, seen.next) == ("", "approved pay")
        assert seen.lines[-1] == "a worker can go on: approved pay"
    world.work(BOB, workflows=(workflow,))
    assert (world.row().status, world.effects()) == ("succeeded", ["payment pay"])
    assert world.step("pay").approved_by == first.number
    with world.opened() as (store, _):
        assert code(approve(store, NAME, step="pay", requester="eve", request_id="more")) == "finished"


def test_a_rejected_step_is_cancelled_and_what_came_before_is_undone(make: MakeOrders) -> None:
    world = make()
    while world.row().status == "running" and world.statuses()["ship"] != "waiting_approval":
        world.work(ADA)
        world.clock.now_ms += 1_000
    with world.opened() as (store, _):
        ok(reject(store, NAME, step="ship", requester="eve", reason="no such street"))
    world.work(ADA)
    assert world.row().status == "cancelled"
    assert world.row().unwinding_cause == "ship: rejected by eve: no such street"
    assert world.effects() == ["stock reserve", "payment charge", "payment refund", "stock put back"]


def test_an_approval_recorded_in_time_is_honoured_however_late(make: MakeOrders) -> None:
    workflow = gated(deadline_ms=100)
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    world.clock.now_ms += 99
    with world.opened() as (store, _):
        ok(approve(store, NAME, step="pay", requester="eve"))
    world.clock.now_ms += 10_000
    world.work(ADA, workflows=(workflow,))
    assert (world.row().status, world.effects()) == ("succeeded", ["payment pay"])


def test_an_approval_that_comes_too_late_is_refused_and_the_step_fails(make: MakeOrders) -> None:
    workflow = gated(deadline_ms=100)
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    world.clock.now_ms += 100
    with world.opened() as (store, _):
        assert code(approve(store, NAME, step="pay", requester="eve")) == "deadline-passed"
    world.work(ADA, workflows=(workflow,))
    assert (world.row().status, world.statuses(), world.effects()) == ("failed", {"pay": "failed"}, [])


def test_a_decision_on_something_else_neither_starts_a_step_nor_keeps_it_waiting(make: MakeOrders) -> None:
    workflow = gated(deadline_ms=100)
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    with world.opened() as (store, _):
        ok(store.request(NAME, approval("other", requester="eve", step="pay", fingerprint="another")))
    assert world.work(ADA, workflows=(workflow,)) == []
    world.clock.now_ms += 100
    world.work(ADA, workflows=(workflow,))
    assert (world.row().status, world.row().unwinding_cause) == ("cancelled", "pay: nobody decided in time")


def test_an_approval_is_not_applied_to_other_parameters(make: MakeOrders) -> None:
    cents = [500]
    workflow = gated(cents=lambda: cents[0])
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    with world.opened() as (store, _):
        ok(approve(store, NAME, step="pay", requester="eve"))
    cents[0] = 5_000
    world.work(ADA, workflows=(workflow,))
    assert (world.row().status, world.effects()) == ("cancelled", [])
    assert world.step("pay").reason == "what was approved is not what it would do now"


def test_an_approved_step_is_sent_again_under_the_approval_that_it_has(make: MakeOrders) -> None:
    for options in (KEYED, FENCED_AND_QUERYABLE):
        workflow = gated()
        world = make(workflow=workflow, **options)
        world.work(ADA, workflows=(workflow,))
        with world.opened() as (store, _):
            ok(approve(store, NAME, step="pay", requester="eve"))
        with pytest.raises(DeathError):
            world.work(ADA, at=dying("sending"), workflows=(workflow,))
        world.clock.now_ms += 1_000
        world.work(BOB, workflows=(workflow,))
        assert (world.row().status, world.effects()) == ("succeeded", ["payment pay"])
        assert world.step("pay").attempt == 2


def test_a_result_is_not_changed_after_its_approval_either(make: MakeOrders) -> None:
    grams = [300]
    workflow = Workflow("weigh", version="1")
    workflow.step(name="weigh", approval=Approval())(lambda _: grams[0])
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    with world.opened() as (store, _):
        ok(approve(store, NAME, step="weigh", requester="eve"))
    with pytest.raises(DeathError):
        world.work(ADA, at=dying("after: weigh: started"), workflows=(workflow,))
    world.clock.now_ms += 1_000
    grams[0] = 5_000
    world.work(BOB, workflows=(workflow,))
    assert (world.row().status, world.step("weigh").error_class) == ("failed", "changed")


def dying(point: str) -> Callable[[str], None]:
    def at(name: str) -> None:
        if name == point:
            raise DeathError

    return at


# An operator.


def handed_over(make: MakeOrders, options: dict[str, Any], *, point: str = "sending") -> Orders:
    """An order whose first step waits for a person: ada died at a point, or nobody understood the answer."""
    world = make(**options)
    if options.get("keyed", True):
        conflict = Refused("key-conflict", None)

        def confuse(name: str, call: Callable[[], Any]) -> Any:
            if name != "apply":
                return call()
            if point == "answered":
                call()
            return conflict

        world.work(ADA, at_downstream=confuse)
    else:
        with pytest.raises(DeathError):
            world.work(ADA, at=dying(point))
        world.clock.now_ms += 1_000
        world.work(BOB)
    assert world.step("reserve").status is StepStatus.MANUAL_INTERVENTION
    return world


def decided(world: Orders, to: StepStatus, *, step: str = "reserve", **more: Any) -> None:
    with world.opened() as (store, _):
        ok(decide(store, NAME, step=step, status=to, requester="eve", request_id=f"to {to}", reason="seen"))
    world.work(BOB, **more)


BOTH = pytest.mark.parametrize("options", [KEYED, OPAQUE], ids=["keyed", "opaque"])


@BOTH
def test_what_waits_for_a_person_is_left_alone_until_somebody_decides(
    options: dict[str, Any], make: MakeOrders
) -> None:
    world = handed_over(make, options)
    before = world.row()
    assert world.work(BOB) == []
    assert world.row() == before
    with world.opened() as (store, _):
        assert ok(status(store, NAME)).waits_for.startswith("a person: reserve: ")


@BOTH
def test_an_operator_lets_the_same_intent_run_again(options: dict[str, Any], make: MakeOrders) -> None:
    world = handed_over(make, options)
    decided(world, StepStatus.RUNNING)
    assert world.step("reserve").status is StepStatus.SUCCEEDED
    assert world.finish(BOB).status == "succeeded"
    assert world.effects().count("stock reserve") == 1


@BOTH
def test_a_success_by_an_operators_word_is_marked_attested(options: dict[str, Any], make: MakeOrders) -> None:
    world = handed_over(make, options)
    decided(world, StepStatus.SUCCEEDED)
    step = world.step("reserve")
    assert (step.status, step.attested, step.receipt) == ("succeeded", True, None)
    kinds = {record.kind for record in observe_downstream(world.ledger).records if "reserve" in record.key}
    assert kinds == ({"tombstone"} if options == KEYED else set())


@BOTH
@pytest.mark.parametrize("to", [StepStatus.FAILED, StepStatus.CANCELLED])
def test_an_operator_ends_a_step_that_did_not_happen(
    options: dict[str, Any], to: StepStatus, make: MakeOrders
) -> None:
    world = handed_over(make, options)
    decided(world, to)
    step = world.step("reserve")
    assert (step.status, step.attested) == (to, options == OPAQUE)
    assert step.evidence == ("tombstoned" if options == KEYED else None)
    assert world.row().status == to
    assert world.effects() == []


def test_after_the_tombstone_a_late_request_is_refused(make: MakeOrders) -> None:
    world = handed_over(make, KEYED)
    decided(world, StepStatus.FAILED)
    intent = world.step("reserve").intent
    assert intent is not None
    with world.opened() as (_, downstream):
        late = downstream.apply(
            EffectRequest(
                NAME, intent.resource, intent.operation, intent.parameters, intent.fingerprint, intent.key, 99
            )
        )
    assert isinstance(late, Refused)
    assert late.code == "tombstoned"


def test_what_happened_is_not_called_failed_and_its_receipt_is_taken_over(make: MakeOrders) -> None:
    world = handed_over(make, KEYED, point="answered")
    assert world.effects() == ["stock reserve"]
    decided(world, StepStatus.FAILED)
    assert world.step("reserve").status is StepStatus.MANUAL_INTERVENTION
    decided(world, StepStatus.SUCCEEDED)
    step = world.step("reserve")
    assert (step.status, step.receipt, step.attested) == ("succeeded", "receipt-1", False)


def test_a_decision_that_is_contradicted_is_not_looked_at_again_and_leaves_the_receipt_to_be_seen(
    make: MakeOrders,
) -> None:
    world = handed_over(make, KEYED, point="answered")
    decided(world, StepStatus.FAILED)
    before = world.row()
    with world.opened() as (store, _):
        assert store.workable() == ()
        decision, late = store.inbox(NAME, unconsumed=True)
    assert (decision.request.decision, late.request.receipt) == ("failed", "receipt-1")
    assert world.work(BOB) == []
    assert world.row() == before
    decided(world, StepStatus.CANCELLED)
    assert (world.work(ADA), world.row()) == ([], before)
    decided(world, StepStatus.RUNNING)
    step = world.step("reserve")
    assert (step.status, step.receipt, step.attested) == ("succeeded", "receipt-1", False)


@pytest.mark.parametrize("to", [StepStatus.COMPENSATED, StepStatus.RUNNING])
def test_a_decision_that_cannot_be_honoured_is_no_work(to: StepStatus, make: MakeOrders) -> None:
    world = handed_over(make, OPAQUE)
    with world.opened() as (store, _):
        ok(cancel(store, NAME, requester="zoe"))
        world.work(BOB)
        before = world.row()
        ok(decide(store, NAME, step="reserve", status=to, requester="eve", request_id="decision"))
        assert store.workable() == ()
        assert world.work(BOB) == []
        assert world.row() == before


def test_an_approval_that_is_not_needed_any_more_is_no_work(make: MakeOrders) -> None:
    workflow = gated()
    pay = workflow.steps["pay"]
    pay.retry = Retry(delay_ms=1_000)
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    with world.opened() as (store, _):
        for who in ("eve", "eli"):
            ok(approve(store, NAME, step="pay", requester=who))

        def lose(name: str, call: Callable[[], Any]) -> Any:
            return call() if name != "apply" else Unknown("no connection")

        world.work(ADA, at_downstream=lose, workflows=(workflow,))
        assert world.step("pay").status is StepStatus.RETRY_SCHEDULED
        assert store.workable() == ()


def test_what_a_step_cannot_become_is_not_even_tried(make: MakeOrders) -> None:
    world = handed_over(make, OPAQUE)
    before = world.row()
    decided(world, StepStatus.COMPENSATED)
    assert world.row() == before


def test_what_is_to_run_again_is_asked_for_first_where_asking_tells(make: MakeOrders) -> None:
    for options in (FENCED_AND_QUERYABLE, QUERYABLE):
        world = make(**options)

        def confuse(name: str, call: Callable[[], Any]) -> Any:
            return (call(), Refused("key-expired", None))[1] if name == "apply" else call()

        world.work(ADA, at_downstream=confuse)
        assert world.step("reserve").status is StepStatus.MANUAL_INTERVENTION
        decided(world, StepStatus.RUNNING)
        assert (world.step("reserve").status, world.step("reserve").receipt) == ("succeeded", "receipt-1")
        assert world.effects().count("stock reserve") == 1


def test_at_a_fenced_and_queryable_downstream_the_fence_goes_before_the_decision(make: MakeOrders) -> None:
    world = make(**FENCED_AND_QUERYABLE)
    world.work(
        ADA,
        at_downstream=lambda name, call: Refused("key-expired", None) if name == "apply" else call(),
    )
    assert world.step("reserve").status is StepStatus.MANUAL_INTERVENTION
    decided(world, StepStatus.FAILED)
    assert world.step("reserve").evidence == "fenced-and-not-found"
    assert observe_downstream(world.ledger).fence(NAME, "stock") == world.row().lease_version


@BOTH
def test_after_a_crash_anywhere_within_a_decision_it_is_honoured_once(
    options: dict[str, Any], make: MakeOrders
) -> None:
    for to in (StepStatus.SUCCEEDED, StepStatus.FAILED):
        for number in range(1, 12):
            world = handed_over(make, options)
            try:
                decided(world, to, at=Points(number))
            except DeathError:
                world.clock.now_ms += 1_000
                world.work(ADA)
            assert world.step("reserve").status == to, (to, number)
            (request,) = observe(world.path).requests
            assert request.consumed_by is not None


def test_a_cancel_waits_for_the_person_and_is_honoured_then(make: MakeOrders) -> None:
    world = handed_over(make, OPAQUE)
    with world.opened() as (store, _):
        ok(cancel(store, NAME, requester="zoe"))
    world.work(BOB)
    assert world.row().status == "unwinding"
    assert world.statuses()["charge"] == "cancelled"
    decided(world, StepStatus.RUNNING)
    assert world.step("reserve").status is StepStatus.MANUAL_INTERVENTION
    decided(world, StepStatus.SUCCEEDED)
    assert world.row().status == "cancelled"
    assert world.statuses()["reserve"] == "compensated"


def test_what_is_asked_of_nobody_or_nothing_is_refused(make: MakeOrders) -> None:
    world = make()
    with world.opened() as (store, _):
        for name, step, expected in ((NAME, "sell", "no-such-step"), ("nobody", "ship", "no-such-instance")):
            answer = decide(
                store, name, step=step, status=StepStatus.FAILED, requester="eve", request_id="decision"
            )
            assert code(answer) == expected
        assert code(status(store, "nobody")) == "no-such-instance"
        assert events(store, "nobody") == ()


def test_the_log_reads_as_what_happened(make: MakeOrders) -> None:
    workflow = Workflow("short", version="1")
    workflow.step(name="pay", retry=Retry())(lambda _: Effect("payment", "pay", {}))
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    with world.opened() as (store, _):
        assert events(store, NAME) == (
            "  1  pay: started  |  by ada/0 under lease 1  |  pay running, attempt 1",
            "  2  pay: succeeded  |  by ada/0 under lease 1  |  pay succeeded, attempt 1, receipt-1",
            "  3  finished  |  by ada/0 under lease 1",
        )
        assert ok(status(store, NAME)).lines == (f"{NAME}: succeeded", "  pay: succeeded")
