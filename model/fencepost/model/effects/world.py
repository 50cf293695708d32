"""The clock and everything that goes wrong around an effect (§16): each fault has a switch of its own."""

from __future__ import annotations

from fencepost.model.core import world
from fencepost.model.core.state import CLOCK, SUPERVISOR, WORLD, workers
from fencepost.model.domains import Element
from fencepost.model.effects.state import Answer, calls, effects, intent_versions
from fencepost.model.effects.steps import step_down
from fencepost.model.language import State, absent, when

effects.action(CLOCK)(world.expire)
effects.action(SUPERVISOR, switch="crash", w=workers)(world.restart)
effects.action(WORLD, switch="pause", w=workers)(world.pause)
effects.action(SUPERVISOR, switch="pause", w=workers)(world.resume)


@effects.action(WORLD, switch="crash", w=workers)
def crash(s: State, w: Element) -> None:
    """A worker dies; what it sent stays on its way, what it knew is gone."""
    when(s.up[w])

    s.up[w] = False
    s.paused[w] = False
    s.unsure[w] = False
    step_down(s, w)


@effects.action(WORLD, switch="request_lost", c=calls)
def lose_request(s: State, c: Element) -> None:
    """All copies of a request that are on their way to the downstream are lost."""
    when(s.in_flight[c])

    s.in_flight[c] = False


@effects.action(WORLD, switch="reply_lost", c=calls)
def lose_reply(s: State, c: Element) -> None:
    """The downstream's reply is lost on its way back."""
    when(s.reply[c] != Answer.none)

    s.reply[c] = Answer.none


@effects.action(WORLD, switch="revision_moved")
def move_revision(s: State) -> None:
    """Somebody else changes the resource."""
    s.revision = s.revision + 1


@effects.action(WORLD, switch="record_expired", key=intent_versions)
def expire_record(s: State, key: int) -> None:
    """The downstream forgets what it kept under a key."""
    when(s.record[key].present)

    s.record[key] = absent


@effects.action(WORLD, switch="record_volatile")
def restart_downstream(s: State) -> None:
    """The downstream restarts, and what it kept in memory is gone: all records, and the fence."""
    s.record.fill(absent)
    s.fence = 0
