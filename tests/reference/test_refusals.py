"""Refusals (§2): one text says what is required, and the codes and their precedence follow from it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path

import pytest

from fencepost.reference import (
    MAX_VERSION,
    STATEMENTS,
    Answer,
    ArgumentError,
    Commit,
    Entry,
    Ok,
    Refused,
    Row,
    Statements,
    Store,
    StoreError,
    codes,
    open_store,
)
from fencepost.reference.guards import Effect, Guard, effects_of, guards_of

from .support import ADA, BOB, LEASE_MS, Clock, code, commit_on, dump, leased, ok, only

WRITERS = ("create", "acquire", "renew", "release", "commit")


def late_commit(store: Store) -> Answer[Entry]:
    row = store.read("order-1")
    exhausted = isinstance(row, Ok) and row.value.state_version == MAX_VERSION
    expected = MAX_VERSION if exhausted else 0
    return store.commit(Commit("order-1", ADA, "late", expected, 1, "charged", finishes=True))


# What is called, by ada, who believes that she holds lease version 1 of order-1.
CALLS: dict[str, Callable[[Store], Answer[Row] | Answer[Entry]]] = {
    "create": lambda store: store.create("order-1"),
    "acquire": lambda store: store.acquire("order-1", ADA, lease_ms=LEASE_MS),
    "renew": lambda store: store.renew("order-1", ADA, 1, lease_ms=10 * LEASE_MS),
    "release": lambda store: store.release("order-1", ADA, 1),
    "commit": late_commit,
}


def finish(store: Store, _: Clock) -> None:
    ok(store.commit(commit_on(leased(store), finishes=True)))


def expire(store: Store, clock: Clock) -> None:
    leased(store)
    clock.now_ms += LEASE_MS


def take_again(store: Store, _: Clock) -> None:
    leased(store)
    ok(store.release("order-1", ADA, 1))
    ok(store.acquire("order-1", ADA, lease_ms=LEASE_MS))


def move_state(store: Store, _: Clock) -> None:
    ok(store.commit(commit_on(leased(store))))


def exhaust_leases(store: Store, _: Clock) -> None:
    leased(store)
    ok(store.release("order-1", ADA, 1))
    store._connection.execute("update instances set lease_version = ?", (MAX_VERSION,))


def exhaust_states(store: Store, _: Clock) -> None:
    leased(store)
    store._connection.execute("update instances set state_version = ?", (MAX_VERSION,))


# The shortest stage on which a call is refused with the code.
STAGES: dict[str, Callable[[Store, Clock], object]] = {
    "no-such-instance": lambda store, _: leased(store, "order-2"),
    "instance-exists": lambda store, _: leased(store),
    "lease-live": lambda store, _: leased(store),
    "finished": finish,
    "lease-expired": expire,
    "not-the-owner": lambda store, _: leased(store, owner=BOB),
    "stale-lease-version": take_again,
    "stale-state-version": move_state,
    "lease-version-exhausted": exhaust_leases,
    "state-version-exhausted": exhaust_states,
}


def every_refusal() -> Iterator[tuple[str, str]]:
    for operation in WRITERS:
        for refused in codes.PRECEDENCE[operation]:
            yield operation, refused


@pytest.mark.parametrize(("operation", "refused"), list(every_refusal()))
def test_refused_changes_nothing(
    operation: str, refused: str, store: Store, path: Path, clock: Clock
) -> None:
    STAGES[refused](store, clock)
    before = dump(path)
    for _ in range(2):
        clock.now_ms += 1
        answer = CALLS[operation](store)
        assert isinstance(answer, Refused)
        assert answer.code == refused
        assert answer.observed == (None if refused == "no-such-instance" else ok(store.read("order-1")))
        assert dump(path) == before


@pytest.mark.parametrize("operation", [*WRITERS, "read"])
def test_the_codes_of_a_statement_are_those_of_its_operation_in_order_of_precedence(operation: str) -> None:
    guards = guards_of(getattr(STATEMENTS, operation))
    assert tuple(guard.code for guard in guards) == codes.PRECEDENCE[operation]


PARTS = ("consume", "move", "change_step", "compensate_step", "settle_step", "notify", "finish")
OUTSIDE = ("begin", "redeliver", "request", "register_migration", "deliver", "vouch")


@pytest.mark.parametrize("operation", [*PARTS, *OUTSIDE])
def test_the_guards_of_what_a_commit_carries_and_of_requests_stand_in_order_of_precedence(
    operation: str,
) -> None:
    found = [guard.code for guard in guards_of(getattr(STATEMENTS, operation))]
    assert tuple(dict.fromkeys(found)) == codes.PRECEDENCE[operation]
    assert found == sorted(found, key=codes.PRECEDENCE[operation].index)


def test_each_operation_with_codes_is_one_that_is_looked_at_here() -> None:
    assert set(codes.PRECEDENCE) == {*WRITERS, *PARTS, *OUTSIDE, "read", "ask"}


def test_asking_is_refused_like_reading() -> None:
    assert codes.PRECEDENCE["ask"] == codes.PRECEDENCE["read"]


def test_every_code_constant_is_a_code_of_some_operation() -> None:
    constants = {value for name, value in vars(codes).items() if name.isupper() and isinstance(value, str)}
    assert constants == {one for order in codes.PRECEDENCE.values() for one in order}


def test_one_code_stands_for_one_predicate_in_every_statement() -> None:
    predicates: dict[str, set[str]] = {}
    for operation in WRITERS:
        for guard in guards_of(getattr(STATEMENTS, operation)):
            same_words = guard.predicate.replace(":expected_lease_version", ":lease_version")
            predicates.setdefault(guard.code, set()).add(same_words)
    assert {refused: found for refused, found in predicates.items() if len(found) > 1} == {}


def test_every_line_that_writes_says_what_it_does() -> None:
    assert effects_of(STATEMENTS.commit) == (
        Effect("state_version = state_version + 1", "state_version rises by one"),
        Effect(
            "status = iif(:finishes and status = 'running', 'succeeded', status)", "succeeded, if finishing"
        ),
    )
    inserting = ("create", "append", "begin_step", "append_step", "begin", "record_trigger", "plan_step")
    inserting += ("plan_dependency", "register_migration", "request", "notify", "write_checkpoint")
    for field in fields(Statements):
        statement = getattr(STATEMENTS, field.name)
        assignments = [line for line in statement.splitlines() if line.startswith(("   set ", "     , "))]
        effects = effects_of(statement)
        assert len(effects) == (len(assignments) or field.name in inserting), field.name


def test_a_guard_is_read_from_one_line() -> None:
    assert guards_of(STATEMENTS.release) == (
        Guard("no-such-instance", "instance = :instance"),
        Guard("stale-lease-version", "lease_version = :lease_version"),
        Guard("not-the-owner", "owner_worker = :worker and owner_incarnation = :incarnation"),
    )


def test_a_guard_without_a_code_is_an_error_before_anything_runs(path: Path, clock: Clock) -> None:
    silent = STATEMENTS.commit.replace("  -- refuse: lease-expired", "")
    with pytest.raises(ArgumentError, match=r"'and :now_ms < expires_at_ms' of a where names no refusal"):
        open_store(path, clock_ms=clock, statements=replace(STATEMENTS, commit=silent))


def test_a_statement_that_touches_nothing_for_no_reason_is_an_error(path: Path, clock: Clock) -> None:
    hidden = STATEMENTS.create.replace("'running'  --", "'running' from instances  --")
    with (
        open_store(path, clock_ms=clock, statements=replace(STATEMENTS, create=hidden)) as store,
        pytest.raises(StoreError, match="touched no row although each guard"),
    ):
        store.create("order-1")


# Broken stores: another text for one statement is all that it takes.

BROKEN = {
    "late commit keyed by instance only": replace(
        STATEMENTS, commit=only(STATEMENTS.commit, "no-such-instance")
    ),
    "state version is the only guard": replace(
        STATEMENTS, commit=only(STATEMENTS.commit, "no-such-instance", "stale-state-version")
    ),
    "status is the only guard": replace(
        STATEMENTS, commit=only(STATEMENTS.commit, "no-such-instance", "finished")
    ),
}


@pytest.mark.parametrize("statements", BROKEN.values(), ids=BROKEN)
def test_a_store_with_a_weaker_commit_lets_a_stale_worker_in(
    statements: Statements, path: Path, clock: Clock
) -> None:
    def after_takeover(store: Store) -> tuple[Answer[Entry], tuple[Entry, ...]]:
        believed = leased(store)
        clock.now_ms += LEASE_MS
        ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS))
        return store.commit(commit_on(believed)), store.log("order-1")

    with open_store(path, clock_ms=clock, statements=statements) as store:
        answer, (entry,) = after_takeover(store)
        assert ok(answer) == entry
        assert (entry.owner, entry.lease_version) == (ADA, 1)  # while bob held version 2
    with open_store(path.with_name("whole.db"), clock_ms=clock) as store:
        answer, log = after_takeover(store)
        assert code(answer) == "stale-lease-version"
        assert log == ()


def test_a_store_that_does_not_raise_the_lease_version_gives_one_version_to_two_workers(
    path: Path, clock: Clock
) -> None:
    constant = STATEMENTS.acquire.replace("lease_version + 1 ", "max(lease_version, 1) ")
    assert constant != STATEMENTS.acquire
    with open_store(path, clock_ms=clock, statements=replace(STATEMENTS, acquire=constant)) as store:
        first = leased(store)
        clock.now_ms += LEASE_MS
        second = ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS))
        assert (first.owner, second.owner) == (ADA, BOB)
        assert (first.lease_version, second.lease_version) == (1, 1)


@pytest.mark.parametrize(
    ("operation", "removed"),
    [(operation, one) for operation, one in every_refusal() if operation != "create"],
)
def test_a_guard_that_is_taken_away_no_longer_refuses(
    operation: str, removed: str, path: Path, clock: Clock
) -> None:
    """So each line really is the guard, and the code is not decided anywhere else."""
    statement = getattr(STATEMENTS, operation)
    kept = [one for one in codes.PRECEDENCE[operation] if one != removed]
    weaker = only(statement, *kept)
    if removed == "no-such-instance":
        weaker = weaker.replace("   and", " where", 1)  # the first line of the where is gone
    with open_store(path, clock_ms=clock, statements=replace(STATEMENTS, **{operation: weaker})) as store:
        STAGES[removed](store, clock)
        with suppress(StoreError):
            answer = CALLS[operation](store)
            assert not isinstance(answer, Refused) or answer.code != removed
            return
    # What no statement guards any more, the schema still does.
    assert removed in ("no-such-instance", "lease-version-exhausted", "state-version-exhausted")
