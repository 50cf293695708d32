"""Time, and what goes wrong with it (§16)."""

from __future__ import annotations

from fencepost.model.clocks.state import clocks, moments
from fencepost.model.core.state import CLOCK, WORLD, workers
from fencepost.model.domains import Element
from fencepost.model.language import State, ite, when


@clocks.action(CLOCK)
def tick(s: State) -> None:
    """A tick passes for all clocks alike."""
    s.clock = s.clock + 1
    s.left.update_where(lambda _, left: ite(left > 0, left - 1, left))


@clocks.action(WORLD, switch="clock_skewed")
def run_ahead(s: State) -> None:
    """The store's clock is a tick ahead of all workers' clocks."""
    s.clock = s.clock + 1


@clocks.action(WORLD, switch="clock_skewed", w=workers)
def run_ahead_alone(s: State, w: Element) -> None:
    """A worker's clock is a tick ahead of all others."""
    when(s.left[w] >= 1)

    s.left[w] = s.left[w] - 1


@clocks.action(WORLD, switch="clock_stepped_back", moment=moments)
def step_back(s: State, moment: int) -> None:
    """The store's clock is set back."""
    when(moment < s.clock)

    s.clock = moment


@clocks.action(WORLD, switch="partitioned", w=workers)
def cut_off(s: State, w: Element) -> None:
    """A worker is cut off from the store."""
    when(not s.cut_off[w])

    s.cut_off[w] = True


@clocks.action(WORLD, switch="partitioned", w=workers)
def reconnect(s: State, w: Element) -> None:
    """A worker that was cut off reaches the store again."""
    when(s.cut_off[w])

    s.cut_off[w] = False


@clocks.action(WORLD, switch="tokens_exhausted")
def use_up(s: State) -> None:
    """The lease version has come to the largest number that the store can hold."""
    when(not s.exhausted)

    s.exhausted = True
