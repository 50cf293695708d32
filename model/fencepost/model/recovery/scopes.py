"""How far finite readings look at recovery: each scope with its reason. Bounds are cuts, never guards."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.protocol import Scope
from fencepost.model.recovery.state import recovery

CHECKPOINTS = ("checkpoint_damaged", "checkpoint_tampered", "checkpoint_replayed")
DEFINITIONS = ("definition_changed", "migration_registered")


def _scope(
    name: str, *switches: str, why: str, leases: int = 2, states: int = 3, restarts: int = 1, workers: int = 2
) -> Scope:
    return recovery.scope(
        name,
        sizes={"worker": workers},
        bounds={
            "lease_version": leases,
            "state_version": states,
            "incarnation": restarts,
            "step": 1,
            "definition": 1,
        },
        switches=switches,
        why=why,
    )


_scope(
    "small",
    *CHECKPOINTS, *DEFINITIONS,
    why="everything that can befall a checkpoint while definitions change and two recoveries race; without "
    "crashes and lost answers, after which a worker starts over as it does after a deployment",
)  # fmt: skip
_scope(
    "checkpoints",
    *CHECKPOINTS, "crash",
    why="everything that can befall a checkpoint, with recoveries that die anywhere and start again; one "
    "definition",
)  # fmt: skip
_scope(
    "racing",
    *DEFINITIONS, "crash", leases=3,
    why="definitions change while two workers recover, one after the other, what a third lease has begun; no "
    "harm comes to checkpoints",
)  # fmt: skip
_scope(
    "answers-lost",
    *CHECKPOINTS, "migration_registered", "definition_changed", "reply_lost", states=2,
    why="answers of the store are lost, so that a worker reads its own lease again; up to two commits",
)  # fmt: skip
_scope(
    "no-key",
    "checkpoint_damaged", "checkpoint_replayed", "mac_key_missing", *DEFINITIONS,
    why="the hash and the versions alone: they find accidents and older checkpoints without a key",
)  # fmt: skip

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "usual": (
            "small",
            "checkpoints",
            "racing",
            "answers-lost",
            "no-key",
        )
    }
)
"""Scopes that go by one name: all but those for sweeps."""

# For changes of the model that are tried one after another: between them every claim can fail.
_scope(
    "quick",
    *CHECKPOINTS, "reply_lost", restarts=0,
    why="checkpoints without definitions and crashes: for sweeps",
)  # fmt: skip
_scope(
    "quick-definitions",
    *DEFINITIONS, "checkpoint_damaged", "checkpoint_tampered", states=2,
    why="definitions that change, and checkpoints by accident and on purpose: for sweeps",
)  # fmt: skip
_scope(
    "quick-no-key",
    "checkpoint_damaged", "mac_key_missing", restarts=0, states=2,
    why="accidents, which the hash has to find where there is no key: for sweeps",
)  # fmt: skip

SWEEP = ("quick-definitions", "quick", "quick-no-key")
"""The scopes of a sweep: a change that no claim notices in the first is looked at in the next."""

WHAT_IF: Mapping[str, tuple[Scope, ...]] = {
    switch: tuple(
        recovery.scopes[name].but(
            name=f"{name} with {switch}",
            switches=recovery.scopes[name].switches | {switch},
            why=f"what {switch} breaks",
        )
        for name in among
    )
    for switch, among in (
        ("pause", ("quick", "quick-definitions")),
        ("mac_key_missing", ("small",)),
    )
}
"""For each fault that the scopes where all claims hold do without: scopes with it."""
