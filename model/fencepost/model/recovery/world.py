"""The clock, people who deploy, and everything that befalls workers and checkpoints (§16).

Only the latest checkpoint is damaged or tampered with, and only once: whatever else becomes of it, or of one
that takes its place, the same hash and the same MAC find that out, or do not.
"""

from __future__ import annotations

from typing import Any

from fencepost.model.core import world
from fencepost.model.core.state import CLOCK, SUPERVISOR, WORLD, lease_versions, state_versions, workers
from fencepost.model.domains import BOOLEAN, Element, Member
from fencepost.model.language import State, absent, ite, switched, when
from fencepost.model.recovery.checkpoints import is_of_the_row, written
from fencepost.model.recovery.state import (
    DEVELOPER,
    Fate,
    Status,
    Steps,
    definitions,
    recovery,
    step_numbers,
)
from fencepost.model.recovery.steps import step_down

recovery.action(CLOCK)(world.expire)
recovery.action(SUPERVISOR, switch="crash", w=workers)(world.restart)
recovery.action(WORLD, switch="pause", w=workers)(world.pause)
recovery.action(SUPERVISOR, switch="pause", w=workers)(world.resume)


@recovery.action(WORLD, switch="crash", w=workers)
def crash(s: State, w: Element) -> None:
    """A worker dies, and what it knew is gone."""
    when(s.up[w])

    s.up[w] = False
    s.paused[w] = False
    s.unsure[w] = False
    step_down(s, w)


# Definitions.


@recovery.action(DEVELOPER, switch="definition_changed", w=workers, d=definitions)
def deploy(s: State, w: Element, d: int) -> None:
    """A worker's process is replaced by one with code of another definition: a new incarnation."""
    when(s.up[w])
    when(s.code[w] != d)

    s.code[w] = d
    s.incarnation[w] = s.incarnation[w] + 1
    s.paused[w] = False
    s.unsure[w] = False
    step_down(s, w)


@recovery.action(DEVELOPER, switch="migration_registered", old=definitions, new=definitions)
def register_migration(s: State, old: int, new: int) -> None:
    """A migration from one definition to another is registered, for all workers."""
    when(old != new)
    when(not s.registered[old, new])

    s.registered[old, new] = True


# The checkpoint. With `knowingly`, somebody changes it on purpose, and computes its hash anew.


def when_intact(s: State, knowingly: bool) -> None:
    """The checkpoint is as the latest commit left it, and what is going to befall it can happen."""
    when(s.checkpoint.present and s.checkpoint.mac)
    when(is_of_the_row(s, s.state_version))
    if knowingly:
        when(switched("checkpoint_tampered"))
    else:
        when(switched("checkpoint_damaged"))


def spoil(s: State, knowingly: bool, changed: Any) -> None:
    """The changed checkpoint lies there now: its MAC does not fit, and its hash only if it was made to."""
    s.checkpoint = changed.changed(hash=knowingly, mac=False)
    s.fate = ite(knowingly, Fate.tampered, Fate.damaged)


@recovery.action(WORLD, knowingly=BOOLEAN, done=step_numbers, now=Status)
def change_content(s: State, knowingly: bool, done: int, now: Member) -> None:
    """Other steps stand in the checkpoint."""
    when_intact(s, knowingly)

    spoil(s, knowingly, s.checkpoint.changed(steps=Steps(done=done, now=now)))


@recovery.action(WORLD, knowingly=BOOLEAN, lease=lease_versions, state=state_versions)
def change_versions(s: State, knowingly: bool, lease: int, state: int) -> None:
    """Other versions stand in the checkpoint."""
    when_intact(s, knowingly)

    spoil(s, knowingly, s.checkpoint.changed(lease=lease, state=state))


@recovery.action(WORLD, knowingly=BOOLEAN, readable=BOOLEAN, ours=BOOLEAN, d=definitions)
def change_header(s: State, knowingly: bool, readable: bool, ours: bool, d: int) -> None:
    """Another format, another instance or another definition stands in the checkpoint."""
    when_intact(s, knowingly)

    spoil(s, knowingly, s.checkpoint.changed(readable=readable, ours=ours, definition=d))


@recovery.action(WORLD, switch="checkpoint_damaged")
def lose_checkpoint(s: State) -> None:
    """The checkpoint is gone, as if there had never been one."""
    when(s.checkpoint.present)

    s.checkpoint = absent
    s.fate = Fate.damaged


@recovery.action(WORLD, switch="checkpoint_replayed", v=state_versions)
def replay_earlier(s: State, v: int) -> None:
    """An earlier checkpoint of the instance takes the place of the present one."""
    when(v >= 1)
    when(v < s.state_version)

    s.checkpoint = written(s.log[v], s.log[v].lease, v)
    s.fate = Fate.replaced


@recovery.action(WORLD, switch="checkpoint_replayed", lease=lease_versions, done=step_numbers, now=Status)
def replay_refused(s: State, lease: int, done: int, now: Member) -> None:
    """A checkpoint takes its place that a former owner had made for a commit that was refused."""
    when(lease >= 1)
    when(lease < s.log[s.state_version].lease)

    put_in_place(s, lease, done, now, True)


@recovery.action(WORLD, switch="checkpoint_replayed", done=step_numbers, now=Status)
def misplace(s: State, done: int, now: Member) -> None:
    """The checkpoint of another instance, which has got as many versions, takes its place."""
    when(s.state_version >= 1)

    put_in_place(s, s.log[s.state_version].lease, done, now, False)


def put_in_place(s: State, lease: object, done: object, now: object, ours: bool) -> None:
    """A sound checkpoint with the present state version and definition takes the place of the latest."""
    latest = s.log[s.state_version]
    s.checkpoint = written(latest.changed(steps=Steps(done=done, now=now)), lease, s.state_version).changed(
        ours=ours
    )
    s.fate = Fate.replaced
