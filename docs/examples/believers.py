"""Who may take the lease for their own at the same time: a claim about the core that is not built in."""

from fencepost.model import State, at_most_one, every
from fencepost.model.core.state import workers
from fencepost.properties import Claims

mine = Claims("mine")


@mine.always(witnesses=("two_believe",))
def no_lease_version_has_two_believers(s: State) -> object:
    """Two workers never take the same lease version for their own."""
    return every(
        workers,
        workers,
        lambda w, v: (
            w == v
            or not s.believes[w].present
            or not s.believes[v].present
            or s.believes[w].lease != s.believes[v].lease
        ),
    )


@mine.sometimes()
def two_believe(s: State) -> object:
    """Two workers take a lease for their own at the same time."""
    return not at_most_one(workers, lambda w: s.believes[w].present)
