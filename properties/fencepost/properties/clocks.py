"""What is promised about clocks: S1, S3, S5, S11, S12, S25 and S27, whatever clocks do."""

from __future__ import annotations

from fencepost.model import State, Step, every, some
from fencepost.model.clocks.state import now
from fencepost.model.core.state import workers
from fencepost.properties.claims import Claims

CLOCKS = Claims("clocks", about="clocks")


@CLOCKS.each_step("S1", section="§4", witnesses=("a_former_owner_commits", "an_owner_commits"))
def stale_worker_never_overrides(before: State, after: State) -> object:
    """An accepted commit was made by the owner of the current lease version, by whatever clock."""
    return after.state_version == before.state_version or some(
        workers,
        lambda w: (
            before.owner == w
            and before.believes[w] == before.lease_version
            and after.made_by[after.state_version] == w
        ),
    )


@CLOCKS.each_step("S4", section="§4", witnesses=("an_owner_commits", "a_lease_is_taken_over"))
def state_version_counts_commits(before: State, after: State, step: Step) -> object:
    """Each accepted commit raises the state version by one, and nothing else moves it."""
    if step.action == "commit" and step.outcome == "ok":
        return after.state_version == before.state_version + 1
    return after.state_version == before.state_version


@CLOCKS.each_step("S3", section="§3", witnesses=("a_lease_is_taken_over", "the_versions_are_used_up"))
def lease_version_only_grows(before: State, after: State) -> object:
    """Each acquire raises the lease version by one, and nothing else changes it; it never wraps."""
    return after.lease_version == before.lease_version or (
        after.lease_version == before.lease_version + 1 and not before.exhausted
    )


@CLOCKS.each_step("S5", section="§3", witnesses=("a_lease_is_taken_over", "somebody_asks_too_early"))
def takeover_only_after_expiry(before: State, after: State) -> object:
    """A lease is given only when the one before is over by the store's now."""
    return after.lease_version == before.lease_version or now(before) >= before.expires_at


@CLOCKS.each_step("S5", section="§3", witnesses=("a_lease_is_taken_over", "an_owner_commits"))
def only_an_acquire_gives_time(before: State, after: State, step: Step) -> object:
    """The end of a lease is moved by an acquire alone: to as many ticks from now as were asked for."""
    if step.action != "acquire" or step.outcome != "ok":
        return after.expires_at == before.expires_at
    return some(
        workers,
        lambda w: (
            before.asks[w].present
            and not after.asks[w].present
            and after.owner == w
            and after.expires_at == now(before) + before.asks[w].value
        ),
    )


@CLOCKS.each_step("S27", section="§4", witnesses=("an_owner_commits", "an_owner_commits_too_late"))
def commit_only_while_live(before: State, after: State) -> object:
    """An accepted commit was made while its lease was live by the store's now."""
    return after.state_version == before.state_version or now(before) < before.expires_at


@CLOCKS.each_step(
    "S27", section="§1", witnesses=("the_clock_is_behind_the_mark", "an_owner_commits_too_late")
)
def what_is_over_stays_over(before: State, after: State, step: Step) -> object:
    """A lease that one operation found to be over is over for every later one, also of a clock set back."""
    over = before.lease_version >= 1 and before.found_over == before.lease_version
    return not over or (after.state_version == before.state_version and step.outcome != "lease-live")


@CLOCKS.each_step("S27", section="§1", witnesses=("the_clock_is_behind_the_mark",))
def now_never_steps_back(before: State, after: State, step: Step) -> object:
    """Each operation of the store, refused or not, raises its mark to its now; nothing else moves it."""
    if step.action == "acquire" or step.action == "commit":
        return after.mark == now(before)
    return after.mark == before.mark


@CLOCKS.each_step("S27-count", section="§3", needs_off=("clock_skewed",), witnesses=("an_effect_starts",))
def who_starts_an_effect_holds_the_lease(before: State, after: State) -> object:
    """Where clocks run alike, a worker that starts an effect within its own count has a live lease."""
    return every(
        workers,
        lambda w: (
            before.sending[w].present
            or not after.sending[w].present
            or (before.believes[w] == before.lease_version and now(before) < before.expires_at)
        ),
    )


@CLOCKS.each_step("S11", section="§7", witnesses=("an_effect_of_a_former_owner_is_refused",))
def fence_only_rises(before: State, after: State) -> object:
    """The fence never falls."""
    return after.fence >= before.fence


@CLOCKS.each_step(
    "S12",
    section="§7",
    witnesses=(
        "an_effect_of_a_former_owner_is_refused",
        "an_effect_of_a_former_owner_comes_first",
        "somebody_cut_off_starts_an_effect",
    ),
)
def stale_effect_never_lands_after_contact(before: State, after: State) -> object:
    """After an effect of one owner none of an older owner takes place, whatever clocks and networks do."""
    return after.effects == before.effects or some(
        workers,
        lambda w: (
            before.sending[w].present
            and not after.sending[w].present
            and before.sending[w] >= before.contacted
            and after.fence == before.sending[w]
        ),
    )


@CLOCKS.each_step("S25", section="§2", witnesses=("an_owner_commits_too_late", "somebody_asks_too_early"))
def refused_changes_nothing(before: State, after: State, step: Step) -> object:
    """A refusal leaves the row and the downstream as they were; only the store's mark may have risen."""
    return not step.refused or (
        after.owner == before.owner
        and after.lease_version == before.lease_version
        and after.expires_at == before.expires_at
        and after.state_version == before.state_version
        and after.fence == before.fence
        and after.effects == before.effects
    )


# Witnesses: each a state or step that must be reachable, or the claims that name it say nothing.


@CLOCKS.sometimes()
def an_owner_commits(before: State, after: State) -> object:
    """A commit is accepted."""
    return after.state_version != before.state_version


@CLOCKS.sometimes()
def a_former_owner_commits(before: State, after: State, step: Step) -> object:
    """A worker that is no longer the owner commits, and is refused."""
    return step.outcome == "stale-lease-version"


@CLOCKS.sometimes()
def an_owner_commits_too_late(before: State, after: State, step: Step) -> object:
    """The last owner commits after its lease, and is refused."""
    return step.outcome == "lease-expired"


@CLOCKS.sometimes()
def a_lease_is_taken_over(before: State, after: State) -> object:
    """A second lease is given."""
    return before.lease_version == 1 and after.lease_version == 2


@CLOCKS.sometimes()
def somebody_asks_too_early(before: State, after: State, step: Step) -> object:
    """A lease is asked for while one is live."""
    return step.outcome == "lease-live"


@CLOCKS.sometimes()
def the_versions_are_used_up(before: State, after: State, step: Step) -> object:
    """A lease is asked for, and no larger version can be stored."""
    return step.outcome == "lease-version-exhausted"


@CLOCKS.sometimes()
def the_clock_is_behind_the_mark(s: State) -> object:
    """The store's clock shows less than the store's now, of a lease that one operation found to be over."""
    return s.clock < s.mark and s.lease_version >= 1 and s.mark >= s.expires_at and s.clock < s.expires_at


@CLOCKS.sometimes()
def an_effect_starts(before: State, after: State) -> object:
    """A worker sends an effect."""
    return some(workers, lambda w: not before.sending[w].present and after.sending[w].present)


@CLOCKS.sometimes()
def somebody_cut_off_starts_an_effect(before: State, after: State) -> object:
    """A worker that cannot reach the store sends an effect."""
    return some(
        workers,
        lambda w: before.cut_off[w] and not before.sending[w].present and after.sending[w].present,
    )


@CLOCKS.sometimes()
def an_effect_of_a_former_owner_is_refused(before: State, after: State, step: Step) -> object:
    """An effect of an older owner arrives after one of a newer, and is refused."""
    return step.outcome == "stale-token"


@CLOCKS.sometimes()
def an_effect_of_a_former_owner_comes_first(before: State, after: State) -> object:
    """An effect of a former owner takes place before the new owner's first: a lease does not call it back."""
    return after.effects != before.effects and after.fence < before.lease_version
