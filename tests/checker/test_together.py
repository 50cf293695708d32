"""A claim has one verdict of several scopes: what one of them cannot show hides nothing of the others."""

from __future__ import annotations

import itertools

import pytest

from fencepost.checker import check
from fencepost.checker.shares import share_s
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Verdict
from fencepost.model import (
    BOOLEAN,
    Counter,
    Element,
    Family,
    Optional,
    Protocol,
    Scope,
    Sort,
    State,
    absent,
    switched,
    when,
)
from fencepost.properties import Claims

number = Counter("number")
ids = Sort("id")


def counting() -> Subject:
    p = Protocol("counting")
    p.variable("n", number, 0, home="here", meaning="a number")
    p.variable("m", number, 0, home="here", meaning="another number")
    p.switch("second", "the second number moves, and not the first")
    for name, bound, on in (("low", 2, ()), ("high", 4, ()), ("other", 4, ("second",))):
        p.scope(name, sizes={}, bounds={"number": bound}, switches=on, why="for the test")
    claims = Claims("counting")

    @p.action("somebody")
    def count(s: State) -> None:
        """The first number grows."""
        when(s.m == 0)
        s.n = s.n + 1

    @p.action("somebody", switch="second")
    def count_second(s: State) -> None:
        """The second number grows."""
        when(s.n == 0)
        s.m = s.m + 1

    @claims.sometimes()
    def the_first_is_two(s: State) -> object:
        """The first number is two."""
        return s.n == 2

    @claims.sometimes()
    def the_second_is_two(s: State) -> object:
        """The second number is two."""
        return s.m == 2

    @claims.always("A", witnesses=("the_first_is_two",))
    def never_nine(s: State) -> object:
        """It is not nine."""
        return s.n != 9

    @claims.always("B", witnesses=("the_second_is_two",))
    def never_both(s: State) -> object:
        """Not both numbers move."""
        return s.n == 0 or s.m == 0

    @claims.always("C", witnesses=("the_first_is_two",))
    def never_three(s: State) -> object:
        """It is not three."""
        return s.n != 3

    return Subject(p, claims)


@pytest.mark.parametrize(
    ("claim", "scopes", "verdict", "why"),
    [
        ("A", ["low", "high"], Verdict.BOUNDED, "exercised in low and high"),
        ("B", ["low", "other"], Verdict.BOUNDED, "exercised in other; held in low"),
        ("B", ["other", "low"], Verdict.BOUNDED, "exercised in other; held in low"),
        ("B", ["low", "high"], Verdict.UNDETERMINED, "never exercised: the_second_is_two not reachable"),
        ("C", ["low", "high"], Verdict.REFUTED, "shortest run: 3 steps, in scope high"),
        ("C", ["high", "low"], Verdict.REFUTED, "shortest run: 3 steps, in scope high"),
    ],
)
def test_the_verdict_of_several_scopes(claim: str, scopes: list[str], verdict: Verdict, why: str) -> None:
    finding = check(counting(), scope=scopes, claims=[claim]).of(claim)

    assert finding.verdict is verdict
    assert why in finding.why


def test_the_bound_names_the_scopes_in_which_a_claim_was_exercised() -> None:
    finding = check(counting(), scope=["low", "other"], claims=["B"]).of("B")

    assert finding.bound == "scope other: number ≤ 4"
    assert finding.details["exercised_in"] == ["other"]


def test_a_search_that_did_not_finish_is_not_hidden_by_one_that_did() -> None:
    report = check(counting(), scope=["low", "high"], claims=["A"], budget_s=0.0)

    assert report.of("A").verdict is Verdict.UNDETERMINED
    assert "in scope low: the search did not finish" in report.of("A").why


def test_after_the_first_violation_the_other_scopes_are_not_looked_at() -> None:
    report = check(counting(), scope=["high", "other"], stop="first")

    assert report.of("C").verdict is Verdict.REFUTED
    assert report.of("B").verdict is Verdict.UNDETERMINED


def test_the_figures_are_of_all_scopes_and_of_each() -> None:
    figures = check(counting(), scope=["low", "high"], claims=["A"]).figures

    assert figures["scope"] == "low, high"
    assert figures["states"] == sum(f["states"] for f in figures["scopes"])


def test_without_a_scope_those_of_the_subject_are_looked_at() -> None:
    assert counting().default_scopes == ("low",)
    assert check(counting(), claims=["A"]).figures["scope"] == "low"


def _faulty() -> Subject:
    """With the switch off, the model reads something absent; with it on, all is well and exercised."""
    p = Protocol("faulty")
    p.variable("n", number, 0, home="here", meaning="a number")
    p.variable("noted", Optional(number), absent, home="here", meaning="a number, once it is noted")
    p.switch("careful", "nobody reads what is not there")

    @p.action("somebody")
    def count(s: State) -> None:
        """The number grows."""
        if not switched("careful"):
            s.n = s.noted.value
        when(switched("careful"))
        s.n = s.n + 1

    return Subject(p, _exercised_by_two())


def _told_apart() -> Subject:
    """With the switch off, an id that was given back is remembered, so that unused ids are not alike."""
    p = Protocol("told apart")
    p.variable("n", number, 0, home="here", meaning="a number")
    p.variable("busy", Family(ids, of=BOOLEAN), False, home="here", meaning="ids in use")
    p.variable("dirty", Family(ids, of=BOOLEAN), False, home="here", meaning="ids that were used once")
    p.switch("careful", "no id is given back")

    @p.action("somebody", i=p.fresh(ids, unless="busy"))
    def take(s: State, i: Element) -> None:
        """An id is taken."""
        when(not switched("careful"))
        s.busy[i] = True
        s.dirty[i] = True

    @p.action("somebody", i=ids)
    def hand_back(s: State, i: Element) -> None:
        """An id is given back."""
        when(s.busy[i])
        s.busy[i] = False

    @p.action("somebody")
    def count(s: State) -> None:
        """The number grows."""
        when(switched("careful"))
        s.n = s.n + 1

    return Subject(p, _exercised_by_two())


def _exercised_by_two() -> Claims:
    claims = Claims("careful")

    @claims.sometimes()
    def it_is_two(s: State) -> object:
        """The number is two."""
        return s.n == 2

    @claims.always("D", witnesses=("it_is_two",))
    def never_nine(s: State) -> object:
        """It is not nine."""
        return s.n != 9

    return claims


@pytest.mark.parametrize(
    ("subject", "says"),
    [(_faulty(), "reads something that is not there"), (_told_apart(), "unused ids can be told apart")],
    ids=["faulty", "told apart"],
)
def test_a_scope_that_shows_nothing_is_not_taken_for_one_that_does_not_exercise(
    subject: Subject, says: str
) -> None:
    sizes = {"id": 2} if "busy" in subject.protocol.variables else {}
    careless, careful = (
        Scope(name, sizes, {"number": 3}, frozenset(on), "for the test")
        for name, on in (("careless", ()), ("careful", ("careful",)))
    )
    alone = check(subject, scope=careless).of("D")
    both = check(subject, scope=[careless, careful])

    assert "unexercised" not in alone.details
    assert check(subject, scope=careful).of("D").verdict is Verdict.BOUNDED
    assert (both.of("D").verdict, both.exit_code) == (Verdict.UNDETERMINED, 3)
    assert says in both.of("D").why


def _needing_off(switch: str) -> Subject:
    subject = counting()
    own = Claims("own")

    @own.sometimes()
    def one(s: State) -> object:
        """One of the numbers is one."""
        return s.n + s.m == 1

    @own.always("D", witnesses=("one",), needs_off=(switch,))
    def never_nine_in_all(s: State) -> object:
        """Together they are not nine."""
        return s.n + s.m != 9

    return Subject(subject.protocol, own)


def test_a_scope_with_a_switch_on_that_a_claim_needs_off_does_not_exercise_it() -> None:
    subject = _needing_off("second")
    alone = check(subject, scope="other").of("D")
    both = check(subject, scope=["other", "low"]).of("D")

    assert alone.verdict is Verdict.UNDETERMINED
    assert "it needs second off, on in this scope, and promises nothing there" in alone.why
    assert (both.verdict, both.details["exercised_in"]) == (Verdict.BOUNDED, ["low"])


@pytest.mark.parametrize("uses", list(itertools.product((0.05, 0.4, 1.0), repeat=3)))
def test_a_search_that_takes_long_gets_what_others_do_not_use_and_leaves_each_some(
    uses: tuple[float, ...],
) -> None:
    left = 60.0
    for number, part in enumerate(uses):
        waiting = len(uses) - number - 1
        given = share_s(left, waiting)
        assert left / (waiting + 1) <= given <= left
        left -= given * part

    assert left >= 0
    assert share_s(60.0, 2) == pytest.approx(40.0)
    assert share_s(60.0, 0) == 60.0
