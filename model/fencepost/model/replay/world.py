"""What goes wrong around a replay (§16): deaths, and other code. A value from outside is a switch alone."""

from __future__ import annotations

from fencepost.model.core.state import SUPERVISOR, WORLD, workers
from fencepost.model.domains import Element
from fencepost.model.language import State, when
from fencepost.model.replay.replayers import give_up
from fencepost.model.replay.state import Standing, replay


@replay.action(WORLD, switch="crash", w=workers)
def crash(s: State, w: Element) -> None:
    """A worker dies; what it recorded stays, what it knew is gone."""
    when(s.standing[w] != Standing.down)

    give_up(s, w, Standing.down)


@replay.action(SUPERVISOR, switch="crash", w=workers)
def restart(s: State, w: Element) -> None:
    """A dead worker starts again."""
    when(s.standing[w] == Standing.down)

    s.standing[w] = Standing.idle


@replay.action(WORLD, switch="definition_changed", w=workers)
def deploy(s: State, w: Element) -> None:
    """A worker that runs nothing gets the next version of the code."""
    when(s.standing[w] == Standing.idle)

    s.code[w] = s.code[w] + 1
