"""Claims about which runs of an implementation say nothing, with the reason: they are not held then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from fencepost.conformance.oracle import Oracle
from fencepost.conformance.plans import Plan
from fencepost.conformance.vocabulary import has_downstream
from fencepost.model.core.state import STORE
from fencepost.model.language import reading
from fencepost.properties import Claim

FAULTS = "with these faults"


class _ReadError(Exception):
    """A claim reads the state."""


class _Unread:
    def __getattr__(self, name: str) -> Any:
        raise _ReadError(name)


def saying_nothing(oracle: Oracle, chosen: Iterable[Claim], *, faulty: bool) -> dict[str, str]:
    """Claims that are true here whatever happens: they are about what such a downstream cannot do.

    Or, where runs are `faulty`, about what happens without some of the faults.
    """
    found: dict[str, str] = {}
    if not faulty and not has_downstream(oracle.protocol):
        return found
    for claim in chosen:
        unread = [_Unread()] * claim.predicate.__code__.co_argcount
        with reading(oracle.runner), suppress(_ReadError):
            if claim.predicate(*unread):
                about = "of a downstream that can do no more than this one"
                found[claim.name] = f"it says nothing {about if has_downstream(oracle.protocol) else FAULTS}"
    return found


def reading_unseen(plan: Plan, chosen: Sequence[Claim]) -> dict[str, str]:
    """Claims that read a stored variable which the adapter does not show, with the reason."""
    protocol = plan.oracle.protocol
    hidden = {n for n, v in protocol.variables.items() if v.home == STORE and n not in plan.observed}
    if not hidden:
        return {}
    from fencepost.model import terms as t
    from fencepost.model.ground import ground_model

    model = ground_model(protocol, plan.oracle.scope)
    found = {}
    for claim in chosen:
        terms = (
            model.step_claim(claim.predicate) if claim.over_steps else (model.state_claim(claim.predicate),)
        )
        read = {str(v.payload).split("[")[0].split(".")[0] for v in t.variables_of(terms)} & hidden
        if read:
            found[claim.name] = f"it reads {', '.join(sorted(read))}, which {plan.adapter.name} does not show"
    return found
