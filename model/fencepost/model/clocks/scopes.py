"""How far finite readings look at clocks: each scope with its reason. Bounds are cuts, never guards."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.clocks.state import clocks
from fencepost.model.protocol import Scope

WRONG = ("clock_stepped_back", "partitioned", "tokens_exhausted")


def _scope(name: str, *switches: str, why: str, workers: int = 2, moments: int = 4, leases: int = 2) -> Scope:
    return clocks.scope(
        name,
        sizes={"worker": workers},
        bounds={"moment": moments, "tick": 2, "lease_version": leases, "state_version": 2},
        switches=switches,
        why=why,
    )


_scope("small", *WRONG, why="two workers, a clock that is set back, and a takeover; all clocks of one speed")
_scope(
    "thrice",
    "clock_stepped_back", "partitioned", leases=3,
    why="three leases in a row: an effect that is late by two owners",
)  # fmt: skip
_scope(
    "three",
    *WRONG, workers=3, moments=3,
    why="three workers, two of whom have had the lease, with a moment less than small",
)  # fmt: skip
_scope("quick", *WRONG, moments=3, why="as small, with a moment less: for sweeps")

SWEEP = ("quick",)
"""The scopes of a sweep."""

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType({"usual": ("small", "thrice"), "large": ("three",)})
"""Scopes that go by one name; the large one has 31 million states."""

WHAT_IF: Mapping[str, tuple[Scope, ...]] = MappingProxyType(
    {
        "clock_skewed": (
            clocks.scopes["quick"].but(
                name="quick with clock_skewed",
                switches=clocks.scopes["quick"].switches | {"clock_skewed"},
                why="clocks that run apart, beside all else",
            ),
        )
    }
)
"""For each fault that some claims need off: scopes with it."""
