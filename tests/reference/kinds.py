"""Kinds of steps, each made by commits in an instance of its own, and the changes that are tried on them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from fencepost.reference import (
    Evidence,
    Request,
    StepChange,
    StepPlan,
    StepStatus,
    Store,
    approval,
    cancellation,
    late_result,
    operator_decision,
)

from .lifecycle import (
    CANCELLED,
    COMPENSATED,
    COMPENSATING,
    FAILED,
    HAND_OVER,
    MANUAL,
    RETRY,
    RUNNING,
    SUCCEEDED,
    UNWIND,
    WAITING,
    asked,
    begun,
    commit,
    decided_unasked,
    intent_of,
    started,
    succeeded,
    undo_of,
    undoing,
)
from .support import Clock, ok

NOW_MS, EARLIER_MS, LATER_MS = 1_000, 900, 2_000

# The kinds of steps. Each is made by commits, in an instance of its own; the step is called "it".

PLAN = StepPlan("it")
GATED = StepPlan("it", needs_approval=True)
WAIT = StepChange("it", WAITING, approval_fingerprint="print of it")
RETURNS = StepChange("it", RETRY, timer_at_ms=LATER_MS, error_class="timeout")
DUE = replace(RETURNS, timer_at_ms=NOW_MS)
LOST = StepChange("it", MANUAL, reason="it may have happened")


@dataclass(frozen=True)
class Kind:
    """How a step comes to be one of its kind: its plan, the commits, and what else there is."""

    plans: tuple[StepPlan, ...] = (PLAN,)
    commits: tuple[tuple[StepChange, ...], ...] = ()
    unwinds_before: int | None = None
    decided: bool = True


def undoable(step: str, instance: str) -> StepChange:
    return started(step, instance, compensation="refund")


STARTED, UNDOABLE = StepChange("it", RUNNING, intent=intent_of("it")), "undoable"
DONE = succeeded("it")
UNDOING = undoing("it")
ANEW = replace(WAIT, evidence=Evidence.RECORDED_REFUSAL)
APPROVED = replace(STARTED, error_class="approved")
"""Its class stands for the number of the approval."""
AGAIN = replace(APPROVED, intent=intent_of("it", version=2), error_class="approved anew")

KINDS: dict[str, Kind] = {
    "pending": Kind(),
    "pending, something needed is not done": Kind((StepPlan("it", ("other",)), StepPlan("other"))),
    "pending, past its deadline": Kind((replace(PLAN, deadline_at_ms=NOW_MS),)),
    "pending, gated": Kind((GATED,)),
    "waiting": Kind((GATED,), ((WAIT,),)),
    "waiting, nothing decided": Kind(
        (replace(GATED, approval_deadline_at_ms=LATER_MS),), ((WAIT,),), decided=False
    ),
    "waiting in vain": Kind((replace(GATED, approval_deadline_at_ms=NOW_MS),), ((WAIT,),), decided=False),
    "waiting too long, but decided": Kind((replace(GATED, approval_deadline_at_ms=NOW_MS),), ((WAIT,),)),
    "running, approved": Kind((GATED,), ((WAIT,), (APPROVED,))),
    "running, approved, for the last time": Kind((replace(GATED, most_attempts=1),), ((WAIT,), (APPROVED,))),
    "running, approved, past the deadline of that": Kind(
        (replace(GATED, approval_deadline_at_ms=NOW_MS),), ((WAIT,), (APPROVED,))
    ),
    "running, approved, no effect": Kind((GATED,), ((WAIT,), (replace(APPROVED, intent=None),))),
    "running, approved, given up": Kind(
        (GATED,), ((WAIT,), (APPROVED,), (StepChange("it", RUNNING, unwinding="withdrawn"),))
    ),
    "waiting again": Kind((GATED,), ((WAIT,), (APPROVED,), (ANEW,))),
    "waiting again in vain": Kind(
        (replace(GATED, approval_deadline_at_ms=NOW_MS),), ((WAIT,), (APPROVED,), (ANEW,))
    ),
    "running, with its second intent": Kind((GATED,), ((WAIT,), (APPROVED,), (ANEW,), (AGAIN,))),
    "running": Kind(commits=((STARTED,),)),
    "running, no effect": Kind(commits=((StepChange("it", RUNNING),),)),
    "running, receipt": Kind(commits=((STARTED,), (StepChange("it", RUNNING, receipt="receipt of it"),))),
    "running, given up": Kind(commits=((STARTED,), (StepChange("it", RUNNING, unwinding="withdrawn"),))),
    "running for the last time": Kind((replace(PLAN, most_attempts=1),), ((STARTED,),)),
    "retry": Kind(commits=((STARTED,), (RETURNS,))),
    "retry, due": Kind(commits=((STARTED,), (DUE,))),
    "retry, due, no effect yet": Kind(commits=((StepChange("it", RUNNING),), (DUE,))),
    "succeeded": Kind(commits=((STARTED,), (DONE,))),
    "succeeded, to be undone": Kind(commits=((replace(STARTED, reason=UNDOABLE),), (DONE,))),
    "succeeded, something is open": Kind(
        (PLAN, StepPlan("other")), ((replace(STARTED, reason=UNDOABLE),), (DONE,))
    ),
    "succeeded, something succeeded later": Kind(
        (PLAN, StepPlan("other")),
        (
            (replace(STARTED, reason=UNDOABLE), StepChange("other", RUNNING, reason=UNDOABLE)),
            (DONE,),
            (succeeded("other"),),
        ),
    ),
    "compensating": Kind(
        commits=((replace(STARTED, reason=UNDOABLE),), (DONE,), (UNDOING,)), unwinds_before=2
    ),
    "compensating, not yet again": Kind(
        commits=(
            (replace(STARTED, reason=UNDOABLE),),
            (DONE,),
            (UNDOING,),
            (StepChange("it", COMPENSATING, timer_at_ms=LATER_MS, error_class="timeout"),),
        ),
        unwinds_before=2,
    ),
    "compensated": Kind(
        commits=(
            (replace(STARTED, reason=UNDOABLE),),
            (DONE,),
            (UNDOING,),
            (StepChange("it", COMPENSATED, receipt="refunded"),),
        ),
        unwinds_before=2,
    ),
    "failed": Kind(commits=((STARTED,), (StepChange("it", FAILED, evidence=Evidence.RECORDED_REFUSAL),))),
    "cancelled": Kind(commits=((StepChange("it", CANCELLED),),), unwinds_before=0),
    "handed over": Kind(commits=((STARTED,), (LOST,))),
    "handed over, no effect": Kind(commits=((StepChange("it", RUNNING),), (LOST,))),
    "handed over, compensating": Kind(
        commits=((replace(STARTED, reason=UNDOABLE),), (DONE,), (UNDOING,), (LOST,)), unwinds_before=2
    ),
}

SITUATIONS = ("running", "cancel requested", "unwinding")


def named(change: StepChange, instance: str) -> StepChange:
    """The change with keys of the instance's own; a reason of `UNDOABLE` stands for a compensation."""
    if change.reason == UNDOABLE:
        return undoable(change.step, instance)
    if change.intent is None:
        return change
    if change.status is COMPENSATING:
        return replace(change, intent=undo_of(change.step, instance))
    return replace(change, intent=intent_of(change.step, instance, version=change.intent.intent_version))


def spending(change: StepChange, numbers: dict[str, int]) -> StepChange:
    """The change with the number of the approval that it spends, if it does."""
    if change.error_class not in ("approved", "approved anew"):
        return change
    return replace(change, request=numbers[change.error_class], error_class=None)


def make(store: Store, clock: Clock, kind: Kind, situation: str, instance: str) -> dict[str, int]:
    """Begin an instance with a step of the kind; the numbers of the requests in its inbox."""
    clock.now_ms = EARLIER_MS
    store._connection.execute("update clock set now_ms = ?", (EARLIER_MS,))  # which no store does
    begun(store, *kind.plans, instance=instance)
    gated = kind.plans[0].needs_approval
    requests: dict[str, Request] = {
        "late": late_result(
            "late",
            requester="ada",
            step="it",
            key=intent_of("it", instance).key,
            fingerprint="print of it",
            receipt="receipt of it",
        ),
        "other late": late_result(
            "other", requester="ada", step="it", key="another", fingerprint="another", receipt="receipt of it"
        ),
    }
    decisions: dict[str, Request] = {}
    for status in (RUNNING, SUCCEEDED, FAILED, CANCELLED, COMPENSATED):
        decisions[f"decided {status}"] = operator_decision(status, requester="eve", step="it", status=status)
    if gated and kind.decided:
        for name, print_, approved in (
            ("approved", "print of it", True),
            ("rejected", "print of it", False),
            ("approved something else", "another", True),
            ("approved anew", "print of it", True),
            ("rejected anew", "print of it", False),
        ):
            version = 2 if name.endswith("anew") else 1
            requests[name] = approval(
                name,
                requester="eve",
                step="it",
                fingerprint=print_,
                approved=approved,
                intent_version=version,
            )
    numbers = {name: asked(store, request, instance) for name, request in requests.items()}
    numbers |= {name: decided_unasked(store, request, instance) for name, request in decisions.items()}
    for number, changes in enumerate(kind.commits):
        if kind.unwinds_before == number:
            ok(commit(store, instance=instance, move=UNWIND))
        made = (spending(named(change, instance), numbers) for change in changes)
        ok(commit(store, *made, instance=instance))
    clock.now_ms = NOW_MS
    if situation == "cancel requested":
        asked(store, cancellation("cancel", requester="eve"), instance)
    elif situation == "unwinding" and kind.unwinds_before is None:
        ok(commit(store, instance=instance, move=UNWIND))
    elif situation == "handed over":
        ok(commit(store, instance=instance, move=HAND_OVER))
    return numbers


# The changes: each status, with what a change may carry, alone and together, or with a request.

THINGS: dict[str, Any] = {
    "intent": intent_of("it"),
    "another_attempt": True,
    "receipt": "receipt of it",
    "evidence": Evidence.RECORDED_REFUSAL,
    "timer_at_ms": LATER_MS,
    "error_class": "timeout",
    "approval_fingerprint": "print of it",
    "reason": "why",
}


TOGETHER = (
    ("intent", "another_attempt"),
    ("intent", "receipt"),
    ("intent", "evidence"),
    ("another_attempt", "receipt"),
    ("another_attempt", "timer_at_ms"),
    ("receipt", "evidence"),
    ("receipt", "reason"),
    ("evidence", "reason"),
    ("timer_at_ms", "error_class"),
    ("approval_fingerprint", "reason"),
    ("approval_fingerprint", "evidence"),
)
WITH_REQUESTS = ("intent", "receipt", "evidence", "another_attempt")


def changes(numbers: dict[str, int]) -> Iterator[StepChange]:
    for status, names in product(StepStatus, [(), *((name,) for name in THINGS), *TOGETHER]):
        things = {name: THINGS[name] for name in names}
        yield StepChange("it", status, **things)
        if not names or (len(names) == 1 and names[0] in WITH_REQUESTS):
            for name, number in numbers.items():
                field = "decision" if name.startswith("decided") else "request"
                yield StepChange("it", status, **things, **{field: number})
    second = StepChange("it", RUNNING, intent=intent_of("it", version=2))
    for again, evidence in product((False, True), (None, Evidence.RECORDED_REFUSAL)):
        change = replace(second, another_attempt=again, evidence=evidence)
        yield change
        for name, number in numbers.items():
            if not name.startswith("decided"):
                yield replace(change, request=number)
