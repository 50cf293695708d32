"""Ways in which a verdict once said too much, each as the whole kind of mistake."""

from __future__ import annotations

import pytest

from fencepost.checker.explore import check
from fencepost.checker.proofs import prove
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Verdict
from fencepost.model import (
    BOOLEAN,
    HISTORY,
    Counter,
    Element,
    Family,
    ModelError,
    Optional,
    Protocol,
    ScopeError,
    Sort,
    State,
    absent,
    at_most_one,
    can_move,
    count,
    every,
    some,
    when,
)
from fencepost.model import terms as t
from fencepost.properties import Claims

ids = Sort("id")
workers = Sort("worker")
numbers = Counter("number")


def _tickets(*, give_back: bool) -> Protocol:
    p = Protocol("tickets")
    p.variable("busy", Family(ids, of=BOOLEAN), False, home="store", meaning="ids in use")
    p.variable("dirty", Family(ids, of=BOOLEAN), False, home="store", meaning="ids that were used once")

    @p.action("clerk", i=p.fresh(ids, unless="busy"))
    def take(s: State, i: Element) -> None:
        when(not give_back or every(ids, lambda j: not s.busy[j]))
        s.busy[i] = True
        s.dirty[i] = True

    if give_back:

        @p.action("clerk", i=ids)
        def hand_back(s: State, i: Element) -> None:
            when(s.busy[i])
            s.busy[i] = False

    p.scope("three", sizes={"id": 3}, bounds={}, why="enough")
    return p


def _claims(predicate: object) -> Claims:
    claims = Claims("mine")
    claims.always("MINE")(predicate)  # type: ignore[arg-type]
    return claims


def test_ids_that_are_given_back_and_remembered_bound_nothing() -> None:
    def one_dirty(s: State) -> object:
        """At most one id was ever used: false, but not by always taking the smallest."""
        return count(ids, lambda i: s.dirty[i]) <= 1

    found = check(Subject(_tickets(give_back=True), _claims(one_dirty)), scope="three").of("MINE")
    assert found.verdict is Verdict.UNDETERMINED
    assert "take(i1), hand_back(i1), unused ids can be told apart" in found.why


def test_ids_that_stay_taken_are_alike_and_bound_a_claim() -> None:
    def dirty_is_busy(s: State) -> object:
        """What was used is in use."""
        return every(ids, lambda i: s.busy[i] == s.dirty[i])

    found = check(Subject(_tickets(give_back=False), _claims(dirty_is_busy)), scope="three").of("MINE")
    assert found.verdict is Verdict.BOUNDED


def test_an_id_that_is_named_before_it_is_taken_bounds_nothing() -> None:
    p = _tickets(give_back=False)
    p.variable("wish", Optional(ids), absent, home="store", meaning="an id that somebody would like")

    @p.action("guest", i=ids)
    def wish_for(s: State, i: Element) -> None:
        s.wish = i

    def no_wish(s: State) -> object:
        """Nobody wishes for an unused id: false."""
        return not s.wish.present or s.busy[s.wish]

    def true_enough(s: State) -> object:
        """What was used is in use."""
        return every(ids, lambda i: s.busy[i] == s.dirty[i])

    claims = _claims(true_enough)
    claims.always("FALSE")(no_wish)
    report = check(Subject(p, claims), scope="three")
    assert report.of("MINE").verdict is Verdict.UNDETERMINED
    assert report.of("FALSE").verdict is Verdict.REFUTED


def test_two_fresh_elements_of_one_sort_are_refused() -> None:
    p = _tickets(give_back=False)

    @p.action("clerk", i=p.fresh(ids, unless="busy"), j=p.fresh(ids, unless="busy"))
    def take_two(s: State, i: Element, j: Element) -> None:
        s.busy[i] = True
        s.busy[j] = True

    def anything(s: State) -> object:
        """Anything."""
        return every(ids, lambda i: s.busy[i] or not s.dirty[i])

    with pytest.raises(ModelError, match="two fresh elements of one sort"):
        check(Subject(p, _claims(anything)), scope="three")


def test_a_claim_and_an_action_of_one_name_do_not_share_bound_variables() -> None:
    p = Protocol("pairs")
    p.variable("related", Family(workers, workers, of=BOOLEAN), False, home="store", meaning="a relation")
    p.variable("marked", Family(workers, of=BOOLEAN), True, home="store", meaning="all of them")

    @p.action("mover")
    def same_name(s: State) -> None:
        when(some(workers, workers, lambda a, b: not s.related[a, b]))
        s.related.fill(True)

    def predicate(s: State) -> object:
        """At most one is marked while something can move: false, all are marked."""
        return at_most_one(workers, lambda w: s.marked[w] and can_move(s, "mover"))

    predicate.__name__ = "same_name"
    p.scope("two", sizes={"worker": 2}, bounds={}, why="enough")
    subject = Subject(p, _claims(predicate))
    assert check(subject, scope="two").of("MINE").verdict is Verdict.REFUTED
    assert prove(subject, scope="two").of("MINE").verdict is Verdict.REFUTED


def test_a_substitution_never_captures() -> None:
    a, b = t.bound("a", workers), t.bound("b", workers)
    family = t.variable("r", t.Array((workers, workers), BOOLEAN))
    inner = t.exists((b,), t.select(family, (a, b)))
    captured = t.exists((b,), t.select(family, (b, b)))
    assert t.substitute(inner, {a: b}) is not captured
    assert t.free_bounds(t.substitute(inner, {a: b})) == {b}
    shadowed = t.substitute(inner, {b: t.bound("c", workers)})
    assert t.free_bounds(shadowed) == {a}


def test_arguments_over_a_counter_are_not_called_closed() -> None:
    p = Protocol("put")
    p.variable("x", numbers, 0, home="store", meaning="a number")

    @p.action("user", n=numbers)
    def put(s: State, n: int) -> None:
        s.x = n

    def never_seven(s: State) -> object:
        """It is never seven: false, but not up to three."""
        return s.x != 7

    p.scope("three", sizes={}, bounds={"number": 3}, why="too small")
    found = check(Subject(p, _claims(never_seven)), scope="three").of("MINE")
    assert "closed" not in found.why
    assert "arguments looked at only for number ≤ 3" in found.why


def test_history_that_no_claim_reads_changes_no_verdict() -> None:
    p = Protocol("history")
    p.variable("x", numbers, 0, home="store", meaning="a number")
    p.variable("steps", numbers, 0, home=HISTORY, meaning="steps so far")

    @p.action("clock")
    def tick(s: State) -> None:
        s.steps = s.steps + 1
        if s.x < 2:
            s.x = s.x + 1

    def small(s: State) -> object:
        """It stays small."""
        return s.x <= 2

    def smaller(s: State) -> object:
        """It stays smaller: false."""
        return s.x < 2

    p.scope("four", sizes={}, bounds={"number": 4}, why="enough")
    claims = _claims(small)
    claims.always("FALSE")(smaller)
    report = check(Subject(p, claims), scope="four")
    assert report.of("MINE").verdict is Verdict.BOUNDED
    assert report.of("FALSE").verdict is Verdict.REFUTED


def test_an_element_beyond_the_scope_is_reported() -> None:
    p = _tickets(give_back=False)
    p.variable("boss", Optional(workers), absent, home="store", meaning="a worker")
    third = workers.element(2)

    @p.action("clerk")
    def promote(s: State) -> None:
        s.boss = third

    def nobody(s: State) -> object:
        """Nobody is the boss."""
        return not s.boss.present

    p.scope("two", sizes={"id": 1, "worker": 2}, bounds={}, why="one too few")
    with pytest.raises(ScopeError, match="w3 is named, but scope 'two' has only 2"):
        check(Subject(p, _claims(nobody)), scope="two")
