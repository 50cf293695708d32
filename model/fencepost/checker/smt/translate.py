"""Terms as formulas of Z3: the reading for all sizes, and the arithmetic of the finite one.

For all sizes a sort is an uninterpreted sort, a counter an integer without an upper end, and a family a
function: updates never reach the solver, because claims about the state after a step are rewritten to the
state before it (`obligations.py`), where every array is read at once. What may not live here: strategy, time
limits, verdicts.

Z3 ships no types, so its objects are `Any` here; each translator has a context of its own, so that what was
asked before cannot change an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fencepost.model import terms as t
from fencepost.model.domains import Boolean, Counter, Enumeration, LeafDomain, Range, Sort
from fencepost.model.errors import ModelError, NeedsFiniteError, Site

Formula = Any
"""An expression of Z3."""

EXPANDED_VALUES = 16
"""Quantifiers over at most so many values are written out: the solver is better at cases."""


class Translator:
    """Turns terms into formulas, each distinct term once."""

    def __init__(self) -> None:
        import z3

        self.z3: Any = z3
        self.context: Any = z3.Context()
        self._made: dict[t.Term, Formula] = {}
        self._sorts: dict[Any, Any] = {}
        self._members: dict[Enumeration, list[Formula]] = {}
        self._elements: dict[Sort, dict[int, Formula]] = {}
        self._families: dict[t.Term, Any] = {}
        self._facts: dict[t.Term, list[Formula]] = {}

    def formula(self, term: t.Term) -> Formula:
        """The formula of a boolean or scalar term; raises ModelError for what has no reading."""
        found = self._made.get(term)
        if found is None:
            builder = _BUILDERS.get(term.op)
            if builder is None:
                raise ModelError(
                    f"{term.op} in {term!r} has no reading for all sizes", instead="read its cells"
                )
            found = self._made[term] = builder(self, term)
        return found

    def conjunction(self, formulas: Iterable[Formula]) -> Formula:
        """All of them."""
        return self.z3.And(list(formulas), self.context)

    def negation(self, formula: Formula) -> Formula:
        """Its negation."""
        return self.z3.Not(formula, self.context)

    def sort_of(self, domain: t.TermDomain) -> Any:
        """The solver's sort of a leaf domain."""
        if isinstance(domain, Boolean):
            return self.z3.BoolSort(self.context)
        if not isinstance(domain, (Sort, Enumeration)):
            return self.z3.IntSort(self.context)
        found = self._sorts.get(domain)
        if found is None:
            # The number keeps two sorts apart that happen to have one name.
            name = f"{domain.name} {len(self._sorts)}"
            if isinstance(domain, Sort):
                found = self.z3.DeclareSort(name, self.context)
            else:
                members = [f"{name} {m.name}" for m in domain.members]
                found, self._members[domain] = self.z3.EnumSort(name, members, self.context)
            self._sorts[domain] = found
        return found

    def within(self, formula: Formula, domain: t.TermDomain) -> list[Formula]:
        """That a value lies in its domain, at every size: what the solver's sort does not say already."""
        if isinstance(domain, Counter):
            return [formula >= 0]
        if isinstance(domain, Range):
            return [formula >= domain.low, formula <= domain.high]
        return []

    def domain_facts(self, variables: Iterable[t.Term]) -> list[Formula]:
        """That these variables and parameters lie in their domains, each cell of a family included."""
        facts: list[Formula] = []
        for variable in variables:
            known = self._facts.get(variable)
            if known is None:
                domain = variable.domain
                if isinstance(domain, t.Array):
                    known = self._family_facts(variable, domain)
                else:
                    known = self.within(self.formula(variable), domain)
                self._facts[variable] = known
            facts += known
        return facts

    def _family_facts(self, variable: t.Term, domain: t.Array) -> list[Formula]:
        index = tuple(t.bound(f"cell {i}", d) for i, d in enumerate(domain.index))
        places = [self.formula(i) for i in index]
        inside = self.within(self._family(variable)(*places), domain.value)
        if not inside:
            return []
        where = [
            fact for i, place in zip(index, places, strict=True) for fact in self.within(place, i.domain)
        ]
        body = self.conjunction(inside)
        return [self.z3.ForAll(places, self.z3.Implies(self.conjunction(where), body) if where else body)]

    def distinct_elements(self) -> list[Formula]:
        """That the elements mentioned by name so far are different ones."""
        return [self.z3.Distinct(*known.values()) for known in self._elements.values() if len(known) > 1]

    # -- one operation each

    def _const(self, term: t.Term) -> Formula:
        if isinstance(term.domain, Boolean):
            return self.z3.BoolVal(bool(term.payload), self.context)
        code = int(term.payload or 0)
        if isinstance(term.domain, Enumeration):
            self.sort_of(term.domain)
            return self._members[term.domain][code]
        if isinstance(term.domain, Sort):
            known = self._elements.setdefault(term.domain, {})
            if code not in known:
                known[code] = self.z3.Const(
                    f"element {term.domain.element(code).label}", self.sort_of(term.domain)
                )
            return known[code]
        return self.z3.IntVal(code, self.context)

    def _var(self, term: t.Term) -> Formula:
        if isinstance(term.domain, t.Array):
            raise ModelError(f"the family {term.payload} used as a whole", instead="read its cells")
        return self.z3.Const(str(term.payload), self.sort_of(term.domain))

    def _bound(self, term: t.Term) -> Formula:
        # No variable's name starts with a question mark, so a quantifier captures nothing.
        return self.z3.Const(f"?{term.payload}", self.sort_of(term.domain))

    def _family(self, array: t.Term) -> Any:
        found = self._families.get(array)
        if found is None:
            if array.op != "var" or not isinstance(array.domain, t.Array):
                raise ModelError(
                    f"the family {array!r} has no reading for all sizes", instead="read its cells"
                )
            sorts = [self.sort_of(d) for d in (*array.domain.index, array.domain.value)]
            found = self._families[array] = self.z3.Function(str(array.payload), *sorts)
        return found

    def _select(self, term: t.Term) -> Formula:
        return self._family(term.args[0])(*[self.formula(i) for i in term.args[1:]])

    def _parts(self, term: t.Term) -> list[Formula]:
        return [self.formula(a) for a in term.args]

    def _quantifier(self, term: t.Term) -> Formula:
        variables = [self.formula(v) for v in term.args[:-1]]
        body = self.formula(term.args[-1])
        inside = [f for v, x in zip(term.args, variables, strict=False) for f in self.within(x, v.domain)]
        if term.op == "forall":
            return self.z3.ForAll(
                variables, self.z3.Implies(self.conjunction(inside), body) if inside else body
            )
        return self.z3.Exists(variables, self.conjunction([*inside, body]) if inside else body)

    def _count(self, term: t.Term) -> Formula:
        raise needs_finite(term)

    def _ite(self, term: t.Term) -> Formula:
        return self.z3.If(*self._parts(term), self.context)

    def _le(self, term: t.Term) -> Formula:
        return self.formula(term.args[0]) <= self.formula(term.args[1])

    def _eq(self, term: t.Term) -> Formula:
        return self.formula(term.args[0]) == self.formula(term.args[1])

    def _add(self, term: t.Term) -> Formula:
        return self.formula(term.args[0]) + self.formula(term.args[1])

    def _neg(self, term: t.Term) -> Formula:
        return -self.formula(term.args[0])

    def _not(self, term: t.Term) -> Formula:
        return self.negation(self.formula(term.args[0]))

    def _and(self, term: t.Term) -> Formula:
        return self.conjunction(self._parts(term))

    def _or(self, term: t.Term) -> Formula:
        return self.z3.Or(self._parts(term), self.context)


_BUILDERS: Mapping[str, Callable[[Translator, t.Term], Formula]] = {
    "const": Translator._const,  # noqa: SLF001
    "var": Translator._var,  # noqa: SLF001
    "bound": Translator._bound,  # noqa: SLF001
    "not": Translator._not,  # noqa: SLF001
    "and": Translator._and,  # noqa: SLF001
    "or": Translator._or,  # noqa: SLF001
    "eq": Translator._eq,  # noqa: SLF001
    "le": Translator._le,  # noqa: SLF001
    "add": Translator._add,  # noqa: SLF001
    "neg": Translator._neg,  # noqa: SLF001
    "ite": Translator._ite,  # noqa: SLF001
    "select": Translator._select,  # noqa: SLF001
    "forall": Translator._quantifier,  # noqa: SLF001
    "exists": Translator._quantifier,  # noqa: SLF001
    "count": Translator._count,  # noqa: SLF001
}


def needs_finite(term: t.Term, site: Site | None = None) -> NeedsFiniteError:
    """The error for a count, which has no reading for all sizes."""
    return NeedsFiniteError(
        f"count in {term!r} needs to know how many there are",
        instead="for all sizes write at_most_one(…), or keep a counter variable",
        site=site,
    )


class Unbounded:
    """Rewrites terms for all sizes: no limits, small quantifiers written out, some switches off.

    A term that uses a limit in another way than `x <= limit`, or that counts, raises NeedsFiniteError at
    `site`.
    """

    site: Site | None = None

    def __init__(self, off: Iterable[str] = ()) -> None:
        self._done: dict[t.Term, t.Term] = {t.variable(f"switch {name}", Boolean()): t.FALSE for name in off}

    def __call__(self, term: t.Term) -> t.Term:
        """`term` as it reads when no counter has an end."""
        found = self._done.get(term)
        if found is None:
            found = self._done[term] = self._rewrite(term)
        return found

    def _rewrite(self, term: t.Term) -> t.Term:
        if term.op == "limit":
            raise self._no_limit(term)
        if term.op == "count":
            raise needs_finite(term, self.site)
        if term.op == "le" and any(_is_limit(a) for a in term.args):
            return self._against_limit(term)
        if not term.args:
            return term
        args = tuple(self(a) for a in term.args)
        result = term if args == term.args else t.rebuild(term, args)
        return _written_out(result) if result.op in ("forall", "exists") else result

    def _against_limit(self, term: t.Term) -> t.Term:
        left, right = term.args
        if _is_limit(left) and _is_limit(right):
            raise self._no_limit(term)
        self(left if _is_limit(right) else right)
        return t.boolean(_is_limit(right))

    def _no_limit(self, term: t.Term) -> NeedsFiniteError:
        return NeedsFiniteError(
            f"the limit of a counter used as a number in {term!r}",
            instead="for all sizes a counter has no limit; only x <= limit has a reading",
            site=self.site,
        )


def _is_limit(term: t.Term) -> bool:
    return term.op == "limit" or (
        term.op == "add" and term.args[0].op == "limit" and t.is_const(term.args[1])
    )


def _codes(domain: t.TermDomain) -> range | None:
    if isinstance(domain, Boolean):
        return range(2)
    if isinstance(domain, Enumeration):
        return range(len(domain.members))
    return range(domain.low, domain.high + 1) if isinstance(domain, Range) else None


def _written_out(term: t.Term) -> t.Term:
    """The quantifier without its variables of small domains: one case for each of their values."""
    *variables, body = term.args
    kept, cases = [], [body]
    for variable in variables:
        codes = _codes(variable.domain)
        if codes is None or len(codes) * len(cases) > EXPANDED_VALUES:
            kept.append(variable)
            continue
        assert isinstance(variable.domain, LeafDomain)  # noqa: S101
        values = [t.constant(code, variable.domain) for code in codes]
        cases = [t.substitute(case, {variable: value}) for case in cases for value in values]
    if len(kept) == len(variables):
        return term
    joined = (t.and_ if term.op == "forall" else t.or_)(cases)
    if not kept:
        return joined
    return (t.forall if term.op == "forall" else t.exists)(tuple(kept), joined)
