"""The finite reading of traced commands: what they mean in a scope, as terms over scalar cells.

A family becomes one cell per index; a quantifier a conjunction or disjunction; an index that is itself a
state value a chain of choices (never a fork). What comes out has only the operations ``const var not and or
eq le add neg ite`` and is what the compiled reading, the unrolled prover and the agreement tests share.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.model import terms as t
from fencepost.model.domains import Boolean, Enumeration, LeafDomain, Optional, Sort, index_low
from fencepost.model.errors import ModelError, NeedsFiniteError, ScopeError
from fencepost.model.protocol import Action, Fresh, Protocol, Scope, did_you_mean
from fencepost.model.steps import Steps
from fencepost.model.trace import PRIME, Command, trace_action, trace_claim
from fencepost.model.values import default_code

Grounded = Any
"""A ground term, or for a family a tuple of ground terms in row-major order of its index."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One scalar of the finite state: its name, domain and the smallest and largest code it can hold."""

    name: str
    leaf: str
    variable: str
    domain: LeafDomain
    low: int
    high: int

    @property
    def term(self) -> t.Term:
        """The cell's value before a step."""
        return t.variable(self.name, self.domain)


@dataclass(frozen=True, slots=True)
class GroundCommand:
    """One transition rule on cells: where `guard` holds, all `updates` happen at once.

    `fits` are (term, low, high): where one lies outside, the transition is cut. `outcome` as in `Command`;
    ``cut`` and ``fault`` rules lead nowhere and are only counted or reported.
    """

    action: Action
    arguments: tuple[int, ...]
    outcome: str
    guard: t.Term
    updates: Mapping[str, t.Term] = field(hash=False)
    fits: tuple[tuple[t.Term, int, int], ...]
    source: Command = field(hash=False, compare=False)

    @property
    def moves(self) -> bool:
        """Whether it leads to a state."""
        return self.source.moves

    @property
    def label(self) -> str:
        """The transition as a person writes it: ``acquire(w1)``."""
        return label_of(self.action, self.arguments)


def label_of(action: Action, arguments: tuple[int, ...]) -> str:
    """``acquire(w1)``; a boolean parameter shows by its name when true, and not at all when false."""
    shown = []
    for (name, domain), code in zip(action.parameters, arguments, strict=True):
        leaf = domain.sort if isinstance(domain, Fresh) else domain
        if isinstance(leaf, Boolean):
            shown += [name] if code else []
        else:
            shown.append(show_code(leaf, code))
    inside = f"({', '.join(shown)})" if action.parameters else ""
    return f"{action.name}{inside}"


def show_code(domain: LeafDomain, code: int) -> str:
    """A code as a person reads it."""
    if isinstance(domain, Sort):
        return domain.element(code).label
    if isinstance(domain, Enumeration):
        return domain.members[code].name
    if isinstance(domain, Boolean):
        return "yes" if code else "no"
    return str(code)


class Grounder:
    """Turns terms over families and sorts into terms over the cells of one scope."""

    def __init__(self, protocol: Protocol, scope: Scope) -> None:
        check_scope(protocol, scope)
        self.protocol = protocol
        self.scope = scope
        self.cells: dict[str, Cell] = {}
        self.by_leaf: dict[str, tuple[Cell, ...]] = {}
        self._closed: dict[t.Term, Grounded] = {}
        for variable in protocol.variables.values():
            for suffix, domain in variable.domain.leaves():
                leaf = f"{variable.name}{suffix}"
                low, high = scope.limits(domain)
                cells = []
                for index in self.indices(variable.index):
                    place = ",".join(show_code(d, i) for d, i in zip(variable.index, index, strict=True))
                    name = f"{variable.name}[{place}]{suffix}" if index else leaf
                    cells.append(Cell(name, leaf, variable.name, domain, low, high))
                self.by_leaf[leaf] = tuple(cells)
                self.cells.update((c.name, c) for c in cells)

    def used_cells(self, domain: object) -> tuple[Cell, ...]:
        """The cells that say which elements a fresh parameter may not name."""
        assert isinstance(domain, Fresh)  # noqa: S101
        optional = isinstance(self.protocol.variables[domain.used].domain, Optional)
        return self.by_leaf[f"{domain.used}.present" if optional else domain.used]

    def indices(self, domains: tuple[LeafDomain, ...]) -> Iterator[tuple[int, ...]]:
        """All combinations of codes, in row-major order."""
        ranges = []
        for domain in domains:
            low, high = self.scope.limits(domain)
            ranges.append(range(low, high + 1))
        return itertools.product(*ranges)

    def ground(self, term: t.Term, values: Mapping[t.Term, t.Term]) -> Grounded:
        """`term` over cells, with bound variables replaced by `values` (constants, or terms)."""
        return self._visit(term, dict(values), {})

    def boolean(self, term: t.Term, values: Mapping[t.Term, t.Term] | None = None) -> t.Term:
        """A boolean or scalar term over cells."""
        result: t.Term = self.ground(term, values or {})
        return result

    def _visit(self, term: t.Term, env: dict[t.Term, t.Term], cache: dict[t.Term, Grounded]) -> Grounded:
        found = cache.get(term)
        if found is not None:
            return found
        if cache is not self._closed and not t.free_bounds(term):  # the same whatever the parameters are
            cache[term] = result = self._visit(term, {}, self._closed)
            return result
        if term.op == "const" and isinstance(term.domain, Sort):
            self._check_element(term)
        handler = _HANDLERS.get(term.op)
        if handler is not None:
            result = handler(self, term, env, cache)
        elif not term.args:
            result = term
        else:
            args = tuple([self._visit(a, env, cache) for a in term.args])
            result = self._families(term, args) if isinstance(args[-1], tuple) else t.rebuild(term, args)
        cache[term] = result
        return result

    def _check_element(self, term: t.Term) -> None:
        assert isinstance(term.domain, Sort)  # noqa: S101
        if _code(term) >= self.scope.size(term.domain):
            raise ScopeError(
                f"{t.show(term)} is named, but scope {self.scope.name!r} has only "
                f"{self.scope.size(term.domain)} of {term.domain.name!r}; make the scope larger"
            )

    def _families(self, term: t.Term, args: tuple[Grounded, ...]) -> Grounded:
        if term.op != "ite":
            raise ModelError(f"a family used in {term.op}", instead="use its cells")
        return tuple(t.ite(args[0], a, b) for a, b in zip(args[1], args[2], strict=True))

    def _var(self, term: t.Term, _env: dict[t.Term, t.Term], _cache: dict[t.Term, Grounded]) -> Grounded:
        name = str(term.payload)
        if name.startswith("switch "):
            return t.boolean(name[7:] in self.scope.switches)
        primed = name.endswith(PRIME)
        cells = self.by_leaf.get(name.removesuffix(PRIME))
        if cells is None:
            return term  # a word about the step, such as `step refused`
        made = tuple(t.variable(c.name + PRIME, c.domain) if primed else c.term for c in cells)
        return made if isinstance(term.domain, t.Array) else made[0]

    def _bound(self, term: t.Term, env: dict[t.Term, t.Term], _cache: dict[t.Term, Grounded]) -> Grounded:
        return env.get(term, term)

    def _limit(self, term: t.Term, _env: dict[t.Term, t.Term], _cache: dict[t.Term, Grounded]) -> Grounded:
        return t.integer(self.scope.bounds[str(term.payload)])

    def _quantified(
        self, term: t.Term, env: dict[t.Term, t.Term], _cache: dict[t.Term, Grounded]
    ) -> Grounded:
        variables, body = term.args[:-1], term.args[-1]
        bodies = self._instances(variables, body, env)
        if term.op == "forall":
            return t.and_(bodies)
        if term.op == "exists":
            return t.or_(bodies)
        total = t.integer(0)
        for b in bodies:
            total = t.add(total, t.ite(b, t.integer(1), t.integer(0)))
        return total

    def _instances(
        self, variables: tuple[t.Term, ...], body: t.Term, env: dict[t.Term, t.Term]
    ) -> Iterator[t.Term]:
        domains = tuple(_leaf(v.domain) for v in variables)
        for codes in self.indices(domains):
            inner = dict(env)
            inner.update((v, t.constant(c, d)) for v, c, d in zip(variables, codes, domains, strict=True))
            yield self._visit(body, inner, {})

    def _lambda(self, term: t.Term, env: dict[t.Term, t.Term], _cache: dict[t.Term, Grounded]) -> Grounded:
        return tuple(self._instances(term.args[:-1], term.args[-1], env))

    def _fill(self, term: t.Term, env: dict[t.Term, t.Term], cache: dict[t.Term, Grounded]) -> Grounded:
        assert isinstance(term.domain, t.Array)  # noqa: S101
        value = self._visit(term.args[0], env, cache)
        return tuple(value for _ in self.indices(term.domain.index))

    def _select(self, term: t.Term, env: dict[t.Term, t.Term], cache: dict[t.Term, Grounded]) -> Grounded:
        array, *index = term.args
        assert isinstance(array.domain, t.Array)  # noqa: S101
        cells = self._visit(array, env, cache)
        wanted = [self._visit(i, env, cache) for i in index]
        places = list(self.indices(array.domain.index))
        if all(t.is_const(i) for i in wanted):
            codes = tuple(_code(i) for i in wanted)
            # Out of range only where a guard on the same path excludes it: any value will do there.
            return cells[places.index(codes)] if codes in places else cells[-1]
        result = cells[-1]
        for codes, cell in reversed(list(zip(places[:-1], cells[:-1], strict=True))):
            result = t.ite(self._at(array.domain, wanted, codes), cell, result)
        return result

    def _at(self, domain: t.Array, wanted: list[t.Term], codes: tuple[int, ...]) -> t.Term:
        return t.and_(t.eq(w, t.constant(c, d)) for w, c, d in zip(wanted, codes, domain.index, strict=True))

    def _store(self, term: t.Term, env: dict[t.Term, t.Term], cache: dict[t.Term, Grounded]) -> Grounded:
        array, *index, value = term.args
        assert isinstance(array.domain, t.Array)  # noqa: S101
        cells = self._visit(array, env, cache)
        wanted = [self._visit(i, env, cache) for i in index]
        new = self._visit(value, env, cache)
        return tuple(
            t.ite(self._at(array.domain, wanted, codes), new, cell)
            for codes, cell in zip(self.indices(array.domain.index), cells, strict=True)
        )


_Handler = Callable[[Grounder, t.Term, dict[t.Term, t.Term], dict[t.Term, Grounded]], Grounded]
_HANDLERS: Mapping[str, _Handler] = {
    "var": Grounder._var,  # noqa: SLF001
    "bound": Grounder._bound,  # noqa: SLF001
    "limit": Grounder._limit,  # noqa: SLF001
    "forall": Grounder._quantified,  # noqa: SLF001
    "exists": Grounder._quantified,  # noqa: SLF001
    "count": Grounder._quantified,  # noqa: SLF001
    "lambda": Grounder._lambda,  # noqa: SLF001
    "fill": Grounder._fill,  # noqa: SLF001
    "select": Grounder._select,  # noqa: SLF001
    "store": Grounder._store,  # noqa: SLF001
}


def _leaf(domain: t.TermDomain) -> LeafDomain:
    assert isinstance(domain, LeafDomain)  # noqa: S101
    return domain


def _code(term: t.Term) -> int:
    return int(term.payload or 0)


@dataclass(frozen=True, slots=True)
class GroundModel:
    """A protocol in a scope: its cells, its first state, and its transition rules in the actions' order."""

    protocol: Protocol
    scope: Scope
    grounder: Grounder
    cells: tuple[Cell, ...]
    initial: Mapping[str, int]
    commands: tuple[GroundCommand, ...]
    readings: Readings = field(repr=False, compare=False)
    _steps: list[Steps] = field(default_factory=list, init=False, repr=False, compare=False)
    """Once a claim over steps was asked for: what was made for it serves the next."""

    def state_claim(self, function: Callable[..., Any]) -> t.Term:
        """A claim over one state, as a term over cells."""
        return self.grounder.boolean(self.traced(function))

    def traced(self, function: Callable[..., Any]) -> t.Term:
        """A claim as a term over families."""
        return self.readings.claim(function, self.scope)

    def step_claim(self, function: Callable[..., Any]) -> tuple[t.Term, ...]:
        """A claim over steps, as one term per command over the cells before the step."""
        if not self._steps:
            self._steps.append(Steps(self.grounder.cells, self.commands))
        return self._steps[0].of(self.grounder.boolean(self.traced(function)))


def check_scope(protocol: Protocol, scope: Scope) -> None:
    """Raise ScopeError unless `scope` sizes exactly what the protocol has, and turns on only what exists."""
    sorts = protocol.sorts()
    for name, domain in sorts.items():
        table, what = (scope.sizes, "size") if isinstance(domain, Sort) else (scope.bounds, "bound")
        if name not in table:
            raise ScopeError(f"scope {scope.name!r} of {protocol.name} gives no {what} for {name!r}; add it")
        if table[name] < (1 if isinstance(domain, Sort) else 0):
            raise ScopeError(
                f"scope {scope.name!r}: the {what} of {name!r} is {table[name]}; it must be positive"
            )
    for name in (*scope.sizes, *scope.bounds):
        if name not in sorts:
            raise ScopeError(
                f"scope {scope.name!r} bounds {name!r}: " + did_you_mean(name, sorts, "no such sort")
            )
    for name in scope.switches:
        if name not in protocol.switches:
            raise ScopeError(
                f"scope {scope.name!r} turns on {name!r}: "
                + did_you_mean(name, protocol.switches, "no such switch")
            )


class Readings:
    """What the actions and claims of one protocol say, traced once for all scopes.

    What loops over a sort is traced in each scope anew.
    """

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self._actions: dict[str, tuple[Command, ...] | None] = {}
        self._claims: dict[Callable[..., Any], t.Term | None] = {}

    def action(self, action: Action, scope: Scope) -> tuple[Command, ...]:
        """The commands of an action."""
        if action.name not in self._actions:
            try:
                self._actions[action.name] = trace_action(self.protocol, action)
            except NeedsFiniteError:
                self._actions[action.name] = None
        found = self._actions[action.name]
        return trace_action(self.protocol, action, scope) if found is None else found

    def claim(self, function: Callable[..., Any], scope: Scope) -> t.Term:
        """The term of a claim over families."""
        if function not in self._claims:
            try:
                self._claims[function] = trace_claim(self.protocol, function)
            except NeedsFiniteError:
                self._claims[function] = None
        found = self._claims[function]
        return trace_claim(self.protocol, function, scope) if found is None else found


def ground_model(protocol: Protocol, scope: Scope, readings: Readings | None = None) -> GroundModel:
    """The finite reading of a whole protocol in a scope; `readings` are what was traced for other scopes."""
    grounder = Grounder(protocol, scope)
    readings = readings or Readings(protocol)
    commands: list[GroundCommand] = []
    for action in protocol.actions.values():
        if action.switch is not None and action.switch not in scope.switches:
            continue
        traced = readings.action(action, scope)
        domains = tuple(d.sort if isinstance(d, Fresh) else d for _, d in action.parameters)
        for arguments in grounder.indices(domains):
            for command in traced:
                commands += _instance(grounder, action, command, arguments)
        commands += _used_up(grounder, action, readings)
    initial = initial_codes(grounder)
    cells = tuple(grounder.cells.values())
    return GroundModel(protocol, scope, grounder, cells, initial, tuple(commands), readings)


def _instance(
    grounder: Grounder, action: Action, command: Command, arguments: tuple[int, ...]
) -> Iterator[GroundCommand]:
    values = {p: t.constant(c, _leaf(p.domain)) for p, c in zip(command.parameters, arguments, strict=True)}
    cache: dict[t.Term, Grounded] = {}

    def ground(term: t.Term) -> Grounded:
        return grounder._visit(term, values, cache)  # noqa: SLF001

    conditions = (ground(c) for c in command.guard)  # one by one: most arguments fail at a switch that is off
    guard = t.and_(itertools.chain(_smallest_unused(grounder, action, arguments), conditions))
    if guard is t.FALSE:
        return
    updates: dict[str, t.Term] = {}
    for leaf, term in command.updates.items():
        made = ground(term)
        for cell, value in zip(
            grounder.by_leaf[leaf], made if isinstance(made, tuple) else (made,), strict=True
        ):
            if value is not cell.term:
                updates[cell.name] = value
    fits = []
    for term, domain in command.fits:
        low, high = grounder.scope.limits(domain)
        fitted = ground(term)
        inside = t.and_((t.le(t.integer(low), fitted), t.le(fitted, t.integer(high))))
        if inside is not t.TRUE:
            fits.append((fitted, low, high))
    yield GroundCommand(action, arguments, command.outcome, guard, updates, tuple(fits), command)


def _smallest_unused(grounder: Grounder, action: Action, arguments: tuple[int, ...]) -> Iterator[t.Term]:
    for (_, domain), code in zip(action.parameters, arguments, strict=True):
        if isinstance(domain, Fresh):
            used = grounder.used_cells(domain)
            yield from (used[i].term for i in range(code))


def _used_up(grounder: Grounder, action: Action, readings: Readings) -> Iterator[GroundCommand]:
    """Rules that count as cut what would happen if there were one more element for each fresh parameter.

    The action is read in the scope that has one more, with the cells of the new elements as they are in the
    beginning. The rule's arguments name the first element in the place of the new one.
    """
    sorts = {domain.sort.name for _, domain in action.parameters if isinstance(domain, Fresh)}
    if not sorts:
        return
    sizes = {name: n + (name in sorts) for name, n in grounder.scope.sizes.items()}
    larger = Grounder(grounder.protocol, grounder.scope.but(sizes=sizes))
    first = {
        larger.cells[name].term: t.constant(code, larger.cells[name].domain)
        for name, code in initial_codes(larger).items()
        if name not in grounder.cells
    }
    domains = [_sort_of(domain) for _, domain in action.parameters]
    ends = [grounder.scope.limits(domain)[1] for domain in domains]
    traced = readings.action(action, larger.scope)
    for arguments in larger.indices(tuple(domains)):
        new = [code > end for code, end in zip(arguments, ends, strict=True)]
        fresh = [isinstance(domain, Fresh) for _, domain in action.parameters]
        if not any(new) or any(n and not f for n, f in zip(new, fresh, strict=True)):
            continue
        instances = (
            instance
            for command in traced
            if command.outcome != "fault"
            for instance in _instance(larger, action, command, arguments)
        )
        guard = t.or_([t.substitute(instance.guard, first) for instance in instances])
        if guard is not t.FALSE:
            shown = tuple(0 if n else code for n, code in zip(new, arguments, strict=True))
            cut = Command(action, traced[0].parameters, (), "cut", {})
            yield GroundCommand(action, shown, "cut", guard, {}, (), cut)


def _sort_of(domain: LeafDomain | Fresh) -> LeafDomain:
    return domain.sort if isinstance(domain, Fresh) else domain


def initial_codes(grounder: Grounder) -> dict[str, int]:
    """The code of every cell in the first state."""
    from fencepost.model.trace import Tracer
    from fencepost.model.values import encode

    protocol = grounder.protocol
    tracer = Tracer(protocol, "initially", grounder.scope)
    codes: dict[str, int] = {}
    for variable in protocol.variables.values():
        try:
            parts = encode(tracer, variable.domain, variable.initially)
        except ModelError as error:
            raise ModelError(
                f"variable {variable.name} starts as {variable.initially!r}: {error.what}",
                instead=error.instead,
            ) from error
        for suffix, domain in variable.domain.leaves():
            code = _code(parts[suffix])
            low, high = grounder.scope.limits(domain)
            if not low <= code <= high:
                raise ModelError(
                    f"variable {variable.name} starts as {code}, outside {low}..{high}",
                    instead="mend one of them",
                )
            for cell in grounder.by_leaf[f"{variable.name}{suffix}"]:
                codes[cell.name] = code
    return codes


__all__ = [
    "Cell",
    "GroundCommand",
    "GroundModel",
    "Grounder",
    "check_scope",
    "default_code",
    "ground_model",
    "index_low",
    "label_of",
]
