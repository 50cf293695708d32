"""Requests of those without a lease (§4): what they leave alone, and that each takes effect at most once."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from fencepost.reference import (
    ArgumentError,
    InstanceStatus,
    Move,
    Ok,
    Refused,
    Request,
    RequestKind,
    StepChange,
    StepPlan,
    StepStatus,
    Store,
    approval,
    cancellation,
    late_result,
    observe,
    open_store,
    operator_decision,
    resumption,
)

from .lifecycle import (
    CANCELLED,
    HAND_OVER,
    MANUAL,
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
    step_of,
    succeeded,
)
from .support import BOB, Clock, code, commit_on, dump, ok, refusal

GATED = StepPlan("ship", needs_approval=True, approval_deadline_at_ms=2_000)
CANCEL = cancellation("cancel-1", requester="eve", reason="changed her mind")
APPROVAL = approval("approval-1", requester="eve", step="ship", fingerprint="print of ship")
WAIT = StepChange("ship", WAITING, approval_fingerprint="print of ship")


def late(step: str = "charge", **changes: str) -> Request:
    whole = {
        "key": intent_of(step).key,
        "fingerprint": intent_of(step).fingerprint,
        "receipt": f"receipt of {step}",
    }
    return late_result("late-1", requester="ada", step=step, **(whole | changes))


def test_a_request_moves_no_version_no_lease_and_no_status(store: Store, path: Path) -> None:
    begun(store, GATED)
    before = dump(path)
    recorded = ok(store.request("order-1", CANCEL))
    assert (recorded.number, recorded.recorded_at_ms, recorded.consumed_by) == (1, 1_000, None)
    assert recorded.request == CANCEL
    after = dump(path)
    assert len(after.pop("inbox")) == 1
    before.pop("inbox")
    assert after == before
    assert store.inbox("order-1") == observe(path).inbox("order-1") == (recorded,)


def test_each_instance_numbers_its_own_requests(store: Store) -> None:
    for instance in ("order-1", "order-2"):
        begun(store, GATED, instance=instance)
    numbers = [
        asked(store, replace(CANCEL, request_id=name), instance)
        for name, instance in (("a", "order-1"), ("b", "order-2"), ("c", "order-1"), ("a", "order-2"))
    ]
    assert numbers == [1, 1, 2, 2]


def test_a_request_that_is_sent_again_is_answered_with_what_is_there(store: Store, path: Path) -> None:
    begun(store, GATED)
    first = ok(store.request("order-1", CANCEL))
    before = dump(path)
    assert store.request("order-1", CANCEL) == Ok(first)
    other = refusal(store.request("order-1", replace(CANCEL, reason="another")))
    assert other.code == "key-conflict"
    assert other.observed == ok(store.read("order-1"))
    assert dump(path) == before


def test_a_repeated_request_is_answered_also_after_the_end_of_the_instance(store: Store) -> None:
    begun(store)
    number = asked(store, CANCEL)
    ok(commit(store, move=UNWIND, requests=(number,), finishes=True))
    assert ok(store.read("order-1")).status == "cancelled"
    assert ok(store.request("order-1", CANCEL)).consumed_by == 1


def test_whatever_comes_after_the_end_is_told_so_but_for_a_late_result(store: Store) -> None:
    begun(store, StepPlan("charge"), GATED)
    ok(commit(store, started("charge")))
    ok(commit(store, StepChange("ship", CANCELLED), move=UNWIND))
    ok(commit(store, succeeded("charge"), finishes=True))
    decision = operator_decision("d", requester="eve", step="charge", status=StepStatus.FAILED)
    for request in (CANCEL, APPROVAL, decision, resumption("r", requester="eve")):
        assert code(store.request("order-1", request)) == "finished"
    assert ok(store.request("order-1", late())).consumed_by is None


def test_a_request_for_nothing_that_is_there_is_refused(store: Store) -> None:
    assert refusal(store.request("order-1", CANCEL)) == Refused("no-such-instance", None)
    begun(store, StepPlan("charge"), GATED)
    assert code(store.request("order-1", replace(APPROVAL, step="another"))) == "no-such-step"
    assert code(store.request("order-1", replace(APPROVAL, step="charge"))) == "no-such-step"  # no gate
    assert code(store.request("order-1", late(step="another"))) == "no-such-step"


def test_a_commit_consumes_a_request_that_is_there_and_only_once(store: Store, path: Path) -> None:
    begun(store, StepPlan("charge"))
    assert code(commit(store, move=UNWIND, requests=(1,))) == "no-such-request"
    number = asked(store, CANCEL)
    ok(commit(store, move=UNWIND, requests=(number,)))
    before = dump(path)
    again = refusal(commit(store, StepChange("charge", CANCELLED), requests=(number,)))
    assert again.code == "no-such-request"
    assert again.observed == ok(store.read("order-1"))
    assert dump(path) == before


def test_one_commit_consumes_several_requests_with_all_that_it_changes(store: Store) -> None:
    begun(store, StepPlan("charge"), GATED)
    ok(commit(store, started("charge"), WAIT))
    numbers = (
        asked(store, CANCEL),
        asked(store, replace(CANCEL, request_id="cancel-2")),
        asked(store, replace(APPROVAL, decision="rejected")),
        asked(store, late()),
    )
    rejected = StepChange("ship", CANCELLED, request=numbers[2])
    arrived = replace(succeeded("charge"), request=numbers[3])
    entry = ok(commit(store, arrived, rejected, move=UNWIND, requests=numbers[:2], finishes=True))
    assert {each.consumed_by for each in store.inbox("order-1")} == {entry.state_version} == {2}
    assert store.inbox("order-1", unconsumed=True) == ()
    assert [e.step for e in store.step_log("order-1") if e.state_version == 2] == ["charge", "ship"]
    row = ok(store.read("order-1"))
    assert (row.status, row.state_version) == ("cancelled", 2)


def test_a_commit_that_is_refused_consumes_nothing(store: Store, path: Path, clock: Clock) -> None:
    begun(store, StepPlan("charge"), GATED)
    number = asked(store, CANCEL)
    before = dump(path)
    clock.now_ms += 1
    refused = refusal(commit(store, StepChange("charge", MANUAL), move=UNWIND, requests=(number,)))
    assert refused.code == "illegal-transition"
    assert dump(path) == before
    assert observe(path).now_ms == clock.now_ms


def test_a_repeated_commit_id_consumes_nothing_more(store: Store, path: Path) -> None:
    row = begun(store, StepPlan("charge"))
    number = asked(store, CANCEL)
    first = commit_on(row)
    entry = ok(store.commit(replace(first, move=UNWIND, requests=(number,))))
    asked(store, replace(CANCEL, request_id="cancel-2"))
    before = dump(path)
    assert store.commit(replace(first, requests=(number, number + 1))) == Ok(entry)
    assert dump(path) == before


# Cancels (§10).


def test_a_cancel_holds_up_each_start_and_the_end_until_it_is_consumed(store: Store) -> None:
    begun(store, StepPlan("charge"), StepPlan("pack"))
    ok(commit(store, started("charge")))
    retry = StepChange("charge", StepStatus.RETRY_SCHEDULED, error_class="busy", timer_at_ms=1_000)
    number = asked(store, CANCEL)
    for change in (started("pack"), StepChange("charge", RUNNING, another_attempt=True)):
        assert code(commit(store, change)) == "cancel-requested"
    ok(commit(store, retry))  # which starts nothing; the next test is about its timer
    ok(commit(store, succeeded("charge")))  # what is under way is resolved all the same
    assert code(commit(store, finishes=True)) == "cancel-requested"
    ok(commit(store, StepChange("pack", CANCELLED), move=UNWIND, requests=(number,), finishes=True))
    assert ok(store.read("order-1")).status == "cancelled"


def test_a_retry_that_is_due_does_not_fire_under_a_cancel(store: Store) -> None:
    begun(store, StepPlan("charge"))
    ok(commit(store, started("charge")))
    ok(commit(store, StepChange("charge", StepStatus.RETRY_SCHEDULED, error_class="e", timer_at_ms=1_000)))
    asked(store, CANCEL)
    assert code(commit(store, StepChange("charge", RUNNING))) == "cancel-requested"


def test_the_first_of_a_cancel_and_the_end_wins_and_the_other_is_told(store: Store) -> None:
    begun(store, instance="order-1")
    ok(commit(store, finishes=True))
    assert code(store.request("order-1", CANCEL)) == "finished"
    begun(store, instance="order-2")
    asked(store, CANCEL, "order-2")
    assert code(commit(store, instance="order-2", finishes=True)) == "cancel-requested"


def test_a_cancel_is_consumed_only_by_an_instance_that_unwinds(store: Store) -> None:
    begun(store, StepPlan("charge"))
    number = asked(store, CANCEL)
    assert code(commit(store, requests=(number,))) == "not-unwinding"
    assert code(commit(store, move=HAND_OVER, requests=(number,))) == "not-unwinding"
    ok(commit(store, move=UNWIND))
    second = asked(store, replace(CANCEL, request_id="cancel-2"))
    ok(commit(store, requests=(number, second)))


def test_a_cancel_touches_no_other_instance(store: Store) -> None:
    begun(store, StepPlan("charge"), instance="order-1")
    begun(store, StepPlan("charge"), instance="order-2")
    asked(store, CANCEL, "order-1")
    ok(commit(store, started("charge", "order-2"), instance="order-2"))


def test_an_instance_that_a_trigger_did_not_begin_is_cancelled_alike(store: Store) -> None:
    ok(store.create("order-1"))
    ok(store.acquire("order-1", BOB, lease_ms=100))
    number = asked(store, CANCEL)
    assert code(commit(store, StepChange("charge", RUNNING))) == "cancel-requested"
    ok(commit(store, move=UNWIND, requests=(number,), finishes=True))


# Late results.


def test_a_late_result_with_the_stored_key_and_fingerprint_is_merged(store: Store) -> None:
    begun(store, StepPlan("charge"))
    ok(commit(store, started("charge")))
    number = asked(store, late())
    ok(commit(store, replace(succeeded("charge"), request=number)))
    assert step_of(store, "charge").receipt == "receipt of charge"


@pytest.mark.parametrize("changed", ["key", "fingerprint", "receipt"])
def test_any_other_late_result_stays_in_the_inbox_as_evidence(changed: str, store: Store) -> None:
    begun(store, StepPlan("charge"))
    ok(commit(store, started("charge")))
    number = asked(store, late(**{changed: "another"}))
    assert code(commit(store, replace(succeeded("charge"), request=number))) == "no-such-request"
    assert code(commit(store, requests=(number,))) == "no-such-request"
    ok(commit(store, succeeded("charge")))
    ok(commit(store, finishes=True))
    assert [each.number for each in store.inbox("order-1", unconsumed=True)] == [number]


# Operator decisions.


def test_an_instance_that_waits_for_a_person_changes_nothing_until_one_decides(store: Store) -> None:
    begun(store, StepPlan("charge"))
    ok(commit(store, started("charge")))
    ok(commit(store, move=HAND_OVER))
    assert code(commit(store, succeeded("charge"))) == "illegal-transition"
    assert code(commit(store, finishes=True)) == "illegal-transition"
    assert step_of(store, "charge").status is RUNNING
    number = asked(store, resumption("r", requester="eve"))
    ok(commit(store, succeeded("charge"), move=Move(InstanceStatus.RUNNING, decision=number)))
    row = ok(store.read("order-1"))
    assert (row.status, row.manual_cause) == ("running", None)


def test_a_decision_about_a_step_does_not_resume_an_instance_nor_the_other_way(store: Store) -> None:
    begun(store, StepPlan("charge"))
    ok(commit(store, started("charge")))
    ok(commit(store, StepChange("charge", MANUAL, reason="it may have happened")))
    assert code(store.request("order-1", resumption("r", requester="eve"))) == "nothing-to-decide"
    resumed = decided_unasked(store, resumption("r", requester="eve"))
    assert code(commit(store, StepChange("charge", SUCCEEDED, decision=resumed))) == "no-such-request"
    number = asked(store, operator_decision("d", requester="eve", step="charge", status=SUCCEEDED))
    ok(commit(store, move=HAND_OVER))
    back = Move(InstanceStatus.RUNNING, decision=number)
    assert code(commit(store, move=back)) == "illegal-transition"


def test_what_nobody_may_ask_for_is_an_error(store: Store) -> None:
    with pytest.raises(ArgumentError, match="choose one of running, succeeded"):
        operator_decision("d", requester="eve", step="charge", status=StepStatus.PENDING)
    with pytest.raises(ArgumentError, match="cancel was given step; make it by cancellation"):
        Request(RequestKind.CANCEL, "c", "eve", step="charge")
    with pytest.raises(ArgumentError, match="late-result was given step; make it by"):
        Request(RequestKind.LATE_RESULT, "c", "eve", step="charge")
    with pytest.raises(ArgumentError, match="kind must be one of RequestKind, not 'cancel'"):
        Request("cancel", "c", "eve")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="intent_version is 0"):
        replace(APPROVAL, intent_version=0)
    with pytest.raises(ArgumentError, match="request: expected a Request, not 'cancel'"):
        store.request("order-1", "cancel")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="request and decision are both given"):
        StepChange("charge", SUCCEEDED, request=1, decision=2)


# Any order of requests and commits.


class Requests(RuleBasedStateMachine):
    """Requesters and an owner, in any order. What the owner names takes effect once, or not at all."""

    numbers = Bundle("numbers")
    directory: Path

    @initialize()
    def begin(self) -> None:
        self.clock = Clock()
        path = self.directory / "store.db"
        for suffix in ("", "-wal", "-shm"):
            path.with_name(f"store.db{suffix}").unlink(missing_ok=True)
        self.path = path
        self.store = open_store(path, clock_ms=self.clock, synchronous="OFF")
        begun(self.store, StepPlan("charge"), GATED)
        ok(commit(self.store, started("charge"), WAIT))
        self.recorded: dict[str, Request] = {}
        self.effects: dict[int, int] = {}

    @rule(target=numbers, name=st.sampled_from("abcd"), what=st.sampled_from(["cancel", "yes", "no", "late"]))
    def ask(self, name: str, what: str) -> object:
        request = {
            "cancel": cancellation(name, requester="eve"),
            "yes": replace(APPROVAL, request_id=name),
            "no": replace(APPROVAL, request_id=name, decision="rejected"),
            "late": replace(late(), request_id=name),
        }[what]
        finished = ok(self.store.read("order-1")).status in ("succeeded", "failed", "cancelled")
        answer = self.store.request("order-1", request)
        if name in self.recorded:
            assert isinstance(answer, Ok) == (self.recorded[name] == request)
        elif finished and what != "late":
            assert code(answer) == "finished"
        elif what == "yes" and self.clock.now_ms >= 2_000:
            assert code(answer) == "deadline-passed"
        else:
            self.recorded[name] = request
            assert ok(answer).number == len(self.recorded)
        return ok(answer).number if isinstance(answer, Ok) else multiple()

    @rule(
        number=numbers,
        change=st.sampled_from(["start", "reject", "arrive", "none"]),
        unwind=st.booleans(),
        finishes=st.booleans(),
    )
    def consume(self, number: int, change: str, unwind: bool, finishes: bool) -> None:
        changes = {
            "start": (replace(started("ship"), request=number),),
            "reject": (StepChange("ship", CANCELLED, request=number),),
            "arrive": (replace(succeeded("charge"), request=number),),
            "none": (),
        }[change]
        requests = () if changes else (number,)
        unwinding = ok(self.store.read("order-1")).unwinding_cause is not None
        move = UNWIND if unwind and not unwinding else None
        answer = commit(self.store, *changes, move=move, requests=requests, finishes=finishes)
        if isinstance(answer, Ok):
            assert number not in self.effects
            self.effects[number] = answer.value.state_version
            kind = self.store.inbox("order-1")[number - 1].request.kind
            wanted = {"start": "approval-decision", "reject": "approval-decision", "arrive": "late-result"}
            assert kind == wanted.get(change, "cancel")
        elif number in self.effects:
            assert answer.code in ("no-such-request", "finished")

    @rule(milliseconds=st.sampled_from([1, 600]))
    def wait(self, milliseconds: int) -> None:
        self.clock.now_ms += milliseconds

    @invariant()
    def each_request_is_in_the_inbox_once_and_consumed_by_the_commit_that_named_it(self) -> None:
        if not hasattr(self, "store"):
            return
        seen = observe(self.path)
        inbox = seen.inbox("order-1")
        assert {each.request.request_id: each.request for each in inbox} == self.recorded
        assert [each.number for each in inbox] == list(range(1, len(inbox) + 1))
        consumed = {each.number: each.consumed_by for each in inbox if each.consumed_by is not None}
        assert consumed == self.effects
        row = seen.row("order-1")
        assert row is not None
        assert row.state_version == len(seen.log("order-1"))
        cancelled = any(each.request.kind is RequestKind.CANCEL for each in inbox)
        assert not (cancelled and row.status == "succeeded")
        ship = seen.step("order-1", "ship")
        assert ship is not None
        assert (ship.status is RUNNING) == (ship.approved_by is not None)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()


def test_whatever_the_order_each_request_takes_effect_at_most_once(tmp_path: Path) -> None:
    machine = type("RequestsHere", (Requests,), {"directory": tmp_path})
    run_state_machine_as_test(
        machine,
        settings=settings(
            derandomize=True, deadline=None, database=None, max_examples=60, stateful_step_count=25
        ),
    )
