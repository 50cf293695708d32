"""Broken recoveries break the claims that name the damage, and no others (§8, §14)."""

from functools import cache
from pathlib import Path

import pytest

from fencepost.checker.verdicts import EXIT_REFUTED, Verdict
from fencepost.conformance import LOCK_STEP, Conformance, read_run, replay_run, verify
from fencepost.conformance.runs import run_from_json
from fencepost.conformance.subjects import subject_of
from fencepost.model.recovery.variants import VARIANTS
from fencepost.reference.adapter_recovery import RecoveringSqlite
from fencepost.reference.broken_recoveries import BROKEN, USELESS

from .support import refuted

SUBJECT = subject_of("recovery")

BREAKS = {
    "hash-not-compared-without-a-key": {
        "a_recovery_sees_what_was_committed": 7, "a_damaged_checkpoint_is_never_resumed": 7,
    },
    "hash-alone": {
        "a_recovery_sees_what_was_committed": 7, "a_tampered_checkpoint_is_never_resumed": 7,
    },
    "instance-not-compared": {
        "a_recovery_sees_what_was_committed": 7, "an_owner_never_resumes_a_replaced_checkpoint": 7,
    },
    "versions-not-compared": {
        "a_recovery_sees_what_was_committed": 8, "a_checkpoint_of_other_versions_is_never_resumed": 8,
        "an_owner_never_resumes_a_replaced_checkpoint": 8,
    },
    "lease-version-not-compared": {
        "a_recovery_sees_what_was_committed": 10, "a_checkpoint_of_other_versions_is_never_resumed": 10,
        "an_owner_never_resumes_a_replaced_checkpoint": 10,
    },
    "checked-only-before": {
        "pinned_definition": 5, "a_damaged_checkpoint_is_never_resumed": 7,
        "a_tampered_checkpoint_is_never_resumed": 7, "a_checkpoint_of_other_versions_is_never_resumed": 7,
        "an_owner_never_resumes_a_replaced_checkpoint": 7, "a_missing_checkpoint_is_none_only_at_first": 7,
    },
    "damaged-is-none": {
        "a_recovery_sees_what_was_committed": 7, "a_damaged_checkpoint_is_never_resumed": 7,
        "a_checkpoint_of_other_versions_is_never_resumed": 7, "a_missing_checkpoint_is_none_only_at_first": 7,
    },
    "begins-anew": {"a_recovery_sees_what_was_committed": 6},
    "keeps-the-lease": {
        "a_release_ends_the_lease": 7, "a_bad_checkpoint_is_reported_and_nothing_written": 7,
    },
    "says-nothing": {"a_bad_checkpoint_is_reported_and_nothing_written": 6},
    "definition-not-compared": {"pinned_definition": 4, "steps_change_under_their_definition": 5},
    "migrates-without-a-commit": {"pinned_definition": 5},
    "incompatible-is-migratable": {"only_the_incompatible_is_handed_over": 6},
    "adopts-without-recovery": {"a_recovery_sees_what_was_committed": 5, "pinned_definition": 6},
    "stale-recovery-commits": {
        "refused_changes_nothing": 7, "stale_worker_never_overrides": 7, "commit_matches_both_versions": 7,
        "a_refusal_leaves_the_checkpoint_alone": 7, "steps_change_under_their_definition": 7,
    },
    "recovery-after-expiry": {"commit_only_while_live": 5},
    "recovery-beside-a-live-owner": {"takeover_only_after_expiry": 4},
    "recovery-after-the-end": {"the_end_is_final": 8},
}  # fmt: skip
"""For each of them the claims that break, with the length of the run that is shown."""


@cache
def verified(name: str) -> Conformance:
    """The report on one of them, found once in a process: on the way to goals, without random runs."""
    return verify(BROKEN[name], subject=SUBJECT, examples=0)


def test_each_broken_recovery_is_looked_at() -> None:
    assert set(BREAKS) == set(BROKEN)


def test_they_are_named_after_variants_of_the_model_where_it_has_them() -> None:
    assert set(BROKEN) - set(VARIANTS) == {"definition-not-compared"}
    assert USELESS.name in VARIANTS


IN_THE_MAIN_JOB = (
    "hash-alone", "versions-not-compared", "damaged-is-none", "says-nothing", "definition-not-compared",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [n if n in IN_THE_MAIN_JOB else pytest.param(n, marks=pytest.mark.slow) for n in BREAKS]
)
def test_a_broken_recovery_breaks_the_claims_that_name_the_damage(name: str) -> None:
    report = verified(name)
    found = refuted(report)
    assert found.pop(LOCK_STEP.name) > 0
    assert found == BREAKS[name]
    assert report.exit_code == EXIT_REFUTED


MORE = {
    # What it found first may have been nothing, as it may not in the variant.
    "checked-only-before": {"a_missing_checkpoint_is_none_only_at_first"},
    "adopts-without-recovery": {"pinned_definition"},  # its code may have been changed before it adopts
    "stale-recovery-commits": {
        "refused_changes_nothing",
        "a_refusal_leaves_the_checkpoint_alone",
        "steps_change_under_their_definition",
    },
}
"""What breaks besides in a run, where the model says of a stale commit that it is refused, and it was not."""


@pytest.mark.parametrize("name", sorted({*BREAKS} & {*VARIANTS}))
def test_what_breaks_are_claims_that_the_variant_of_the_model_breaks(name: str) -> None:
    """Not all of them: the store and its schema are other locks, behind which some still hold."""
    assert set(BREAKS[name]) - set(VARIANTS[name].breaks) == MORE.get(name, set())


def test_a_recovery_that_nobody_can_use_breaks_no_claim_and_is_not_the_models() -> None:
    report = verify(USELESS, subject=SUBJECT, examples=0)
    assert set(refuted(report)) == {LOCK_STEP.name}
    found = report.of("a_checkpoint_of_other_versions_is_never_resumed")
    assert found.verdict is Verdict.NOT_EXERCISED
    assert "a_checkpoint_of_a_former_owner_is_resumed" in found.why


def test_a_refutation_shows_the_checkpoint_and_what_was_resumed() -> None:
    text = "\n".join(verified("versions-not-compared").lines())
    assert (
        "A worker resumes only from the checkpoint that was written with the commit that its row is from."
        in text
    )
    assert "replay_earlier(1)" in text
    assert (
        "release(w1): the model does release here (A new owner that finds a bad checkpoint reports it" in text
    )
    assert "the implementation did take_up" in text


def test_a_saved_run_of_a_recovery_is_made_again(tmp_path: Path) -> None:
    name = "damaged-is-none"
    data = verified(name).of("S23").details["run"]
    path = run_from_json(data).save(tmp_path)
    assert read_run(path).protocol == "recovery"
    assert replay_run(path, BROKEN[name]).fails
    again = replay_run(path, RecoveringSqlite(name=name))
    assert (again.fails, again.changed) == (False, "")
