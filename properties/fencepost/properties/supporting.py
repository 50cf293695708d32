"""Invariants that the proofs of the core's claims need: true, and checked like claims, but no promises."""

from __future__ import annotations

from fencepost.model import State, every, switched
from fencepost.model.core.state import Answer, commits, lease_versions, state_versions, workers
from fencepost.properties.core import CORE


@CORE.supporting(supports=("S1", "S3", "S5"))
def the_owner_holds_the_current_version(s: State) -> object:
    """The owner in the row is who acquired the current lease version; before the first there is none."""
    if s.lease_version == 0:
        return not s.owner.present and not s.live
    return s.owner.present and s.holder[s.lease_version] == s.owner


@CORE.supporting(supports=("S1", "S3"))
def versions_above_are_unheld(s: State) -> object:
    """Nobody holds a lease version that was not acquired yet."""
    return every(lease_versions, lambda v: v <= s.lease_version or not s.holder[v].present)


@CORE.supporting(supports=("S3",))
def the_dead_believe_nothing(s: State) -> object:
    """A worker that does not run takes no lease for its own."""
    return every(workers, lambda w: s.up[w] or not s.believes[w].present)


@CORE.supporting(supports=("L3",))
def only_faults_stop_a_worker(s: State) -> object:
    """A worker is down only if workers crash, and paused only if they pause."""
    return every(workers, lambda w: (s.up[w] or switched("crash")) and (not s.paused[w] or switched("pause")))


@CORE.supporting(supports=("S3",))
def believed_leases_were_acquired(s: State) -> object:
    """A lease that a worker takes for its own has been acquired, and its state version has been reached."""
    return every(
        workers,
        lambda w: (
            not s.believes[w].present or (s.believes[w].lease >= 1 and s.believes[w].lease <= s.lease_version)
        ),
    )


@CORE.supporting(supports=("S7",))
def believed_states_were_reached(s: State) -> object:
    """A state version that a worker believes in has been reached."""
    return every(workers, lambda w: not s.believes[w].present or s.believes[w].state <= s.state_version)


@CORE.supporting(supports=("S1", "S2"))
def requests_name_a_past_holder(s: State) -> object:
    """A commit on its way was sent by who acquired the lease version that it names."""
    return every(
        commits,
        lambda c: (
            not s.request[c].present
            or (
                s.request[c].lease >= 1
                and s.request[c].lease <= s.lease_version
                and s.holder[s.request[c].lease] == s.request[c].by
            )
        ),
    )


@CORE.supporting(supports=("S7",))
def requests_name_a_reached_state(s: State) -> object:
    """A commit on its way expects a state version that has been reached."""
    return every(commits, lambda c: not s.request[c].present or s.request[c].state <= s.state_version)


@CORE.supporting(supports=("S7",))
def what_moves_was_sent(s: State) -> object:
    """Only commits that were sent are on their way, waited for, or answered."""
    return every(
        commits,
        lambda c: (
            s.request[c].present or (not s.in_flight[c] and not s.awaited[c] and s.answer[c] == Answer.none)
        ),
    )


@CORE.supporting(supports=("S7",))
def logged_commits_were_sent(s: State) -> object:
    """Only commits that were sent are in the event log, each above the state that it expected."""
    return every(
        state_versions,
        lambda v: (
            not s.log[v].present or (s.request[s.log[v]].present and s.request[s.log[v]].state + 1 == v)
        ),
    )
