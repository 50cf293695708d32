"""A claim that sounds like mutual exclusion, and is false of every protocol with leases."""

from fencepost.model import State, at_most_one
from fencepost.model.core.state import workers
from fencepost.properties import Claims

mine = Claims("mine")


@mine.always()
def only_one_worker_believes(s: State) -> object:
    """At most one worker takes the lease for its own."""
    return at_most_one(workers, lambda w: s.believes[w].present)
