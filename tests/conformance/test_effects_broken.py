"""Broken downstreams, and stores that lose what belongs to an effect, break the claim that names it."""

import pytest

from fencepost.checker.verdicts import EXIT_REFUTED, Verdict
from fencepost.conformance import LOCK_STEP

from .effects_support import verified_dictionaries, verified_effects
from .support import refuted

BREAKS = [
    ("record-in-memory", "keyed", {
        "one_effect_per_intent": 6, "same_key_same_intent": 7, "every_ok_is_the_original_receipt": 7,
        "late_request_after_tombstone_refused": 8,
    }),
    ("fingerprint-not-compared", "keyed", {"every_ok_is_the_original_receipt": 6}),
    ("tombstone-not-looked-at", "keyed", {"late_request_after_tombstone_refused": 7}),
    ("fence-compared-the-wrong-way", "fenced",
     {"fence_only_rises": 7, "stale_effect_never_lands_after_contact": 7,
      "a_stale_token_is_told_nothing_else": 7}),
    ("fence-not-compared", "fenced",
     {"fence_only_rises": 7, "stale_effect_never_lands_after_contact": 7,
      "a_stale_token_is_told_nothing_else": 7}),
    ("revision-not-compared", "revisioned", {"effect_lands_on_the_revision_it_expected": 5}),
]  # fmt: skip


SEEN_OTHERWISE = (
    "record-in-memory", "fence-compared-the-wrong-way", "fingerprint-not-compared", "tombstone-not-looked-at",
)  # fmt: skip
"""What the short run sees in the model, and beside another one of these."""


@pytest.mark.parametrize(
    ("broken", "kind", "breaks"),
    [
        pytest.param(*each, id=each[0], marks=pytest.mark.slow if each[0] in SEEN_OTHERWISE else ())
        for each in BREAKS
    ],
)
def test_a_broken_downstream_breaks_the_claims_that_name_the_damage(
    broken: str, kind: str, breaks: dict[str, int]
) -> None:
    report = verified_effects(kind, broken)
    found = refuted(report)
    assert found.pop(LOCK_STEP.name) > 0
    assert found == breaks
    assert report.exit_code == EXIT_REFUTED


def test_two_transactions_are_not_seen_as_long_as_nobody_dies_between_them() -> None:
    assert refuted(verified_effects("keyed", "effect-and-record-in-two-transactions")) == {}


def test_a_refutation_shows_the_requests_and_what_is_kept() -> None:
    text = "\n".join(verified_effects("keyed", "tombstone-not-looked-at").lines())
    assert "Once a tombstone was written under a key, no effect lands under it." in text
    assert "decide_call(c1, whole): the model answers tombstoned, the implementation answered ok" in text
    assert "ok tombstone" in text


def test_a_small_right_store_and_downstream_are_held() -> None:
    report = verified_dictionaries()
    assert refuted(report) == {}
    assert report.of("S8").verdict is report.of("S10").verdict is report.of("S13").verdict is Verdict.HELD


@pytest.mark.parametrize(
    ("bug", "claim"),
    [
        ("forgets the receipt", "receipt_is_true"),
        ("in memory", "one_effect_per_intent"),
        ("in memory", "late_request_after_tombstone_refused"),
    ],
)
def test_what_a_store_or_a_downstream_forgets_is_found(bug: str, claim: str) -> None:
    assert claim in refuted(verified_dictionaries(bug))


def test_records_that_are_gone_after_a_restart_are_a_difference_at_once() -> None:
    difference = verified_dictionaries("in memory").of("lock-step").details["difference"]
    assert "the downstream was restarted, and afterwards record[1] is - in the implementation" in difference


def test_an_effect_that_one_call_brings_about_twice_is_a_difference() -> None:
    difference = verified_dictionaries("twice").of("lock-step").details["difference"]
    assert "request c1 took effect 2 times in one decision" in difference
