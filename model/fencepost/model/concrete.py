"""Concrete values: what state variables are while a model is simply run.

The counterpart of `values.py`. Booleans and numbers are Python's own; elements and members are the interned objects of
`domains.py`; optionals, records and families are small immutable-looking views. A state in rest is a plain tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencepost.model.domains import (
    Boolean,
    Domain,
    Element,
    Enumeration,
    LeafDomain,
    Member,
    Optional,
    Range,
    Record,
    Sort,
)
from fencepost.model.errors import ModelError
from fencepost.model.language import Absent, Cut, Fault, absent
from fencepost.model.protocol import Protocol, Scope, Variable, did_you_mean


class RecordOf:
    """A concrete record: its domain and the values of its fields, in order."""

    __slots__ = ("_domain", "_values")

    def __init__(self, domain: Record, values: tuple[Any, ...]) -> None:
        object.__setattr__(self, "_domain", domain)
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name: str) -> Any:
        for (field, domain), value in zip(self._domain.fields.items(), self._values, strict=True):
            if field == name:
                return view(domain, value)
        if name.startswith("__"):
            raise AttributeError(name)
        raise ModelError(
            f"{self._domain.name} has no field {name!r}", instead=f"it has {list(self._domain.fields)}"
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise ModelError(
            f"assignment to field {name!r} of a record",
            instead="records are immutable: assign x.changed(field=…)",
        )

    def changed(self, **values: Any) -> RecordOf:
        """The same record with some fields replaced."""
        for name in values:
            getattr(self, name)
        return RecordOf(
            self._domain,
            tuple(
                raw(domain, values[f], f) if f in values else old
                for (f, domain), old in zip(self._domain.fields.items(), self._values, strict=True)
            ),
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Maybe):
            return other == self
        if not isinstance(other, RecordOf) or other._domain is not self._domain:
            raise ModelError(
                f"{other!r} is not a {self._domain.name}", instead=f"build it with {self._domain.name}(…)"
            )
        return self._values == other._values

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise ModelError(
            f"the truth of a {self._domain.name}", instead="compare it, or one of its fields, with =="
        )

    def __repr__(self) -> str:
        return "/".join(str(v) for v in self._values)


class Maybe:
    """A concrete value that may be absent."""

    __slots__ = ("_of", "_raw")

    def __init__(self, of: Domain, value: Any) -> None:
        object.__setattr__(self, "_of", of)
        object.__setattr__(self, "_raw", value)

    @property
    def present(self) -> bool:
        """Whether there is a value."""
        return self._raw is not absent

    @property
    def value(self) -> Any:
        """The value; a fault of the model where it is absent."""
        if self._raw is absent:
            raise Fault(
                ModelError(
                    "the value of an absent optional", instead="ask x.present first, with `and`, `or` or `if`"
                )
            )
        return view(self._of, self._raw)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.value, name)

    def __setattr__(self, name: str, value: object) -> None:
        raise ModelError(f"assignment to {name!r} of an optional", instead="assign the whole variable")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Absent):
            return self._raw is absent
        if isinstance(other, Maybe):
            return bool(self._raw == other._raw)
        return self._raw is not absent and bool(self._raw == raw(self._of, other, "a comparison"))

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: object) -> bool:
        return bool(self.value < other)

    def __le__(self, other: object) -> bool:
        return bool(self.value <= other)

    def __gt__(self, other: object) -> bool:
        return bool(self.value > other)

    def __ge__(self, other: object) -> bool:
        return bool(self.value >= other)

    def __add__(self, other: object) -> Any:
        return self.value + other

    def __sub__(self, other: object) -> Any:
        return self.value - other

    def __bool__(self) -> bool:
        raise ModelError("the truth of an optional", instead="ask x.present, or compare it with ==")

    def __repr__(self) -> str:
        return repr(self._raw)


def view(domain: Domain, value: Any) -> Any:
    """What a model sees of a value in rest."""
    if isinstance(domain, Optional):
        return Maybe(domain.of, value)
    if isinstance(domain, Record):
        return RecordOf(domain, value)
    return value


def raw(domain: Domain, value: Any, name: str) -> Any:  # noqa: PLR0911
    """A value in rest, from what a model assigned; raises ModelError when it is of another kind."""
    if isinstance(domain, Optional):
        if value is absent:
            return absent
        if isinstance(value, Maybe):
            return value._raw  # noqa: SLF001
        return raw(domain.of, value, name)
    if isinstance(value, Maybe):
        value = value.value
    if isinstance(domain, Record):
        if isinstance(value, RecordOf) and value._domain is domain:  # noqa: SLF001
            return value._values  # noqa: SLF001
        raise ModelError(
            f"{name}: {value!r} is not a {domain.name}", instead=f"build it with {domain.name}(…)"
        )
    if isinstance(domain, Boolean):
        good = value is True or value is False
    elif isinstance(domain, Sort):
        good = isinstance(value, Element) and value.sort == domain
    elif isinstance(domain, Enumeration):
        good = isinstance(value, Member) and value.enumeration is domain
    else:
        good = type(value) is int
    if good:
        return value
    if value is None:
        raise ModelError(f"{name}: None used as a state value", instead="write `absent`, on an Optional")
    raise ModelError(f"{name}: {value!r} is no value of {domain!r}", instead="assign a value of its domain")


def in_bounds(domain: Domain, value: Any, scope: Scope) -> bool:
    """Whether every number in a value lies within the scope; below its domain is a fault of the model."""
    if isinstance(domain, Optional):
        return value is absent or in_bounds(domain.of, value, scope)
    if isinstance(domain, Record):
        return all(in_bounds(d, v, scope) for d, v in zip(domain.fields.values(), value, strict=True))
    if type(value) is not int:
        return True
    assert isinstance(domain, LeafDomain)  # noqa: S101
    low, high = scope.limits(domain)
    return low <= value <= high


class FamilyOf:
    """A family variable of a running state."""

    __slots__ = ("_scope", "_variable", "cells", "out_of_bounds")

    def __init__(self, variable: Variable, cells: list[Any], scope: Scope) -> None:
        self._variable = variable
        self._scope = scope
        self.cells = cells
        self.out_of_bounds = False

    def _place(self, key: Any) -> int:
        index = self._variable.index
        items = key if isinstance(key, tuple) else (key,)
        if len(items) != len(index):
            raise ModelError(
                f"s.{self._variable.name}[…] given {len(items)} indices", instead=f"it takes {len(index)}"
            )
        place = 0
        for item, domain in zip(items, index, strict=True):
            code = (
                item.index
                if type(item) is Element
                else code_of(domain, raw(domain, item, self._variable.name))
            )
            low, high = self._scope.limits(domain)
            if code < low:
                raise Fault(ModelError(f"an index of {self._variable.name} below {low}", instead="guard it"))
            if code > high:
                raise Cut
            place = place * (high - low + 1) + code - low
        return place

    def __getitem__(self, key: Any) -> Any:
        return view(self._variable.domain, self.cells[self._place(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        place = self._place(key)
        self._put(place, value)

    def _put(self, place: int, value: Any) -> None:
        new = raw(self._variable.domain, value, self._variable.name)
        if not in_bounds(self._variable.domain, new, self._scope):
            self.out_of_bounds = True
        self.cells[place] = new

    def fill(self, value: Any) -> None:
        """Give every cell the same value."""
        for place in range(len(self.cells)):
            self._put(place, value)

    def update_where(self, fn: Callable[..., Any]) -> None:
        """Replace each cell by ``fn(*index, old value)``."""
        old = list(self.cells)
        for place, index in enumerate(places(self._variable, self._scope)):
            new = raw(
                self._variable.domain,
                fn(*index, view(self._variable.domain, old[place])),
                self._variable.name,
            )
            if not in_bounds(self._variable.domain, new, self._scope):
                raise Cut
            self.cells[place] = new

    def __bool__(self) -> bool:
        raise ModelError(
            f"the truth of the family {self._variable.name}", instead="use every or some over its index"
        )

    def __eq__(self, other: object) -> bool:
        raise ModelError(
            f"the family {self._variable.name} compared as a whole",
            instead="use every(index, lambda i: a[i] == b[i])",
        )

    __hash__ = None  # type: ignore[assignment]


def code_of(domain: LeafDomain, value: Any) -> int:
    """The code of a leaf value in rest."""
    if isinstance(domain, Sort):
        return int(value.index if isinstance(value, Element) else value)
    if isinstance(domain, Enumeration):
        return int(value.code)
    return int(value)


def value_of(domain: LeafDomain, code: int) -> Any:
    """The leaf value that has a code."""
    if isinstance(domain, Sort):
        return domain.element(code)
    if isinstance(domain, Enumeration):
        return domain.members[code]
    if isinstance(domain, Boolean):
        return bool(code)
    return code


def values_of(domain: LeafDomain, scope: Scope) -> list[Any]:
    """All values of a domain in a scope."""
    low, high = scope.limits(domain)
    return [value_of(domain, code) for code in range(low, high + 1)]


def places(variable: Variable, scope: Scope) -> list[tuple[Any, ...]]:
    """All index values of a family, in row-major order."""
    found: list[tuple[Any, ...]] = [()]
    for domain in variable.index:
        found = [(*p, v) for p in found for v in values_of(domain, scope)]
    return found


def leaf_codes(domain: Domain, value: Any) -> list[int]:
    """The codes of a value's leaves, in the order of ``domain.leaves()``; absent ones have their default."""
    if isinstance(domain, Optional):
        if value is absent:
            return [0, *(d.low if isinstance(d, Range) else 0 for _, d in domain.of.leaves())]
        return [1, *leaf_codes(domain.of, value)]
    if isinstance(domain, Record):
        return [c for d, v in zip(domain.fields.values(), value, strict=True) for c in leaf_codes(d, v)]
    assert isinstance(domain, LeafDomain)  # noqa: S101
    return [code_of(domain, value)]


def from_codes(domain: Domain, codes: list[int]) -> Any:
    """The value in rest whose leaves have these codes (the list is used up from its front)."""
    if isinstance(domain, Optional):
        there = codes.pop(0)
        value = from_codes(domain.of, codes)
        return value if there else absent
    if isinstance(domain, Record):
        return tuple(from_codes(d, codes) for d in domain.fields.values())
    assert isinstance(domain, LeafDomain)  # noqa: S101
    return value_of(domain, codes.pop(0))


class RunningState:
    """A state while an action runs on it or a claim reads it."""

    def __init__(self, protocol: Protocol, scope: Scope, rest: tuple[Any, ...], *, writable: bool) -> None:
        d = self.__dict__
        d["_protocol"], d["_scope"], d["_rest"], d["_writable"] = protocol, scope, rest, writable

    def __getattr__(self, name: str) -> Any:
        protocol: Protocol = self._protocol
        variable = protocol.variables.get(name)
        if variable is None:
            if name.startswith("__"):
                raise AttributeError(name)
            raise ModelError(
                f"no state variable {name!r}", instead=did_you_mean(name, protocol.variables, "declare it")
            )
        value = self._rest[protocol.position(name)]
        seen = (
            FamilyOf(variable, list(value), self._scope) if variable.index else view(variable.domain, value)
        )
        self.__dict__[name] = seen
        return seen

    def __setattr__(self, name: str, value: Any) -> None:
        variable = self._protocol.variables.get(name)
        if variable is None:
            known = self._protocol.variables
            raise ModelError(f"no state variable {name!r}", instead=did_you_mean(name, known, "declare it"))
        if not self._writable:
            raise ModelError(f"{name} written by a claim", instead="claims only read")
        if variable.index:
            if not isinstance(value, FamilyOf):
                raise ModelError(
                    f"the family {name} assigned as a whole",
                    instead=f"use s.{name}[i] = …, .fill(…) or .update_where(…)",
                )
            mine = FamilyOf(variable, list(value.cells), self._scope)
            mine.out_of_bounds = value.out_of_bounds
            self.__dict__[name] = mine
            return
        self.__dict__[name] = view(variable.domain, raw(variable.domain, value, name))

    def undo(self, home: str) -> None:
        """Forget every write to variables of `home`."""
        d = self.__dict__
        for name, variable in self._protocol.variables.items():
            if variable.home == home and name in d:
                del d[name]

    def at_rest(self) -> tuple[Any, ...]:
        """The state as a tuple; raises Cut when a number has left the scope."""
        rest = list(self._rest)
        d = self.__dict__
        for place, (name, variable) in enumerate(self._protocol.variables.items()):
            if name not in d:
                continue
            seen = d[name]
            if variable.index:
                if seen.out_of_bounds:
                    raise Cut
                rest[place] = tuple(seen.cells)
            else:
                value = raw(variable.domain, seen, name)
                if not in_bounds(variable.domain, value, self._scope):
                    raise Cut
                rest[place] = value
        return tuple(rest)
