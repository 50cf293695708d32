"""Teeth: what is taken away from the model of clocks is noticed, or a reason is written for it."""

from __future__ import annotations

import pytest

from fencepost.checker.subject import Subject
from fencepost.checker.sweeps import SweepReport, sweep
from fencepost.model.clocks import clocks
from fencepost.model.clocks.scopes import SWEEP
from fencepost.model.mutate import KINDS, REFUSAL, mutants
from fencepost.properties import CLOCKS
from fencepost.properties.unneeded_clocks import UNNEEDED

SUBJECT = Subject(clocks, CLOCKS)


def _swept(*kinds: str) -> SweepReport:
    return sweep(SUBJECT, scope=SWEEP, kinds=kinds, jobs=2)


def test_every_kind_of_change_is_tried() -> None:
    assert {m.kind for m in mutants(clocks)} == set(KINDS)


@pytest.mark.slow
def test_every_refusal_is_needed_or_carries_a_reason() -> None:
    report = _swept(REFUSAL)
    assert report.notes == ()
    assert [r.name for r in report.unaccounted] == []


@pytest.mark.slow
def test_every_change_is_noticed_or_explained_and_every_reason_is_used() -> None:
    report = _swept(*KINDS)
    assert [r.name for r in report.unaccounted] == []
    silent = [r for r in report.rows if r.outcome == "nothing broke"]
    unused = [key for key in UNNEEDED if not any(key[0] == r.action and key[1] in r.name for r in silent)]
    assert unused == []
    assert report.unbroken == ()
