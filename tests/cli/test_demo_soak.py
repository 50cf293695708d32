"""Ten thousand deaths: none lost, none doubled."""

from __future__ import annotations

import pytest

from fencepost.cli.killing.supervisor import kill_workers
from fencepost.reference.audit import Verdict

KILLS = 10_000
BUDGET_S = 840.0  # only to end a run that has gone wrong


@pytest.mark.slow
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "fenced and queryable"])
def test_ten_thousand_kills_lose_nothing_and_double_nothing(keyed: bool) -> None:
    report = kill_workers(1_000, kills=KILLS, keyed=keyed, budget_s=BUDGET_S)

    assert {check.name: check.wrongs for check in report.checks if check.wrongs} == {}
    assert {check.verdict for check in report.checks} == {Verdict.HELD}
    assert report.killed == KILLS
