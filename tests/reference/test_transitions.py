"""§5's table against the store: each kind of step, in each situation of its instance, with each change.

The oracle is plain Python and knows neither SQL nor the schema. No change may get past the guards and then be
repelled by the schema, which would be an error here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    Ok,
    Refused,
    Request,
    RequestKind,
    StepChange,
    StepRow,
    StepStatus,
    Store,
    observe,
    open_store,
)

from .kinds import KINDS, LATER_MS, NOW_MS, Kind, changes, make, named
from .lifecycle import (
    CANCELLED,
    COMPENSATED,
    COMPENSATING,
    FAILED,
    MANUAL,
    PENDING,
    RETRY,
    RUNNING,
    SUCCEEDED,
    WAITING,
    commit,
    step_of,
)
from .support import Clock, dump, ok

# The oracle.

ILLEGAL, NOT_OFFERED = "illegal-transition", "no-such-request"
PAIRS = {
    PENDING: (RUNNING, WAITING, CANCELLED),
    WAITING: (RUNNING, CANCELLED, FAILED),
    RUNNING: (RUNNING, SUCCEEDED, FAILED, CANCELLED, MANUAL, RETRY, WAITING),
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
    consumed: bool


def expected(at: At, change: StepChange) -> str:
    """The code of the refusal, or "ok"."""
    if at.consumed:
        return NOT_OFFERED
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
    anew = asks and step.status is RUNNING
    undone = change.evidence or step.evidence
    legal = [
        at.situation != "handed over",
        to in PAIRS.get(step.status, ()),
        not change.another_attempt or (step.status, to) == (RUNNING, RUNNING),
        step.status is not to or carries(change),
        # What goes only with one status.
        change.timer_at_ms is None or to is RETRY,
        change.approval_fingerprint is None or to is WAITING,
        change.intent is None or is_next(step, change),
        change.evidence is None or (effect and step.status is not WAITING),
        change.evidence is None or to in (FAILED, CANCELLED) or anew or is_second(change),
        change.receipt is None or (to in (RUNNING, SUCCEEDED) and effect),
        change.receipt is None or to is SUCCEEDED or step.status is RUNNING,
        # What a status needs.
        to is not WAITING or (step.needs_approval and change.approval_fingerprint is not None),
        not schedules or (change.timer_at_ms is not None and change.error_class is not None),
        not schedules or step.receipt is None,
        not (schedules or change.another_attempt or anew) or step.most_attempts is None,
        not anew or (effect and change.evidence is not None),
        to is not MANUAL or change.reason is not None,
        to is not SUCCEEDED or not effect or (step.receipt or change.receipt) is not None,
        to not in (FAILED, CANCELLED) or not effect or undone is not None,
        change.evidence is None or (step.receipt or change.receipt) is None,
        # Approvals and late results.
        (step.status, to) != (WAITING, RUNNING) or change.request is not None,
        (step.status, to) != (WAITING, RUNNING) or not effect or change.intent is not None,
        (step.status, to) != (WAITING, FAILED) or step.approval_deadline_at_ms is not None,
        at.request is None or step.status is WAITING or to is SUCCEEDED,
    ]
    if not all(legal):
        return ILLEGAL
    resent = change.another_attempt and change.intent is None
    if (starts or asks) and (at.unwinds or (step.unwinding is not None and not resent)):
        return "unwinding"
    if to is CANCELLED and change.request is None and not at.unwinds:
        return "not-unwinding"
    if (starts and step.deadline_at_ms is not None) or (anew and step.approval_deadline_at_ms == NOW_MS):
        return "deadline-passed"
    if (step.status, to) == (RETRY, RUNNING) and step.timer_at_ms == LATER_MS:
        return "not-due"
    if (step.status, to) == (WAITING, FAILED):
        return given_up_waiting(at)
    return begins(at, change) if starts or asks else "ok"


def is_second(change: StepChange) -> bool:
    return change.intent is not None and change.intent.intent_version > 1


def is_next(step: StepRow, change: StepChange) -> bool:
    """Whether a change may bring this intent: the first, the one that was approved, or one for another."""
    assert change.intent is not None
    if change.intent.intent_version != step.asked_version or change.status is not RUNNING:
        return False
    fresh = step.status in (PENDING, WAITING) or (step.status is RETRY and step.intent is None)
    return fresh or (change.another_attempt and change.evidence is not None)


def given_up_waiting(at: At) -> str:
    if at.step.approval_deadline_at_ms == LATER_MS:
        return "not-due"
    return "approval-recorded" if at.decided else "ok"


def begins(at: At, change: StepChange) -> str:
    """Why a step does not start, or ask for its approval, that may go there."""
    if at.situation == "cancel requested":
        return "cancel-requested"
    if not at.met:
        return "dependency-unmet"
    starts = change.status is RUNNING and (at.step.status is PENDING or change.intent is not None)
    needs = at.step.needs_approval and starts and at.step.status is not WAITING
    return "approval-needed" if needs else "ok"


def carries(change: StepChange) -> bool:
    return change.another_attempt or change.receipt is not None or change.timer_at_ms is not None


def offers(request: Request, step: StepRow, change: StepChange) -> bool:
    """Whether the request asks for this change."""
    match request.kind:
        case RequestKind.APPROVAL_DECISION:
            if request.decision == "rejected":
                return change.status is CANCELLED
            asked = step.status is not WAITING or request.intent_version == step.asked_version
            return change.status is RUNNING and asked and request.fingerprint == step.approval_fingerprint
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
    by_number = {each.number: each for each in store.inbox(instance)}
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
            request=None if number is None else by_number[number].request,
            consumed=number is not None and by_number[number].consumed_by is not None,
        )

    return at


CASES: list[Any] = [(kind, situation) for kind in KINDS for situation in ("running", "unwinding")]
CASES += [pytest.param(kind, "cancel requested", marks=pytest.mark.slow) for kind in KINDS]
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
        row, before = ok(store.read(instance)), step_of(store, "it", instance)
        for change in list(changes(numbers)):
            answer = commit(store, named(change, instance), instance=instance, row=row)
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
                row, before = ok(store.read(instance)), step_of(store, "it", instance)


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
