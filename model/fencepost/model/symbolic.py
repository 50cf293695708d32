"""The state while an action or a claim is traced: reads give symbolic values, writes are remembered as terms.

The counterpart with concrete values is `concrete.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencepost.model import terms as t
from fencepost.model.domains import INTEGER, Domain, LeafDomain, index_low
from fencepost.model.errors import ModelError
from fencepost.model.language import check_takes
from fencepost.model.protocol import did_you_mean
from fencepost.model.tracer import Tracer
from fencepost.model.values import Symbolic, Value, encode, lift, wrap


class FamilyValue(Symbolic):
    """A family variable of a symbolic state: read and write its cells by index."""

    __slots__ = ("arrays", "domain", "index", "name", "written")

    def __init__(
        self,
        tracer: Tracer,
        name: str,
        index: tuple[LeafDomain, ...],
        domain: Domain,
        arrays: dict[str, t.Term],
    ) -> None:
        self.tracer = tracer
        self.name = name
        self.index = index
        self.domain = domain
        self.arrays = arrays
        self.written: list[tuple[t.Term, LeafDomain]] = []

    def _key(self, key: object) -> tuple[t.Term, ...]:
        items = key if isinstance(key, tuple) else (key,)
        if len(items) != len(self.index):
            raise ModelError(
                f"s.{self.name}[…] given {len(items)} indices", instead=f"it takes {len(self.index)}"
            )
        result = []
        for item, domain in zip(items, self.index, strict=True):
            term = lift(self.tracer, item, domain)
            self.tracer.check_index(term, domain, self.name)
            result.append(term)
        return tuple(result)

    def __getitem__(self, key: object) -> Any:
        terms = self._key(key)
        return wrap(self.tracer, self.domain, {k: t.select(a, terms) for k, a in self.arrays.items()})

    def __setitem__(self, key: object, value: object) -> None:
        self.tracer.check_writable(self.name)
        terms = self._key(key)
        parts = encode(self.tracer, self.domain, value)
        self.tracer.check_sources(self.name, (*terms, *parts.values()))
        for suffix, leaf in self.domain.leaves():
            self.written.append((parts[suffix], leaf))
            self.arrays[suffix] = t.store(self.arrays[suffix], terms, parts[suffix])

    def __delitem__(self, key: object) -> None:
        raise ModelError(f"a cell of {self.name} deleted", instead="a cell always has a value; assign one")

    def fill(self, value: object) -> None:
        """Give every cell the same value."""
        self.tracer.check_writable(self.name)
        parts = encode(self.tracer, self.domain, value)
        self.tracer.check_sources(self.name, parts.values())
        for suffix, leaf in self.domain.leaves():
            self.written.append((parts[suffix], leaf))
            self.arrays[suffix] = t.fill(t.Array(self.index, leaf), parts[suffix])

    def update_where(self, fn: Callable[..., Any]) -> None:
        """Replace each cell by ``fn(*index, old value)``, folded to one value per cell; all cells at once."""
        check_takes(fn, len(self.index) + 1, "update_where")
        self.tracer.check_writable(self.name)
        variables = tuple(self.tracer.fresh(d) for d in self.index)
        old = {k: t.select(a, variables) for k, a in self.arrays.items()}
        wrapped = [Value(self.tracer, v) for v in variables]
        value = wrap(self.tracer, self.domain, old)
        parts = self.tracer.fold_parts(lambda: fn(*wrapped, value), self.domain, variables)
        self.tracer.check_sources(self.name, parts.values())
        for suffix, leaf in self.domain.leaves():
            self._must_fit(variables, parts[suffix], leaf)
            self.arrays[suffix] = t.function(variables, parts[suffix], t.Array(self.index, leaf))

    def _must_fit(self, variables: tuple[t.Term, ...], term: t.Term, leaf: LeafDomain) -> None:
        """Note that all cells of an update must lie in their domain: by a number that does only if all do."""
        if t.kind(leaf) is INTEGER and term.domain != leaf:
            low = index_low(leaf)
            inside = t.and_((t.le(t.integer(low), term), t.le(term, t.limit_of(leaf))))
            if inside is not t.TRUE:
                number = t.ite(t.forall(variables, inside), t.integer(low), t.integer(low - 1))
                self.written.append((number, leaf))

    def become(self, other: object) -> None:
        """Take over every cell of another family, as a copy: ``s.before = s.now``."""
        if not isinstance(other, FamilyValue) or (other.index, other.domain) != (self.index, self.domain):
            raise ModelError(
                f"the family {self.name} assigned as a whole",
                instead=f"use s.{self.name}[i] = …, .fill(…), .update_where(…), or a family of the same kind",
            )
        self.tracer.check_sources(self.name, other.arrays.values())
        self.arrays, self.written = dict(other.arrays), list(other.written)

    def __bool__(self) -> bool:
        raise ModelError(f"the truth of the family {self.name}", instead="use every or some over its index")

    def __eq__(self, other: object) -> Any:
        raise ModelError(
            f"the family {self.name} compared as a whole", instead="use every(index, lambda i: a[i] == b[i])"
        )

    __hash__ = Symbolic.__hash__  # a class with its own == would lose it


class SymbolicState:
    """The state while tracing: attributes are variables; what is written shows in `leaves`."""

    def __init__(self, tracer: Tracer, suffix: str = "", *, writable: bool = True) -> None:
        d = self.__dict__
        d["_tracer"], d["_views"], d["_suffix"], d["_writable"] = tracer, {}, suffix, writable

    def __getattr__(self, name: str) -> Any:
        view = self._views.get(name)
        if view is None:
            tracer: Tracer = self._tracer
            variable = tracer.protocol.variables.get(name)
            if variable is None:
                if name.startswith("__"):
                    raise AttributeError(name)
                raise self._unknown(name)
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

    def _unknown(self, name: str) -> ModelError:
        known = self._tracer.protocol.variables
        return ModelError(f"no state variable {name!r}", instead=did_you_mean(name, known, "declare it"))

    def __setattr__(self, name: str, value: object) -> None:
        tracer: Tracer = self._tracer
        variable = tracer.protocol.variables.get(name)
        if variable is None:
            raise self._unknown(name)
        if not self._writable:
            raise ModelError(f"{name} written by a claim", instead="claims only read")
        tracer.check_writable(name)
        if variable.index:
            getattr(self, name).become(value)
            return
        parts = encode(tracer, variable.domain, value)
        tracer.check_sources(name, parts.values())
        self._views[name] = wrap(tracer, variable.domain, parts)

    def __delattr__(self, name: str) -> None:
        raise ModelError(f"{name} deleted", instead="a state variable always has a value; assign one")

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
