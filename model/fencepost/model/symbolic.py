"""The state while an action or a claim is traced: reads give symbolic values, writes are remembered as terms."""

from __future__ import annotations

from typing import Any

from fencepost.model import terms as t
from fencepost.model.domains import INTEGER, LeafDomain, index_low
from fencepost.model.errors import ModelError
from fencepost.model.protocol import did_you_mean
from fencepost.model.tracer import Tracer
from fencepost.model.values import FamilyValue, encode, wrap


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
