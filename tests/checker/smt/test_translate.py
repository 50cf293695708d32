"""Terms mean the same to the solver as to a plain interpreter."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fencepost.checker.smt.obligations import parts_of
from fencepost.checker.smt.translate import Translator, Unbounded
from fencepost.model import BOOLEAN, Counter, ModelError, Range
from fencepost.model import terms as t
from fencepost.model.errors import NeedsFiniteError

from .support import (
    FAMILIES,
    SCALARS,
    WORKERS,
    Colour,
    Expressions,
    array_of,
    state_by_chance,
    term_of,
    value_of,
    versions,
    workers,
)


def known(translator: Translator, state: dict[str, Any]) -> list[Any]:
    """The state as formulas: the sort has exactly two elements, and each variable its value."""
    z3 = translator.z3
    elements = [translator.formula(t.constant(i, workers)) for i in range(WORKERS)]
    other = z3.Const("other", translator.sort_of(workers))
    facts = [z3.ForAll([other], z3.Or([other == e for e in elements])), *translator.distinct_elements()]
    for name, domain in SCALARS.items():
        facts.append(translator.formula(t.eq(t.variable(name, domain), t.constant(state[name], domain))))
    for name, (index, of) in FAMILIES.items():
        family = t.variable(name, array_of(name))
        for place, code in state[name].items():
            cell = t.select(family, tuple(t.constant(i, d) for i, d in zip(place, index, strict=True)))
            facts.append(translator.formula(t.eq(cell, t.constant(code, of))))
    return facts


def is_certain(translator: Translator, facts: list[Any], formula: Any) -> bool:
    solver = translator.z3.Solver(ctx=translator.context)
    solver.set("timeout", 20_000)
    solver.add(facts)
    solver.add(translator.negation(formula))
    return str(solver.check()) == "unsat"


@pytest.mark.parametrize("seed", range(60))
def test_a_formula_is_true_exactly_where_its_expression_is(seed: int) -> None:
    chance = random.Random(seed)
    state = state_by_chance(chance)
    translator = Translator()
    facts = known(translator, state)
    rewrite = Unbounded()
    for _ in range(6):
        expression = Expressions(chance).truth(chance.randrange(1, 5))
        term = rewrite(term_of(expression))
        expected = value_of(expression, state)
        formula = translator.formula(term)
        assert is_certain(translator, facts, formula if expected else translator.negation(formula)), (
            expression
        )
        parts = translator.conjunction(translator.formula(p) for p in parts_of(term))
        assert is_certain(translator, facts, parts if expected else translator.negation(parts)), expression


@pytest.mark.parametrize("seed", range(10))
def test_a_number_has_the_value_of_its_expression(seed: int) -> None:
    chance = random.Random(seed)
    state = state_by_chance(chance)
    translator = Translator()
    facts = known(translator, state)
    for _ in range(6):
        expression = Expressions(chance).number(3)
        formula = translator.formula(Unbounded()(term_of(expression)))
        value = value_of(expression, state)
        assert is_certain(translator, facts, formula == value), expression
        assert not is_certain(translator, facts, formula == value + 1)


def test_each_distinct_term_becomes_one_formula() -> None:
    translator = Translator()
    x = t.variable("x", versions)
    made = translator.formula(t.le(x, t.integer(3)))
    assert translator.formula(t.le(t.variable("x", versions), t.integer(3))) is made


def test_a_bound_variable_is_not_the_variable_of_the_same_name() -> None:
    translator = Translator()
    variable, bound = t.variable("x", BOOLEAN), t.bound("x", BOOLEAN)
    claim = translator.formula(t.forall((bound,), t.or_((bound, variable))))
    assert not is_certain(translator, [], claim)
    assert is_certain(translator, [translator.formula(variable)], claim)


def test_numbers_below_their_domain_are_excluded_for_variables_and_families() -> None:
    translator = Translator()
    x, family = t.variable("x", versions), t.variable("f", t.Array((workers,), versions))
    cell = translator.formula(t.select(family, (t.constant(0, workers),)))
    facts = translator.domain_facts([x, family])
    assert is_certain(translator, facts, translator.formula(x) >= 0)
    assert is_certain(translator, facts, cell >= 0)
    assert not is_certain(translator, [], cell >= 0)
    assert not is_certain(translator, facts, cell >= 1)
    ranged = t.variable("r", Range(2, 4))
    assert is_certain(translator, translator.domain_facts([ranged]), translator.formula(ranged) <= 4)


def test_a_quantifier_over_a_counter_looks_at_no_number_below_zero() -> None:
    translator = Translator()
    v = t.bound("v", versions)
    marked = t.select(t.variable("marked", t.Array((versions,), BOOLEAN)), (v,))
    some, none = t.exists((v,), marked), t.forall((v,), t.not_(marked))
    assert is_certain(translator, [], translator.formula(t.or_((some, none))))
    assert is_certain(translator, [], translator.formula(t.not_(t.and_((some, none)))))


def test_elements_mentioned_by_name_are_different_ones() -> None:
    translator = Translator()
    first, second = (translator.formula(t.constant(i, workers)) for i in range(2))
    assert not is_certain(translator, [], first != second)
    assert is_certain(translator, translator.distinct_elements(), first != second)


def test_two_enumerations_of_one_name_are_two_sorts() -> None:
    translator = Translator()
    other = type(Colour)("Colour", "red", "yellow")
    assert translator.sort_of(Colour) != translator.sort_of(other)
    assert str(translator.formula(t.constant(1, other))).endswith("yellow")


# -- reading for all sizes

LIMIT = t.limit_of(versions)
X = t.variable("x", versions)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (t.le(X, LIMIT), t.TRUE),
        (t.le(t.add(X, t.integer(1)), LIMIT), t.TRUE),
        (t.le(t.add(X, t.integer(-1)), LIMIT), t.TRUE),
        (t.lt(LIMIT, X), t.FALSE),
        (t.not_(t.le(t.add(X, t.integer(1)), LIMIT)), t.FALSE),
        (t.and_((t.variable("b", BOOLEAN), t.le(X, LIMIT))), t.variable("b", BOOLEAN)),
    ],
)
def test_a_counter_has_no_limit(term: t.Term, expected: t.Term) -> None:
    assert Unbounded()(term) is expected


@pytest.mark.parametrize(
    "term",
    [
        t.eq(X, LIMIT),
        t.le(t.add(LIMIT, X), t.integer(3)),
        t.le(LIMIT, t.limit_of(Counter("other"))),
        t.le(X, t.negate(LIMIT)),
    ],
)
def test_a_limit_used_as_a_number_is_an_error(term: t.Term) -> None:
    with pytest.raises(NeedsFiniteError, match="limit"):
        Unbounded()(term)


def test_a_count_needs_a_finite_reading() -> None:
    w = t.bound("w", workers)
    counted = t.count((w,), t.select(t.variable("up", array_of("up")), (w,)))
    with pytest.raises(NeedsFiniteError, match="at_most_one"):
        Unbounded()(t.le(counted, t.integer(1)))
    with pytest.raises(NeedsFiniteError, match="at_most_one"):
        Translator().formula(counted)


def test_a_quantifier_over_few_values_is_written_out() -> None:
    v, w = t.bound("v", Colour), t.bound("w", workers)
    shade = t.eq(t.select(t.variable("by", t.Array((Colour,), workers)), (v,)), w)
    written = Unbounded()(t.forall((v, w), shade))
    assert written.op == "forall"
    assert written.args[:-1] == (w,)
    assert len(written.args[-1].args) == 3


def test_a_switch_that_is_off_is_false_and_the_others_are_open() -> None:
    crash, pause = t.variable("switch crash", BOOLEAN), t.variable("switch pause", BOOLEAN)
    assert Unbounded(["crash"])(t.or_((crash, pause))) is pause


def test_a_family_as_a_whole_has_no_formula() -> None:
    with pytest.raises(ModelError, match="cells"):
        Translator().formula(t.variable("up", array_of("up")))
