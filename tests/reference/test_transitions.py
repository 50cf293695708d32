"""§5's table against the store: each kind of step, in each situation of its instance, with each change.

The oracle is plain Python and knows neither SQL nor the schema. No change may get past the guards and then be
repelled by the schema, which would be an error here.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    Evidence,
    Ok,
    Refused,
    Request,
    RequestKind,
    StepChange,
    StepPlan,
    StepRow,
    StepStatus,
    Store,
    approval,
    cancellation,
    late_result,
    observe,
    open_store,
    operator_decision,
)

from .lifecycle import (
    CANCELLED,
    COMPENSATED,
    COMPENSATING,
    FAILED,
    HAND_OVER,
    MANUAL,
    PENDING,
    RETRY,
    RUNNING,
    SUCCEEDED,
    UNWIND,
    WAITING,
    asked,
    begun,
    commit,
    intent_of,
    started,
    step_of,
    succeeded,
    undo_of,
    undoing,
)
from .support import Clock, dump, ok

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
    intent = (undo_of if change.status is COMPENSATING else intent_of)(change.step, instance)
    return replace(change, intent=intent)


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
    for status in (RUNNING, SUCCEEDED, FAILED, CANCELLED, COMPENSATED):
        requests[f"decided {status}"] = operator_decision(status, requester="eve", step="it", status=status)
    if gated and kind.decided:
        for name, print_, approved in (
            ("approved", "print of it", True),
            ("rejected", "print of it", False),
            ("approved something else", "another", True),
        ):
            requests[name] = approval(name, requester="eve", step="it", fingerprint=print_, approved=approved)
    numbers = {name: asked(store, request, instance) for name, request in requests.items()}
    for number, changes in enumerate(kind.commits):
        if kind.unwinds_before == number:
            ok(commit(store, instance=instance, move=UNWIND))
        ok(commit(store, *(named(change, instance) for change in changes), instance=instance))
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


# The oracle.

ILLEGAL, NOT_OFFERED = "illegal-transition", "no-such-request"
PAIRS = {
    PENDING: (RUNNING, WAITING, CANCELLED),
    WAITING: (RUNNING, CANCELLED, FAILED),
    RUNNING: (RUNNING, SUCCEEDED, FAILED, CANCELLED, MANUAL, RETRY),
    RETRY: (RETRY, RUNNING, SUCCEEDED, FAILED, CANCELLED, MANUAL),
    COMPENSATING: (MANUAL,),
}


@dataclass(frozen=True)
class At:
    """What the oracle knows: the step, its plan, its instance, and the request that the change names."""

    step: StepRow
    situation: str
    unwinds: bool
    met: bool
    in_the_way: str
    decided: bool
    request: Request | None


def expected(at: At, change: StepChange) -> str:
    """The code of the refusal, or "ok"."""
    if change.decision is not None:
        return settled(at, change)
    if change.status in (COMPENSATING, COMPENSATED):
        return undone(at, change)
    return forward(at, change)


def forward(at: At, change: StepChange) -> str:
    step, to = at.step, change.status
    if at.request is not None and not offers(at.request, step, change):
        return NOT_OFFERED
    starts = to is RUNNING and (step.status is not RUNNING or change.another_attempt)
    schedules = to is RETRY and step.status is RUNNING
    effect = step.intent is not None
    asks = to is WAITING
    legal = [
        at.situation != "handed over",
        to in PAIRS.get(step.status, ()),
        not change.another_attempt or (step.status, to) == (RUNNING, RUNNING),
        step.status is not to or carries(change),
        # What goes only with one status.
        change.timer_at_ms is None or to is RETRY,
        change.approval_fingerprint is None or to is WAITING,
        change.intent is None or (to is RUNNING and not effect and step.status in (PENDING, WAITING, RETRY)),
        change.evidence is None or (to in (FAILED, CANCELLED) and effect),
        change.receipt is None or (to in (RUNNING, SUCCEEDED) and effect),
        change.receipt is None or to is SUCCEEDED or step.status is RUNNING,
        # What a status needs.
        to is not WAITING or (step.needs_approval and change.approval_fingerprint is not None),
        not schedules or (change.timer_at_ms is not None and change.error_class is not None),
        not schedules or step.receipt is None,
        not (schedules or change.another_attempt) or step.most_attempts is None,
        to is not MANUAL or change.reason is not None,
        to is not SUCCEEDED or not effect or (step.receipt or change.receipt) is not None,
        to not in (FAILED, CANCELLED) or not effect or change.evidence is not None,
        change.evidence is None or (step.receipt or change.receipt) is None,
        # Approvals and late results.
        (step.status, to) != (WAITING, RUNNING) or change.request is not None,
        (step.status, to) != (WAITING, FAILED) or step.approval_deadline_at_ms is not None,
        at.request is None or step.status is WAITING or to is SUCCEEDED,
    ]
    if not all(legal):
        return ILLEGAL
    if (starts or asks) and at.unwinds:
        return "unwinding"
    if to is CANCELLED and change.request is None and not at.unwinds:
        return "not-unwinding"
    if starts and step.deadline_at_ms is not None:
        return "deadline-passed"
    if (step.status, to) == (RETRY, RUNNING) and step.timer_at_ms == LATER_MS:
        return "not-due"
    if (step.status, to) == (WAITING, FAILED):
        return given_up_waiting(at)
    return begins(at, to) if starts or asks else "ok"


def given_up_waiting(at: At) -> str:
    if at.step.approval_deadline_at_ms == LATER_MS:
        return "not-due"
    return "approval-recorded" if at.decided else "ok"


def begins(at: At, to: StepStatus) -> str:
    """Why a step does not start, or ask for its approval, that may go there."""
    if at.situation == "cancel requested":
        return "cancel-requested"
    if not at.met:
        return "dependency-unmet"
    needs = at.step.needs_approval and at.step.status is PENDING and to is RUNNING
    return "approval-needed" if needs else "ok"


def carries(change: StepChange) -> bool:
    return change.another_attempt or change.receipt is not None or change.timer_at_ms is not None


def offers(request: Request, step: StepRow, change: StepChange) -> bool:
    """Whether the request asks for this change."""
    match request.kind:
        case RequestKind.APPROVAL_DECISION:
            if request.decision == "rejected":
                return change.status is CANCELLED
            return change.status is RUNNING and request.fingerprint == step.approval_fingerprint
        case RequestKind.LATE_RESULT:
            return (
                change.status is SUCCEEDED
                and step.intent is not None
                and request.key == step.intent.key
                and request.receipt == change.receipt
            )
    return False


def undone(at: At, change: StepChange) -> str:
    step, to = at.step, change.status
    begins = step.status is SUCCEEDED
    nothing_else = (change.evidence, change.request, change.approval_fingerprint)
    legal = [
        (step.status, to)
        in ((SUCCEEDED, COMPENSATING), (COMPENSATING, COMPENSATING), (COMPENSATING, COMPENSATED)),
        begins == (change.intent is not None),
        not begins or (step.intent is not None and step.intent.compensation is not None),
        not begins or not (change.another_attempt or change.receipt),
        step.status is not to or carries(change),
        to is not COMPENSATED or change.receipt is not None,
        not change.another_attempt or to is COMPENSATING,
        change.timer_at_ms is None or (to is COMPENSATING and change.error_class is not None),
        nothing_else == (None, None, None),
    ]
    if not all(legal):
        return ILLEGAL
    if not at.unwinds or at.situation == "handed over":
        return "not-unwinding"
    if change.another_attempt and step.timer_at_ms == LATER_MS:
        return "not-due"
    if begins and at.in_the_way:
        return at.in_the_way
    return "ok"


def settled(at: At, change: StepChange) -> str:
    step, to = at.step, change.status
    effect = step.intent is not None
    assert at.request is not None
    if at.request.decision != to:
        return NOT_OFFERED
    legal = [
        at.situation != "handed over",
        step.status is MANUAL,
        (step.from_status is COMPENSATING) == (to is COMPENSATED),
        change.receipt is None or (to is SUCCEEDED and effect),
        change.evidence is None or (to in (FAILED, CANCELLED) and effect),
        not change.another_attempt,
        (change.intent, change.timer_at_ms, change.approval_fingerprint) == (None, None, None),
    ]
    if not all(legal):
        return ILLEGAL
    if to is RUNNING and at.unwinds:
        return "unwinding"
    if to is RUNNING and at.situation == "cancel requested":
        return "cancel-requested"
    return "ok"


def seen(store: Store, kind: Kind, situation: str, instance: str) -> Callable[[StepChange], At]:
    """What the oracle is told of an instance, for a change."""
    step = step_of(store, "it", instance)
    by_number = {each.number: each.request for each in store.inbox(instance)}
    others = [step_of(store, plan.step, instance).status for plan in kind.plans if plan.step != "it"]
    in_the_way = "" if not others else "not-in-order" if SUCCEEDED in others else "unfinished-steps"

    def at(change: StepChange) -> At:
        number = change.request or change.decision
        return At(
            step=step,
            situation=situation,
            unwinds=situation == "unwinding" or kind.unwinds_before is not None,
            met=not kind.plans[0].depends_on,
            in_the_way=in_the_way,
            decided=kind.decided and kind.plans[0].needs_approval,
            request=None if number is None else by_number[number],
        )

    return at


CASES = [(kind, situation) for kind in KINDS for situation in SITUATIONS]
CASES += [(kind, "handed over") for kind in ("pending", "running", "handed over", "compensating")]


@pytest.mark.parametrize(("kind", "situation"), CASES)
def test_each_change_is_accepted_or_refused_as_the_table_says(
    kind: str, situation: str, path: Path, clock: Clock
) -> None:
    with open_store(path, clock_ms=clock, synchronous="OFF") as store:
        made = 0
        instance = f"order-{made}"
        numbers = make(store, clock, KINDS[kind], situation, instance)
        at = seen(store, KINDS[kind], situation, instance)
        for change in list(changes(numbers)):
            before = step_of(store, "it", instance)
            answer = commit(store, named(change, instance), instance=instance)
            got = answer.code if isinstance(answer, Refused) else "ok"
            assert got == expected(at(change), change), (change, before)
            if isinstance(answer, Ok):
                after = step_of(store, "it", instance)
                assert (after.status, after.state_version) == (change.status, answer.value.state_version)
                assert starts_another(before, change) == (after.attempt - before.attempt)
                made += 1
                instance = f"order-{made}"
                make(store, clock, KINDS[kind], situation, instance)
                at = seen(store, KINDS[kind], situation, instance)


def starts_another(before: StepRow, change: StepChange) -> int:
    again = change.another_attempt and change.status is RUNNING
    return int(again or (change.status is RUNNING and before.status is not RUNNING))


def test_every_pair_of_the_table_is_met_by_some_kind_and_change() -> None:
    """So that the agreement above is about §5 and not about refusals only."""
    reached = {(kind.commits[-1][-1].status if kind.commits else PENDING) for kind in KINDS.values()}
    assert reached == set(StepStatus)


def test_a_refused_change_leaves_every_table_as_it_was(store: Store, path: Path, clock: Clock) -> None:
    numbers = make(store, clock, KINDS["waiting"], "running", "order-1")
    before = dump(path)
    for change in list(changes(numbers))[:200]:
        if isinstance(commit(store, change), Refused):
            assert dump(path) == before
        else:
            break
    assert observe(path).row("order-1") == ok(store.read("order-1"))
