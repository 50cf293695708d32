"""Calls to the downstream, and what a worker learns from them (§6, §8). `effects` has the whole of it."""

from __future__ import annotations

from typing import Any

from fencepost.model.core.state import WORKER, acts, me, workers
from fencepost.model.domains import Element, Member
from fencepost.model.language import State, absent, derived, switched, when
from fencepost.model.workflow.beliefs import forget, known_undone, sees_under_way
from fencepost.model.workflow.state import (
    Answer,
    Call,
    Deed,
    Kind,
    Knows,
    Status,
    calls,
    steps,
    workflow,
)


@derived
def deed_seen(s: State, w: Element, x: Element) -> Any:
    """Which effect worker `w` last read to be under way: the step's own, or its compensation."""
    if s.seen[w, x].status == Status.compensating:
        return Deed.undo
    return Deed.act


@derived
def may_send(s: State, w: Element, x: Element) -> object:
    """Whether worker `w` last read that the effect is to be brought about, and may send it (again)."""
    status = s.seen[w, x].status
    wanted = (status == Status.running and not s.unwinds[w]) or status == Status.compensating
    return wanted and (known_undone(s, w, x) or switched("keyed")) and s.knows[w, x] != Knows.receipt


@workflow.action(WORKER, w=workers, c=workflow.fresh(calls, unless="call"), x=steps)
def send_effect(s: State, w: Element, c: Element, x: Element) -> None:
    """A worker sends the effect of a stored intent: first, after it came to nothing, or under its key."""
    when(acts(s, w))
    when(s.believes[w].present)
    when(may_send(s, w, x))

    put_on_its_way(s, w, c, x, False)


@workflow.action(WORKER, w=workers, c=workflow.fresh(calls, unless="call"), x=steps)
def send_tombstone(s: State, w: Element, c: Element, x: Element) -> None:
    """The owner asks for a tombstone in place of an effect that is to be given up."""
    when(acts(s, w))
    when(s.believes[w].present)
    when(switched("keyed"))
    when(is_given_up(s, w, x))
    when(not known_undone(s, w, x) and s.knows[w, x] != Knows.receipt)

    put_on_its_way(s, w, c, x, True)


@derived
def is_given_up(s: State, w: Element, x: Element) -> object:
    """Whether worker `w` last read that the step's own effect is not wanted any more."""
    return (sees_under_way(s, w, x) and s.unwinds[w]) or s.seen[w, x].status == Status.manual_intervention


def put_on_its_way(s: State, w: Element, c: Element, x: Element, buries: bool) -> None:
    """The call leaves, with the lease version as its token; from now on the effect may have happened."""
    s.call[c] = Call(
        by=me(s, w),
        token=s.believes[w].lease,
        step=x,
        deed=deed_seen(s, w, x),
        intent=s.seen[w, x].intent,
        buries=buries,
    )
    s.in_flight[c] = True
    s.knows[w, x] = Knows.sent


@workflow.action(WORKER, w=workers, x=steps)
def query(s: State, w: Element, x: Element) -> None:
    """An owner asks what is kept under the key of an effect that is under way."""
    when(acts(s, w))
    when(s.believes[w].present)
    when(switched("keyed"))
    when(sees_under_way(s, w, x) or s.seen[w, x].status == Status.compensating)
    kept = s.record[x, deed_seen(s, w, x), s.seen[w, x].intent]
    when(kept.present)

    s.knows[w, x] = learnt(kept.value)


@derived
def learnt(kind: Member) -> object:
    """What a worker knows from what the downstream keeps."""
    if kind == Kind.receipt:
        return Knows.receipt
    return Knows.not_happened


@workflow.action(WORKER, c=calls)
def receive_reply(s: State, c: Element) -> None:
    """A reply arrives. Who sent the call uses it while it takes itself for the owner that sent it."""
    when(s.reply[c] != Answer.none)
    when(not switched("late_results") or not comes_late(s, c))
    sent = s.call[c].value
    w = sent.by.worker
    x = sent.step
    reply = s.reply[c]

    s.reply[c] = Answer.none
    if acts(s, w) and sent.by == me(s, w) and s.believes[w].present and s.believes[w].lease == sent.token:
        if reply == Answer.stale_token:
            forget(s, w)
        elif s.seen[w, x].intent == sent.intent and is_about(s, w, x, sent.deed):
            if reply == Answer.ok:
                s.knows[w, x] = Knows.receipt
            if reply == Answer.tombstoned or (reply == Answer.declined and switched("keyed")):
                s.knows[w, x] = Knows.not_happened
    let_go(s, c)


@derived
def comes_late(s: State, c: Element) -> object:
    """Whether the reply is a receipt of a step's effect, and who gets it not the owner that sent the call."""
    return (
        s.reply[c] == Answer.ok
        and s.call[c].deed == Deed.act
        and acts(s, s.call[c].by.worker)
        and (
            not s.believes[s.call[c].by.worker].present
            or s.believes[s.call[c].by.worker].lease != s.call[c].token
        )
    )


@derived
def is_about(s: State, w: Element, x: Element, deed: Member) -> object:
    """Whether this effect of the step is still under way, as worker `w` last read it."""
    if deed == Deed.undo:
        return s.seen[w, x].status == Status.compensating
    return sees_under_way(s, w, x) or s.seen[w, x].status == Status.manual_intervention


def let_go(s: State, c: Element) -> None:
    """A call of which nothing is on its way any more is forgotten, and its id is free."""
    if not s.in_flight[c] and s.reply[c] == Answer.none:
        s.call[c] = absent
        s.landings[c] = False
