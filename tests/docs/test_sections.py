"""The pages of the protocol's sections show what the models say, and leave nothing of them out."""

from __future__ import annotations

import random

import pytest

from fencepost.checker.proofs import prove
from fencepost.checker.subject import BUILT_IN, Subject
from fencepost.cli.catalogue import refusal_codes
from fencepost.model.run import Runner
from fencepost.model.workflow import workflow
from fencepost.properties import REGISTRY

from .pages import PROJECT, region, settle, with_region
from .sections import SECTIONS, Section, known
from .statuses import Drawn

PAGES = PROJECT / "docs" / "protocol"
INDEX = PROJECT / "docs" / "the-protocol.md"
ELSEWHERE = {"§17"}
"""Sections whose claims are on the page of all claims alone."""


@pytest.mark.parametrize("section", SECTIONS, ids=lambda s: s.file)
def test_a_page_shows_what_the_models_say(section: Section) -> None:
    page = PAGES / f"{section.file}.md"
    text = now = page.read_text(encoding="utf-8")
    for name, made in section.regions():
        region(text, name)
        now = with_region(now, name, made())
    settle(page, text, now)


def test_every_action_of_a_model_is_on_a_page() -> None:
    shown = {(name, word) for s in SECTIONS for name, words in s.actions.items() for word in words.split()}
    assert shown == {(b.name, action) for b in BUILT_IN.values() for action in b.protocol.actions}


def test_every_claim_is_on_one_page() -> None:
    shown = [(b.name, c.name) for s in SECTIONS for b, c in s.claims()]
    there = [(b, c) for b in BUILT_IN.values() for c in b.claims.promises() if c.section not in ELSEWHERE]
    assert sorted(shown) == sorted((b.name, c.name) for b, c in there)


def test_the_index_has_every_page() -> None:
    index = INDEX.read_text(encoding="utf-8")
    assert [s.file for s in SECTIONS if f"](protocol/{s.file}.md)" not in index] == []
    assert {p.stem for p in PAGES.glob("*.md")} == {s.file for s in SECTIONS}


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT_IN)
def test_the_verdicts_on_the_pages_are_those_of_the_proofs(name: str) -> None:
    b = BUILT_IN[name]
    report = prove(Subject(b.protocol, b.claims), counterexamples=False, budget_s=300.0)
    for finding in report.findings:
        assert known(finding.claim).split()[0] == finding.verdict.value


@pytest.mark.parametrize("name", BUILT_IN)
def test_refusals_are_listed_in_the_order_of_the_registry(name: str) -> None:
    order = [r.code for r in REGISTRY]
    for action in BUILT_IN[name].protocol.actions.values():
        codes = refusal_codes(action)
        assert codes == sorted(codes, key=order.index), action.name


# The diagrams of states.

LIFE = {
    "pending": {"running", "waiting-approval", "cancelled"},
    "waiting-approval": {"running", "cancelled", "failed"},
    "running": {
        "succeeded", "failed", "cancelled", "manual-intervention", "retry-scheduled", "waiting-approval",
    },
    "retry-scheduled": {"running", "succeeded", "failed", "cancelled", "manual-intervention"},
    "succeeded": {"compensating"},
    "compensating": {"compensated", "manual-intervention"},
    "manual-intervention": {"running", "succeeded", "failed", "compensated"},
}  # fmt: skip
"""The life of a step (§5): by status, those that it may go to. Ends are left out."""


def test_the_diagram_of_statuses_is_the_life_of_a_step() -> None:
    found: dict[str, set[str]] = {}
    for source, target in Drawn(workflow, "status").labels():
        found.setdefault(source, set()).add(target)
    assert found == LIFE


def test_what_a_choice_in_an_action_decides_is_told_apart() -> None:
    labels = Drawn(workflow, "status").labels()
    assert labels["manual-intervention", "failed"] == ["attest failed"]
    assert labels["manual-intervention", "running"] == ["run_by_hand"]
    assert "attest" in Drawn(workflow, "stands").labels()["inbox", "consumed"]


@pytest.mark.parametrize(
    ("model", "variables", "scope"),
    [
        ("workflow", ("status", "cause", "stands"), "quick-step"),
        ("recovery", ("phase",), "quick-definitions"),
        ("replay", ("standing",), "alone"),
        ("core", ("live",), "quick"),
    ],
)
def test_every_step_that_a_run_takes_is_an_arrow(model: str, variables: tuple[str, ...], scope: str) -> None:
    protocol = BUILT_IN[model].protocol
    drawn = {v: Drawn(protocol, v) for v in variables}
    arrows = {v: {(a.source, a.target, a.action) for a in d.arrows()} for v, d in drawn.items()}
    runner = Runner(protocol, protocol.scopes[scope])
    chance = random.Random(1)
    moved: set[str] = set()
    for _ in range(WALKS):
        state = runner.initial()
        while steps := list(runner.transitions(state)):
            before = runner.codes(state)
            step = chance.choice(steps)
            state, after = step.state, runner.codes(step.state)
            for cell in (c for c in before if before[c] != after[c] and c.partition("[")[0] in drawn):
                variable = cell.partition("[")[0]
                moved.add(variable)
                way = (*(drawn[variable].shown(codes[cell]) for codes in (before, after)), step.action.name)
                assert way in arrows[variable], step.label
            if chance.random() < 1 / STEPS:
                break
    assert moved == set(variables)


WALKS, STEPS = 20, 20
"""Random runs, and how long they are on average."""
