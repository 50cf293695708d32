"""Diagrams show who talked to whom and when; both forms tell the same run, whatever its names are."""

from __future__ import annotations

import re

import pytest
from tests.checker.support import lock

from fencepost.checker.diagrams import escaped, mermaid, plain
from fencepost.checker.sequence import Exchange, Fate, diagram
from fencepost.checker.traces import Trace, TraceStep
from fencepost.model import (
    BOOLEAN,
    Element,
    Enumeration,
    Family,
    Member,
    Optional,
    Protocol,
    Record,
    Scope,
    Sort,
    State,
    absent,
    when,
)
from fencepost.model.core import core
from fencepost.model.effects import effects
from fencepost.model.run import Runner


def trace_of(protocol: Protocol, scope: Scope, *labels: str) -> Trace:
    """The run of these steps."""
    runner = Runner(protocol, scope)
    state = runner.initial()
    initial, steps = runner.codes(state), []
    for label in labels:
        made = next(t for t in runner.transitions(state) if t.label == label)
        state = made.state
        steps.append(TraceStep(made.action.name, made.codes, made.label, made.outcome, runner.codes(state)))
    return Trace(protocol.name, "", scope, "", initial, tuple(steps))


SMALL = core.scopes["small"]
KEYED = effects.scopes["keyed"]

LATE = trace_of(
    core, SMALL, "acquire(w1)", "send_commit(w1, c1)", "expire", "acquire(w2)", "decide_commit(c1)",
    "receive_answer(c1)",
)  # fmt: skip
"""A commit that arrives when its sender has lost the lease."""

COPIES = trace_of(
    effects, KEYED, "acquire(w1)", "commit(w1, running, f1)", "send_effect(w1, c1, 1, f1)",
    "decide_call(c1, again, whole)", "lose_reply(c1)", "query(w1)", "decide_call(c1, whole)", "crash(w1)",
)  # fmt: skip
"""A call that arrives twice; its first answer is lost."""

LOST = trace_of(
    core, SMALL, "acquire(w1, lost)", "reread(w1)", "send_commit(w1, c1)", "lose_commit(c1)", "ask(c1)"
)
"""An answer that is lost, and a commit that is."""

RUNS = [(LATE, core), (COPIES, effects), (LOST, core)]


def rows(trace: Trace, protocol: Protocol) -> list[str]:
    """The lines of the plain form that stand for steps."""
    return [line for line in plain(trace, protocol)[1:] if re.match(r" *\d+  ", line)]


# -- what is found in the protocol


@pytest.mark.parametrize(("protocol", "keepers"), [(core, ("store",)), (effects, ("store", "downstream"))])
def test_lanes_are_workers_and_those_who_keep_something(protocol: Protocol, keepers: tuple[str, ...]) -> None:
    made = diagram(trace_of(protocol, protocol.scopes["small"], "acquire(w1)"), protocol)
    assert made.callers == ("w1", "w2")
    assert made.keepers == keepers


def test_a_protocol_without_messages_has_exchanges_alone() -> None:
    p = lock()
    made = diagram(trace_of(p, p.scopes["two"], "take(w1)", "leave(w1)"), p)
    assert made.passages == ()
    assert made.carrier == ""
    assert [m.exchange for m in made.moments] == [Exchange("w1", "store", reads=False, lost=False)] * 2


def test_a_message_may_arrive_after_its_sender_lost_the_lease() -> None:
    made = diagram(LATE, core)
    commit, answer = made.passages
    assert (commit.text, commit.source, commit.target) == ("c1", "w1", "store")
    assert (commit.departs, commit.ends, commit.fate) == (2, 5, Fate.ARRIVES)
    assert (answer.text, answer.source, answer.target) == ("c1: stale-lease-version", "store", "w1")
    assert (answer.departs, answer.ends, answer.is_answer) == (5, 6, True)
    over = next(m for m in made.moments if "live yes→no" in m.changes.get("store", ()))
    assert commit.departs < over.number < (commit.ends or 0)


def test_a_copy_goes_on_after_the_first_arrives_and_a_lost_answer_ends_where_it_was() -> None:
    call, first, second = diagram(COPIES, effects).passages
    assert (call.departs, call.stops, call.ends) == (3, (4,), 7)
    assert (first.departs, first.ends, first.fate) == (4, 5, Fate.LOST)
    assert (second.departs, second.ends, second.fate) == (7, None, Fate.UNDER_WAY)


def test_who_only_looks_is_told_from_who_writes() -> None:
    moments = diagram(COPIES, effects).moments
    assert moments[1].exchange == Exchange("w1", "store", reads=False, lost=False)
    assert moments[5].exchange == Exchange("w1", "downstream", reads=True, lost=False)
    assert diagram(LOST, core).moments[1].exchange == Exchange("w1", "store", reads=True, lost=False)


def test_the_world_takes_no_step_of_a_lane() -> None:
    moments = diagram(COPIES, effects).moments
    assert moments[7].by is None
    assert "up[w1] yes→no" in moments[7].changes["w1"]


def test_what_happens_to_a_lane_is_shown_there_also_where_nothing_is_noted() -> None:
    crash = trace_of(core, SMALL, "crash(w2)")
    assert rows(trace_of(core, SMALL, "crash(w2)"), core) == [
        "1  crash(w2)    │      !       │      up[w2] yes→no"
    ]
    assert plain(crash, core, about=["live"])[1] == "1  crash(w2)    │      !       │"
    assert "    Note over k1: 1 crash(w2)\n" in mermaid(crash, core, about=["live"])


def test_only_what_is_asked_for_is_noted() -> None:
    made = diagram(LATE, core, about=["lease_version"])
    notes = [note for m in made.moments for of_lane in m.changes.values() for note in of_lane]
    assert notes == ["lease_version 0→1", "lease_version 1→2"]


def test_history_and_what_is_on_its_way_is_not_noted() -> None:
    text = "\n".join(plain(LATE, core))
    assert "holder" not in text
    assert "in_flight" not in text


# -- what is drawn


def test_the_plain_form_draws_a_late_message_from_its_step_to_its_arrival() -> None:
    assert plain(LATE, core, about=["live"]) == [
        "step                                                w1     w2               store",
        "1  acquire(w1)                                       o<─────┼────────────────>o      live no→yes",
        "2  send_commit(w1, c1)                               o──────┼──────┐          │",
        "3  expire                                            │      │      ┊          !      live yes→no",
        "4  acquire(w2)                                       │      o<─────┼─────────>o      live no→yes",
        "5  decide_commit(c1) refused: stale-lease-version    │      │      └──┬──────>o",
        "6  receive_answer(c1)                                o<─────┼─────────┘       │",
    ]


def test_mermaid_draws_the_same_message_through_the_network() -> None:
    text = mermaid(LATE, core, about=["live"])
    assert text.startswith("sequenceDiagram\n    participant k0 as w1\n    participant k1 as w2\n")
    sent = text.index("    k0-)way: 2 send_commit(w1, c1)\n    activate way\n")
    over = text.index("    Note over k2: 3 expire<br/>live yes→no\n")
    arrived = text.index(
        "    way-)k2: 5 decide_commit(c1) refused: stale-lease-version · c1 of step 2\n    deactivate way\n"
        "    k2--)way: c1: stale-lease-version\n    activate way\n"
    )
    assert sent < over < arrived


def test_what_is_lost_is_marked_in_both_forms() -> None:
    text = mermaid(LOST, core)
    assert "    k2--xk0: ok · the answer is lost\n" in text
    assert "    way-xk2: 4 lose_commit(c1) · c1 of step 3 is lost\n" in text
    drawn = rows(LOST, core)
    assert "ox─" in drawn[0]
    assert "x" in drawn[3].removeprefix("4  lose_commit(c1)")
    assert "    way--xk0: 5 lose_reply(c1) · c1: ok of step 4 is lost\n" in mermaid(COPIES, effects)


@pytest.mark.parametrize(("trace", "protocol"), RUNS)
def test_both_forms_have_every_step_once_and_in_order(trace: Trace, protocol: Protocol) -> None:
    expected = [f"{n} {s.label}" for n, s in enumerate(trace.steps, 1)]
    lines = [line.strip() for line in rows(trace, protocol)]
    assert [line.replace("  ", " ", 1)[: len(x)] for line, x in zip(lines, expected, strict=True)] == expected
    text = mermaid(trace, protocol)
    places = [text.index(f": {step}") for step in expected]
    assert places == sorted(places)
    assert [text.count(f": {step}") for step in expected] == [1] * len(expected)


@pytest.mark.parametrize(("trace", "protocol"), RUNS)
def test_a_bar_in_mermaid_ends_once_for_each_that_begins(trace: Trace, protocol: Protocol) -> None:
    open_bars = 0
    for line in mermaid(trace, protocol).splitlines():
        open_bars += {"    activate way": 1, "    deactivate way": -1}.get(line, 0)
        assert open_bars >= 0
    assert open_bars == 0


@pytest.mark.parametrize(("trace", "protocol"), RUNS)
def test_a_narrow_form_is_wrapped_and_loses_no_note(trace: Trace, protocol: Protocol) -> None:
    narrow = " ".join(line for line in plain(trace, protocol, width=40))
    for moment in diagram(trace, protocol).moments:
        for of_lane in moment.changes.values():
            assert all(note in narrow for note in of_lane)


def test_a_run_of_no_steps_has_lanes_alone() -> None:
    empty = trace_of(core, SMALL)
    assert [line.split() for line in plain(empty, core)] == [["step", "w1", "w2", "store"]]
    assert mermaid(empty, core).count("\n") == 4


# -- odd names

ODD = ";#%%<b>\n\"'|{end}"
"""A name with all that could mean something to Mermaid, and a line end."""


def odd() -> Protocol:
    """A sender, a message and an answer with odd names."""
    senders, letters = Sort("sender", prefix=ODD), Sort("letter", prefix="l:")
    reply = Enumeration("Reply", "none", "yes; no\nmaybe")
    said = Record("Said", by=senders)
    p = Protocol("odd")
    p.variable(
        "said", Family(letters, of=Optional(said)), absent, home="the #1; post", meaning="what it says"
    )
    p.variable("sent", Family(letters, of=BOOLEAN), False, home="the #1; post", meaning="on its way")
    p.variable("back", Family(letters, of=reply), reply.none, home="the #1; post", meaning="the answer")
    p.variable("got", BOOLEAN, False, home="end", meaning="whether one came")

    @p.action("sender", x=senders, m=p.fresh(letters, unless="said"))
    def write(s: State, x: Element, m: Element) -> None:
        """A sender writes."""
        s.said[m] = said(by=x)
        s.sent[m] = True

    @p.action("the #1; post", m=letters, r=reply)
    def bring(s: State, m: Element, r: Member) -> None:
        """A letter is brought, and answered."""
        when(s.sent[m])

        s.sent[m] = False
        s.got = True
        s.back[m] = r

    p.scope("one", sizes={"sender": 1, "letter": 1}, bounds={}, why="one of each")
    return p


def test_odd_names_are_escaped_in_mermaid_and_stay_on_one_line_in_text() -> None:
    p = odd()
    trace = trace_of(p, p.scopes["one"], f"write({ODD}1, l:1)", "bring(l:1, yes; no\nmaybe)")
    text = mermaid(trace, p)
    assert "\n" not in escaped(ODD)
    for line in text.splitlines()[1:]:
        assert re.fullmatch(
            r"    (participant \w+ as |Note over \w+: |\w+-?-[)x] ?\w+: |(de)?activate way)"
            r"([\w .,:()\[\]/→·-]|#\d+;|<br/>)*",
            line,
        ), line
    assert len(plain(trace, p)) == 1 + len(trace.steps)
    assert [x.text for x in diagram(trace, p).passages] == ["l:1", "l:1: yes; no\nmaybe"]


@pytest.mark.parametrize("sign", list(";#%<>\n\"'|{}\\`&"))
def test_a_sign_that_could_mean_something_is_written_as_a_number(sign: str) -> None:
    assert escaped(f"a{sign}b") == f"a#{ord(sign)};b"
