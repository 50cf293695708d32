"""Stores, desks and recipients that are broken for §13 break the claims that name the damage."""

from pathlib import Path

import pytest

from fencepost.checker.verdicts import EXIT_REFUTED
from fencepost.conformance import LOCK_STEP, replay_run
from fencepost.conformance.runs import run_from_json
from fencepost.model.triggers.variants import VARIANTS

from .dict_triggers import verified_dictionaries
from .support import refuted
from .triggers_support import ODD, verified_triggers

BREAKS = {
    "record-not-looked-at": {"one_instance_per_trigger": 3},
    "record-after-the-row": {"one_instance_per_trigger": 3},
    "event-id-alone": {"every_ok_names_the_instance_of_its_trigger": 4},
    "payload-not-compared": {"every_ok_names_the_instance_of_its_trigger": 4},
    "conflict-names-the-instance": {"only_an_ok_names_an_instance": 4},
    "redelivery-moves-the-row": {
        "a_trigger_moves_no_version": 3,
        "state_version_counts_commits": 3,
        "the_end_stays_as_it_is": 5,
    },
    "purged-at-the-end": {"one_instance_per_trigger": 5},
    "sends-uncommitted": {"only_intended_notifications_are_sent": 3},
    "takeover-forgets-what-is-to-be-sent": {"what_is_recorded_stays_recorded": 4},
    "takeover-begins-anew": {"what_is_recorded_stays_recorded": 7},
    "acquire-moves-the-state": {"state_version_counts_commits": 3},
    "acquired-after-the-end": {"the_end_stays_as_it_is": 4},
    "commits-after-the-end": {"the_end_stays_as_it_is": 4, "state_version_counts_commits": 4},
    "key-without-the-target": {"what_is_recorded_as_sent_was_received": 10},
    "recipient-keeps-no-record": {"one_notification_per_target": 6},
    "record-in-memory": {"one_notification_per_target": 7},
}
"""For each, the claims that it breaks, and how many steps are shown."""


def test_every_odd_adapter_is_looked_at() -> None:
    assert list(BREAKS) == list(ODD)


@pytest.mark.parametrize("name", BREAKS)
def test_what_is_broken_breaks_the_claims_that_name_the_damage(name: str) -> None:
    report = verified_triggers(name)
    found = refuted(report)
    assert found.pop(LOCK_STEP.name) > 0
    assert found == BREAKS[name]
    assert report.exit_code == EXIT_REFUTED


@pytest.mark.parametrize("name", sorted(set(ODD) & set(VARIANTS)))
def test_a_store_like_a_variant_of_the_model_breaks_no_claim_that_the_variant_keeps(name: str) -> None:
    assert set(BREAKS[name]) <= set(VARIANTS[name].breaks) | {"state_version_counts_commits"}


@pytest.mark.parametrize(
    ("bug", "claim"),
    [
        ("two at once", "one_instance_per_trigger"),
        ("tells of another", "every_ok_names_the_instance_of_its_trigger"),
        ("sends it first", "only_intended_notifications_are_sent"),
        ("intends it twice", "state_version_counts_commits"),
        ("records it twice", "state_version_counts_commits"),
        ("takes it twice", "one_notification_per_target"),
        ("recipient in memory", "one_notification_per_target"),
    ],
)
def test_bugs_of_a_small_store_are_found(bug: str, claim: str) -> None:
    assert claim in refuted(verified_dictionaries(bug))


def test_a_notification_that_one_call_brings_twice_is_a_difference() -> None:
    difference = verified_dictionaries("takes it twice").of("lock-step").details["difference"]
    assert "request n1 took effect 2 times in one decision" in difference


def test_a_refutation_shows_the_trigger_and_what_was_told() -> None:
    text = "\n".join(verified_triggers("conflict-names-the-instance").lines())
    assert "A trigger is told an instance only with the answer ok" in text
    assert "told[r2] is i1 in the implementation and - in the model" in text


def test_a_saved_run_about_triggers_is_made_again(tmp_path: Path) -> None:
    data = verified_triggers("record-not-looked-at").of("one_instance_per_trigger").details["run"]
    made = replay_run(run_from_json(data).save(tmp_path), ODD["record-not-looked-at"]())
    assert made.fails
    assert (made.breaks, made.unsteady, made.changed) == ("one_instance_per_trigger", "", "")
