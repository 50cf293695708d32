"""Runners of replays that are broken in one line break the claims that name the damage (§15)."""

from pathlib import Path

import pytest

from fencepost.checker.verdicts import EXIT_REFUTED
from fencepost.conformance import LOCK_STEP, replay_run
from fencepost.conformance.runs import run_from_json

from .dict_replay import verified_list
from .replay_support import RUNNERS, odd, verified_replay
from .support import refuted

GOES_ON, GIVEN = "only_the_recorded_command_goes_on", "a_workflow_is_given_what_is_recorded"

BREAKS: dict[str, set[str]] = {
    "type-not-compared": {GOES_ON, GIVEN},
    "name-not-compared": {GOES_ON},
    "name-taken-for-arguments": set(),
    "arguments-not-compared": {GOES_ON},
    "definition-not-compared": {GOES_ON, "a_history_has_one_definition"},
    "stops-at-what-is-the-same": {GOES_ON, "a_stop_is_a_difference", "the_same_code_never_differs"},
    "tells-of-another-position": set(),
    "recorded-draw-not-used": {GIVEN},
    "activity-asked-again": {
        "what_has_its_result_does_not_act_again",
        "an_activity_without_a_key_acts_once",
    },
    "unknown-activity-called-again": {"an_activity_without_a_key_acts_once"},
    "start-not-recorded": {"an_activity_acts_as_recorded"},
    "result-before-it-acts": {GIVEN, "a_result_is_that_of_its_command"},
    "overtaken-by-a-command": {GOES_ON, GIVEN},
    "overtaken-by-a-result": {GIVEN},
    "result-replaced": {"a_recorded_result_is_never_replaced"},
}
"""For each, the claims that it breaks. Those that break none stop rightly, and tell of it wrongly."""


def test_every_broken_runner_is_looked_at() -> None:
    assert list(BREAKS) == [*RUNNERS, "result-replaced"]


ALWAYS_TRIED = ("arguments-not-compared", "activity-asked-again", "result-replaced")


@pytest.mark.parametrize(
    "name", [n if n in ALWAYS_TRIED else pytest.param(n, marks=pytest.mark.slow) for n in BREAKS]
)
def test_what_is_broken_breaks_the_claims_that_name_the_damage(name: str) -> None:
    report = verified_replay(name)
    found = refuted(report)
    assert found.pop(LOCK_STEP.name) > 0
    assert set(found) == BREAKS[name]
    assert report.exit_code == EXIT_REFUTED


@pytest.mark.parametrize(
    ("name", "difference"),
    [
        ("tells-of-another-position", "it stopped at 0, and tells of a difference at 1"),
        ("name-taken-for-arguments", "it stopped at another command, and tells of another arguments"),
    ],
)
def test_a_stop_that_tells_of_another_difference_is_no_right_one(name: str, difference: str) -> None:
    assert difference in verified_replay(name).of("lock-step").details["difference"]


@pytest.mark.parametrize(
    ("bug", "claim"),
    [
        ("command", GOES_ON),
        ("arguments", GOES_ON),
        ("definition", "a_history_has_one_definition"),
        ("draws anew", GIVEN),
        ("acts twice", "an_activity_without_a_key_acts_once"),
        ("last one wins", "a_recorded_command_is_never_replaced"),
    ],
)
def test_bugs_of_a_small_runner_are_found(bug: str, claim: str) -> None:
    assert claim in refuted(verified_list(bug))


def test_a_saved_run_about_replay_is_made_again(tmp_path: Path) -> None:
    name = "arguments-not-compared"
    data = verified_replay(name).of(GOES_ON).details["run"]
    made = replay_run(run_from_json(data).save(tmp_path), odd(name))
    assert made.fails
    assert (made.breaks, made.unsteady, made.changed) == (GOES_ON, "", "")
