"""Gate 2 (§4): whose state commit is accepted, and the event log."""

from dataclasses import replace

from fencepost.reference import Commit, Entry, Row, Store

from .support import ADA, BOB, LEASE_MS, Clock, code, commit_on, leased, ok, refusal


def taken_over(store: Store, clock: Clock) -> tuple[Row, Row]:
    """The row as its former owner believes it, and as it stands after a takeover."""
    believed = leased(store)
    clock.now_ms += LEASE_MS
    return believed, ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS))


def test_an_accepted_commit_is_one_entry_and_one_state_version(store: Store, clock: Clock) -> None:
    row = leased(store)
    clock.now_ms += 1
    entry = ok(store.commit(Commit("order-1", ADA, "0-1", 0, 1, "charged", '{"cents": 500}')))
    assert entry == Entry(
        instance="order-1",
        state_version=1,
        lease_version=1,
        owner=ADA,
        commit_id="0-1",
        event="charged",
        payload='{"cents": 500}',
        committed_at_ms=clock.now_ms,
    )
    assert store.log("order-1") == (entry,)
    assert ok(store.read("order-1")) == replace(row, state_version=1)


def test_a_commit_that_finishes_ends_the_instance(store: Store) -> None:
    row = leased(store)
    ok(store.commit(commit_on(row, "0-1", finishes=True)))
    finished = replace(row, state_version=1, status="succeeded")
    assert ok(store.read("order-1")) == finished
    assert code(store.commit(commit_on(finished, "0-2"))) == "finished"
    assert code(store.commit(commit_on(finished, "0-3", finishes=True))) == "finished"
    assert len(store.log("order-1")) == 1


def test_a_stale_lease_version_is_refused_after_takeover(store: Store, clock: Clock) -> None:
    believed, now = taken_over(store, clock)
    refused = refusal(store.commit(commit_on(believed)))
    assert refused.code == "stale-lease-version"
    assert refused.observed == now
    assert store.log("order-1") == ()


def test_the_right_versions_from_the_wrong_owner_are_refused(store: Store, clock: Clock) -> None:
    _, now = taken_over(store, clock)
    assert code(store.commit(commit_on(now, owner=ADA))) == "not-the-owner"


def test_a_lease_version_from_the_future_is_refused(store: Store) -> None:
    row = leased(store)
    assert code(store.commit(commit_on(replace(row, lease_version=2)))) == "stale-lease-version"


def test_an_owner_commits_on_the_state_that_stands_or_not_at_all(store: Store) -> None:
    row = leased(store)
    ok(store.commit(commit_on(row, "0-1")))
    for wrong in (0, 2):
        answer = store.commit(commit_on(replace(row, state_version=wrong), "0-2"))
        assert code(answer) == "stale-state-version"
    ok(store.commit(commit_on(replace(row, state_version=1), "0-2")))


def test_an_expired_owner_does_not_commit_though_nobody_took_over(store: Store, clock: Clock) -> None:
    row = leased(store)
    clock.now_ms += LEASE_MS
    assert code(store.commit(commit_on(row))) == "lease-expired"


def test_a_released_owner_does_not_commit(store: Store) -> None:
    row = leased(store)
    ok(store.release("order-1", ADA, 1))
    assert code(store.commit(commit_on(row))) == "lease-expired"


def test_a_commit_id_already_logged_is_answered_ok_and_changes_nothing(store: Store, clock: Clock) -> None:
    row = leased(store)
    commit = commit_on(row, finishes=True)
    entry = ok(store.commit(commit))
    clock.now_ms += LEASE_MS
    before = (ok(store.read("order-1")), store.log("order-1"))
    # Finished, expired, and with versions that never stood, by somebody else: the id comes before all that.
    for again in (commit, replace(commit, expected_lease_version=7, expected_state_version=9, owner=BOB)):
        assert ok(store.commit(again)) == entry
    assert (ok(store.read("order-1")), store.log("order-1")) == before


def test_a_commit_id_belongs_to_one_instance(store: Store) -> None:
    first, second = leased(store, "order-1"), leased(store, "order-2")
    assert ok(store.commit(commit_on(first, "0-1"))).instance == "order-1"
    assert ok(store.commit(commit_on(second, "0-1"))).instance == "order-2"


def test_the_log_has_every_accepted_commit_in_order_without_a_gap(store: Store, clock: Clock) -> None:
    row = leased(store)
    ids = [f"0-{number}" for number in range(12)]  # in text order "0-10" comes before "0-2"
    for commit_id in ids:
        ok(store.commit(commit_on(row, commit_id)))
        clock.now_ms += LEASE_MS
        row = ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS))
    log = store.log("order-1")
    assert [entry.commit_id for entry in log] == ids
    assert [entry.state_version for entry in log] == list(range(1, 13))
    assert [entry.lease_version for entry in log] == list(range(1, 13))


def test_the_log_of_an_unknown_instance_is_empty(store: Store) -> None:
    leased(store)
    assert store.log("order-2") == ()


def test_after_a_lost_reply_an_accepted_commit_is_found_by_its_id(store: Store, clock: Clock) -> None:
    row = leased(store)
    entry = ok(store.commit(commit_on(row, "0-1")))
    clock.now_ms += LEASE_MS
    now = ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS))
    assert ok(store.ask("order-1", "0-1")) == (entry, now)


def test_after_a_lost_reply_a_commit_that_is_not_in_the_log_is_judged_by_the_row(
    store: Store, clock: Clock
) -> None:
    row = leased(store)
    assert ok(store.ask("order-1", "0-1")) == (None, row)  # undecided: the same commit may be sent again
    clock.now_ms += LEASE_MS
    now = ok(store.acquire("order-1", BOB, lease_ms=LEASE_MS))
    assert ok(store.ask("order-1", "0-1")) == (None, now)  # the lease version moved on: it never will be
    assert code(store.commit(commit_on(row, "0-1"))) == "stale-lease-version"


def test_what_does_not_exist_is_refused_everywhere(store: Store) -> None:
    leased(store)
    for answer in (
        store.acquire("order-2", ADA, lease_ms=LEASE_MS),
        store.renew("order-2", ADA, 1, lease_ms=LEASE_MS),
        store.release("order-2", ADA, 1),
        store.commit(Commit("order-2", ADA, "0-1", 0, 1, "charged")),
        store.read("order-2"),
        store.ask("order-2", "0-1"),
    ):
        assert code(answer) == "no-such-instance"
        assert refusal(answer).observed is None


def test_any_text_is_a_payload(store: Store) -> None:
    row = leased(store)
    payloads = ["", "\0", "a\0b", "'; --", "🚧" * 1_000, "\r\n", "1", "null"]
    for number, payload in enumerate(payloads):
        ok(store.commit(Commit("order-1", ADA, f"0-{number}", number, row.lease_version, "noted", payload)))
    assert [entry.payload for entry in store.log("order-1")] == payloads
