"""A claim whose witness is out of reach."""

from fencepost.model import State, implies
from fencepost.properties import Claims

mine = Claims("mine")


@mine.always(witnesses=("three_commits",))
def three_commits_finish(s: State) -> object:
    """After three commits the instance is finished."""
    return implies(s.state_version >= 3, s.finished)


@mine.sometimes()
def three_commits(s: State) -> object:
    """Three commits were accepted."""
    return s.state_version >= 3
