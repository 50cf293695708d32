"""The traced reading: run a function on symbolic values, forking at each truth test, and keep every path.

`trace_action` gives guarded commands, `trace_claim` one boolean term. Terms still speak of families and sorts; what
they mean in a scope is `ground.py`'s business, what they mean for all sizes the prover's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from fencepost.model import terms as t
from fencepost.model.domains import (
    BOOLEAN,
    INTEGER,
    Domain,
    Element,
    Enumeration,
    LeafDomain,
    Record,
    Sort,
    index_low,
)
from fencepost.model.errors import ModelError, NeedsFiniteError, PathLimitError, Site, caller_site
from fencepost.model.language import Cut, Disabled, Fault, GuardSignal, Refused, reading
from fencepost.model.lint import check_function
from fencepost.model.protocol import HISTORY, Action, Fresh, Protocol, Scope, did_you_mean
from fencepost.model.values import (
    FamilyValue,
    OptionalValue,
    RecordValue,
    Symbolic,
    Value,
    encode,
    lift,
    record_value,
    wrap,
)

PATHS_PER_FUNCTION = 512
"""The cap on paths through one action, claim or helper: far above any action a person can read."""

PRIME = "'"


@dataclass(frozen=True, slots=True)
class Command:
    """One path through an action: where its guard holds, its updates happen at once and it ends with `outcome`.

    `outcome` is ``done`` (a plain action), ``ok`` or a refusal's code (an operation), ``cut`` or ``fault``.
    `fits` are numbers that must lie in a domain, or else the transition is cut by the scope.
    """

    action: Action
    parameters: tuple[t.Term, ...]
    guard: tuple[t.Term, ...]
    outcome: str
    updates: dict[str, t.Term] = field(hash=False)
    fits: tuple[tuple[t.Term, LeafDomain], ...] = ()
    fault: ModelError | None = None

    @property
    def moves(self) -> bool:
        """Whether it leads to a state (a cut or a fault does not)."""
        return self.outcome not in ("cut", "fault")

    @property
    def refused(self) -> bool:
        """Whether it is a refusal."""
        return self.outcome not in ("cut", "fault", "ok", "done")


class Tracer:
    """Answers the words of the language with terms, one path at a time."""

    def __init__(self, protocol: Protocol, label: str, scope: Scope | None = None) -> None:
        self.protocol = protocol
        self.label = label
        self.scope = scope
        self.known: dict[t.Term, bool] = {}
        self.path: list[t.Term] = []
        self.script: list[bool] = []
        self.position = 0
        self.numbering = 0
        self.folding = 0
        self.home: str | None = None

    # -- forks

    def decide(self, term: t.Term) -> bool:
        """The truth of `term` on this path; forks when it is open."""
        if term.op == "const":
            return bool(term.payload)
        if term.op == "not":
            return not self.decide(term.args[0])
        known = self._implied(term)
        if known is not None:
            return known
        if self.position == len(self.script):
            self.script.append(True)
        value = self.script[self.position]
        self.position += 1
        self.path.append(term if value else t.not_(term))
        self._learn(term, value)
        return value

    def _implied(self, term: t.Term) -> bool | None:
        if term in self.known:
            return self.known[term]
        if term.op == "and":
            parts = [
                self._implied(p) if p.op != "not" else _negated(self._implied(p.args[0])) for p in term.args
            ]
            if False in parts:
                return False
            return True if all(p is True for p in parts) else None
        if term.op == "or":
            parts = [
                self._implied(p) if p.op != "not" else _negated(self._implied(p.args[0])) for p in term.args
            ]
            if True in parts:
                return True
            return False if all(p is False for p in parts) else None
        return None

    def _learn(self, term: t.Term, value: bool) -> None:  # noqa: FBT001
        if term.op == "not":
            self._learn(term.args[0], not value)
            return
        self.known[term] = value
        if (term.op == "and" and value) or (term.op == "or" and not value):
            for part in term.args:
                self._learn(part, value)
        if term.op == "eq" and value and term.args[1].op == "const":
            self.known_value(term.args[0], term.args[1])

    def known_value(self, term: t.Term, value: t.Term) -> None:
        """Note that `term` equals `value`, so that it equals no other constant."""
        domain = term.domain
        if isinstance(domain, Enumeration):
            for member in domain.members:
                if member.code != value.payload:
                    self.known.setdefault(t.eq(term, t.constant(member.code, domain)), False)

    def paths(self, fn: Callable[[], Any]) -> Iterator[tuple[list[t.Term], Any, GuardSignal | None]]:
        """Every path of `fn`: (conditions decided on it, result, the signal that ended it)."""
        saved = self.known, self.path, self.script, self.position, self.numbering
        script: list[bool] = []
        found = 0
        while True:
            self.known, self.path, self.script, self.position = dict(saved[0]), [], script, 0
            self.numbering = saved[4]
            result, signal = None, None
            try:
                with reading(self):
                    result = fn()
            except GuardSignal as end:
                signal = end
            path, last_number = self.path, self.numbering
            self.known, self.path, self.script, self.position = saved[:4]
            self.numbering = max(saved[4], last_number)
            yield path, result, signal
            found += 1
            while script and not script[-1]:
                script.pop()
            if not script:
                return
            script[-1] = False
            if found >= PATHS_PER_FUNCTION:
                raise PathLimitError(
                    f"{self.label} forks into more than {PATHS_PER_FUNCTION} paths",
                    instead="fold independent tests: use ite(…), count(…), every(…), or a helper marked @derived",
                )

    def fold_parts(
        self, fn: Callable[[], Any], domain: Domain | None, binders: tuple[t.Term, ...] = ()
    ) -> dict[str, t.Term]:
        """The value of `fn` as leaf terms, its paths merged; no fork leaks out but for faults and cuts.

        `binders` are the variables of a quantifier or update whose body `fn` is.
        """
        self.folding += 1
        results: list[tuple[list[t.Term], dict[str, t.Term]]] = []
        broken: list[tuple[t.Term, GuardSignal]] = []
        try:
            for path, value, signal in self.paths(fn):
                if signal is None:
                    results.append((path, self._parts(value, domain)))
                elif isinstance(signal, (Cut, Fault)):
                    broken.append((t.and_(path), signal))
                else:
                    raise ModelError(
                        "a guard inside a helper or quantifier",
                        instead="guards stand in the action's own body",
                    )
        finally:
            self.folding -= 1
        for condition, signal in broken:
            if self.decide(t.exists(binders, condition) if binders else condition):
                raise signal
        if not results:
            raise ModelError("a helper that has no value on any path", instead="return a value")
        if any(parts.keys() != results[0][1].keys() for _, parts in results):
            raise ModelError("a helper whose paths give values of different kinds", instead="return one kind")
        return _merge(results, 0)

    def _parts(self, value: Any, domain: Domain | None) -> dict[str, t.Term]:
        if domain is not None:
            return encode(self, domain, value)
        if isinstance(value, (OptionalValue, RecordValue)):
            return {"record": t.TRUE, **value.parts}
        return {"": _leaf(self, value)}

    def fold(self, fn: Callable[[], Any]) -> Any:
        """The value of a helper as one value."""
        kept: list[Any] = []

        def keep() -> Any:
            kept.append(fn())
            return kept[-1]

        parts = self.fold_parts(keep, None)
        if "record" in parts:
            parts.pop("record")
            return wrap(self, kept[-1].domain, parts)
        return Value(self, parts[""])

    # -- words of the language

    def truth(self, condition: object) -> bool:
        """The truth of a guard's condition."""
        if isinstance(condition, Symbolic):
            return bool(condition)
        raise ModelError(
            f"a guard on {condition!r}, which is not a condition", instead="give a comparison or a boolean"
        )

    def fresh(self, domain: LeafDomain) -> t.Term:
        """A bound variable of its own."""
        self.numbering += 1
        return t.bound(f"{self.label}#{self.numbering}", domain)

    def quantify(self, op: str, domains: tuple[LeafDomain, ...], fn: Callable[..., Any]) -> Any:
        """A quantifier as one term."""
        if op == "at_most_one":
            return self._at_most_one(domains, fn)
        variables = tuple(self.fresh(d) for d in domains)
        body = self._body(variables, fn)
        build = {"forall": t.forall, "exists": t.exists, "count": t.count}[op]
        return Value(self, build(variables, body))

    def _body(self, variables: tuple[t.Term, ...], fn: Callable[..., Any]) -> t.Term:
        return self.fold_parts(lambda: fn(*(Value(self, v) for v in variables)), BOOLEAN, variables)[""]

    def _at_most_one(self, domains: tuple[LeafDomain, ...], fn: Callable[..., Any]) -> Any:
        first = tuple(self.fresh(d) for d in domains)
        body = self._body(first, fn)
        second = tuple(self.fresh(d) for d in domains)
        other = t.substitute(body, dict(zip(first, second, strict=True)))
        same = t.and_(t.eq(a, b) for a, b in zip(first, second, strict=True))
        return Value(self, t.forall((*first, *second), t.implies(t.and_((body, other)), same)))

    def extreme(self, op: str, domain: LeafDomain, fn: Callable[..., Any]) -> Any:
        """The lowest or highest of finitely many numbers."""
        values = [lift(self, fn(x), INTEGER) for x in self._values(domain, op)]
        best = values[0]
        for term in values[1:]:
            better = t.lt(term, best) if op == "lowest" else t.lt(best, term)
            best = t.ite(better, term, best)
        return Value(self, best)

    def _values(self, domain: LeafDomain, word: str) -> list[Value]:
        if self.scope is None:
            raise NeedsFiniteError(
                f"{word} over {domain.name} needs to know how many there are",
                instead="for all sizes write every(…), some(…), at_most_one(…), or keep a high-water mark",
            )
        low, high = self.scope.limits(domain)
        return [Value(self, t.constant(i, domain)) for i in range(low, high + 1)]

    def elements(self, sort: Sort) -> Iterator[Element]:
        """The elements of a sort in a finite reading."""
        for i in range(len(self._values(sort, f"a loop over {sort.name}"))):
            yield sort.element(i)

    def choose(self, condition: object, a: Any, b: Any) -> Any:
        """One value out of two, without a fork."""
        term = lift(self, condition, BOOLEAN)
        for value in (a, b):
            if isinstance(value, (OptionalValue, RecordValue)):
                first, second = encode(self, value.domain, a), encode(self, value.domain, b)
                return wrap(self, value.domain, {k: t.ite(term, first[k], second[k]) for k in first})
        return Value(self, t.ite(term, _leaf(self, a), _leaf(self, b)))

    def imply(self, a: object, b: Any) -> Any:
        """Implication without a fork; a callable consequence is read only where the premise holds."""
        premise = lift(self, a, BOOLEAN)
        if callable(b) and not isinstance(b, Symbolic):
            return self.fold(lambda: b() if self.decide(premise) else True)
        return Value(self, t.implies(premise, lift(self, b, BOOLEAN)))

    def record(self, record: Record, values: dict[str, Any]) -> Any:
        """A record value."""
        return record_value(self, record, values)

    def switched(self, name: str) -> Any:
        """A switch of the world, open until a scope decides it."""
        if name not in self.protocol.switches:
            raise ModelError(
                f"no switch {name!r}", instead=did_you_mean(name, self.protocol.switches, "declare it")
            )
        return Value(self, t.variable(f"switch {name}", BOOLEAN))

    def movable(self, state: SymbolicState, actors: tuple[str, ...]) -> Any:
        """Whether an accepted, changing move by one of `actors` is possible: a disjunction over all commands."""
        return Value(self, movable_term(self, state, actors))

    def guard_outside(self) -> str:
        """What a guard here belongs to."""
        return self.label

    # -- checks asked by the values

    def fault(self, what: str, instead: str) -> NoReturn:
        """End the path: the model reads something that is not there."""
        raise Fault(ModelError(what, instead=instead))

    def check_index(self, term: t.Term, domain: LeafDomain, name: str) -> None:
        """An index must lie in the family's index domain: above it the scope cuts, below it is a fault."""
        if t.kind(domain) is not INTEGER or term.domain == domain:
            return
        if not self.decide(t.le(t.integer(index_low(domain)), term)):
            self.fault(f"an index of {name} below {index_low(domain)}", "guard it")
        if not self.decide(t.le(term, t.limit_of(domain))):
            raise Cut

    def check_cells(self, variables: tuple[t.Term, ...], term: t.Term, leaf: LeafDomain, name: str) -> None:
        """Every cell that an update writes must lie in its domain."""
        if t.kind(leaf) is INTEGER and term.domain != leaf:
            low, high = t.le(t.integer(index_low(leaf)), term), t.le(term, t.limit_of(leaf))
            if not self.decide(t.forall(variables, low)):
                self.fault(f"{name} falls below {index_low(leaf)}", "guard it")
            if not self.decide(t.forall(variables, high)):
                raise Cut

    def check_writable(self, name: str) -> None:
        """Nothing is written inside a helper or a claim."""
        if self.folding:
            raise ModelError(
                f"{name} written inside a helper or quantifier", instead="write in the action's own body"
            )


def _merge(results: list[tuple[list[t.Term], dict[str, t.Term]]], depth: int) -> dict[str, t.Term]:
    """The paths of a helper as the decision tree that they came from."""
    path, parts = results[0]
    if len(path) == depth:
        return parts
    condition = path[depth]
    yes = [r for r in results if r[0][depth] is condition]
    no = [r for r in results if r[0][depth] is not condition]
    first = _merge(yes, depth + 1)
    if not no:
        return first
    second = _merge(no, depth + 1)
    return {k: t.ite(condition, first[k], second[k]) for k in first}


def _negated(value: bool | None) -> bool | None:  # noqa: FBT001
    return None if value is None else not value


def _leaf(tracer: Tracer, value: Any) -> t.Term:
    if isinstance(value, Value):
        return value.term
    if isinstance(value, OptionalValue):
        return _leaf(tracer, value.value)
    for domain in (BOOLEAN, INTEGER):
        if (value is True or value is False) == (domain is BOOLEAN) and isinstance(value, int):
            return lift(tracer, value, domain)
    found = getattr(value, "sort", None) or getattr(value, "enumeration", None)
    if found is None:
        raise ModelError(
            f"{value!r} is not a state value", instead="return a boolean, number, element or member"
        )
    return lift(tracer, value, found)


class SymbolicState:
    """The state while tracing: attributes are variables; what is written shows in `leaves`."""

    def __init__(self, tracer: Tracer, suffix: str = "", *, writable: bool = True) -> None:
        d = self.__dict__
        d["_tracer"], d["_views"], d["_suffix"], d["_writable"] = tracer, {}, suffix, writable
        d["_written"] = []
        d["_reads_history"] = []

    def __getattr__(self, name: str) -> Any:
        view = self._views.get(name)
        if view is None:
            tracer: Tracer = self._tracer
            variable = tracer.protocol.variables.get(name)
            if variable is None:
                if name.startswith("__"):
                    raise AttributeError(name)
                raise ModelError(
                    f"no state variable {name!r}",
                    instead=did_you_mean(name, tracer.protocol.variables, "declare it"),
                )
            parts = {
                s: t.variable(f"{name}{s}{self._suffix}", t.Array(variable.index, d) if variable.index else d)
                for s, d in variable.domain.leaves()
            }
            if variable.index:
                view = FamilyValue(tracer, name, variable.index, variable.domain, parts)
            else:
                view = wrap(tracer, variable.domain, parts)
            self._views[name] = view
        return view

    def __setattr__(self, name: str, value: object) -> None:
        tracer: Tracer = self._tracer
        variable = tracer.protocol.variables.get(name)
        if variable is None:
            raise ModelError(
                f"no state variable {name!r}",
                instead=did_you_mean(name, tracer.protocol.variables, "declare it"),
            )
        if not self._writable:
            raise ModelError(f"{name} written by a claim", instead="claims only read")
        tracer.check_writable(name)
        if variable.index:
            if isinstance(value, FamilyValue) and (value.index, value.domain) == (
                variable.index,
                variable.domain,
            ):
                mine = FamilyValue(tracer, name, variable.index, variable.domain, dict(value.arrays))
                mine.written = list(value.written)
                self._views[name] = mine
                return
            raise ModelError(
                f"the family {name} assigned as a whole",
                instead=f"use s.{name}[i] = …, .fill(…) or .update_where(…)",
            )
        self._views[name] = wrap(tracer, variable.domain, encode(tracer, variable.domain, value))

    def undo(self, home: str) -> None:
        """Forget every write to variables of `home`."""
        variables = self._tracer.protocol.variables
        for name in [n for n in self._views if variables[n].home == home]:
            del self._views[name]

    def leaves(self) -> dict[str, t.Term]:
        """The leaf terms of every variable that was touched."""
        found: dict[str, t.Term] = {}
        for name, view in self._views.items():
            variable = self._tracer.protocol.variables[name]
            parts = (
                view.arrays if isinstance(view, FamilyValue) else encode(self._tracer, variable.domain, view)
            )
            for suffix, term in parts.items():
                found[f"{name}{suffix}"] = term
        return found

    def fits(self) -> list[tuple[t.Term, LeafDomain]]:
        """What was written to numeric cells, with the domain it has to lie in."""
        found: list[tuple[t.Term, LeafDomain]] = []
        for name, view in self._views.items():
            variable = self._tracer.protocol.variables[name]
            if isinstance(view, FamilyValue):
                found += view.written
            else:
                parts = encode(self._tracer, variable.domain, view)
                found += [(parts[s], leaf) for s, leaf in variable.domain.leaves()]
        return [(x, d) for x, d in dict.fromkeys(found) if t.kind(d) is INTEGER and not _within(x, d)]


def _within(term: t.Term, domain: LeafDomain) -> bool:
    if term.domain == domain:
        return True
    return t.le(t.integer(index_low(domain)), term) is t.TRUE and t.le(term, t.limit_of(domain)) is t.TRUE


def perform(state: Any, action: Action, values: tuple[Any, ...], answers: Enumeration | None) -> str:
    """Run one action on a state of any reading; gives its outcome. Guards that are false end it by a signal."""
    if not action.is_operation:
        action.function(state, *values)
        return "done"
    try:
        action.function(state, *values)
        outcome = state.__dict__.get("_late_refusal", "ok")
    except Refused as refusal:
        state.undo(action.home)
        outcome = refusal.code
    if action.answered is not None:
        if answers is None:
            raise ModelError(
                f"{action.name} hands on its answer but the protocol has no answers",
                instead="Protocol(…, answers=…)",
            )
        action.answered(state, *values, answers[outcome])
    return outcome


def is_used(state: Any, domain: Fresh, value: Any) -> bool:
    """Whether an element that a fresh parameter might name is taken already."""
    cell = getattr(state, domain.used)[value]
    return bool(cell if cell is True or cell is False or isinstance(cell, Value) else cell.present)


def trace_action(protocol: Protocol, action: Action, scope: Scope | None = None) -> tuple[Command, ...]:
    """The guarded commands of one action. With `scope`, loops over sorts are unrolled to its sizes."""
    check_function(action.function)
    if action.answered is not None:
        check_function(action.answered)
    tracer = Tracer(protocol, action.name, scope)
    parameters = tuple(
        t.bound(f"{action.name}.{name}", d.sort if isinstance(d, Fresh) else d)
        for name, d in action.parameters
    )
    states: list[SymbolicState] = []

    def run() -> str:
        tracer.home = action.home
        state = SymbolicState(tracer)
        states.append(state)
        values = tuple(Value(tracer, p) for p in parameters)
        for value, (_, domain) in zip(values, action.parameters, strict=True):
            if isinstance(domain, Fresh) and is_used(state, domain, value):
                raise Disabled
        try:
            return perform(state, action, values, protocol.answers)
        except Refused as refusal:
            raise ModelError(
                f"{action.name} is no operation but is refused ({refusal.code})",
                instead="use `when`, or declare it with protocol.operation(…)",
            ) from None

    commands: list[Command] = []
    for path, outcome, signal in tracer.paths(run):
        guard = tuple(path)
        for condition in guard:
            _no_history(protocol, action, condition)
        if signal is None:
            updates = {
                leaf: term
                for leaf, term in states[-1].leaves().items()
                if not (term.op == "var" and term.payload == leaf)
            }
            commands.append(Command(action, parameters, guard, outcome, updates, tuple(states[-1].fits())))
        elif isinstance(signal, Cut):
            commands.append(Command(action, parameters, guard, "cut", {}))
        elif isinstance(signal, Fault):
            commands.append(Command(action, parameters, guard, "fault", {}, fault=signal.error))
    return tuple(commands)


def _no_history(protocol: Protocol, action: Action, condition: t.Term) -> None:
    for variable in t.variables_of([condition]):
        found = protocol.variables.get(str(variable.payload).split(".")[0])
        if variable.op == "var" and found is not None and found.home == HISTORY:
            raise ModelError(
                f"{action.name} decides by the history variable {found.name}",
                instead="history is written for claims only; keep what a guard needs in a variable of its keeper",
                site=action.site,
            )


@dataclass(frozen=True, slots=True)
class StepTerms:
    """What a step claim may ask about the step: each a value that stands for itself until a command is known."""

    action: Any
    outcome: Any
    refused: Any


def step_enumerations(protocol: Protocol) -> tuple[Enumeration, Enumeration]:
    """The enumerations of action names and of outcomes, for claims about steps."""
    codes = [m.name for m in protocol.answers.members] if protocol.answers else []
    outcomes = dict.fromkeys(["done", "ok", *codes])
    return Enumeration("Action", *(protocol.actions or {"none": None})), Enumeration("Outcome", *outcomes)


class StepWord:
    """`step.action` or `step.outcome`: compare it with a name."""

    def __init__(self, tracer: Tracer, enumeration: Enumeration, variable: str) -> None:
        self._tracer, self._enumeration, self._variable = tracer, enumeration, variable

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, name: object) -> Any:
        names = [m.name for m in self._enumeration.members]
        if name not in names:
            what = self._variable.partition(" ")[2]
            raise ModelError(
                f"no {what} {name!r}", instead=did_you_mean(str(name), names, "see the protocol")
            )
        return Value(self._tracer, t.variable(f"{self._variable} {name}", BOOLEAN))

    def __ne__(self, name: object) -> Any:
        return Value(self._tracer, t.not_((self == name).term))


def trace_claim(protocol: Protocol, function: Callable[..., Any], scope: Scope | None = None) -> t.Term:
    """The term of a claim: over one state, or over a step's two states (primed variables) and the step itself."""
    check_function(function)
    tracer = Tracer(protocol, function.__name__, scope)
    arity = function.__code__.co_argcount

    def run() -> Any:
        pre = SymbolicState(tracer, writable=False)
        if arity == 1:
            return function(pre)
        post = SymbolicState(tracer, PRIME, writable=False)
        if arity == 2:  # noqa: PLR2004
            return function(pre, post)
        actions, outcomes = step_enumerations(protocol)
        step = StepTerms(
            StepWord(tracer, actions, "step action"),
            StepWord(tracer, outcomes, "step outcome"),
            Value(tracer, t.variable("step refused", BOOLEAN)),
        )
        return function(pre, post, step)

    with reading(tracer):
        try:
            return tracer.fold_parts(run, BOOLEAN)[""]
        except (Cut, Fault) as signal:
            error = signal.error if isinstance(signal, Fault) else None
            code = function.__code__
            raise ModelError(
                f"claim {function.__name__} reads something that may not be there"
                + (f" ({error.what})" if error else " (an index beyond its domain)"),
                instead="write `not x.present or …`, or implies(x.present, lambda: …)",
                site=error.site if error else Site(code.co_filename, code.co_firstlineno, function.__name__),
            ) from None


def movable_term(tracer: Tracer, state: SymbolicState, actors: tuple[str, ...]) -> t.Term:
    """The term of `can_move`: some accepted command of these actors is enabled and changes a variable."""
    cases: list[t.Term] = []
    for action in tracer.protocol.actions.values():
        if action.actor not in actors:
            continue
        switch = [t.variable(f"switch {action.switch}", BOOLEAN)] if action.switch else []
        for command in trace_action(tracer.protocol, action, tracer.scope):
            if command.refused or command.outcome == "fault":
                continue
            changed = [_differs(tracer, leaf, term) for leaf, term in command.updates.items()]
            body = t.and_([*switch, *command.guard, *([t.or_(changed)] if command.moves else [])])
            cases.append(t.exists(command.parameters, body) if command.parameters else body)
    term = t.or_(cases)
    if state._suffix:  # noqa: SLF001
        replace = {v: t.variable(f"{v.payload}{state._suffix}", v.domain) for v in t.variables_of([term])  # noqa: SLF001
                   if v.op == "var" and not str(v.payload).startswith("switch ")}  # fmt: skip
        term = t.substitute(term, replace)
    return term


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
    return Site(function.__code__.co_filename, function.__code__.co_firstlineno, function.__name__)


__all__ = ["Command", "SymbolicState", "Tracer", "caller_site", "perform", "trace_action", "trace_claim"]
