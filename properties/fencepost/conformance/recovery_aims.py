"""Where recoveries are sent besides: to each single reason for which a checkpoint must not be resumed.

A witness says that some bad checkpoint was found. An implementation that leaves out one question is only seen
where nothing but that question tells, so each such place is a goal of its own. Nothing is claimed here.
"""

from __future__ import annotations

from typing import Any

from fencepost.model import State, Step, derived, some
from fencepost.model.core.state import workers
from fencepost.model.recovery.state import Phase, Status
from fencepost.properties.claims import Claims
from fencepost.properties.recovery import finds_bad, now, takes_up

AIMS = Claims("aims of recoveries")


@derived
def is_of_this(s: State) -> Any:
    """Whether the checkpoint says nothing that is not so, but for its steps, hash and MAC."""
    return (
        s.checkpoint.present
        and s.checkpoint.readable
        and s.checkpoint.ours
        and s.checkpoint.state == s.state_version
        and s.checkpoint.lease == now(s).lease
        and s.checkpoint.definition == now(s).definition
    )


@derived
def is_sealed(s: State) -> Any:
    """Whether hash and MAC fit."""
    return s.checkpoint.present and s.checkpoint.readable and s.checkpoint.hash and s.checkpoint.mac


@AIMS.sometimes()
def nothing_but_the_hash_tells(before: State, after: State, step: Step) -> object:
    """An owner finds a checkpoint with other steps, whose hash does not fit."""
    return (
        finds_bad(before, after, step)
        and is_of_this(before)
        and not before.checkpoint.hash
        and before.checkpoint.steps != now(before).steps
    )


@AIMS.sometimes()
def nothing_but_the_mac_tells(before: State, after: State, step: Step) -> object:
    """An owner finds a checkpoint with other steps, whose hash fits and whose MAC does not."""
    return (
        finds_bad(before, after, step)
        and is_of_this(before)
        and before.checkpoint.hash
        and before.checkpoint.steps != now(before).steps
    )


@AIMS.sometimes()
def nothing_but_the_instance_tells(before: State, after: State, step: Step) -> object:
    """An owner finds a sealed checkpoint of another instance, with the versions of this one."""
    return (
        finds_bad(before, after, step)
        and is_sealed(before)
        and not before.checkpoint.ours
        and before.checkpoint.steps != now(before).steps
    )


@AIMS.sometimes()
def nothing_but_the_state_version_tells(before: State, after: State, step: Step) -> object:
    """An owner finds a sealed checkpoint of an earlier commit under the same lease."""
    return (
        finds_bad(before, after, step)
        and is_sealed(before)
        and before.checkpoint.ours
        and before.checkpoint.state != before.state_version
        and before.checkpoint.lease == now(before).lease
        and before.checkpoint.steps != now(before).steps
    )


@AIMS.sometimes()
def nothing_but_the_lease_version_tells(before: State, after: State, step: Step) -> object:
    """An owner finds the sealed checkpoint of a commit of a former owner, which was refused."""
    return (
        finds_bad(before, after, step)
        and is_sealed(before)
        and before.checkpoint.ours
        and before.checkpoint.state == before.state_version
        and before.checkpoint.lease != now(before).lease
        and before.checkpoint.steps != now(before).steps
    )


@AIMS.sometimes()
def another_format_is_found(before: State, after: State, step: Step) -> object:
    """An owner finds a checkpoint of a format that nobody knows."""
    return finds_bad(before, after, step) and before.checkpoint.present and not before.checkpoint.readable


@AIMS.sometimes()
def another_definition_is_found(before: State, after: State, step: Step) -> object:
    """An owner finds a checkpoint of another definition than the row's."""
    return (
        finds_bad(before, after, step)
        and before.checkpoint.present
        and before.checkpoint.definition != now(before).definition
    )


@AIMS.sometimes()
def a_lost_checkpoint_is_found(before: State, after: State, step: Step) -> object:
    """An owner finds no checkpoint where there must be one."""
    return finds_bad(before, after, step) and not before.checkpoint.present and before.state_version >= 1


# What a recovery finds that goes on.


@AIMS.sometimes()
def a_recovery_finds_a_running_step(before: State, after: State) -> object:
    """A worker takes up an instance of which a step runs."""
    return some(workers, lambda w: takes_up(before, after, w) and after.view[w].now == Status.running)


@AIMS.sometimes()
def a_migration_is_registered_already(before: State, after: State) -> object:
    """A worker whose code does not fit takes up an instance, and a migration to its code is registered."""
    return some(
        workers,
        lambda w: (
            takes_up(before, after, w)
            and after.phase[w] == Phase.misfit
            and before.registered[now(before).definition, before.code[w]]
        ),
    )


@AIMS.sometimes()
def the_way_back_is_registered(before: State, after: State) -> object:
    """The same where only a migration in the other direction is registered."""
    return some(
        workers,
        lambda w: (
            takes_up(before, after, w)
            and after.phase[w] == Phase.misfit
            and before.registered[before.code[w], now(before).definition]
            and not before.registered[now(before).definition, before.code[w]]
        ),
    )
