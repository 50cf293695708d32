"""What a proof for all sizes rests on, each rule on a model of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fencepost.checker.smt.instance import Instance
from fencepost.checker.smt.obligations import Moves
from fencepost.model import (
    BOOLEAN,
    Counter,
    Element,
    Family,
    Optional,
    Protocol,
    Range,
    Sort,
    State,
    absent,
    at_most_one,
    can_move,
    every,
    implies,
    some,
    switched,
    when,
)

from .small_protocol import lost, named, prove

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


def test_a_contradiction_is_not_proved() -> None:
    def is_both(s: State) -> object:
        return s.n >= 1 and s.n <= 0

    def is_other(s: State) -> object:
        return s.other == 1

    result = prove(counting(), named(is_both, is_other), {}, {})
    assert lost(result) == {"is_both", "is_other"}
    assert {"start × is_both", "start × is_other"} <= {r.name for r in result.failed}


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


@pytest.mark.parametrize("least", [1, 1000])
def test_a_move_may_be_possible_only_beyond_a_small_instance(least: int) -> None:
    p = counting()

    @p.action("all")
    def restart(s: State) -> None:
        when(s.n >= least)
        s.n = 0

    def other_is_zero(s: State) -> object:
        return s.other == 0

    assert proved(p, other_is_zero)
    moves = [move for move in Moves(p).accepted() if move.action == "restart"]
    assert Instance(p, moves, []).allows(moves[0]) is (least == 1)


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

    def something_is_left(_before: State, after: State) -> object:
        return some(things, lambda x: not after.used[x])

    claims = named(something_is_unused, something_can_move, done_is_false)
    result = prove(p, claims, named(something_is_left), {})
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


def test_an_action_that_loops_leaves_nothing_to_prove() -> None:
    p = protocol(up=(Family(things, of=BOOLEAN), True), n=(numbers, 0))

    @p.action("all")
    def stop(s: State) -> None:
        for x in things:
            s.up[x] = False

    result = prove(p, {}, named(never_falls), {})
    assert result.proved == {"never_falls": False}
    assert "no reading for all sizes" in result.reasons["never_falls"]
