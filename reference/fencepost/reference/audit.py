"""Holds what both databases ended with against what all were answered while it ran (§17).

The databases are read by the back door (`observe.py`, `downstream_observe.py`). What workers and requesters
were answered, their journal, they tell themselves, each thing before they do anything else, so that a worker
that is killed has told of every lease under which it can have committed. Nothing here asks the code under
test. `audit_records.py` says what is compared; the checks are in `audit_lifecycle.py`, `audit_effects.py`,
`audit_requests.py` and `audit_commits.py`, and are named as the claims are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fencepost.reference import audit_commits, audit_effects, audit_lifecycle, audit_requests
from fencepost.reference.audit_records import (
    OK,
    UNKNOWN,
    Acquired,
    Asked,
    Committed,
    Found,
    Journal,
    Records,
    Sent,
    Triggered,
)

__all__ = [
    "CHECKS",
    "OK",
    "UNKNOWN",
    "Acquired",
    "Asked",
    "Check",
    "Committed",
    "Found",
    "Journal",
    "Records",
    "Sent",
    "Triggered",
    "Verdict",
    "audit",
]


class Verdict(StrEnum):
    """One word on what was checked, from worst to best."""

    REFUTED = "REFUTED"
    UNDETERMINED = "UNDETERMINED"
    """It is not known: the time was up before."""
    NOT_EXERCISED = "NOT EXERCISED"
    """Nothing broke it, and what it speaks of never happened."""
    HELD = "HELD"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked: the claim's id and name in the protocol (§17), and what was found.

    `says` is the claim as a sentence, `evidence` what was counted, `wrongs` what breaks it.
    """

    id: str
    name: str
    says: str
    verdict: Verdict
    evidence: str
    wrongs: tuple[str, ...] = ()


CHECKS: Final[Sequence[tuple[str, Callable[[Records], Found]]]] = (
    ("L1", audit_lifecycle.every_instance_settles),
    ("S8", audit_effects.one_effect_per_intent),
    ("S10", audit_effects.receipt_is_true),
    ("S10", audit_effects.no_effect_is_lost),
    ("S11", audit_effects.fence_only_rises),
    ("S13", audit_effects.unknown_is_never_guessed),
    ("S14", audit_lifecycle.recovery_repeats_nothing),
    ("S15", audit_lifecycle.order_is_kept),
    ("S16", audit_requests.cancel_is_honoured),
    ("S17", audit_requests.approval_spent_once),
    ("S18", audit_lifecycle.compensation_once_in_order),
    ("S20", audit_lifecycle.timer_fires_once),
    ("S21", audit_requests.one_instance_per_trigger),
    ("S21", audit_effects.one_notification_per_target),
    ("S26", audit_requests.request_consumed_once),
    ("S4", audit_commits.state_version_counts_commits),
    ("S7", audit_commits.no_lost_update),
    ("S3", audit_commits.lease_version_only_grows),
    ("S1", audit_commits.stale_worker_never_overrides),
)
"""The claims in the order in which they are reported, with their ids."""


def audit(records: Records, *, ended: bool) -> tuple[Check, ...]:
    """Each claim and whether it held; `ended` says that workers had the time to settle every instance (§17).

    If they had not, what is claimed of the end is UNDETERMINED; the other claims speak of any moment.
    """
    checks = []
    for id_, check in CHECKS:
        evidence, happened, wrongs = check(records)
        verdict = Verdict.REFUTED if wrongs else Verdict.HELD if happened else Verdict.NOT_EXERCISED
        if check is audit_lifecycle.every_instance_settles and wrongs and not ended:
            verdict = Verdict.UNDETERMINED
        says = " ".join((check.__doc__ or "").partition("\n\n")[0].split())
        checks.append(Check(id_, check.__name__, says, verdict, evidence, tuple(wrongs)))
    return tuple(checks)
