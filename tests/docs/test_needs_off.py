"""Each fault that a claim needs off does break it, by the run that the page shows; no other fault does."""

from __future__ import annotations

import pytest

from fencepost.model.effects.scopes import WHAT_IF
from fencepost.properties import EFFECTS
from fencepost.properties.needs_off import WHY

from . import needs_off
from .pages import PROJECT, REWRITE, settle

PAGE = PROJECT / "docs" / "needs-off.md"
QUICK = "two_transactions"
"""The fault that is looked at in every run of the tests; the others take half a minute together."""


def test_every_fault_that_a_claim_needs_off_has_its_reason() -> None:
    assert set(WHY) == {(c.name, s) for c in EFFECTS.promises() for s in c.needs_off}


def test_every_fault_that_a_claim_needs_off_is_tried() -> None:
    assert set(needs_off.FAULTS) <= set(WHAT_IF)


@pytest.mark.parametrize(
    "switch", [pytest.param(s, marks=() if s == QUICK else pytest.mark.slow) for s in WHAT_IF]
)
def test_a_fault_breaks_exactly_the_claims_that_need_it_off(switch: str) -> None:
    expected = {c.name for c in EFFECTS.promises() if switch in c.needs_off}
    assert set(needs_off.broken_by(switch)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("switch", WHAT_IF)
def test_a_claim_that_a_fault_does_not_break_was_exercised_with_it(switch: str) -> None:
    idle = [c.name for c in EFFECTS.promises() if not set(c.witnesses) <= needs_off.exercised(switch)]
    assert idle == list(needs_off.EXCEPTED.get(switch, ()))


def test_the_page_shows_the_runs_of_one_fault() -> None:
    if not REWRITE:
        assert needs_off.section(QUICK) in PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_of_all_runs_is_up_to_date() -> None:
    settle(PAGE, PAGE.read_text(encoding="utf-8") if PAGE.exists() else "", needs_off.page())
