"""Replay: what is claimed of it is explored, exercised somewhere, and shown able to fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.checker.explore import check
from fencepost.checker.native import explore
from fencepost.checker.plain import search
from fencepost.checker.subject import BUILT_IN, Subject
from fencepost.checker.verdicts import Verdict
from fencepost.model import Scope, State, every
from fencepost.model.core.state import workers
from fencepost.model.ground import ground_model
from fencepost.model.replay import replay
from fencepost.model.replay.state import Standing
from fencepost.model.replay.variants import VARIANTS
from fencepost.properties import REPLAY, Claims

PINNED = json.loads((Path(__file__).parent / "pinned_replay.json").read_text())
"""By scope: distinct states, transitions, cuts, and the claims whose premise is out of reach there.

A change of a number needs its reason in the commit.
"""


def test_every_scope_is_pinned() -> None:
    assert set(PINNED) == set(replay.scopes)


@pytest.mark.parametrize("scope", list(replay.scopes))
def test_no_claim_is_refuted_in_a_scope_and_those_that_it_exercises_hold(scope: str) -> None:
    report = check(Subject(replay, REPLAY), scope=scope, traces=False)
    counts = {k: report.figures[k] for k in ("states", "transitions", "cut")}
    idle = [f.claim.name for f in report.findings if f.verdict is Verdict.UNDETERMINED]
    assert report.notes == ()
    assert [f.claim.name for f in report.refuted] == []
    assert {**counts, "not_exercised": idle} == PINNED[scope]
    assert all(f.why.startswith("never exercised") for f in report.findings if f.claim.name in idle)


@pytest.mark.parametrize("claim", [c.name for c in REPLAY.promises()])
def test_every_claim_is_exercised_in_a_scope_that_is_looked_at_by_default(claim: str) -> None:
    looked_at = BUILT_IN["replay"].scopes
    assert any(claim not in PINNED[scope]["not_exercised"] for scope in looked_at)


def test_every_claim_is_broken_by_a_variant() -> None:
    broken = {claim for v in VARIANTS.values() for claim in v.breaks}
    assert [c.name for c in REPLAY.promises() if c.name not in broken] == []


BOLD = Claims("bold", about="replay")


@BOLD.always(witnesses=("a_worker_begins",))
def no_replay_ever_stops(s: State) -> object:
    """No replay stops, whatever its code does."""
    return every(workers, lambda w: s.standing[w] != Standing.stopped)


@BOLD.sometimes()
def a_worker_begins(s: State) -> object:
    """A worker has begun."""
    return not every(workers, lambda w: s.standing[w] != Standing.running)


@pytest.mark.parametrize(
    ("switches", "verdict"),
    [
        ((), Verdict.BOUNDED),
        (("crash",), Verdict.BOUNDED),
        (("direct_call",), Verdict.REFUTED),
        (("definition_changed",), Verdict.REFUTED),
    ],
)
def test_only_direct_calls_and_changed_code_make_a_replay_stop(
    switches: tuple[str, ...], verdict: Verdict
) -> None:
    bounds = {"position": 2, "value": 1, "definition": 1}
    scope = replay.scopes["quick"].but(name="one", bounds=bounds, switches=frozenset(switches))
    report = check(Subject(replay, BOLD), scope=scope, traces=False)
    assert [f.verdict for f in report.findings] == [verdict]


def test_a_difference_is_shown_with_both_commands() -> None:
    report = check(Subject(replay, BOLD), scope="direct")
    trace = report.of("no_replay_ever_stops").trace
    assert trace is not None
    assert [step.label.split("(")[0] for step in trace.steps][-2:] == ["make_command", "serve"]
    last = trace.steps[-1].state
    asked = {k: v for k, v in last.items() if k.startswith("asks[")}
    assert asked, "the command that differs stays, to be compared with the recorded one"


def _tiny(*switches: str) -> Scope:
    return replay.scopes["quick"].but(
        name="tiny",
        bounds={"position": 1, "value": 1, "definition": int("definition_changed" in switches)},
        switches=frozenset(switches),
    )


@pytest.mark.parametrize(
    "switches",
    [
        ("crash",),
        pytest.param(("direct_call",), marks=pytest.mark.slow),
        pytest.param(("definition_changed",), marks=pytest.mark.slow),
    ],
)
def test_the_plain_search_agrees_with_the_compiled_one(switches: tuple[str, ...]) -> None:
    scope = _tiny(*switches)
    plain = search(replay, scope)
    compiled = explore(ground_model(replay, scope))  # `check` would leave out history that no claim reads
    assert plain.complete
    assert compiled.complete
    counts = (compiled.states, compiled.transitions, sum(compiled.cuts.values()))
    assert (plain.states, plain.transitions, plain.cut) == counts
