"""A verdict never says more than was done."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.checker.support import lock, lock_claims

from fencepost.checker.explore import InternalError, check, run_trace
from fencepost.checker.plain import search
from fencepost.checker.proofs import prove
from fencepost.checker.samples import simulate
from fencepost.checker.subject import Subject, UsageError, core_subject
from fencepost.checker.verdicts import (
    EXIT_OK,
    EXIT_REFUTED,
    EXIT_UNDETERMINED,
    Finding,
    Report,
    Verdict,
    worst,
)
from fencepost.model import Optional, Protocol, Sort, State, absent
from fencepost.properties import Claim, Claims, Kind


@pytest.fixture
def subject() -> Subject:
    """The lock with its claims."""
    return Subject(lock(), lock_claims())


def test_a_claim_true_in_every_state_is_bounded_with_its_bounds_and_counts(subject: Subject) -> None:
    found = check(subject, scope="two", claims=["ONE"]).of("ONE")
    assert found.verdict is Verdict.BOUNDED
    assert "2 workers" in found.bound
    assert "ticket ≤ 3" in found.bound
    assert "transitions cut at the bounds" in found.why


def test_a_false_claim_is_refuted_by_a_shortest_run_that_replays(subject: Subject) -> None:
    report = check(subject, scope="two", claims=["FEW"])
    trace = report.of("FEW").trace
    assert trace is not None
    assert [s.action for s in trace.steps] == ["take", "leave", "take"]
    assert report.exit_code == EXIT_REFUTED


def test_a_claim_whose_witness_is_out_of_reach_is_undetermined(subject: Subject) -> None:
    report = check(subject, scope="two", claims=["VACUOUS"])
    assert report.of("VACUOUS").verdict is Verdict.UNDETERMINED
    assert "ticket_seven" in report.of("VACUOUS").why
    assert report.exit_code == EXIT_UNDETERMINED


def test_a_search_out_of_states_time_or_memory_is_undetermined() -> None:
    report = check(core_subject(), scope="small", claims=["S1"], budget_s=0.0)
    assert report.of("S1").verdict is Verdict.UNDETERMINED
    assert "did not finish" in report.of("S1").why


def test_a_model_that_reads_what_is_not_there_bounds_nothing() -> None:
    workers = Sort("worker")
    p = Protocol("faulty")
    p.variable("owner", Optional(workers), absent, home="store", meaning="nobody")
    p.variable("seen", Optional(workers), absent, home="store", meaning="a copy")

    @p.action("worker")
    def copy(s: State) -> None:
        s.seen = s.owner.value

    p.scope("one", sizes={"worker": 1}, bounds={}, why="enough")
    claims = Claims("faulty")

    @claims.always("NONE")
    def nobody(s: State) -> object:
        """Nobody is seen."""
        return not s.seen.present

    report = check(Subject(p, claims), scope="one")
    assert report.of("NONE").verdict is Verdict.UNDETERMINED
    assert "absent optional" in report.of("NONE").why
    assert prove(Subject(p, claims), scope="one").of("NONE").verdict is Verdict.UNDETERMINED


def test_what_is_inductive_is_proved_and_what_is_false_is_refuted_with_a_run(subject: Subject) -> None:
    report = prove(subject, claims=["ONE", "GROWS", "FEW"], scope="two")
    assert report.of("ONE").verdict is Verdict.PROVED
    assert report.of("GROWS").verdict is Verdict.PROVED
    few = report.of("FEW")
    assert few.verdict is Verdict.REFUTED
    assert few.trace is not None


def test_without_its_supporting_invariant_a_true_claim_is_undetermined_not_false() -> None:
    claims = lock_claims()
    del claims.claims["who_is_inside_holds_it"]
    found = prove(Subject(lock(), claims), claims=["ONE"], scope="two").of("ONE")
    assert found.verdict is Verdict.UNDETERMINED
    assert "no run that breaks it was found" in found.why


def test_a_broken_model_is_never_proved() -> None:
    found = prove(Subject(lock(broken=True), lock_claims()), claims=["ONE"], scope="two").of("ONE")
    assert found.verdict is Verdict.REFUTED


def test_a_false_supporting_invariant_proves_nothing() -> None:
    claims = lock_claims()

    @claims.supporting(supports=("FEW",))
    def nothing_is_ever_given(s: State) -> object:
        """No ticket is given: false."""
        return s.ticket == 0

    assert prove(Subject(lock(), claims), claims=["FEW"], scope="two").of("FEW").verdict is Verdict.REFUTED


def test_a_sample_refutes_or_leaves_open(subject: Subject) -> None:
    report = simulate(subject, scope="two", claims=["ONE", "FEW"], runs=60, steps=10, seed=1)
    assert report.of("ONE").verdict is Verdict.UNDETERMINED
    few = report.of("FEW")
    assert few.verdict is Verdict.REFUTED
    assert few.trace is not None
    assert len(few.trace.steps) == 3


def test_a_sample_is_the_same_for_the_same_seed(subject: Subject) -> None:
    first = simulate(subject, scope="two", runs=20, steps=8, seed=5).as_json()
    second = simulate(subject, scope="two", runs=20, steps=8, seed=5).as_json()
    assert first["figures"]["outcomes"] == second["figures"]["outcomes"]


def test_the_plain_search_agrees_with_the_compiled_one(subject: Subject) -> None:
    compiled = check(subject, scope="two")
    plain = search(subject.protocol, subject.protocol.scopes["two"], subject.claims.claims.values())
    assert (plain.states, plain.transitions, plain.cut) == tuple(
        compiled.figures[k] for k in ("states", "transitions", "cut")
    )
    assert len(plain.hits["few_tickets"]) == compiled.of("FEW").details["steps"]


def test_a_run_that_breaks_nothing_is_an_internal_error_not_a_refutation(subject: Subject) -> None:
    claim = subject.claims.claims["one_inside"]
    with pytest.raises(InternalError, match="false in the compiled reading"):
        run_trace(subject, subject.protocol.scopes["two"], claim, [("take", (0,))])


def test_an_impossible_run_is_an_internal_error(subject: Subject) -> None:
    claim = subject.claims.claims["few_tickets"]
    with pytest.raises(InternalError, match="disabled"):
        run_trace(subject, subject.protocol.scopes["two"], claim, [("leave", (0,))])


def _report(*verdicts: Verdict, required: Verdict | None = None) -> Report:
    claim = Claim("X", "x", Kind.ALWAYS, lambda s: s, "x")
    findings = tuple(
        Finding(dataclasses.replace(claim, id=f"X{i}"), v, "", "") for i, v in enumerate(verdicts)
    )
    return Report("check", "test", findings, required=required)


@pytest.mark.parametrize(
    ("verdicts", "required", "code"),
    [
        ((Verdict.BOUNDED, Verdict.PROVED), None, EXIT_OK),
        ((Verdict.BOUNDED,), Verdict.PROVED, EXIT_UNDETERMINED),
        ((Verdict.PROVED,), Verdict.PROVED, EXIT_OK),
        ((Verdict.UNDETERMINED, Verdict.PROVED), None, EXIT_UNDETERMINED),
        ((Verdict.NOT_EXERCISED, Verdict.HELD), None, EXIT_UNDETERMINED),
        ((Verdict.UNDETERMINED, Verdict.REFUTED), None, EXIT_REFUTED),
        ((), None, EXIT_UNDETERMINED),
    ],
)
def test_exit_codes_follow_the_worst_verdict(verdicts: Any, required: Verdict | None, code: int) -> None:
    assert _report(*verdicts, required=required).exit_code == code


def test_the_verdict_of_an_id_is_the_worst_of_its_predicates() -> None:
    assert worst([Verdict.PROVED, Verdict.BOUNDED]) is Verdict.BOUNDED
    assert worst([Verdict.PROVED, Verdict.UNDETERMINED, Verdict.REFUTED]) is Verdict.REFUTED


@pytest.mark.parametrize("asked", [{"claims": ["S99"]}, {"scope": "smal"}])
def test_an_unknown_name_is_answered_with_what_there_is(asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"did you mean|see `fencepost list`"):
        check(core_subject(), **asked)
