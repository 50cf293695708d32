"""A claim has one verdict of several scopes: what one of them cannot show hides nothing of the others."""

from __future__ import annotations

import pytest

from fencepost.checker import check
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Verdict
from fencepost.model import Counter, Protocol, State, when
from fencepost.properties import Claims

number = Counter("number")


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
