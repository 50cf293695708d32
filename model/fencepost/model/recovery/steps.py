"""How a worker takes up an instance, in the order of §8; a crash may come anywhere, and two may race.

Check the checkpoint, which is advice and no more; acquire; check again, on the row that acquire returned, and
resume from what was checked; then go on with the steps, each change a commit. Where the code is not that of
the instance's definition, migrate or hand the instance to a person; where the checkpoint is bad, report it
and release the lease.
"""

from __future__ import annotations

from typing import Any

from fencepost.model.core.commits import refuse_unless_current
from fencepost.model.core.leases import acquire as take_lease
from fencepost.model.core.leases import release as end_lease
from fencepost.model.core.state import STORE, WORKER, Answer, Versions, acts, me, workers
from fencepost.model.domains import BOOLEAN, Element, Member
from fencepost.model.language import State, absent, derived, switched, when
from fencepost.model.recovery.checkpoints import (
    is_of_the_row,
    is_sound,
    is_unwritten,
    is_vouched_for,
    is_whole,
    written,
)
from fencepost.model.recovery.state import (
    NOTHING_DONE,
    REQUESTER,
    Change,
    Entry,
    Fate,
    Made,
    Phase,
    Status,
    in_work,
    read,
    recovery,
)


def step_down(s: State, w: Element) -> None:
    """Worker `w` no longer takes itself for the owner, and forgets what it knew of the instance."""
    s.believes[w] = absent
    s.phase[w] = Phase.idle
    s.view[w] = NOTHING_DONE


# From the check to the lease.


@recovery.action(WORKER, w=workers)
def check(s: State, w: Element) -> None:
    """A worker without a lease looks at the checkpoint: it goes on only with one that is sound as yet."""
    when(acts(s, w))
    when(s.phase[w] == Phase.idle)
    when(not s.unsure[w])

    if is_sound(s, s.state_version):
        s.phase[w] = Phase.checked
    else:
        s.reported = True


def learn_acquired(s: State, w: Element, lost: bool, answer: Member) -> None:
    """A new owner has the row as it was read with the lease; what it has checked before is advice."""
    if lost:
        s.unsure[w] = True
    elif answer == Answer.ok:
        s.believes[w] = Versions(lease=s.lease_version, state=s.state_version)
        s.phase[w] = Phase.acquired


@recovery.operation(WORKER, home=STORE, answered=learn_acquired, w=workers, lost=BOOLEAN)
def acquire(s: State, w: Element, lost: bool) -> None:
    """A worker that has found a sound checkpoint takes the lease over: allowed while no lease is live."""
    when(s.phase[w] == Phase.checked)
    take_lease(s, w, lost)


@recovery.action(WORKER, w=workers)
def reread(s: State, w: Element) -> None:
    """A worker unsure of its call reads the row; a lease of its own that it finds is acquired anew."""
    when(acts(s, w))
    when(s.unsure[w])

    s.unsure[w] = False
    if s.owner == me(s, w):
        s.believes[w] = Versions(lease=s.lease_version, state=s.state_version)
        s.phase[w] = Phase.acquired


# From the lease to the steps: the checks again, on the row that acquire returned.


def when_acquired(s: State, w: Element) -> None:
    """Worker `w` has the lease, as it believes, and has not resumed the steps yet."""
    when(acts(s, w))
    when(s.believes[w].present)
    when(s.phase[w] == Phase.acquired)


def compare_code(s: State, w: Element) -> None:
    """The worker goes on with the steps only where its code has the definition in the row."""
    if s.code[w] == read(s, w).definition:
        s.phase[w] = Phase.resumed
    else:
        s.phase[w] = Phase.misfit


@recovery.action(WORKER, w=workers)
def take_up(s: State, w: Element) -> None:
    """A new owner reads the checkpoint, checks it, and takes up the steps as it says they stand."""
    when_acquired(s, w)
    when(is_whole(s))
    when(is_vouched_for(s))
    when(is_of_the_row(s, s.believes[w].state))

    s.view[w] = s.checkpoint.steps
    compare_code(s, w)


@recovery.action(WORKER, w=workers)
def begin(s: State, w: Element) -> None:
    """A new owner finds that nothing was ever committed, and begins with the first step."""
    when_acquired(s, w)
    when(is_unwritten(s, s.believes[w].state))

    s.view[w] = NOTHING_DONE
    compare_code(s, w)


def learn_released(s: State, w: Element, lost: bool, answer: Member) -> None:
    """Whatever the answer to a release, the worker no longer acts as the owner."""
    step_down(s, w)
    if lost and answer == Answer.ok:
        s.unsure[w] = True


@recovery.operation(WORKER, home=STORE, answered=learn_released, w=workers, lost=BOOLEAN)
def release(s: State, w: Element, lost: bool) -> None:
    """A new owner that finds a bad checkpoint reports it and ends its lease. It writes nothing."""
    when(s.phase[w] == Phase.acquired)
    when(s.believes[w].present)
    when(not is_sound(s, s.believes[w].state))
    s.reported = True
    end_lease(s, w, lost)


# The steps: each change is a commit.


@derived
def has_grounds(s: State, w: Element, change: Member) -> object:
    """Whether worker `w` may change the instance so, by what it has resumed and what its code is."""
    if change == Change.start or change == Change.wait:
        return in_work(s, w) and s.view[w].now == Status.pending
    if change == Change.wake:
        return in_work(s, w) and s.view[w].now == Status.waiting and s.come
    if change == Change.succeed or change == Change.finish:
        return in_work(s, w) and s.view[w].now == Status.running
    if change == Change.migrate:
        return s.phase[w] == Phase.misfit and has_migration(s, w)
    return s.phase[w] == Phase.misfit and not has_migration(s, w)


@derived
def has_migration(s: State, w: Element) -> object:
    """Whether a migration is registered from the instance's definition to that of worker `w`'s code."""
    return s.registered[read(s, w).definition, s.code[w]]


@derived
def changed(s: State, w: Element, change: Member) -> Any:
    """The steps after a change. To migrate or to hand over the instance leaves them as they are."""
    if change == Change.start or change == Change.wake:
        return s.view[w].changed(now=Status.running)
    if change == Change.wait:
        return s.view[w].changed(now=Status.waiting)
    if change == Change.succeed or change == Change.finish:
        return s.view[w].changed(done=s.view[w].done + 1, now=Status.pending)
    return s.view[w]


@derived
def pinned(s: State, w: Element, change: Member) -> Any:
    """The definition after a change: a migration pins the instance to that of the worker's code."""
    if change == Change.migrate:
        return s.code[w]
    return read(s, w).definition


def learn_committed(s: State, w: Element, change: Member, lost: bool, answer: Member) -> None:
    """With the answer ok the worker goes on from what it has committed; else it recovers from the start."""
    if lost or answer != Answer.ok:
        step_down(s, w)
        s.unsure[w] = lost or answer == Answer.stale_state_version
    else:
        s.believes[w] = s.believes[w].changed(state=s.state_version)
        s.view[w] = read(s, w).steps
        if change == Change.migrate:
            s.phase[w] = Phase.resumed


@recovery.operation(WORKER, home=STORE, answered=learn_committed, w=workers, change=Change, lost=BOOLEAN)
def commit(s: State, w: Element, change: Member, lost: bool) -> None:
    """A worker commits a change, and with it the checkpoint that has what was changed."""
    when(acts(s, w))
    when(s.believes[w].present)
    when(not read(s, w).manual)
    when(has_grounds(s, w, change))
    when(not lost or switched("reply_lost"))
    refuse_unless_current(s, me(s, w), s.believes[w].lease, s.believes[w].state)

    s.made = Made(by=me(s, w), lease=s.believes[w].lease, state=s.believes[w].state, code=s.code[w])
    after = changed(s, w, change)
    entry = Entry(
        steps=after,
        definition=pinned(s, w, change),
        lease=s.lease_version,
        manual=change == Change.hand_over,
    )
    s.state_version = s.state_version + 1
    s.log[s.state_version] = entry
    s.checkpoint = written(entry, s.lease_version, s.state_version)
    s.fate = Fate.as_written
    s.finished = change == Change.finish
    if change == Change.wake:
        s.come = False


@recovery.action(REQUESTER)
def give(s: State) -> None:
    """What the step waits for comes: an approval, say. It lies in the inbox until an owner takes it up."""
    when(s.log[s.state_version].steps.now == Status.waiting)
    when(not s.come)

    s.come = True
