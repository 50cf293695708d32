"""A claim has one verdict of several scopes: what one of them cannot show hides nothing of the others."""

from __future__ import annotations

import itertools
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fencepost.checker import check, together
from fencepost.checker.explore import check_one
from fencepost.checker.shares import share_s
from fencepost.checker.subject import BUILT_IN, Subject
from fencepost.checker.together import Asked, check_all
from fencepost.checker.verdicts import Report, Verdict
from fencepost.model import (
    BOOLEAN,
    Counter,
    Element,
    Family,
    ModelError,
    Optional,
    Protocol,
    Scope,
    ScopeError,
    Sort,
    State,
    absent,
    switched,
    when,
)
from fencepost.model import terms as t
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


# -- several searches at the same time


def said(reports: list[Report]) -> list[object]:
    """All that does not depend on the clock or the memory."""
    kept = ("scope", "states", "transitions", "cut", "depth")
    return [
        (
            [(f.claim.name, f.verdict, f.why, f.bound, f.details) for f in r.findings],
            [f.trace and f.trace.steps for f in r.findings],
            {name: r.figures[name] for name in kept},
            r.notes,
        )
        for r in reports
    ]


@pytest.mark.parametrize("stop", ["all", "first"])
@pytest.mark.parametrize(
    "order", [("low", "high", "other"), ("high", "other", "low"), ("other", "low", "high"), ("high",)]
)
@pytest.mark.parametrize("claims", [(), ("C",), ("A", "B")])
def test_what_is_found_does_not_depend_on_how_many_run_at_once(
    stop: str, order: tuple[str, ...], claims: tuple[str, ...]
) -> None:
    def found(jobs: int) -> list[object]:
        asked = [
            Asked(subject, tuple(subject.scope(n) for n in order), claims)
            for subject in (counting(), counting())
        ]
        return said(check_all(asked, jobs=jobs, stop=stop))

    alone = found(1)
    assert found(2) == alone
    assert found(3) == alone


def test_built_in_protocols_are_searched_at_once_as_one_by_one() -> None:
    subjects = [BUILT_IN[name].subject() for name in ("core", "clocks", "triggers")]
    asked = [Asked(s, (s.scope(s.sweep_scopes[0]),)) for s in subjects]

    assert said(check_all(asked, jobs=3)) == said(check_all(asked))


@pytest.mark.parametrize("first", [True, False])
def test_an_error_in_one_search_is_raised_be_it_the_first_or_not(*, first: bool) -> None:
    long = counting()
    long.protocol.scope("long", sizes={}, bounds={"number": 10**4}, switches=("second",), why="long")
    wrong = counting()

    @wrong.protocol.action("somebody")
    def wrongly(s: State) -> None:
        """It reads something that is not there."""
        s.n = s.nothing

    asked = [Asked(wrong, (wrong.scope("low"),)), Asked(long, (long.scope("long"),))]
    with pytest.raises(ModelError, match="nothing"):
        check_all(asked if first else asked[::-1], jobs=2)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("claims", "stop"), [(("C",), "all"), ((), "first")])
def test_an_error_behind_what_ends_the_search_is_nobody_s(
    jobs: int, claims: tuple[str, ...], stop: str
) -> None:
    subject = counting()
    bad = Scope("bad", {}, {}, why="it says no bound of the number")
    (report,) = check_all([Asked(subject, (subject.scope("high"), bad), claims)], jobs=jobs, stop=stop)

    assert report.of("C").verdict is Verdict.REFUTED
    assert not report.figures["complete"]


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_of_several_errors_the_first_is_told(jobs: int) -> None:
    subject = counting()
    scopes = [Scope(f"bad-{n}", {}, {}, why="it says no bound of the number") for n in range(3)]
    for _ in range(5):
        with pytest.raises(ScopeError, match="'bad-0'"):
            check_all([Asked(subject, tuple(scopes))], jobs=jobs)


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_same_question_twice_has_two_answers(jobs: int) -> None:
    subject = counting()
    asked = Asked(subject, (subject.scope("low"), subject.scope("high")))
    first, second = said(check_all([asked, asked], jobs=jobs))
    assert first == second


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_scope_is_not_skipped_for_want_of_claims(jobs: int) -> None:
    subject = Subject(counting().protocol, Claims("none"))
    (report,) = check_all([Asked(subject, (subject.scope("low"), subject.scope("high")))], jobs=jobs)
    assert [f["scope"] for f in report.figures["scopes"]] == ["low", "high"]


def test_what_ends_for_want_of_its_share_of_memory_is_searched_again_with_all() -> None:
    subject = BUILT_IN["triggers"].subject()
    asked = [Asked(subject, (subject.scope("quick-notices"), subject.scope("quick-arrivals")))]
    alone, shared = (said(check_all(asked, jobs=jobs, memory_mb=8)) for jobs in (1, 2))
    assert alone == shared
    assert not said(check_all(asked, jobs=2, memory_mb=4)) == alone, "its share would have been enough"


def test_no_time_left_is_said_of_each_scope_without_reading_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fencepost.checker.explore.ground_model", None)
    report = check(counting(), scope=["low", "high"], budget_s=0.0)
    assert {f.verdict for f in report.findings} == {Verdict.UNDETERMINED}
    assert "none left to begin" in report.of("A").why


def test_a_budget_is_for_all_that_run() -> None:
    subject = counting()
    scopes = (subject.scope("low"), subject.scope("high"))
    report = check_all([Asked(subject, scopes, ("A",))], jobs=2, budget_s=0.0)[0]

    assert report.of("A").verdict is Verdict.UNDETERMINED
    assert "did not finish (time)" in report.of("A").why


@pytest.mark.parametrize(("jobs", "scopes", "each"), [(1, 2, 100), (2, 2, 50), (2, 1, 100), (4, 3, 33)])
def test_searches_that_run_together_share_the_memory(
    jobs: int, scopes: int, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []

    def noted(*args: object, memory_mb: int, **more: object) -> Report:
        given.append(memory_mb)
        return check_one(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(together, "check_one", noted)
    subject = counting()
    names = ("low", "high", "other")[:scopes]
    check_all([Asked(subject, tuple(subject.scope(n) for n in names), ("A",))], jobs=jobs, memory_mb=100)

    assert given == [each] * scopes


def test_terms_made_by_several_threads_are_the_same_terms() -> None:
    def make(_: int) -> list[t.Term]:
        start.wait()
        cells = [t.variable(f"shared {n}", t.INTEGER) for n in range(300)]
        sums = [t.add(a, t.integer(n)) for n, a in enumerate(cells)]
        return [t.eq(a, b) for a in sums for b in cells[:20]]

    start = threading.Barrier(4)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(make, range(4)))
    finally:
        sys.setswitchinterval(interval)
    for each in made[1:]:
        assert all(a is b for a, b in zip(each, made[0], strict=True))
    assert len({term.number for term in made[0]}) == len(set(made[0]))
