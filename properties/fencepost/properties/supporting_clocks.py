"""Invariants that the proofs about clocks need: true, and checked like claims, but no promises."""

from __future__ import annotations

from fencepost.model import State, derived, every, switched
from fencepost.model.clocks.state import now
from fencepost.model.core.state import workers
from fencepost.model.domains import Element
from fencepost.properties.clocks import CLOCKS


@derived
def may_be(s: State, w: Element, version: object) -> object:
    """Whether worker `w` was given this version, or is about to hear of it."""
    return s.believes[w] == version or s.granted[w] == version


@CLOCKS.supporting(supports=("S1", "S27-count"))
def versions_were_given(s: State) -> object:
    """What a worker takes for its own was given; the version that stands only to the owner."""
    return every(
        workers,
        lambda w: (
            (not s.believes[w].present or (s.believes[w] >= 1 and s.believes[w] <= s.lease_version))
            and (not s.granted[w].present or (s.granted[w] >= 1 and s.granted[w] <= s.lease_version))
            and (not may_be(s, w, s.lease_version) or s.owner == w)
            and (not s.granted[w].present or not s.believes[w].present)
            and (not s.asks[w].present or (not s.granted[w].present and not s.believes[w].present))
        ),
    )


@CLOCKS.supporting(supports=("S12",))
def contacts_are_recorded(s: State) -> object:
    """The fence is the highest token under which an effect took place."""
    return s.fence == s.contacted


@CLOCKS.supporting(supports=("S27",))
def what_was_found_over_is_over(s: State) -> object:
    """A lease that was found to be over is over by the mark."""
    return s.found_over <= s.lease_version and (
        s.found_over != s.lease_version or s.mark >= s.expires_at or s.lease_version == 0
    )


@CLOCKS.supporting(supports=("S27-count",))
def a_count_ends_with_the_lease(s: State) -> object:
    """Where clocks run alike, a count that has come to a lease is over no later than the lease is."""
    return switched("clock_skewed") or every(
        workers,
        lambda w: (
            (not s.asks[w].present or s.left[w] <= s.asks[w])
            and (
                s.left[w] == 0
                or s.asks[w].present
                or (may_be(s, w, s.lease_version) and now(s) + s.left[w] <= s.expires_at)
            )
        ),
    )
