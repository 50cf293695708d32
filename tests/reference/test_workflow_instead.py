"""A step whose effect came to nothing does something else instead, once that is approved (§6, §11)."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    Approval,
    ArgumentError,
    Context,
    Effect,
    EffectRequest,
    Evidence,
    Retry,
    Workflow,
    approve,
    cancel,
    events,
    observe,
    observe_downstream,
    reject,
)
from fencepost.reference.audit import Journal, Records, audit

from .orders import NAME, MakeOrders, Orders, Points, maker
from .support import ADA, BOB, ok
from .worlds import FENCED_AND_QUERYABLE, KEYED, DeathError


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeOrders]:
    with maker(tmp_path) as made:
        yield made


GATE = Approval()
CARDS = ("first", "second", "third")


def paying(
    *, gate: Approval | None = GATE, attempts: int = 5, cards: int = 3, version: str = "1"
) -> Workflow:
    """A payment by one card after the other."""
    made = Workflow("paying", version=version)

    @made.step(approval=gate, retry=Retry(attempts=attempts, delay_ms=10))
    def pay(ctx: Context) -> Effect:
        return Effect("payment", "pay", {"card": CARDS[0], "attempt": ctx.attempt})

    @pay.instead
    def by_another_card(ctx: Context) -> Effect | None:
        if ctx.intent_version > cards:
            return None
        return Effect("payment", "pay", {"card": CARDS[ctx.intent_version - 1], "attempt": ctx.attempt})

    return made


def only(card: str) -> dict[str, Any]:
    """A keyed downstream that takes one card."""

    def declines(request: EffectRequest) -> str | None:
        return None if card in request.parameters else "no money"

    return {**KEYED, "decline": declines}


def yes(world: Orders) -> None:
    with world.opened() as (store, _):
        ok(approve(store, NAME, step="pay", requester="eve"))


def no(world: Orders) -> None:
    with world.opened() as (store, _):
        ok(reject(store, NAME, step="pay", requester="eve"))


def paid(world: Orders) -> list[str]:
    return world.effects()


def test_each_intent_is_approved_before_it_is_sent(make: MakeOrders) -> None:
    workflow = paying()
    world = make(**only("third"), workflow=workflow)
    for version in (1, 2, 3):
        world.work(ADA, workflows=(workflow,))
        step = world.step("pay")
        assert (step.status, step.asked_version, paid(world)) == ("waiting_approval", version, [])
        world.work(ADA, workflows=(workflow,))  # which finds nothing to do
        assert world.step("pay") == step
        yes(world)
    world.work(BOB, workflows=(workflow,))
    step = world.step("pay")
    assert (world.row().status, paid(world), step.attempt) == ("succeeded", ["payment pay"], 3)
    assert step.intent is not None
    assert (step.intent.intent_version, step.former_evidence) == (3, Evidence.RECORDED_REFUSAL)


def test_the_log_says_what_was_asked_and_why(make: MakeOrders) -> None:
    workflow = paying()
    world = make(**only("second"), workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    yes(world)
    world.work(ADA, workflows=(workflow,))
    assert "no money" in (world.step("pay").reason or "")
    with world.opened() as (store, _):
        assert any("pay: asks for approval anew" in line for line in events(store, NAME))


def test_without_a_gate_the_next_intent_is_sent_at_once(make: MakeOrders) -> None:
    workflow = paying(gate=None)
    world = make(**only("third"), workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    assert (world.row().status, paid(world), world.step("pay").attempt) == ("succeeded", ["payment pay"], 3)


@pytest.mark.parametrize("gate", [None, Approval()])
@pytest.mark.parametrize(("attempts", "cards", "made"), [(5, 1, 1), (5, 2, 2), (2, 3, 2), (1, 3, 1)])
def test_the_step_fails_when_there_is_nothing_else_or_no_attempt_left(
    make: MakeOrders, gate: Approval | None, attempts: int, cards: int, made: int
) -> None:
    workflow = paying(gate=gate, attempts=attempts, cards=cards)
    world = make(**only("none"), workflow=workflow)
    for _ in range(made):
        world.work(ADA, workflows=(workflow,))
        if gate is not None:
            yes(world)
    world.work(ADA, workflows=(workflow,))
    step = world.step("pay")
    assert (world.row().status, step.status, step.attempt) == ("failed", "failed", made)
    assert step.evidence == Evidence.RECORDED_REFUSAL


def test_where_fence_and_query_prove_it_the_step_asks_anew_as_well(make: MakeOrders) -> None:
    workflow = paying()
    world = make(decline=only("second")["decline"], **FENCED_AND_QUERYABLE, workflow=workflow)
    for _ in range(2):
        world.work(ADA, workflows=(workflow,))
        yes(world)
    world.work(ADA, workflows=(workflow,))
    assert (world.row().status, paid(world)) == ("succeeded", ["payment pay"])
    assert world.step("pay").former_evidence == Evidence.FENCED_AND_NOT_FOUND


def test_a_rejection_of_the_second_intent_ends_it(make: MakeOrders) -> None:
    workflow = paying()
    world = make(**only("second"), workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    yes(world)
    world.work(ADA, workflows=(workflow,))
    no(world)
    world.work(ADA, workflows=(workflow,))
    assert (world.row().status, world.step("pay").status, paid(world)) == ("cancelled", "cancelled", [])


def test_a_cancel_meets_the_second_question(make: MakeOrders) -> None:
    workflow = paying()
    world = make(**only("second"), workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    yes(world)
    world.work(ADA, workflows=(workflow,))
    with world.opened() as (store, _):
        ok(cancel(store, NAME, requester="eve"))
    world.work(ADA, workflows=(workflow,))
    assert (world.row().status, paid(world)) == ("cancelled", [])


def test_each_question_has_a_deadline_of_its_own(make: MakeOrders) -> None:
    workflow = paying(gate=Approval(deadline_ms=500))
    world = make(**only("second"), workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    yes(world)
    world.clock.now_ms += 1_000
    world.work(ADA, workflows=(workflow,))
    step = world.step("pay")
    assert step.approval_deadline_at_ms == world.clock.now_ms + 500
    world.clock.now_ms += 500
    world.work(ADA, workflows=(workflow,))
    assert (world.row().status, world.step("pay").status) == ("failed", "failed")


def test_what_would_be_done_instead_must_be_what_was_approved(make: MakeOrders) -> None:
    workflow, other = paying(), paying()
    world = make(**only("second"), workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    yes(world)
    world.work(ADA, workflows=(workflow,))
    yes(world)
    other.steps["pay"] = replace(
        other.steps["pay"], other=lambda _: Effect("payment", "pay", {"card": "second", "cents": 1})
    )
    world.work(ADA, workflows=(other,))
    assert (world.row().status, world.step("pay").status, paid(world)) == ("cancelled", "cancelled", [])


def test_code_that_has_nothing_instead_any_more_cancels_the_step(make: MakeOrders) -> None:
    workflow, other = paying(), paying()
    world = make(**only("second"), workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    yes(world)
    world.work(ADA, workflows=(workflow,))
    yes(world)
    other.steps["pay"].other = None
    world.work(ADA, workflows=(other,))
    assert (world.row().status, world.step("pay").reason) == ("cancelled", "there is nothing to do instead")


@pytest.mark.parametrize("knows", [True, False])
def test_later_code_goes_on_with_a_step_that_waits_again_if_it_knows_what_to_do_instead(
    make: MakeOrders, knows: bool
) -> None:
    workflow, later = paying(), paying(version="2")
    later.migrates(workflow.definition, name="to version 2")
    if not knows:
        later.steps["pay"].other = None
    world = make(**only("second"), workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    yes(world)
    world.work(ADA, workflows=(workflow,))
    yes(world)
    world.work(ADA, workflows=(later,))
    assert world.row().status == ("succeeded" if knows else "manual_intervention")


def test_there_is_one_function_for_what_to_do_instead() -> None:
    with pytest.raises(ArgumentError, match="'pay' has one already"):
        paying().steps["pay"].instead(lambda _: None)


# Crashes: whoever goes on asks for the same, and sends nothing that was not approved.


def outlives(world: Orders, workflow: Workflow, *, dies_at: int) -> bool:
    """Ada dies at a point and bob finishes, or there are not so many points."""
    try:
        world.finish(ADA, at=Points(dies_at), workflows=(workflow,))
    except DeathError:
        world.clock.now_ms += 1_000
        world.finish(BOB, workflows=(workflow,))
        return False
    return True


@pytest.mark.parametrize("gate", [None, Approval(deadline_ms=10**6)])
@pytest.mark.parametrize("options", [KEYED, FENCED_AND_QUERYABLE])
def test_a_death_at_any_point_leaves_one_effect_of_one_approved_intent(
    make: MakeOrders, options: dict[str, Any], gate: Approval | None
) -> None:
    workflow = paying(gate=gate, attempts=9)
    number, outlived = 0, False
    while not outlived:
        number += 1
        world = make(decline=only("second")["decline"], **options, workflow=workflow)
        outlived = outlives(world, workflow, dies_at=number)
        assert (world.row().status, world.effects()) == ("succeeded", ["payment pay"]), number
        world.check()
        step = world.step("pay")
        assert step.intent is not None
        assert (step.intent.intent_version, "second" in step.intent.parameters) == (2, True)
        with world.opened() as (store, _):
            spent = [each for each in store.inbox(NAME) if each.consumed_by is not None]
        versions = [each.request.intent_version for each in spent]
        assert versions == ([] if gate is None else [1, 2])
        assert wrongs(world) == []
    assert number > 10


TOLD = (
    "lease_version_only_grows",
    "stale_worker_never_overrides",
    "no_lost_update",
    "request_consumed_once",
    "one_instance_per_trigger",
)
"""Checks that ask what everybody was answered, which nobody wrote down here."""


def wrongs(world: Orders, *, ended: bool = True) -> list[str]:
    """What the audit of both databases says is wrong."""
    records = Records((NAME,), observe(world.path), observe_downstream(world.ledger), Journal())
    checks = audit(records, ended=ended)
    return [f"{each.name}: {wrong}" for each in checks if each.name not in TOLD for wrong in each.wrongs]


def test_the_audit_finds_nothing_wrong_with_a_step_that_waits_again(make: MakeOrders) -> None:
    workflow = paying()
    world = make(**only("third"), workflow=workflow)
    for end in (yes, no):
        world.work(ADA, workflows=(workflow,))
        if end is yes:
            yes(world)
            world.work(ADA, workflows=(workflow,))
        assert (world.step("pay").status, wrongs(world)) == ("waiting_approval", [])
        end(world)
    world.work(ADA, workflows=(workflow,))
    assert (world.row().status, wrongs(world)) == ("cancelled", [])
