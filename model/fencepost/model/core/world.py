"""The clock and everything that goes wrong (§16): each fault is an action with a switch of its own."""

from __future__ import annotations

from fencepost.model.core.state import CLOCK, SUPERVISOR, WORLD, Answer, commits, core, workers
from fencepost.model.domains import Element
from fencepost.model.language import State, absent, when


@core.action(CLOCK)
def expire(s: State) -> None:
    """The lease's time is over. Nobody is told."""
    when(s.live)

    s.live = False


@core.action(WORLD, switch="crash", w=workers)
def crash(s: State, w: Element) -> None:
    """A worker dies; what it sent stays on its way, what it knew is gone."""
    when(s.up[w])

    s.up[w] = False
    s.paused[w] = False
    s.believes[w] = absent
    s.unsure[w] = False
    s.awaited.update_where(lambda c, waits: waits and s.request[c].present and s.request[c].by.worker != w)


@core.action(SUPERVISOR, switch="crash", w=workers)
def restart(s: State, w: Element) -> None:
    """A dead worker starts again: the same name, a new incarnation."""
    when(not s.up[w])

    s.up[w] = True
    s.incarnation[w] = s.incarnation[w] + 1


@core.action(WORLD, switch="pause", w=workers)
def pause(s: State, w: Element) -> None:
    """A worker stands still and does not know it."""
    when(s.up[w])
    when(not s.paused[w])

    s.paused[w] = True


@core.action(SUPERVISOR, switch="pause", w=workers)
def resume(s: State, w: Element) -> None:
    """A paused worker goes on where it stood, with the beliefs it had."""
    when(s.paused[w])

    s.paused[w] = False


@core.action(WORLD, switch="commit_lost", c=commits)
def lose_commit(s: State, c: Element) -> None:
    """All copies of a commit that are on their way are lost."""
    when(s.in_flight[c])

    s.in_flight[c] = False


@core.action(WORLD, switch="reply_lost", c=commits)
def lose_answer(s: State, c: Element) -> None:
    """The answer to a commit is lost on its way back."""
    when(s.answer[c] != Answer.none)

    s.answer[c] = Answer.none
