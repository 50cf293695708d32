"""A run that broke something is a file, and is made again from it without Hypothesis."""

import json
from itertools import count
from pathlib import Path

import pytest

from fencepost.checker.traces import ReplayError
from fencepost.checker.verdicts import EXIT_UNDETERMINED, Verdict
from fencepost.conformance import Answer, Refused, read_run, replay_run, verify
from fencepost.conformance.runs import run_from_json
from fencepost.reference.adapter import make_sqlite
from fencepost.reference.broken_stores import BROKEN

from .support import OddAdapter, verified


def saved(tmp_path: Path, claim: str = "S1") -> Path:
    data = verified("state-version-only-guard").of(claim).details["run"]
    return run_from_json(data).save(tmp_path)


def test_a_saved_run_fails_again_on_the_store_that_made_it(tmp_path: Path) -> None:
    made = replay_run(
        saved(tmp_path), make_sqlite(BROKEN["state-version-only-guard"], name="state-version-only-guard")
    )
    assert made.fails
    assert (made.breaks, made.unsteady, made.changed) == ("stale_worker_never_overrides", "", "")
    assert "the model answers stale-lease-version, the implementation answered ok" in made.difference


def test_a_saved_run_no_longer_fails_on_the_mended_store(tmp_path: Path) -> None:
    made = replay_run(saved(tmp_path), make_sqlite(name="state-version-only-guard"))
    assert not made.fails
    assert (made.difference, made.unsteady, made.changed) == ("", "", "")
    assert len(made.steps) == 5


def test_that_a_run_was_made_with_another_adapter_is_said(tmp_path: Path) -> None:
    assert "state-version-only-guard" in replay_run(saved(tmp_path), make_sqlite()).changed


def test_that_the_model_has_changed_since_is_said(tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "fingerprint": "0" * 16}))
    adapter = make_sqlite(BROKEN["state-version-only-guard"], name="state-version-only-guard")
    assert replay_run(path, adapter).changed == "the model has changed since"


def test_a_run_is_the_same_after_saving_and_reading(tmp_path: Path) -> None:
    path = saved(tmp_path)
    run = read_run(path)
    assert run.token == path.stem
    assert run == run_from_json(verified("state-version-only-guard").of("S1").details["run"])


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"kind": "trace", "format": 1}', "not json"])
def test_a_file_that_is_no_run_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(ReplayError, match=r"run\.json"):
        read_run(path)


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="no such file"):
        read_run(tmp_path / "run.json")


def test_an_answer_that_differs_when_the_run_is_made_again_is_reported_as_such() -> None:
    calls = count(1)

    def sometimes_refused(operation: str, answer: Answer) -> Answer:
        return Refused("lease-live") if operation == "acquire" and next(calls) % 7 == 0 else answer

    report = verify(OddAdapter(passed=sometimes_refused, name="moody"), examples=0, claims=["lock-step"])
    compared = report.of("lock-step")
    assert compared.verdict is Verdict.UNDETERMINED
    assert compared.why.startswith("non-deterministic implementation: step ")
    assert "was answered" in compared.why
    assert report.exit_code in (1, EXIT_UNDETERMINED)
