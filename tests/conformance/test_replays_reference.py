"""The reference's runner of replays holds what is claimed of replay, and so does any right runner (§15)."""

from __future__ import annotations

import threading

import pytest

from fencepost.checker.subject import UsageError
from fencepost.checker.verdicts import EXIT_OK, Verdict
from fencepost.conformance import EVERYTHING, Capability, ConformanceSuite, verify, verify_all
from fencepost.conformance.counterparts import (
    counterpart_of,
    observed_variables,
    performance_of,
    stored_variables,
)
from fencepost.conformance.replay import SAME_CODE, SCOPE
from fencepost.conformance.replay_journeys import CODES, WAYS
from fencepost.conformance.runs import play
from fencepost.conformance.session import Move, Plan
from fencepost.conformance.subjects import subject_of
from fencepost.conformance.verify import goals_of, prepare
from fencepost.model.replay import replay
from fencepost.reference.adapter import SqliteAdapter, make_reference, make_sqlite

from .dict_replay import DictReplay, verified_list
from .replay_support import REPLAY, odd, verified_replay
from .support import OddAdapter, refuted

SUBJECT = subject_of("replay")


def plan_of(adapter: object) -> Plan:
    return prepare(adapter, subject=SUBJECT)[0]  # type: ignore[arg-type]


def test_every_claim_about_replay_is_held_and_exercised() -> None:
    report = verified_replay(examples=25)
    assert {f.claim.name: f.verdict for f in report.findings} == dict.fromkeys(
        ["every_step_is_the_models", *(c.name for c in SUBJECT.claims.promises())], Verdict.HELD
    )
    assert report.exit_code == EXIT_OK


def test_that_the_same_code_never_differs_is_looked_at_where_code_stays_the_same() -> None:
    bounds = {f.claim.name: f.bound for f in verified_list().findings}
    assert "definition ≤ 0" in bounds.pop("the_same_code_never_differs")
    assert all("definition ≤ 1" in bound for bound in bounds.values())
    (note,) = verified_list().notes
    assert note.startswith("the_same_code_never_differs: ")
    assert "definition ≤ 0" in note
    with_faults = verify(DictReplay(), subject=SUBJECT, scope=SCOPE, examples=0)
    assert with_faults.of("the_same_code_never_differs").verdict is Verdict.NOT_EXERCISED


def test_a_runner_over_a_list_is_held_too() -> None:
    report = verified_list()
    assert refuted(report) == {}
    assert report.exit_code == EXIT_OK


def test_the_mapping_is_complete_and_has_nothing_else() -> None:
    counterpart = counterpart_of(replay)
    assert counterpart.model == "replay"
    assert set(counterpart.performances) == set(replay.actions)
    assert set(counterpart.stored) == set(stored_variables(replay))
    assert observed_variables(replay, REPLAY) == stored_variables(replay)
    for action in replay.actions.values():
        performance_of(replay, action)


def test_code_differs_in_each_way_at_each_position() -> None:
    names = [goal.name for goal in goals_of(plan_of(DictReplay()))]
    for way in WAYS[:2]:
        for position in range(len(CODES[0])):
            assert sum(name.endswith(f": {way} at {position}") for name in names) == len(CODES)
    assert sum(name.endswith(WAYS[2]) for name in names) == len(CODES)
    assert sum(name.endswith("begun and not ended") for name in names) == len(CODES)


@pytest.mark.parametrize("adapter", [DictReplay(), odd("")], ids=["list", "reference"])
def test_each_difference_stops_the_replay_at_its_position(adapter: object) -> None:
    plan = plan_of(adapter)
    seen = 0
    for goal in goals_of(plan):
        way, at, position = goal.name.partition(": ")[2].partition(" at ")
        if at and way in WAYS:
            steps = play(plan, [Move(*step) for step in goal.steps])
            stopped = [s for s in steps if "a_replay_stops" in s.witnessed]
            assert [s.move.action for s in stopped[:1]] == ["serve"], goal.name
            assert sum(s.move.action == "serve" for s in steps) == int(position) + 1, goal.name
            seen += 1
    assert seen == len(CODES) * len(CODES[0]) * 2


def test_the_same_code_comes_to_its_end_again_from_the_history_alone() -> None:
    plan = prepare(odd(""), scope=SAME_CODE, subject=SUBJECT)[0]
    whole = [goal for goal in goals_of(plan) if goal.name.endswith(": the same")]
    assert len(whole) == len(CODES)
    for goal in whole:
        steps = play(plan, [Move(*step) for step in goal.steps])
        assert "the_end_is_served_from_the_history" in steps[-1].witnessed
        assert not any(step.difference for step in steps)


def test_no_thread_is_left_when_runs_are_over() -> None:
    before = threading.active_count()
    verify(DictReplay(), subject=SUBJECT, scope=SAME_CODE, examples=0)
    assert threading.active_count() == before


def test_an_adapter_without_replay_is_not_asked_about_it() -> None:
    with pytest.raises(UsageError, match=r"declare Capability\.REPLAY and write what ReplayAdapter names"):
        verify(make_sqlite(), subject=SUBJECT)
    assert Capability.REPLAY not in EVERYTHING
    assert Capability.REPLAY in make_reference().capabilities


def test_an_adapter_that_declares_replay_and_cannot_do_it_is_told_what_to_write() -> None:
    with pytest.raises(UsageError, match=r"declares Capability\.REPLAY and has no observe_history"):
        verify(OddAdapter(), subject=SUBJECT, examples=0)


def test_one_call_covers_replay_as_well() -> None:
    report = verify_all(make_reference(), examples=0, claims=["S24", "S24-definition"])
    assert len(report.findings) > 10
    assert {f.verdict for f in report.findings} == {Verdict.HELD}


class TestReplaysOfTheReference(ConformanceSuite):
    """The suite asks about replay what it asks about all else."""

    adapter = staticmethod(lambda: SqliteAdapter(capabilities=REPLAY))
    claims = ("S24", "S24-definition")
    examples = 0
    test_statements = None  # type: ignore[assignment]  # it is the core's alone
