"""The traced reading: run a function on symbolic values, forking at each truth test, and keep every path.

`trace_action` gives guarded commands, `trace_claim` one boolean term. Terms still speak of families and
sorts; what they mean in a scope is `ground.py`'s business, what they mean for all sizes the prover's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fencepost.model import terms as t
from fencepost.model.domains import BOOLEAN, Enumeration, LeafDomain, index_low
from fencepost.model.errors import ModelError, Site, raised_at
from fencepost.model.language import Cut, Disabled, Fault, Refused
from fencepost.model.lint import check_function
from fencepost.model.protocol import Action, Fresh, Protocol, Scope, did_you_mean
from fencepost.model.symbolic import SymbolicState
from fencepost.model.tracer import PATHS_PER_FUNCTION, Tracer
from fencepost.model.values import Value

PRIME = "'"


@dataclass(frozen=True, slots=True)
class Command:
    """One path through an action: where its guard holds, its updates happen at once, and how it ends.

    `outcome` is ``done`` (a plain action), ``ok`` or a refusal's code (an operation), ``cut`` or ``fault``.
    `fits` are numbers that must lie in a domain, or else the transition is cut by the scope.
    """

    action: Action
    parameters: tuple[t.Term, ...]
    guard: tuple[t.Term, ...]
    outcome: str
    updates: dict[str, t.Term] = field(hash=False)
    fits: tuple[tuple[t.Term, LeafDomain], ...] = ()
    fault: ModelError | None = field(default=None, compare=False)

    @property
    def moves(self) -> bool:
        """Whether it leads to a state (a cut or a fault does not)."""
        return self.outcome not in ("cut", "fault")

    @property
    def refused(self) -> bool:
        """Whether it is a refusal."""
        return self.outcome not in ("cut", "fault", "ok", "done")


def perform(state: Any, action: Action, values: tuple[Any, ...], answers: Enumeration | None) -> str:
    """Run one action on a state of any reading; gives its outcome. False guards end it by a signal."""
    try:
        action.function(state, *values)
        outcome = state.__dict__.get("_late_refusal", "ok") if action.is_operation else "done"
    except Refused as refusal:
        if not action.is_operation:
            raise refused_outside(action, refusal) from None
        _check_code(refusal, answers)
        state.undo(action.home)
        outcome = refusal.code
    if action.answered is not None:
        if answers is None:
            raise ModelError(
                f"{action.name} hands on its answer but the protocol has no answers",
                instead="Protocol(…, answers=…)",
            )
        try:
            action.tell(state, values, answers[outcome])
        except Refused as refusal:
            raise ModelError(
                f"what becomes of an answer of {action.name} is refused ({refusal.code})",
                instead="the operation is decided already; write `if`",
                site=raised_at(refusal.__traceback__),
            ) from None
    return outcome


def refused_outside(action: Action, refusal: Refused) -> ModelError:
    """The error for a `refuse_unless` in an action that nobody decides."""
    return ModelError(
        f"{action.name} is no operation but is refused ({refusal.code})",
        instead="use `when`, or declare it with protocol.operation(…)",
        site=raised_at(refusal.__traceback__) or action.site,
    )


def _check_code(refusal: Refused, answers: Enumeration | None) -> None:
    if answers is not None and refusal.code not in [m.name for m in answers.members]:
        raise ModelError(
            f"{refusal.code!r} is no refusal code",
            instead=did_you_mean(refusal.code, [m.name for m in answers.members], "add it to the answers"),
            site=raised_at(refusal.__traceback__),
        ) from None


def is_used(state: Any, domain: Fresh, value: Any) -> bool:
    """Whether an element that a fresh parameter might name is taken already."""
    cell = getattr(state, domain.used)[value]
    return bool(cell if cell is True or cell is False or isinstance(cell, Value) else cell.present)


def trace_action(protocol: Protocol, action: Action, scope: Scope | None = None) -> tuple[Command, ...]:
    """The guarded commands of one action. With `scope`, loops over sorts are unrolled to its sizes.

    Raises ModelError also when the action depends on something outside of its state: its first path is run
    twice.
    """
    check_function(action.function)
    if action.answered is not None:
        check_function(action.answered)
    protocol.check_fresh(action)
    _check_one_fresh_of_a_sort(action)
    paths = list(_commands(protocol, action, scope))
    if next(_commands(protocol, action, scope)) != paths[0]:
        raise Tracer(protocol, action.name).varies(action.site)
    return tuple(command for command in paths if command is not None)


def _check_one_fresh_of_a_sort(action: Action) -> None:
    sorts = [domain.sort for _, domain in action.parameters if isinstance(domain, Fresh)]
    if len(set(sorts)) < len(sorts):
        raise ModelError(
            f"{action.name} takes two fresh elements of one sort",
            instead="take them in two steps: finite readings would take the same one twice",
            site=action.site,
        )


def _commands(protocol: Protocol, action: Action, scope: Scope | None) -> Iterator[Command | None]:
    """One command per path; None for a path on which the action cannot happen."""
    tracer = Tracer(protocol, action.name, scope)
    tracer.decides_moves = True
    tracer.refuse_names()
    parameters = tuple(
        t.bound(f"{action.name}.{name}", d.sort if isinstance(d, Fresh) else d)
        for name, d in action.parameters
    )
    states: list[SymbolicState] = []

    def run() -> str:
        state = SymbolicState(tracer)
        states.append(state)
        values = tuple(Value(tracer, p) for p in parameters)
        for value, (_, domain) in zip(values, action.parameters, strict=True):
            if isinstance(domain, Fresh) and is_used(state, domain, value):
                raise Disabled
        return perform(state, action, values, protocol.answers)

    for path, outcome, signal in tracer.paths(run):
        guard = tuple(path)
        if signal is None:
            state = states[-1]
            updates = {
                leaf: term
                for leaf, term in state.leaves().items()
                if not (term.op == "var" and term.payload == leaf)
            }
            yield Command(action, parameters, guard, outcome, updates, tuple(state.fits()))
        elif isinstance(signal, Cut):
            yield Command(action, parameters, guard, "cut", {})
        elif isinstance(signal, Fault):
            yield Command(action, parameters, guard, "fault", {}, fault=signal.error)
        else:
            yield None


@dataclass(frozen=True, slots=True)
class StepTerms:
    """What a step claim may ask about the step: values that stand for themselves until it is known."""

    action: Any
    outcome: Any
    refused: Any


def step_enumerations(protocol: Protocol) -> tuple[Enumeration, Enumeration]:
    """The enumerations of action names and of outcomes, for claims about steps."""
    codes = [m.name for m in protocol.answers.members] if protocol.answers else []
    outcomes = dict.fromkeys(["done", "ok", *codes])
    return Enumeration("Action", *(list(protocol.actions) or ["none"])), Enumeration("Outcome", *outcomes)


class StepWord:
    """`step.action` or `step.outcome`: compare it with a name."""

    def __init__(self, tracer: Tracer, enumeration: Enumeration, variable: str) -> None:
        self._tracer, self._enumeration, self._variable = tracer, enumeration, variable

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, name: object) -> Any:
        names = [m.name for m in self._enumeration.members]
        if not isinstance(name, str) or name not in names:
            what = self._variable.partition(" ")[2]
            raise ModelError(
                f"no {what} {name!r}", instead=did_you_mean(str(name), names, "see the protocol")
            )
        return Value(self._tracer, t.variable(f"{self._variable} {name}", BOOLEAN))

    def __ne__(self, name: object) -> Any:
        return Value(self._tracer, t.not_((self == name).term))


def trace_claim(protocol: Protocol, function: Callable[..., Any], scope: Scope | None = None) -> t.Term:
    """The term of a claim: over a state, or over a step's two states (the second primed) and the step."""
    check_function(function)
    name = inspect.unwrap(function).__name__
    tracer, again = Tracer(protocol, name, scope), Tracer(protocol, name, scope)
    tracer.prefix = again.prefix = f"claim {name}"
    tracer.refuse_names()
    found: list[tuple[list[t.Term], Any]] = []

    def run() -> Any:
        value = _claimed(function, tracer)
        found.append((list(tracer.path), value))
        return value

    terms: list[t.Term] = []
    for _, parts, signal in tracer.paths(lambda: tracer.fold_parts(run, BOOLEAN)):
        if isinstance(signal, (Cut, Fault)):
            raise _unguarded(function, signal)
        terms.append(parts[""])
    path, first = found[0]
    path_again, value, _ = next(again.paths(lambda: _claimed(function, again)))
    if path != path_again or _term(first) is not _term(value):
        raise again.varies(site_of(function))
    return terms[0]


def _claimed(function: Callable[..., Any], tracer: Tracer) -> Any:
    before = SymbolicState(tracer, writable=False)
    arity = inspect.unwrap(function).__code__.co_argcount
    if arity == 1:
        return function(before)
    after = SymbolicState(tracer, PRIME, writable=False)
    if arity == 2:
        return function(before, after)
    actions, outcomes = step_enumerations(tracer.protocol)
    step = StepTerms(
        StepWord(tracer, actions, "step action"),
        StepWord(tracer, outcomes, "step outcome"),
        Value(tracer, t.variable("step refused", BOOLEAN)),
    )
    return function(before, after, step)


def _term(value: Any) -> Any:
    return value.term if isinstance(value, Value) else value


def _unguarded(function: Callable[..., Any], signal: Cut | Fault) -> ModelError:
    what = signal.error.what if isinstance(signal, Fault) else "an index beyond its domain"
    site = signal.error.site if isinstance(signal, Fault) else raised_at(signal.__traceback__)
    return ModelError(
        f"claim {inspect.unwrap(function).__name__} reads something that may not be there ({what})",
        instead="write `not x.present or …`, or implies(x.present, lambda: …)",
        site=site or site_of(function),
    )


def movable_term(tracer: Tracer, state: SymbolicState, actions: tuple[str, ...]) -> t.Term:
    """The term of `can_move`: some command of these actions is enabled that changes a variable or is cut."""
    cases: list[t.Term] = []
    for action in (tracer.protocol.actions[name] for name in actions):
        switch = [t.variable(f"switch {action.switch}", BOOLEAN)] if action.switch else []
        for command in trace_action(tracer.protocol, action, tracer.scope):
            if command.outcome == "fault":
                continue
            body = t.and_([*switch, *command.guard, *_effects(tracer, command)])
            cases.append(t.exists(command.parameters, body) if command.parameters else body)
    term = t.or_(cases)
    suffix = state.__dict__["_suffix"]
    if suffix:
        replace = {
            v: t.variable(f"{v.payload}{suffix}", v.domain)
            for v in t.variables_of([term])
            if v.op == "var" and not str(v.payload).startswith("switch ")
        }
        term = t.substitute(term, replace)
    return term


def _effects(tracer: Tracer, command: Command) -> list[t.Term]:
    """That a command changes something or leaves the scope; nothing for what is cut anyway."""
    if not command.moves:
        return []
    changed = [_differs(tracer, leaf, term) for leaf, term in command.updates.items()]
    for term, domain in command.fits:
        inside = (t.le(t.integer(index_low(domain)), term), t.le(term, t.limit_of(domain)))
        changed.append(t.not_(t.and_(inside)))
    return [t.or_(changed)]


def _differs(tracer: Tracer, leaf: str, term: t.Term) -> t.Term:
    variable = t.variable(leaf, term.domain)
    for name, declared in tracer.protocol.variables.items():
        for suffix, domain in declared.domain.leaves():
            if f"{name}{suffix}" == leaf:
                variable = t.variable(leaf, t.Array(declared.index, domain) if declared.index else domain)
    if not isinstance(variable.domain, t.Array):
        return t.not_(t.eq(term, variable))
    cells = tuple(t.bound(f"{leaf}#cell{i}", d) for i, d in enumerate(variable.domain.index))
    return t.exists(cells, t.not_(t.eq(t.select(term, cells), t.select(variable, cells))))


def site_of(function: Callable[..., Any]) -> Site:
    """Where a claim or action is defined."""
    code = inspect.unwrap(function).__code__
    return Site(code.co_filename, code.co_firstlineno, code.co_name)


__all__ = [
    "PATHS_PER_FUNCTION",
    "PRIME",
    "Command",
    "SymbolicState",
    "Tracer",
    "is_used",
    "movable_term",
    "perform",
    "step_enumerations",
    "trace_action",
    "trace_claim",
]
