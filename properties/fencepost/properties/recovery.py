"""What is promised about recovery: S14, S22 and S23, and of the core S1–S3, S5, S25 and S27.

`needs_off` names the faults against which a promise says nothing. There is one: with no key for a MAC, who
can tamper with a checkpoint can tamper with its hash.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencepost.model import State, Step, derived, every, implies, some
from fencepost.model.core.state import workers
from fencepost.model.domains import Element
from fencepost.model.recovery.state import Fate, Phase, Status, in_work, read
from fencepost.properties import core, effects
from fencepost.properties.claims import Claims

RECOVERY = Claims("recovery")

KEYLESS = ("mac_key_missing",)
"""The fault by which a checkpoint that was tampered with looks like a sound one."""


@derived
def now(s: State) -> Any:
    """The instance as it stands."""
    return s.log[s.state_version]


@derived
def takes_up(before: State, after: State, w: Element) -> object:
    """Whether worker `w` takes up the steps of the instance in this step."""
    return (
        before.phase[w] == Phase.acquired
        and before.believes[w].present
        and (after.phase[w] == Phase.resumed or after.phase[w] == Phase.misfit)
    )


def whoever_takes_up(before: State, after: State, fits: Callable[[Element], object]) -> object:
    """Whether this holds of every worker that takes up the steps in this step."""
    return every(workers, lambda w: not takes_up(before, after, w) or fits(w))


@derived
def somebody_takes_up(before: State, after: State) -> object:
    """Whether a worker takes up the steps in this step."""
    return some(workers, lambda w: takes_up(before, after, w))


# The row is the core's, and so are these promises: the same functions, read against this model.

for _claim, _id, _section, _witnesses in (
    (core.lease_version_only_grows, "S3", "§3", ("a_lease_is_taken_over",)),
    (core.takeover_only_after_expiry, "S5", "§3",
     ("a_lease_is_taken_over", "a_lease_expires", "acquiring_a_live_lease_is_refused")),
    (core.only_expiry_or_the_owner_ends_a_lease, "S5", "§3", ("a_bad_checkpoint_is_found",)),
    (core.a_release_ends_the_lease, "S5", "§3", ("a_bad_checkpoint_is_found",)),
    (core.the_end_is_final, "S6-end", "§5", ("acquiring_after_the_end_is_refused",)),
    (core.refused_changes_nothing, "S25", "§2", ("a_stale_recovery_is_refused",)),
    (core.commit_only_while_live, "S27", "§4", ("an_owner_commits_too_late",)),
):  # fmt: skip
    RECOVERY.each_step(_id, section=_section, witnesses=_witnesses)(_claim)
for _witness in (
    core.a_lease_is_taken_over,
    core.a_lease_expires,
    core.acquiring_a_live_lease_is_refused,
    effects.acquiring_after_the_end_is_refused,
    effects.an_owner_commits_too_late,
):
    RECOVERY.sometimes()(_witness)


@RECOVERY.each_step(
    "S1", section="§8", witnesses=("a_stale_recovery_is_refused", "a_recovery_commits_after_takeover")
)
def stale_worker_never_overrides(before: State, after: State) -> object:
    """An accepted commit was made by the owner of the current lease version."""
    return implies(
        core.accepted(before, after),
        lambda: (
            before.owner.present
            and after.made.present
            and after.made.by == before.owner
            and after.made.lease == before.lease_version
        ),
    )


@RECOVERY.each_step("S2", section="§8", witnesses=("a_stale_recovery_is_refused",))
def commit_matches_both_versions(before: State, after: State) -> object:
    """An accepted commit expected exactly the lease version and the state version that stood."""
    return implies(
        core.accepted(before, after),
        lambda: (
            after.made.present
            and after.made.lease == before.lease_version
            and after.made.state == before.state_version
            and after.state_version == before.state_version + 1
        ),
    )


@RECOVERY.each_step(
    "S25", section="§2", witnesses=("a_stale_recovery_is_refused", "acquiring_a_live_lease_is_refused")
)
def a_refusal_leaves_the_checkpoint_alone(before: State, after: State, step: Step) -> object:
    """A call that is refused leaves the checkpoint and the inbox as they were."""
    return not step.refused or (after.checkpoint == before.checkpoint and after.come == before.come)


# What is done stays done, and what waits goes on waiting.


@RECOVERY.each_step("S14", section="§8", witnesses=("a_recovery_finds_a_succeeded_step",), needs_off=KEYLESS)
def recovery_repeats_nothing(before: State, after: State) -> object:
    """A step that succeeded is never run again, and one that runs is not started a second time."""
    was, is_now = now(before).steps, now(after).steps
    return (
        is_now == was
        or (is_now.done == was.done and was.now != Status.running)
        or (is_now.done == was.done + 1 and is_now.now == Status.pending)
    )


@RECOVERY.each_step(
    "S14",
    section="§8",
    witnesses=("a_recovery_finds_a_waiting_step", "a_step_that_waited_runs"),
    needs_off=KEYLESS,
)
def waiting_steps_are_not_skipped(before: State, after: State) -> object:
    """A step waits, whoever recovers, until what it waits for comes, which is used once, to run it."""
    was, is_now = now(before).steps, now(after).steps
    runs = is_now.done == was.done and is_now.now == Status.running
    wakes = before.come and not after.come and runs
    return (wakes or after.come or not before.come) and (was.now != Status.waiting or is_now == was or wakes)


@RECOVERY.each_step("S14", section="§8", witnesses=("a_recovery_finds_a_succeeded_step",), needs_off=KEYLESS)
def only_a_step_that_ran_succeeds(before: State, after: State) -> object:
    """A step counts as done only after it has run."""
    return now(after).steps.done == now(before).steps.done or now(before).steps.now == Status.running


@RECOVERY.always(
    "S14",
    section="§8",
    witnesses=("a_recovery_finds_a_succeeded_step", "a_recovery_finds_a_waiting_step"),
    needs_off=KEYLESS,
)
def a_recovery_sees_what_was_committed(s: State) -> object:
    """A worker that has taken up the steps sees them as the commit left them that its row is from."""
    return every(
        workers,
        lambda w: (
            not s.believes[w].present
            or (s.phase[w] != Phase.resumed and s.phase[w] != Phase.misfit)
            or s.view[w] == read(s, w).steps
        ),
    )


# The definition.


@RECOVERY.always(
    "S22", section="§14", witnesses=("a_worker_finds_another_definition", "a_migrated_instance_goes_on")
)
def pinned_definition(s: State) -> object:
    """Whoever goes on with the steps has code of the definition that the instance is pinned to."""
    return every(workers, lambda w: not in_work(s, w) or s.code[w] == read(s, w).definition)


@RECOVERY.each_step("S22", section="§14", witnesses=("a_migrated_instance_goes_on",), needs_off=KEYLESS)
def steps_change_under_their_definition(before: State, after: State) -> object:
    """A commit that changes steps was made by code of the definition that was pinned, and leaves it so."""
    return now(after).steps == now(before).steps or (
        now(after).definition == now(before).definition
        and after.made.present
        and after.made.code == now(before).definition
    )


@RECOVERY.each_step("S22", section="§14", witnesses=("an_instance_is_migrated",), needs_off=KEYLESS)
def only_a_migration_changes_the_definition(before: State, after: State, step: Step) -> object:
    """The definition changes only by the commit of a registered migration, which leaves the steps alone."""
    return now(after).definition == now(before).definition or (
        step.action == "commit"
        and core.accepted(before, after)
        and before.registered[now(before).definition, now(after).definition]
        and after.made.present
        and after.made.code == now(after).definition
        and now(after).steps == now(before).steps
        and not now(after).manual
    )


@RECOVERY.each_step("S22", section="§8", witnesses=("an_instance_is_handed_to_a_person",), needs_off=KEYLESS)
def only_the_incompatible_is_handed_over(before: State, after: State) -> object:
    """Only code that cannot run an instance hands it to a person, and leaves steps and definition as is."""
    return now(after).manual == now(before).manual or (
        core.accepted(before, after)
        and now(after).manual
        and now(after).steps == now(before).steps
        and now(after).definition == now(before).definition
        and not after.finished
        and after.made.present
        and after.made.code != now(before).definition
        and not before.registered[now(before).definition, after.made.code]
    )


@RECOVERY.each_step("S22", section="§8", witnesses=("an_instance_is_handed_to_a_person",))
def what_a_person_has_stays_as_it_is(before: State, after: State) -> object:
    """No worker commits anything to an instance that was handed to a person."""
    return not now(before).manual or after.state_version == before.state_version


# The checkpoint.


@RECOVERY.each_step("S23", section="§14", witnesses=("a_damaged_checkpoint_is_found",))
def a_damaged_checkpoint_is_never_resumed(before: State, after: State) -> object:
    """Nobody resumes from a checkpoint that was damaged, and no owner begins anew because it was lost."""
    return before.fate != Fate.damaged or whoever_takes_up(
        before,
        after,
        lambda w: not before.checkpoint.present and before.believes[w].lease != before.lease_version,
    )


@RECOVERY.each_step("S23", section="§14", witnesses=("a_tampered_checkpoint_is_found",), needs_off=KEYLESS)
def a_tampered_checkpoint_is_never_resumed(before: State, after: State) -> object:
    """Nobody resumes from a checkpoint that was tampered with."""
    return before.fate != Fate.tampered or not somebody_takes_up(before, after)


@RECOVERY.each_step(
    "S23",
    section="§14",
    witnesses=("an_older_checkpoint_is_found", "a_checkpoint_of_a_former_owner_is_resumed"),
)
def a_checkpoint_of_other_versions_is_never_resumed(before: State, after: State) -> object:
    """A worker resumes only from the checkpoint that was written with the commit that its row is from."""
    return whoever_takes_up(
        before,
        after,
        lambda w: (
            not before.checkpoint.present
            or (
                before.checkpoint.state == before.believes[w].state
                and before.checkpoint.lease == read(before, w).lease
                and before.checkpoint.definition == read(before, w).definition
            )
        ),
    )


@RECOVERY.each_step("S23", section="§14", witnesses=("a_replaced_checkpoint_is_found",))
def an_owner_never_resumes_a_replaced_checkpoint(before: State, after: State) -> object:
    """The owner never resumes from an earlier checkpoint, a former owner's own, or another instance's."""
    return before.fate != Fate.replaced or whoever_takes_up(
        before, after, lambda w: before.believes[w].lease != before.lease_version
    )


@RECOVERY.each_step("S23", section="§14", witnesses=("a_worker_begins_with_nothing_done",))
def a_missing_checkpoint_is_none_only_at_first(before: State, after: State) -> object:
    """A worker begins without a checkpoint only where nothing was ever committed, and with the first step."""
    return whoever_takes_up(
        before,
        after,
        lambda w: (
            before.checkpoint.present
            or (
                before.believes[w].state == 0
                and after.view[w].done == 0
                and after.view[w].now == Status.pending
            )
        ),
    )


@RECOVERY.each_step(
    "S23", section="§8", witnesses=("a_bad_checkpoint_is_found", "a_damaged_checkpoint_is_found")
)
def a_bad_checkpoint_is_reported_and_nothing_written(before: State, after: State, step: Step) -> object:
    """Who finds a bad checkpoint reports it, ends the lease if it has one already, and writes nothing."""
    if step.action == "check":
        return after.reported or some(workers, lambda w: before.phase[w] != after.phase[w])
    return step.action != "release" or (
        after.reported
        and (step.refused or not after.live)
        and after.state_version == before.state_version
        and after.checkpoint == before.checkpoint
    )


# Witnesses: each a state or step that must be reachable, or the claims that name it say nothing.


@derived
def finds_bad(before: State, after: State, step: Step) -> object:
    """Whether the owner finds a bad checkpoint, and releases its lease."""
    return step.action == "release" and step.outcome == "ok" and not after.live


@RECOVERY.sometimes()
def a_bad_checkpoint_is_found(before: State, after: State, step: Step) -> object:
    """An owner that has checked the checkpoint before finds it bad, and releases its live lease."""
    return finds_bad(before, after, step) and before.live


@RECOVERY.sometimes()
def a_damaged_checkpoint_is_found(before: State, after: State, step: Step) -> object:
    """An owner finds that the checkpoint was damaged since it was checked."""
    return finds_bad(before, after, step) and before.fate == Fate.damaged


@RECOVERY.sometimes()
def a_tampered_checkpoint_is_found(before: State, after: State, step: Step) -> object:
    """An owner finds that the checkpoint was tampered with, although its hash fits."""
    return (
        finds_bad(before, after, step)
        and before.fate == Fate.tampered
        and before.checkpoint.present
        and before.checkpoint.hash
    )


@RECOVERY.sometimes()
def a_replaced_checkpoint_is_found(before: State, after: State, step: Step) -> object:
    """An owner finds another instance's checkpoint, or one of a commit that was refused."""
    return (
        finds_bad(before, after, step)
        and before.fate == Fate.replaced
        and before.checkpoint.present
        and before.checkpoint.state == before.state_version
    )


@RECOVERY.sometimes()
def an_older_checkpoint_is_found(before: State, after: State, step: Step) -> object:
    """An owner finds a sound checkpoint of its instance, and it is of an earlier state version."""
    return (
        finds_bad(before, after, step)
        and before.fate == Fate.replaced
        and before.checkpoint.present
        and before.checkpoint.ours
        and before.checkpoint.state < before.state_version
    )


@RECOVERY.sometimes()
def a_checkpoint_of_a_former_owner_is_resumed(before: State, after: State) -> object:
    """A new owner resumes from what a former one committed."""
    return some(
        workers,
        lambda w: (
            takes_up(before, after, w)
            and before.checkpoint.present
            and before.checkpoint.lease < before.believes[w].lease
        ),
    )


@RECOVERY.sometimes()
def a_worker_begins_with_nothing_done(before: State, after: State, step: Step) -> object:
    """A worker begins with the first step."""
    return step.action == "begin" and somebody_takes_up(before, after)


@RECOVERY.sometimes()
def a_stale_recovery_is_refused(before: State, after: State, step: Step) -> object:
    """A worker whose recovery was overtaken by another commits, and is refused."""
    return step.action == "commit" and step.outcome == "stale-lease-version" and before.owner.present


@RECOVERY.sometimes()
def a_recovery_commits_after_takeover(before: State, after: State) -> object:
    """A commit is accepted under the second or a later lease version."""
    return core.accepted(before, after) and before.lease_version >= 2


@RECOVERY.sometimes()
def a_recovery_finds_a_succeeded_step(before: State, after: State) -> object:
    """A worker takes up an instance of which a step has succeeded."""
    return some(workers, lambda w: takes_up(before, after, w) and after.view[w].done >= 1)


@RECOVERY.sometimes()
def a_recovery_finds_a_waiting_step(before: State, after: State) -> object:
    """A worker takes up an instance of which a step waits."""
    return some(workers, lambda w: takes_up(before, after, w) and after.view[w].now == Status.waiting)


@RECOVERY.sometimes()
def a_step_that_waited_runs(before: State, after: State) -> object:
    """What a step waits for has come, and it runs."""
    return now(before).steps.now == Status.waiting and now(after).steps.now == Status.running


@RECOVERY.sometimes()
def a_worker_finds_another_definition(before: State, after: State) -> object:
    """A new owner finds that its code is not of the instance's definition."""
    return some(workers, lambda w: takes_up(before, after, w) and after.phase[w] == Phase.misfit)


@RECOVERY.sometimes()
def an_instance_is_migrated(before: State, after: State) -> object:
    """A commit pins the instance to another definition."""
    return now(before).definition != now(after).definition


@RECOVERY.sometimes()
def a_migrated_instance_goes_on(before: State, after: State) -> object:
    """A step changes under the definition that the instance was migrated to."""
    return now(before).definition != 0 and now(before).steps != now(after).steps


@RECOVERY.sometimes()
def an_instance_is_handed_to_a_person(before: State, after: State) -> object:
    """A commit hands the instance to a person."""
    return now(after).manual and not now(before).manual
