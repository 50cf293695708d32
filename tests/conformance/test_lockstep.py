"""Hypothesis alone, without goals: it finds what is broken, and its runs become short."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.conformance.chosen_goals import goals_of
from fencepost.conformance.goals import Goal
from fencepost.conformance.lockstep import MOST_TRIES, Watch, machine, run_machine
from fencepost.conformance.moves import Move, Step
from fencepost.conformance.plans import Plan
from fencepost.conformance.runs import LOCK_STEP, SavedRun, saved_run, shortened
from fencepost.conformance.session import Session
from fencepost.conformance.verify import prepare
from fencepost.model.run import Runner, Transition
from fencepost.reference.adapter import make_sqlite
from fencepost.reference.broken_stores import BROKEN


def nowhere() -> tuple[Goal, ...]:
    return ()


def plan_of(name: str) -> Plan:
    return prepare(make_sqlite(BROKEN[name], name=name))[0]


@pytest.mark.parametrize(("name", "steps"), [("takeover-from-a-live-owner", 2), ("commits-after-expiry", 4)])
def test_random_runs_find_a_broken_store_and_are_made_as_short_as_can_be(name: str, steps: int) -> None:
    plan = plan_of(name)
    watch = Watch({LOCK_STEP.name}, most_tries=MOST_TRIES)
    run_machine(machine(plan, nowhere, watch), examples=150, steps=25, seed=3)
    assert watch.broken is not None
    found = shortened(plan, [step.move for step in watch.broken.steps], LOCK_STEP.name)
    assert len(found) == steps


def test_hypothesis_itself_makes_a_broken_run_smaller() -> None:
    seen: list[int] = []
    watch = Watch({LOCK_STEP.name}, on_end=lambda session: seen.append(len(session.steps)))
    run_machine(
        machine(plan_of("takeover-from-a-live-owner"), nowhere, watch), examples=150, steps=25, seed=3
    )
    assert watch.broken is not None
    assert len(watch.broken.steps) == 2 < max(seen)


def test_random_runs_leave_no_files_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = prepare(make_sqlite())[0]
    run_machine(machine(plan, nowhere, Watch({LOCK_STEP.name})), examples=2, steps=5, seed=0)
    assert list(tmp_path.iterdir()) == []


def test_each_rule_is_an_action_of_the_model_and_none_is_left_out() -> None:
    plan = prepare(make_sqlite())[0]
    made = machine(plan, nowhere, Watch(set()))
    rules = {rule.function.__name__ for rule in made.setup_state().rules}
    assert rules == {"wait", *plan.oracle.protocol.actions}


def test_every_goal_is_a_run_of_the_model() -> None:
    plan = prepare(make_sqlite())[0]
    runner = Runner(plan.oracle.protocol, plan.oracle.protocol.scopes["small"])
    for goal in goals_of(plan):
        if goal.name.endswith("in time"):
            continue  # made from another one; moves that are not possible are left out
        state = runner.initial()
        for action, arguments in goal.steps:
            made = runner.step(state, action, arguments)
            assert isinstance(made, Transition), (goal.name, action)
            state = made.state


def test_there_is_a_goal_for_each_way_in_which_the_model_refuses() -> None:
    plan = prepare(make_sqlite())[0]
    runner = Runner(plan.oracle.protocol, plan.oracle.protocol.scopes["small"])
    ends = set()
    for goal in goals_of(plan):
        state = runner.initial()
        for action, arguments in goal.steps:
            made = runner.step(state, action, arguments)
            if isinstance(made, Transition):
                state = made.state
                ends.add((action, made.outcome))
    refusals = {
        ("acquire", "finished"),
        ("acquire", "lease-live"),
        ("renew", "stale-lease-version"),
        ("renew", "lease-expired"),
        ("release", "stale-lease-version"),
        ("decide_commit", "stale-lease-version"),
        ("decide_commit", "finished"),
        ("decide_commit", "lease-expired"),
        ("decide_commit", "stale-state-version"),
    }
    assert refusals <= ends


def test_a_run_goes_on_from_where_the_implementation_is_after_a_difference() -> None:
    plan = plan_of("takeover-from-a-live-owner")
    goal = next(g for g in goals_of(plan) if g.name == "acquiring_a_live_lease_is_refused")
    with Session(plan) as session:
        steps = played(session, goal)
        assert steps[-1].difference
        assert session.choices("decide_commit") == []
        assert session.model.owner.worker.label == "w2"
        assert session.choices("send_commit") != []


def played(session: Session, goal: Goal) -> list[Step]:
    found = [session.play(Move(action, arguments)) for action, arguments in goal.steps]
    return [step for step in found if step is not None]


def test_a_run_without_a_difference_is_saved_with_none() -> None:
    plan = prepare(make_sqlite())[0]
    with Session(plan) as session:
        steps = played(session, goals_of(plan)[-1])
    run = saved_run(plan, steps, "S1")
    assert isinstance(run, SavedRun)
    assert run.difference == ""
