"""Workflows as they are written: steps that are plain functions, what undoes them, gates (§5, §9 to §14).

    order = Workflow("order", version="1")

    @order.step()
    def charge(ctx):
        return Effect("payment", "charge", {"cents": ctx.input["cents"]})

A function of a step decides, and does nothing outside: what it returns is an effect, which the worker sends,
or a result that JSON can hold. It may be called again after a crash, so it must return the same for the same
context: no clock, no random source, no look at the world but through its effect (§15).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

from fencepost.reference.keys import fingerprint
from fencepost.reference.values import MAX_TIME_MS, ArgumentError, Definition, shown, text, whole
from fencepost.reference.values_inbox import StepPlan
from fencepost.reference.worker import Effect


class RetryableError(Exception):
    """Raised by the function of a step: it cannot decide now, but may later, within the step's budget (§9).

    Anything else that it raises is final: the step fails. So is this one in a step with a gate: before its
    approval the step has not begun, and is cancelled; after it the step fails, and the approval is spent.
    `error_class` is a word for reports.
    """

    def __init__(self, error_class: str, why: str = "") -> None:
        super().__init__(why or error_class)
        self.error_class: Final = text("RetryableError", "error_class", error_class)


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a step is attempted, and how long it waits before the next attempt (§9).

    Takeovers, answers "in progress" and requests that are sent again count as attempts. The wait begins at
    `delay_ms` milliseconds and doubles each time, up to `longest_delay_ms`. A compensation has a budget of
    its own with the same numbers. By default five attempts within about fifteen seconds: enough to outlive a
    restart of what is called, and over before a person would look.
    """

    attempts: int = 5
    delay_ms: int = 1_000
    longest_delay_ms: int = 60_000

    def __post_init__(self) -> None:
        whole("Retry", "attempts", self.attempts, lowest=1)
        whole("Retry", "delay_ms", self.delay_ms, highest=MAX_TIME_MS // 4)
        whole("Retry", "longest_delay_ms", self.longest_delay_ms, highest=MAX_TIME_MS // 4)

    def after_ms(self, attempt: int) -> int:
        """How long to wait after an attempt, counted from 1, in milliseconds."""
        doublings = min(attempt - 1, 62)  # a further one would exceed every longest delay
        return int(min(self.delay_ms << doublings, max(self.delay_ms, self.longest_delay_ms)))


@dataclass(frozen=True, slots=True)
class Approval:
    """A gate (§11): the step waits until somebody approves what exactly it is about to do.

    `deadline_ms` is how long after the question a decision may be recorded; None means without end.
    """

    deadline_ms: int | None = None

    def __post_init__(self) -> None:
        _duration("Approval", self.deadline_ms)


@dataclass(frozen=True, slots=True)
class Notice:
    """What somebody is told when a step has succeeded (§13): one for each kind, recipient and target version.

    `target_version` is that of what the recipient is told about; most notices are the first, and only, one.
    """

    kind: str
    recipient: str
    message: Any = None
    target_version: int = 1

    def __post_init__(self) -> None:
        text("Notice", "kind", self.kind)
        text("Notice", "recipient", self.recipient)
        whole("Notice", "target_version", self.target_version)


@dataclass(frozen=True, slots=True)
class Context:
    """What the function of a step is given; always the same for the same state of the instance.

    `implicit` are the implicit inputs as recorded at the start (§15). `results` and `receipts` are those of
    the steps that this one depends on: a result by those that returned one, a receipt by those with an
    effect. `result` and `receipt` are the step's own, for its compensation and its notification. `attempt`
    counts from 1, and so does `intent_version`, which rises when the effect is known not to have happened
    and another takes its place.
    """

    instance: str
    step: str
    attempt: int
    input: Any
    implicit: Any
    results: Mapping[str, Any]
    receipts: Mapping[str, str]
    result: Any = None
    receipt: str | None = None
    intent_version: int = 1


Decides = Callable[[Context], Any]
Undoes = Callable[[Context], Effect]
Tells = Callable[[Context], Notice]


@dataclass(slots=True)
class WorkflowStep:
    """One step of a workflow; made by `Workflow.step`. Calling it calls its function."""

    name: str
    function: Decides
    after: tuple[str, ...]
    approval: Approval | None
    retry: Retry
    deadline_ms: int | None
    resource: str | None
    undo: Undoes | None = None
    other: Decides | None = None
    notices: list[Tells] = field(default_factory=list)

    def __call__(self, context: Context) -> Any:
        """What the step does, decided for one context."""
        return self.function(context)

    def compensation(self, function: Undoes) -> Undoes:
        """Register what undoes the effect of this step (§12): `(ctx) -> Effect`, with `ctx.receipt`.

        It runs once, and only if the effect happened and the instance unwinds. Raises `ArgumentError` for a
        second one.
        """
        _function("compensation", function)
        if self.undo is not None:
            raise ArgumentError(
                f"compensation: step {self.name!r} has one already; make one function of both"
            )
        self.undo = function
        return function

    def instead(self, function: Decides) -> Decides:
        """Register what to do when the effect came to nothing (§6): `(ctx) -> Effect`, or None for no more.

        Asked when the effect is known not to have happened, as when it is declined, and attempts remain. Its
        effect has another key; where the step has a gate, it waits for the approval of that, too (§11).
        `ctx.intent_version` counts from 2 here. Without it the step fails. Raises `ArgumentError` for a
        second one.
        """
        _function("instead", function)
        if self.other is not None:
            raise ArgumentError(f"instead: step {self.name!r} has one already; decide by ctx.intent_version")
        self.other = function
        return function

    def notification(self, function: Tells) -> Tells:
        """Register whom to tell when this step has succeeded (§13): `(ctx) -> Notice`.

        A notice that is refused for good is given up, as the event log then says; over HTTP the whole request
        may have 64 KiB.
        """
        _function("notification", function)
        self.notices.append(function)
        return function

    @property
    def compensation_name(self) -> str | None:
        """What the intent says of its compensation: the name of the function."""
        return None if self.undo is None else getattr(self.undo, "__name__", type(self.undo).__name__)


class Workflow:
    """A definition: an id, a version, and steps with what they depend on (§5, §14).

    Instances are pinned to the fingerprint over id, version, names, dependencies, gates, resources and the
    names of the functions that compensate. The code of the functions is not part of it: raise `version` when
    what they decide changes. `deadline_ms` is how long after its start an instance may still start steps;
    None means without end.
    """

    def __init__(self, definition_id: str, *, version: str, deadline_ms: int | None = None) -> None:
        self.id: Final = text("Workflow", "definition_id", definition_id)
        self.version: Final = text("Workflow", "version", version)
        self.deadline_ms: Final = _duration("Workflow", deadline_ms)
        self.steps: Final[dict[str, WorkflowStep]] = {}
        self.formers: Final[dict[Definition, str]] = {}

    def step(
        self,
        without_parentheses: None = None,
        /,
        *,
        after: tuple[str, ...] = (),
        approval: Approval | None = None,
        retry: Retry = Retry(),
        deadline_ms: int | None = None,
        resource: str | None = None,
        name: str | None = None,
    ) -> Callable[[Decides], WorkflowStep]:
        """Make a function a step of this workflow, under its own name or `name`.

        `after` names the steps that have to succeed before, `approval` is a gate, `retry` the budget.
        `deadline_ms` is how long after the start of the instance the step may still start. With a `resource`
        declared, an effect on another one is refused before it is sent. Raises `ArgumentError` for a name
        that is taken, for a step in `after` that is not (yet) there, and for arguments of another kind.
        """
        if without_parentheses is not None:
            raise ArgumentError("step: it takes names only; write @workflow.step() with its parentheses")
        _duration("step", deadline_ms)
        _is("approval", approval, Approval, "approval=Approval()", optional=True)
        _is("retry", retry, Retry, "retry=Retry(attempts=3)")
        if resource is not None:
            text("step", "resource", resource)
        if name is not None:
            text("step", "name", name)
        if not isinstance(after, tuple):
            names = tuple(after) if isinstance(after, list) else (after,)
            raise ArgumentError(
                f"step: after must be a tuple of names, not {shown(after)}; write after={shown(names)}"
            )
        for needed in after:
            text("step", "after", needed)
            if needed not in self.steps:
                close = get_close_matches(str(needed), self.steps, n=1)
                hint = f"did you mean {close[0]!r}?" if close else "define it above"
                raise ArgumentError(f"step: after names {needed!r}, which is no step of {self.id!r}; {hint}")

        def register(function: Decides) -> WorkflowStep:
            _function("step", function)
            own = text("step", "name", name if name is not None else getattr(function, "__name__", ""))
            if own in self.steps:
                raise ArgumentError(f"step: {self.id!r} has a step {own!r} already; rename one of them")
            made = WorkflowStep(own, function, tuple(after), approval, retry, deadline_ms, resource)
            self.steps[own] = made
            return made

        return register

    def migrates(self, former: Definition, *, name: str) -> None:
        """Say that this code may go on with instances of a former definition, as the migration `name` (§14).

        `former` is what the instance began with: `store.read(instance).value.definition`. The instance keeps
        the steps that it began with, so each of them must be here that has not failed, been cancelled or been
        compensated: one that has succeeded may still have to be undone. One whose effect has a compensation
        needs one here, and one that waits for the approval of another intent needs an `instead`.
        """
        if not isinstance(former, Definition):
            raise ArgumentError(f"migrates: former must be a Definition, not {shown(former)}")
        if former.id != self.id:
            raise ArgumentError(f"migrates: former is of {former.id!r}; migrate within {self.id!r} only")
        self.formers[former] = text("migrates", "name", name)

    @property
    def definition(self) -> Definition:
        """What instances are pinned to: the id, and the fingerprint (§14)."""
        steps = {
            step.name: {
                "after": sorted(step.after),
                "approval": None if step.approval is None else {"deadline_ms": step.approval.deadline_ms},
                "resource": step.resource,
                "compensation": step.compensation_name,
            }
            for step in self.steps.values()
        }
        return Definition(
            self.id, fingerprint("define", self.id, 1, {"version": self.version, "steps": steps})
        )

    def plans(self, now_ms: int) -> tuple[StepPlan, ...]:
        """The steps of an instance that begins now."""
        return tuple(
            StepPlan(
                step.name,
                depends_on=step.after,
                needs_approval=step.approval is not None,
                deadline_at_ms=None if step.deadline_ms is None else now_ms + step.deadline_ms,
                most_attempts=step.retry.attempts,
            )
            for step in self.steps.values()
        )


def _function(who: str, function: object) -> None:
    if not callable(function):
        raise ArgumentError(f"{who}: expected a function, not {shown(function)}; decorate one")


def _is(what: str, value: object, kind: type, instead: str, *, optional: bool = False) -> None:
    if not isinstance(value, kind) and not (optional and value is None):
        raise ArgumentError(
            f"step: {what} must be of class {kind.__name__}, not {shown(value)}; write {instead}"
        )


def _duration(who: str, deadline_ms: int | None) -> int | None:
    return (
        None
        if deadline_ms is None
        else whole(who, "deadline_ms", deadline_ms, lowest=1, highest=MAX_TIME_MS // 4)
    )
