"""A protocol: its state variables, its actions, and the scopes in which finite readings look at it.

This module only records what a model declares. Running, tracing and compiling it live in modules of their
own.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType, MethodType
from typing import Any

from fencepost.model.domains import (
    NO_INDEX,
    TAKEN_NAMES,
    Boolean,
    Counter,
    Domain,
    Enumeration,
    Family,
    Integer,
    LeafDomain,
    Optional,
    Sort,
    need_domain,
)
from fencepost.model.errors import ModelError, ScopeError, Site

HISTORY = "history"
"""The home of variables that only claims read: no guard may."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One state variable: its domain, first value, meaning, and *home* (who keeps it: store, worker, …)."""

    name: str
    domain: Domain
    index: tuple[LeafDomain, ...]
    initially: Any
    home: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Fresh:
    """The domain of a parameter that names an unused element of a sort.

    All readings for all sizes take any unused element; finite readings take the smallest, since elements are
    interchangeable. When none is left, what would be possible with one more element is a cut: in every finite
    reading the action is then tried in the scope that has one more, whose cells are as in the beginning.
    """

    sort: Sort
    used: str


ParameterDomain = LeafDomain | Fresh

_TAKEN = {"undo", "leaves", "fits", "at_rest", "load", "forget"}
"""What the classes of states call their own methods."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action: a plain function over a state and parameters, who does it, and what it is."""

    name: str
    function: Callable[..., None]
    actor: str
    parameters: tuple[tuple[str, ParameterDomain], ...]
    home: str | None
    answered: Callable[..., None] | None
    switch: str | None

    @property
    def is_operation(self) -> bool:
        """Whether it is decided by a store or downstream, and so may be refused."""
        return self.home is not None

    def tell(self, state: Any, values: Sequence[object], answer: object) -> None:
        """Run what becomes of the answer, with those parameters that it names."""
        if self.answered is not None:
            given = dict(zip((p for p, _ in self.parameters), values, strict=True))
            self.answered(state, *(given[name] for name in _heard(self.answered)), answer)

    @property
    def doc(self) -> str:
        """The first line of the docstring."""
        return (inspect.getdoc(self.function) or "").split("\n", 1)[0]

    @property
    def site(self) -> Site:
        """Where the function stands."""
        code = self.function.__code__
        return Site(code.co_filename, code.co_firstlineno, self.name)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a finite reading looks at: sizes of sorts, bounds of counters, switches that are on."""

    name: str
    sizes: Mapping[str, int]
    bounds: Mapping[str, int]
    switches: frozenset[str] = frozenset()
    why: str = ""

    def size(self, domain: LeafDomain) -> int:
        """How many values `domain` has here."""
        low, high = self.limits(domain)
        return high - low + 1

    def limits(self, domain: LeafDomain) -> tuple[int, int]:
        """The smallest and largest code of `domain` here."""
        if isinstance(domain, Boolean):
            return 0, 1
        if isinstance(domain, Enumeration):
            return 0, len(domain.members) - 1
        if isinstance(domain, Sort):
            return 0, self._get(self.sizes, domain.name, "size") - 1
        if isinstance(domain, Counter):
            return 0, self._get(self.bounds, domain.name, "bound")
        low: int = domain.low  # type: ignore[attr-defined]
        high: int = domain.high  # type: ignore[attr-defined]
        return low, high

    def _get(self, table: Mapping[str, int], name: str, what: str) -> int:
        if name not in table:
            raise ScopeError(f"scope {self.name!r} gives no {what} for {name!r}; add it to the scope")
        return table[name]

    def describe(self) -> str:
        """Bounds as a verdict prints them: ``2 workers, lease_version ≤ 3``."""
        sizes = [
            f"{n} {name}{'s' if n != 1 and not name.endswith('s') else ''}" for name, n in self.sizes.items()
        ]
        return ", ".join(sizes + [f"{name} ≤ {n}" for name, n in self.bounds.items()])

    def but(self, **changes: Any) -> Scope:
        """The same scope with some fields replaced."""
        return replace(self, **changes)


@dataclass(slots=True)
class Protocol:
    """State variables and actions under a name; models add to it with the methods below, in reading order."""

    name: str
    answers: Enumeration | None = None
    variables: dict[str, Variable] = field(default_factory=dict)
    actions: dict[str, Action] = field(default_factory=dict)
    switches: dict[str, str] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)
    actors: set[str] = field(default_factory=set)
    """Who acts, also where a variant leaves the actions out."""
    _positions: dict[str, int] = field(default_factory=dict, repr=False)

    def variable(
        self, name: str, domain: Domain | Family, initially: Any, *, home: str, meaning: str
    ) -> None:
        """Declare a state variable. `initially` is the value of every cell."""
        if name in self.variables:
            raise ModelError(f"variable {name!r} declared twice", instead="one line per variable")
        if not name.isidentifier() or name.startswith("_") or name in _TAKEN:
            raise ModelError(f"{name!r} cannot be a variable's name", instead="use lower_case_words")
        index: tuple[LeafDomain, ...] = ()
        of: Domain
        if isinstance(domain, Family):
            index, of = domain.index, domain.of
        else:
            of = domain
        need_domain(of, f"variable {name!r}")
        self._name_apart((*index, of))
        self.variables[name] = Variable(name, of, index, initially, home, meaning)

    def switch(self, name: str, meaning: str) -> str:
        """Declare a switch of the world (§16); scopes turn it on by name."""
        self.switches[name] = meaning
        return name

    def fresh(self, sort: Sort, *, unless: str) -> Fresh:
        """A parameter that is an unused element: one for which the family `unless` is false, or absent."""
        return Fresh(sort, unless)

    def action(
        self, actor: str, *, switch: str | None = None, **parameters: ParameterDomain
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Register the decorated function as an action by `actor`; keywords are its parameters' domains."""
        return self._register(actor, None, None, switch, parameters)

    def operation(
        self,
        actor: str,
        *,
        home: str,
        answered: Callable[..., None] | None = None,
        switch: str | None = None,
        **parameters: ParameterDomain,
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Register an action that the keeper of `home` decides in one transaction, and may refuse.

        `answered(s, …, answer)` says what becomes of the answer, `ok` or a refusal's code. Between the state
        and the answer it takes those parameters of the operation that it needs, by name. A refusal undoes
        every write of the body to variables of `home`.
        """
        return self._register(actor, home, answered, switch, parameters)

    def _register(
        self,
        actor: str,
        home: str | None,
        answered: Callable[..., None] | None,
        switch: str | None,
        parameters: Mapping[str, ParameterDomain],
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        def register(function: Callable[..., None]) -> Callable[..., None]:
            name = _name_of(function)
            if name in self.actions:
                raise ModelError(f"action {name!r} declared twice", instead="rename one of them")
            taken = _positional(function, name)
            if not taken:
                raise ModelError(f"{name} takes no state", instead=f"write def {name}(s, …)")
            expected = taken[1:]
            if sorted(expected) != sorted(parameters):
                raise ModelError(
                    f"{name} takes {expected} but domains are given for {sorted(parameters)}",
                    instead="give one domain per parameter after the state",
                )
            if switch is not None and switch not in self.switches:
                raise ModelError(
                    f"{name} hangs on the switch {switch!r}, which is not declared",
                    instead=did_you_mean(switch, self.switches, "declare it with protocol.switch(…)"),
                )
            for parameter, domain in parameters.items():
                _need_parameter(f"{parameter} of {name}", domain)
            if answered is not None:
                _need_answered(answered, name, expected)
            self._name_apart([d.sort if isinstance(d, Fresh) else d for d in parameters.values()])
            self.actors.add(actor)
            ordered = tuple((p, parameters[p]) for p in expected)
            self.actions[name] = Action(name, function, actor, ordered, home, answered, switch)
            return function

        return register

    def scope(self, name: str, *, sizes: Mapping[str, int], bounds: Mapping[str, int], why: str,
              switches: Iterable[str] = ()) -> Scope:  # fmt: skip
        """Declare a named scope."""
        for table, what in ((sizes, "size"), (bounds, "bound")):
            for sized, number in table.items():
                if type(number) is not int:
                    raise ModelError(
                        f"scope {name!r}: the {what} of {sized!r} is {number!r}",
                        instead="give a whole number",
                    )
        made = Scope(name, dict(sizes), dict(bounds), frozenset(switches), why)
        for switch in made.switches - set(self.switches):
            raise ScopeError(
                f"scope {name!r} turns on {switch!r}; " + did_you_mean(switch, self.switches, "declare it")
            )
        self.scopes[name] = made
        return made

    def variant(
        self, name: str, *, without: Iterable[str] = (), **functions: Callable[..., None]
    ) -> Protocol:
        """A copy with some actions' bodies replaced or some actions left out; for broken variants."""
        actions = dict(self.actions)
        for action, function in functions.items():
            if action not in actions:
                raise ModelError(
                    f"{name} replaces {action!r}", instead=did_you_mean(action, actions, "no such action")
                )
            actions[action] = replace(actions[action], function=function)
        for action in without:
            del actions[action]
        made = Protocol(
            name, self.answers, dict(self.variables), actions, dict(self.switches), dict(self.scopes)
        )
        made.actors = set(self.actors)
        return made

    def extended(self, name: str) -> Protocol:
        """A copy to which actions, variables and scopes can be added without touching the original."""
        return self.variant(name)

    def check_fresh(self, action: Action) -> None:
        """Raise ModelError unless each fresh parameter of `action` is told by a family over its own sort."""
        for name, domain in action.parameters:
            if isinstance(domain, Fresh):
                used = self.variables.get(domain.used)
                if (
                    used is None
                    or used.index != (domain.sort,)
                    or not isinstance(used.domain, (Boolean, Optional))
                ):
                    raise ModelError(
                        f"{name} of {action.name}: fresh(…, unless={domain.used!r}) names no boolean or "
                        f"optional family over {domain.sort.name}",
                        instead=did_you_mean(
                            domain.used, self.variables, "name the one that tells what is used"
                        ),
                        site=action.site,
                    )

    def position(self, name: str) -> int:
        """The place of a variable in the order of declaration."""
        if len(self._positions) != len(self.variables):
            self._positions.update({n: i for i, n in enumerate(self.variables)})
        return self._positions[name]

    def sorts(self) -> dict[str, LeafDomain]:
        """Every sort and counter that the protocol mentions, by name: what a scope has to size."""
        found: dict[str, LeafDomain] = {}
        for variable in self.variables.values():
            for domain in (*variable.index, variable.domain):
                found.update((d.name, d) for d in _sized(domain))
        for action in self.actions.values():
            for _, parameter in action.parameters:
                found.update((d.name, d) for d in _sized(parameter))
        return found

    def _name_apart(self, domains: Iterable[Domain]) -> None:
        """Refuse two sorts or counters of one name, which no scope could size apart."""
        known = self.sorts()
        for domain in (d for x in domains for d in _sized(x)):
            if known.setdefault(domain.name, domain) != domain:
                raise ModelError(
                    f"{domain!r} and {known[domain.name]!r} share a name",
                    instead="scopes size sorts and counters by name: rename one of them",
                )


def _sized(domain: Domain | Fresh) -> Iterator[Sort | Counter]:
    """The sorts and counters in a domain."""
    if isinstance(domain, Fresh):
        yield domain.sort
    elif isinstance(domain, (Sort, Counter)):
        yield domain
    else:
        for _, leaf in domain.leaves():
            if isinstance(leaf, (Sort, Counter)):
                yield leaf


def _name_of(function: Callable[..., Any]) -> str:
    """The name of an action's function, if it may be an action at all."""
    name: str = getattr(function, "__name__", repr(function))
    if not isinstance(function, (FunctionType, MethodType)):
        raise ModelError(f"the action {name} is no function", instead="write `def`, with the state first")
    if not name.isidentifier() or name in TAKEN_NAMES:
        raise ModelError(f"{name!r} cannot be an action's name", instead="write `def` and a name of its own")
    return name


def _positional(function: Callable[..., Any], name: str) -> list[str]:
    """The names of a function's parameters, which all must be given by place."""
    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise ModelError(
                f"{name} takes {parameter}, which is not given by place",
                instead="write plain parameters: (s, a, b)",
            )
    return [parameter.name for parameter in parameters]


def _need_parameter(what: str, domain: object) -> None:
    if isinstance(domain, Fresh):
        domain = domain.sort
    if not isinstance(domain, LeafDomain) or isinstance(domain, Integer):
        raise ModelError(f"{what} ranges over {domain!r}", instead=NO_INDEX)


def _need_answered(answered: object, name: str, parameters: list[str]) -> None:
    if not isinstance(answered, (FunctionType, MethodType)):
        raise ModelError(f"what is answered to {name} is no function", instead="give a function")
    taken = _positional(answered, answered.__name__)
    unknown = [parameter for parameter in taken[1:-1] if parameter not in parameters]
    if len(taken) < len(("state", "answer")) or unknown:
        what = f"{unknown[0]!r}, which {name} does not have," if unknown else f"{len(taken)} parameters"
        raise ModelError(
            f"{answered.__name__} takes {what} but is answered to {name}",
            instead="it takes the state, parameters of the operation by their names, and the answer",
        )


@functools.lru_cache(maxsize=1_000)
def _heard(answered: Callable[..., None]) -> tuple[str, ...]:
    """The parameters of an operation that the function for its answer takes."""
    return tuple(_positional(answered, answered.__name__)[1:-1])


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "", *, empty: str = "") -> str:
    """A remedy for an unknown name: the closest known one; else `otherwise` and all that are known.

    Where none is known at all, `empty`, or else `otherwise`.
    """
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return (
        "; ".join(x for x in (otherwise, f"known: {', '.join(names)}") if x) if names else empty or otherwise
    )


def listed(names: Iterable[str]) -> str:
    """Names as a sentence lists them: ``a``, ``a and b``, ``a, b and c``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
