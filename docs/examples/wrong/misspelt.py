"""A claim with a slip of the pen."""

from fencepost.model import State
from fencepost.properties import Claims

mine = Claims("mine")


@mine.always()
def live_means_owned(s: State) -> object:
    """A live lease has an owner."""
    return not s.live or s.ower.present
