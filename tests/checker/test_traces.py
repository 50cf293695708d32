"""Traces are concrete, portable, and never replayed in silence on a changed model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.checker.support import lock, lock_claims

from fencepost.checker.explore import check, replayed
from fencepost.checker.subject import Subject
from fencepost.checker.traces import ReplayError, Trace, read, replay, table


@pytest.fixture(scope="module")
def broken() -> Subject:
    """The lock that can be taken while it is held."""
    return Subject(lock(broken=True), lock_claims(), variant="broken", unbroken=lock())


@pytest.fixture(scope="module")
def trace(broken: Subject) -> Trace:
    """A shortest run that breaks ONE."""
    found = check(broken, scope="two", claims=["ONE"]).of("ONE").trace
    assert found is not None
    return found


def test_a_saved_trace_is_read_back_as_it_was(trace: Trace, tmp_path: Path) -> None:
    path = trace.save(tmp_path)
    assert read(trace.token, tmp_path).as_json() == trace.as_json()
    assert read(str(path)).as_json() == trace.as_json()


def test_the_same_run_has_the_same_token(broken: Subject, trace: Trace) -> None:
    again = check(broken, scope="two", claims=["ONE"]).of("ONE").trace
    assert again is not None
    assert again.token == trace.token


def test_a_replay_still_breaks_the_claim_on_the_broken_model(broken: Subject, trace: Trace) -> None:
    assert replayed(trace, broken)


def test_a_replay_on_a_mended_model_is_reported_with_its_step(trace: Trace) -> None:
    with pytest.raises(
        ReplayError, match=r"step 2, take\(w2\): the model says disabled here; the model has changed"
    ):
        list(replay(trace, lock()))


def test_a_damaged_file_is_no_trace(trace: Trace, tmp_path: Path) -> None:
    path = trace.save(tmp_path)
    path.write_text(path.read_text()[:-40])
    with pytest.raises(ReplayError, match="damaged"):
        read(str(path))
    path.write_text(json.dumps({"format": 1}))
    with pytest.raises(ReplayError, match="no trace"):
        read(str(path))
    path.write_text(json.dumps({"format": 99}))
    with pytest.raises(ReplayError, match="another version"):
        read(str(path))


def test_an_unknown_token_is_answered_with_those_that_exist(trace: Trace, tmp_path: Path) -> None:
    trace.save(tmp_path)
    with pytest.raises(ReplayError, match=trace.token):
        read("nonesuch", tmp_path)


def test_a_changed_value_in_a_saved_state_is_reported(broken: Subject, trace: Trace, tmp_path: Path) -> None:
    data = trace.as_json()
    data["steps"][0]["changes"]["ticket"] = 2
    path = tmp_path / "t.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ReplayError, match="ticket differ"):
        list(replay(read(str(path)), broken.protocol))


def test_the_table_has_a_column_per_changed_cell_and_marks_changes(broken: Subject, trace: Trace) -> None:
    assert table(trace, broken.protocol) == [
        "step         inside[w1]  inside[w2]  held_by  ticket",
        "0  start             no          no        -       0",
        "1  take(w1)         yes*         no       w1*      1*",
        "2  take(w2)         yes         yes*      w2*      2*",
    ]


def test_a_narrow_table_is_split_and_loses_nothing(broken: Subject, trace: Trace) -> None:
    lines = table(trace, broken.protocol, width=34)
    assert max(len(x) for x in lines) <= 34
    text = "\n".join(lines)
    assert all(name in text for name in ("held_by", "ticket", "inside[w1]", "inside[w2]"))


def test_the_explanation_names_the_false_part_and_what_the_unbroken_model_says(trace: Trace) -> None:
    text = " ".join(trace.explanation)
    assert "inside[w1]" in text
    assert "in the unbroken model take(w2) is not possible here" in text
