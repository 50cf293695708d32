"""Schedules shared by several processes: nothing is lost, nothing is found that one would not find."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from fencepost.conformance import verify_statements
from fencepost.conformance.gate import GateError
from fencepost.conformance.shares import can_fork, in_processes
from fencepost.reference.adapter import make_sqlite
from fencepost.reference.broken_stores import BETWEEN_STATEMENTS

needs_fork = pytest.mark.skipif(not can_fork(), reason="this system cannot fork")


@needs_fork
@pytest.mark.parametrize("jobs", [1, 2, 3, 7])
def test_each_item_is_in_one_share(jobs: int) -> None:
    found = in_processes(range(5), jobs, lambda share, number: (number, list(share)))
    assert sorted(x for _, share in found for x in share) == [0, 1, 2, 3, 4]
    assert [number for number, _ in found] == list(range(min(jobs, 5)))


@needs_fork
def test_no_work_is_one_share_without_anything() -> None:
    assert in_processes([], 2, lambda share, _: list(share)) == [[]]


@needs_fork
def test_other_shares_run_in_other_processes() -> None:
    pids = in_processes(range(2), 2, lambda _, __: os.getpid())
    assert pids[0] == os.getpid()
    assert pids[1] != pids[0]


@needs_fork
def test_an_error_in_another_process_is_told() -> None:
    def search(share: Sequence[int], number: int) -> None:
        if number:
            raise ValueError(f"no {share[0]}")

    with pytest.raises(GateError, match=r"share 1 .*ValueError: no 1"):
        in_processes(range(2), 2, search)


@needs_fork
def test_a_process_that_ends_without_a_word_is_an_error() -> None:
    def search(share: Sequence[int], number: int) -> None:
        del share
        if number:
            os._exit(0)

    with pytest.raises(GateError, match="without a word"):
        in_processes(range(2), 2, search)


@pytest.mark.slow
@needs_fork
def test_two_processes_count_what_one_counts() -> None:
    alone, shared = (verify_statements(make_sqlite(), faults=False, jobs=jobs).figures for jobs in (1, 2))
    counted = ("classes", "pairs", "interleavings", "schedules", "statements", "witnesses", "left_out")
    assert {k: shared[k] for k in counted} == {k: alone[k] for k in counted}


@needs_fork
def test_two_processes_refute_what_one_refutes() -> None:
    broken = BETWEEN_STATEMENTS["check-then-act"]
    alone, shared = (verify_statements(broken, claims=["S1"], jobs=jobs) for jobs in (1, 2))
    assert [f.claim.name for f in alone.refuted] == [f.claim.name for f in shared.refuted] != []
