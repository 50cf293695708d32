"""The lease, and what a worker reads, learns and forgets (§1, §3). Renewal and release: see the core."""

from __future__ import annotations

from fencepost.model.core import leases
from fencepost.model.core.commits import refuse_unless_current
from fencepost.model.core.state import STORE, WORKER, Versions, acts, me, workers
from fencepost.model.domains import BOOLEAN, Element, Member
from fencepost.model.language import State, absent, derived, ite, switched, when
from fencepost.model.workflow.state import Answer, Cause, Knows, Seen, Status, is_under_way, workflow


def read(s: State, w: Element) -> None:
    """Worker `w` reads the row, its steps, and whether the instance unwinds."""
    s.believes[w] = Versions(lease=s.lease_version, state=s.state_version)
    s.unwinds[w] = s.cause != Cause.none
    s.seen.update_where(lambda u, x, seen: ite(u == w, Seen(status=s.status[x], intent=s.intent[x]), seen))


def forget(s: State, w: Element) -> None:
    """Worker `w` no longer takes itself for the owner, and forgets what it knew."""
    s.believes[w] = absent
    s.unwinds[w] = False
    s.seen.update_where(lambda u, _, seen: ite(u == w, Seen(status=Status.pending, intent=0), seen))
    s.knows.update_where(lambda u, _, known: ite(u == w, Knows.nothing, known))


def learn_acquired(s: State, w: Element, lost: bool, answer: Member) -> None:
    """A new owner has sent nothing under its lease version, and knows nothing of what others have sent."""
    if lost:
        s.unsure[w] = True
    elif answer == Answer.ok:
        read(s, w)


workflow.operation(WORKER, home=STORE, answered=learn_acquired, w=workers, lost=BOOLEAN)(leases.acquire)


@workflow.action(WORKER, w=workers)
def reread(s: State, w: Element) -> None:
    """A worker unsure of its call reads the row; under a lease of its own that it finds, it may have sent."""
    when(acts(s, w))
    when(s.unsure[w])

    s.unsure[w] = False
    if s.owner == me(s, w):
        read(s, w)


def commit_on(s: State, w: Element, lost: bool) -> None:
    """What every commit begins with: a worker that takes itself for the owner, and gate 2."""
    when(acts(s, w))
    when(s.believes[w].present)
    when(not lost or switched("reply_lost"))
    refuse_unless_current(s, me(s, w), s.believes[w].lease, s.believes[w].state)


def learn_committed(s: State, w: Element, lost: bool, answer: Member) -> None:
    """With the answer ok the worker knows the new state; no longer the owner, it stops acting as one."""
    if lost or answer == Answer.stale_state_version:
        forget(s, w)
        s.unsure[w] = True
    elif answer == Answer.ok:
        read(s, w)
    elif is_disowned(answer):
        forget(s, w)


@derived
def is_disowned(answer: Member) -> object:
    """Whether an answer says that who asked is not the owner, or that there is nothing left to own."""
    return (
        answer == Answer.stale_lease_version
        or answer == Answer.not_the_owner
        or answer == Answer.lease_expired
        or answer == Answer.finished
    )


def learn_intended(s: State, w: Element, x: Element, lost: bool, answer: Member) -> None:
    """Who committed a new intent has not sent it; with one that waits for approval nothing is under way."""
    learn_committed(s, w, lost, answer)
    if not lost and answer == Answer.ok:
        s.knows[w, x] = ite(s.status[x] == Status.waiting_approval, Knows.nothing, Knows.unsent)


def learn_ended(s: State, w: Element, x: Element, lost: bool, answer: Member) -> None:
    """Of a step that has nothing under way there is nothing to know."""
    learn_committed(s, w, lost, answer)
    if not lost and answer == Answer.ok:
        s.knows[w, x] = Knows.nothing


@derived
def known_undone(s: State, w: Element, x: Element) -> object:
    """Whether worker `w` knows that the effect under way has not happened, and never will."""
    return s.knows[w, x] == Knows.unsent or s.knows[w, x] == Knows.not_happened


@derived
def is_unknown(s: State, w: Element, x: Element) -> object:
    """Whether worker `w` does not know what became of the effect under way."""
    return not known_undone(s, w, x) and s.knows[w, x] != Knows.receipt


@derived
def sees_under_way(s: State, w: Element, x: Element) -> object:
    """Whether worker `w` last read that the step's own effect is under way."""
    return s.believes[w].present and is_under_way(s.seen[w, x].status)
