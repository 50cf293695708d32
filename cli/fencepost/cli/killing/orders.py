"""The workflow that is run, what becomes of each instance of it, and the business of its downstream.

An order is charged; then its goods are reserved while its freight is quoted; once both are done and somebody
has approved, it is shipped; in the end it is billed. What can be undone has a compensation. What becomes of
an order is settled by its number, so that also a few orders have seen all of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from fencepost.reference import (
    Approval,
    Context,
    Effect,
    EffectRequest,
    Notice,
    Retry,
    RetryableError,
    Row,
    StepStatus,
    Workflow,
)

RETRY: Final = Retry(attempts=1_000_000, delay_ms=5, longest_delay_ms=20)
"""A takeover counts as an attempt (§9), and there are as many of them as there are kills."""

TEN_MINUTES_MS: Final = 600_000

ORDERS: Final = Workflow("order", version="1")
"""A chain, a fan-out, a fan-in, a step that asks to be tried again, a gate, compensations, a notification."""

FLOW: Final = "charge; reserve and quote; ship, once approved; bill"
"""The same in a line."""


@ORDERS.step(retry=RETRY)
def charge(context: Context) -> Effect:
    """Take the money."""
    return Effect("payment", "charge", {"cents": context.input["cents"], "card": context.input["card"]})


@charge.compensation
def refund(context: Context) -> Effect:
    """Give the money back."""
    return Effect("payment", "refund", {"receipt": context.receipt, "card": context.input["card"]})


@ORDERS.step(after=("charge",), retry=RETRY)
def reserve(context: Context) -> Effect:
    """Put the goods aside."""
    return Effect("stock", "reserve", {"paid": context.receipts.get("charge")})


@reserve.compensation
def put_back(context: Context) -> Effect:
    """Put the goods back."""
    return Effect("stock", "put-back", {"receipt": context.receipt})


@ORDERS.step(after=("charge",), retry=RETRY)
def quote(context: Context) -> dict[str, int]:
    """Say what the freight costs, which nobody knows at the first attempt."""
    if context.attempt == 1:
        raise RetryableError("no-rate", "the rates of today are not known yet")
    return {"cents": context.input["cents"] // 10}


@ORDERS.step(
    after=("reserve", "quote"), approval=Approval(deadline_ms=TEN_MINUTES_MS), retry=RETRY, resource="parcel"
)
def ship(context: Context) -> Effect:
    """Send the parcel."""
    return Effect("parcel", "ship", {"cents": context.results["quote"]["cents"]})


@ship.compensation
def call_back(context: Context) -> Effect:
    """Have the parcel sent back."""
    return Effect("parcel", "call-back", {"receipt": context.receipt})


@ship.notification
def shipped(context: Context) -> Notice:
    """Tell the customer that the parcel is on its way."""
    return Notice("shipped", context.input["customer"], {"parcel": context.receipt})


@ORDERS.step(after=("ship",), retry=RETRY)
def bill(context: Context) -> Effect:
    """Write the bill."""
    return Effect("ledger", "bill", {"customer": context.input["customer"]})


class Course(Enum):
    """What becomes of an order, if nothing else does."""

    WELL = "goes well"
    FAILS = "fails at its last step, and unwinds"
    CANCELLED = "is cancelled at a random moment before it is approved"
    BY_HAND = "fails at its last step, and one compensation fails as well, so that a person settles it"
    CANCELLED_LATE = "is cancelled at a random moment after it was approved, perhaps too late"
    REJECTED = "is rejected at the gate"


COURSES: Final[Sequence[Course]] = (
    Course.WELL,
    Course.FAILS,
    Course.CANCELLED,
    Course.BY_HAND,
    Course.WELL,
    Course.CANCELLED_LATE,
    Course.REJECTED,
    Course.WELL,
)
"""By the number of an order, again and again."""

NOBODY: Final = "nobody"
CLOSED: Final = "closed"


def name_of(number: int, *, instances: int) -> str:
    """The name of an order, the first of which has number 0; names sort as numbers do."""
    return f"order-{number + 1:0{len(str(instances))}}"


def course_of(instance: str) -> Course:
    """What becomes of an order."""
    return COURSES[(int(instance.rpartition("-")[2]) - 1) % len(COURSES)]


def input_of(instance: str) -> dict[str, Any]:
    """What an order begins with."""
    course = course_of(instance)
    fails = course in (Course.FAILS, Course.BY_HAND)
    return {
        "cents": 500,
        "card": CLOSED if course is Course.BY_HAND else "open",
        "customer": NOBODY if fails else "zoe",
    }


def declines(request: EffectRequest) -> str | None:
    """The business of the downstream: why it does not do something."""
    parameters = json.loads(request.parameters)
    if request.operation == "bill" and parameters["customer"] == NOBODY:
        return "there is no such customer"
    if request.operation == "refund" and parameters["card"] == CLOSED:
        return "the card was closed in the meantime"
    return None


def steps_left(row: Row) -> int:
    """How many steps of an instance are still to be done, or to be undone; with none left it ends."""
    unwinds = row.unwinding_cause is not None
    over = (StepStatus.FAILED, StepStatus.CANCELLED, StepStatus.COMPENSATED)
    return sum(
        step.status not in over
        and (
            step.status is not StepStatus.SUCCEEDED
            or (unwinds and step.intent is not None and step.intent.compensation is not None)
        )
        for step in row.steps
    )
