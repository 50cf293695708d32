"""Stores that are right in another way than usual pass, call by call and statement by statement."""

import pytest

from fencepost.checker.verdicts import EXIT_OK
from fencepost.conformance import verify, verify_statements
from fencepost.reference.broken_stores import UNUSUAL


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_unusual_store_does_call_by_call_what_it_declares(name: str) -> None:
    report = verify(UNUSUAL[name], examples=5)
    assert {f.claim.id for f in report.refuted} == set(UNUSUAL[name].deviations)
    assert report.exit_code == EXIT_OK


@pytest.mark.slow
@pytest.mark.parametrize("name", UNUSUAL)
def test_an_unusual_store_does_so_in_all_interleavings_of_two_calls(name: str) -> None:
    report = verify_statements(UNUSUAL[name], faults=False)
    assert {f.claim.id for f in report.refuted} == set(UNUSUAL[name].deviations)
    assert report.figures["left_out"] == report.figures["strayed"] == 0
    assert report.exit_code == EXIT_OK
