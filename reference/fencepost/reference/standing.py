"""Which requests in an inbox a worker still has to honour.

What a person decides counts for the time that they were asked: of a step from the commit that handed it over
until one that takes up a decision about it, of an instance likewise. What was decided about an earlier time,
or by who was overtaken by another, stays in the inbox and brings nothing about: nobody has seen what it would
be applied to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fencepost.reference.store import Store
from fencepost.reference.values import Row
from fencepost.reference.values_inbox import Requested, RequestKind


def standing(store: Store, row: Row) -> tuple[Requested, ...]:
    """The requests to an instance that no commit has consumed, without decisions about an earlier time."""
    inbox = store.inbox(row.instance)
    left = tuple(each for each in inbox if each.consumed_by is None)
    if not any(_decides(each) for each in left):
        return left
    at_ms = {entry.state_version: entry.committed_at_ms for entry in store.log(row.instance)}
    # A step in a person's hands is as the commit left it that handed it over (§5).
    changed_ms = {step.step: at_ms.get(step.state_version, 0) for step in row.steps}
    return tuple(each for each in left if not (_decides(each) and _is_over(each, inbox, changed_ms)))


def _decides(each: Requested) -> bool:
    return each.request.kind is RequestKind.OPERATOR_DECISION


def _is_over(each: Requested, inbox: Sequence[Requested], changed_ms: Mapping[str, int]) -> bool:
    step = each.request.step
    overtaken = any(
        _decides(other)
        and other.request.step == step
        and other.consumed_by is not None
        and other.number > each.number
        for other in inbox
    )
    return overtaken or (step is not None and each.recorded_at_ms < changed_ms.get(step, 0))
