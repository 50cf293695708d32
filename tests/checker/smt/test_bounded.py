"""Induction on a finite instance says what trying every state says."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fencepost.checker.smt import Counterexample, counterexample_to_induction, induct, leaves_its_field
from fencepost.checker.smt.bounded import START
from fencepost.checker.smt.finite import holds_at
from fencepost.model import Range
from fencepost.model import terms as t
from fencepost.model.ground import Cell, GroundModel, ground_model

from .small_protocol import CLAIMS, LEASES, SMALL, STEPS, SUPPORTING, VARIANTS
from .support import Codes, Models, all_states, evaluate, shortest, step


def breaks(model: GroundModel, hypotheses: Sequence[t.Term], goal: t.Term | Sequence[t.Term]) -> bool:
    """Whether some step breaks the goal, by trying every state."""
    for before in all_states(model):
        if not all(evaluate(h, before) for h in hypotheses):
            continue
        for number in range(len(model.commands)):
            after = step(model, number, before)
            if after is None:
                continue
            if not (evaluate(goal, after) if isinstance(goal, t.Term) else evaluate(goal[number], before)):
                return True
    return False


def assert_breaks(
    model: GroundModel, found: Counterexample, hypotheses: Sequence[t.Term], goal: object
) -> None:
    assert all(evaluate(h, found.before) for h in hypotheses)
    assert step(model, found.command, dict(found.before)) == found.after
    for cell in model.cells:
        assert cell.low <= found.before[cell.name] <= cell.high
    if isinstance(goal, t.Term):
        assert not evaluate(goal, found.after)
    else:
        assert isinstance(goal, tuple)
        assert not evaluate(goal[found.command], found.before)


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_a_counterexample_is_found_exactly_where_there_is_one(seed: int, integers: bool) -> None:
    models = Models(random.Random(seed))
    model = models.model()
    hypotheses = [models.truth(1)]
    for goal in (models.truth(2), models.step_claim(model)):
        answer = counterexample_to_induction(model, hypotheses, goal, integers=integers)
        assert answer.status == ("sat" if breaks(model, hypotheses, goal) else "unsat")
        if answer.counterexample is not None:
            assert_breaks(model, answer.counterexample, hypotheses, goal)


def carries_itself(model: GroundModel, states: dict[str, t.Term]) -> set[str]:
    """The largest set of claims that the first state has and each step keeps, by trying every state."""
    alive = {name for name, term in states.items() if evaluate(term, model.initial)}
    while True:
        known = [states[name] for name in alive]
        lost = {name for name in alive if breaks(model, known, states[name])}
        if not lost:
            return alive
        alive -= lost


@pytest.mark.parametrize("seed", range(25))
def test_what_is_shown_is_the_largest_set_that_carries_itself(seed: int) -> None:
    models = Models(random.Random(seed))
    model = models.model()
    claims = {f"claim {i}": t.or_([models.truth(2), models.truth(1)]) for i in range(5)}
    steps = {"step": models.step_claim(model)}
    alive = carries_itself(model, claims)
    result = induct(model, claims, steps, {})
    assert {name for name in claims if result.shown[name]} == alive
    assert result.shown["step"] is not breaks(model, [claims[name] for name in alive], steps["step"])
    assert result.unknown == ()
    assert set(result.counterexamples) == {name for name, shown in result.shown.items() if not shown}


@pytest.mark.parametrize("seed", range(25))
def test_what_is_shown_is_broken_by_no_run(seed: int) -> None:
    models = Models(random.Random(1000 + seed))
    model = models.model()
    claims = {f"claim {i}": t.or_([models.truth(2), models.truth(1)]) for i in range(4)}
    steps = {"step": models.step_claim(model)}
    shown = induct(model, claims, steps, {}).shown
    everything: dict[str, t.Term | tuple[t.Term, ...]] = {**claims, **steps}
    for name, claim in everything.items():
        if shown[name]:
            assert shortest(model, claim, 100) is None


def test_a_claim_shown_with_the_help_of_one_that_fails_later_is_asked_again() -> None:
    a, b = (Cell(name, name, name, Range(0, 3), 0, 3) for name in "ab")
    above = t.add(a.term, t.integer(1))
    rule = a_model(a, above, t.TRUE, (above, 0, 3)).commands[0]
    both = replace(rule, updates={"a": above, "b": a.term})
    model = replace(a_model(a, above, t.TRUE), cells=(a, b), commands=(both,), initial={"a": 0, "b": 0})
    low = {name: t.le(cell.term, t.integer(1)) for name, cell in (("b is low", b), ("a is low", a))}
    assert induct(model, low, {}, {}).shown == {"b is low": False, "a is low": False}


def test_a_claim_that_the_first_state_breaks_is_shown_with_that_state() -> None:
    model = Models(random.Random(0)).model()
    result = induct(model, {"never": t.FALSE}, {}, {})
    assert result.counterexamples["never"] == Counterexample("never", model.initial, START, model.initial)


def test_without_time_nothing_is_shown() -> None:
    model = Models(random.Random(0)).model()
    result = induct(model, {"low": t.le(model.cells[0].term, t.integer(2))}, {}, {}, budget_s=0)
    assert not result.shown["low"]
    assert result.unknown == ("low",) or result.counterexamples


# -- fields


def a_model(cell: Cell, update: t.Term, guard: t.Term, *fits: tuple[t.Term, int, int]) -> GroundModel:
    model = Models(random.Random(0)).model()
    rule = replace(
        model.commands[0],
        guard=guard,
        updates={cell.name: update},
        fits=fits,
        outcome="done",
        source=replace(model.commands[0].source, outcome="done"),
    )
    return replace(model, cells=(cell,), commands=(rule,), initial={cell.name: cell.low})


A = Cell("a", "a", "a", Range(0, 3), 0, 3)
ABOVE = t.add(A.term, t.integer(1))


@pytest.mark.parametrize(
    ("model", "leaves"),
    [
        (a_model(A, ABOVE, t.TRUE), True),
        (a_model(A, ABOVE, t.TRUE, (ABOVE, 0, 3)), False),
        (a_model(A, ABOVE, t.not_(t.le(t.integer(3), A.term))), False),
        (a_model(A, t.negate(A.term), t.TRUE), True),
    ],
)
def test_a_number_that_its_cell_cannot_hold_is_found(model: GroundModel, leaves: bool) -> None:
    answer = leaves_its_field(model)
    assert answer.status == ("sat" if leaves else "unsat")
    if answer.counterexample is not None:
        assert not 0 <= answer.counterexample.after["a"] <= 3


def test_hypotheses_may_keep_a_number_in_its_field() -> None:
    model = a_model(A, ABOVE, t.TRUE)
    assert leaves_its_field(model, hypotheses=[t.le(A.term, t.integer(2))]).status == "unsat"


# -- the lease protocol

StepTerms = dict[str, tuple[t.Term, ...]]


def terms(model: GroundModel) -> tuple[dict[str, t.Term], StepTerms, dict[str, t.Term]]:
    return (
        {name: model.state_claim(f) for name, f in CLAIMS.items()},
        {name: model.step_claim(f) for name, f in STEPS.items()},
        {name: model.state_claim(f) for name, f in SUPPORTING.items()},
    )


def test_all_claims_of_the_lease_protocol_are_shown_in_a_scope() -> None:
    model = ground_model(LEASES, SMALL)
    assert leaves_its_field(model).status == "unsat"
    assert all(induct(model, *terms(model)).shown.values())


@pytest.mark.parametrize(
    ("variant", "claim", "action"),
    [
        ("live", "taken_over_only_after_expiry", "acquire"),
        ("raise", "believed_leases_were_held", "acquire"),
        ("lease", "stale_worker_never_overrides", "deliver"),
        ("state", "accepted_on_the_current_state", "deliver"),
        ("expired", "accepted_only_while_live", "deliver"),
    ],
)
def test_a_missing_guard_gives_a_step_that_breaks_its_claim(variant: str, claim: str, action: str) -> None:
    model = ground_model(VARIANTS[variant], SMALL)
    claims, steps, supporting = terms(model)
    result = induct(model, claims, steps, supporting)
    assert not result.shown[claim]
    found = result.counterexamples[claim]
    assert model.commands[found.command].action.name == action
    goal: t.Term | tuple[t.Term, ...] = steps.get(claim) or {**claims, **supporting}[claim]
    assert_breaks(model, found, [], goal)


def test_a_hypothesis_is_assumed_only_before_the_step() -> None:
    model = ground_model(LEASES, SMALL)
    held = model.state_claim(SUPPORTING["believed_leases_were_held"])
    sent = model.state_claim(SUPPORTING["sent_by_the_holder"])
    assert counterexample_to_induction(model, [sent, held], sent).status == "unsat"
    answer = counterexample_to_induction(model, [sent], sent)
    assert answer.counterexample is not None
    before: Codes = dict(answer.counterexample.before)
    assert holds_at(sent, model.cells, before)
    assert not holds_at(held, model.cells, before)
