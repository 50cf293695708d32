"""Proofs for all sizes hold for what is true, and for nothing else."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from fencepost.checker.smt import ProofResult, Result
from fencepost.model import (
    ModelError,
    Protocol,
    State,
    count,
    every,
)

from .small_protocol import (
    CLAIMS,
    LEASES,
    STEPS,
    SUPPORTING,
    VARIANTS,
    commits,
    lost,
    named,
    prove,
    workers,
)


def prove_leases(protocol: Protocol = LEASES, **options: Any) -> ProofResult:
    return prove(protocol, CLAIMS, STEPS, options.pop("supporting", SUPPORTING), **options)


# -- the lease protocol


def test_all_claims_of_the_lease_protocol_are_proved() -> None:
    result = prove_leases()
    assert lost(result) == set()
    assert result.failed == ()
    assert result.never == ()
    assert set(result.proved) == {*CLAIMS, *STEPS, *SUPPORTING}


def test_obligations_fold_before_the_solver_sees_them_where_a_move_touches_nothing() -> None:
    by_name = {r.name: r for r in prove_leases().obligations}
    assert by_name["expire[done] × believed_leases_were_held"].status == "trivial"
    assert by_name["expire[done] × live_leases_have_an_owner"].status == "folded"
    assert by_name["acquire[ok] × believed_leases_were_held"].status == "unsat"
    assert by_name["start × owner_is_the_holder"].status == "folded"


@pytest.mark.parametrize(
    ("variant", "claim", "move"),
    [
        ("live", "taken_over_only_after_expiry", "acquire[ok]"),
        ("raise", "believed_leases_were_held", "acquire[ok]"),
        ("lease", "stale_worker_never_overrides", "deliver[ok/1]"),
        ("state", "accepted_on_the_current_state", "deliver[ok/1]"),
        ("expired", "accepted_only_while_live", "deliver[ok/1]"),
    ],
)
def test_a_missing_guard_fails_the_claim_that_needs_it(variant: str, claim: str, move: str) -> None:
    result = prove_leases(VARIANTS[variant])
    assert claim in lost(result)
    assert f"{move} × {claim}" in {r.name for r in result.failed}
    assert move in result.reasons[claim]


def test_a_missing_guard_leaves_the_claims_that_do_not_need_it() -> None:
    assert lost(prove_leases(VARIANTS["expired"])) == {"accepted_only_while_live"}
    assert lost(prove_leases(VARIANTS["state"])) == {"accepted_on_the_current_state"}


@pytest.mark.parametrize("missing", list(SUPPORTING))
def test_a_missing_invariant_fails_what_rests_on_it(missing: str) -> None:
    kept = {name: f for name, f in SUPPORTING.items() if name != missing}
    result = prove_leases(supporting=kept)
    assert "stale_worker_never_overrides" in lost(result)
    assert not lost(result) & {"state_version_counts_commits", "refused_changes_nothing"}


def test_a_proof_names_the_invariants_that_it_rests_on() -> None:
    result = prove_leases()
    assert result.rests_on("stale_worker_never_overrides") >= set(SUPPORTING)
    assert result.rests_on("accepted_only_while_live") == frozenset()


def test_a_false_claim_supports_nothing() -> None:
    def nothing_is_ever_sent(s: State) -> object:
        return every(commits, lambda c: not s.sent[c])

    def nothing_is_ever_accepted(s: State) -> object:
        return s.version == 0

    result = prove(LEASES, named(nothing_is_ever_sent, nothing_is_ever_accepted), {}, {})
    assert lost(result) == {"nothing_is_ever_sent", "nothing_is_ever_accepted"}
    by_name = {r.name: r.status for r in result.obligations}
    assert by_name["send[done] × nothing_is_ever_sent"] == "sat"
    assert by_name["deliver[ok/1] × nothing_is_ever_accepted"] in ("sat", "unknown")


def test_hypotheses_can_be_restricted_by_claim() -> None:
    result = prove_leases(supports={"stale_worker_never_overrides": ["owner_is_the_holder"]})
    assert lost(result) == {"stale_worker_never_overrides"}
    enough = ["owner_is_the_holder", "sent_by_the_holder", "live_leases_have_an_owner"]
    assert lost(prove_leases(supports={"stale_worker_never_overrides": enough})) == set()


def test_the_same_questions_get_the_same_answers() -> None:
    def answers(result: ProofResult) -> list[tuple[str, str, str]]:
        return [(r.name, r.status, r.way) for r in result.obligations]

    assert answers(prove_leases(VARIANTS["lease"], seed=3)) == answers(
        prove_leases(VARIANTS["lease"], seed=3)
    )


def test_without_budget_nothing_is_proved_that_needs_the_solver() -> None:
    result = prove_leases(budget_s=0)
    assert "stale_worker_never_overrides" in lost(result)
    assert {r.status for r in result.failed} == {"unknown"}
    assert {r.way for r in result.failed} == {"out of budget"}


def test_progress_is_told_for_each_obligation() -> None:
    told: list[tuple[int, int, Result]] = []
    result = prove_leases(on_progress=lambda done, total, last: told.append((done, total, last)))
    assert [done for done, _, _ in told] == list(range(1, len(told) + 1))
    assert {last.name for _, _, last in told} == {r.name for r in result.obligations}
    assert all(done <= total for done, total, _ in told)


def test_importing_the_readings_does_not_load_the_solver() -> None:
    program = "import sys, fencepost.checker.smt; print('z3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# -- what has no reading for all sizes


def test_a_claim_that_counts_is_not_proved_and_the_others_are() -> None:
    def few_commits(s: State) -> object:
        return count(commits, lambda c: s.sent[c]) <= 3

    result = prove(LEASES, {**CLAIMS, **named(few_commits)}, STEPS, SUPPORTING)
    assert lost(result) == {"few_commits"}
    assert "no reading for all sizes" in result.reasons["few_commits"]
    assert "at_most_one" in result.reasons["few_commits"]
    assert "test_proof.py" in result.reasons["few_commits"]


def test_a_claim_that_reads_what_may_not_be_there_is_an_error() -> None:
    def owner_is_someone(s: State) -> object:
        return every(workers, lambda w: s.owner.value == w)

    with pytest.raises(ModelError, match="may not be there"):
        prove(LEASES, named(owner_is_someone), {}, {})


def test_two_claims_of_one_name_are_an_error() -> None:
    with pytest.raises(ModelError, match="one name"):
        prove(LEASES, CLAIMS, {}, CLAIMS)
