"""The definition of the instance: which steps depend on which, which need an approval, which can be undone.

The author fixes it before the instance begins (§1). Edges are added from the roots outward, so that no step
ever depends on itself.
"""

from __future__ import annotations

from fencepost.model.domains import Element
from fencepost.model.language import State, derived, every, when
from fencepost.model.workflow.state import AUTHOR, steps, workflow


@derived
def is_open(s: State) -> object:
    """Whether nobody can have gone by the definition yet: nothing was asked for, and no worker acquired."""
    return not s.begun and s.lease_version == 0


@workflow.action(AUTHOR, switch="chained", x=steps, y=steps)
def depend(s: State, x: Element, y: Element) -> None:
    """Step `x`, on which nothing depends so far, is made to depend on step `y`."""
    when(is_open(s))
    when(x != y)
    when(every(steps, lambda z: not s.needs[z, x]))

    s.needs[x, y] = True


@workflow.action(AUTHOR, switch="gates", x=steps)
def gate(s: State, x: Element) -> None:
    """A step is not to run without an approval."""
    when(is_open(s))

    s.gated[x] = True


@workflow.action(AUTHOR, switch="irreversible", x=steps)
def have_no_compensation(s: State, x: Element) -> None:
    """No compensation is registered for a step."""
    when(is_open(s))

    s.undoable[x] = False


@workflow.action(AUTHOR)
def begin(s: State) -> None:
    """The instance begins."""
    when(not s.begun)

    s.begun = True
