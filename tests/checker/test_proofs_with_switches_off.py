"""What `prove` says of claims that need switches of the world off."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checker.support import lock, lock_claims

from fencepost.checker.proofs import prove
from fencepost.checker.subject import Subject, load
from fencepost.checker.verdicts import Finding, Verdict
from fencepost.model import Protocol, State, absent
from fencepost.properties import ClaimError, Claims

FORGETFUL = ("forgetful",)


def forgetful_lock() -> Protocol:
    """The lock, with a switch that makes it forget who holds it and how many tickets it gave."""
    p = lock()
    p.switch("forgetful", "the lock forgets everything")

    @p.action("world", switch="forgetful")
    def forget(s: State) -> None:
        """The lock forgets."""
        s.held_by = absent
        s.ticket = 0

    p.scope("forgetting", sizes={"worker": 2}, bounds={"ticket": 3}, switches=FORGETFUL, why="for tests")
    return p


def proof(claim: str, *, needs_off: tuple[str, ...], helped: bool = True) -> Finding:
    """What is found of a claim about the lock, where all claims and the invariant need these switches off."""
    known = lock_claims().claims
    claims = Claims("forgetful", {n: known[n] for n in ("somebody_is_inside",)})
    claims.always("ONE", needs_off=needs_off)(known["one_inside"].predicate)
    claims.each_step("GROWS", needs_off=needs_off)(known["tickets_grow"].predicate)
    claims.always("FEW", needs_off=needs_off)(known["few_tickets"].predicate)
    if helped:
        claims.supporting(needs_off=needs_off)(known["who_is_inside_holds_it"].predicate)
    subject = Subject(forgetful_lock(), claims)
    return prove(subject, claims=[claim], scope="forgetting").of(claim)


@pytest.mark.parametrize("claim", ["ONE", "GROWS"])
def test_a_claim_that_needs_a_switch_off_is_proved_only_if_it_says_so(claim: str) -> None:
    found = proof(claim, needs_off=FORGETFUL)
    assert found.verdict is Verdict.PROVED
    assert found.bound.endswith("every combination of the world's switches, with forgetful off")
    assert found.why.endswith(", with forgetful off")
    bold = proof(claim, needs_off=())
    assert bold.verdict is Verdict.REFUTED
    assert bold.trace is not None
    assert "forget" in {s.action for s in bold.trace.steps}


def test_a_run_by_a_fault_that_a_claim_needs_off_refutes_nothing() -> None:
    found = proof("ONE", needs_off=FORGETFUL, helped=False)
    assert found.verdict is Verdict.UNDETERMINED
    assert found.why.endswith("switches on: none)")


def test_a_false_claim_is_refuted_by_a_run_with_the_switches_off_that_it_needs() -> None:
    found = proof("FEW", needs_off=FORGETFUL)
    assert found.verdict is Verdict.REFUTED
    assert found.trace is not None
    assert found.trace.scope.switches == frozenset()
    assert [s.action for s in found.trace.steps] == ["take", "leave", "take"]


@pytest.mark.parametrize("decorate", [Claims.always, Claims.each_step, Claims.supporting])
def test_a_subject_with_a_claim_that_needs_an_unknown_switch_off_is_refused(decorate: Any) -> None:
    def one(s: State) -> object:
        """One."""
        return s.ticket >= 0

    def two(before: State, after: State) -> object:
        """Two."""
        return before.ticket <= after.ticket

    claims = Claims("mine")
    decorate(claims, needs_off=("forgetfull",))(two if decorate is Claims.each_step else one)
    with pytest.raises(ClaimError, match=r"needs the switch 'forgetfull' off.*did you mean 'forgetful'\?"):
        Subject(forgetful_lock(), claims)
    with pytest.raises(ClaimError, match="lock does not have: it has no switch at all"):
        Subject(lock(), claims)


@pytest.mark.parametrize("budget_s", [0.0, 0.02, 0.1, 0.3])
def test_what_the_end_of_the_budget_leaves_open_is_put_down_to_it(budget_s: float) -> None:
    report = prove(load(model="effects"), budget_s=budget_s, counterexamples=False)
    left = [f.why for f in report.findings if f.verdict is not Verdict.PROVED]

    assert left
    for why in left:
        assert "the budget ended" in why
        assert "no run that breaks it" not in why
        assert "the solver does not know" not in why
        assert "not shown to be sound" not in why


def test_a_search_for_a_run_that_did_not_end_is_not_said_to_have_found_none() -> None:
    found = prove(load(model="effects"), claims=["S8"], budget_s=0.0).of("S8")

    assert "which was not searched to its end" in found.why
