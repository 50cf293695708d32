"""How far finite readings look at effects: each scope with its reason. Bounds are cuts, never guards.

A request or reply that is lost looks to everybody like one that is never delivered, so only the scopes that
are small enough have those switches too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.effects.state import effects
from fencepost.model.protocol import Scope

FAULTS = ("crash", "reply_lost", "request_duplicated")


def _scope(
    name: str, *switches: str, why: str, fingerprints: int = 1, revisions: int = 0, leases: int = 2
) -> Scope:
    return effects.scope(
        name,
        sizes={"worker": 2, "call": 2, "fingerprint": fingerprints},
        bounds={
            "lease_version": leases,
            "state_version": 3,
            "intent_version": 2,
            "incarnation": 1,
            "revision": revisions,
        },
        switches=switches,
        why=why,
    )


_scope(
    "small",
    "fenced", "keyed", "revisioned", "revision_moved", *FAULTS, revisions=1,
    why="everything a downstream can do, at once: one request late, another after a takeover",
)  # fmt: skip
_scope(
    "rederived",
    "fenced", "keyed", "intent_rederived", "crash", fingerprints=2,
    why="a key that comes with other parameters; without repeated messages, which small has",
)  # fmt: skip
_scope(
    "keyed",
    "keyed", "declining", "request_lost", *FAULTS,
    why="a downstream that knows keys and no fence, such as most payment services",
)  # fmt: skip
_scope(
    "fenced-queryable",
    "fenced", "queryable", "declining", "request_lost", *FAULTS, fingerprints=2,
    why="raising the fence and then asking is the only way to know; with two fingerprints, to see that the "
    "stored one is sent",
)  # fmt: skip
_scope("fenced", "fenced", "request_lost", *FAULTS, why="a fence alone: what is unknown stays so")
_scope("queryable", "queryable", "request_lost", *FAULTS, why="asking alone: to find nothing proves nothing")
_scope(
    "revisioned",
    "revisioned", "revision_moved", "request_lost", *FAULTS, revisions=2,
    why="a downstream that compares revisions alone, such as one with conditional updates; with two changes, "
    "since an effect that lands after another change makes a second one",
)  # fmt: skip
_scope("opaque", "request_lost", *FAULTS, why="a downstream that keeps nothing")

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "usual": (
            "small",
            "rederived",
            "keyed",
            "fenced-queryable",
            "fenced",
            "queryable",
            "revisioned",
            "opaque",
        )
    }
)
"""Scopes that go by one name: all but those for sweeps."""

# For changes of the model that are tried one after another, and for faults that multiply states. Between
# them, every claim is exercised and every claim can fail. Without crashes, which leave workers no more
# confused than a takeover does; a sweep turns them on for what they do themselves.
_scope(
    "quick",
    "fenced", "keyed", "revisioned", "revision_moved", "reply_lost", "request_duplicated", revisions=1,
    why="as small, without crashes",
)  # fmt: skip
_scope(
    "quick-rederived",
    "fenced", "keyed", "declining", "intent_rederived", fingerprints=2,
    why="as rederived, without crashes, for a downstream that declines: for sweeps",
)  # fmt: skip
_scope(
    "quick-queryable",
    "fenced", "queryable", "declining", "reply_lost", "request_duplicated", fingerprints=2,
    why="as fenced-queryable, without crashes and lost requests: for sweeps",
)  # fmt: skip
_scope(
    "quick-unkeyed",
    "fenced", "revisioned", "revision_moved", "reply_lost", "request_duplicated", revisions=2, leases=3,
    why="a fence and revisions, for sweeps; with three lease versions, since only a second takeover leaves "
    "behind a worker that may still raise the fence",
)  # fmt: skip
_scope(
    "quick-keyed",
    "keyed", "revisioned", "revision_moved", revisions=2,
    why="keys and revisions without a fence and without repeated messages: for faults of the downstream",
)  # fmt: skip

SWEEP = ("quick-queryable", "quick-rederived", "quick-unkeyed")
"""The scopes of a sweep: a change that no claim notices in the first is looked at in the next."""

WHAT_IF_IN = ("quick-rederived", "quick-queryable", "quick-keyed")
"""The scopes to which a fault is added to see what it breaks: keys, no keys, and revisions."""

_TRIED = (
    "record_expired", "record_volatile", "two_transactions", "key_per_retry", "intent_rederived",
    "request_lost", "pause",
)  # fmt: skip

WHAT_IF: Mapping[str, tuple[Scope, ...]] = {
    switch: tuple(
        effects.scopes[name].but(
            name=f"{name} with {switch}",
            switches=effects.scopes[name].switches | {switch},
            why=f"what {switch} breaks",
        )
        for name in WHAT_IF_IN
    )
    for switch in _TRIED
}
"""For each fault that some or all of the scopes above do without: scopes with it."""
