"""Checkpoints in the store (§14): which commits write them, and what a person may do about a bad one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.reference import (
    BadCheckpointError,
    Checkpoints,
    InstanceStatus,
    Move,
    Owner,
    StepChange,
    StepStatus,
    Store,
    cancellation,
    open_store,
)
from fencepost.reference.values import ArgumentError

from . import lifecycle
from .checkpoints import KEY, checkpoint, spoil
from .support import ADA, BOB, LEASE_MS, Clock, code, commit_on, dump, intent, leased, ok

KEYED = Checkpoints(mac_key=KEY)


@pytest.fixture
def keeping(path: Path, clock: Clock) -> Iterator[Store]:
    with open_store(path, clock_ms=clock, synchronous="OFF", checkpoints=KEYED) as opened:
        yield opened


def test_a_store_keeps_no_checkpoints_unless_it_is_told_to(store: Store, path: Path) -> None:
    ok(store.commit(commit_on(leased(store))))
    assert checkpoint(path) is None
    with pytest.raises(ArgumentError, match=r"open it with checkpoints=Checkpoints\(\)"):
        store.vouch("order-1", expected_state_version=1)


def test_what_are_no_checkpoints_is_an_error(path: Path, clock: Clock) -> None:
    with pytest.raises(ArgumentError, match="checkpoints must be Checkpoints, not a bytes"):
        open_store(path, clock_ms=clock, checkpoints=KEY)  # type: ignore[arg-type]
    assert not path.exists()


def test_each_commit_writes_the_checkpoint_of_what_it_made(keeping: Store, path: Path) -> None:
    lifecycle.begun(keeping, lifecycle.StepPlan("charge"), lifecycle.StepPlan("ship", depends_on=("charge",)))
    seen = set()
    for commit in (
        lambda: lifecycle.commit(keeping, StepChange("charge", StepStatus.RUNNING, intent=intent())),
        lambda: lifecycle.commit(keeping, StepChange("charge", StepStatus.SUCCEEDED, receipt="receipt-1")),
        lambda: lifecycle.commit(keeping, move=Move(InstanceStatus.UNWINDING, cause="withdrawn")),
        lambda: lifecycle.commit(keeping, StepChange("ship", StepStatus.CANCELLED), finishes=True),
    ):
        ok(commit())
        found = ok(keeping.stored("order-1"))
        assert KEYED.check(found) is not None
        assert found.checkpoint == checkpoint(path)
        seen.add(found.checkpoint)
    assert len(seen) == 4


def test_a_refused_commit_leaves_the_checkpoint_as_it_was(keeping: Store, path: Path) -> None:
    row = leased(keeping)
    ok(keeping.commit(commit_on(row)))
    before = dump(path)
    assert code(keeping.commit(commit_on(row, "0-2"))) == "stale-state-version"
    wrong = replace(
        commit_on(ok(keeping.read("order-1")), "0-3"), changes=(StepChange("charge", StepStatus.FAILED),)
    )
    assert code(keeping.commit(wrong)) == "illegal-transition"
    assert dump(path) == before


def test_the_same_commit_again_leaves_the_checkpoint_as_it_was(keeping: Store, path: Path) -> None:
    row = leased(keeping)
    ok(keeping.commit(commit_on(row)))
    ok(keeping.commit(commit_on(ok(keeping.read("order-1")), "0-2")))
    before = dump(path)
    ok(keeping.commit(commit_on(row)))
    assert dump(path) == before


def test_no_lease_and_no_request_makes_a_checkpoint_unsound(keeping: Store, clock: Clock) -> None:
    ok(keeping.commit(commit_on(leased(keeping))))
    for owner in (BOB, Owner("carl", 3)):
        clock.now_ms += LEASE_MS
        row = ok(keeping.acquire("order-1", owner, lease_ms=LEASE_MS))
        ok(keeping.renew("order-1", owner, row.lease_version, lease_ms=LEASE_MS))
        ok(keeping.request("order-1", cancellation(f"by {owner}", requester="eve")))
        assert KEYED.check(ok(keeping.stored("order-1"))) is not None


def test_a_file_without_its_instance_has_no_checkpoint_to_read(keeping: Store) -> None:
    assert code(keeping.stored("order-1")) == "no-such-instance"


# A person's word.


def test_a_person_may_vouch_for_what_stands(keeping: Store, path: Path, clock: Clock) -> None:
    ok(keeping.commit(commit_on(leased(keeping))))
    for change in (lambda data: data[:-1], lambda _: None):
        before = checkpoint(path)
        spoil(path, change)
        assert code(keeping.vouch("order-1", expected_state_version=1)) == "lease-live"
        clock.now_ms += LEASE_MS
        assert code(keeping.vouch("order-1", expected_state_version=2)) == "stale-state-version"
        assert code(keeping.vouch("order-2", expected_state_version=0)) == "no-such-instance"
        with pytest.raises(BadCheckpointError):
            KEYED.check(ok(keeping.stored("order-1")))
        row = ok(keeping.vouch("order-1", expected_state_version=1))
        assert row == ok(keeping.read("order-1"))
        assert KEYED.check(ok(keeping.stored("order-1"))) is not None
        assert checkpoint(path) == before  # under the lease version of the commit, not of the present lease
        ok(keeping.acquire("order-1", ADA, lease_ms=LEASE_MS))


def test_vouching_before_the_first_commit_is_no_harm(keeping: Store) -> None:
    ok(keeping.create("order-1"))
    ok(keeping.vouch("order-1", expected_state_version=0))
    assert KEYED.check(ok(keeping.stored("order-1"))) is not None
    ok(keeping.commit(commit_on(ok(keeping.acquire("order-1", ADA, lease_ms=LEASE_MS)))))
    assert KEYED.check(ok(keeping.stored("order-1"))) is not None
