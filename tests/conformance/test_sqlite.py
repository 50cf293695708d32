"""The SQLite store holds every claim of the core that a run can say anything about."""

from fencepost.checker.verdicts import EXIT_OK, Verdict
from fencepost.conformance import LOCK_STEP, verify
from fencepost.properties import CORE
from fencepost.reference.adapter import make_sqlite

from .support import EXAMPLES, OddAdapter, verified

HELD = ("lock-step", "S1", "S2", "S3", "S4", "S5", "S7", "S25", "S27")


def test_the_store_holds_each_claim_at_operation_level() -> None:
    report = verified("sqlite")
    assert {claim: report.verdicts()[claim] for claim in HELD} == dict.fromkeys(HELD, Verdict.HELD)
    assert [f.claim.name for f in report.refuted] == []
    for finding in report.findings:
        assert "grade O" in finding.method
        assert f"{report.figures['runs']} runs, {report.figures['steps']} steps" in finding.bound


def test_there_is_a_finding_on_the_comparison_and_on_each_promise() -> None:
    claims = [f.claim.name for f in verified("sqlite").findings]
    assert claims == [LOCK_STEP.name, *(c.name for c in CORE.promises())]


def test_what_a_run_cannot_tell_is_not_exercised_and_not_held_against_the_store() -> None:
    report = verified("sqlite")
    stuck = report.of("L3")
    assert stuck.verdict is Verdict.NOT_EXERCISED
    assert "possible" in stuck.why
    assert report.exit_code == EXIT_OK


def test_each_witness_came_about_on_the_store_itself() -> None:
    report = verified("sqlite")
    asked = [c for c in CORE.promises() if c.id != "L3"]
    assert {w for c in asked for w in c.witnesses} - set(report.figures["witnesses"]) == set()


def test_the_boundary_is_tried_on_both_sides() -> None:
    assert verified("sqlite").figures["at_the_very_end"] > 0
    broken = {f.claim.id for f in verified("live-at-its-end").refuted}
    assert "S27" in broken


def test_the_same_seed_gives_the_same_runs() -> None:
    first, second = (verify(make_sqlite(), examples=8, seed=7) for _ in range(2))
    assert {k: v for k, v in first.figures.items() if k != "seconds"} == {
        k: v for k, v in second.figures.items() if k != "seconds"
    }


def test_another_seed_gives_other_runs() -> None:
    first, second = (verify(make_sqlite(), examples=4, seed=seed) for seed in (7, 8))
    assert first.figures["kinds"] != second.figures["kinds"]


def test_a_budget_that_is_used_up_is_said_and_nothing_is_held_without_its_witness() -> None:
    report = verify(make_sqlite(), examples=EXAMPLES, budget_s=0.0)
    assert any("budget" in note for note in report.notes)
    assert {f.verdict for f in report.findings if f.claim.id != "L3"} == {Verdict.UNDETERMINED}


def test_every_handle_and_every_world_is_given_back() -> None:
    adapter = OddAdapter()
    verify(adapter, examples=5)
    assert adapter.asked["close_world"] == adapter.asked["fresh_world"] > 0


def test_two_workers_have_handles_of_their_own_and_a_restarted_one_has_a_new_one() -> None:
    adapter = OddAdapter()
    verify(adapter, examples=0)
    first = [(name, incarnation) for world, name, incarnation in adapter.opened if world == 1]
    assert first[:2] == [("w1", 0), ("w2", 0)]
    assert ("w1", 1) in {(name, incarnation) for _, name, incarnation in adapter.opened}


def test_every_operation_is_used() -> None:
    adapter = OddAdapter()
    verify(adapter, examples=0)
    assert all(adapter.asked[name] for name in ("acquire", "renew", "release", "commit", "ask", "read"))
