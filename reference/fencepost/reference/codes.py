"""The refusal codes of the store, and which one is given when several apply (§2).

A refusal is an answer, not an error: it says that *this* call changed nothing, and why. Where more than one
reason holds, the first in the operation's order below is the one that is given; it is the order of the lines
in the `where` of the operation's statement in `sql.py`, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

FINISHED: Final = "finished"
"""The instance is finished: nobody acquires it or commits to it any more (§3, §4)."""

ILLEGAL_TRANSITION: Final = "illegal-transition"
"""The commit would change a step in a way that §5 or §6 does not have, or end the instance too early."""

INSTANCE_EXISTS: Final = "instance-exists"
"""The trigger names an instance whose row is already there (§4)."""

LEASE_EXPIRED: Final = "lease-expired"
"""The caller's lease is over: it ran out or was released, though nobody has taken it since (§3, §4)."""

LEASE_LIVE: Final = "lease-live"
"""Somebody's lease is live, perhaps the caller's own (§3)."""

LEASE_VERSION_EXHAUSTED: Final = "lease-version-exhausted"
"""The lease version cannot rise any further, and never wraps (§3)."""

NO_SUCH_INSTANCE: Final = "no-such-instance"
"""There is no row of that name."""

NOT_THE_OWNER: Final = "not-the-owner"
"""Worker and incarnation together are not the owner of the row (§1, §3, §4)."""

STALE_LEASE_VERSION: Final = "stale-lease-version"
"""The lease version is not the one that stands (§3, §4)."""

STALE_STATE_VERSION: Final = "stale-state-version"
"""The state version is not the one that stands (§4)."""

STATE_VERSION_EXHAUSTED: Final = "state-version-exhausted"
"""The state version cannot rise any further, and never wraps."""

PRECEDENCE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "create": (INSTANCE_EXISTS,),
        "acquire": (NO_SUCH_INSTANCE, FINISHED, LEASE_LIVE, LEASE_VERSION_EXHAUSTED),
        "renew": (NO_SUCH_INSTANCE, STALE_LEASE_VERSION, NOT_THE_OWNER, LEASE_EXPIRED),
        "release": (NO_SUCH_INSTANCE, STALE_LEASE_VERSION, NOT_THE_OWNER),
        # A commit id that is already in the log is answered before all but the first of these.
        "commit": (
            NO_SUCH_INSTANCE,
            STALE_LEASE_VERSION,
            NOT_THE_OWNER,
            FINISHED,
            LEASE_EXPIRED,
            STALE_STATE_VERSION,
            STATE_VERSION_EXHAUSTED,
        ),
        # What a commit changes in steps is looked at after the commit itself; all or nothing is written.
        "change_step": (ILLEGAL_TRANSITION,),
        "finish": (ILLEGAL_TRANSITION,),
        "read": (NO_SUCH_INSTANCE,),
        "ask": (NO_SUCH_INSTANCE,),
    }
)
"""For each operation, its codes in the order in which they are given."""
