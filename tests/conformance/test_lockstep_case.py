"""The test case for pytest and unittest."""

import unittest

import pytest

from fencepost.conformance import lockstep_case
from fencepost.conformance.lockstep import BrokenRun
from fencepost.reference.adapter import make_sqlite
from fencepost.reference.broken_stores import BROKEN


class TestSqlite(lockstep_case(make_sqlite(), examples=10)):  # type: ignore[misc]
    """The SQLite store, as a user's own test would run it."""


def test_a_broken_store_fails_with_the_claim_its_sentence_and_the_run() -> None:
    adapter = make_sqlite(BROKEN["state-version-only-guard"], name="broken")
    case = lockstep_case(adapter, examples=40, claims=["S1"])
    with pytest.raises(BrokenRun) as found:
        case("runTest").debug()
    message = str(found.value)
    assert (
        "broken breaks S1 stale_worker_never_overrides: An accepted commit was made by the owner" in message
    )
    assert "5  decide_commit(c1) -> ok" in message
    assert "the model answers stale-lease-version, the implementation answered ok" in message


def test_it_is_a_test_case_of_the_standard_library() -> None:
    assert issubclass(lockstep_case(make_sqlite()), unittest.TestCase)
