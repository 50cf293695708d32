"""The words of those without a lease (§4, §11, §13): requests, plans of instances, what they began with.

Like `values.py`: times are whole milliseconds on the store's clock, and everything here is immutable.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fencepost.reference.values import (
    MAX_TIME_MS,
    ArgumentError,
    Definition,
    Notification,
    StepStatus,
    shown,
    text,
    whole,
)


class RequestKind(StrEnum):
    """What a requester may ask for (§4)."""

    CANCEL = "cancel"
    APPROVAL_DECISION = "approval-decision"
    OPERATOR_DECISION = "operator-decision"
    LATE_RESULT = "late-result"


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody without a lease asks of an instance. Made by one of the functions below.

    `request_id` is the same each time that one request is sent, and never used for another.
    """

    kind: RequestKind
    request_id: str
    requester: str
    step: str | None = None
    decision: str | None = None
    intent_version: int | None = None
    key: str | None = None
    fingerprint: str | None = None
    receipt: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, RequestKind):
            raise ArgumentError(f"Request: kind must be one of RequestKind, not {self.kind!r}")
        text("Request", "request_id", self.request_id)
        text("Request", "requester", self.requester)
        for name in ("step", "decision", "key", "fingerprint", "receipt", "reason"):
            if getattr(self, name) is not None:
                text("Request", name, getattr(self, name))
        if self.intent_version is not None:
            whole("Request", "intent_version", self.intent_version, lowest=1)
        given = {name for name in _ASKED if getattr(self, name) is not None}
        if given != _NEEDED[self.kind] - ({"step"} if self.decision == RESUMED else set()):
            raise ArgumentError(
                f"Request: {self.kind} was given {', '.join(sorted(given)) or 'nothing'}; "
                "make it by cancellation, approval, rejection, decision, resumption or late_result"
            )


RESUMED = "resumed"
"""The operator decision that an instance may go on."""

_ASKED = ("step", "decision", "intent_version", "key", "fingerprint", "receipt")
_NEEDED = {
    RequestKind.CANCEL: set[str](),
    RequestKind.APPROVAL_DECISION: {"step", "decision", "intent_version", "fingerprint"},
    RequestKind.OPERATOR_DECISION: {"step", "decision"},
    RequestKind.LATE_RESULT: {"step", "key", "fingerprint", "receipt"},
}


def cancellation(request_id: str, *, requester: str, reason: str | None = None) -> Request:
    """Ask that the instance be cancelled (§10)."""
    return Request(RequestKind.CANCEL, request_id, requester, reason=reason)


def approval(
    request_id: str,
    *,
    requester: str,
    step: str,
    fingerprint: str,
    approved: bool = True,
    intent_version: int = 1,
    reason: str | None = None,
) -> Request:
    """Approve, or reject, one intent of one step: the version that is asked for, with this fingerprint (§11).

    The default is the first intent, which is the only one of most steps; `StepRow.asked_version` has it.
    """
    return Request(
        RequestKind.APPROVAL_DECISION,
        request_id,
        requester,
        step=step,
        decision="approved" if approved else "rejected",
        intent_version=intent_version,
        fingerprint=fingerprint,
        reason=reason,
    )


def operator_decision(
    request_id: str, *, requester: str, step: str, status: StepStatus | str, reason: str | None = None
) -> Request:
    """Decide what a step in manual_intervention becomes (§5)."""
    allowed = (
        StepStatus.RUNNING,
        StepStatus.SUCCEEDED,
        StepStatus.FAILED,
        StepStatus.CANCELLED,
        StepStatus.COMPENSATED,
    )
    decision = next((each for each in allowed if each == status), None)
    if decision is None:
        raise ArgumentError(
            f"operator_decision: status is {shown(status)}; choose one of {', '.join(allowed)}"
        )
    kind = RequestKind.OPERATOR_DECISION
    return Request(kind, request_id, requester, step=step, decision=decision.value, reason=reason)


def resumption(request_id: str, *, requester: str, reason: str | None = None) -> Request:
    """Decide that an instance in manual_intervention goes on where it came from (§8)."""
    return Request(RequestKind.OPERATOR_DECISION, request_id, requester, decision=RESUMED, reason=reason)


def late_result(
    request_id: str, *, requester: str, step: str, key: str, fingerprint: str, receipt: str
) -> Request:
    """Hand in what a former owner learned too late to commit it (§4)."""
    return Request(
        RequestKind.LATE_RESULT,
        request_id,
        requester,
        step=step,
        key=key,
        fingerprint=fingerprint,
        receipt=receipt,
    )


@dataclass(frozen=True, slots=True)
class Requested:
    """A request in the inbox of an instance: its number there, and the commit that consumed it, if any.

    `consumed_by` is the state version that the commit made.
    """

    instance: str
    number: int
    recorded_at_ms: int
    consumed_by: int | None
    request: Request


@dataclass(frozen=True, slots=True)
class StepPlan:
    """What an instance knows of a step from its beginning (§5, §9, §11).

    `depends_on` names the steps that have to succeed before. `approval_deadline_at_ms` is until when an
    approval may be recorded, `deadline_at_ms` until when the step may start, `most_attempts` how often. None
    means without end.
    """

    step: str
    depends_on: tuple[str, ...] = ()
    needs_approval: bool = False
    approval_deadline_at_ms: int | None = None
    deadline_at_ms: int | None = None
    most_attempts: int | None = None

    def __post_init__(self) -> None:
        text("StepPlan", "step", self.step)
        if not isinstance(self.depends_on, tuple):
            raise ArgumentError(f"StepPlan: depends_on must be a tuple of names, not {self.depends_on!r}")
        for name in self.depends_on:
            text("StepPlan", "depends_on", name)
        if not isinstance(self.needs_approval, bool):
            raise ArgumentError(f"StepPlan: needs_approval must be a bool, not {self.needs_approval!r}")
        for what in ("approval_deadline_at_ms", "deadline_at_ms"):
            if getattr(self, what) is not None:
                whole("StepPlan", what, getattr(self, what), highest=MAX_TIME_MS)
        if self.most_attempts is not None:
            whole("StepPlan", "most_attempts", self.most_attempts, lowest=1)


@dataclass(frozen=True, slots=True)
class Beginning:
    """What an event begins an instance with (§13): all that is to be known of it before its first step.

    `input` refers to the input, and `fingerprint` is its hash; `implicit_inputs` says what it takes for
    granted: time zone, ordering, versions of models and configuration (§15). The steps depend on steps of the
    same plan only, and on none in a circle; no deadline means without end.
    """

    instance: str
    definition: Definition
    input: str
    fingerprint: str
    implicit_inputs: str
    steps: tuple[StepPlan, ...] = ()
    deadline_at_ms: int | None = None

    def __post_init__(self) -> None:
        text("Beginning", "instance", self.instance)
        text("Beginning", "fingerprint", self.fingerprint)
        text("Beginning", "input", self.input, may_be_empty=True)
        text("Beginning", "implicit_inputs", self.implicit_inputs, may_be_empty=True)
        if not isinstance(self.definition, Definition):
            raise ArgumentError(f"Beginning: definition must be a Definition, not {self.definition!r}")
        if self.deadline_at_ms is not None:
            whole("Beginning", "deadline_at_ms", self.deadline_at_ms, highest=MAX_TIME_MS)
        if not isinstance(self.steps, tuple) or not all(isinstance(step, StepPlan) for step in self.steps):
            raise ArgumentError(f"Beginning: steps must be a tuple of StepPlan, not {self.steps!r}")
        _checked(self.steps)


def _checked(steps: tuple[StepPlan, ...]) -> None:
    waiting = {plan.step: set(plan.depends_on) for plan in steps}
    if len(waiting) < len(steps):
        raise ArgumentError("Beginning: two steps have one name; rename one of them")
    for step, needs in waiting.items():
        for name in sorted(needs - set(waiting)):
            raise ArgumentError(f"Beginning: {step!r} depends on {name!r}, which is no step of these")
    while waiting:
        free = {step for step, needs in waiting.items() if not needs & set(waiting)}
        if not free:
            raise ArgumentError(f"Beginning: {', '.join(sorted(waiting))} depend on each other in a circle")
        waiting = {step: needs for step, needs in waiting.items() if step not in free}


@dataclass(frozen=True, slots=True)
class Origin:
    """What an instance began with (§13, §15): the event, its input, and what it took for granted.

    `fingerprint` is that of the input. `implicit_inputs` is text of the caller's: time zone, ordering, the
    versions of models and configuration; recovery uses these and not those of its own time.
    """

    source: str
    event_id: str
    fingerprint: str
    instance: str
    input: str
    implicit_inputs: str
    triggered_at_ms: int


@dataclass(frozen=True, slots=True)
class Migration:
    """A registered way from one definition to another, under a name (§14)."""

    name: str
    former: Definition
    later: Definition

    def __post_init__(self) -> None:
        text("Migration", "name", self.name)
        for what in ("former", "later"):
            if not isinstance(getattr(self, what), Definition):
                raise ArgumentError(f"Migration: {what} must be a Definition, not {getattr(self, what)!r}")


@dataclass(frozen=True, slots=True)
class Notified:
    """A notification as the store holds it: which commit stored the intent, and its receipt, once there."""

    instance: str
    state_version: int
    notification: Notification
    receipt: str | None


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer that may fire: that of a retry, or of a compensation's next attempt (§9)."""

    instance: str
    step: str
    timer_at_ms: int
