"""Downstreams that are broken on purpose, each by statements replaced and by nothing else.

What is found wrong with one is then wrong in these lines. Open one with
`open_downstream(path, clock_ms=…, statements=BROKEN_DOWNSTREAMS["…"])`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from fencepost.reference import downstream_sql as sql
from fencepost.reference.downstream_sql import DOWNSTREAM_STATEMENTS, DownstreamStatements
from fencepost.reference.values import StoreError


def _replaced(statement: str, old: str, new: str) -> str:
    if statement.count(old) != 1:
        raise StoreError(f"the statement does not hold exactly once what is to be replaced, {old!r}")
    return statement.replace(old, new)


_NO_COMPARISON: Final = "and (fingerprint is null or fingerprint = :fingerprint)"

_RECORDS_IN_MEMORY: Final = """
create temp table records (
    key text primary key, kind text, fingerprint text, effect integer, refusal text, why text,
    decided_at_ms integer
)
"""

BROKEN_DOWNSTREAMS: Final[Mapping[str, DownstreamStatements]] = MappingProxyType(
    {
        # A death in between leaves an effect that no record knows of.
        "effect-and-record-in-two-transactions": replace(
            DOWNSTREAM_STATEMENTS, between=("commit", "begin immediate")
        ),
        # A temporary table of the same name hides the lasting one; it goes with the connection.
        "record-in-memory": replace(
            DOWNSTREAM_STATEMENTS,
            opening=(_RECORDS_IN_MEMORY,),
        ),
        # Hands the old receipt to another request, as if that had succeeded.
        "fingerprint-not-compared": replace(
            DOWNSTREAM_STATEMENTS,
            admit=_replaced(sql.ADMIT, _NO_COMPARISON, "and true"),
            admit_tombstone=_replaced(sql.ADMIT_TOMBSTONE, _NO_COMPARISON, "and true"),
        ),
        # Keeps the new owner out and lets the old one in.
        "fence-compared-the-wrong-way": replace(
            DOWNSTREAM_STATEMENTS,
            admit=_replaced(sql.ADMIT, "token <= :token", "token >= :token"),
            admit_tombstone=_replaced(sql.ADMIT_TOMBSTONE, "token <= :token", "token >= :token"),
            admit_fence=_replaced(sql.ADMIT_FENCE, "token <= :token", "token >= :token"),
        ),
        # Applies whatever the fence says.
        "fence-not-compared": replace(
            DOWNSTREAM_STATEMENTS, admit=_replaced(sql.ADMIT, "token <= :token", "true")
        ),
        # Applies what was given up.
        "tombstone-not-looked-at": replace(
            DOWNSTREAM_STATEMENTS,
            admit=_replaced(
                _replaced(sql.ADMIT, "kind is not 'tombstone'", "true"),
                "select kind,",
                "select nullif(kind, 'tombstone'),",
            ),
            record_receipt=f"{sql.RECORD_RECEIPT}on conflict (key) do nothing\n",
        ),
        # Lets an effect on another revision pass.
        "revision-not-compared": replace(
            DOWNSTREAM_STATEMENTS,
            admit=_replaced(sql.ADMIT, ":expected_revision = ifnull(revision, 0)", "true"),
        ),
    }
)
"""By name, each with what it does wrong."""
