"""The refusal codes of the store, and which one is given when several apply (§2).

A refusal is an answer, not an error: it says that *this* call changed nothing, and why. Where more than one
reason holds, the first in the operation's order below is the one that is given; it is the order of the lines
in the `where` of the operation's statement in `sql.py`, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

APPROVAL_NEEDED: Final = "approval-needed"
"""The step, or its new intent, is not to run without an approval (§5, §11)."""

APPROVAL_RECORDED: Final = "approval-recorded"
"""The approval was recorded in time and stands in the inbox: it is honoured (§11)."""

CANCEL_REQUESTED: Final = "cancel-requested"
"""A cancel stands in the inbox: no step starts, nor does the instance end, before it is consumed (§10)."""

DEADLINE_PASSED: Final = "deadline-passed"
"""The store's now has reached the deadline of the step, of its approval, or of the instance (§9, §11)."""

DEPENDENCY_UNMET: Final = "dependency-unmet"
"""A step on which this one depends has not succeeded (§5)."""

FINISHED: Final = "finished"
"""The instance is finished: nobody acquires it or commits to it any more (§3, §4)."""

ILLEGAL_TRANSITION: Final = "illegal-transition"
"""The commit would change a step, or the instance, in a way that §5 or §6 does not have."""

INSTANCE_EXISTS: Final = "instance-exists"
"""The trigger names an instance whose row is already there (§4)."""

KEY_CONFLICT: Final = "key-conflict"
"""The event, request, migration or notification is known under this id, as something else (§6, §13)."""

LEASE_EXPIRED: Final = "lease-expired"
"""The caller's lease is over: it ran out or was released, though nobody has taken it since (§3, §4)."""

LEASE_LIVE: Final = "lease-live"
"""Somebody's lease is live, perhaps the caller's own (§3)."""

LEASE_VERSION_EXHAUSTED: Final = "lease-version-exhausted"
"""The lease version cannot rise any further, and never wraps (§3)."""

NO_SUCH_INSTANCE: Final = "no-such-instance"
"""There is no row of that name."""

NO_SUCH_MIGRATION: Final = "no-such-migration"
"""No migration of that name is registered between these two definitions (§14)."""

NO_SUCH_NOTIFICATION: Final = "no-such-notification"
"""The instance has stored no notification with that key (§13)."""

NO_SUCH_REQUEST: Final = "no-such-request"
"""The inbox has no unconsumed request of that number that asks for this (§4)."""

NOTHING_TO_DECIDE: Final = "nothing-to-decide"
"""The step, or the instance, is in nobody's hands, so no decision about it is asked for (§12)."""

NO_SUCH_STEP: Final = "no-such-step"
"""The instance has no step of that name, or none with a gate for an approval (§11)."""

NOT_DUE: Final = "not-due"
"""The timer, or the deadline, lies after the store's now (§9)."""

NOT_IN_ORDER: Final = "not-in-order"
"""A later success is left that has to be undone first (§10)."""

NOT_THE_OWNER: Final = "not-the-owner"
"""Worker and incarnation together are not the owner of the row (§1, §3, §4)."""

NOT_UNWINDING: Final = "not-unwinding"
"""The instance does not unwind, so nothing is called off or compensated, nor a cancel consumed (§10)."""

STALE_LEASE_VERSION: Final = "stale-lease-version"
"""The lease version is not the one that stands (§3, §4)."""

STALE_STATE_VERSION: Final = "stale-state-version"
"""The state version is not the one that stands (§4)."""

STATE_VERSION_EXHAUSTED: Final = "state-version-exhausted"
"""The state version cannot rise any further, and never wraps."""

UNFINISHED_STEPS: Final = "unfinished-steps"
"""A step is left whose fate is open: nothing is compensated yet, or the instance does not end (§1, §10)."""

UNWINDING: Final = "unwinding"
"""The instance unwinds, or the step is being given up: nothing starts, and the cause stays (§10)."""

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
        # What a commit consumes and changes is looked at after the commit itself, in this order, change by
        # change; all or nothing is written.
        "consume": (NO_SUCH_REQUEST, NOT_UNWINDING),
        "move": (ILLEGAL_TRANSITION, UNWINDING, NO_SUCH_MIGRATION),
        "change_step": (
            NO_SUCH_REQUEST,
            ILLEGAL_TRANSITION,
            UNWINDING,
            NOT_UNWINDING,
            DEADLINE_PASSED,
            NOT_DUE,
            APPROVAL_RECORDED,
            CANCEL_REQUESTED,
            DEPENDENCY_UNMET,
            APPROVAL_NEEDED,
        ),
        "compensate_step": (ILLEGAL_TRANSITION, NOT_UNWINDING, NOT_DUE, UNFINISHED_STEPS, NOT_IN_ORDER),
        "settle_step": (NO_SUCH_REQUEST, ILLEGAL_TRANSITION, UNWINDING, DEADLINE_PASSED, CANCEL_REQUESTED),
        "notify": (KEY_CONFLICT,),
        "finish": (ILLEGAL_TRANSITION, CANCEL_REQUESTED, UNFINISHED_STEPS),
        # A trigger, a request or a migration that is already known is answered before the other reasons.
        "begin": (INSTANCE_EXISTS,),
        "redeliver": (NO_SUCH_INSTANCE, KEY_CONFLICT),
        "request": (NO_SUCH_INSTANCE, FINISHED, NO_SUCH_STEP, DEADLINE_PASSED, NOTHING_TO_DECIDE),
        "register_migration": (KEY_CONFLICT,),
        "deliver": (NO_SUCH_NOTIFICATION, KEY_CONFLICT),
        "vouch": (NO_SUCH_INSTANCE, LEASE_LIVE, STALE_STATE_VERSION),
        "read": (NO_SUCH_INSTANCE,),
        "ask": (NO_SUCH_INSTANCE,),
    }
)
"""For each operation, its codes in the order in which they are given."""
