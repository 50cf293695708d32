"""Teeth: what is taken away from the core is noticed, or a reason is written why it need not be."""

from __future__ import annotations

import collections

import pytest
from tests.checker.support import lock, lock_claims

from fencepost.checker.subject import Subject, core_subject
from fencepost.checker.sweeps import KINDS, SweepReport, sweep
from fencepost.model import BOOLEAN, Counter, Protocol, State, when
from fencepost.model.core import core
from fencepost.model.mutate import ANSWER, GUARD, REFUSAL, mutants, pairs, with_lines, without
from fencepost.model.run import Runner
from fencepost.properties.unneeded import UNNEEDED


def _lock_sweep(**changes: object) -> SweepReport:
    claims = lock_claims()
    for name in ("few_tickets", "after_seven_nobody_is_inside"):
        del claims.claims[name]
    return sweep(Subject(lock(), claims), scope="two", **{"reasons": {}, **changes})  # type: ignore[arg-type]


def test_a_needed_guard_is_caught_by_its_claim_at_the_shortest_length() -> None:
    row = next(r for r in _lock_sweep().rows if "held_by.present" in r.name)
    assert (row.outcome, row.ids, dict(row.broken)) == ("caught", ("ONE",), {"one_inside": 2})


def test_an_unneeded_guard_without_a_reason_is_a_finding() -> None:
    report = _lock_sweep()
    assert [r.text for r in report.unaccounted if r.kind == GUARD] == ["when(not s.inside[w])"]
    assert report.exit_code != 0


def test_a_claim_that_nothing_breaks_is_a_finding() -> None:
    assert "tickets_grow" in _lock_sweep().unbroken


def test_a_written_reason_accounts_for_a_row_and_says_so() -> None:
    report = _lock_sweep(kinds=[GUARD], reasons={("take", "when(not s.inside[w])"): "because"})
    assert next(r for r in report.rows if r.text == "when(not s.inside[w])").reason == "because"
    assert report.unaccounted == ()


def test_a_sweep_out_of_budget_is_unfinished_not_passed() -> None:
    report = _lock_sweep(budget_s=0.0)
    assert {r.outcome for r in report.rows} == {"unfinished"}
    assert report.exit_code != 0


def test_jobs_do_not_change_what_is_found() -> None:
    def facts(report: SweepReport) -> list[tuple[str, str]]:
        return [(r.name, r.outcome) for r in report.rows]

    assert facts(_lock_sweep(jobs=2)) == facts(_lock_sweep())


def test_every_statement_of_the_core_that_can_be_taken_away_has_a_mutant() -> None:
    kinds = collections.Counter(m.kind for m in mutants(core))
    assert set(kinds) == set(KINDS)
    assert kinds[REFUSAL] == kinds[ANSWER] == 12


@pytest.mark.slow
def test_every_guard_of_the_core_is_needed_or_carries_a_reason() -> None:
    report = sweep(core_subject(), kinds=[GUARD, REFUSAL, ANSWER], jobs=2)
    assert [r.name for r in report.unaccounted] == []


@pytest.mark.slow
def test_every_change_of_the_core_is_noticed_or_explained_and_every_reason_is_used() -> None:
    report = sweep(core_subject(), jobs=2)
    assert [r.name for r in report.unaccounted] == []
    silent = [r for r in report.rows if r.outcome == "nothing broke"]
    unused = [key for key in UNNEEDED if not any(key[0] == r.action and key[1] in r.name for r in silent)]
    assert unused == []
    assert report.unbroken == ()


@pytest.mark.slow
def test_pairs_show_what_each_second_lock_is_for() -> None:
    report = sweep(core_subject(), kinds=[REFUSAL], with_pairs=True, jobs=2)
    pairs = {r.name: r.ids for r in report.rows if r.kind == "pair" and r.outcome == "caught"}
    assert any("release" in name and "S5" in ids for name, ids in pairs.items())


def _by_two_paths() -> Protocol:
    """An action that reaches one helper itself, and by another helper."""
    p = Protocol("paths")
    p.variable("marks", Counter("mark"), 0, home="here", meaning="marks so far")
    p.scope("one", sizes={}, bounds={"mark": 4}, why="enough")

    @p.action("somebody", by_another=BOOLEAN)
    def go(s: State, by_another: bool) -> None:
        """A mark is made."""
        if by_another:
            calls_only(s)
        else:
            mark(s)

    return p


def mark(s: State) -> None:
    """A mark is made."""
    s.marks = s.marks + 1


def calls_only(s: State) -> None:
    """Writes nothing itself."""
    mark_below(s)


def mark_below(s: State) -> None:
    """Uses what the action uses too."""
    mark(s)


def again(s: State) -> None:
    """Writes nothing itself, and what it calls calls it."""
    only_by_others(s)


def only_by_others(s: State) -> None:
    """Writes, and is reached only by one that does not."""
    s.marks = s.marks + 2
    if s.marks > 2:
        again(s)


def _marks(protocol: Protocol, *arguments: int) -> int:
    runner = Runner(protocol, protocol.scopes["one"])
    made = runner.step(runner.initial(), "go", arguments)
    assert not isinstance(made, str)
    return runner.codes(made.state)["marks"]


def test_a_change_of_a_helper_is_made_on_every_path_that_leads_to_it() -> None:
    unchanged = _by_two_paths()
    changed = without(unchanged, "no mark", go=("s.marks = ",))
    said = with_lines(unchanged, "by three", go={"s.marks + 1": "s.marks + 3"})

    assert [_marks(unchanged, by) for by in (0, 1)] == [1, 1]
    assert [_marks(changed, by) for by in (0, 1)] == [0, 0]
    assert [_marks(said, by) for by in (0, 1)] == [3, 3]


def test_a_second_change_of_the_same_action_keeps_the_first_on_every_path() -> None:
    changed = without(_by_two_paths(), "no mark", go=("s.marks = ", "if by_another"))

    assert [_marks(changed, by) for by in (0, 1)] == [0, 0]


def test_what_a_helper_writes_that_only_a_helper_reaches_is_a_change() -> None:
    p = Protocol("chain")
    p.variable("marks", Counter("mark"), 0, home="here", meaning="marks so far")

    @p.action("somebody")
    def go(s: State) -> None:
        """A mark is made."""
        again(s)

    assert "go: without `s.marks = s.marks + 2`" in [m.name for m in mutants(p)]


def test_two_guards_of_one_action_are_removed_together() -> None:
    p = Protocol("two guards")
    p.variable("marks", Counter("mark"), 0, home="here", meaning="marks so far")
    p.scope("one", sizes={}, bounds={"mark": 4}, why="enough")

    @p.action("somebody")
    def go(s: State) -> None:
        """A mark is made, which two guards forbid."""
        when(s.marks > 1)
        when(s.marks > 2)
        s.marks = s.marks + 1

    (both,) = pairs(p, {m.name for m in mutants(p, (GUARD,))})
    assert _marks(both.protocol) == 1
