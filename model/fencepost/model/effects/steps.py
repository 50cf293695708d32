"""What a worker does with a step that has an outside effect, in the order of §6; a crash may come anywhere.

Commit `running` with the intent; send, with the lease version as the token; wait for the reply; commit what
came of it, with the receipt. Who takes over finds a step that is running and knows nothing: it asks by the
key, sends the same key again, or raises the fence and then asks; where nothing can be known it gives up.
"""

from __future__ import annotations

from fencepost.model.core import leases
from fencepost.model.core.commits import refuse_unless_current
from fencepost.model.core.state import STORE, WORKER, Versions, acts, me, workers
from fencepost.model.domains import BOOLEAN, Element, Member
from fencepost.model.effects.state import (
    DOWNSTREAM,
    Answer,
    Call,
    Entry,
    Intent,
    Kind,
    Knows,
    Status,
    calls,
    effects,
    fingerprints,
    intent_of,
    intent_versions,
    status,
    under_way,
)
from fencepost.model.language import State, absent, derived, ite, refuse_unless, switched, when


def step_down(s: State, w: Element) -> None:
    """Worker `w` no longer takes itself for the owner, and forgets what it knew of the effect."""
    s.believes[w] = absent
    s.knows[w] = Knows.nothing


# The lease. Renewing and releasing it are the core's business.


def learn_acquired(s: State, w: Element, lost: bool, answer: Member) -> None:
    """A new owner has sent nothing under its lease version, and knows nothing of what others have sent."""
    if lost:
        s.unsure[w] = True
    elif answer == Answer.ok:
        s.believes[w] = Versions(lease=s.lease_version, state=s.state_version)
        s.knows[w] = Knows.nothing


effects.operation(WORKER, home=STORE, answered=learn_acquired, w=workers, lost=BOOLEAN)(leases.acquire)


@effects.action(WORKER, w=workers)
def reread(s: State, w: Element) -> None:
    """A worker unsure of its call reads the row; under a lease of its own that it finds, it may have sent."""
    when(acts(s, w))
    when(s.unsure[w])

    s.unsure[w] = False
    if s.owner == me(s, w):
        s.believes[w] = Versions(lease=s.lease_version, state=s.state_version)
        s.knows[w] = Knows.sent


# The step: each change is a commit.


@derived
def known_undone(s: State, w: Element) -> object:
    """Whether worker `w` knows that the effect has not happened, and never will."""
    return s.knows[w] == Knows.unsent or s.knows[w] == Knows.not_happened


@derived
def is_unknown(s: State, w: Element) -> object:
    """Whether worker `w` does not know what became of the effect."""
    return not known_undone(s, w) and s.knows[w] != Knows.receipt


@derived
def has_grounds(s: State, w: Element, to: Member) -> object:
    """Whether worker `w` may change the step's status so, by what it last read and what it knows."""
    if to == Status.running:
        return status(s, w) == Status.pending or (status(s, w) == Status.running and known_undone(s, w))
    if to == Status.unwinding:
        return status(s, w) == Status.running
    if to == Status.succeeded:
        return under_way(s, w) and s.knows[w] == Knows.receipt
    if to == Status.cancelled:
        return under_way(s, w) and known_undone(s, w)
    return to == Status.manual and under_way(s, w) and is_unknown(s, w)


def learn_committed(
    s: State, w: Element, to: Member, fingerprint: Element, lost: bool, answer: Member
) -> None:
    """With the answer ok the worker goes on, and has not sent a new intent; else it reads the row again."""
    if lost or answer != Answer.ok:
        step_down(s, w)
        s.unsure[w] = lost or answer == Answer.stale_state_version
    else:
        s.believes[w] = s.believes[w].changed(state=s.state_version)
        if to == Status.running:
            s.knows[w] = Knows.unsent


@effects.operation(
    WORKER, home=STORE, answered=learn_committed, w=workers, to=Status, fingerprint=fingerprints, lost=BOOLEAN
)
def commit(s: State, w: Element, to: Member, fingerprint: Element, lost: bool) -> None:
    """A worker commits a new status of the step; `running` comes with an intent."""
    when(acts(s, w))
    when(s.believes[w].present)
    when(has_grounds(s, w, to))
    when(not lost or switched("reply_lost"))
    refuse_unless_current(s, me(s, w), s.believes[w].lease, s.believes[w].state)

    s.state_version = s.state_version + 1
    s.log[s.state_version] = Entry(status=to, intent=intent_of(s, w))
    s.receipt = to == Status.succeeded
    s.finished = to == Status.succeeded or to == Status.cancelled
    if to == Status.running:
        made = intent_of(s, w) + 1
        s.log[s.state_version] = Entry(status=to, intent=made)
        s.intent[made] = Intent(fingerprint=fingerprint, revision=s.revision)


# The effect.


@effects.action(
    WORKER, w=workers, c=effects.fresh(calls, unless="call"), key=intent_versions, fingerprint=fingerprints
)
def send_effect(s: State, w: Element, c: Element, key: int, fingerprint: Element) -> None:
    """A worker sends the stored intent: first, when it came to nothing, or again under the same key."""
    when(acts(s, w))
    when(s.believes[w].present)
    when(status(s, w) == Status.running)
    when(known_undone(s, w) or switched("keyed"))
    of = intent_of(s, w)
    when(key == of or switched("key_per_retry"))
    when(fingerprint == s.intent[of].fingerprint or switched("intent_rederived"))

    put_on_its_way(s, w, c, key, fingerprint, False)


@effects.action(WORKER, w=workers, c=effects.fresh(calls, unless="call"))
def send_tombstone(s: State, w: Element, c: Element) -> None:
    """The owner of a step that unwinds asks for a tombstone under the key, in place of the effect."""
    when(acts(s, w))
    when(s.believes[w].present)
    when(status(s, w) == Status.unwinding)
    when(switched("keyed"))

    put_on_its_way(s, w, c, intent_of(s, w), s.intent[intent_of(s, w)].fingerprint, True)


def put_on_its_way(s: State, w: Element, c: Element, key: object, fingerprint: object, buries: bool) -> None:
    """The request leaves, with the lease version as its token; from now on the effect may have happened."""
    of = intent_of(s, w)
    s.call[c] = Call(
        by=me(s, w),
        token=s.believes[w].lease,
        intent=of,
        key=key,
        fingerprint=fingerprint,
        revision=s.intent[of].revision,
        buries=buries,
    )
    s.in_flight[c] = True
    s.knows[w] = Knows.sent


def learn_raised(s: State, w: Element, lost: bool, answer: Member) -> None:
    """From now on what was sent before is refused, or the worker is not the owner any more."""
    if not lost and answer == Answer.ok:
        s.knows[w] = Knows.raised
    if not lost and answer != Answer.ok:
        step_down(s, w)


@effects.operation(WORKER, home=DOWNSTREAM, answered=learn_raised, w=workers, lost=BOOLEAN)
def raise_fence(s: State, w: Element, lost: bool) -> None:
    """An owner that has sent nothing under its lease version makes the downstream record it as the token."""
    when(acts(s, w))
    when(under_way(s, w))
    when(s.knows[w] == Knows.nothing)
    when(switched("fenced"))
    when(not lost or switched("reply_lost"))
    refuse_unless(s.believes[w].lease >= s.fence, "stale-token")

    s.fence = s.believes[w].lease
    s.contacted = ite(s.fence > s.contacted, s.fence, s.contacted)


@effects.action(WORKER, w=workers)
def query(s: State, w: Element) -> None:
    """An owner asks by the key. That nothing is found proves something only after the fence was raised."""
    when(acts(s, w))
    when(under_way(s, w))
    when(switched("keyed") or switched("queryable"))
    kept = s.record[intent_of(s, w)]

    if kept.present:
        if kept.fingerprint == s.intent[intent_of(s, w)].fingerprint:
            s.knows[w] = learnt(kept.kind)
    elif s.knows[w] == Knows.raised:
        s.knows[w] = Knows.not_happened


@derived
def learnt(kind: Member) -> object:
    """What a worker knows from what the downstream keeps."""
    if kind == Kind.receipt:
        return Knows.receipt
    return Knows.not_happened


@effects.action(WORKER, c=calls)
def receive_reply(s: State, c: Element) -> None:
    """A reply arrives. Who sent the request uses it while it takes itself for the owner that sent it."""
    when(s.reply[c] != Answer.none)
    sent = s.call[c].value
    w = sent.by.worker
    reply = s.reply[c]

    s.reply[c] = Answer.none
    if acts(s, w) and sent.by == me(s, w) and under_way(s, w) and s.believes[w].lease == sent.token:
        if reply == Answer.stale_token:
            step_down(s, w)
        elif intent_of(s, w) == sent.intent:
            if reply == Answer.ok and sent.fingerprint == s.intent[sent.intent].fingerprint:
                s.knows[w] = Knows.receipt
            if reply == Answer.tombstoned or (reply == Answer.declined and switched("keyed")):
                s.knows[w] = Knows.not_happened
