"""Stores that are broken on purpose in what belongs to whole workflows, by the section that they break.

As in `broken_stores`, each is the store with SQL statements replaced. They are to be used with an adapter
that leaves the schema's own triggers and checks out, since those repel most of this on their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fencepost.reference.sql import STATEMENTS, Statements
from fencepost.reference.values import StoreError


def _without(statement: str, *pieces: str) -> str:
    """The statement without the guards whose lines contain these pieces, each of them in one line."""
    lines = statement.splitlines()
    for piece in pieces:
        found = [line for line in lines if piece in line and "-- refuse:" in line]
        if len(found) != 1:
            raise StoreError(f"{len(found)} guards of the statement contain {piece!r}, not one")
        lines.remove(found[0])
    return "\n".join(lines)


def _with(statement: str, text: str, instead: str) -> str:
    """The statement with one piece of its text replaced."""
    if statement.count(text) != 1:
        raise StoreError(f"the statement contains {text!r} {statement.count(text)} times, not once")
    return statement.replace(text, instead)


_S = STATEMENTS
_CHANGE, _UNDO, _SETTLE = _S.change_step, _S.compensate_step, _S.settle_step

_AS_TAKEN = _with(
    _with(
        _S.request, "(instance, number, recorded_at_ms,", "(instance, consumed_by, number, recorded_at_ms,"
    ),
    "select :instance, (select",
    "select :instance, nullif(state_version, 0), (select",
)
_OF_THE_STORED_INTENT = " and named.fingerprint = approval_fingerprint"
_UNDONE_AGAIN = _with(
    _with(
        _UNDO,
        "status in ('succeeded', 'compensating')",
        "status in ('succeeded', 'compensating', 'compensated')",
    ),
    "(status = 'succeeded') = (:version is not null)",
    "(status <> 'compensating') = (:version is not null)",
)
_FIRST_ONLY = _with(
    _CHANGE,
    "(:again or (status <> 'running' and :to = 'running'))",
    "(:again or (status = 'pending' and :to = 'running'))",
)
_DATED_ALIKE = _with(
    _CHANGE,
    "iif(:to = 'succeeded', :state_version, succeeded_at_version)",
    "iif(:to = 'succeeded', 1, succeeded_at_version)",
)
_UNMARKED = _with(
    _SETTLE,
    "attested = case :to when 'succeeded' then",
    "attested = case :to when 'succeeded' then false and",
)
_ANYWHERE = _with(
    _CHANGE, "('pending', 'running'),", "('pending', 'running'), ('failed', 'manual_intervention'),"
)
_UNAPPROVED = _without(
    _CHANGE, "status <> 'pending' or :to <> 'running'", ":version is null or not needs_approval"
)
_OF_ANY_STEP = _with(
    _with(
        _CHANGE,
        "requests as (select * from inbox where instance = :instance and step = :step)",
        "requests as (select * from inbox where instance = :instance)",
    ),
    "from named join steps using (instance, step) where",
    "from named join steps on steps.instance = :instance and steps.step = :step where",
)
_AGREED_OR_NOT = _with(
    _CHANGE,
    "or decision = 'approved' and :to = 'running'",
    "or decision in ('approved', 'rejected') and :to = 'running'",
)
_ASKED_ALWAYS = _without(_CHANGE, "not anew or (resource is not null")
_TAKEN_FOR_UNSENT = _with(
    _ASKED_ALWAYS,
    "iif(:version is null, undone, null)",
    "iif(:version is null, iif(anew, 'unsent', undone), null)",
)
_PAST_A_PERSON = _with(_UNDO, "'compensating',\n        'manual_intervention')", "'compensating')")

BROKEN_WORKFLOWS: Mapping[str, Statements] = {
    # §4: the inbox.
    "takes-a-request-twice": replace(_S, consume=_without(_S.consume, "consumed_by is null")),
    "records-a-request-as-taken": replace(_S, request=_AS_TAKEN),
    # §5: the life of a step, and of the instance.
    "starts-whatever-it-needs": replace(_S, change_step=_without(_CHANGE, "from unmet")),
    "asks-whatever-it-was": replace(_S, change_step=_ASKED_ALWAYS),
    "takes-what-was-sent-for-unsent": replace(_S, change_step=_TAKEN_FOR_UNSENT),
    "leaves-an-end": replace(_S, change_step=_ANYWHERE),
    "ends-with-steps-left": replace(_S, finish=_without(_S.finish, "from on_the_way")),
    # §9: timers and attempts.
    "timer-not-looked-at": replace(_S, change_step=_without(_CHANGE, "timer_at_ms <= :now_ms")),
    "attempts-not-counted": replace(_S, change_step=_FIRST_ONLY),
    # §10: cancels, and the way back.
    "starts-under-a-cancel": replace(_S, change_step=_without(_CHANGE, "from cancels")),
    "ends-under-a-cancel": replace(_S, finish=_without(_S.finish, "from cancels")),
    "starts-while-it-unwinds": replace(_S, change_step=_without(_CHANGE, "from runs")),
    "calls-off-what-goes-on": replace(_S, change_step=_without(_CHANGE, "not (planned or waits)")),
    "undoes-in-any-order": replace(_S, compensate_step=_without(_UNDO, "from later")),
    "undoes-too-soon": replace(_S, compensate_step=_without(_UNDO, "from unsettled")),
    "undoes-past-a-person": replace(_S, compensate_step=_PAST_A_PERSON),
    # §11: approvals.
    "approves-something-else": replace(_S, change_step=_with(_CHANGE, _OF_THE_STORED_INTENT, "")),
    "runs-on-any-approval": replace(_S, change_step=_OF_ANY_STEP),
    "runs-on-a-rejection": replace(_S, change_step=_AGREED_OR_NOT),
    "runs-without-an-approval": replace(_S, change_step=_UNAPPROVED),
    "approval-after-its-deadline": replace(_S, request=_without(_S.request, "from passed")),
    "deadline-passes-over-an-approval": replace(_S, change_step=_without(_CHANGE, "from undecided")),
    # §12: compensations, and what a person says.
    "decides-what-nobody-asked": replace(_S, request=_without(_S.request, "from asks")),
    "former-decision-stands": replace(_S, overtake=_with(_S.overtake, "step is :step", "false")),
    "undoes-what-is-undone": replace(_S, compensate_step=_UNDONE_AGAIN),
    "undoes-what-cannot-be": replace(_S, compensate_step=_without(_UNDO, "compensation > ''")),
    "success-not-dated": replace(_S, change_step=_DATED_ALIKE),
    "attested-not-marked": replace(_S, settle_step=_UNMARKED),
}
"""By name."""
