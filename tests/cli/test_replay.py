"""Saved runs: replayed, compared with a changed model, and written as tests that are run here."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.checker.traces import read

from .support import SMALLEST, Result, fencepost, tokens, users_file

LATE = ("--variant", "commits-after-expiry")


def saved_run(*arguments: str) -> str:
    done = fencepost("check", *arguments, "--scope", SMALLEST)
    (token,) = tokens(done.out)
    return token


def pasted(token: str) -> Path:
    done = fencepost("replay", token, "--as", "pytest")
    assert (done.code, done.err) == (0, "")
    path = Path("test_pasted.py")
    path.write_text(done.out, encoding="utf-8")
    return path


def pytest_says(path: Path) -> Result:
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Result(done.returncode, done.stdout, done.stderr)


def test_a_run_replays_by_its_token_alone() -> None:
    token = saved_run("S27", *LATE)
    done = fencepost("replay", token)

    assert (done.code, done.err) == (1, "")
    assert "decide_commit(c1)" in done.out
    assert done.out.endswith("commit_only_while_live still breaks, with step 4\n")


def test_a_run_replays_by_the_path_of_its_file() -> None:
    token = saved_run("S27", *LATE)
    Path(".fencepost", f"{token}.json").rename("kept.json")

    assert fencepost("replay", "kept.json").code == 1
    assert fencepost("replay", token).code == 2


def test_the_users_file_of_a_run_is_found_by_itself() -> None:
    token = saved_run("S27", "--with", users_file("changed_guard"))

    assert fencepost("replay", token).code == 1


def test_a_mended_model_is_reported_and_the_run_breaks_nothing_any_more() -> None:
    token = saved_run("S27", "--with", users_file("changed_guard"))
    text = Path("changed_guard.py").read_text(encoding="utf-8")
    guard = '    refuse_unless(s.live, "lease-expired")\n    refuse_unless(sent.state'
    Path("changed_guard.py").write_text(text.replace("    refuse_unless(sent.state", guard), encoding="utf-8")
    done = fencepost("replay", token)

    assert done.code == 0
    assert "changed: the model has changed since the run was saved" in done.out
    assert "step 4, decide_commit(c1): ends lease-expired now, ok when it was saved" in done.out
    assert "holds along this run of 4 steps" in done.out


def test_a_run_that_is_not_possible_any_more_says_little() -> None:
    token = saved_run("S27", *LATE)
    Path("own.py").write_text(
        'from fencepost.model.core import core\nquiet = core.variant("quiet", without=["send_commit"])\n',
        encoding="utf-8",
    )
    done = fencepost("replay", token, "--with", "own.py")

    assert done.code == 3
    assert "step 2, send_commit(w1, c1): there is no such action now" in done.out
    assert "says little" in done.out


def test_a_damaged_file_is_a_usage_error() -> None:
    Path("bad.json").write_text("{", encoding="utf-8")
    Path("other.json").write_text('{"a": 1}', encoding="utf-8")

    assert "is not JSON" in fencepost("replay", "bad.json").err
    assert "is no trace" in fencepost("replay", "other.json").err
    assert {fencepost("replay", name).code for name in ("bad.json", "other.json")} == {2}


def test_a_replay_as_json_says_whether_the_claim_still_breaks() -> None:
    data = json.loads(fencepost("replay", saved_run("S27", *LATE), "--as", "json").out)

    assert (data["still_breaks"], data["broken_at"], data["exit_code"]) == (True, 4, 1)
    assert [s["label"] for s in data["trace"]["steps"]][-1] == "decide_commit(c1)"


def run_pasted(path: Path) -> None:
    """What pytest does with the file, without its start-up."""
    names: dict[str, Any] = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)  # noqa: S102
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    test()


def test_a_pasted_test_fails_while_the_claim_breaks() -> None:
    said = pytest_says(pasted(saved_run("S27", *LATE)))

    assert said.code == 1
    assert "step 4, decide_commit(c1): not so" in said.out


def test_a_pasted_test_passes_once_the_model_is_mended() -> None:
    path = pasted(saved_run("S27", *LATE))
    path.write_text(
        path.read_text(encoding="utf-8").replace('variant="commits-after-expiry"', ""), encoding="utf-8"
    )

    run_pasted(path)


def test_a_pasted_test_is_skipped_when_the_model_goes_another_way() -> None:
    path = pasted(saved_run("S27", *LATE))
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace('    ("acquire"', '    ("release", (0, 0)),\n    ("acquire"', 1), encoding="utf-8"
    )

    with pytest.raises(pytest.skip.Exception, match="release, is disabled now"):
        run_pasted(path)


def test_a_pasted_test_finds_the_users_file() -> None:
    path = pasted(saved_run("M2", "--with", users_file("false")))

    with pytest.raises(AssertionError, match="acquire"):
        run_pasted(path)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_run_of_an_implementation_is_made_again(form: str) -> None:
    users_file("broken_store")
    done = fencepost("verify", "broken_store.py:make", "S27", "--examples", "1")
    token = tokens(done.out)[0]

    assert done.code == 1
    again = fencepost("replay", token, "--as", form)
    assert (again.code, again.err) == (1, "")
    assert "commit_only_while_live" in again.out


def test_a_pasted_run_of_an_implementation_fails_while_it_breaks() -> None:
    users_file("broken_store")
    done = fencepost("verify", "broken_store.py:make", "S27", "--examples", "1")
    path = pasted(tokens(done.out)[0])

    with pytest.raises(AssertionError):
        run_pasted(path)
    path.write_text(
        path.read_text(encoding="utf-8").replace("broken_store.py:make", "sqlite"), encoding="utf-8"
    )
    run_pasted(path)


def test_an_altered_run_is_reported_as_damaged_and_says_nothing_about_the_claim() -> None:
    path = Path(".fencepost", f"{saved_run('S27', *LATE)}.json")
    whole = json.loads(path.read_text(encoding="utf-8"))
    for name, value in (("steps", []), ("steps", whole["steps"][:-1]), ("claim", "no_stuck_state")):
        path.write_text(json.dumps({**whole, name: value}), encoding="utf-8")
        done = fencepost("replay", str(path))

        assert (done.code, done.out) == (2, "")
        assert "is damaged" in done.err


def test_a_store_that_is_a_file_loses_the_run_and_not_the_verdict() -> None:
    Path(".fencepost").write_text("", encoding="utf-8")
    done = fencepost("check", "S27", *LATE, "--scope", SMALLEST)

    assert done.code == 1
    assert "REFUTED  S27" in done.out
    assert "fencepost replay" not in done.out
    assert done.err == "fencepost: the run is not saved in .fencepost: File exists\n"
    assert fencepost("replay", "nonesuch").code == 2


def test_a_store_that_is_a_file_loses_no_verdict_on_an_implementation() -> None:
    Path(".fencepost").write_text("", encoding="utf-8")
    users_file("broken_store")
    done = fencepost("verify", "broken_store.py:make", "S27", "--examples", "1")

    assert (done.code, "REFUTED  S27" in done.out) == (1, True)
    assert "the run is not saved" in done.err


def test_a_run_of_a_witness_is_refused() -> None:
    path = Path(".fencepost", f"{saved_run('S27', *LATE)}.json")
    trace = replace(read(str(path)), claim="a_lease_is_taken_over")
    done = fencepost("replay", str(trace.save()))

    assert done.code == 2
    assert "is a witness" in done.err


@pytest.mark.parametrize("model", ["core", "effects"])
def test_a_run_replays_in_another_process_without_a_change_of_the_model(model: str) -> None:
    asked = {
        "core": ("S27", *LATE, "--model", "core", "--scope", SMALLEST),
        "effects": ("S8", "--scope", "quick-keyed", "--on", "record_expired", "--off", "revision_moved",
                    "--off", "revisioned"),
    }  # fmt: skip
    command = [sys.executable, "-m", "fencepost.cli"]
    made = subprocess.run([*command, "check", *asked[model]], capture_output=True, text=True, check=False)
    (token,) = tokens(made.stdout)
    again = subprocess.run([*command, "replay", token], capture_output=True, text=True, check=False)

    assert (again.returncode, again.stderr) == (1, "")
    assert "changed:" not in again.stdout
