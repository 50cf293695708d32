"""What is claimed of a workflow is proved for all sizes, with the switches off that each claim needs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import pytest

from fencepost.checker.explore import check
from fencepost.checker.proofs import prove
from fencepost.checker.smt import ProofResult
from fencepost.checker.smt import prove as induct
from fencepost.checker.smt.obligations import DOMAINS, FAULTS
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Report, Verdict
from fencepost.model import Scope
from fencepost.model.mutate import with_lines
from fencepost.model.workflow import workflow
from fencepost.model.workflow.scopes import SMALL, WHAT_IF, WHAT_IF_IN
from fencepost.properties import WORKFLOW, Kind
from fencepost.properties.needs_off import WHY_WORKFLOW

BUDGET_S = 300.0
"""On a busy machine; alone it takes some twenty seconds."""

PROMISES = [c.name for c in WORKFLOW.promises()]
INVARIANTS = [c.name for c in WORKFLOW.of_kind(Kind.SUPPORTING)]

BROKEN = {
    ("record_expired", "one_effect_per_intent"): 6,
    ("record_expired", "given_up_effects_never_happen"): 8,
    ("record_expired", "former_intents_never_happen"): 8,
    ("record_expired", "late_request_after_tombstone_refused"): 8,
    ("record_volatile", "one_effect_per_intent"): 6,
    ("record_volatile", "fence_only_rises"): 5,
    ("record_volatile", "stale_effect_never_lands_after_contact"): 9,
    ("record_volatile", "given_up_effects_never_happen"): 8,
    ("record_volatile", "former_intents_never_happen"): 8,
    ("record_volatile", "late_request_after_tombstone_refused"): 8,
}
"""By fault and claim: the length of a shortest run that breaks it, in the smallest scopes that have one."""


# Proofs.


@pytest.fixture(scope="module")
def proved() -> Report:
    """The proof of all claims."""
    return prove(Subject(workflow, WORKFLOW), counterexamples=False, budget_s=BUDGET_S)


def test_every_claim_about_a_workflow_is_proved_for_all_sizes_and_none_is_left_out(proved: Report) -> None:
    assert {f.claim.name: f.verdict.value for f in proved.findings} == dict.fromkeys(PROMISES, "PROVED")
    assert proved.figures["invariants"] == INVARIANTS


def test_what_is_proved_names_the_switches_that_are_off(proved: Report) -> None:
    assert proved.of("one_effect_per_intent").why.endswith(
        "by induction, with record_expired and record_volatile off"
    )
    assert proved.of("S12").bound.endswith("switches, with record_volatile off")
    assert proved.of("only_what_happened_is_undone").bound.endswith("combination of the world's switches")
    assert "any number of steps, workers, fingerprints, requests and calls" in proved.figures["bound"]


def _induction(promises: Iterable[str], invariants: Iterable[str]) -> ProofResult:
    chosen = [WORKFLOW.claims[n] for n in promises]
    helpers = [WORKFLOW.claims[n] for n in invariants]
    return induct(
        workflow,
        {c.name: c.predicate for c in chosen if not c.over_steps},
        {c.name: c.predicate for c in chosen if c.over_steps},
        {c.name: c.predicate for c in helpers},
        budget_s=BUDGET_S,
        needs_off={c.name: c.needs_off for c in (*chosen, *helpers)},
    )


@cache
def _rests_on() -> dict[str, frozenset[str]]:
    """By claim: the invariants and claims that its proof uses, directly or through others.

    Each proof rests on what shows that steps write numbers of their domains and read only what is there.
    """
    result = _induction(PROMISES, INVARIANTS)
    standing = result.rests_on(DOMAINS) | result.rests_on(FAULTS)
    return {name: (result.rests_on(name) | standing) - {name} for name in PROMISES}


@pytest.mark.slow
@pytest.mark.parametrize("invariant", INVARIANTS)
def test_without_an_invariant_a_claim_is_lost_whose_proof_rests_on_it(invariant: str) -> None:
    resting = [name for name in PROMISES if invariant in _rests_on()[name]]
    resting.sort(key=lambda name: len(_rests_on()[name]))
    lost = (n for n in resting if not _induction([n], _rests_on()[n] - {invariant}).proved[n])
    assert next(lost, "none") != "none"


def test_an_invariant_names_claims_that_there_are() -> None:
    for claim in WORKFLOW.of_kind(Kind.SUPPORTING):
        assert claim.supports, claim.name
        assert set(claim.supports) <= set(WORKFLOW.ids()), claim.name


@pytest.mark.slow
def test_each_claim_that_an_invariant_is_said_to_support_rests_on_it() -> None:
    rests_on = _rests_on()
    wrong = [
        (invariant.name, supported)
        for invariant in WORKFLOW.of_kind(Kind.SUPPORTING)
        for supported in invariant.supports
        if not any(invariant.name in rests_on[c.name] for c in WORKFLOW.ids()[supported])
    ]
    assert wrong == []


# The same in finite scopes.


@pytest.mark.parametrize(
    "scope", [pytest.param(s, marks=() if s == "attested" else pytest.mark.slow) for s in SMALL]
)
def test_every_invariant_of_the_proofs_holds_in_each_scope(scope: str) -> None:
    report = check(Subject(workflow, WORKFLOW), scope=scope, claims=INVARIANTS, traces=False)
    assert {f.claim.name: f.verdict.value for f in report.findings} == dict.fromkeys(INVARIANTS, "BOUNDED")
    assert report.figures["complete"]


@cache
def _broken_by(fault: str) -> dict[str, int]:
    """By claim or invariant: the length of a shortest run that breaks it with the fault on."""
    found: dict[str, int] = {}
    for scope in WHAT_IF[fault]:
        report = check(Subject(workflow, WORKFLOW), scope=scope, claims=PROMISES + INVARIANTS, traces=False)
        assert report.figures["complete"]
        for finding in report.refuted:
            name, steps = finding.claim.name, finding.details["steps"]
            found[name] = min(steps, found.get(name, steps))
    return found


def test_every_fault_that_a_claim_needs_off_is_tried_and_has_its_reason() -> None:
    assert set(WHY_WORKFLOW) == {(c.name, s) for c in WORKFLOW.promises() for s in c.needs_off}
    assert set(WHAT_IF) == {s for c in WORKFLOW.claims.values() for s in c.needs_off}


@pytest.mark.parametrize("fault", WHAT_IF)
def test_a_fault_breaks_exactly_the_claims_that_need_it_off(fault: str) -> None:
    # That nothing else breaks them is proved above, with every other switch open.
    expected = {claim: steps for (switch, claim), steps in BROKEN.items() if switch == fault}
    assert {name: steps for name, steps in _broken_by(fault).items() if name in PROMISES} == expected
    assert {name for name, switch in WHY_WORKFLOW if switch == fault} == set(expected)


@pytest.mark.parametrize("fault", WHAT_IF)
def test_an_invariant_needs_only_faults_off_that_break_it(fault: str) -> None:
    needy = {c.name for c in WORKFLOW.of_kind(Kind.SUPPORTING) if fault in c.needs_off}
    assert set(_broken_by(fault)) & set(INVARIANTS) == needy


# What the claims notice that have to do with more than the obvious line.


def _tiny(*switches: str, requests: int = 1, calls: int = 1, **bounds: int) -> Scope:
    scope = WHAT_IF_IN[0]
    return scope.but(
        name="tiny",
        sizes={**scope.sizes, "request": requests, "call": calls},
        bounds={**scope.bounds, "intent_version": 1, **bounds},
        switches=frozenset(switches),
    )


@pytest.mark.parametrize(
    ("claim", "steps", "action", "piece", "instead", "scope"),
    [
        ("an_owner_sends_only_what_is_under_way", 4, "send_effect",
         " and not s.unwinds[w]", "", _tiny("keyed")),
        ("without_keys_nothing_is_sent_twice", 4, "send_effect",
         '(known_undone(s, w, x) or switched("keyed"))', "True", _tiny(calls=2)),
        ("a_request_alone_changes_nothing", 4, "record_request",
         "s.stands[r] = Stands.inbox", "s.stands[r], s.live = Stands.inbox, False", _tiny("cancels")),
        ("an_instance_is_cancelled_only_if_asked", 3, "fail",
         "s.cause == Cause.none, Cause.failure", "s.cause == Cause.none, Cause.cancel", _tiny()),
        ("a_commit_consumes_at_most_what_it_does", 6, "run_approved",
         "s.status[x] = Status.running", "s.status[x] = Status.cancelled", _tiny("gates")),
        ("a_commit_consumes_at_most_what_it_does", 5, "acknowledge_cancel",
         "s.cause = ite(s.cause == Cause.none, Cause.cancel, s.cause)", "pass", _tiny("cancels")),
        ("cancel_is_honoured", 6, "intend_anew",
         'refuse_unless(not cancel_waits(s), "cancel-requested")', "pass",
         _tiny("cancels", "intent_renewed", intent_version=2)),
        ("receipt_is_true", 9, "end_compensation",
         "when(s.knows[w, x] == Knows.receipt)", "pass",
         _tiny("operator", "cancels", requests=2, state_version=6)),
        ("only_what_happened_is_undone", 6, "compensate",
         "s.status[x] == Status.succeeded and ", "", _tiny("cancels", state_version=4)),
    ],
)  # fmt: skip
def test_a_claim_that_says_more_than_one_guard_does_can_fail(
    claim: str, steps: int, action: str, piece: str, instead: str, scope: Scope
) -> None:
    changed = with_lines(workflow, "changed", **{action: {piece: instead}})
    subject = Subject(changed, WORKFLOW, variant="changed", unbroken=workflow)
    found = check(subject, scope=scope, claims=[claim], traces=False).of(claim)
    assert (found.verdict, found.details.get("steps")) == (Verdict.REFUTED, steps)
