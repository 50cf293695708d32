"""A claim that asks `is None` of a state value."""

from fencepost.model import State
from fencepost.properties import Claims

mine = Claims("mine")


@mine.always()
def live_means_owned(s: State) -> object:
    """A live lease has an owner."""
    return not s.live or s.owner is not None
