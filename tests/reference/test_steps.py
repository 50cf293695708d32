"""Steps (§5) and intents (§6): which changes a commit may carry, and what it writes of them."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from fencepost.reference import (
    STATEMENTS,
    ArgumentError,
    Evidence,
    Intent,
    Ok,
    Row,
    StepChange,
    StepRow,
    StepStatus,
    Store,
    StoreError,
    observe,
    open_store,
)

from .support import BOB, LEASE_MS, Clock, changed, code, commit_on, dump, intent, leased, ok, refusal

PENDING, RUNNING, SUCCEEDED, FAILED, CANCELLED, MANUAL, *_ = StepStatus

STARTED = StepChange("charge", RUNNING, intent=intent())
UNWINDING = StepChange("charge", RUNNING, unwinding="the order was withdrawn")


def charge(store: Store) -> StepRow:
    (step,) = ok(store.read("order-1")).steps
    return step


def test_a_step_starts_with_its_intent_and_succeeds_with_its_receipt(store: Store, path: Path) -> None:
    leased(store)
    ok(changed(store, STARTED))
    assert charge(store) == StepRow(
        instance="order-1",
        step="charge",
        status=RUNNING,
        attempt=1,
        intent=intent(),
        intent_lease_version=1,
        unwinding=None,
        receipt=None,
        evidence=None,
        former_evidence=None,
        reason=None,
        from_status=None,
        state_version=1,
    )
    ok(changed(store, StepChange("charge", SUCCEEDED, receipt="receipt-1")))
    assert charge(store).status == SUCCEEDED
    assert charge(store).receipt == "receipt-1"
    seen = observe(path)
    assert seen.row("order-1") == ok(store.read("order-1"))
    assert seen.step("order-1", "charge") == charge(store)
    assert seen.step_log("order-1") == store.step_log("order-1")
    assert [(entry.state_version, entry.status, entry.intent_version) for entry in seen.step_entries] == [
        (1, RUNNING, 1),
        (2, SUCCEEDED, 1),
    ]


def test_acquire_and_read_and_ask_give_the_steps_of_the_same_moment(store: Store, clock: Clock) -> None:
    leased(store)
    ok(changed(store, STARTED))
    clock.now_ms += LEASE_MS
    taken = ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS))
    assert taken.steps == (charge(store),)
    assert taken == ok(store.read("order-1")) == ok(store.ask("order-1", "x"))[1]


def test_one_commit_may_change_several_steps(store: Store) -> None:
    leased(store)
    ok(changed(store, StepChange("b", RUNNING), StepChange("a", RUNNING), StepChange("c", CANCELLED)))
    assert [(step.step, step.status) for step in ok(store.read("order-1")).steps] == [
        ("a", RUNNING),
        ("b", RUNNING),
        ("c", CANCELLED),
    ]
    assert {entry.state_version for entry in store.step_log("order-1")} == {1}


def test_a_commit_with_one_illegal_change_changes_nothing(store: Store, path: Path, clock: Clock) -> None:
    leased(store)
    ok(changed(store, STARTED))
    before = dump(path)
    clock.now_ms += 1
    refused = refusal(changed(store, StepChange("a", RUNNING), StepChange("charge", SUCCEEDED)))
    assert refused.code == "illegal-transition"
    assert refused.observed == ok(store.read("order-1"))
    assert dump(path) == before
    assert observe(path).now_ms == clock.now_ms  # what was judged over stays over


def test_a_commit_that_the_lease_does_not_allow_is_refused_for_that(store: Store, clock: Clock) -> None:
    row = leased(store)
    clock.now_ms += LEASE_MS
    illegal = replace(commit_on(row), changes=(StepChange("charge", SUCCEEDED),))
    assert code(store.commit(illegal)) == "lease-expired"
    stale = replace(illegal, expected_state_version=3)
    ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS))
    assert code(store.commit(stale)) == "stale-lease-version"
    mine = replace(stale, owner=BOB, expected_lease_version=2)
    assert code(store.commit(mine)) == "stale-state-version"
    assert code(store.commit(replace(mine, expected_state_version=0))) == "illegal-transition"


def test_a_commit_id_already_logged_is_answered_before_its_changes_are_looked_at(
    store: Store, path: Path
) -> None:
    row = leased(store)
    commit = replace(commit_on(row), changes=(STARTED,))
    entry = ok(store.commit(commit))
    before = dump(path)
    assert store.commit(commit) == Ok(entry)
    assert store.commit(replace(commit, changes=(StepChange("charge", FAILED),))) == Ok(entry)
    assert dump(path) == before


def test_an_instance_finishes_only_when_each_of_its_steps_has_ended(store: Store) -> None:
    leased(store)
    ok(changed(store, StepChange("a", RUNNING), StepChange("b", RUNNING)))
    assert code(changed(store, StepChange("a", SUCCEEDED), finishes=True)) == "unfinished-steps"
    ok(changed(store, StepChange("a", SUCCEEDED), StepChange("b", SUCCEEDED), finishes=True))
    assert ok(store.read("order-1")).status == "succeeded"


@pytest.mark.parametrize("otherwise", [FAILED, CANCELLED])
def test_an_instance_ends_as_its_steps_did(otherwise: StepStatus, store: Store) -> None:
    leased(store)
    ok(changed(store, StepChange("a", RUNNING), StepChange("b", RUNNING)))
    assert code(changed(store, StepChange("a", otherwise), finishes=True)) == "unfinished-steps"
    ok(changed(store, StepChange("a", otherwise), StepChange("b", SUCCEEDED), finishes=True))
    assert ok(store.read("order-1")).status == otherwise
    assert code(store.acquire("order-1", BOB, lease_ms=LEASE_MS)) == "finished"


def test_an_instance_does_not_end_while_something_that_succeeded_has_to_be_undone(store: Store) -> None:
    leased(store)
    to_undo = replace(STARTED, intent=replace(intent(), compensation="refund"))
    ok(changed(store, to_undo, StepChange("b", RUNNING)))
    ok(changed(store, StepChange("charge", SUCCEEDED, receipt="r1")))
    assert code(changed(store, StepChange("b", FAILED), finishes=True)) == "unfinished-steps"


def test_the_reason_for_unwinding_is_committed_before_a_tombstone_is_evidence(store: Store) -> None:
    leased(store)
    ok(changed(store, STARTED))
    tombstoned = StepChange("charge", CANCELLED, evidence=Evidence.TOMBSTONED)
    assert code(changed(store, tombstoned)) == "illegal-transition"
    ok(changed(store, UNWINDING))
    assert code(changed(store, UNWINDING)) == "illegal-transition"
    ok(changed(store, tombstoned))
    assert charge(store).unwinding == "the order was withdrawn"


def test_a_stored_intent_is_followed_only_by_one_that_records_how_it_did_not_happen(
    store: Store, clock: Clock
) -> None:
    leased(store)
    ok(changed(store, STARTED))
    again = StepChange("charge", RUNNING, intent=intent(2), another_attempt=True)
    absent = replace(again, evidence=Evidence.FENCED_AND_NOT_FOUND)
    assert code(changed(store, again)) == "illegal-transition"
    assert code(changed(store, absent)) == "illegal-transition"  # sent under this very lease, perhaps
    clock.now_ms += LEASE_MS
    ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS))
    ok(changed(store, absent, owner=BOB))
    step = charge(store)
    assert (step.intent, step.intent_lease_version, step.attempt) == (intent(2), 2, 2)
    assert (step.evidence, step.former_evidence) == (None, Evidence.FENCED_AND_NOT_FOUND)
    first, second = store.step_log("order-1")
    assert (first.key, second.key) == (intent(1).key, intent(2).key)
    assert second.evidence == Evidence.FENCED_AND_NOT_FOUND


def test_two_steps_never_have_one_key(store: Store) -> None:
    leased(store)
    ok(changed(store, STARTED))
    with pytest.raises(StoreError, match="UNIQUE"):
        changed(store, replace(STARTED, step="other"))


def test_unfinished_instances_are_those_that_a_worker_could_get_further(store: Store) -> None:
    for name in ("order-1", "order-2", "order-3"):
        store.create(name)
    row = leased(store, "order-0")
    ok(store.commit(commit_on(row, finishes=True)))
    ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS))
    assert store.unfinished() == ("order-1", "order-2", "order-3")
    ok(changed(store, StepChange("a", CANCELLED), owner=BOB))
    assert store.unfinished() == ("order-2", "order-3")
    assert store.unfinished(most=1) == ("order-2",)
    assert store.unfinished(after="order-2") == ("order-3",)


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("status must be one of StepStatus, not 'running'", lambda: StepChange("a", "running")),
        ("step is empty", lambda: StepChange("", RUNNING)),
        ("intent must be an Intent", lambda: StepChange("a", RUNNING, intent="charge")),
        ("another_attempt must be a bool", lambda: StepChange("a", RUNNING, another_attempt=1)),
        ("receipt is empty", lambda: StepChange("a", RUNNING, receipt="")),
        ("evidence must be one of Evidence", lambda: StepChange("a", FAILED, evidence="unsent")),
        ("intent_version is 0", lambda: intent(0)),
        ("key is empty", lambda: intent(key="")),
        ("parameters must be a str", lambda: intent(parameters={"cents": 500})),
        ("expected_revision is -1", lambda: intent(expected_revision=-1)),
        ("compensation is empty", lambda: intent(compensation="")),
    ],
)
def test_a_change_that_cannot_be_is_an_error(message: str, make: object) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()  # type: ignore[operator]


def test_a_commit_names_each_step_once(store: Store) -> None:
    commit = commit_on(leased(store))
    with pytest.raises(ArgumentError, match="name one step twice"):
        replace(commit, changes=(StepChange("a", RUNNING), StepChange("a", SUCCEEDED)))
    with pytest.raises(ArgumentError, match="must be a tuple of StepChange"):
        replace(commit, changes=[StepChange("a", RUNNING)])


# Every change on every kind of step, against a few lines of Python.

ELDER, OWN = 1, 2  # the lease version under which the intent was committed; ada acquired both

WORLDS: dict[str, tuple[tuple[int, StepChange], ...]] = {
    "not begun": (),
    "running, no effect": ((OWN, StepChange("charge", RUNNING)),),
    "running, own intent": ((OWN, STARTED),),
    "running, elder intent": ((ELDER, STARTED),),
    "running, receipt": ((OWN, STARTED), (OWN, StepChange("charge", RUNNING, receipt="r1"))),
    "unwinding, own": ((OWN, STARTED), (OWN, UNWINDING)),
    "unwinding, elder": ((ELDER, STARTED), (ELDER, UNWINDING)),
    "second intent": (
        (ELDER, STARTED),
        (
            OWN,
            StepChange(
                "charge",
                RUNNING,
                intent=intent(2),
                another_attempt=True,
                evidence=Evidence.FENCED_AND_NOT_FOUND,
            ),
        ),
    ),
    "succeeded": ((OWN, STARTED), (OWN, StepChange("charge", SUCCEEDED, receipt="r1"))),
    "failed": ((OWN, STARTED), (OWN, StepChange("charge", FAILED, evidence=Evidence.RECORDED_REFUSAL))),
    "cancelled": ((OWN, StepChange("charge", CANCELLED)),),
    "manual": ((OWN, STARTED), (OWN, StepChange("charge", MANUAL, reason="who knows"))),
}


def is_legal(step: StepRow | None, change: StepChange) -> bool:
    """What §5 and §6 say, for an owner whose lease version is OWN."""
    status = PENDING if step is None else step.status
    stored = None if step is None else step.intent
    receipt = (step.receipt if step else None) or change.receipt
    known = change.evidence is not None and _is_evidence(step, change)
    if change.evidence is not None and not known:
        return False
    if change.receipt is not None and (stored is None or receipt != change.receipt):
        return False
    if change.unwinding is not None and (change.status != RUNNING or (step is not None and step.unwinding)):
        return False
    if change.intent is not None and not _is_next_intent(step, change):
        return False
    if change.another_attempt and (status, change.status) != (RUNNING, RUNNING):
        return False
    if change.evidence is not None and change.status not in (FAILED, CANCELLED) and change.intent is None:
        return False
    match status, change.status:
        case (StepStatus.PENDING, StepStatus.RUNNING | StepStatus.CANCELLED):
            return change.receipt is None
        case (StepStatus.RUNNING, StepStatus.RUNNING):
            return change.another_attempt or bool(change.receipt) or bool(change.unwinding)
        case (StepStatus.RUNNING, StepStatus.SUCCEEDED):
            return stored is None or receipt is not None
        case (StepStatus.RUNNING, StepStatus.FAILED | StepStatus.CANCELLED):
            return change.receipt is None and (stored is None or known)
        case (StepStatus.RUNNING, StepStatus.MANUAL_INTERVENTION):
            return change.reason is not None and change.receipt is None
    return False


def _is_evidence(step: StepRow | None, change: StepChange) -> bool:
    if step is None or step.intent is None or step.receipt or change.receipt:
        return False
    match change.evidence:
        case Evidence.UNSENT:
            return step.intent_lease_version == OWN
        case Evidence.TOMBSTONED:
            return step.unwinding is not None
        case Evidence.FENCED_AND_NOT_FOUND:
            return step.intent_lease_version == ELDER
    return True


def _is_next_intent(step: StepRow | None, change: StepChange) -> bool:
    assert change.intent is not None
    if change.status != RUNNING or change.unwinding or change.receipt:
        return False
    if step is None:
        return change.intent.intent_version == 1
    former = step.intent
    return (
        former is not None
        and change.intent.intent_version == former.intent_version + 1
        and change.another_attempt
        and change.evidence is not None
        and step.unwinding is None
    )


def every_change() -> list[StepChange]:
    intents: tuple[Intent | None, ...] = (None, intent(1), intent(2), intent(3))
    return [
        StepChange("charge", *rest)
        for rest in product(
            StepStatus,
            intents,
            (False, True),
            (None, "withdrawn"),
            (None, "r1", "r2"),
            (None, *Evidence),
            (None, "why"),
        )
    ]


def begin(store: Store, world: str, clock: Clock, name: str) -> Row:
    """An instance of one kind, on which ada holds lease version OWN."""
    leased(store, name)
    history = WORLDS[world]
    for lease_version in (ELDER, OWN):
        if lease_version == OWN:
            clock.now_ms += LEASE_MS
            ok(store.acquire(name, BOB, lease_ms=10**6))
        for number, (under, change) in enumerate(history):
            if under == lease_version:
                row = ok(store.read(name))
                ok(store.commit(replace(commit_on(row, f"{number}"), changes=(named(change, name),))))
    return ok(store.read(name))


def named(change: StepChange, name: str) -> StepChange:
    """The change with a key of the instance's own."""
    if change.intent is None:
        return change
    return replace(change, intent=replace(change.intent, key=f"{name}-{change.intent.intent_version}"))


@pytest.mark.parametrize("world", WORLDS)
def test_changes_agree_with_the_oracle_on_the_whole_product(world: str, path: Path, clock: Clock) -> None:
    """And none gets past the guards that the schema then repels, which would be an error here."""
    legal = 0
    with open_store(path, clock_ms=clock, synchronous="OFF") as store:
        row = begin(store, world, clock, "order-0")
        for number, change in enumerate(every_change()):
            step = row.steps[0] if row.steps else None
            commit = replace(commit_on(row, f"case-{number}"), changes=(named(change, row.instance),))
            answer = store.commit(commit)
            assert isinstance(answer, Ok) == is_legal(step, change), (change, answer)
            if isinstance(answer, Ok):
                legal += 1
                after = ok(store.read(row.instance)).steps[0]
                assert after.status == change.status
                assert after.receipt == ((step.receipt if step else None) or change.receipt)
                row = begin(store, world, clock, f"order-{number + 1}")
            else:
                given_up = step is not None and step.unwinding is not None and change.intent is not None
                assert answer.code in ("illegal-transition", *(("unwinding",) if given_up else ()))
    terminal = world in ("succeeded", "failed", "cancelled", "manual")
    assert (legal == 0) == terminal


def test_a_store_with_a_weaker_change_lets_an_outcome_in_that_nobody_knows(path: Path, clock: Clock) -> None:
    weaker = STATEMENTS.change_step.replace(
        "(:proof is not 'fenced-and-not-found' or intent_lease_version < :lease)", "true"
    )
    assert weaker != STATEMENTS.change_step
    with open_store(path, clock_ms=clock, statements=replace(STATEMENTS, change_step=weaker)) as store:
        leased(store)
        ok(changed(store, STARTED))
        ok(changed(store, StepChange("charge", FAILED, evidence=Evidence.FENCED_AND_NOT_FOUND)))
