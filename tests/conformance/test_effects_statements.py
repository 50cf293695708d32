"""Effects statement by statement: what no single call shows, such as an effect without its record."""

from pathlib import Path

import pytest

from fencepost.checker.verdicts import EXIT_REFUTED, Verdict
from fencepost.conformance import Ability
from fencepost.conformance.statements import verify_statements
from fencepost.conformance.subjects import EFFECTS_SUBJECT
from fencepost.conformance.tapes import replay_tape, tape_from_json
from fencepost.reference import BROKEN_DOWNSTREAMS
from fencepost.reference.adapter import make_sqlite

from .support import refuted


@pytest.mark.slow
def test_an_effect_and_its_record_in_two_transactions_let_an_intent_take_effect_twice() -> None:
    statements = BROKEN_DOWNSTREAMS["effect-and-record-in-two-transactions"]
    adapter = make_sqlite(downstream=[Ability.KEYED], downstream_statements=statements)
    report = verify_statements(adapter, subject=EFFECTS_SUBJECT, claims=["S8", "lock-step"])
    assert set(refuted(report)) == {"one_effect_per_intent", "every_step_is_the_models"}
    assert report.exit_code == EXIT_REFUTED
    shown = [row for row in report.of("S8").details["statements"] if row[4]]
    assert [row[1] for row in shown[1:3]] == ["decide_call(c1, again, whole)"] * 2
    assert "landings[c1]" in shown[2][4]
    assert any("lets an intent take effect at most once" in line for line in report.lines())


@pytest.mark.slow
def test_a_tape_of_effects_is_run_again_with_the_model_of_effects(tmp_path: Path) -> None:
    statements = BROKEN_DOWNSTREAMS["effect-and-record-in-two-transactions"]
    broken = make_sqlite(downstream=[Ability.KEYED], downstream_statements=statements)
    report = verify_statements(broken, subject=EFFECTS_SUBJECT, claims=["lock-step"])
    path = tape_from_json(report.of("lock-step").details["tape"]).save(tmp_path)
    assert replay_tape(path, broken).fails
    again = replay_tape(path, make_sqlite(downstream=[Ability.KEYED]))
    assert not again.fails
    assert "possible as it was" in again.changed


@pytest.mark.slow
def test_all_interleavings_of_two_calls_on_an_opaque_downstream_are_the_models() -> None:
    adapter = make_sqlite(downstream=[])
    report = verify_statements(adapter, subject=EFFECTS_SUBJECT, faults=False)
    assert refuted(report) == {}
    assert report.of("lock-step").verdict is Verdict.HELD
    assert report.figures["strayed"] == report.figures["left_out"] == 0
    assert report.figures["pairs"] > 50
