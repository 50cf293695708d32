"""How far finite readings look at replay: each scope with its reason. Bounds are cuts, never guards."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.replay.state import replay


def _scope(name: str, *switches: str, why: str, workers: int = 2, positions: int = 3) -> None:
    replay.scope(
        name,
        sizes={"worker": workers},
        bounds={"position": positions, "value": 1, "definition": int("definition_changed" in switches)},
        switches=switches,
        why=why,
    )


_scope(
    "small",
    "crash",
    why="two workers that race, and code that stays and takes everything from the runtime: no replay of it "
    "may stop",
)
_scope(
    "direct",
    "direct_call", positions=2,
    why="a workflow that goes by values from outside: other commands and other arguments than recorded; "
    "without crashes, since a second worker finds what a first one left as after its death",
)  # fmt: skip
_scope(
    "changed",
    "crash", "definition_changed", positions=2,
    why="code that is changed while runs are under way: another definition, with the same commands or others",
)  # fmt: skip

_scope(
    "alone",
    "crash", "direct_call", "definition_changed", workers=1, positions=2,
    why="one worker that dies, gets other code and calls outside: all faults at once",
)  # fmt: skip

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType({"usual": ("small", "direct", "changed", "alone")})
"""Scopes that go by one name: all but those for sweeps."""

# For changes of the model that are tried one after another.
_scope("quick", "crash", positions=2, why="as small, with a command less: for sweeps")
_scope("quick-changed", "definition_changed", positions=2, why="as changed, without crashes: for sweeps")

SWEEP = ("quick", "alone", "quick-changed")
"""The scopes of a sweep: a change that no claim notices in the first is looked at in the next."""
