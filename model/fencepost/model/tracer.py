"""The traced reading's engine: answers the words of the language with terms, and forks at each truth test.

A function runs once per path. At an open question the first run goes on with *yes*; later runs repeat the
answers so far and take *no* at the last of them, as concolic tools do. What may not live here: what a path
means (`trace.py`).
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from fencepost.model import language
from fencepost.model import terms as t
from fencepost.model.domains import BOOLEAN, INTEGER, Domain, Element, LeafDomain, Record, Sort, index_low
from fencepost.model.domains import Enumeration as _Enumeration
from fencepost.model.errors import (
    ModelError,
    NeedsFiniteError,
    PathLimitError,
    Site,
    caller_site,
    raised_at,
)
from fencepost.model.language import Cut, Fault, GuardSignal
from fencepost.model.protocol import HISTORY, Fresh, Protocol, Scope, did_you_mean
from fencepost.model.values import (
    OptionalValue,
    RecordValue,
    Symbolic,
    Value,
    encode,
    lift,
    record_value,
    symbolic,
    wrap,
)

if TYPE_CHECKING:
    from fencepost.model.symbolic import SymbolicState

PATHS_PER_FUNCTION = 512
"""The cap on paths through one action, claim or helper: far above any action a person can read."""


_NOTHING: dict[str, t.Term] = {}
"""The parts of a value that is not there, because nothing was returned."""


class _Fork:
    """One open question on a path: what was asked, where, and the answer of the present run."""

    __slots__ = ("site", "term", "value")

    def __init__(self, term: t.Term, site: Site) -> None:
        self.term = term
        self.site = site
        self.value = True


class Tracer:
    """Answers the words of the language with terms, one path at a time."""

    evaluates = False

    def __init__(self, protocol: Protocol, label: str, scope: Scope | None = None) -> None:
        self.protocol = protocol
        self.label = label
        self.prefix = label
        """What the names of bound variables begin with: an action and a claim may have one name."""
        self.scope = scope
        self.known: dict[t.Term, bool] = {}
        self.path: list[t.Term] = []
        self.script: list[_Fork] = []
        self.position = 0
        self.numbering = 0
        self.folding = 0
        self.decides_moves = False
        """Whether an action is traced, whose path conditions are guards."""
        self._unnamed: frozenset[Sort] = frozenset()
        self._history = frozenset(
            f"{v.name}{suffix}"
            for v in protocol.variables.values()
            if v.home == HISTORY
            for suffix, _ in v.domain.leaves()
        )

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
            self._refuse_history(term)
            self.script.append(_Fork(term, caller_site()))
        fork = self.script[self.position]
        if fork.term is not term:
            raise self.varies()
        self.position += 1
        self.path.append(term if fork.value else t.not_(term))
        self._learn(term, fork.value)
        return fork.value

    def varies(self, site: Site | None = None) -> ModelError:
        """The error for a function that did not do the same again."""
        return ModelError(
            f"{self.label} did something else when it ran a second time",
            instead="it depends on something outside of its state: make that a state variable or a parameter",
            site=site,
        )

    def _refuse_history(self, term: t.Term) -> None:
        if self.decides_moves and not self.folding:
            name = self.history_in((term,))
            if name is not None:
                raise ModelError(
                    f"{self.label} decides by the history variable {name}",
                    instead="history is written for claims only; "
                    "keep what a guard needs in a variable of its keeper",
                )

    def history_in(self, terms: Iterable[t.Term]) -> str | None:
        """The name of a history variable that `terms` read."""
        if self._history:
            for variable in t.variables_of(terms):
                if variable.op == "var" and str(variable.payload) in self._history:
                    return str(variable.payload).split(".")[0]
        return None

    def _implied(self, term: t.Term) -> bool | None:
        if term in self.known:
            return self.known[term]
        if term.op not in ("and", "or"):
            return None
        absorbing = term.op == "or"
        parts = [self._implied(p) if p.op != "not" else _negated(self._implied(p.args[0])) for p in term.args]
        if absorbing in parts:
            return absorbing
        return None if None in parts else not absorbing

    def _learn(self, term: t.Term, value: bool) -> None:
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
        if isinstance(domain, _Enumeration):
            for member in domain.members:
                if member.code != value.payload:
                    self.known.setdefault(t.eq(term, t.constant(member.code, domain)), False)

    def paths(self, fn: Callable[[], Any]) -> Iterator[tuple[list[t.Term], Any, GuardSignal | None]]:
        """Every path of `fn`: (conditions decided on it, result, the signal that ended it)."""
        saved = self.known, self.path, self.script, self.position
        start = last = self.numbering
        script: list[_Fork] = []
        found = 0
        while True:
            self.known, self.path, self.script, self.position = dict(saved[0]), [], script, 0
            self.numbering = start
            result, signal = None, None
            language.push(self)
            try:
                result = fn()
            except GuardSignal as end:
                signal = end
            finally:
                language.pop()
            if self.position < len(script):
                raise self.varies(script[self.position].site)
            # Bound variables have names of their own also after the fork: the next one is new on every path.
            path, last = self.path, max(last, self.numbering)
            self.known, self.path, self.script, self.position = saved
            self.numbering = last
            yield path, result, signal
            found += 1
            while script and not script[-1].value:
                script.pop()
            if not script:
                return
            if found >= PATHS_PER_FUNCTION:
                raise self._too_many(script)
            script[-1].value = False

    def _too_many(self, script: list[_Fork]) -> PathLimitError:
        site, number = Tally(fork.site for fork in script).most_common(1)[0]
        where = f" ({number} of the last path's forks are here)" if number > 1 else ""
        return PathLimitError(
            f"{self.label} forks into more than {PATHS_PER_FUNCTION} paths{where}",
            instead="fold independent tests: use ite(…), count(…), every(…), or a helper marked @derived",
            site=site,
        )

    def fold_parts(
        self, fn: Callable[[], Any], domain: Domain | None, binders: tuple[t.Term, ...] = ()
    ) -> dict[str, t.Term]:
        """The value of `fn` as leaf terms, its paths merged; no fork leaks out but for faults and cuts.

        `binders` are the variables of a quantifier or update whose body `fn` is. A fault for one value of
        theirs comes before a cut for another, in this and in the run reading.
        """
        self.folding += 1
        results: list[tuple[list[t.Term], dict[str, t.Term]]] = []
        broken: list[tuple[t.Term, GuardSignal]] = []
        try:
            for path, parts, signal in self.paths(lambda: self._parts(fn(), domain)):
                if signal is None:
                    results.append((path, parts))
                elif isinstance(signal, (Cut, Fault)):
                    broken.append((t.and_(path), signal))
                else:
                    raise ModelError(
                        "a guard inside a helper or quantifier",
                        instead="guards stand in the action's own body",
                        site=raised_at(signal.__traceback__),
                    ) from None
        finally:
            self.folding -= 1
        broken.sort(key=lambda case: isinstance(case[1], Cut))
        for condition, signal in broken:
            if self.decide(t.exists(binders, condition) if binders else condition):
                raise signal
        if not results:
            raise broken[-1][1]  # no run comes here: what was decided contradicts itself
        first = results[0][1]
        if any(parts is _NOTHING for _, parts in results):
            raise ModelError("a helper, quantifier or claim that gives nothing", instead="return its value")
        if any(not _one_kind(first, parts) for _, parts in results):
            raise ModelError("a helper whose paths give values of different kinds", instead="return one kind")
        return _merge(results, 0)

    def _parts(self, value: Any, domain: Domain | None) -> dict[str, t.Term]:
        if value is None:
            return _NOTHING
        if domain is not None:
            return encode(self, domain, value)
        value = symbolic(self, value)
        if isinstance(value, (OptionalValue, RecordValue)):
            return {"record": t.TRUE, **value.parts}
        return {"": leaf_term(self, value)}

    def fold(self, fn: Callable[[], Any]) -> Any:
        """The value of a helper as one value."""
        kept: list[Any] = []

        def keep() -> Any:
            kept.append(symbolic(self, fn()))
            return kept[-1]

        parts = self.fold_parts(keep, None)
        if "record" not in parts:
            return Value(self, parts[""])
        parts.pop("record")
        domains = [v.domain for v in kept]
        if any(d != domains[0] for d in domains):
            raise ModelError("a helper whose paths give values of different kinds", instead="return one kind")
        return wrap(self, domains[0], parts)

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
        return t.bound(f"{self.prefix}#{self.numbering}", domain)

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
        values = [self._number(fn, x) for x in self._values(domain, op)]
        best = values[0]
        for term in values[1:]:
            better = t.lt(term, best) if op == "lowest" else t.lt(best, term)
            best = t.ite(better, term, best)
        return Value(self, best)

    def _number(self, fn: Callable[..., Any], value: Value) -> t.Term:
        return self.fold_parts(lambda: fn(value), INTEGER)[""]

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
        term, a, b = lift(self, condition, BOOLEAN), symbolic(self, a), symbolic(self, b)
        for value in (a, b):
            if isinstance(value, (OptionalValue, RecordValue)):
                first, second = encode(self, value.domain, a), encode(self, value.domain, b)
                return wrap(self, value.domain, {k: t.ite(term, first[k], second[k]) for k in first})
        yes, no = leaf_term(self, a), leaf_term(self, b)
        if t.kind(yes.domain) != t.kind(no.domain):
            raise ModelError(f"a choice between {a!r} and {b!r}", instead="both must be of one kind")
        return Value(self, t.ite(term, yes, no))

    def imply(self, a: object, b: Any) -> Any:
        """Implication without a fork; a callable consequence is read only where the premise holds."""
        premise = lift(self, a, BOOLEAN)
        if callable(b) and not isinstance(b, Symbolic):
            return Value(self, self.fold_parts(lambda: b() if self.decide(premise) else True, BOOLEAN)[""])
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

    def movable(self, state: SymbolicState, actions: tuple[str, ...]) -> Any:
        """Whether one of `actions` is possible and changes something: a disjunction over its commands."""
        from fencepost.model.trace import movable_term

        if self.decides_moves:
            raise ModelError(
                "can_move inside an action", instead="it is for claims: write the condition itself"
            )
        return Value(self, movable_term(self, state, actions))

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

    def check_writable(self, name: str) -> None:
        """Nothing is written inside a helper or a claim."""
        if self.folding and self.decides_moves:
            raise ModelError(
                f"{name} written inside a helper or quantifier", instead="write in the action's own body"
            )
        if self.folding:
            raise ModelError(f"{name} written by a claim", instead="claims only read")

    def refuse_names(self) -> None:
        """From now on no element may be named whose sort is one of fresh ids.

        These are interchangeable, and finite readings take the smallest. In a scope, loops give elements too.
        """
        if self.scope is None:
            parameters = (d for a in self.protocol.actions.values() for _, d in a.parameters)
            self._unnamed = frozenset(d.sort for d in parameters if isinstance(d, Fresh))

    def check_named(self, element: Element) -> None:
        """Nothing may depend on which id was taken first."""
        if element.sort in self._unnamed:
            raise ModelError(
                f"{element.label} is named, but its sort is one of fresh ids",
                instead="say it of every(…) or some(…): which id is taken first means nothing",
            )

    def check_sources(self, name: str, terms: Iterable[t.Term]) -> None:
        """What is written to a variable that guards may read must not come from history."""
        if self._history and self.protocol.variables[name].home != HISTORY:
            source = self.history_in(terms)
            if source is not None:
                raise ModelError(
                    f"{name} is given a value that depends on the history variable {source}",
                    instead="only history may be computed from history",
                )


def _one_kind(a: dict[str, t.Term], b: dict[str, t.Term]) -> bool:
    return a.keys() == b.keys() and all(t.kind(a[k].domain) == t.kind(b[k].domain) for k in a)


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


def _negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def leaf_term(tracer: Tracer, value: Any) -> t.Term:
    """The term of a boolean, number, element or member."""
    if isinstance(value, Value):
        return value.term
    if isinstance(value, OptionalValue):
        return leaf_term(tracer, value.value)
    for domain in (BOOLEAN, INTEGER):
        if (value is True or value is False) == (domain is BOOLEAN) and isinstance(value, int):
            return lift(tracer, value, domain)
    found = getattr(value, "sort", None) or getattr(value, "enumeration", None)
    if found is None:
        raise ModelError(
            f"{value!r} is not a state value", instead="return a boolean, number, element or member"
        )
    return lift(tracer, value, found)
