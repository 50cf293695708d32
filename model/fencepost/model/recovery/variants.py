"""Recoveries with something wrong, or unusual: what each claim is shown to fail on.

A variant is made by taking lines out of the model, or by making them say something else, so that it says only
what is different. `breaks` names the claims (by name) that must be refuted in the variant's scope, with the
exact length of the shortest run; no other claim may be.
"""

from __future__ import annotations

from fencepost.model.domains import Element
from fencepost.model.language import State, when
from fencepost.model.mutate import with_lines, without
from fencepost.model.recovery import checkpoints, scopes, steps, world
from fencepost.model.recovery.checkpoints import is_unwritten
from fencepost.model.recovery.state import NOTHING_DONE, Phase, Status, recovery
from fencepost.model.recovery.steps import has_migration, when_acquired
from fencepost.model.variants import Variant, adding_to

assert checkpoints, scopes  # the protocol is complete only with all its modules  # noqa: S101
assert steps, world  # noqa: S101


VARIANTS: dict[str, Variant] = {}
_add = adding_to(VARIANTS, scope="quick")

_WHOLE, _VOUCHED, _OF_THE_ROW = (
    "when(is_whole(s))", "when(is_vouched_for(s))", "when(is_of_the_row(s, s.believes[w].state))",
)  # fmt: skip
"""What is asked of a checkpoint after acquire."""

_COMPARES_CODE = "if s.code[w] == read(s, w).definition"
_RESUMES = "s.view[w] = s.checkpoint.steps"
_CHANGED = "after = changed(s, w, change)"
"""Other lines of the model that several variants change, or that are long."""

# What was checked before acquire, and not again.


def check_code_too(s: State, w: Element) -> None:
    """A worker looks at the checkpoint, and goes on only if its code fits or a migration is registered."""
    pinned = s.log[s.state_version].definition
    when(s.code[w] == pinned or s.registered[pinned, s.code[w]])

    steps.check(s, w)


def trust_the_first_check(s: State, w: Element) -> None:
    """A new owner resumes from whatever lies there now: it has checked it before it acquired."""
    when_acquired(s, w)
    when(s.checkpoint.present)

    s.view[w] = s.checkpoint.steps
    trust_the_code(s, w)


def begin_by_the_first_check(s: State, w: Element) -> None:
    """A new owner begins with the first step."""
    when_acquired(s, w)
    when(is_unwritten(s, s.believes[w].state))

    s.view[w] = NOTHING_DONE
    trust_the_code(s, w)


def trust_the_code(s: State, w: Element) -> None:
    """A new owner migrates the instance if it can, and else takes its code to fit, as it did before."""
    if has_migration(s, w):
        s.phase[w] = Phase.misfit
    else:
        s.phase[w] = Phase.resumed


_add(
    recovery.variant(
        "checked-only-before", check=check_code_too, take_up=trust_the_first_check,
        begin=begin_by_the_first_check,
    ),
    "Checkpoint and definition are checked before acquire and not again, and change in between.",
    ("F03", "F27", "F28"),
    scope="small",
    recovery_repeats_nothing=10,
    waiting_steps_are_not_skipped=10,
    only_a_step_that_ran_succeeds=10,
    a_recovery_sees_what_was_committed=8,
    pinned_definition=10,
    steps_change_under_their_definition=11,
    only_a_migration_changes_the_definition=12,
    a_damaged_checkpoint_is_never_resumed=9,
    a_tampered_checkpoint_is_never_resumed=9,
    a_checkpoint_of_other_versions_is_never_resumed=8,
    an_owner_never_resumes_a_replaced_checkpoint=9,
)  # fmt: skip
_add(
    without(recovery, "checkpoint-not-checked-again", take_up=(_WHOLE, _VOUCHED)),
    "Whether the checkpoint is whole is asked before acquire, and afterwards only which one it is.",
    ("F03", "F28"),
    recovery_repeats_nothing=8,
    waiting_steps_are_not_skipped=8,
    only_a_step_that_ran_succeeds=8,
    a_recovery_sees_what_was_committed=7,
    a_damaged_checkpoint_is_never_resumed=7,
    a_tampered_checkpoint_is_never_resumed=7,
)
_add(
    with_lines(
        recovery.variant("definition-not-checked-again", check=check_code_too),
        "definition-not-checked-again",
        take_up={_COMPARES_CODE: "if not has_migration(s, w)"},
        begin={_COMPARES_CODE: "if not has_migration(s, w)"},
    ),
    "Only workers whose code fits go on to acquire, and the definition is not compared again.",
    ("F03", "F27"),
    scope="quick-definitions",
    pinned_definition=10,
    steps_change_under_their_definition=11,
)

# What is asked of a checkpoint.

_add(
    with_lines(recovery, "hash-alone", take_up={_VOUCHED: "pass"}),
    "The hash alone is compared although a key is configured: who changed the checkpoint changed the hash.",
    ("F28",),
    recovery_repeats_nothing=8,
    waiting_steps_are_not_skipped=8,
    only_a_step_that_ran_succeeds=8,
    a_recovery_sees_what_was_committed=7,
    a_tampered_checkpoint_is_never_resumed=7,
)
_add(
    without(recovery, "hash-not-compared", take_up=(_WHOLE,)),
    "With a key configured the MAC is compared and the hash is not: correct, for what breaks the hash "
    "breaks the MAC.",
    ("F28",),
)
_add(
    with_lines(
        recovery, "hash-not-compared-without-a-key",
        take_up={_WHOLE: "when(s.checkpoint.present)"},
    ),
    "No key is configured, and the hash is not compared.",
    ("F28",),
    scope="no-key",
    recovery_repeats_nothing=10,
    waiting_steps_are_not_skipped=10,
    only_a_step_that_ran_succeeds=10,
    a_recovery_sees_what_was_committed=9,
    steps_change_under_their_definition=11,
    only_a_migration_changes_the_definition=12,
    only_the_incompatible_is_handed_over=11,
    a_damaged_checkpoint_is_never_resumed=9,
)  # fmt: skip
_add(
    with_lines(
        recovery, "versions-not-compared",
        take_up={_OF_THE_ROW: "when(s.checkpoint.present and s.checkpoint.ours)"},
    ),
    "A sound checkpoint of this instance is resumed whatever its versions.",
    ("F28", "F27"),
    recovery_repeats_nothing=11,
    waiting_steps_are_not_skipped=11,
    only_a_step_that_ran_succeeds=11,
    a_recovery_sees_what_was_committed=8,
    a_checkpoint_of_other_versions_is_never_resumed=8,
    an_owner_never_resumes_a_replaced_checkpoint=8,
)  # fmt: skip
_add(
    with_lines(
        recovery, "lease-version-not-compared",
        take_up={
            _OF_THE_ROW: "when(s.checkpoint.present and s.checkpoint.ours"
            " and s.checkpoint.state == s.believes[w].state)",
        },
    ),
    "The state version alone is compared: a former owner's checkpoint for a refused commit has the same.",
    ("F28", "F01"),
    recovery_repeats_nothing=11,
    waiting_steps_are_not_skipped=11,
    only_a_step_that_ran_succeeds=11,
    a_recovery_sees_what_was_committed=10,
    a_checkpoint_of_other_versions_is_never_resumed=10,
    an_owner_never_resumes_a_replaced_checkpoint=10,
)  # fmt: skip
_add(
    with_lines(
        recovery, "instance-not-compared",
        take_up={
            _OF_THE_ROW: "when(s.checkpoint.present and s.checkpoint.state == s.believes[w].state"
            " and s.checkpoint.lease == read(s, w).lease)",
        },
    ),
    "The checkpoint of another instance is resumed, if it has the same versions.",
    ("F27",),
    recovery_repeats_nothing=8,
    waiting_steps_are_not_skipped=8,
    only_a_step_that_ran_succeeds=8,
    a_recovery_sees_what_was_committed=7,
    an_owner_never_resumes_a_replaced_checkpoint=7,
)  # fmt: skip
_add(
    with_lines(
        recovery, "lease-version-of-the-row",
        take_up={
            _OF_THE_ROW: "when(is_of_the_row(s, s.believes[w].state)"
            " and s.checkpoint.lease == s.believes[w].lease)",
        },
        release={
            "when(not is_sound(s, s.believes[w].state))": "when(not (is_sound(s, s.believes[w].state)"
            " and (not s.checkpoint.present or s.checkpoint.lease == s.believes[w].lease)))",
        },
    ),
    "Correct but useless: the checkpoint's lease version is compared with that of the row, which acquire has "
    "just raised. Nobody ever resumes what a former owner has committed.",
    ("F30",),
)  # fmt: skip
_add(
    with_lines(
        recovery, "damaged-is-none",
        begin={"when(is_unwritten(s, s.believes[w].state))": "when(not is_whole(s))"},
    ),
    "A checkpoint that is damaged or lost counts as no checkpoint, and the instance begins anew.",
    ("F28",),
    recovery_repeats_nothing=8,
    waiting_steps_are_not_skipped=8,
    only_a_step_that_ran_succeeds=9,
    a_recovery_sees_what_was_committed=7,
    a_damaged_checkpoint_is_never_resumed=7,
    a_tampered_checkpoint_is_never_resumed=7,
    a_checkpoint_of_other_versions_is_never_resumed=7,
    a_missing_checkpoint_is_none_only_at_first=7,
)  # fmt: skip
_add(
    without(recovery, "lost-is-none", begin=("when(is_unwritten(s, s.believes[w].state))",)),
    "A worker begins anew whatever lies there.",
    ("F28",),
    recovery_repeats_nothing=7,
    waiting_steps_are_not_skipped=7,
    only_a_step_that_ran_succeeds=8,
    a_recovery_sees_what_was_committed=6,
    a_damaged_checkpoint_is_never_resumed=7,
    a_tampered_checkpoint_is_never_resumed=7,
    a_checkpoint_of_other_versions_is_never_resumed=7,
    an_owner_never_resumes_a_replaced_checkpoint=7,
    a_missing_checkpoint_is_none_only_at_first=7,
)
_add(
    with_lines(recovery, "keeps-the-lease", release={"s.live = False": "pass"}),
    "Who finds a bad checkpoint reports it and keeps the lease.",
    ("F30",),
    a_release_ends_the_lease=7,
    a_bad_checkpoint_is_reported_and_nothing_written=7,
)
_add(
    without(recovery, "says-nothing", release=("s.reported = True",)),
    "Who finds a bad checkpoint releases the lease and reports nothing, so that everybody tries in turn.",
    ("F28",),
    a_bad_checkpoint_is_reported_and_nothing_written=7,
)

# Definitions.

_add(
    with_lines(
        recovery, "migrates-without-a-commit",
        take_up={_COMPARES_CODE: "if s.code[w] == read(s, w).definition or has_migration(s, w)"},
    ),
    "A worker whose code can read the checkpoint through a migration goes on, and commits no migration.",
    ("F27",),
    scope="quick-definitions",
    pinned_definition=10,
    steps_change_under_their_definition=11,
)  # fmt: skip
_add(
    with_lines(
        recovery, "migration-not-asked-for",
        commit={
            "return s.phase[w] == Phase.misfit and has_migration(s, w)": "return s.phase[w] == Phase.misfit",
        },
    ),
    "A worker pins the instance to the definition of its code, and nobody has registered a migration.",
    ("F27",),
    scope="quick-definitions",
    only_a_migration_changes_the_definition=5,
)  # fmt: skip
_add(
    with_lines(
        recovery,
        "incompatible-fails-the-steps",
        commit={_CHANGED: f"after = NOTHING_DONE if change == Change.hand_over else {_CHANGED[8:]}"},
    ),
    "An instance that no code can run is handed to a person, and its steps are given up.",
    ("F30",),
    scope="quick-definitions",
    recovery_repeats_nothing=10,
    waiting_steps_are_not_skipped=10,
    steps_change_under_their_definition=10,
    only_the_incompatible_is_handed_over=10,
)
_add(
    with_lines(
        recovery, "incompatible-is-migratable",
        commit={
            "return s.phase[w] == Phase.misfit and not has_migration(s, w)":
                "return s.phase[w] == Phase.misfit",
        },
    ),
    "An instance is handed to a person although a migration is registered.",
    ("F30",),
    scope="quick-definitions",
    only_the_incompatible_is_handed_over=6,
)  # fmt: skip
_add(
    without(recovery, "goes-on-under-a-person", commit=("when(not read(s, w).manual)",)),
    "A worker whose code fits goes on with an instance that was handed to a person.",
    ("F05",),
    scope="quick-definitions",
    only_the_incompatible_is_handed_over=7,
    what_a_person_has_stays_as_it_is=6,
)

# What is done, and what waits.

_add(
    with_lines(recovery, "begins-anew", take_up={_RESUMES: "s.view[w] = NOTHING_DONE"}),
    "A recovery runs all steps again from the first.",
    ("F21",),
    recovery_repeats_nothing=7,
    waiting_steps_are_not_skipped=7,
    only_a_step_that_ran_succeeds=8,
    a_recovery_sees_what_was_committed=6,
)
_add(
    with_lines(
        recovery, "runs-it-again",
        take_up={_RESUMES: f"{_RESUMES}.changed(now=Status.pending)"},
    ),
    "A recovery starts the step again that the former owner has started.",
    ("F16", "F21"),
    recovery_repeats_nothing=7,
    waiting_steps_are_not_skipped=7,
    a_recovery_sees_what_was_committed=6,
)  # fmt: skip
_add(
    with_lines(recovery, "wakes-at-once", commit={" and s.view[w].now == Status.waiting and s.come":
                                                  " and s.view[w].now == Status.waiting"}),
    "A step that waits is run although what it waits for has not come.",
    ("F29",),
    waiting_steps_are_not_skipped=5,
)  # fmt: skip


def pass_over_what_waits(s: State, w: Element) -> None:
    """A new owner takes up the steps, and goes on with the one after the step that waits."""
    steps.take_up(s, w)
    if s.view[w].now == Status.waiting:
        s.view[w] = s.view[w].changed(done=s.view[w].done + 1, now=Status.pending)


_add(
    recovery.variant("skips-what-waits", take_up=pass_over_what_waits),
    "A recovery passes over a step that waits.",
    ("F25",),
    recovery_repeats_nothing=7,
    waiting_steps_are_not_skipped=7,
    only_a_step_that_ran_succeeds=7,
    a_recovery_sees_what_was_committed=6,
)
_add(
    without(recovery, "given-twice", commit=("s.come = False",)),
    "What a step waited for is not used up, and lets the next step pass as well.",
    ("F29",),
    waiting_steps_are_not_skipped=6,
)

_add(
    with_lines(
        recovery, "adopts-without-recovery",
        reread={"s.phase[w] = Phase.acquired": "s.phase[w] = Phase.resumed"},
    ),
    "A worker that finds a lease of its own after a lost answer goes on without recovering.",
    ("F12",),
    recovery_repeats_nothing=6,
    waiting_steps_are_not_skipped=6,
    only_a_step_that_ran_succeeds=7,
    a_recovery_sees_what_was_committed=5,
)  # fmt: skip

# The row: whose commit is accepted, and leases.

_add(
    without(recovery, "stale-recovery-commits", commit=('"stale-lease-version"', '"not-the-owner"')),
    "A commit compares the state version alone, so a recovery commits after another has taken over.",
    ("F01", "F02"),
    stale_worker_never_overrides=7,
    commit_matches_both_versions=7,
    a_damaged_checkpoint_is_never_resumed=9,
    an_owner_never_resumes_a_replaced_checkpoint=10,
)
_add(
    without(
        recovery, "late-recovery-by-id",
        commit=('"stale-lease-version"', '"not-the-owner"', '"lease-expired"', '"stale-state-version"'),
    ),
    "A commit finds the row by its id and compares nothing.",
    ("F01", "F04"),
    commit_only_while_live=5,
    stale_worker_never_overrides=7,
    commit_matches_both_versions=7,
    recovery_repeats_nothing=9,
    waiting_steps_are_not_skipped=9,
    only_a_step_that_ran_succeeds=10,
    a_damaged_checkpoint_is_never_resumed=9,
    an_owner_never_resumes_a_replaced_checkpoint=10,
)  # fmt: skip
_add(
    without(recovery, "recovery-after-expiry", commit=('"lease-expired"',)),
    "Correct but unusual: a commit is accepted after the lease is over, while nobody has taken over.",
    commit_only_while_live=5,
)
_add(
    without(recovery, "recovery-beside-a-live-owner", acquire=('"lease-live"',)),
    "A recovery begins while the lease of another is live.",
    ("F06",),
    takeover_only_after_expiry=4,
)
_add(
    with_lines(
        recovery, "recovery-under-the-same-version",
        acquire={"s.lease_version = s.lease_version + 1": "s.lease_version = 1"},
    ),
    "A recovery has the lease version of the former owner.",
    ("F13",),
    lease_version_only_grows=5,
    takeover_only_after_expiry=5,
    a_damaged_checkpoint_is_never_resumed=9,
    an_owner_never_resumes_a_replaced_checkpoint=12,
)  # fmt: skip
_add(
    without(recovery, "recovery-after-the-end", acquire=('"finished"',)),
    "A worker acquires the lease of an instance that is finished.",
    ("F05",),
    the_end_is_final=8,
)
_add(
    without(recovery, "released-by-who-was-overtaken", release=('"stale-lease-version"', '"not-the-owner"')),
    "A recovery that was overtaken reports a bad checkpoint and ends the lease of the new owner.",
    ("F10",),
    only_expiry_or_the_owner_ends_a_lease=8,
)
