"""What the adapter of the SQLite store needs for whole workflows: definitions, requests, steps as seen.

Part of `adapter`, for the conformance checks only.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fencepost.conformance import adapter as a
from fencepost.conformance import adapter_workflow as w
from fencepost.reference.observe import Observation
from fencepost.reference.opening import open_store
from fencepost.reference.rewind import Contents, Rewinder
from fencepost.reference.sql import Statements
from fencepost.reference.store import Store
from fencepost.reference.values import (
    FINISHED,
    Definition,
    Evidence,
    Intent,
    Refused,
    StepChange,
    StepEntry,
    StepRow,
    StepStatus,
    StoreError,
)
from fencepost.reference.values_inbox import (
    Beginning,
    Request,
    Requested,
    RequestKind,
    StepPlan,
    approval,
    cancellation,
    late_result,
    operator_decision,
)

REQUESTER = "eve"
"""Who asks; the store does not look at it."""

ORDER = Definition("order", "1")
"""What each instance is pinned to: the definitions of worlds differ in their steps only."""

AGAIN = StepStatus.RUNNING.value


@dataclass(frozen=True, slots=True)
class StoreRequester:
    """One handle on the store of somebody without a lease."""

    store: Store
    instance: str

    def request(self, request: w.Request) -> a.Answer:
        """Ask."""
        try:
            answer = self.store.request(self.instance, _asked(request))
        except StoreError as error:
            return a.Unknown(f"{type(error).__name__}: {error}")
        return a.Refused(answer.code) if isinstance(answer, Refused) else a.Ok()

    def close(self) -> None:
        """Close the handle."""
        self.store.close()


def _asked(request: w.Request) -> Request:
    """The request in the store's words."""
    if request.wish == "cancel":
        return cancellation(request.request_id, requester=REQUESTER)
    step = request.step or ""
    if request.wish == RequestKind.LATE_RESULT.value:
        return late_result(
            request.request_id,
            requester=REQUESTER,
            step=step,
            key=request.key or "",
            fingerprint=request.fingerprint or "",
            receipt=request.receipt or "",
        )
    if request.wish in ("approve", "reject"):
        return approval(
            request.request_id,
            requester=REQUESTER,
            step=step,
            fingerprint=request.fingerprint or "",
            approved=request.wish == "approve",
            intent_version=request.intent_version,
        )
    return operator_decision(
        request.request_id, requester=REQUESTER, step=step, status=StepStatus(request.wish)
    )


class Unchecked(sqlite3.Connection):
    """A connection to whose writes the schema's checks do not apply."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.execute("pragma ignore_check_constraints = on")


def drop_triggers(path: Path) -> None:
    """Leave a store's file without the triggers of its schema."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        names = connection.execute("select name from sqlite_schema where type = 'trigger'").fetchall()
        for (name,) in names:
            connection.execute(f'drop trigger "{name}"')


@cache
def begun(statements: Statements, definition: w.Definition, instance: str) -> Contents:
    """What the tables of a store hold in which a trigger has begun an instance with this definition."""
    with tempfile.TemporaryDirectory(prefix="fencepost-") as directory:
        path = Path(directory, "store.db")
        plans = tuple(
            StepPlan(plan.step, depends_on=plan.needs, needs_approval=plan.gated) for plan in definition.steps
        )
        beginning = Beginning(instance, ORDER, "{}", "fingerprint of the input", "{}", plans)
        with open_store(path, clock_ms=lambda: 0, synchronous="OFF", statements=statements) as store:
            begun = store.trigger("conformance", "event-1", beginning)
        if isinstance(begun, Refused):
            raise StoreError(f"begin: the instance was not begun: {begun}")
        rewinder = Rewinder(path)
        try:
            return rewinder.contents()
        finally:
            rewinder.close()


def step_change(change: a.StepChange, only_step: str, effect: tuple[str, str, str]) -> StepChange:
    """A change of a step; one that waits names what is to be approved, whose intent comes with the approval.

    `only_step` is the one of a world without a definition, `effect` what each effect is to do: its resource,
    operation and parameters.
    """
    intent = change.intent
    waits = change.status == StepStatus.WAITING_APPROVAL
    stored = None
    if intent is not None and not waits:
        undo = "refund" if intent.undoable else None
        named = (intent.version, intent.key, intent.fingerprint)
        stored = Intent(*named, *effect, intent.revision, undo)
    return StepChange(
        step=change.step or only_step,
        status=StepStatus(change.status),
        intent=stored,
        another_attempt=stored is not None and change.evidence is not None,
        unwinding=change.unwinding,
        receipt=change.receipt,
        evidence=None if change.evidence is None else Evidence(change.evidence),
        reason=change.reason,
        error_class=change.reason if change.timer_at_ms is not None else None,
        timer_at_ms=change.timer_at_ms,
        approval_fingerprint=intent.fingerprint if waits and intent is not None else None,
        approval_deadline_at_ms=change.approval_until_ms,
        request=change.request,
        decision=change.decision,
    )


def seen_of(seen: Observation, instance: str) -> w.WorkflowSeen:
    """The steps and the inbox of an instance, as the tables have them."""
    row, inbox, log = seen.row(instance), seen.inbox(instance), seen.step_log(instance)
    if row is None:
        raise StoreError(f"observe: there is no row {instance!r}")
    return w.WorkflowSeen(
        cause=row.unwinding_cause,
        ended=row.status if row.status in FINISHED else None,
        steps=tuple(_step(step, inbox, log) for step in row.steps),
        inbox=tuple(
            w.Recorded(each.number, _neutral(each.request), consumed=each.consumed_by is not None)
            for each in inbox
        ),
    )


def _step(step: StepRow, inbox: tuple[Requested, ...], log: tuple[StepEntry, ...]) -> w.StepSeen:
    """A step. It was attempted once to begin with, once for each new intent, and when a person said so.

    One that waits, or has ended while it did, has the intent that was to be approved, if that is another than
    the stored one: what is stored is a former intent once it is recorded how that came to nothing.
    """
    intent, undo = step.intent, step.undo
    stored = 0 if intent is None else intent.intent_version
    asked = step.approval_fingerprint is not None and (
        intent is None or (step.evidence is not None and _waits_last(step, log))
    )
    version = stored + asked
    renewals = max(0, stored - 1)
    by_hand = sum(
        each.consumed_by is not None and each.request.step == step.step and each.request.decision == AGAIN
        for each in inbox
    )
    return w.StepSeen(
        step=step.step,
        status=step.status.value,
        needs=step.depends_on,
        gated=step.needs_approval,
        undoable=None if intent is None else intent.compensation is not None,
        intent_version=version,
        key=None if intent is None or asked else intent.key,
        fingerprint=step.approval_fingerprint if intent is None or asked else intent.fingerprint,
        retries=0 if step.attempt == 0 else step.attempt - 1 - renewals - by_hand,
        timer_at_ms=step.timer_at_ms,
        approval_until_ms=step.approval_deadline_at_ms,
        succeeded_at=step.succeeded_at_version or 0,
        undoing=step.from_status is StepStatus.COMPENSATING,
        attested=step.attested,
        receipt=step.receipt,
        undo_key=None if undo is None else undo.key,
        undo_receipt=step.undo_receipt,
    )


def _waits_last(step: StepRow, log: tuple[StepEntry, ...]) -> bool:
    """Whether a step waits, or did before it came to its end."""
    waits = [entry.status is StepStatus.WAITING_APPROVAL for entry in log if entry.step == step.step]
    return any(waits[-1:]) or (step.status in (StepStatus.FAILED, StepStatus.CANCELLED) and any(waits[-2:]))


_WISHES: dict[RequestKind, Callable[[Request], str]] = {
    RequestKind.CANCEL: lambda _: "cancel",
    RequestKind.APPROVAL_DECISION: lambda asked: "approve" if asked.decision == "approved" else "reject",
    RequestKind.OPERATOR_DECISION: lambda asked: asked.decision or "",
    RequestKind.LATE_RESULT: lambda _: RequestKind.LATE_RESULT.value,
}


def _neutral(asked: Request) -> w.Request:
    return w.Request(
        asked.request_id,
        _WISHES[asked.kind](asked),
        asked.step,
        asked.fingerprint,
        asked.key,
        asked.receipt,
        asked.intent_version or 1,
    )
