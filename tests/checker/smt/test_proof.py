"""Proofs for all sizes hold for what is true, and for nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from fencepost.checker.smt import ProofResult, Result, prove
from fencepost.model import (
    BOOLEAN,
    Counter,
    Element,
    Family,
    ModelError,
    Optional,
    Protocol,
    Range,
    Sort,
    State,
    absent,
    at_most_one,
    can_move,
    count,
    every,
    implies,
    some,
    switched,
    when,
)

from .small_protocol import CLAIMS, LEASES, STEPS, SUPPORTING, VARIANTS, Claims, commits, named, workers

NONE: Claims = {}


def prove_leases(protocol: Protocol = LEASES, **options: Any) -> ProofResult:
    return prove(protocol, CLAIMS, STEPS, options.pop("supporting", SUPPORTING), **options)


def lost(result: ProofResult) -> set[str]:
    return {name for name, proved in result.proved.items() if not proved}


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


# -- small protocols, one idea each

things = Sort("thing")
numbers = Counter("number")


def protocol(**variables: tuple[Any, Any]) -> Protocol:
    made = Protocol("small")
    for name, (domain, first) in variables.items():
        made.variable(name, domain, first, home="all", meaning=name)
    return made


def proved(p: Protocol, claim: Callable[..., Any], **options: Any) -> bool:
    arity = claim.__code__.co_argcount
    result = prove(p, named(claim) if arity == 1 else {}, named(claim) if arity > 1 else {}, {}, **options)
    return result.proved[claim.__name__]


def counting(step: int = 1) -> Protocol:
    p = protocol(n=(numbers, 0), other=(numbers, 0))

    @p.action("all")
    def move(s: State) -> None:
        s.n = s.n + step

    return p


def never_falls(before: State, after: State) -> object:
    return before.n <= after.n


def test_a_number_that_falls_below_its_domain_is_no_sound_model() -> None:
    def is_zero(s: State) -> object:
        return s.other == 0

    assert proved(counting(), is_zero)
    result = prove(counting(-1), named(is_zero), {}, {})
    assert not result.proved["is_zero"]
    assert "domain" in result.reasons["is_zero"]
    assert [r.obligation.move for r in result.failed] == ["move[done]"]


def test_a_number_guarded_to_stay_in_its_domain_is_sound() -> None:
    p = protocol(n=(numbers, 4))

    @p.action("all")
    def move(s: State) -> None:
        when(s.n > 0)
        s.n = s.n - 1

    def only_falls(before: State, after: State) -> object:
        return after.n <= before.n

    assert proved(p, only_falls)
    assert not proved(p, never_falls)


@pytest.mark.parametrize(("limit", "sound"), [(3, True), (4, False)])
def test_a_range_must_not_be_left_at_its_upper_end(limit: int, sound: bool) -> None:
    p = protocol(n=(Range(0, 3), 0), table=(Family(Range(0, 3), of=BOOLEAN), False))

    @p.action("all")
    def move(s: State) -> None:
        when(s.n < limit)
        s.n = s.n + 1

    assert proved(p, never_falls) is sound


@pytest.mark.parametrize(("limit", "sound"), [(3, True), (4, False)])
def test_an_index_must_not_lie_beyond_a_range(limit: int, sound: bool) -> None:
    p = protocol(n=(Range(0, 3), 0), table=(Family(Range(0, 3), of=BOOLEAN), False))

    @p.action("all")
    def mark(s: State) -> None:
        when(s.n < limit)
        s.table[s.n + 1] = True

    assert proved(p, never_falls) is sound


@pytest.mark.parametrize("careful", [True, False])
def test_a_value_that_is_not_there_must_never_be_read(careful: bool) -> None:
    p = protocol(n=(numbers, 0), seen=(Optional(numbers), absent))

    @p.action("all")
    def see(s: State) -> None:
        s.seen = s.n

    @p.action("all")
    def read(s: State) -> None:
        if careful:
            when(s.seen.present)
        s.n = s.seen.value

    def seen_is_small(s: State) -> object:
        return s.n == 0 and implies(s.seen.present, lambda: s.seen.value == 0)

    result = prove(p, named(seen_is_small), {}, {})
    assert result.proved["seen_is_small"] is careful
    assert ["nothing is read that is not there"] == [r.obligation.claim for r in result.failed] or careful


def test_the_first_state_counts() -> None:
    def is_positive(s: State) -> object:
        return s.n >= 1

    result = prove(counting(), named(is_positive), {}, {})
    assert not result.proved["is_positive"]
    assert [r.name for r in result.failed] == ["start × is_positive"]


def test_a_model_with_a_move_that_never_happens_proves_nothing() -> None:
    p = counting()

    @p.action("all")
    def impossible(s: State) -> None:
        when(s.other > 0)
        s.n = 0

    def other_is_zero(s: State) -> object:
        return s.other == 0

    result = prove(p, named(other_is_zero), {}, {})
    assert result.never == ("impossible",)
    assert not result.proved["other_is_zero"]
    assert "impossible" in result.reasons["other_is_zero"]


def test_an_action_whose_switch_is_off_may_be_impossible() -> None:
    p = counting()
    p.switch("fall", "numbers fall")

    @p.action("all", switch="fall")
    def fall(s: State) -> None:
        when(s.n > 0)
        s.n = s.n - 1

    assert not proved(p, never_falls)
    assert proved(p, never_falls, off=["fall"])


def test_a_proof_covers_each_combination_of_switches() -> None:
    p = counting()
    p.switch("fall", "numbers fall")

    @p.action("all")
    def fall(s: State) -> None:
        when(s.n > 0)
        if switched("fall"):
            s.n = s.n - 1

    def falls_only_when_switched(before: State, after: State) -> object:
        return switched("fall") or before.n <= after.n

    assert not proved(p, never_falls)
    assert proved(p, falls_only_when_switched)


def test_a_sort_has_any_number_of_elements() -> None:
    p = protocol(chosen=(Family(things, of=BOOLEAN), False), first=(Optional(things), absent))

    @p.action("all", x=things)
    def choose(s: State, x: Element) -> None:
        when(not s.first.present)
        s.first = x
        s.chosen[x] = True

    def at_most_one_is_chosen(s: State) -> object:
        return at_most_one(things, lambda x: s.chosen[x])

    def chosen_is_first(s: State) -> object:
        return every(things, lambda x: s.chosen[x] == (s.first == x))

    assert not proved(p, at_most_one_is_chosen)
    assert prove(p, named(at_most_one_is_chosen), {}, named(chosen_is_first)).proved["at_most_one_is_chosen"]


def test_a_claim_may_follow_from_the_others_without_a_step_of_its_own() -> None:
    p = protocol(a=(numbers, 0), b=(numbers, 0), c=(numbers, 0))

    @p.action("all")
    def move(s: State) -> None:
        s.a, s.b, s.c = s.b + 1, s.a + 1, s.b + 1

    def a_is_b(s: State) -> object:
        return s.a == s.b

    def a_is_c(s: State) -> object:
        return s.a == s.c

    def c_is_b(s: State) -> object:
        return s.c == s.b

    assert not proved(p, c_is_b)
    assert lost(prove(p, named(c_is_b), {}, named(a_is_b, a_is_c))) == set()


def test_two_false_claims_that_follow_from_each_other_are_not_proved() -> None:
    p = counting()

    def stays_low(s: State) -> object:
        return s.n <= 1

    def stays_below_two(s: State) -> object:
        return not s.n >= 2

    def other_is_zero(s: State) -> object:
        return s.other == 0

    result = prove(p, named(stays_low, stays_below_two, other_is_zero), {}, {})
    assert lost(result) == {"stays_low", "stays_below_two"}


def test_fresh_ids_never_run_out() -> None:
    p = protocol(used=(Family(things, of=BOOLEAN), False), done=(BOOLEAN, False))

    @p.action("all", x=p.fresh(things, unless="used"))
    def use(s: State, x: Element) -> None:
        s.used[x] = True

    def something_is_unused(s: State) -> object:
        return some(things, lambda x: not s.used[x])

    def something_can_move(s: State) -> object:
        return can_move(s, "all")

    def done_is_false(s: State) -> object:
        return not s.done

    result = prove(p, named(something_is_unused, something_can_move, done_is_false), {}, {})
    assert lost(result) == set()
    assert result.needs_ids("something_is_unused")
    assert result.needs_ids("something_can_move")
    assert not result.needs_ids("done_is_false")


def test_ids_may_run_out_where_they_are_used_all_at_once() -> None:
    p = protocol(used=(Family(things, of=BOOLEAN), False))

    @p.action("all", x=p.fresh(things, unless="used"))
    def use(s: State, x: Element) -> None:
        when(not s.used[x])
        s.used.fill(True)

    def something_is_unused(s: State) -> object:
        return some(things, lambda x: not s.used[x])

    assert not proved(p, something_is_unused)


def test_a_claim_about_what_can_move_does_not_mistake_its_parameters_for_those_of_the_move() -> None:
    p = protocol(done=(Family(things, of=BOOLEAN), False))

    @p.action("all", x=things)
    def take(s: State, x: Element) -> None:
        when(not s.done[x])
        s.done[x] = True

    def something_is_left_to_take(s: State) -> object:
        return can_move(s, "all") or every(things, lambda x: s.done[x])

    result = prove(p, named(something_is_left_to_take), {}, {})
    assert result.proved["something_is_left_to_take"]
    assert "take[done] × something_is_left_to_take" in {r.name for r in result.obligations}


# -- what has no reading for all sizes


def test_a_claim_that_counts_is_not_proved_and_the_others_are() -> None:
    def few_commits(s: State) -> object:
        return count(commits, lambda c: s.sent[c]) <= 3

    result = prove(LEASES, {**CLAIMS, **named(few_commits)}, STEPS, SUPPORTING)
    assert lost(result) == {"few_commits"}
    assert "no reading for all sizes" in result.reasons["few_commits"]
    assert "at_most_one" in result.reasons["few_commits"]
    assert "test_proof.py" in result.reasons["few_commits"]


def test_an_action_that_loops_leaves_nothing_to_prove() -> None:
    p = protocol(up=(Family(things, of=BOOLEAN), True), n=(numbers, 0))

    @p.action("all")
    def stop(s: State) -> None:
        for x in things:
            s.up[x] = False

    result = prove(p, {}, named(never_falls), {})
    assert result.proved == {"never_falls": False}
    assert "no reading for all sizes" in result.reasons["never_falls"]


def test_a_claim_that_reads_what_may_not_be_there_is_an_error() -> None:
    def owner_is_someone(s: State) -> object:
        return every(workers, lambda w: s.owner.value == w)

    with pytest.raises(ModelError, match="may not be there"):
        prove(LEASES, named(owner_is_someone), {}, {})
