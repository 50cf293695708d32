"""The claims of believers.py and one_believer.py as tests."""

from pathlib import Path

from fencepost.checker import Verdict, check, load
from fencepost.checker.proofs import prove

HERE = Path(__file__).parent


def test_no_lease_version_has_two_believers() -> None:
    mine = load(str(HERE / "believers.py"))
    report = prove(mine, claims=["no_lease_version_has_two_believers"])
    assert report.of("no_lease_version_has_two_believers").verdict is Verdict.PROVED


def test_two_workers_can_take_a_lease_for_their_own() -> None:
    mine = load(str(HERE / "one_believer.py"))
    report = check(mine, claims=["only_one_worker_believes"], scope="quick")
    finding = report.of("only_one_worker_believes")
    assert finding.verdict is Verdict.REFUTED
    assert finding.trace is not None
    assert [step.label for step in finding.trace.steps] == ["acquire(w1)", "expire", "acquire(w2)"]
