"""What a function of a workflow raises is told in words, and is never the worker's failure (§9, §12, §13)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.reference import (
    Approval,
    ArgumentError,
    Context,
    Effect,
    Retry,
    RetryableError,
    StoreError,
    Workflow,
    approve,
)

from .orders import NAME, MakeOrders, maker
from .support import ADA, ok
from .trouble import OddError, log, raising, rounds


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeOrders]:
    with maker(tmp_path) as made:
        yield made


class SilentError(RetryableError):
    def __str__(self) -> str:
        return ""


class UnfinishedError(RetryableError):
    def __init__(self) -> None:
        """As written by somebody who forgot the base class."""


class NumberedError(RetryableError):
    def __init__(self) -> None:
        Exception.__init__(self, "later")
        self.error_class = 5  # type: ignore[misc, assignment]


class OddLaterError(RetryableError, OddError):
    """Cannot say itself, and may be retried."""

    __str__ = OddError.__str__


ERRORS: dict[str, Exception] = {
    "plain": ValueError("no"),
    "without words": ValueError(),
    "cannot say itself": OddError(),
    "no class": type("", (Exception,), {})(),
    "store": StoreError("locked"),
    "argument": ArgumentError("no"),
    "silent": SilentError("busy"),
    "unfinished": UnfinishedError(),
    "numbered": NumberedError(),
    "odd, later": OddLaterError("busy"),
    "odd words": RetryableError("\ud800".encode(errors="replace").decode(), "\ud800"),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("approval", [None, Approval()], ids=["free", "gated"])
def test_whatever_a_step_raises_ends_the_step_with_words(
    error: Exception, approval: Approval | None, make: MakeOrders
) -> None:
    workflow = Workflow("raises", version="1")
    workflow.step(name="pay", approval=approval, retry=Retry(attempts=2, delay_ms=10))(raising(error))
    world = make(workflow=workflow)
    rounds(world, workflow)
    step = world.step("pay")
    assert step.status == ("failed" if approval is None else "cancelled")
    assert step.reason
    assert step.error_class
    assert world.row().status == step.status


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_whatever_a_step_raises_after_its_approval_fails_it(error: Exception, make: MakeOrders) -> None:
    workflow, broken = Workflow("later", version="1"), [False]

    @workflow.step(approval=Approval())
    def pay(_: Context) -> str:
        if broken:
            raise error
        return "paid"

    broken.clear()
    world = make(workflow=workflow)
    world.work(ADA, workflows=(workflow,))
    with world.opened() as (store, _):
        ok(approve(store, NAME, step="pay", requester="eve"))
    broken.append(True)
    rounds(world, workflow)
    assert (world.step("pay").status, world.row().status) == ("failed", "failed")


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_whatever_a_compensation_raises_is_for_a_person(error: Exception, make: MakeOrders) -> None:
    workflow = Workflow("undo", version="1")
    pay = workflow.step(name="pay")(lambda _: Effect("payment", "pay", {}))
    pay.compensation(raising(error))
    workflow.step(name="fail", after=("pay",))(raising(ValueError("no")))
    world = make(workflow=workflow)
    rounds(world, workflow)
    assert world.row().status == "manual_intervention"
    assert (world.row().manual_cause or "").startswith("the compensation of pay cannot be made: ")


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_whatever_a_notification_raises_is_noted_beside_the_success(
    error: Exception, make: MakeOrders
) -> None:
    workflow = Workflow("tell", version="1")
    workflow.step(name="think")(lambda _: "thought").notification(raising(error))
    world = make(workflow=workflow)
    rounds(world, workflow)
    assert world.row().status == "succeeded"
    assert "no notification: " in log(world)
