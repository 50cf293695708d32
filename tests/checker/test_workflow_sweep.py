"""Teeth: what is taken away from the model of a workflow is noticed, or a reason is written for it."""

from __future__ import annotations

import pytest

from fencepost.checker.subject import Subject
from fencepost.checker.sweeps import SweepReport, sweep
from fencepost.model.mutate import ACTION, ANSWER, GUARD, KINDS, REFUSAL, mutants
from fencepost.model.workflow import workflow
from fencepost.model.workflow.scopes import SWEEP
from fencepost.properties import WORKFLOW
from fencepost.properties.unneeded_workflow import UNNEEDED

SUBJECT = Subject(workflow, WORKFLOW)
ALONE = Subject(workflow.variant("workflow-as-it-is"), WORKFLOW)
"""The same without its broken variants: the sweep of a protocol tries all of them too, and once will do."""


def _keys(action: str, name: str) -> list[tuple[str, str]]:
    """The reasons that are written for a change."""
    return [key for key in UNNEEDED if key[0] == action and key[1] in name]


def _unexplained(report: SweepReport) -> list[str]:
    return [r.name for r in report.unaccounted]


def _unused(report: SweepReport) -> list[tuple[str, str]]:
    """The reasons about changes of this report that all are noticed."""
    about = dict.fromkeys(key for r in report.rows for key in _keys(r.action, r.name))
    used = {key for r in report.rows if r.outcome == "nothing broke" for key in _keys(r.action, r.name)}
    return [key for key in about if key not in used]


def test_every_kind_of_change_is_tried() -> None:
    assert {m.kind for m in mutants(workflow)} == set(KINDS)


def test_every_reason_is_about_lines_that_exist_and_no_change_has_two() -> None:
    written = [_keys(m.action, m.name) for m in mutants(workflow)]
    assert set(UNNEEDED) == {key for keys in written for key in keys}
    assert [keys for keys in written if len(keys) > 1] == []


@pytest.mark.slow
def test_every_refusal_is_needed_or_carries_a_reason_and_every_promise_is_seen_to_break() -> None:
    report = sweep(SUBJECT, scope=SWEEP, kinds=(REFUSAL,), jobs=2)
    assert report.notes == ()
    assert _unexplained(report) == []
    assert _unused(report) == []
    assert report.unbroken == ()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [GUARD, ANSWER, ACTION])
def test_every_change_is_noticed_or_explained_and_every_reason_is_used(kind: str) -> None:
    report = sweep(ALONE, scope=SWEEP, kinds=(kind,), jobs=2, reasons=UNNEEDED)
    assert _unexplained(report) == []
    assert _unused(report) == []
