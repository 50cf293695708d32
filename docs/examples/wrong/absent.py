"""A claim that reads the value of an optional without asking whether it is there."""

from fencepost.model import State, every
from fencepost.model.core.state import workers
from fencepost.properties import Claims

mine = Claims("mine")


@mine.always()
def beliefs_are_not_from_the_future(s: State) -> object:
    """No worker believes in a lease version that was not acquired yet."""
    return every(workers, lambda w: s.believes[w].lease <= s.lease_version)
