"""How far finite readings look at triggers: each scope with its reason. Bounds are cuts, never guards.

There is one instance id more than can be used, since a store that begins too many needs one to do so.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.protocol import Scope
from fencepost.model.triggers.state import triggers


def _scope(
    name: str, *switches: str, why: str, sources: int = 1, events: int = 1, requests: int = 1,
    instances: int = 2, fingerprints: int = 1, kinds: int = 1, notices: int = 1, leases: int = 0,
    states: int = 1, targets: int = 0,
) -> Scope:  # fmt: skip
    return triggers.scope(
        name,
        sizes={
            "source": sources,
            "event": events,
            "request": requests,
            "instance": instances,
            "fingerprint": fingerprints,
            "kind": kinds,
            "notice": notices,
        },
        bounds={"lease_version": leases, "state_version": states, "target_version": targets},
        switches=switches,
        why=why,
    )


_scope(
    "small",
    "crash", "reply_lost", "trigger_duplicated", "notice_duplicated", "payload_changed",
    requests=2, fingerprints=2, notices=2, leases=1, states=2, targets=1,
    why="one trigger that comes twice, maybe with another payload, and two notices, the second maybe to a "
    "target that has changed, with two commits; without a second trigger, without a third commit, which "
    "notices has, and without lost messages, which look like late ones",
)  # fmt: skip
_scope(
    "arrivals",
    "crash", "reply_lost", "trigger_lost", "trigger_duplicated", "payload_changed",
    sources=2, requests=3, fingerprints=2, instances=3,
    why="two sources whose events have the same id, and three deliveries; without takeovers, a second notice "
    "and a second commit, which small has",
)  # fmt: skip
_scope(
    "notices",
    "crash", "reply_lost", "notice_lost", "notice_duplicated",
    kinds=2, notices=3, states=4, targets=1,
    why="three notices of two kinds to two versions of the target, and four commits, which are enough to "
    "intend two and record both; one delivery of one event, and no third version, which is as the second",
)  # fmt: skip
GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType({"usual": ("small", "arrivals", "notices")})
"""Scopes that go by one name: all but those for sweeps."""

_scope(
    "quick-arrivals",
    "crash", "reply_lost", "trigger_duplicated", "payload_changed",
    events=2, requests=2, fingerprints=2, instances=3, leases=1,
    why="as arrivals, with two deliveries of two events of one source, and a takeover: for sweeps",
)  # fmt: skip
_scope(
    "quick-notices",
    "crash", "reply_lost", "notice_duplicated",
    notices=2, leases=1, states=3, targets=1,
    why="as notices, with two of one kind, three commits, and a takeover: for sweeps",
)  # fmt: skip

SWEEP = ("quick-notices", "quick-arrivals")
"""The scopes of a sweep: a change that no claim notices in the first is looked at in the next."""

_TRIED = (
    "record_expired", "record_volatile", "two_transactions", "key_per_retry", "trigger_lost", "notice_lost",
)  # fmt: skip

WHAT_IF: Mapping[str, tuple[Scope, ...]] = {
    switch: tuple(
        triggers.scopes[name].but(
            name=f"{name} with {switch}",
            sizes={**triggers.scopes[name].sizes, "instance": 2},
            switches=triggers.scopes[name].switches | {switch},
            why=f"what {switch} breaks; with two instances, which are enough to see one too many",
        )
        for name in SWEEP
    )
    for switch in _TRIED
}
"""For each fault that some or all of the scopes above do without: scopes with it."""
