"""The way back (§10, §12): what unwinds, in which order it is compensated, and what a person attests."""

from dataclasses import replace
from itertools import product

import pytest

from fencepost.reference import (
    Evidence,
    InstanceStatus,
    Migration,
    Move,
    Ok,
    StepChange,
    StepPlan,
    StepStatus,
    Store,
    operator_decision,
    resumption,
)

from .lifecycle import (
    CANCELLED,
    COMPENSATED,
    COMPENSATING,
    DEFINITION,
    FAILED,
    HAND_OVER,
    LATER,
    MANUAL,
    RETRY,
    RUNNING,
    SUCCEEDED,
    UNWIND,
    asked,
    begun,
    commit,
    decided_unasked,
    started,
    step_of,
    succeeded,
    undo_of,
    undoing,
)
from .support import Clock, code, ok, refusal


def undone(step: str) -> StepChange:
    return StepChange(step, COMPENSATED, receipt=f"receipt of undoing {step}")


def done(store: Store, *steps: str, compensation: str | None = "refund") -> None:
    """Let steps succeed, one after the other."""
    for step in steps:
        ok(commit(store, started(step, compensation=compensation)))
        ok(commit(store, succeeded(step)))


def decided(store: Store, step: str, status: StepStatus) -> int:
    return asked(store, operator_decision(f"{step} {status}", requester="eve", step=step, status=status))


def test_what_succeeded_last_is_compensated_first(store: Store) -> None:
    begun(store, *(StepPlan(name) for name in "abc"))
    done(store, "b", "c", "a")
    ok(commit(store, move=UNWIND))
    order = []
    for _ in range(3):
        for step in "abc":
            if step_of(store, step).status is SUCCEEDED:
                answer = commit(store, undoing(step))
                if step_of(store, step).status is COMPENSATING:
                    order.append(step)
                    ok(commit(store, undone(step)))
                else:
                    assert code(answer) == "not-in-order"
    assert order == ["a", "c", "b"]


def test_nothing_is_compensated_before_the_one_that_comes_first_has_been(store: Store) -> None:
    begun(store, StepPlan("a"), StepPlan("b"))
    done(store, "a", "b")
    ok(commit(store, move=UNWIND))
    ok(commit(store, undoing("b")))
    assert code(commit(store, undoing("a"))) == "unfinished-steps"
    ok(commit(store, undone("b"), undoing("a")))


def test_a_step_without_a_compensation_is_passed_over_and_stays_succeeded(store: Store) -> None:
    begun(store, *(StepPlan(name) for name in "abc"))
    done(store, "a")
    done(store, "b", compensation=None)
    ok(commit(store, move=UNWIND))
    assert code(commit(store, undoing("b"))) == "illegal-transition"
    ok(commit(store, StepChange("c", CANCELLED), undoing("a")))
    assert code(commit(store, finishes=True)) == "unfinished-steps"
    ok(commit(store, undone("a"), finishes=True))
    assert (step_of(store, "b").status, ok(store.read("order-1")).status) == (SUCCEEDED, "cancelled")


def test_nothing_starts_and_nothing_is_compensated_while_something_is_open(store: Store) -> None:
    begun(store, *(StepPlan(name) for name in "abc"))
    done(store, "a")
    ok(commit(store, started("b")))
    ok(commit(store, move=UNWIND))
    assert code(commit(store, started("c"))) == "unwinding"
    assert code(commit(store, StepChange("b", RUNNING, another_attempt=True))) == "unwinding"
    assert code(commit(store, undoing("a"))) == "unfinished-steps"
    ok(commit(store, StepChange("c", CANCELLED)))
    assert code(commit(store, undoing("a"))) == "unfinished-steps"
    ok(commit(store, succeeded("b"), undoing("a")))


def test_one_commit_fails_a_step_and_unwinds_and_the_instance_ends_failed(store: Store) -> None:
    begun(store, StepPlan("a"), StepPlan("b"), StepPlan("c"))
    done(store, "a")
    ok(commit(store, started("b")))
    failed = StepChange("b", FAILED, evidence=Evidence.RECORDED_REFUSAL, error_class="declined")
    because = Move(InstanceStatus.UNWINDING, cause="b failed")
    entry = ok(commit(store, failed, StepChange("c", CANCELLED), undoing("a"), move=because))
    row = ok(store.read("order-1"))
    assert (row.status, row.unwinding_cause) == ("unwinding", "b failed")
    assert {each.step for each in store.step_log("order-1") if each.state_version == entry.state_version} == {
        "a",
        "b",
        "c",
    }
    ok(commit(store, undone("a"), finishes=True))
    assert ok(store.read("order-1")).status == "failed"


def test_an_instance_that_unwinds_never_runs_again_nor_succeeds(store: Store) -> None:
    begun(store, StepPlan("a"))
    done(store, "a", compensation=None)
    ok(commit(store, move=UNWIND))
    assert code(commit(store, move=Move(InstanceStatus.RUNNING))) == "illegal-transition"  # there already
    ok(commit(store, move=HAND_OVER))
    number = asked(store, resumption("on", requester="eve"))
    runs = Move(InstanceStatus.RUNNING, decision=number)
    assert code(commit(store, move=runs)) == "unwinding"
    ok(commit(store, move=Move(InstanceStatus.UNWINDING, decision=number)))
    ok(commit(store, finishes=True))
    assert ok(store.read("order-1")).status == "cancelled"


def test_a_compensation_has_an_intent_of_its_own_that_is_stored_before_it_is_sent(store: Store) -> None:
    begun(store, StepPlan("a"))
    done(store, "a")
    ok(commit(store, move=UNWIND))
    assert code(commit(store, StepChange("a", COMPENSATING))) == "illegal-transition"
    assert code(commit(store, undone("a"))) == "illegal-transition"
    ok(commit(store, undoing("a")))
    step = step_of(store, "a")
    assert (step.undo, step.undo_lease_version, step.undo_attempt) == (undo_of("a"), 1, 1)
    assert (step.receipt, step.undo_receipt) == ("receipt of a", None)
    assert code(commit(store, undoing("a"))) == "illegal-transition"
    assert code(commit(store, StepChange("a", COMPENSATED))) == "illegal-transition"  # without a receipt
    ok(commit(store, StepChange("a", COMPENSATING, receipt="refunded")))
    assert code(commit(store, undone("a"))) == "illegal-transition"  # with another one
    ok(commit(store, StepChange("a", COMPENSATED)))
    assert step_of(store, "a").undo_receipt == "refunded"
    assert code(commit(store, undoing("a"))) == "illegal-transition"  # once each


def test_a_compensation_is_tried_again_within_its_status(store: Store, clock: Clock) -> None:
    begun(store, StepPlan("a"))
    done(store, "a")
    ok(commit(store, move=UNWIND))
    ok(commit(store, undoing("a")))
    ok(commit(store, StepChange("a", COMPENSATING, timer_at_ms=1_500, error_class="busy")))
    again = StepChange("a", COMPENSATING, another_attempt=True)
    assert code(commit(store, again)) == "not-due"
    clock.now_ms = 1_500
    assert [timer.step for timer in store.due_timers()] == ["a"]
    ok(commit(store, again))
    step = step_of(store, "a")
    assert (step.undo_attempt, step.attempt, step.timer_at_ms, step.undo) == (2, 1, None, undo_of("a"))


def test_a_compensation_has_a_budget_of_attempts_of_its_own(store: Store, clock: Clock) -> None:
    begun(store, StepPlan("a", most_attempts=2))
    done(store, "a")
    ok(commit(store, move=UNWIND))
    ok(commit(store, undoing("a")))
    later = StepChange("a", COMPENSATING, timer_at_ms=clock.now_ms, error_class="busy")
    again = StepChange("a", COMPENSATING, another_attempt=True)
    ok(commit(store, later))
    ok(commit(store, again))
    assert (step_of(store, "a").undo_attempt, step_of(store, "a").attempt) == (2, 1)
    for change in (again, later):
        refusal(commit(store, change))
    ok(commit(store, StepChange("a", MANUAL, reason="its attempts are used up")))


def test_a_failed_compensation_waits_for_a_person_and_stops_the_unwinding(store: Store) -> None:
    begun(store, StepPlan("a"), StepPlan("b"))
    done(store, "a", "b")
    ok(commit(store, move=UNWIND))
    ok(commit(store, undoing("b")))
    ok(commit(store, StepChange("b", MANUAL, reason="the refund was declined")))
    assert step_of(store, "b").from_status is COMPENSATING
    assert code(commit(store, undoing("a"))) == "unfinished-steps"
    assert code(commit(store, finishes=True)) == "unfinished-steps"
    for status in (RUNNING, SUCCEEDED, FAILED, CANCELLED):
        wrong = StepChange("b", status, decision=decided(store, "b", status))
        assert code(commit(store, wrong)) == "illegal-transition"
    ok(commit(store, StepChange("b", COMPENSATED, decision=decided(store, "b", COMPENSATED))))
    step = step_of(store, "b")
    assert (step.status, step.attested, step.undo_receipt) == (COMPENSATED, True, None)
    ok(commit(store, undoing("a")))
    ok(commit(store, undone("a"), finishes=True))


@pytest.mark.parametrize("status", [SUCCEEDED, FAILED, CANCELLED])
def test_what_a_person_settles_without_receipt_or_evidence_is_attested(
    status: StepStatus, store: Store
) -> None:
    begun(store, StepPlan("a"))
    ok(commit(store, started("a")))
    ok(commit(store, StepChange("a", MANUAL, reason="it may have happened")))
    assert code(commit(store, StepChange("a", status))) == "illegal-transition"
    ok(commit(store, StepChange("a", status, decision=decided(store, "a", status))))
    assert (step_of(store, "a").status, step_of(store, "a").attested) == (status, True)


def test_what_a_person_settles_with_receipt_or_evidence_is_not_attested(store: Store) -> None:
    begun(store, StepPlan("a"), StepPlan("b"), StepPlan("c"))
    ok(commit(store, started("a"), started("b"), StepChange("c", RUNNING)))
    ok(commit(store, *(StepChange(name, MANUAL, reason="who knows") for name in "abc")))
    tombstone = StepChange(
        "b",
        CANCELLED,
        decision=decided(store, "b", CANCELLED),
        evidence=Evidence.TOMBSTONED,
        unwinding="decided by eve",
    )
    assert code(commit(store, replace(tombstone, unwinding=None))) == "illegal-transition"
    ok(
        commit(
            store,
            replace(succeeded("a"), decision=decided(store, "a", SUCCEEDED)),
            tombstone,
            StepChange("c", FAILED, decision=decided(store, "c", FAILED)),
        )
    )
    assert [step_of(store, name).attested for name in "abc"] == [False, False, False]


def test_no_decision_goes_against_a_receipt_that_is_stored(store: Store) -> None:
    begun(store, StepPlan("a"))
    ok(commit(store, started("a")))
    ok(commit(store, StepChange("a", RUNNING, receipt="receipt of a")))
    ok(commit(store, StepChange("a", MANUAL, reason="the result is not to be read")))
    for status in (RUNNING, FAILED, CANCELLED):
        against = StepChange("a", status, decision=decided(store, "a", status))
        assert code(commit(store, against)) == "illegal-transition"
    number = decided(store, "a", SUCCEEDED)
    another = StepChange("a", SUCCEEDED, decision=number, receipt="another")
    assert code(commit(store, another)) == "illegal-transition"
    ok(commit(store, StepChange("a", SUCCEEDED, decision=number)))
    assert (step_of(store, "a").receipt, step_of(store, "a").attested) == ("receipt of a", False)


def test_a_step_that_is_given_up_is_not_run_again_by_a_decision(store: Store) -> None:
    begun(store, StepPlan("a"))
    ok(commit(store, started("a")))
    ok(commit(store, StepChange("a", RUNNING, unwinding="withdrawn")))
    ok(commit(store, StepChange("a", MANUAL, reason="the tombstone was refused")))
    number = decided(store, "a", RUNNING)
    assert code(commit(store, StepChange("a", RUNNING, decision=number))) == "unwinding"


@pytest.mark.parametrize("evidence", [Evidence.UNSENT, Evidence.FENCED_AND_NOT_FOUND])
def test_a_decision_does_not_make_evidence_of_what_is_none(evidence: Evidence, store: Store) -> None:
    begun(store, StepPlan("a"))
    ok(commit(store, started("a")))
    ok(commit(store, StepChange("a", RETRY, timer_at_ms=1_000, error_class="busy")))
    ok(commit(store, StepChange("a", MANUAL, reason="exhausted")))
    number = decided(store, "a", FAILED)
    change = StepChange("a", FAILED, decision=number, evidence=evidence)
    assert code(commit(store, change)) == "illegal-transition"
    ok(commit(store, replace(change, evidence=Evidence.RECORDED_REFUSAL)))
    assert step_of(store, "a").attested is False


def test_a_decision_is_for_the_status_that_it_names_and_used_once(store: Store) -> None:
    begun(store, StepPlan("a"))
    ok(commit(store, started("a")))
    ok(commit(store, StepChange("a", MANUAL, reason="it may have happened")))
    number = decided(store, "a", RUNNING)
    assert code(commit(store, StepChange("a", FAILED, decision=number))) == "no-such-request"
    ok(commit(store, StepChange("a", RUNNING, decision=number)))
    step = step_of(store, "a")
    assert (step.attempt, step.attested, step.from_status) == (2, False, None)
    ok(commit(store, StepChange("a", MANUAL, reason="once more")))
    assert code(commit(store, StepChange("a", RUNNING, decision=number))) == "no-such-request"


def test_an_attested_success_is_compensated_like_any_other(store: Store) -> None:
    begun(store, StepPlan("a"))
    ok(commit(store, started("a", compensation="refund")))
    ok(commit(store, StepChange("a", MANUAL, reason="it may have happened")))
    ok(commit(store, move=UNWIND))
    ok(commit(store, StepChange("a", SUCCEEDED, decision=decided(store, "a", SUCCEEDED))))
    ok(commit(store, undoing("a")))
    ok(commit(store, undone("a"), finishes=True))


def test_one_commit_may_cancel_all_there_is_and_end(store: Store) -> None:
    begun(store, *(StepPlan(name) for name in "abc"))
    ok(commit(store, *(StepChange(name, CANCELLED) for name in "abc"), move=UNWIND, finishes=True))
    row = ok(store.read("order-1"))
    assert (row.status, row.state_version) == ("cancelled", 1)


def may_move(came: str, goes: Move) -> bool:
    """What §8, §10 and §14 say of the status of an instance, whatever else the commit carries."""
    unwinds, waits = came.startswith("unwinding"), came.endswith("waiting")
    if (goes.decision is not None and not waits) or (waits and goes.decision is None and not goes.migration):
        return False
    match goes.status:
        case InstanceStatus.RUNNING:
            return not unwinds and goes.cause is None and (waits or goes.migration is not None)
        case InstanceStatus.UNWINDING if unwinds:
            return goes.cause is None and (waits or goes.migration is not None)
        case InstanceStatus.UNWINDING:
            return goes.cause is not None
    return not waits and goes.cause is not None


CAME = ("running", "unwinding", "running, waiting", "unwinding, waiting")
WENT = (InstanceStatus.RUNNING, InstanceStatus.UNWINDING, InstanceStatus.MANUAL_INTERVENTION)


def test_an_instance_moves_as_the_oracle_says_and_not_otherwise(store: Store) -> None:
    ok(store.register_migration(Migration("to-2", DEFINITION, LATER)))
    legal = 0
    for came, status, cause, way in product(CAME, WENT, (None, "why"), ("", "decision", "migration")):
        instance = f"{came} {status} {cause} {way}"
        begun(store, instance=instance)
        if came.startswith("unwinding"):
            ok(commit(store, instance=instance, move=UNWIND))
        if came.endswith("waiting"):
            ok(commit(store, instance=instance, move=HAND_OVER))
        number = decided_unasked(store, resumption("on", requester="eve"), instance)
        goes = Move(
            status,
            cause=cause,
            decision=number if way == "decision" else None,
            definition=LATER if way == "migration" else None,
            migration="to-2" if way == "migration" else None,
        )
        answer = commit(store, instance=instance, move=goes)
        assert isinstance(answer, Ok) == may_move(came, goes), (came, goes, answer)
        legal += isinstance(answer, Ok)
        if isinstance(answer, Ok):
            assert ok(store.read(instance)).status == status
    assert legal > 10


def test_an_instance_does_not_end_while_it_waits_for_a_person_or_has_something_to_undo(store: Store) -> None:
    begun(store, StepPlan("a"))
    done(store, "a")
    ok(commit(store, move=UNWIND))
    assert code(commit(store, finishes=True)) == "unfinished-steps"
    begun(store, instance="order-2")
    assert code(commit(store, instance="order-2", move=HAND_OVER, finishes=True)) == "illegal-transition"
    ok(commit(store, instance="order-2", move=HAND_OVER))
    assert code(commit(store, instance="order-2", finishes=True)) == "illegal-transition"
