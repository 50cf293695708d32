"""Workers (§3, §6): the order of an effect, the lease, one instance after the other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fencepost.reference import (
    ArgumentError,
    Effect,
    EffectRequest,
    Ended,
    Evidence,
    Run,
    Step,
    StepStatus,
    observe,
    run_once,
    run_worker,
)

from .support import ADA, BOB, LEASE_MS, Clock, ok
from .worlds import CLASSES, FENCED, FENCED_AND_QUERYABLE, OPAQUE, QUERYABLE, STEPS, Make

# Without faults.


@pytest.mark.parametrize("options", CLASSES.values(), ids=CLASSES)
def test_without_faults_each_effect_happens_once_and_the_instance_finishes(
    options: dict[str, Any], make: Make
) -> None:
    world = make(**options)
    assert world.run(ADA) == Run(Ended.FINISHED, "order-1")
    assert [world.step(step.name).status for step in STEPS] == [StepStatus.SUCCEEDED] * 3
    assert (world.effects("payment"), world.effects("parcel")) == (1, 1)
    stored = world.step().intent
    assert stored is not None
    assert (stored.key, stored.compensation) == ("order-1:charge:payment-v1", "refund")
    assert world.run(BOB) == Run(Ended.NOT_ACQUIRED, "order-1", why="finished")
    assert (world.effects("payment"), world.effects("parcel")) == (1, 1)


def test_the_intent_is_committed_before_the_effect_is_sent_and_the_receipt_after(
    make: Make,
) -> None:
    world = make()
    seen: list[tuple[str, str | None, int]] = []

    def at(point: str) -> None:
        step = observe(world.path).step("order-1", "charge")
        seen.append((point, step.status.value if step else None, world.effects()))

    world.run(ADA, at=at, steps=STEPS[:1])
    assert seen == [
        ("acquired", None, 0),
        ("derived", None, 0),
        ("intent-committed", "running", 0),
        ("sending", "running", 0),
        ("answered", "running", 1),
        ("outcome-committed", "succeeded", 1),
    ]


def test_steps_run_in_order_and_none_after_one_that_did_not_succeed(make: Make) -> None:
    world = make(decline=lambda request: "no stock" if request.resource == "payment" else None)
    assert world.run(ADA) == Run(Ended.STOPPED, "order-1", "charge", "declined")
    step = world.step()
    assert (step.status, step.evidence) == (StepStatus.FAILED, Evidence.RECORDED_REFUSAL)
    assert observe(world.path).step("order-1", "ship") is None
    with world.opened() as (store, _):
        assert store.unfinished() == ()


def test_a_wrong_revision_fails_the_step_at_a_keyed_downstream(make: Make) -> None:
    world = make(revisioned=True)
    effect = Effect("payment", "charge", {}, expected_revision=1)
    assert world.run(ADA, steps=(Step("charge", effect),)).why == "wrong-revision"
    assert world.step().evidence == Evidence.RECORDED_REFUSAL


@pytest.mark.parametrize(
    ("options", "status", "evidence"),
    [
        (FENCED_AND_QUERYABLE, StepStatus.FAILED, Evidence.FENCED_AND_NOT_FOUND),
        (QUERYABLE, StepStatus.MANUAL_INTERVENTION, None),
        (FENCED, StepStatus.MANUAL_INTERVENTION, None),
        (OPAQUE, StepStatus.MANUAL_INTERVENTION, None),
    ],
)
def test_a_refusal_that_is_not_recorded_says_nothing_of_other_requests(
    options: dict[str, Any], status: StepStatus, evidence: Evidence | None, make: Make
) -> None:
    world = make(**options, decline=lambda _: "no stock")
    assert world.run(ADA).ended == Ended.STOPPED
    assert (world.step().status, world.step().evidence) == (status, evidence)


def test_what_is_not_the_instances_own_steps_is_refused(make: Make) -> None:
    world = make(**OPAQUE, decline=lambda _: "no stock")
    world.run(ADA, steps=STEPS[:1])
    world.expire()
    assert world.run(BOB, steps=STEPS[2:]) == Run(Ended.REFUSED, "order-1", None, "unfinished-steps")
    with pytest.raises(ArgumentError, match="two steps have one name"):
        world.run(BOB, steps=(STEPS[0], STEPS[0]))


# The lease, as the worker counts it.


def test_no_effect_starts_after_the_lease_by_the_workers_own_clock(make: Make) -> None:
    """The store's clock stands still, so the store would still take it for the owner."""
    world = make()
    own = Clock(0)

    def at(point: str) -> None:
        if point == "intent-committed":
            own.now_ms += LEASE_MS

    assert world.run(ADA, at=at, monotonic_ms=own) == Run(Ended.LOST, "order-1", None, "lease-expired")
    assert world.effects() == 0


def test_a_lease_counts_from_before_it_was_asked_for(make: Make) -> None:
    world = make()
    own = Clock(0)

    def slow(name: str, call: Callable[[], Any]) -> Any:
        if name == "acquire":
            answer = call()
            own.now_ms += LEASE_MS
            return answer
        return call()

    assert world.run(ADA, at_store=slow, monotonic_ms=own).ended == Ended.LOST
    assert world.effects() == 0


def test_a_lease_is_renewed_when_half_of_it_is_over(make: Make) -> None:
    world = make()
    own = Clock(0)
    calls: list[str] = []

    def look(name: str, call: Callable[[], Any]) -> Any:
        calls.append(name)
        return call()

    def at(point: str) -> None:
        if point == "intent-committed":
            own.now_ms += LEASE_MS * 3 // 4
            world.clock.now_ms += LEASE_MS * 3 // 4

    assert world.run(ADA, at=at, at_store=look, monotonic_ms=own).ended == Ended.FINISHED
    assert calls.count("renew") == 2


def test_no_effect_starts_after_a_refused_renewal(make: Make) -> None:
    world = make()
    own = Clock(0)

    def at(point: str) -> None:
        if point == "intent-committed":
            own.now_ms += LEASE_MS // 2
            world.expire()

    assert world.run(ADA, at=at, monotonic_ms=own) == Run(Ended.LOST, "order-1", None, "lease-expired")
    assert world.effects() == 0


# Many instances.


def test_a_worker_takes_one_instance_after_the_other_until_none_is_left(
    make: Make,
) -> None:
    world = make(decline=lambda request: "no stock" if request.instance == "order-3" else None)
    with world.opened() as (store, downstream):
        for number in range(2, 6):
            ok(store.create(f"order-{number}"))

        def work(**more: Any) -> tuple[Run, ...]:
            options: dict[str, Any] = {"stop": lambda: False, "most": 100} | more
            return run_worker(
                store,
                downstream,
                ADA,
                lambda _: STEPS,
                lease_ms=LEASE_MS,
                monotonic_ms=world.clock,
                **options,
            )

        assert [run.instance for run in work(most=1)] == ["order-1"]
        stops = iter([False, True])
        assert [run.instance for run in work(stop=lambda: next(stops))] == ["order-2"]
        assert [run.ended for run in work()] == [Ended.STOPPED, Ended.FINISHED, Ended.FINISHED]
        assert work() == ()


def test_a_worker_waits_after_a_round_without_an_end_and_stops_at_most(make: Make) -> None:
    world = make()
    waits: list[int] = []
    with world.opened() as (store, downstream):
        ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS))

        def wait() -> None:
            waits.append(1)
            if len(waits) == 3:
                world.expire()

        runs = run_worker(
            store,
            downstream,
            ADA,
            lambda _: STEPS,
            stop=lambda: False,
            most=10,
            lease_ms=LEASE_MS,
            monotonic_ms=world.clock,
            wait=wait,
        )
    assert [run.ended for run in runs] == [Ended.NOT_ACQUIRED] * 3 + [Ended.FINISHED]


def test_requests_carry_what_was_stored(make: Make) -> None:
    world = make()
    sent: list[EffectRequest] = []
    with world.opened() as (store, downstream):

        @dataclass
        class Looking:
            capabilities = downstream.capabilities

            def apply(self, request: EffectRequest) -> Any:
                sent.append(request)
                return downstream.apply(request)

        run_once(
            store,
            Looking(),  # type: ignore[arg-type]
            ADA,
            "order-1",
            STEPS[:1],
            lease_ms=LEASE_MS,
            monotonic_ms=world.clock,
        )
        stored = ok(store.read("order-1")).steps[0].intent
    assert stored is not None
    (request,) = sent
    for name in ("key", "fingerprint", "resource", "operation", "parameters", "expected_revision"):
        assert getattr(request, name) == getattr(stored, name)
    assert request.token == 1
