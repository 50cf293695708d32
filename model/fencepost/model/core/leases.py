"""Gate 1, the lease: who may try (§3).

A call that a worker makes here is decided in one transaction of the store. What the worker then knows is
another matter: with `lost` the call was decided, and the answer never came.
"""

from __future__ import annotations

from fencepost.model.core.state import (
    STORE,
    WORKER,
    Answer,
    Versions,
    acts,
    core,
    me,
    workers,
)
from fencepost.model.domains import BOOLEAN, Element, Member
from fencepost.model.language import State, absent, refuse_unless, switched, when


def learn_acquired(s: State, w: Element, lost: bool, answer: Member) -> None:
    """The worker takes the lease for its own, or must re-read, or knows that it has none."""
    if lost:
        s.unsure[w] = True
    elif answer == Answer.ok:
        s.believes[w] = Versions(lease=s.lease_version, state=s.state_version)


def learn_kept(s: State, w: Element, lost: bool, answer: Member) -> None:
    """The worker keeps its lease after a renewal, must re-read, or stops acting as the owner."""
    if lost:
        s.unsure[w] = True
    if lost or answer != Answer.ok:
        s.believes[w] = absent


def learn_released(s: State, w: Element, lost: bool, answer: Member) -> None:
    """Whatever the answer to a release, the worker no longer acts as the owner."""
    s.believes[w] = absent
    if lost and answer == Answer.ok:
        s.unsure[w] = True


@core.operation(WORKER, home=STORE, answered=learn_acquired, w=workers, lost=BOOLEAN)
def acquire(s: State, w: Element, lost: bool) -> None:
    """A worker without a lease takes it over: allowed while no lease is live."""
    when(acts(s, w))
    when(not s.believes[w].present)
    when(not s.unsure[w])
    when(not lost or switched("reply_lost"))
    refuse_unless(not s.finished, "finished")
    refuse_unless(not s.live, "lease-live")

    s.owner = me(s, w)
    s.lease_version = s.lease_version + 1
    s.live = True
    s.holder[s.lease_version] = s.owner


@core.operation(WORKER, home=STORE, answered=learn_kept, w=workers, lost=BOOLEAN)
def renew(s: State, w: Element, lost: bool) -> None:
    """A worker moves the end of the lease that it takes for its own; what is over stays over."""
    when(acts(s, w))
    when(s.believes[w].present)
    when(not lost or switched("reply_lost"))
    refuse_unless(s.believes[w].lease == s.lease_version, "stale-lease-version")
    refuse_unless(s.owner == me(s, w), "not-the-owner")
    refuse_unless(s.live, "lease-expired")

    s.live = True


@core.operation(WORKER, home=STORE, answered=learn_released, w=workers, lost=BOOLEAN)
def release(s: State, w: Element, lost: bool) -> None:
    """A worker ends the lease that it takes for its own, live or not, for good."""
    when(acts(s, w))
    when(s.believes[w].present)
    when(not lost or switched("reply_lost"))
    refuse_unless(s.believes[w].lease == s.lease_version, "stale-lease-version")
    refuse_unless(s.owner == me(s, w), "not-the-owner")

    s.live = False


@core.action(WORKER, w=workers)
def reread(s: State, w: Element) -> None:
    """A worker that does not know what became of its call reads the row; it adopts a lease of its own."""
    when(acts(s, w))
    when(s.unsure[w])

    s.unsure[w] = False
    if s.owner == me(s, w):
        s.believes[w] = Versions(lease=s.lease_version, state=s.state_version)
