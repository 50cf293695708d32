"""No instance and no downstream keeps a worker from the other instances (§2, §7, §9)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    ArgumentError,
    Effect,
    EffectRequest,
    Ended,
    HandleError,
    Held,
    Ok,
    Receipt,
    Refused,
    Run,
    StepStatus,
    StoreError,
    Unknown,
    Workflow,
    decide,
    observe_downstream,
    open_downstream,
    open_store,
    run_worker,
    work,
)
from fencepost.reference.flows import UNANSWERED

from .orders import NAME, MakeOrders, maker
from .support import ADA, BOB, LEASE_MS, Clock, ok, request
from .trouble import HEALTHY, LAST, ONCE, OddError, log, raises, raising, rounds, senseless
from .worlds import (
    CLASSES,
    FENCED_AND_QUERYABLE,
    KEYED,
    OPAQUE,
    QUERYABLE,
    STEPS,
    Between,
    lose_the_answer,
)

KINDS = pytest.mark.parametrize("options", CLASSES.values(), ids=CLASSES)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeOrders]:
    with maker(tmp_path) as made:
        yield made


# Requests that make no sense.


EVIDENCE = {
    "keyed and fenced": "tombstoned",
    "keyed": "tombstoned",
    "fenced and queryable": "fenced-and-not-found",
    "queryable": "unsent",
    "fenced": "unsent",
    "opaque": "unsent",
}


@pytest.mark.parametrize("kind", CLASSES)
def test_a_step_whose_request_makes_no_sense_fails_and_the_log_says_why(kind: str, make: MakeOrders) -> None:
    world = make(workflow=ONCE, **CLASSES[kind])
    rounds(world, ONCE, at_downstream=senseless)
    step = world.step("pay")
    assert (step.status, step.attempt, step.evidence) == ("failed", 1, EVIDENCE[kind])
    assert (step.error_class, step.reason) == ("malformed", "malformed: the request has 70,000 bytes")
    assert (world.row().status, world.effects()) == ("failed", [])
    assert "malformed: the request has 70,000 bytes" in log(world)


@KINDS
def test_an_effect_that_happened_before_is_not_called_undone_by_a_request_that_makes_no_sense(
    options: dict[str, Any], make: MakeOrders
) -> None:
    """The first answer was lost, and only then the client refuses the request."""
    world = make(workflow=ONCE, **options)
    calls: list[str] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        calls.append(name)
        if name == "apply" and calls.count("apply") == 1:
            return lose_the_answer(call)
        return senseless(name, call)

    rounds(world, ONCE, at_downstream=around)
    known = options.get("keyed", True) or options.get("queryable", True)
    assert world.step("pay").status == ("succeeded" if known else "manual_intervention")
    assert world.effects() == ["payment pay"]


@pytest.mark.parametrize("options", [QUERYABLE, OPAQUE], ids=["queryable", "opaque"])
def test_what_an_earlier_owner_may_have_sent_is_for_a_person_if_it_makes_no_sense_now(
    options: dict[str, Any], make: MakeOrders
) -> None:
    """It never happened, but nobody here can know that: the intent was not committed under this lease."""
    world = make(workflow=ONCE, **options)
    with pytest.raises(KeyboardInterrupt):
        world.work(BOB, workflows=(ONCE,), at=interrupted)
    world.clock.now_ms += LEASE_MS
    rounds(world, ONCE, at_downstream=senseless)
    assert world.step("pay").status is StepStatus.MANUAL_INTERVENTION


def interrupted(point: str) -> None:
    if point == "sending":
        raise KeyboardInterrupt


def test_an_effect_that_a_person_has_sent_again_is_not_called_unsent(make: MakeOrders) -> None:
    """It happened the first time, the answer was lost, and the second request makes no sense."""
    world = make(workflow=ONCE, **OPAQUE)
    world.work(
        ADA,
        workflows=(ONCE,),
        at_downstream=lambda name, call: lose_the_answer(call) if name == "apply" else call(),
    )
    assert (world.step("pay").status, world.effects()) == ("manual_intervention", ["payment pay"])
    with world.opened() as (store, _):
        ok(decide(store, NAME, step="pay", status="running", requester="eve", request_id="again"))
    rounds(world, ONCE, at_downstream=senseless)
    step = world.step("pay")
    assert (step.status, step.evidence, step.attempt) == ("manual_intervention", None, 2)
    assert "malformed: the request has 70,000 bytes" in str(step.reason)


@KINDS
def test_where_nothing_makes_sense_to_the_downstream_the_others_are_served(
    options: dict[str, Any], make: MakeOrders
) -> None:
    """Not even the tombstone, the fence, or the question."""
    world = make(workflow=ONCE, **options)

    def around(name: str, _: Callable[[], Any]) -> Any:
        raise ArgumentError(f"{name}: no")

    rounds(world, ONCE, at_downstream=around)
    unsent = not options.get("keyed", True) and not (
        options.get("fenced", True) and "queryable" not in options
    )
    assert world.step("pay").status == ("failed" if unsent else "manual_intervention")


def test_a_compensation_whose_request_makes_no_sense_is_for_a_person(make: MakeOrders) -> None:
    workflow = Workflow("undo", version="1")
    pay = workflow.step(name="pay")(lambda _: Effect("payment", "pay", {}))
    pay.compensation(lambda _: Effect("payment", "refund", {}))
    workflow.step(name="fail", after=("pay",))(raising(ValueError("no")))
    world = make(workflow=workflow)
    paid: list[bool] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        if name != "apply" or not paid:
            paid.append(True)
            return call()
        return senseless(name, call)

    rounds(world, workflow, at_downstream=around)
    step = world.step("pay")
    why = "its compensation failed: malformed: the request has 70,000 bytes"
    assert (step.status, step.from_status, step.reason) == ("manual_intervention", "compensating", why)
    assert why in log(world)


def test_a_step_may_say_what_to_do_instead_of_what_made_no_sense(make: MakeOrders) -> None:
    workflow = Workflow("instead", version="1")
    pay = workflow.step(name="pay")(lambda _: Effect("payment", "pay", {"words": "long"}))
    pay.instead(lambda _: Effect("payment", "pay", {"words": "short"}))
    world = make(workflow=workflow, **OPAQUE)
    calls: list[str] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        calls.append(name)
        return senseless(name, call) if len(calls) == 1 else call()

    rounds(world, workflow, at_downstream=around)
    assert (world.row().status, world.effects()) == ("succeeded", ["payment pay"])


# Whatever a downstream does.


RECEIPT = Receipt("", "k", "f", NAME, "payment", 1, None)
NO_ANSWERS: dict[str, Callable[[], Any]] = {
    "ConnectionError": raises(ConnectionError("refused")),
    "TimeoutError": raises(TimeoutError()),
    "RuntimeError": raises(RuntimeError("\ud800" * 5_000)),
    "odd": raises(OddError()),
    "StoreError": raises(StoreError("locked")),
    "None": lambda: None,
    "ok with nothing": lambda: Ok(None),
    "ok with a token": lambda: Ok(1),
    "an empty receipt": lambda: Ok(RECEIPT),
    "no code": lambda: Refused("", None),
    "no held": lambda: Refused("declined", "no money"),  # type: ignore[arg-type]
    "no words": lambda: Refused("declined", Held(None, None, None, 5)),  # type: ignore[arg-type]
    "unknown, and why is nothing": lambda: Unknown(None),  # type: ignore[arg-type]
    "unknown without words": lambda: Unknown(""),
    "unknown in odd words": lambda: Unknown("\ud800"),
}


@pytest.mark.parametrize("answer", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_what_is_no_answer_of_a_downstream_is_unknown_whatever_it_is(
    answer: Callable[[], Any], make: MakeOrders
) -> None:
    for options in (KEYED, FENCED_AND_QUERYABLE, QUERYABLE):
        world = make(workflow=ONCE, **options)
        world.work(ADA, workflows=(ONCE,), at_downstream=lambda _, __: answer())
        step = world.step("pay")
        assert (step.status, step.evidence) == ("retry_scheduled", None), options
        assert step.reason
        rounds(world, ONCE, at_downstream=lambda _, __: answer())
        assert world.step("pay").evidence is None
        assert world.finish(BOB, workflows=(ONCE, HEALTHY)).status in ("succeeded", "failed")
        world.check()


@pytest.mark.parametrize(
    "error", [ConnectionError("refused"), ArgumentError("too long")], ids=["lost", "long"]
)
@KINDS
def test_a_worker_without_ways_back_survives_what_a_downstream_raises(
    error: Exception, options: dict[str, Any], tmp_path: Path, clock: Clock
) -> None:
    def around(_: str, __: Callable[[], Any]) -> Any:
        raise error

    with (
        open_store(tmp_path / "s.db", clock_ms=clock, synchronous="OFF") as store,
        open_downstream(tmp_path / "l.db", clock_ms=clock, synchronous="OFF", **options) as downstream,
    ):
        for name in ("a", "z"):
            ok(store.create(name))
        runs = run_worker(
            store,
            Between(downstream, around),
            ADA,
            lambda name: STEPS if name == "a" else STEPS[2:],
            stop=lambda: False,
            most=2,
            lease_ms=LEASE_MS,
            monotonic_ms=clock,
        )
    assert [(run.instance, run.ended) for run in runs if run.instance == "z"] == [("z", "finished")]
    assert runs[0].ended in (Ended.UNDECIDED, Ended.STOPPED)


# The business of a downstream.


DECLINES: dict[str, tuple[Callable[[EffectRequest], Any], str]] = {
    "raises": (lambda _: raises(LookupError("no such card"))(), "decline raised LookupError: no such card"),
    "raises what cannot say itself": (
        lambda _: raises(OddError())(),
        "decline raised OddError: it cannot",
    ),
    "argument": (lambda _: raises(ArgumentError("no"))(), "decline raised ArgumentError: no"),
    "nothing": (lambda _: "", "decline gave ''"),
    "a bool": (lambda _: False, "decline gave False"),
    "odd words": (lambda _: "\ud800", "decline gave "),
}


@pytest.mark.parametrize(("decline", "message"), DECLINES.values(), ids=DECLINES)
def test_a_broken_business_decides_nothing_and_is_named(
    decline: Callable[[EffectRequest], Any], message: str, ledger: Path, clock: Clock, make: MakeOrders
) -> None:
    with open_downstream(ledger, clock_ms=clock, decline=decline) as downstream:
        before = observe_downstream(ledger)
        with pytest.raises(StoreError, match="nothing was applied") as raised:
            downstream.apply(request())
        assert str(raised.value).startswith(message)
        assert not isinstance(raised.value, ArgumentError)
        assert observe_downstream(ledger) == before
    world = make(workflow=ONCE, decline=decline)
    rounds(world, ONCE)
    assert (world.step("pay").status, world.step("pay").evidence) == ("failed", "tombstoned")
    assert message in log(world).replace("\\\\", "\\")


# What breaks a pass all the same.


def test_a_pass_that_breaks_is_told_of_and_raised_once_the_others_were_served(make: MakeOrders) -> None:
    world = make(workflow=ONCE)
    world.begin(HEALTHY, LAST)
    heard: list[Run] = []
    waits: list[int] = []

    def broken(point: str) -> None:
        if point == "before: pay: started":
            raise StoreError("what nobody expects")

    with world.opened() as (store, downstream):
        arguments: dict[str, Any] = {"owner": ADA, "workflows": [ONCE, HEALTHY], "lease_ms": LEASE_MS}
        arguments |= {"monotonic_ms": world.clock, "heard": heard.append, "at": broken}
        with pytest.raises(StoreError, match="what nobody expects"):
            work(store, downstream, **arguments)
        assert [(run.instance, run.ended) for run in heard] == [(NAME, "broken"), (LAST, "finished")]
        assert heard[0].why == "StoreError: what nobody expects"
        world.clock.now_ms += LEASE_MS
        work(store, downstream, **arguments, wait=lambda: waits.append(1), stop=lambda: len(waits) > 1)
    assert (heard[2].ended, len(waits)) == (Ended.BROKEN, 2)


# Stores that cannot be read.


def test_a_closed_store_is_an_error_at_once_after_which_nothing_has_changed(make: MakeOrders) -> None:
    world = make(workflow=ONCE)
    waits: list[int] = []
    with (
        open_store(world.path, clock_ms=world.clock) as store,
        open_downstream(world.ledger, clock_ms=world.clock) as downstream,
    ):
        store.close()
        with pytest.raises(HandleError, match="this store is closed, so nothing was asked or changed"):
            work(
                store,
                downstream,
                owner=ADA,
                workflows=[ONCE],
                lease_ms=LEASE_MS,
                monotonic_ms=world.clock,
                wait=lambda: waits.append(1),
            )
    assert waits == []


def test_a_store_that_answers_now_and_then_is_never_given_up(make: MakeOrders) -> None:
    world = make(workflow=ONCE)
    heard: list[Run] = []
    waits: list[int] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        if name == "workable" and len(waits) % UNANSWERED:
            raise StoreError("the disk is away")
        return call()

    with world.opened() as (store, downstream):
        work(
            Between(store, around),  # type: ignore[arg-type]
            downstream,
            owner=ADA,
            workflows=[HEALTHY],
            lease_ms=LEASE_MS,
            monotonic_ms=world.clock,
            wait=lambda: waits.append(1),
            stop=lambda: len(waits) >= 3 * UNANSWERED,
            heard=heard.append,
        )
    assert len([run for run in heard if run.instance == ""]) == 3 * (UNANSWERED - 1)


@pytest.mark.parametrize("what", ["heard", "stop", "wait"])
def test_what_the_program_itself_raises_is_not_taken_for_the_store(what: str, make: MakeOrders) -> None:
    def fails(*_: object) -> Any:
        raise StoreError(what)

    world = make(workflow=ONCE)
    with world.opened() as (store, downstream):
        own: dict[str, Any] = {"wait": lambda: None, what: fails}
        with pytest.raises(StoreError, match=what):
            work(
                store,
                downstream,
                owner=ADA,
                workflows=[ONCE],
                lease_ms=LEASE_MS,
                monotonic_ms=world.clock,
                **own,
            )


@pytest.mark.parametrize("operation", ["workable", "undelivered"])
def test_a_store_that_never_answers_is_told_of_and_then_raised(operation: str, make: MakeOrders) -> None:
    world = make(workflow=ONCE)
    heard: list[Run] = []
    waits: list[int] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        if name == operation:
            raise StoreError("the disk is gone")
        return call()

    with world.opened() as (store, downstream), pytest.raises(StoreError, match="the disk is gone"):
        work(
            Between(store, around),  # type: ignore[arg-type]
            downstream,
            owner=ADA,
            workflows=[HEALTHY],
            lease_ms=LEASE_MS,
            monotonic_ms=world.clock,
            wait=lambda: waits.append(1),
            heard=heard.append,
        )
    told = [run for run in heard if run.instance == ""]
    assert len(waits) == len(told) == UNANSWERED - 1
    assert told[0].ended is Ended.UNDECIDED
    assert told[0].why == "the store does not answer: StoreError: the disk is gone"
