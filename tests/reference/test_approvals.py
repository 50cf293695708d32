"""Approvals (§11), retries, timers and deadlines (§9): on the store's now, once, and for one intent only."""

from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.reference import (
    Evidence,
    StepChange,
    StepPlan,
    StepRow,
    Store,
    Timer,
    approval,
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
    UNWIND,
    WAITING,
    asked,
    begun,
    commit,
    started,
    step_of,
    succeeded,
)
from .support import BOB, Clock, code, ok

GATED = StepPlan("ship", needs_approval=True, approval_deadline_at_ms=2_000)
WAIT = StepChange("ship", WAITING, approval_fingerprint="print of ship")
YES = approval("yes", requester="eve", step="ship", fingerprint="print of ship")
NO = replace(YES, request_id="no", decision="rejected")
GIVE_UP = StepChange("ship", FAILED, error_class="approval-deadline")


def ship(store: Store) -> StepRow:
    return step_of(store, "ship")


def waiting(store: Store, plan: StepPlan = GATED) -> None:
    begun(store, plan)
    ok(commit(store, WAIT))


def test_a_step_behind_a_gate_starts_only_with_the_approval_of_its_intent(store: Store) -> None:
    waiting(store)
    assert code(commit(store, started("ship"))) == "illegal-transition"
    number = asked(store, YES)
    ok(commit(store, replace(started("ship"), request=number)))
    assert (ship(store).status, ship(store).approved_by, ship(store).attempt) == (RUNNING, number, 1)


def test_an_approval_is_not_for_changed_parameters_nor_for_another_step(store: Store) -> None:
    begun(store, GATED, StepPlan("pack", needs_approval=True))
    ok(commit(store, WAIT, replace(WAIT, step="pack", approval_fingerprint="print of pack")))
    number = asked(store, YES)
    other = started("ship", fingerprint="print of other parameters")
    assert code(commit(store, replace(other, request=number))) == "illegal-transition"
    assert code(commit(store, replace(started("pack"), request=number))) == "no-such-request"
    mine = asked(store, replace(YES, request_id="other", fingerprint="print of other parameters"))
    assert code(commit(store, replace(started("ship"), request=mine))) == "no-such-request"
    assert code(commit(store, replace(other, request=mine))) == "no-such-request"


def test_an_approval_survives_its_worker_and_is_spent_by_the_next(store: Store, clock: Clock) -> None:
    waiting(store)
    number = asked(store, YES)
    clock.now_ms += LONG_MS
    ok(store.acquire("order-1", BOB, lease_ms=LONG_MS))
    ok(commit(store, replace(started("ship"), request=number)))  # however late it is consumed


def test_an_approval_recorded_after_its_deadline_is_refused(store: Store, clock: Clock) -> None:
    waiting(store)
    clock.now_ms = 1_999
    ok(store.request("order-1", YES))
    clock.now_ms = 2_000
    assert code(store.request("order-1", replace(YES, request_id="late"))) == "deadline-passed"
    assert ok(store.request("order-1", YES)).recorded_at_ms == 1_999  # sent again


def test_a_rejection_is_recorded_however_late_it_comes(store: Store, clock: Clock) -> None:
    waiting(store)
    clock.now_ms = 2_000
    ok(commit(store, StepChange("ship", CANCELLED, request=asked(store, NO)), move=UNWIND))
    assert ship(store).status is CANCELLED


def test_a_deadline_does_not_wait_for_the_approval_of_something_else(store: Store, clock: Clock) -> None:
    waiting(store)
    asked(store, replace(YES, request_id="other", fingerprint="print of other parameters"))
    clock.now_ms = 2_000
    ok(commit(store, GIVE_UP))


def test_a_deadline_does_not_fail_what_was_decided_in_time(store: Store, clock: Clock) -> None:
    waiting(store)
    assert code(commit(store, GIVE_UP)) == "not-due"
    number = asked(store, YES)
    clock.now_ms = 2_000
    assert code(commit(store, GIVE_UP)) == "approval-recorded"
    ok(commit(store, replace(started("ship"), request=number)))


def test_a_step_fails_once_the_deadline_of_its_approval_has_passed(store: Store, clock: Clock) -> None:
    waiting(store)
    clock.now_ms = 1_999
    assert code(commit(store, GIVE_UP)) == "not-due"
    clock.now_ms = 2_000
    ok(commit(store, GIVE_UP, finishes=True))
    assert (ship(store).status, ship(store).error_class) == (FAILED, "approval-deadline")
    assert ok(store.read("order-1")).status == "failed"


def test_the_worker_that_asks_may_set_the_deadline_from_now_on(store: Store, clock: Clock) -> None:
    begun(store, replace(GATED, approval_deadline_at_ms=None))
    assert code(commit(store, replace(WAIT, approval_deadline_at_ms=1_000))) == "deadline-passed"
    ok(commit(store, replace(WAIT, approval_deadline_at_ms=1_500)))
    clock.now_ms = 1_500
    assert code(store.request("order-1", YES)) == "deadline-passed"
    ok(commit(store, GIVE_UP))


def test_a_rejection_cancels_the_step_and_does_not_start_it(store: Store) -> None:
    waiting(store)
    number = asked(store, NO)
    assert code(commit(store, replace(started("ship"), request=number))) == "no-such-request"
    assert code(commit(store, StepChange("ship", CANCELLED))) == "not-unwinding"
    ok(commit(store, StepChange("ship", CANCELLED, request=number), finishes=True))
    assert ok(store.read("order-1")).status == "cancelled"


def test_a_step_waits_only_when_what_it_depends_on_has_succeeded(store: Store) -> None:
    begun(store, replace(GATED, depends_on=("charge",)), StepPlan("charge"))
    assert code(commit(store, WAIT)) == "dependency-unmet"
    assert store.runnable_steps("order-1") == ("charge",)
    ok(commit(store, started("charge")))
    ok(commit(store, succeeded("charge"), WAIT))  # in the order in which they are named
    assert store.runnable_steps("order-1") == ()


# Retries, timers, deadlines.


def retry(at_ms: int, step: str = "charge") -> StepChange:
    return StepChange(step, RETRY, timer_at_ms=at_ms, error_class="busy")


def test_a_timer_fires_when_it_is_due_on_the_store_s_now_and_once(store: Store, clock: Clock) -> None:
    begun(store, StepPlan("charge"))
    ok(commit(store, started("charge")))
    ok(commit(store, retry(1_500)))
    before = step_of(store, "charge")
    assert (before.status, before.timer_at_ms, before.error_class, before.attempt) == (
        RETRY,
        1_500,
        "busy",
        1,
    )
    fire = StepChange("charge", RUNNING)
    clock.now_ms = 1_499
    assert code(commit(store, fire)) == "not-due"
    assert store.due_timers() == ()
    clock.now_ms = 1_500
    assert store.due_timers() == (Timer("order-1", "charge", 1_500),)
    clock.now_ms = 1_000  # the store's now does not step back
    ok(commit(store, StepChange("charge", RETRY, timer_at_ms=1_600)))
    clock.now_ms = 1_600
    ok(commit(store, fire))
    after = step_of(store, "charge")
    assert (after.status, after.timer_at_ms, after.attempt) == (RUNNING, None, 2)
    assert after.intent == before.intent  # the key does not change between attempts
    assert code(commit(store, fire)) == "illegal-transition"
    assert store.due_timers() == ()


def test_now_stays_where_a_call_that_was_refused_has_moved_it(store: Store, clock: Clock) -> None:
    begun(store, StepPlan("charge"))
    ok(commit(store, started("charge")))
    ok(commit(store, retry(1_500)))
    clock.now_ms = 1_500
    assert code(commit(store, StepChange("charge", WAITING))) == "illegal-transition"
    clock.now_ms = 1_000
    assert [timer.step for timer in store.due_timers()] == ["charge"]
    ok(commit(store, StepChange("charge", RUNNING)))


def test_the_budget_of_attempts_counts_retries_and_resends(store: Store) -> None:
    begun(store, StepPlan("charge", most_attempts=3))
    ok(commit(store, started("charge")))
    ok(commit(store, StepChange("charge", RUNNING, another_attempt=True)))
    ok(commit(store, retry(1_000)))
    ok(commit(store, StepChange("charge", RUNNING)))
    assert step_of(store, "charge").attempt == 3
    assert code(commit(store, retry(1_000))) == "illegal-transition"
    assert code(commit(store, StepChange("charge", RUNNING, another_attempt=True))) == "illegal-transition"
    ok(commit(store, StepChange("charge", MANUAL, reason="exhausted", error_class="busy")))


def test_a_retry_whose_effect_may_have_happened_is_not_taken_for_unsent(store: Store) -> None:
    begun(store, StepPlan("charge"))
    ok(commit(store, started("charge")))
    ok(commit(store, retry(1_000)))
    unsent = StepChange("charge", FAILED, evidence=Evidence.UNSENT)
    assert code(commit(store, unsent)) == "illegal-transition"
    ok(commit(store, StepChange("charge", RUNNING)))
    assert code(commit(store, unsent)) == "illegal-transition"
    ok(commit(store, StepChange("charge", FAILED, evidence=Evidence.RECORDED_REFUSAL)))


def test_nothing_starts_or_is_tried_again_past_a_deadline_but_outcomes_count(
    store: Store, clock: Clock
) -> None:
    begun(store, StepPlan("charge", deadline_at_ms=1_500), StepPlan("pack", deadline_at_ms=1_500))
    ok(commit(store, started("charge")))
    clock.now_ms = 1_499
    ok(commit(store, StepChange("charge", RUNNING, another_attempt=True)))
    clock.now_ms = 1_500
    assert code(commit(store, started("pack"))) == "deadline-passed"
    assert code(commit(store, StepChange("charge", RUNNING, another_attempt=True))) == "deadline-passed"
    ok(commit(store, succeeded("charge")))


def test_the_deadline_of_the_instance_holds_for_each_of_its_steps(store: Store, clock: Clock) -> None:
    begun(store, StepPlan("charge"), StepPlan("pack"), deadline_at_ms=1_500)
    ok(commit(store, started("charge")))
    ok(commit(store, retry(1_400)))
    clock.now_ms = 1_500
    for change in (started("pack"), StepChange("charge", RUNNING)):
        assert code(commit(store, change)) == "deadline-passed"


def test_a_person_s_decision_to_run_a_step_again_keeps_its_intent_and_its_deadline(
    store: Store, clock: Clock
) -> None:
    begun(store, StepPlan("charge", deadline_at_ms=1_500))
    ok(commit(store, started("charge")))
    ok(commit(store, StepChange("charge", MANUAL, reason="it may have happened")))
    again = operator_decision("again", requester="eve", step="charge", status=RUNNING)
    change = StepChange("charge", RUNNING, decision=asked(store, again))
    clock.now_ms = 1_500
    assert code(commit(store, change)) == "deadline-passed"


def test_what_a_step_gave_is_kept_with_its_success(path: Path, clock: Clock) -> None:
    with open_store(path, clock_ms=clock) as store:
        begun(store, StepPlan("charge"))
        result = replace(succeeded("charge"), result="results/charge.json")
        assert code(commit(store, replace(started("charge"), result="too early"))) == "illegal-transition"
        ok(commit(store, started("charge")))
        ok(commit(store, result))
    with open_store(path, clock_ms=clock) as store:
        assert step_of(store, "charge").result == "results/charge.json"


@pytest.mark.parametrize("missing", ["timer_at_ms", "error_class"])
def test_a_retry_names_its_time_and_its_error(missing: str, store: Store) -> None:
    begun(store, StepPlan("charge"))
    ok(commit(store, started("charge")))
    assert code(commit(store, replace(retry(1_500), **{missing: None}))) == "illegal-transition"
