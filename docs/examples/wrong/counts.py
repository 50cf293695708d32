"""A claim that counts."""

from fencepost.model import State, count
from fencepost.model.core.state import workers
from fencepost.properties import Claims

mine = Claims("mine")


@mine.always()
def at_most_two_believe(s: State) -> object:
    """At most two workers take a lease for their own."""
    return count(workers, lambda w: s.believes[w].present) <= 2
