"""A claim without a sentence."""

from fencepost.model import State
from fencepost.properties import Claims

mine = Claims("mine")


@mine.always()
def live_means_owned(s: State) -> object:
    return not s.live or s.owner.present
