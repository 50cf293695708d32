"""What a checkpoint says, and what a worker asks of it before it resumes (§14).

A worker reads a checkpoint once, asks of what it has read, and resumes from that: nothing changes in between.
Its lease version is compared with that of the commit that made the row's state version, which stands in the
event log. The lease version of the row itself is always another one: who recovers has just raised it.
"""

from __future__ import annotations

from typing import Any

from fencepost.model.language import State, derived, switched
from fencepost.model.recovery.state import Checkpoint


def written(entry: Any, lease: object, state: object) -> Any:
    """A checkpoint as an owner writes it: of a known format, of this instance, with hash and MAC."""
    return Checkpoint(
        readable=True,
        ours=True,
        lease=lease,
        state=state,
        definition=entry.definition,
        steps=entry.steps,
        hash=True,
        mac=True,
    )


@derived
def is_whole(s: State) -> object:
    """Whether there is a checkpoint whose format is known and whose hash fits: no accident befell it."""
    return s.checkpoint.present and s.checkpoint.readable and s.checkpoint.hash


@derived
def is_vouched_for(s: State) -> object:
    """Whether the checkpoint's MAC fits, where a key is configured: nobody without the key changed it."""
    return switched("mac_key_missing") or (s.checkpoint.present and s.checkpoint.mac)


@derived
def is_of_the_row(s: State, state: object) -> object:
    """Whether the checkpoint is that of this instance with this state version."""
    return (
        s.checkpoint.present
        and s.checkpoint.ours
        and s.checkpoint.state == state
        and s.checkpoint.lease == s.log[state].lease
        and s.checkpoint.definition == s.log[state].definition
    )


@derived
def is_unwritten(s: State, state: object) -> object:
    """Whether there is no checkpoint, as there is none before the first commit."""
    return not s.checkpoint.present and state == 0


@derived
def is_sound(s: State, state: object) -> object:
    """Whether a worker that has read this state version in the row may resume from what it finds."""
    return is_unwritten(s, state) or (is_whole(s) and is_vouched_for(s) and is_of_the_row(s, state))
