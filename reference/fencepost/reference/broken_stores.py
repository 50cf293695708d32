"""Stores that are broken on purpose, for the conformance checks to find, and right ones that are unusual.

A broken store is the store with SQL statements replaced and nothing else, so that whatever is found wrong
with it is wrong in these statements. A few that only show between two statements are the store with another
way to call it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from fencepost.conformance import adapter as a
from fencepost.reference import sql
from fencepost.reference.adapter import SqliteAdapter, StoreWorker
from fencepost.reference.sql import STATEMENTS, Statements
from fencepost.reference.values import StoreError


def without_guards(statement: str, *codes: str) -> str:
    """The statement without the guards of these refusals."""
    lines = [
        line for line in statement.splitlines() if not line.endswith(tuple(f"-- refuse: {c}" for c in codes))
    ]
    if len(lines) != len(statement.splitlines()) - len(codes):
        raise StoreError(f"the statement has not exactly one guard for each of {', '.join(codes)}")
    return "\n".join(lines)


_GATES = ("stale-lease-version", "not-the-owner", "lease-expired")
"""What a commit that trusts something else than the lease leaves out."""


def _by_name(statement: str) -> str:
    """The statement comparing the owner's name alone."""
    return statement.replace(" and owner_incarnation = :incarnation", "")


_FIND_NOTHING = f"{sql.FIND_COMMIT.rstrip()} and false\n"

BROKEN: Mapping[str, Statements] = {
    "late-commit-by-id": replace(
        STATEMENTS, commit=without_guards(sql.COMMIT_STATE, *_GATES, "finished", "stale-state-version")
    ),
    "status-only-guard": replace(
        STATEMENTS, commit=without_guards(sql.COMMIT_STATE, *_GATES, "stale-state-version")
    ),
    "state-version-only-guard": replace(STATEMENTS, commit=without_guards(sql.COMMIT_STATE, *_GATES)),
    "lease-version-not-raised": replace(
        STATEMENTS,
        acquire=sql.ACQUIRE.replace(
            "lease_version = lease_version + 1", "lease_version = max(lease_version, 1)"
        ),
        commit=without_guards(sql.COMMIT_STATE, "not-the-owner"),
    ),
    "no-state-version-check": replace(
        STATEMENTS, commit=without_guards(sql.COMMIT_STATE, "stale-state-version")
    ),
    "takeover-from-a-live-owner": replace(STATEMENTS, acquire=without_guards(sql.ACQUIRE, "lease-live")),
    "renewal-revives": replace(STATEMENTS, renew=without_guards(sql.RENEW, "lease-expired")),
    "release-by-anyone": replace(
        STATEMENTS, release=without_guards(sql.RELEASE, "stale-lease-version", "not-the-owner")
    ),
    "no-commit-id": replace(STATEMENTS, find_commit=_FIND_NOTHING),
    "commits-after-the-end": replace(STATEMENTS, commit=without_guards(sql.COMMIT_STATE, "finished")),
    "commits-after-expiry": replace(STATEMENTS, commit=without_guards(sql.COMMIT_STATE, "lease-expired")),
    "owner-not-compared": replace(STATEMENTS, commit=without_guards(sql.COMMIT_STATE, "not-the-owner")),
}
"""Each store under the name of the variant of the model that it is like."""

LYING: Mapping[str, Statements] = {
    # Says ok, and gives an entry, and writes nothing.
    "ok-but-not-committed": replace(
        STATEMENTS,
        commit=sql.COMMIT_STATE.replace(
            "state_version = state_version + 1", "state_version = state_version"
        ).replace("iif(:finishes and status = 'running', 'succeeded', status)", "status"),
        append=re.sub(
            r"insert into .*?\nvalues \((.*)\)  -- effect.*", r"select \1", sql.APPEND, flags=re.DOTALL
        ),
    ),
    # Raises the state version and says that it refused, since an update that returns nothing looks undone.
    "refused-but-committed": replace(STATEMENTS, commit=sql.COMMIT_STATE.partition("returning")[0]),
    # Tells of a lease version that is not the one it gave.
    "tells-of-another-version": replace(
        STATEMENTS,
        acquire=sql.ACQUIRE.replace(
            "owner_incarnation, lease_version,", "owner_incarnation, lease_version + 1,"
        ),
    ),
    # Reads a row as it was before the last commit.
    "reads-an-old-row": replace(
        STATEMENTS, read=sql.READ.replace("state_version, status", "max(state_version - 1, 0), status")
    ),
    # Judges a commit one millisecond late: it is accepted at the very end of the lease.
    "live-at-its-end": replace(
        STATEMENTS, commit=sql.COMMIT_STATE.replace(":now_ms < expires_at_ms", ":now_ms <= expires_at_ms")
    ),
    # Counts a renewal from now, also when that shortens the lease.
    "renewal-shortens": replace(
        STATEMENTS,
        renew=sql.RENEW.replace("max(expires_at_ms, :now_ms + :lease_ms)", ":now_ms + :lease_ms"),
    ),
}
"""Stores whose answers are not what they do, or that are wrong in time, which no variant of the model is."""


class TwoTransactions(StoreWorker):
    """Reads and decides in one transaction, commits in a second: right if the second decides once more."""

    def commit(self, commit: a.Commit) -> a.Answer:
        """Commit what the commit says, unless what was read is against it."""
        seen = self.ask(commit.commit_id)
        if not isinstance(seen, a.Ok) or seen.row is None:
            return seen
        if seen.entry is not None:
            return a.Ok(entry=seen.entry)
        row = seen.row
        for holds, code in (
            (row.lease_version == commit.lease_version, "stale-lease-version"),
            (row.owner == commit.owner, "not-the-owner"),
            (not row.finished, "finished"),
            (row.live(self.clock_ms()), "lease-expired"),
            (row.state_version == commit.state_version, "stale-state-version"),
        ):
            if not holds:
                return a.Refused(code, row)
        return StoreWorker.commit(self, commit)


class OwnerByName(StoreWorker):
    """Takes a row that a former incarnation of its name owns for its own."""

    def read(self) -> a.Answer:
        """Read the row, with itself for anyone of its name."""
        seen = StoreWorker.read(self)
        if not isinstance(seen, a.Ok) or seen.row is None or seen.row.owner is None:
            return seen
        mine = seen.row.owner.worker == self.owner.worker
        owner = a.Owner(self.owner.worker, self.owner.incarnation) if mine else seen.row.owner
        return a.Ok(row=replace(seen.row, owner=owner))


BETWEEN_STATEMENTS: Mapping[str, SqliteAdapter] = {
    # Right as long as nobody else does anything between its two transactions.
    "check-then-act": SqliteAdapter(
        "check-then-act", statements=BROKEN["late-commit-by-id"], worker=TwoTransactions
    ),
    "owner-by-name": SqliteAdapter(
        "owner-by-name",
        statements=replace(
            STATEMENTS,
            renew=_by_name(sql.RENEW),
            release=_by_name(sql.RELEASE),
            commit=_by_name(sql.COMMIT_STATE),
        ),
        worker=OwnerByName,
    ),
}
"""Stores that are broken in how they are called."""

UNUSUAL: Mapping[str, SqliteAdapter] = {
    "commits-after-expiry": SqliteAdapter(
        "commits-after-expiry",
        statements=BROKEN["commits-after-expiry"],
        model_variant="commits-after-expiry",
        deviations={"S27": "a commit is accepted after expiry while nobody has taken over"},
    ),
    "owner-not-compared": SqliteAdapter("owner-not-compared", statements=BROKEN["owner-not-compared"]),
    "two-transactions": SqliteAdapter("two-transactions", worker=TwoTransactions),
}
"""Stores that are right in another way than usual, with what they declare."""
