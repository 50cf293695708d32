"""The same request again is harmless, and two requests never go by one id (§4, §10 to §12)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    Answer,
    Approval,
    ArgumentError,
    Context,
    Effect,
    Ok,
    Requested,
    StepStatus,
    Store,
    Workflow,
    approve,
    cancel,
    decide,
    reject,
)

from .orders import NAME, THRICE, MakeOrders, Orders, maker
from .support import ADA, BOB, code, ok
from .worlds import OPAQUE, lose_the_answer

GATED = Workflow("gated", version="1")
GATED.step(name="think", approval=Approval())(lambda _: "thought")
GATED.step(name="close", after=("think",), approval=Approval())(lambda _: "closed")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeOrders]:
    with maker(tmp_path) as made:
        yield made


def gated(make: MakeOrders) -> Orders:
    """An instance whose first step waits for its approval."""
    world = make(workflow=GATED)
    world.work(ADA, workflows=(GATED,))
    return world


@pytest.mark.parametrize("request_id", [None, "by hand"])
@pytest.mark.parametrize("call", [approve, reject])
def test_a_decision_is_answered_as_the_first_time_whatever_came_of_it(
    call: Callable[..., Answer[Requested]], request_id: str | None, make: MakeOrders
) -> None:
    world = gated(make)
    more: dict[str, Any] = {"step": "think", "requester": "eve", "reason": "so", "request_id": request_id}
    with world.opened() as (store, _):
        first = ok(call(store, NAME, **more))
        assert ok(call(store, NAME, **more)) == first
        world.work(ADA, workflows=(GATED,))
        assert world.step("think").status == ("succeeded" if call is approve else "cancelled")
        again = ok(call(store, NAME, **more))
        assert (again.number, again.request) == (first.number, first.request)
        assert again.consumed_by is not None
        cancel(store, NAME, requester="zoe")
        world.work(ADA, workflows=(GATED,))
        assert world.row().status == "cancelled"
        assert ok(call(store, NAME, **more)) == again
        assert len(store.inbox(NAME)) == (2 if call is approve else 1)


def test_another_decision_after_the_first_is_refused_as_before(make: MakeOrders) -> None:
    world = gated(make)
    with world.opened() as (store, _):
        ok(approve(store, NAME, step="think", requester="eve", request_id="1"))
        world.work(ADA, workflows=(GATED,))
        others: list[tuple[Callable[..., Answer[Requested]], dict[str, Any], str]] = [
            (approve, {"requester": "bob"}, "illegal-transition"),
            (approve, {"requester": "eve"}, "illegal-transition"),
            (approve, {"requester": "eve", "reason": "so"}, "illegal-transition"),
            (reject, {"requester": "eve"}, "illegal-transition"),
            (reject, {"requester": "eve", "request_id": "1"}, "key-conflict"),
            (approve, {"requester": "bob", "request_id": "1"}, "key-conflict"),
            (approve, {"requester": "eve", "request_id": "1", "reason": "so"}, "key-conflict"),
        ]
        for call, more, refused in others:
            assert code(call(store, NAME, step="think", **more)) == refused, more
        assert code(approve(store, NAME, step="close", requester="eve", request_id="1")) == "key-conflict"
        ok(cancel(store, NAME, requester="zoe", request_id="2"))
        assert code(approve(store, NAME, step="think", requester="zoe", request_id="2")) == "key-conflict"
        world.work(ADA, workflows=(GATED,))
        assert code(approve(store, NAME, step="think", requester="bob")) == "finished"


def asking_anew() -> Workflow:
    made = Workflow("anew", version="1")

    @made.step(approval=Approval())
    def ship(_: Context) -> Effect:
        return Effect("parcel", "ship", {"by": "train"})

    @ship.instead
    def by_road(_: Context) -> Effect:
        return Effect("parcel", "ship", {"by": "road"})

    return made


def test_the_same_call_approves_another_question_and_is_then_answered_with_that(make: MakeOrders) -> None:
    workflow = asking_anew()
    world = make(workflow=workflow, decline=lambda r: "strike" if "train" in r.parameters else None)
    world.work(ADA, workflows=(workflow,))
    with world.opened() as (store, _):
        first = ok(approve(store, NAME, step="ship", requester="eve"))
        named = ok(approve(store, NAME, step="ship", requester="bob", request_id="1"))
        world.work(ADA, workflows=(workflow,))
        assert world.step("ship").status is StepStatus.WAITING_APPROVAL
        assert ok(approve(store, NAME, step="ship", requester="bob", request_id="1")) == named
        second = ok(approve(store, NAME, step="ship", requester="eve"))
        assert (first.request.intent_version, second.request.intent_version) == (1, 2)
        world.work(ADA, workflows=(workflow,))
        assert world.row().status == "succeeded"
        assert ok(approve(store, NAME, step="ship", requester="eve")).number == second.number


def handed_over(make: MakeOrders) -> Orders:
    """An instance whose effect nobody knows anything of, so that a person has to decide."""
    world = make(workflow=THRICE, **OPAQUE)
    world.work(
        ADA,
        workflows=(THRICE,),
        at_downstream=lambda name, call: lose_the_answer(call) if name == "apply" else call(),
    )
    assert world.step("pay").status is StepStatus.MANUAL_INTERVENTION
    return world


def test_the_other_requests_are_answered_as_the_first_time_too(make: MakeOrders) -> None:
    world = handed_over(make)
    calls: dict[str, Callable[[Store], Answer[Requested]]] = {
        "cancel": lambda store: cancel(store, NAME, requester="zoe", reason="late"),
        "decide": lambda store: decide(
            store, NAME, step="pay", status=StepStatus.FAILED, requester="eve", request_id="d"
        ),
    }
    with world.opened() as (store, _):
        before = {name: ok(call(store)).number for name, call in calls.items()}
        world.work(BOB, workflows=(THRICE,))
        assert world.row().status in ("failed", "cancelled")
        assert {name: ok(call(store)).number for name, call in calls.items()} == before


# Ids.

NAMES = ("a", "a by b", "b", "a: x", "a by b: x", "b: x", "a%20by%20b", "a, intent 2", "x", "a\tb", "é")


def test_different_requests_go_by_different_ids(make: MakeOrders) -> None:
    workflow = Workflow("many", version="1")
    for name in NAMES:
        workflow.step(name=name, approval=Approval())(lambda _: "thought")
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    asked: dict[str, Any] = {}
    reasons = (None, "x", "y: x", "%20")
    with world.opened() as (store, _):
        for call in (approve, reject):
            for step in NAMES:
                for requester in NAMES:
                    for reason in reasons if step == "a" else (None,):
                        made = ok(call(store, NAME, step=step, requester=requester, reason=reason))
                        asked[made.request.request_id] = made.number
        for requester in NAMES:
            for reason in reasons:
                made = ok(cancel(store, NAME, requester=requester, reason=reason))
                asked[made.request.request_id] = made.number
        assert len(store.inbox(NAME)) == len(asked)
    number = 2 * (len(NAMES) - 1) * len(NAMES) + (2 + 1) * len(NAMES) * len(reasons)
    assert len(asked) == len(set(asked.values())) == number


def test_the_ids_of_ordinary_names_are_read_with_ease(make: MakeOrders) -> None:
    world = gated(make)
    with world.opened() as (store, _):
        made = [
            approve(store, NAME, step="think", requester="zoë"),
            reject(store, NAME, step="think", requester="eve", reason="not now, please"),
            cancel(store, NAME, requester="eve@example.org", reason="late: 2 days"),
        ]
    assert [ok(each).request.request_id for each in made] == [
        "approve think by zoë",
        "reject think by eve: not now, please",
        "cancel by eve@example.org: late: 2 days",
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: approve(s, NAME, step="think", requester=""), "approve: requester is empty"),
        (lambda s: approve(s, NAME, step="think", requester=5), "approve: requester must be a str, not 5"),
        (lambda s: reject(s, NAME, step=5, requester="eve"), "reject: step must be a str, not 5"),
        (lambda s: approve(s, NAME, step="think", requester="e", request_id=""), "request_id is empty"),
        (lambda s: cancel(s, NAME, requester="eve", request_id=""), "request_id is empty"),
        (lambda s: cancel(s, NAME, requester="eve", reason=""), "cancel: reason is empty"),
        (
            lambda s: cancel(s, NAME, requester="eve", reason=10**5_000),
            "reason must be a str, not a int that",
        ),
    ],
)
def test_what_is_no_text_is_refused_by_name(
    call: Callable[[Store], object], message: str, make: MakeOrders
) -> None:
    with gated(make).opened() as (store, _):
        with pytest.raises(ArgumentError, match=message):
            call(store)
        assert store.inbox(NAME) == ()


def test_the_status_of_a_decision_may_be_its_plain_word(make: MakeOrders) -> None:
    world = handed_over(make)
    with world.opened() as (store, _):
        plain = decide(store, NAME, step="pay", status="failed", requester="eve", request_id="d")
        assert isinstance(plain, Ok)
        same = {"step": "pay", "status": StepStatus.FAILED, "requester": "eve", "request_id": "d"}
        assert decide(store, NAME, **same) == plain  # type: ignore[arg-type]
        wrongs: tuple[Any, ...] = ("pending", "done", "", None, 5)
        for wrong in wrongs:
            with pytest.raises(ArgumentError, match="choose one of running, succeeded, failed"):
                decide(store, NAME, step="pay", status=wrong, requester="e", request_id="w")
