"""What the core promises: S1–S5, S7, S25, S27 and L3, each with a witness of its premise.

Predicates say what must hold, never how the model brings it about. `supporting.py` has the invariants that
their proofs need.
"""

from __future__ import annotations

from collections.abc import Callable

from fencepost.model import State, Step, can_move, derived, every, implies, some
from fencepost.model.core.state import (
    CLOCK,
    SUPERVISOR,
    WORKER,
    Answer,
    commits,
    in_log,
    state_versions,
    workers,
)
from fencepost.properties.claims import Claims

CORE = Claims("core")


@derived
def accepted(before: State, after: State) -> object:
    """Whether this step accepted a commit."""
    return after.state_version != before.state_version


@derived
def entry_was(before: State, after: State, fits: Callable[[State], object]) -> object:
    """Whether the commit that this step entered in the log is there, and `fits` holds of what it said."""
    entered = after.log[after.state_version]
    return entered.present and before.request[entered].present and fits(before.request[entered].value)


@CORE.each_step(
    "S1", section="§4", witnesses=("a_stale_commit_is_refused", "a_commit_is_accepted_after_takeover")
)
def stale_worker_never_overrides(before: State, after: State) -> object:
    """An accepted commit was made by the owner of the current lease version."""
    return implies(
        accepted(before, after), lambda: entry_was(before, after, lambda sent: sent.by == before.owner)
    )


@CORE.each_step(
    "S2", section="§4", witnesses=("a_stale_commit_is_refused", "a_commit_on_a_stale_state_is_refused")
)
def commit_matches_both_versions(before: State, after: State) -> object:
    """An accepted commit expected exactly the lease version and the state version that stood."""
    return implies(
        accepted(before, after),
        lambda: entry_was(
            before,
            after,
            lambda sent: sent.lease == before.lease_version and sent.state == before.state_version,
        ),
    )


@CORE.each_step("S3", section="§3", witnesses=("a_lease_is_taken_over",))
def lease_version_only_grows(before: State, after: State, step: Step) -> object:
    """Each acquire raises the lease version by exactly one, and nothing else moves it."""
    if step.action == "acquire" and step.outcome == "ok":
        return after.lease_version == before.lease_version + 1
    return after.lease_version == before.lease_version


@CORE.always("S3", section="§3", witnesses=("a_restarted_worker_holds_a_lease",))
def no_version_held_by_two(s: State) -> object:
    """A lease version that a worker takes for its own was acquired by that worker in that incarnation."""
    return every(
        workers,
        lambda w: (
            not s.believes[w].present
            or (
                s.holder[s.believes[w].lease].present
                and s.holder[s.believes[w].lease].worker == w
                and s.holder[s.believes[w].lease].incarnation == s.incarnation[w]
            )
        ),
    )


@CORE.each_step("S4", section="§4", witnesses=("a_commit_is_accepted_after_takeover",))
def state_version_counts_commits(before: State, after: State, step: Step) -> object:
    """The state version rises by one with each accepted commit, and nothing else moves it."""
    if step.action == "decide_commit" and not step.refused:
        repeated = every(state_versions, lambda v: before.log[v] == after.log[v])
        rose = after.state_version == before.state_version + 1
        return (repeated and after.state_version == before.state_version) or (not repeated and rose)
    return after.state_version == before.state_version


@CORE.each_step(
    "S5",
    section="§3",
    witnesses=("a_lease_is_taken_over", "a_lease_expires", "acquiring_a_live_lease_is_refused"),
)
def takeover_only_after_expiry(before: State, after: State) -> object:
    """A lease begins only with an acquire, and an acquire is accepted only when the former lease is over."""
    acquired = after.lease_version != before.lease_version or after.owner != before.owner
    begins = after.live and not before.live
    return (not acquired or not before.live) and (not begins or after.lease_version != before.lease_version)


@CORE.each_step("S5", section="§3", witnesses=("a_lease_is_released",))
def only_expiry_or_the_owner_ends_a_lease(before: State, after: State, step: Step) -> object:
    """A live lease ends by its time, or by the release of the worker that holds the current lease version."""
    if not before.live or after.live or step.action == "expire":
        return True
    return some(
        workers,
        lambda w: (
            before.believes[w].present
            and before.believes[w].lease == before.lease_version
            and not after.believes[w].present
        ),
    )


@CORE.each_step("S5", section="§3", witnesses=("a_lease_is_released",))
def a_release_ends_the_lease(before: State, after: State, step: Step) -> object:
    """After a release that is answered ok, the lease is over."""
    return step.action != "release" or step.outcome != "ok" or not after.live


@CORE.each_step("S6-end", section="§5", witnesses=("a_commit_after_the_end_is_refused",))
def the_end_is_final(before: State, after: State) -> object:
    """A finished instance stays finished; no commit and no lease is accepted any more."""
    return not before.finished or (
        after.finished
        and after.state_version == before.state_version
        and after.lease_version == before.lease_version
    )


@CORE.always("S7", section="§4", witnesses=("a_second_commit_is_logged",))
def log_has_no_gap(s: State) -> object:
    """The event log has one entry for each state version up to the current one, and none above."""
    return every(state_versions, lambda v: s.log[v].present == (v >= 1 and v <= s.state_version))


@CORE.always("S7", section="§4", witnesses=("a_logged_commit_arrives_again",))
def log_has_each_commit_once(s: State) -> object:
    """No commit stands in the event log twice."""
    return every(
        state_versions, state_versions, lambda v, u: v == u or not s.log[v].present or s.log[v] != s.log[u]
    )


@CORE.each_step("S7", section="§4")
def log_is_never_rewritten(before: State, after: State) -> object:
    """An entry of the event log stays as it is."""
    return every(state_versions, lambda v: not before.log[v].present or before.log[v] == after.log[v])


@CORE.always("S7", section="§2", witnesses=("an_accepted_commit_is_answered",))
def what_was_answered_ok_is_in_the_log(s: State) -> object:
    """A commit that was answered ok is in the event log."""
    return every(commits, lambda c: s.answer[c] != Answer.ok or in_log(s, c))


@CORE.always("S7", section="§2", witnesses=("a_stale_commit_is_refused",))
def what_was_refused_is_not_in_the_log(s: State) -> object:
    """A commit that was answered with a definite refusal is not in the event log."""
    return every(
        commits, lambda c: s.answer[c] == Answer.none or s.answer[c] == Answer.ok or not in_log(s, c)
    )


@CORE.each_step(
    "S25", section="§2", witnesses=("a_stale_commit_is_refused", "acquiring_a_live_lease_is_refused")
)
def refused_changes_nothing(before: State, after: State, step: Step) -> object:
    """A call that is refused leaves the row and the event log as they were."""
    return not step.refused or (
        after.owner == before.owner
        and after.lease_version == before.lease_version
        and after.live == before.live
        and after.state_version == before.state_version
        and after.finished == before.finished
        and every(state_versions, lambda v: after.log[v] == before.log[v])
    )


@CORE.each_step("S27", section="§4", witnesses=("a_commit_after_expiry_is_refused",))
def commit_only_while_live(before: State, after: State) -> object:
    """An accepted commit was made while its lease was live."""
    return not accepted(before, after) or before.live


@CORE.always("L3", section="§17", witnesses=("all_workers_are_down", "every_worker_is_without_a_lease"))
def no_stuck_state(s: State) -> object:
    """While the instance is not finished, a worker, the clock or a restart can still move it on."""
    return s.finished or can_move(s, WORKER, CLOCK, SUPERVISOR)


# Witnesses: each a state or step that must be reachable, or the claims that name it say nothing.


@CORE.sometimes()
def a_stale_commit_is_refused(before: State, after: State, step: Step) -> object:
    """A commit of a former owner arrives after a takeover and is refused."""
    return step.action == "decide_commit" and step.outcome == "stale-lease-version" and before.owner.present


@CORE.sometimes()
def a_commit_on_a_stale_state_is_refused(before: State, after: State, step: Step) -> object:
    """The owner's second commit on the same state version is refused."""
    return step.action == "decide_commit" and step.outcome == "stale-state-version" and before.owner.present


@CORE.sometimes()
def a_commit_after_expiry_is_refused(before: State, after: State, step: Step) -> object:
    """A commit of the latest owner arrives when its lease is over, and is refused."""
    return step.action == "decide_commit" and step.outcome == "lease-expired" and before.owner.present


@CORE.sometimes()
def a_commit_after_the_end_is_refused(before: State, after: State, step: Step) -> object:
    """The owner's commit arrives when the instance is finished, and is refused."""
    return step.action == "decide_commit" and step.outcome == "finished" and before.live


@CORE.sometimes()
def a_commit_is_accepted_after_takeover(before: State, after: State) -> object:
    """A commit is accepted under the second or a later lease version."""
    return accepted(before, after) and before.lease_version >= 2


@CORE.sometimes()
def a_lease_is_taken_over(before: State, after: State) -> object:
    """Another worker acquires what one worker held."""
    return before.owner.present and after.owner.present and before.owner.worker != after.owner.worker


@CORE.sometimes()
def a_lease_is_released(before: State, after: State, step: Step) -> object:
    """A worker ends its live lease itself."""
    return step.action == "release" and step.outcome == "ok" and before.live and not after.live


@CORE.sometimes()
def a_lease_expires(before: State, after: State, step: Step) -> object:
    """The time of a live lease ends while its owner takes it for its own."""
    return step.action == "expire" and before.live and not after.live


@CORE.sometimes()
def a_restarted_worker_holds_a_lease(s: State) -> object:
    """A worker in its second incarnation takes a lease for its own."""
    return not every(workers, lambda w: not s.believes[w].present or s.incarnation[w] == 0)


@CORE.sometimes()
def acquiring_a_live_lease_is_refused(before: State, after: State, step: Step) -> object:
    """A worker tries to acquire while another's lease is live."""
    return step.action == "acquire" and step.outcome == "lease-live" and before.owner.present


@CORE.sometimes()
def a_second_commit_is_logged(s: State) -> object:
    """The event log has two entries."""
    return s.state_version >= 2


@CORE.sometimes()
def a_logged_commit_arrives_again(before: State, after: State, step: Step) -> object:
    """A copy of an accepted commit arrives, is answered ok and changes nothing."""
    return (
        step.action == "decide_commit"
        and step.outcome == "ok"
        and after.state_version == before.state_version
    )


@CORE.sometimes()
def an_accepted_commit_is_answered(s: State) -> object:
    """The answer ok is on its way."""
    return not every(commits, lambda c: s.answer[c] != Answer.ok)


@CORE.sometimes()
def all_workers_are_down(s: State) -> object:
    """No worker runs."""
    return every(workers, lambda w: not s.up[w])


@CORE.sometimes()
def every_worker_is_without_a_lease(s: State) -> object:
    """The lease is over and no worker takes one for its own."""
    return not s.live and s.lease_version > 0 and every(workers, lambda w: not s.believes[w].present)
