"""Teeth: every refusal that is taken away from the model of a workflow is noticed, or a reason is written."""

from __future__ import annotations

import pytest

from fencepost.checker.subject import Subject
from fencepost.checker.sweeps import sweep
from fencepost.model.mutate import KINDS, REFUSAL, mutants
from fencepost.model.workflow import workflow
from fencepost.model.workflow.scopes import SWEEP
from fencepost.properties import WORKFLOW
from fencepost.properties.unneeded_workflow import UNNEEDED

SUBJECT = Subject(workflow, WORKFLOW)


def test_every_kind_of_change_is_tried() -> None:
    assert {m.kind for m in mutants(workflow)} == set(KINDS)


def test_every_reason_is_about_lines_that_exist() -> None:
    names = [(m.action, m.name) for m in mutants(workflow)]
    unused = [(a, text) for a, text in UNNEEDED if not any(a == b and text in name for b, name in names)]
    assert unused == []


@pytest.mark.slow
def test_every_refusal_is_needed_or_carries_a_reason_and_every_reason_is_used() -> None:
    report = sweep(SUBJECT, scope=SWEEP, kinds=(REFUSAL,), jobs=2)
    assert report.notes == ()
    assert [r.name for r in report.unaccounted] == []
    silent = [r for r in report.rows if r.outcome == "nothing broke"]
    about = [key for key in UNNEEDED if key[1].startswith('"')]
    assert [k for k in about if not any(k[0] == r.action and k[1] in r.name for r in silent)] == []
    assert report.unbroken == ()
