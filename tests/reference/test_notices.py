"""Every notice gets its turn, and one that is refused for good is given up (§13)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    Approval,
    ArgumentError,
    Downstream,
    EffectRequest,
    Ended,
    Held,
    Notice,
    Refused,
    Unknown,
    Workflow,
    approve,
    deliver,
    run_instance,
    work,
)
from fencepost.reference.downstream_http import HttpDownstream
from fencepost.reference.telling import SILENCE

from .orders import NAME, MakeOrders, Orders, maker
from .serving import served
from .support import ADA, BOB, LEASE_MS, ok
from .trouble import HEALTHY, LAST, log, rounds, senseless
from .worlds import (
    FENCED_AND_QUERYABLE,
    KEYED,
)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeOrders]:
    with maker(tmp_path) as made:
        yield made


# Notices that cannot be told.


def declined(_: str, __: Callable[[], Any]) -> Refused[Held]:
    return Refused("declined", None)


def telling(message: str = "") -> Workflow:
    made = Workflow("telling", version="1")
    step = made.step(name="think")(lambda _: "thought")
    step.notification(lambda ctx: Notice("thought", f"{ctx.instance}-a", message))
    step.notification(lambda ctx: Notice("thought", f"{ctx.instance}-b"))
    made.step(name="wait", after=("think",), approval=Approval())(lambda _: "done")
    return made


@pytest.mark.parametrize(
    "refusal", [senseless, lambda *_: Refused("declined", None)], ids=["senseless", "no"]
)
@pytest.mark.parametrize("options", [KEYED, FENCED_AND_QUERYABLE], ids=["keyed", "fenced"])
def test_a_notice_that_is_refused_for_good_is_given_up_and_the_log_says_why(
    refusal: Callable[[str, Callable[[], Any]], Any], options: dict[str, Any], make: MakeOrders
) -> None:
    workflow = telling()
    world = make(workflow=workflow, **options)
    applied: list[str] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        if name == "apply":
            applied.append(name)
            return refusal(name, call) if len(applied) % 2 == 1 else call()
        return call()

    rounds(world, workflow, at_downstream=around)
    (line,) = [line for line in log(world).splitlines() if "notification given up: " in line]
    assert f"notification/{NAME}:thought:{NAME}-a-v1" in line
    assert ("malformed: the request" if refusal is senseless else "declined") in line
    with world.opened() as (store, _):
        ok(approve(store, NAME, step="wait", requester="eve"))
        world.work(BOB, workflows=(workflow, HEALTHY), at_downstream=around)
        assert [each.receipt is None for each in store.notifications(NAME)] == [True, False]
    assert (world.row().status, len(applied), world.effects()) == ("succeeded", 2, ["notification thought"])


class Answers:
    """A notifier that answers by the recipient, and knows what it was asked."""

    def __init__(self, inner: Downstream, answer: Callable[[EffectRequest], Any]) -> None:
        self.inner = inner
        self.answer = answer
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def apply(self, request: EffectRequest) -> Any:
        self.asked.append(request.instance)
        answer = self.answer(request)
        return self.inner.apply(request) if answer is None else answer


def finished(world: Orders, workflow: Workflow, names: list[str]) -> None:
    """Instances that are over, and could tell nobody."""
    for name in names:
        world.begin(workflow, name)
    lost = Answers(world.handles[0][1], lambda _: Unknown("down"))
    told(world, workflow, lost)
    with world.opened() as (store, _):
        assert all(ok(store.read(name)).status == "succeeded" for name in names)


def told(world: Orders, workflow: Workflow, notifier: Answers, times: int = 1) -> int:
    """What a worker tells in a number of rounds."""
    waits: list[int] = []
    notifier.asked.clear()
    with world.opened() as (store, downstream):
        work(
            store,
            downstream,
            owner=BOB,
            workflows=[workflow],
            lease_ms=LEASE_MS,
            monotonic_ms=world.clock,
            notifier=notifier,
            wait=lambda: waits.append(1),
            stop=lambda: len(waits) >= times,
        )
    return len(notifier.asked)


SHORT = Workflow("short", version="1")
SHORT.step(name="think")(lambda _: "thought").notification(lambda ctx: Notice("thought", ctx.instance))


def undelivered(world: Orders) -> list[str]:
    with world.opened() as (store, _):
        return [each.instance for each in store.undelivered(most=1_000)]


@pytest.mark.parametrize("refusal", ["declined", "malformed", "key-conflict"])
def test_those_behind_a_page_of_refused_ones_are_told_and_nobody_is_asked_twice(
    refusal: str, make: MakeOrders
) -> None:
    world = make(workflow=HEALTHY)
    bad, good = [f"bad-{number:03}" for number in range(100)], ["good-1", "good-2"]
    finished(world, SHORT, bad + good)

    def answer(request: EffectRequest) -> Any:
        if request.instance.startswith("good"):
            return None
        if refusal == "malformed":
            raise ArgumentError("too long")
        return Refused(refusal, None)

    notifier = Answers(world.handles[0][1], answer)
    assert told(world, SHORT, notifier, times=3) == 102
    assert undelivered(world) == bad


def test_each_page_is_delivered_however_many_an_instance_has(make: MakeOrders) -> None:
    workflow = Workflow("many", version="1")
    step = workflow.step(name="think")(lambda _: "thought")
    for number in range(5):
        step.notification(lambda ctx, number=number: Notice(f"kind-{number}", ctx.instance))
    world = make(workflow=HEALTHY)
    names = ["a", "b", "c"]
    finished(world, workflow, names)
    with world.opened() as (store, downstream):
        assert deliver(store, downstream, most=2) == 15
        assert store.undelivered() == ()


def test_those_that_are_never_answered_do_not_keep_the_others_waiting(make: MakeOrders) -> None:
    """A round ends where nobody answers, and the next one begins behind there."""
    world = make(workflow=HEALTHY)
    silent, good = [f"a-{number}" for number in range(7)], ["b-1", "b-2"]
    finished(world, SHORT, silent + good)

    def answer(request: EffectRequest) -> Any:
        return Unknown("no answer") if request.instance in silent else None

    notifier = Answers(world.handles[0][1], answer)
    assert told(world, SHORT, notifier) == SILENCE
    assert undelivered(world) == silent + good
    told(world, SHORT, notifier, times=3)
    assert undelivered(world) == silent
    answered = Answers(world.handles[0][1], lambda _: None)
    told(world, SHORT, answered)
    assert undelivered(world) == []


def test_what_was_given_up_before_the_end_is_not_sent_after_it(make: MakeOrders) -> None:
    world = make(workflow=SHORT)
    refusing = Answers(world.handles[0][1], lambda _: Refused("declined", None))
    assert told(world, SHORT, refusing, times=3) == 1
    assert (undelivered(world), world.row().status) == ([NAME], "succeeded")
    with world.opened() as (store, downstream):
        assert deliver(store, downstream) == 0
    assert world.effects() == []


def test_an_instance_that_waits_is_not_taken_for_a_notice_that_was_given_up(make: MakeOrders) -> None:
    workflow = telling()
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,), at_downstream=senseless)
    before = world.row()
    with world.opened() as (store, downstream):
        run = run_instance(
            store,
            downstream,
            owner=BOB,
            instance=NAME,
            workflows=[workflow],
            lease_ms=LEASE_MS,
            monotonic_ms=world.clock,
        )
    assert (run.ended, run.why, world.row()) == (Ended.WAITING, "approval of wait", before)


def test_a_notice_that_is_too_long_for_http_is_given_up(ledger: Path, make: MakeOrders) -> None:
    workflow = telling("x" * 70_000)
    world = make(workflow=workflow)
    world.begin(HEALTHY, LAST)
    with world.opened() as (store, _), served(ledger) as server:
        work(
            store,
            HttpDownstream(server.port, timeout_ms=60_000),
            owner=ADA,
            workflows=[workflow, HEALTHY],
            lease_ms=LEASE_MS,
            monotonic_ms=world.clock,
        )
        assert [each.receipt is None for each in store.notifications(NAME)] == [True, False]
        assert ok(store.read(LAST)).status == "succeeded"
    assert "and at most 65,536 are read; nothing was sent" in log(world)
