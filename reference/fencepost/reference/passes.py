"""One pass of a worker over one instance: its lease, its workflow, and what both say together (§3, §4, §14).

A pass makes commits until there is nothing to do, and ends when the lease is lost. Around each commit, and
between the parts of each effect, `at` is told of a point; what it raises goes through, as a crash would.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeVar

from fencepost.reference import codes
from fencepost.reference.downstream_values import TakesEffects
from fencepost.reference.keys import canonical_json, fingerprint, notification_key
from fencepost.reference.planning import NOT_STARTED, cancels
from fencepost.reference.session import TRIES, Ended, Run, RunEndsError, Session
from fencepost.reference.store import Store
from fencepost.reference.values import (
    ArgumentError,
    InstanceStatus,
    Intent,
    Move,
    Notification,
    Row,
    StepChange,
    StepRow,
    StepStatus,
    StoreError,
)
from fencepost.reference.values_inbox import Origin, Requested, late_result
from fencepost.reference.wording import said, storable, words_of
from fencepost.reference.worker import Effect, Step, intent_of
from fencepost.reference.workflow import Context, Notice, RetryableError, Workflow, WorkflowStep

OVERTAKEN: Final = (
    codes.CANCEL_REQUESTED,
    codes.DEADLINE_PASSED,
    codes.NOT_DUE,
    codes.APPROVAL_RECORDED,
    codes.NO_SUCH_REQUEST,
    codes.KEY_CONFLICT,
)
"""The codes of a refused commit after which its owner looks again and decides anew."""

Value = TypeVar("Value")


class OvertakenError(Exception):
    """What a commit was decided on no longer stands; never leaves a pass."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The function of a step gave no decision: what it raised, and whether it may be asked again."""

    error_class: str
    why: str
    retryable: bool


def failure(error: Exception, *, retryable: bool = False) -> Failure:
    """What somebody's function raised, whatever its class makes of itself; neither word is empty."""
    name = storable(type(error).__name__) or "unnamed"
    if not retryable:
        return Failure(name, said(error), retryable=False)
    given = getattr(error, "error_class", None)  # a class of their own need not call ours
    error_class = storable(given) if isinstance(given, str) and given else name
    return Failure(error_class, words_of(error) or error_class, retryable=True)


NOTHING_INSTEAD: Final = Failure("nothing-instead", "there is nothing to do instead", retryable=False)
"""Why a step has no other intent in the place of one that came to nothing."""


@dataclass(frozen=True, slots=True)
class Made:
    """The function of a step gave a result: canonical JSON text."""

    result: str


@dataclass(slots=True)
class Pass:
    """A worker's lease on an instance, with the code of its workflow.

    `sent` are the keys under which this lease has sent something, `fresh` those of notifications that it has
    committed and not sent, `ignored` the numbers of requests that could not be honoured, `told` the keys of
    notifications that were tried already.
    """

    session: Session
    workflow: Workflow
    origin: Origin
    notifier: TakesEffects
    sent: set[str] = field(default_factory=set)
    fresh: set[str] = field(default_factory=set)
    told: set[str] = field(default_factory=set)
    ignored: set[int] = field(default_factory=set)

    @property
    def store(self) -> Store:
        """Where the instance is."""
        return self.session.store

    @property
    def row(self) -> Row:
        """The instance as it stands after the last commit of this pass."""
        return self.session.row

    @property
    def unwinds(self) -> bool:
        """Whether the instance has begun to unwind."""
        return self.row.unwinding_cause is not None

    def step(self, step: str) -> StepRow:
        """A step as it stands."""
        return self.session.steps[step]

    def code_of(self, step: str) -> WorkflowStep:
        """A step as it is written."""
        return self.workflow.steps[step]

    def attempts_remain(self, step: str) -> bool:
        """Whether the budget of a step allows another attempt (§9)."""
        stored = self.step(step)
        return stored.most_attempts is None or stored.attempt < stored.most_attempts

    def undo_attempts_remain(self, step: str) -> bool:
        """Whether the compensation of a step may be attempted again: its own budget has the same number."""
        stored = self.step(step)
        return stored.most_attempts is None or stored.undo_attempt < stored.most_attempts

    def requests(self) -> tuple[Requested, ...]:
        """What stands in the inbox unconsumed."""
        return self.reading(lambda: self.store.inbox(self.row.instance, unconsumed=True))

    def now_ms(self) -> int:
        """The store's now."""
        return self.reading(self.store.now_ms)

    def reading(self, call: Callable[[], Value]) -> Value:
        """What a call gives that only reads; ends the pass if the store does not answer."""
        return reading(self.row.instance, call)

    def end(self, ended: Ended, why: str, step: str | None = None) -> NoReturn:
        """End the pass here."""
        self.session.end(ended, why, step)

    # Commits.

    def commit(
        self,
        event: str,
        *changes: StepChange,
        move: Move | None = None,
        requests: tuple[int, ...] = (),
        notifications: tuple[Notification, ...] = (),
        payload: str = "",
        finishes: bool = False,
    ) -> None:
        """One commit. Raises `OvertakenError` if it has to be decided anew; ends the pass if that is over."""
        self.session.at(f"before: {event}")
        code = self.session.attempt(
            event,
            *changes,
            move=move,
            requests=requests,
            notifications=notifications,
            payload=payload,
            finishes=finishes,
        )
        if code in OVERTAKEN:
            raise OvertakenError(code)
        if code is not None:
            self.end(Ended.REFUSED, code)
        self.fresh.update(each.key for each in notifications)
        self.session.at(f"after: {event}")

    def commit_unwinding(self, event: str, *changes: StepChange, cause: str, payload: str = "") -> None:
        """A commit after which the instance unwinds: what has not started is cancelled with it (§10)."""
        if self.unwinds:
            self.commit(event, *changes, payload=payload)
            return
        named = {change.step for change in changes}
        rest = [
            StepChange(step.step, StepStatus.CANCELLED, reason=cause)
            for step in self.row.steps
            if step.status in NOT_STARTED and step.step not in named
        ]
        self.commit(
            event,
            *changes,
            *rest,
            move=Move(InstanceStatus.UNWINDING, cause=cause),
            requests=tuple(each.number for each in cancels(self.requests())),
            payload=payload,
        )

    def succeed(
        self,
        step: str,
        *,
        receipt: str | None = None,
        result: str | None = None,
        request: int | None = None,
        decision: int | None = None,
    ) -> None:
        """Commit a success, with whom it is told to. What the commit is too late for goes to the inbox."""
        change = StepChange(
            step,
            StepStatus.SUCCEEDED,
            receipt=receipt,
            result=result,
            request=request,
            decision=decision,
            reason=None if decision is None else "decided by a person",
        )
        notifications, payload = self._notifications(step, receipt, result)
        try:
            self.commit(f"{step}: succeeded", change, notifications=notifications, payload=payload)
        except RunEndsError as ends:
            intent = self.step(step).intent
            if ends.run.ended is Ended.LOST and receipt is not None and intent is not None:
                self.hand_in(step, intent, receipt)
            raise

    def hand_in(self, step: str, intent: Intent, receipt: str) -> None:
        """Put a receipt into the inbox that came too late for a commit (§4): it is never dropped."""
        owner, token = self.session.owner, self.session.token
        asked = late_result(
            f"late:{owner.incarnation}:{token}:{intent.key}",
            requester=owner.worker,
            step=step,
            key=intent.key,
            fingerprint=intent.fingerprint,
            receipt=receipt,
        )
        for _ in range(TRIES):
            try:
                self.store.request(self.row.instance, asked)
            except ArgumentError:
                raise
            except StoreError:
                continue  # the same request again is answered with what is there
            return

    # What the code of the workflow says.

    def context(self, step: str, *, begins: bool = False, **own: Any) -> Context:
        """What a function of a step is given; with `begins` for an attempt that has not begun yet."""
        stored = self.step(step)
        needed = [self.step(name) for name in stored.depends_on]
        starting = begins or stored.status in (*NOT_STARTED, StepStatus.RETRY_SCHEDULED)
        return Context(
            instance=self.row.instance,
            step=step,
            attempt=stored.attempt + starting,
            input=json.loads(self.origin.input),
            implicit=json.loads(self.origin.implicit_inputs),
            results={each.step: json.loads(each.result) for each in needed if each.result is not None},
            receipts={each.step: each.receipt for each in needed if each.receipt is not None},
            **own,
        )

    def make(self, step: str) -> Intent | Made | Failure:
        """Ask the functions of a step what to do: its next intent, its result, or why it has neither.

        The first is for the function of the step, every other one for what it registered to do instead.
        """
        code, version = self.code_of(step), self.step(step).asked_version
        decides = code if version == 1 else code.other
        if decides is None:
            return NOTHING_INSTEAD
        try:
            decided = decides(self.context(step, begins=version > 1, intent_version=version))
            if not isinstance(decided, Effect):
                return Made(canonical_json(decided)) if version == 1 else NOTHING_INSTEAD
            if code.resource not in (None, decided.resource):
                return Failure(
                    "wrong-resource", f"{decided.resource!r} is not {code.resource!r}", retryable=False
                )
            made = Step(step, decided, code.compensation_name)
            return intent_of(self.row.instance, made, decided, version=version)
        except RetryableError as error:
            return failure(error, retryable=True)
        except Exception as error:  # noqa: BLE001  # whatever a step raises is its failure, not the worker's
            return failure(error)

    def _notifications(
        self, step: str, receipt: str | None, result: str | None
    ) -> tuple[tuple[Notification, ...], str]:
        """Whom a success is told to; what goes wrong in saying so does not undo the success, but is noted."""
        code = self.workflow.steps.get(step)
        if code is None or not code.notices:
            return (), ""
        known = {
            (each.notification.kind, each.notification.recipient, each.notification.target_version)
            for each in self.reading(lambda: self.store.notifications(self.row.instance))
        }
        made, wrong = [], []
        own: dict[str, Any] = {
            "receipt": receipt,
            "result": None if result is None else json.loads(result),
        }
        for tells in code.notices:
            try:
                notification = notification_of(self.row.instance, tells(self.context(step, **own)))
            except Exception as error:  # noqa: BLE001  # as in make
                wrong.append(f"no notification: {said(error)}")
                continue
            target = (notification.kind, notification.recipient, notification.target_version)
            if target not in known:
                known.add(target)
                made.append(notification)
        return tuple(made), "; ".join(wrong)

    def taken_anew(self) -> None:
        """Give the lease up and acquire it again: what was sent before was sent under a lower token (§6)."""
        self.session.take_anew()
        self.sent.clear()


def notification_of(instance: str, notice: Notice) -> Notification:
    """The intent to tell somebody something."""
    if not isinstance(notice, Notice):
        raise ArgumentError(f"notification: the function returned {notice!r}; return a Notice")
    parameters = {
        "recipient": notice.recipient,
        "target_version": notice.target_version,
        "message": notice.message,
    }
    return Notification(
        kind=notice.kind,
        recipient=notice.recipient,
        target_version=notice.target_version,
        key=notification_key(instance, notice.kind, notice.recipient, notice.target_version),
        fingerprint=fingerprint(notice.kind, "notification", 1, parameters),
        parameters=canonical_json(parameters),
    )


def reading(instance: str, call: Callable[[], Value]) -> Value:
    """What a call gives that only reads the store; raises `RunEndsError` if there is no answer."""
    last = ""
    for _ in range(TRIES):
        try:
            return call()
        except ArgumentError:
            raise
        except StoreError as error:
            last = str(error)
    raise RunEndsError(Run(Ended.UNDECIDED, instance, why=f"the store does not answer: {last}"))
