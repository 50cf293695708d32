"""Each fault that a claim needs off does break it, by the run that a page shows; no other fault does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.model import Scope
from fencepost.model.run import Runner, Transition
from fencepost.properties import EFFECTS

from . import needs_off
from .needs_off import PARTS
from .pages import PROJECT, REWRITE, prose, settle

INDEX = PROJECT / "docs" / "needs-off.md"
PAGES = PROJECT / "docs" / "needs-off"
QUICK = ("triggers", "two_transactions")
"""The fault that is looked at in every run of the tests; the others take a minute together."""

TRIED = [(p.name, switch) for p in PARTS.values() for switch in p.faults]
EFFECTS_TRIED = list(PARTS["effects"].what_if)


@pytest.mark.parametrize("name", PARTS)
def test_every_fault_that_a_claim_needs_off_has_its_reason(name: str) -> None:
    part = PARTS[name]
    assert set(part.why) == {(c.name, s) for c in part.claims for s in c.needs_off}


@pytest.mark.parametrize("name", PARTS)
def test_every_fault_that_a_claim_needs_off_is_tried(name: str) -> None:
    assert set(PARTS[name].faults) <= set(PARTS[name].what_if)


@pytest.mark.parametrize(
    "switch", [pytest.param(s, marks=() if s == QUICK[1] else pytest.mark.slow) for s in EFFECTS_TRIED]
)
def test_a_fault_breaks_exactly_the_claims_that_need_it_off(switch: str) -> None:
    # For the other protocols, `tests/checker` asks this.
    expected = {c.name for c in EFFECTS.promises() if switch in c.needs_off}
    assert set(needs_off.broken_by("effects", switch)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("switch", EFFECTS_TRIED)
def test_a_claim_that_a_fault_does_not_break_was_exercised_with_it(switch: str) -> None:
    reached = needs_off.exercised("effects", switch)
    idle = [c.name for c in EFFECTS.promises() if not set(c.witnesses) <= reached]
    assert idle == list(PARTS["effects"].excepted.get(switch, ()))


def test_the_page_shows_the_runs_of_one_fault() -> None:
    if not REWRITE:
        assert needs_off.section(*QUICK) in (PAGES / f"{QUICK[0]}.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", *PARTS])
def test_the_pages_of_all_runs_are_up_to_date(name: str) -> None:
    page = PAGES / f"{name}.md" if name else INDEX
    settle(page, _text(page), needs_off.page(name) if name else needs_off.index())


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8") if page.exists() else ""


# What a page shows, looked at in the plain reading, without a search.

RUN = re.compile(r"^### (\w+) with (\w+)\n(?s:.*?)```\n(?P<table>(?s:.*?))```", re.MULTILINE)
STEP = re.compile(r"^ *\d+  (\S.*?)(?:  |$)", re.MULTILINE)


def runs_of(name: str) -> Iterator[tuple[str, str, list[str]]]:
    """The runs of a page: claim, fault, and the labels of its steps."""
    for found in RUN.finditer(_text(PAGES / f"{name}.md")):
        labels = STEP.findall(found["table"].split("\n\n", maxsplit=1)[0])
        assert labels[0] == "start"
        yield found[1], found[2], labels[1:]


def breaks(name: str, claim: str, scope: Scope, labels: list[str]) -> bool:
    """Whether these steps are a run of the model in a scope, whose last step or state breaks the claim."""
    part = PARTS[name]
    runner, predicate = Runner(part.built_in.protocol, scope), part.built_in.claims.claims[claim]
    state, step = runner.initial(), None
    for label in labels:
        before = state
        step = _step(runner, before, label)
        if step is None:
            return False
        state = step.state
    assert step is not None
    if predicate.over_steps:
        return not runner.holds_step(predicate.predicate, before, step)
    return not runner.holds(predicate.predicate, state)


def _step(runner: Runner, state: object, label: str) -> Transition | None:
    return next((t for t in runner.transitions(state) if t.label == label), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PARTS)
def test_each_run_on_a_page_is_one_of_the_model_and_breaks_its_claim(name: str) -> None:
    shown = list(runs_of(name))
    assert [(claim, switch) for claim, switch, _ in shown] == [
        (c.name, s) for s in PARTS[name].faults for c in PARTS[name].claims if s in c.needs_off
    ]
    for claim, switch, labels in shown:
        scopes = PARTS[name].what_if[switch]
        assert any(breaks(name, claim, scope, labels) for scope in scopes), f"{claim} with {switch}"


def test_the_index_says_how_long_each_run_is() -> None:
    index = prose(_text(INDEX))
    for name in PARTS:
        for claim, switch, labels in runs_of(name):
            assert f"[{len(labels)}](needs-off/{name}.md#{claim}-with-{switch})" in index
