"""How far finite readings look at effects: each scope with its reason. Bounds are cuts, never guards.

A request or reply that is lost looks to everybody like one that is never delivered, so only the scopes that
are small enough have those switches too.
"""

from __future__ import annotations

from fencepost.model.effects.state import effects
from fencepost.model.protocol import Scope

FAULTS = ("crash", "reply_lost", "request_duplicated")


def _scope(name: str, *switches: str, why: str, fingerprints: int = 1, revisions: int = 0) -> Scope:
    return effects.scope(
        name,
        sizes={"worker": 2, "call": 2, "fingerprint": fingerprints},
        bounds={
            "lease_version": 2,
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
    "fenced", "queryable", "declining", "request_lost", *FAULTS,
    why="raising the fence and then asking is the only way to know",
)  # fmt: skip
_scope("fenced", "fenced", "request_lost", *FAULTS, why="a fence alone: what is unknown stays so")
_scope("queryable", "queryable", "request_lost", *FAULTS, why="asking alone: to find nothing proves nothing")
_scope(
    "revisioned",
    "revisioned", "revision_moved", "request_lost", *FAULTS, revisions=1,
    why="a downstream that compares revisions alone, such as one with conditional updates",
)  # fmt: skip
_scope("opaque", "request_lost", *FAULTS, why="a downstream that keeps nothing")
