"""A step that ran waits for the approval of another intent, once the former is known undone (§5, §11)."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.reference import (
    Commit,
    Evidence,
    Ok,
    StepChange,
    StepPlan,
    Store,
    approval,
    cancellation,
    open_store,
    operator_decision,
)

from .lifecycle import (
    CANCELLED,
    FAILED,
    LONG_MS,
    MANUAL,
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
)
from .support import ADA, BOB, Clock, code, dump, ok

GATED = StepPlan("ship", needs_approval=True)
WAIT = StepChange("ship", WAITING, approval_fingerprint="print of ship")
YES = approval("yes", requester="eve", step="ship", fingerprint="print of ship")
ANEW = StepChange(
    "ship", WAITING, approval_fingerprint="print of another ship", evidence=Evidence.RECORDED_REFUSAL
)
YES_ANEW = replace(YES, request_id="anew", fingerprint="print of another ship", intent_version=2)
SECOND = StepChange("ship", RUNNING, intent=intent_of("ship", version=2, fingerprint="print of another ship"))


def running(store: Store, plan: StepPlan = GATED, *others: StepPlan) -> None:
    """The step runs with its first intent, which was approved."""
    begun(store, plan, *others)
    ok(commit(store, WAIT))
    ok(commit(store, replace(started("ship"), request=asked(store, YES))))


def test_a_step_waits_for_another_intent_and_keeps_the_former_with_what_is_known_of_it(store: Store) -> None:
    running(store)
    first = step_of(store, "ship")
    ok(commit(store, ANEW))
    step = step_of(store, "ship")
    assert (step.status, step.evidence) == (WAITING, Evidence.RECORDED_REFUSAL)
    assert (step.intent, step.attempt, step.approved_by) == (first.intent, 1, first.approved_by)
    assert (first.asked_version, step.asked_version) == (2, 2)
    assert step.approval_fingerprint == "print of another ship"
    assert store.step_log("order-1")[-1].evidence == Evidence.RECORDED_REFUSAL


def test_the_next_intent_comes_with_its_approval(store: Store) -> None:
    running(store)
    ok(commit(store, ANEW))
    number = asked(store, YES_ANEW)
    ok(commit(store, replace(SECOND, request=number)))
    step = step_of(store, "ship")
    assert (step.status, step.intent, step.attempt, step.approved_by) == (RUNNING, SECOND.intent, 2, number)
    assert (step.evidence, step.former_evidence) == (None, Evidence.RECORDED_REFUSAL)
    ok(commit(store, StepChange("ship", SUCCEEDED, receipt="receipt of ship"), finishes=True))


def test_it_may_be_asked_again_and_again(store: Store) -> None:
    running(store)
    for version in (2, 3, 4):
        print_ = f"print {version}"
        ok(commit(store, replace(ANEW, approval_fingerprint=print_)))
        yes = replace(YES, request_id=print_, fingerprint=print_, intent_version=version)
        intent = intent_of("ship", version=version, fingerprint=print_)
        ok(commit(store, StepChange("ship", RUNNING, intent=intent, request=asked(store, yes))))
    step = step_of(store, "ship")
    assert (step.attempt, step.intent and step.intent.intent_version) == (4, 4)


def test_it_is_durable_and_the_next_owner_goes_on(path: Path, clock: Clock) -> None:
    with open_store(path, clock_ms=clock) as store:
        running(store)
        ok(commit(store, ANEW))
        waits = step_of(store, "ship")
    clock.now_ms += LONG_MS
    with open_store(path, clock_ms=clock) as store:
        assert step_of(store, "ship") == waits
        number = asked(store, YES_ANEW)
        ok(store.acquire("order-1", BOB, lease_ms=LONG_MS))
        ok(commit(store, replace(SECOND, request=number)))
        assert step_of(store, "ship").intent_lease_version == 2


def test_the_same_commit_again_asks_once(store: Store) -> None:
    running(store)
    row = ok(store.read("order-1"))
    ask = Commit(
        instance="order-1",
        owner=ADA,
        commit_id="asks",
        expected_state_version=row.state_version,
        expected_lease_version=row.lease_version,
        event="asks",
        changes=(ANEW,),
    )
    entry = ok(store.commit(ask))
    assert store.commit(ask) == Ok(entry)
    again = replace(ask, commit_id="asks again")
    assert code(store.commit(again)) == "stale-state-version"
    assert code(store.commit(replace(again, expected_lease_version=0))) == "stale-lease-version"


# Refusals.


def refused(store: Store, change: StepChange) -> str:
    """The code of the refusal; nothing has changed."""
    before = ok(store.read("order-1"))
    found = code(commit(store, change))
    assert ok(store.read("order-1")) == before
    return found


@pytest.mark.parametrize(
    "change",
    [
        replace(ANEW, evidence=None),  # what may have happened is not replaced
        replace(ANEW, approval_fingerprint=None),  # nothing would be approved
        replace(ANEW, evidence=Evidence.TOMBSTONED),  # without a reason to give it up
        replace(ANEW, evidence=Evidence.FENCED_AND_NOT_FOUND),  # under the lease that sent it
        replace(ANEW, receipt="receipt of ship"),
        replace(ANEW, unwinding="given up"),
        replace(ANEW, another_attempt=True),
        replace(ANEW, timer_at_ms=2_000),
        replace(ANEW, intent=SECOND.intent),  # it comes with its approval
    ],
)
def test_it_is_refused_unless_the_former_is_known_undone(store: Store, change: StepChange) -> None:
    running(store)
    assert refused(store, change) == "illegal-transition"


def test_a_step_whose_receipt_is_known_does_not_wait_again(store: Store) -> None:
    running(store)
    ok(commit(store, StepChange("ship", RUNNING, receipt="receipt of ship")))
    assert refused(store, ANEW) == "illegal-transition"


def test_a_step_without_a_gate_does_not_wait(store: Store) -> None:
    begun(store, StepPlan("ship"))
    ok(commit(store, started("ship")))
    assert refused(store, ANEW) == "illegal-transition"


def test_a_step_without_an_effect_has_no_former_intent(store: Store) -> None:
    begun(store, GATED)
    ok(commit(store, WAIT))
    ok(commit(store, StepChange("ship", RUNNING, request=asked(store, YES))))
    assert refused(store, ANEW) == "illegal-transition"
    assert refused(store, replace(ANEW, evidence=None)) == "illegal-transition"


def test_only_a_running_step_waits_again(store: Store) -> None:
    begun(store, GATED)
    assert refused(store, ANEW) == "illegal-transition"  # pending: nothing is known of no intent
    ok(commit(store, WAIT))
    assert refused(store, ANEW) == "illegal-transition"
    ok(commit(store, replace(started("ship"), request=asked(store, YES))))
    ok(commit(store, StepChange("ship", RETRY, timer_at_ms=2_000, error_class="busy")))
    assert refused(store, ANEW) == "illegal-transition"
    ok(commit(store, StepChange("ship", MANUAL, reason="it may have happened")))
    assert refused(store, ANEW) == "illegal-transition"


def test_unsent_is_known_to_the_committer_of_the_intent_alone(store: Store, clock: Clock) -> None:
    running(store)
    clock.now_ms += LONG_MS
    ok(store.acquire("order-1", BOB, lease_ms=LONG_MS))
    assert refused(store, replace(ANEW, evidence=Evidence.UNSENT)) == "illegal-transition"
    ok(commit(store, replace(ANEW, evidence=Evidence.FENCED_AND_NOT_FOUND)))


def test_nothing_is_asked_while_the_instance_unwinds(store: Store) -> None:
    running(store)
    ok(commit(store, move=UNWIND))
    assert refused(store, ANEW) == "unwinding"


def test_nothing_is_asked_of_a_step_that_is_given_up(store: Store) -> None:
    running(store)
    ok(commit(store, StepChange("ship", RUNNING, unwinding="its time is over")))
    assert refused(store, ANEW) == "unwinding"


def test_nothing_is_asked_under_a_cancel(store: Store) -> None:
    running(store)
    ok(store.request("order-1", cancellation("cancel", requester="eve")))
    assert refused(store, ANEW) == "cancel-requested"


def test_what_may_not_be_attempted_again_is_not_asked_for(store: Store) -> None:
    running(store, replace(GATED, most_attempts=1))
    assert refused(store, ANEW) == "illegal-transition"


def test_a_deadline_that_has_passed_is_no_deadline_for_another_question(store: Store, clock: Clock) -> None:
    running(store, replace(GATED, approval_deadline_at_ms=2_000))
    clock.now_ms = 2_000
    assert refused(store, ANEW) == "deadline-passed"
    assert refused(store, replace(ANEW, approval_deadline_at_ms=2_000)) == "deadline-passed"
    ok(commit(store, replace(ANEW, approval_deadline_at_ms=3_000)))
    ok(store.request("order-1", YES_ANEW))
    clock.now_ms = 3_000
    assert code(store.request("order-1", replace(YES_ANEW, request_id="late"))) == "deadline-passed"


# What the approval is for.


def test_an_approval_of_the_former_intent_is_not_for_the_next_though_it_does_the_same(store: Store) -> None:
    running(store)
    left = asked(store, replace(YES, request_id="yes again"))
    ok(commit(store, replace(ANEW, approval_fingerprint="print of ship")))
    second = started("ship", version=2)
    assert refused(store, replace(second, request=left)) == "no-such-request"
    ok(commit(store, replace(second, request=asked(store, replace(YES_ANEW, fingerprint="print of ship")))))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (SECOND, "illegal-transition"),  # with the approval of the first
        (replace(SECOND, intent=None), "illegal-transition"),
        (started("ship"), "illegal-transition"),
        (started("ship", version=2), "illegal-transition"),  # other parameters than are asked for
        (replace(SECOND, evidence=Evidence.RECORDED_REFUSAL), "illegal-transition"),
        (replace(SECOND, another_attempt=True), "illegal-transition"),
    ],
)
def test_the_step_starts_with_the_next_intent_and_its_approval_only(
    store: Store, change: StepChange, found: str
) -> None:
    running(store)
    ok(commit(store, ANEW))
    assert refused(store, change) == found


def test_the_former_intent_does_not_run_on_the_approval_of_the_next(store: Store) -> None:
    running(store)
    ok(commit(store, ANEW))
    number = asked(store, YES_ANEW)
    assert refused(store, StepChange("ship", RUNNING, request=number)) == "illegal-transition"
    assert refused(store, replace(started("ship"), request=number)) == "illegal-transition"


def test_an_approval_cannot_be_taken_together_with_the_evidence(store: Store) -> None:
    """A step with a gate waits with each new intent: there is one way to another."""
    running(store)
    number = asked(store, YES_ANEW)
    again = replace(SECOND, another_attempt=True, evidence=Evidence.RECORDED_REFUSAL)
    assert refused(store, again) == "approval-needed"
    assert refused(store, replace(again, request=number)) == "no-such-request"


# Other ends.


def test_nobody_decides_again(store: Store, clock: Clock) -> None:
    running(store)
    asked(store, replace(YES, request_id="yes again", fingerprint="print of another ship"))  # of the first
    ok(commit(store, replace(ANEW, approval_deadline_at_ms=2_000)))
    over = StepChange("ship", FAILED, error_class="approval-deadline")
    assert refused(store, over) == "not-due"
    clock.now_ms = 2_000
    assert refused(store, replace(over, evidence=Evidence.RECORDED_REFUSAL)) == "illegal-transition"
    ok(commit(store, over, finishes=True))
    assert step_of(store, "ship").evidence == Evidence.RECORDED_REFUSAL


def test_an_approval_of_the_next_keeps_its_deadline_from_failing_the_step(store: Store, clock: Clock) -> None:
    running(store)
    ok(commit(store, replace(ANEW, approval_deadline_at_ms=2_000)))
    asked(store, YES_ANEW)
    clock.now_ms = 2_000
    assert refused(store, StepChange("ship", FAILED)) == "approval-recorded"


@pytest.mark.parametrize("tombstoned", [False, True])
def test_a_rejection_of_the_next_intent_cancels_the_step(store: Store, tombstoned: bool) -> None:
    running(store)
    evidence = Evidence.RECORDED_REFUSAL
    if tombstoned:
        ok(commit(store, StepChange("ship", MANUAL, reason="it may have happened")))
        again = operator_decision("again", requester="eve", step="ship", status=RUNNING)
        ok(commit(store, StepChange("ship", RUNNING, decision=asked(store, again))))
        evidence = Evidence.TOMBSTONED
    ok(commit(store, replace(ANEW, evidence=evidence)))
    number = asked(store, replace(YES_ANEW, decision="rejected"))
    ok(commit(store, StepChange("ship", CANCELLED, request=number), finishes=True))
    step = step_of(store, "ship")
    assert (step.status, step.evidence) == (CANCELLED, evidence)
    assert ok(store.read("order-1")).status == "cancelled"


def test_a_step_that_waits_again_is_called_off_when_the_instance_unwinds(store: Store) -> None:
    running(store)
    ok(commit(store, ANEW))
    assert refused(store, StepChange("ship", CANCELLED)) == "not-unwinding"
    ok(commit(store, StepChange("ship", CANCELLED), move=UNWIND, finishes=True))


# What the database itself holds.


NEXT = "intent_version = 2, idempotency_key = 'second', former_evidence = evidence, evidence = null"


@pytest.mark.parametrize(
    ("assignment", "why"),
    [
        ("status = 'running'", "former"),
        (f"status = 'running', {NEXT}", "consumed by the commit"),
        ("status = 'running', evidence = null", "CHECK|kept|former|consumed"),
        ("evidence = null", "CHECK|kept"),
        ("evidence = 'unsent'", "kept"),
        ("status = 'cancelled', evidence = 'unsent'", "kept"),
        ("status = 'succeeded', receipt = 'r'", "as listed|CHECK"),
        ("approval_fingerprint = null", "CHECK"),
    ],
)
def test_no_update_takes_back_what_is_known(store: Store, path: Path, assignment: str, why: str) -> None:
    running(store)
    ok(commit(store, ANEW))
    before = dump(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.IntegrityError, match=why):
            connection.execute(f"update steps set {assignment} where step = 'ship'")
    assert dump(path) == before


def test_no_update_lets_a_step_wait_without_what_is_known(store: Store, path: Path) -> None:
    running(store)
    before = dump(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
            connection.execute("update steps set status = 'waiting_approval' where step = 'ship'")
    assert dump(path) == before
