"""Where each variable of the workflow protocol is observed: steps, inbox, downstream, as the model has them.

What is not stored at the moment is as the model says: the timer of a step that waits for none, or whether a
compensation goes with an intent that nobody has committed yet.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from fencepost.conformance import core
from fencepost.conformance.adapter import Capability
from fencepost.conformance.adapter_workflow import StepSeen, WorkflowSeen
from fencepost.conformance.oracle import AS_MODELLED
from fencepost.conformance.vocabulary import CannotEmbedError, Seen
from fencepost.model import absent
from fencepost.model.concrete import values_of
from fencepost.model.core.state import state_versions
from fencepost.model.domains import Element, Member
from fencepost.model.workflow.state import (
    Cause,
    Deed,
    Kind,
    Stands,
    Status,
    attempts,
    calls,
    fingerprints,
    intent_versions,
    requests,
    steps,
)


def work_key(step: str, version: int) -> str:
    """The idempotency key of a step's own effect (§6)."""
    return f"order-1:{step}:account-v{version}"


def undo_key(step: str, version: int) -> str:
    """The idempotency key of its compensation, in a domain of its own (§6)."""
    return f"order-1:{step}:undo-v{version}"


def name_of(value: Any) -> str:
    """How a parameter of an action is written in a name."""
    return str(
        value.name if isinstance(value, Member) else value.label if isinstance(value, Element) else value
    )


def _workflow(seen: Seen) -> WorkflowSeen:
    found = seen.observation.workflow
    if found is None:
        raise CannotEmbedError("the observation has no `workflow`: no steps and no inbox")
    return found


def _by_step(seen: Seen) -> list[tuple[Element, StepSeen]]:
    """The steps in the order of the model."""
    elements = list(values_of(steps, seen.names.scope))
    stored = {step.step: step for step in _workflow(seen).steps}
    if set(stored) != {x.label for x in elements} or len(stored) != len(_workflow(seen).steps):
        raise CannotEmbedError(f"the steps {', '.join(sorted(stored)) or 'none'} are stored")
    return [(x, stored[x.label]) for x in elements]


def _each(read: Callable[[Seen, StepSeen], Any]) -> Callable[[Seen], tuple[Any, ...]]:
    """A variable with a value for each step."""
    return lambda seen: tuple(read(seen, step) for _, step in _by_step(seen))


def _cause(seen: Seen) -> Any:
    found, ended = _workflow(seen).cause, _workflow(seen).ended
    if ended is not None and (ended == "succeeded") != (found is None):
        raise CannotEmbedError(f"the instance ended as {ended!r}, and it unwinds for the cause {found!r}")
    if found not in (None, "failure", "cancel"):
        raise CannotEmbedError(f"the instance unwinds for the cause {found!r}")
    return Cause.none if found is None else getattr(Cause, found)


def _needs(seen: Seen) -> tuple[Any, ...]:
    by_step = _by_step(seen)
    return tuple(y.label in step.needs for _, step in by_step for y, _ in by_step)


def _status(_: Seen, step: StepSeen) -> Any:
    found = getattr(Status, step.status, None)
    if found is None:
        raise CannotEmbedError(f"step {step.step} has the status {step.status!r}")
    return found


def _whole(number: int, most: int, what: str) -> int:
    if not 0 <= number < most:
        raise CannotEmbedError(f"{what} is {number}, which is beyond the scope")
    return number


def _intent(seen: Seen, step: StepSeen) -> Any:
    """The version; the fingerprint that goes with its key is remembered, for when a call arrives."""
    version = _whole(step.intent_version, seen.names.scope.size(intent_versions), f"{step.step}'s intent")
    if step.key is not None:
        if step.key != work_key(step.step, version):
            raise CannotEmbedError(f"the intent of version {version} of {step.step} has the key {step.key!r}")
        seen.names.intents[step.key] = step.fingerprint
    if step.undo_key is not None and step.undo_key != undo_key(step.step, version):
        raise CannotEmbedError(f"the compensation of {step.step} has the key {step.undo_key!r}")
    return version


def _fingerprint(seen: Seen, step: StepSeen) -> Any:
    if step.fingerprint is None:
        return absent
    for element in values_of(fingerprints, seen.names.scope):
        if element.label == step.fingerprint:
            return element
    raise CannotEmbedError(f"a fingerprint {step.fingerprint!r} is stored, which nobody sent")


def _attempt(seen: Seen, step: StepSeen) -> int:
    return _whole(step.retries, seen.names.scope.size(attempts), f"the number of {step.step}'s retries")


def _due(seen: Seen, step: StepSeen) -> Any:
    if step.status != "retry_scheduled":
        return AS_MODELLED
    return step.timer_at_ms is not None and step.timer_at_ms <= seen.now_ms


def _late(seen: Seen, step: StepSeen) -> Any:
    if step.status != "waiting_approval":
        return AS_MODELLED
    return step.approval_until_ms is not None and step.approval_until_ms <= seen.now_ms


def _succeeded_at(seen: Seen, step: StepSeen) -> int:
    return _whole(step.succeeded_at, seen.names.scope.size(state_versions), f"the success of {step.step}")


def _stands(seen: Seen) -> tuple[Any, ...]:
    elements = list(values_of(requests, seen.names.scope))
    found = {recorded.request.request_id: recorded for recorded in _workflow(seen).inbox}
    if len(found) != len(_workflow(seen).inbox):
        raise CannotEmbedError("one request is in the inbox twice")
    strange = set(found) - {r.label for r in elements}
    if strange:
        raise CannotEmbedError(f"a request {min(strange)!r} is in the inbox, which nobody sent")
    return tuple(
        Stands.nowhere
        if r.label not in found
        else Stands.consumed
        if found[r.label].consumed
        else Stands.inbox
        for r in elements
    )


def _by_key(seen: Seen, found: Mapping[str, Any], nothing: Any) -> tuple[Any, ...]:
    """A value for each step, deed and intent version, by what is found under its key."""
    scope = seen.names.scope
    keys = [
        (work_key if deed == Deed.act else undo_key)(x.label, i)
        for x, deed, i in itertools.product(
            values_of(steps, scope), Deed.members, range(scope.size(intent_versions))
        )
    ]
    strange = set(found) - set(keys)
    if strange:
        raise CannotEmbedError(f"the downstream knows the key {min(strange)!r}, which nobody sent")
    return tuple(found.get(key, nothing) for key in keys)


def _record(seen: Seen) -> tuple[Any, ...]:
    kinds = ("receipt", "declined", "tombstone")
    held = [each for each in seen.ledger.held if each.kind != "nothing"]
    for each in held:
        if each.kind not in kinds:
            raise CannotEmbedError(f"under {each.key} is kept {each.kind!r}")
    return _by_key(seen, {each.key: getattr(Kind, each.kind) for each in held}, absent)


def _happened(seen: Seen) -> tuple[Any, ...]:
    return _by_key(seen, {each.key: True for each in seen.ledger.happened}, nothing=False)


def _landings(seen: Seen) -> tuple[Any, ...]:
    decisions = [landing.request for landing in seen.landed]
    return tuple(decisions.count(c.label) % 2 == 1 for c in values_of(calls, seen.names.scope))


_READERS: Mapping[str, Callable[[Seen], Any]] = {
    "begun": lambda _: AS_MODELLED,
    "needs": _needs,
    "gated": _each(lambda _, step: step.gated),
    "undoable": _each(lambda _, step: AS_MODELLED if step.undoable is None else step.undoable),
    "cause": _cause,
    "status": _each(_status),
    "intent": _each(_intent),
    "fingerprint": _each(_fingerprint),
    "attempt": _each(_attempt),
    "due": _each(_due),
    "late": _each(_late),
    "succeeded_at": _each(_succeeded_at),
    "undoing": _each(lambda _, s: s.undoing if s.status == "manual_intervention" else AS_MODELLED),
    "attested": _each(lambda _, step: step.attested),
    "stands": _stands,
    "fence": lambda seen: seen.ledger.fence,
    "record": _record,
    "happened": _happened,
    "landings": _landings,
}

STORED: Mapping[str, tuple[Callable[[Seen], Any], Capability | None]] = {
    **{name: core.STORED[name] for name in ("owner", "lease_version", "live", "state_version", "finished")},
    **{name: (read, Capability.WORKFLOW) for name, read in _READERS.items()},
}
"""For each variable that is observed: its value in rest, and the capability without which it is not."""
