"""Invariants that the proofs about recovery need: true, and checked like claims, but no promises.

First what workers believe; then what a checkpoint says that nobody changed, and what becomes of one that was.
"""

from __future__ import annotations

from fencepost.model import State, every, switched
from fencepost.model.core.state import state_versions, workers
from fencepost.model.recovery.state import Fate, Phase, Status, read
from fencepost.properties import supporting as core
from fencepost.properties import supporting_effects as effects
from fencepost.properties.recovery import RECOVERY

# As in the core and in effects, of which the leases are, and commits that are decided at once.

for _invariant in (
    core.the_owner_holds_the_current_version,
    core.the_dead_believe_nothing,
    core.believed_leases_were_acquired,
    core.believed_states_were_reached,
    effects.believers_acquired_their_lease,
    effects.owners_know_the_current_state,
):
    RECOVERY.supporting(supports=("S14", "S22", "S23"))(_invariant)


@RECOVERY.supporting(supports=("S14", "S22", "S23"))
def only_who_has_a_lease_is_beyond_the_check(s: State) -> object:
    """A worker has got beyond its first check exactly when it takes a lease for its own."""
    return every(
        workers,
        lambda w: s.believes[w].present == (s.phase[w] != Phase.idle and s.phase[w] != Phase.checked),
    )


@RECOVERY.supporting(supports=("S22",))
def a_misfit_has_other_code(s: State) -> object:
    """A worker that goes on with no step has code of another definition than the instance is pinned to."""
    return every(
        workers,
        lambda w: (
            not s.believes[w].present or s.phase[w] != Phase.misfit or s.code[w] != read(s, w).definition
        ),
    )


@RECOVERY.supporting(supports=("S14", "S22", "S23"))
def the_log_begins_with_nothing_done(s: State) -> object:
    """Before the first commit no step is done, runs or waits, and no lease was needed for that."""
    return every(
        state_versions,
        lambda v: (
            v != 0
            or (s.log[v].lease == 0 and s.log[v].steps.done == 0 and s.log[v].steps.now == Status.pending)
        ),
    )


@RECOVERY.supporting(supports=("S14", "S22", "S23"))
def there_is_a_checkpoint_only_after_a_commit(s: State) -> object:
    """Before the first commit there is no checkpoint, nor one that was damaged or replaced."""
    return s.state_version >= 1 or (not s.checkpoint.present and s.fate == Fate.as_written)


@RECOVERY.supporting(supports=("S14", "S22", "S23"))
def a_sound_checkpoint_says_what_was_committed(s: State) -> object:
    """A checkpoint of this instance whose MAC fits has the steps of the commit that it was written with."""
    return (
        not s.checkpoint.present
        or not s.checkpoint.mac
        or not s.checkpoint.ours
        or (
            s.checkpoint.state <= s.state_version
            and (
                s.checkpoint.lease != s.log[s.checkpoint.state].lease
                or s.checkpoint.steps == s.log[s.checkpoint.state].steps
            )
        )
    )


@RECOVERY.supporting(supports=("S14", "S22", "S23"))
def only_who_tampers_makes_the_hash_fit(s: State) -> object:
    """Where nobody tampers with checkpoints, one whose MAC does not fit has no hash that fits, either."""
    return (
        switched("checkpoint_tampered")
        or not s.checkpoint.present
        or s.checkpoint.mac
        or not s.checkpoint.hash
    )


@RECOVERY.supporting(supports=("S23",))
def damage_shows_in_the_hash(s: State) -> object:
    """A checkpoint that was damaged is gone, or its hash does not fit."""
    return s.fate != Fate.damaged or not s.checkpoint.present or not s.checkpoint.hash


@RECOVERY.supporting(supports=("S23",))
def tampering_shows_in_the_mac(s: State) -> object:
    """A checkpoint that was tampered with is there, and its MAC does not fit."""
    return s.fate != Fate.tampered or (s.checkpoint.present and not s.checkpoint.mac)


@RECOVERY.supporting(supports=("S23",))
def what_was_replaced_shows_in_names_and_versions(s: State) -> object:
    """A checkpoint in place of the latest names another instance, or was not written with its commit."""
    return s.fate != Fate.replaced or (
        s.checkpoint.present
        and (
            not s.checkpoint.ours
            or s.checkpoint.state != s.state_version
            or s.checkpoint.lease != s.log[s.state_version].lease
        )
    )
