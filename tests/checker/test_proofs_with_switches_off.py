"""What `prove` says of claims that need switches of the world off."""

from __future__ import annotations

import pytest
from tests.checker.support import lock, lock_claims

from fencepost.checker.proofs import prove
from fencepost.checker.subject import Subject
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


def test_a_claim_that_needs_an_unknown_switch_off_is_an_error() -> None:
    with pytest.raises(ClaimError, match=r"'tickets_grow' needs the switch 'forgetfull' off.*'forgetful'"):
        proof("GROWS", needs_off=("forgetfull",))
