"""The stores that are broken on purpose: what is wrong with each, and which claim says so."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fencepost.checker.verdicts import Finding, Verdict
from fencepost.conformance import LOCK_STEP, verify_statements
from fencepost.model.core.variants import VARIANTS
from fencepost.reference.broken_stores import BETWEEN_STATEMENTS, BROKEN

from .support import verified


@dataclass(frozen=True, slots=True)
class Caught:
    """A store that is refuted: the kind of fault, the fault, the claim that breaks, and the grade."""

    kind: str
    fault: str
    claim: str
    grade: str = "O"


def _guard(name: str, claim: str) -> Caught:
    return Caught("a missing guard", VARIANTS[name].story, claim)


CAUGHT: Mapping[str, Caught] = {
    "late-commit-by-id": _guard("late-commit-by-id", "stale_worker_never_overrides"),
    "status-only-guard": _guard("status-only-guard", "stale_worker_never_overrides"),
    "state-version-only-guard": _guard("state-version-only-guard", "stale_worker_never_overrides"),
    "lease-version-not-raised": Caught(
        "a wrong write", VARIANTS["lease-version-not-raised"].story, "lease_version_only_grows"
    ),
    "no-state-version-check": _guard("no-state-version-check", "commit_matches_both_versions"),
    "takeover-from-a-live-owner": _guard("takeover-from-a-live-owner", "takeover_only_after_expiry"),
    "renewal-revives": _guard("renewal-revives", "takeover_only_after_expiry"),
    "release-by-anyone": _guard("release-by-anyone", "only_expiry_or_the_owner_ends_a_lease"),
    "no-commit-id": Caught(
        "a missing record", VARIANTS["no-commit-id"].story, "what_was_refused_is_not_in_the_log"
    ),
    "commits-after-the-end": _guard("commits-after-the-end", "the_end_is_final"),
    "commits-after-expiry": Caught(
        "a deviation, undeclared", VARIANTS["commits-after-expiry"].story, "commit_only_while_live"
    ),
    "ok-but-not-committed": Caught(
        "a lie",
        "A commit is answered ok, with its entry, and nothing is written.",
        "what_was_answered_ok_is_in_the_log",
    ),
    "refused-but-committed": Caught(
        "a lie", "A commit is refused, and its state version stands.", "refused_changes_nothing"
    ),
    "tells-of-another-version": Caught(
        "a lie", "An acquire tells of another lease version than it gave.", "no_version_held_by_two"
    ),
    "reads-an-old-row": Caught("a lie", "A read gives the row before the last commit.", LOCK_STEP.name),
    "live-at-its-end": Caught(
        "wrong in time", "A commit is accepted in the millisecond in which its lease ends.", LOCK_STEP.name
    ),
    "renewal-shortens": Caught("wrong in time", "A renewal can make a lease shorter.", LOCK_STEP.name),
    "check-then-act": Caught(
        "between statements",
        "A commit reads and decides in one transaction, and writes in a second that compares nothing.",
        "stale_worker_never_overrides",
        "S",
    ),
    "owner-by-name": Caught(
        "between statements",
        "A worker that starts again takes the lease of its former incarnation for its own.",
        "no_version_held_by_two",
        "S",
    ),
}

RIGHT = {"owner-not-compared"}
"""Lacks a guard that the others imply."""


def finding_on(name: str) -> Finding:
    """What the checks find on a broken store, about the claim that says so."""
    caught = CAUGHT[name]
    if caught.grade == "S":
        report = verify_statements(BETWEEN_STATEMENTS[name], claims=[caught.claim])
    else:
        report = verified(name)
    of_claim = [f for f in report.findings if f.claim.name == caught.claim]
    return next((f for f in of_claim if f.verdict is Verdict.REFUTED), of_claim[0])


def rows() -> Iterator[tuple[str, ...]]:
    """The rows of the table for readers."""
    from fencepost.properties import CORE

    for name, caught in CAUGHT.items():
        claim = CORE.claims.get(caught.claim, LOCK_STEP)
        shown = claim.id if claim is LOCK_STEP else f"{claim.id} `{claim.name}`"
        yield f"`{name}`", caught.kind, caught.fault, shown, caught.grade


def without_a_row() -> set[str]:
    """The broken stores that the table says nothing of."""
    from fencepost.reference.broken_stores import LYING

    return {*BROKEN, *LYING, *BETWEEN_STATEMENTS} - set(CAUGHT) - RIGHT
