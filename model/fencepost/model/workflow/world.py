"""The clock and everything that goes wrong (§16): each fault has a switch of its own."""

from __future__ import annotations

from fencepost.model.core import world
from fencepost.model.core.state import CLOCK, SUPERVISOR, WORLD, workers
from fencepost.model.domains import Element, Member
from fencepost.model.language import State, absent, when
from fencepost.model.workflow.beliefs import forget
from fencepost.model.workflow.calls import let_go
from fencepost.model.workflow.state import Answer, Deed, calls, intent_versions, requests, steps, workflow

workflow.action(CLOCK)(world.expire)
workflow.action(SUPERVISOR, switch="crash", w=workers)(world.restart)
workflow.action(WORLD, switch="pause", w=workers)(world.pause)
workflow.action(SUPERVISOR, switch="pause", w=workers)(world.resume)


@workflow.action(WORLD, switch="crash", w=workers)
def crash(s: State, w: Element) -> None:
    """A worker dies; what it sent stays on its way, what it knew is gone."""
    when(s.up[w])

    s.up[w] = False
    s.paused[w] = False
    s.unsure[w] = False
    forget(s, w)


@workflow.action(WORLD, switch="call_lost", c=calls)
def lose_call(s: State, c: Element) -> None:
    """All copies of a call that are on their way to the downstream are lost."""
    when(s.in_flight[c])

    s.in_flight[c] = False
    let_go(s, c)


@workflow.action(WORLD, switch="reply_lost", c=calls)
def lose_reply(s: State, c: Element) -> None:
    """The downstream's reply is lost on its way back."""
    when(s.reply[c] != Answer.none)

    s.reply[c] = Answer.none
    let_go(s, c)


@workflow.action(WORLD, switch="request_lost", r=requests)
def lose_request(s: State, r: Element) -> None:
    """All copies of a request that are on their way to the inbox are lost."""
    when(s.arriving[r])

    s.arriving[r] = False


@workflow.action(WORLD, switch="record_expired", x=steps, deed=Deed, i=intent_versions)
def expire_record(s: State, x: Element, deed: Member, i: int) -> None:
    """The downstream forgets what it kept under a key."""
    when(s.record[x, deed, i].present)

    s.record[x, deed, i] = absent


@workflow.action(WORLD, switch="record_volatile")
def restart_downstream(s: State) -> None:
    """The downstream restarts, and what it kept in memory is gone: all records, and the fence."""
    s.record.fill(absent)
    s.fence = 0
