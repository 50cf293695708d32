"""Gate 1 (§3): who may try."""

from pathlib import Path

from fencepost.reference import MAX_TIME_MS, Owner, Row, Store, open_store

from .support import ADA, ADA_RESTARTED, BOB, LEASE_MS, Clock, code, commit_on, leased, ok, refusal


def test_a_new_instance_has_both_versions_zero_and_no_owner(store: Store) -> None:
    begun = Row(
        instance="order-1", owner=None, lease_version=0, expires_at_ms=None, state_version=0, status="running"
    )
    assert ok(store.create("order-1")) == begun
    assert ok(store.read("order-1")) == begun


def test_an_instance_begins_once(store: Store) -> None:
    row = leased(store)
    refused = refusal(store.create("order-1"))
    assert refused.code == "instance-exists"
    assert refused.observed == row


def test_acquire_answers_with_the_row_that_it_made(store: Store, clock: Clock) -> None:
    ok(store.create("order-1"))
    row = ok(store.acquire("order-1", ADA, lease_ms=LEASE_MS))
    assert row == Row(
        instance="order-1",
        owner=ADA,
        lease_version=1,
        expires_at_ms=clock.now_ms + LEASE_MS,
        state_version=0,
        status="running",
    )
    assert ok(store.read("order-1")) == row


def test_nobody_acquires_under_a_live_lease_not_even_its_owner(store: Store) -> None:
    leased(store)
    for owner in (ADA, ADA_RESTARTED, BOB):
        assert code(store.acquire("order-1", owner, lease_ms=LEASE_MS)) == "lease-live"


def test_a_lease_is_over_at_exactly_expires_at(store: Store, clock: Clock) -> None:
    row = leased(store)
    assert row.expires_at_ms is not None
    clock.now_ms = row.expires_at_ms - 1
    assert code(store.acquire("order-1", BOB, lease_ms=LEASE_MS)) == "lease-live"
    assert ok(store.renew("order-1", ADA, 1, lease_ms=1)) == row
    clock.now_ms = row.expires_at_ms
    assert code(store.renew("order-1", ADA, 1, lease_ms=1)) == "lease-expired"
    assert code(store.commit(commit_on(row))) == "lease-expired"
    assert ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS)).lease_version == 2


def test_every_acquire_raises_the_lease_version_by_one_and_leaves_the_state_version(
    store: Store, clock: Clock
) -> None:
    row = leased(store)
    ok(store.commit(commit_on(row)))
    for expected, owner in enumerate((ADA, ADA, BOB, ADA_RESTARTED), start=2):
        if expected == 3:
            ok(store.release("order-1", ADA, 2))
        else:
            clock.now_ms += 2 * LEASE_MS
        row = ok(store.acquire("order-1", owner, lease_ms=LEASE_MS))
        assert (row.lease_version, row.owner, row.state_version) == (expected, owner, 1)


def test_renew_moves_expires_at_and_nothing_else(store: Store, clock: Clock) -> None:
    row = leased(store)
    clock.now_ms += 10
    renewed = ok(store.renew("order-1", ADA, 1, lease_ms=LEASE_MS))
    assert renewed == Row("order-1", ADA, 1, clock.now_ms + LEASE_MS, 0, "running")
    assert renewed.expires_at_ms != row.expires_at_ms


def test_renew_never_moves_expires_at_backwards(store: Store) -> None:
    row = leased(store)
    assert ok(store.renew("order-1", ADA, 1, lease_ms=1)) == row


def test_renew_never_revives_an_expired_a_released_or_a_taken_lease(store: Store, clock: Clock) -> None:
    leased(store, "expired")
    leased(store, "released")
    leased(store, "taken")
    ok(store.release("released", ADA, 1))
    clock.now_ms += LEASE_MS
    ok(store.acquire("taken", BOB, lease_ms=LEASE_MS))
    assert code(store.renew("expired", ADA, 1, lease_ms=LEASE_MS)) == "lease-expired"
    assert code(store.renew("released", ADA, 1, lease_ms=LEASE_MS)) == "lease-expired"
    assert code(store.renew("taken", ADA, 1, lease_ms=LEASE_MS)) == "stale-lease-version"


def test_a_restarted_worker_is_another_owner(store: Store) -> None:
    row = leased(store)
    assert code(store.renew("order-1", ADA_RESTARTED, 1, lease_ms=LEASE_MS)) == "not-the-owner"
    assert code(store.release("order-1", ADA_RESTARTED, 1)) == "not-the-owner"
    assert code(store.commit(commit_on(row, owner=ADA_RESTARTED))) == "not-the-owner"


def test_release_ends_the_lease_and_keeps_owner_and_version(store: Store) -> None:
    leased(store)
    released = Row("order-1", ADA, 1, None, 0, "running")
    assert ok(store.release("order-1", ADA, 1)) == released
    assert ok(store.read("order-1")) == released


def test_release_is_ok_twice_and_after_expiry(store: Store, clock: Clock) -> None:
    leased(store)
    clock.now_ms += 10 * LEASE_MS
    assert ok(store.release("order-1", ADA, 1)) == ok(store.release("order-1", ADA, 1))


def test_release_is_refused_under_a_newer_version(store: Store) -> None:
    leased(store)
    ok(store.release("order-1", ADA, 1))
    row = ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS))
    refused = refusal(store.release("order-1", ADA, 1))
    assert refused.code == "stale-lease-version"
    assert refused.observed == row


def test_a_released_lease_can_be_taken_at_once(store: Store) -> None:
    leased(store)
    ok(store.release("order-1", ADA, 1))
    assert ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS)).lease_version == 2


def test_a_finished_instance_is_not_acquired(store: Store, clock: Clock) -> None:
    row = leased(store)
    ok(store.commit(commit_on(row, finishes=True)))
    clock.now_ms += 2 * LEASE_MS
    assert code(store.acquire("order-1", BOB, lease_ms=LEASE_MS)) == "finished"


def test_now_never_steps_back_across_reopen(path: Path) -> None:
    with open_store(path, clock_ms=lambda: 5_000) as store:
        leased(store)
    with open_store(path, clock_ms=lambda: 10) as store:
        assert code(store.acquire("order-1", BOB, lease_ms=LEASE_MS)) == "lease-live"
        assert ok(store.renew("order-1", ADA, 1, lease_ms=2 * LEASE_MS)).expires_at_ms == 5_000 + 2 * LEASE_MS


def test_what_was_refused_as_expired_stays_expired_whatever_the_clock_does(path: Path, clock: Clock) -> None:
    with open_store(path, clock_ms=clock) as store:
        row = leased(store)
        clock.now_ms += LEASE_MS
        assert code(store.commit(commit_on(row))) == "lease-expired"
        clock.now_ms -= LEASE_MS
        assert code(store.commit(commit_on(row))) == "lease-expired"
    with open_store(path, clock_ms=clock) as store:
        assert code(store.commit(commit_on(row))) == "lease-expired"
        assert code(store.renew("order-1", ADA, 1, lease_ms=LEASE_MS)) == "lease-expired"


def test_the_latest_time_and_the_longest_lease_still_fit(store: Store, clock: Clock) -> None:
    clock.now_ms = MAX_TIME_MS
    ok(store.create("order-1"))
    row = ok(store.acquire("order-1", ADA, lease_ms=MAX_TIME_MS))
    assert row.expires_at_ms == 2 * MAX_TIME_MS
    assert ok(store.renew("order-1", ADA, 1, lease_ms=MAX_TIME_MS)) == row


def test_names_are_any_text_and_are_told_apart_exactly(store: Store) -> None:
    names = ["a", "A", " a", "a ", "a'; drop table instances; --", "é", "e\u0301", "\0", "a\0b", "🚧"]
    for number, name in enumerate(names):
        ok(store.create(name))
        ok(store.acquire(name, Owner(name, number), lease_ms=LEASE_MS))
    for number, name in enumerate(names):
        row = ok(store.read(name))
        assert (row.instance, row.owner) == (name, Owner(name, number))
