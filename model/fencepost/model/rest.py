"""Concrete values: what a model sees of its state while it is simply run, and how it is kept in rest.

The counterpart of `values.py`. Booleans and numbers are Python's own; elements and members are the interned
objects of `domains.py`; optionals and records are immutable objects, one per value. In rest a value is plain:
a leaf, `absent`, or a tuple of a record's fields. What may not live here: states (`concrete.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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
from fencepost.model.language import Absent, Fault, absent
from fencepost.model.protocol import Scope, Variable


class RecordOf:
    """A concrete record: its fields are attributes."""

    def __init__(self, domain: Record, values: tuple[Any, ...]) -> None:
        d = self.__dict__
        d["_domain"], d["_values"] = domain, values
        for (field, of), value in zip(domain.fields.items(), values, strict=True):
            d[field] = view(of, value)

    if TYPE_CHECKING:  # without it, reading a field asks nothing of this class

        def __getattr__(self, name: str) -> Any: ...

    def unknown(self, name: str) -> tuple[str, str]:
        """What is wrong with asking for a field that is not there, and what to do."""
        return f"{self._domain.name} has no field {name!r}", f"it has {list(self._domain.fields)}"

    def __setattr__(self, name: str, value: object) -> None:
        raise ModelError(
            f"assignment to field {name!r} of a record",
            instead="records are immutable: assign x.changed(field=…)",
        )

    def changed(self, **values: Any) -> RecordOf:
        """The same record with some fields replaced."""
        for name in values:
            getattr(self, name)
        made: RecordOf = view(
            self._domain,
            tuple(
                raw(domain, values[f], f) if f in values else old
                for (f, domain), old in zip(self._domain.fields.items(), self._values, strict=True)
            ),
        )
        return made

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Maybe) or hasattr(type(other), "tracer"):
            return NotImplemented  # an optional, or a symbolic value, knows better
        if not isinstance(other, RecordOf) or other._domain is not self._domain:
            name = self._domain.name
            raise ModelError(f"{other!r} is not a {name}", instead=f"build it with {name}(…)")
        return bool(self._values == other._values)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise ModelError(
            f"the truth of a {self._domain.name}", instead="compare it, or one of its fields, with =="
        )

    def __repr__(self) -> str:
        return "/".join(str(v) for v in self._values)


class Maybe:
    """A concrete value that may be absent: where it is present, with its `value` and a record's fields."""

    def __init__(self, of: Domain, value: Any) -> None:
        d = self.__dict__
        d["_of"], d["_raw"] = of, value
        d["present"] = value is not absent
        if value is not absent:
            seen = view(of, value)
            if isinstance(of, Record):
                d.update((field, seen.__dict__[field]) for field in of.fields)
                d["changed"] = seen.changed
            d["value"] = seen

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def unknown(self, name: str) -> tuple[str, str]:
        """What is wrong with asking for a field that is not there, and what to do."""
        if isinstance(self._of, Record):
            unknown: tuple[str, str] = self.value.unknown(name)
            return unknown
        return f"{self!r} has no field {name!r}", "only records have fields"

    def __setattr__(self, name: str, value: object) -> None:
        raise ModelError(f"assignment to {name!r} of an optional", instead="assign the whole variable")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Absent):
            return self._raw is absent
        if isinstance(other, Maybe):
            return bool(self._raw == other._raw)
        return bool(raw(self._of, other, "a comparison") == self._raw)

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

    def __radd__(self, other: object) -> Any:
        return other + self.value

    def __sub__(self, other: object) -> Any:
        return self.value - other

    def __rsub__(self, other: object) -> Any:
        return other - self.value

    def __neg__(self) -> Any:
        return -self.value

    def __bool__(self) -> bool:
        raise ModelError("the truth of an optional", instead="ask x.present, or compare it with ==")

    def __repr__(self) -> str:
        return repr(self._raw)


class Nothing(Maybe):
    """An optional that is absent: who asks for its value, or for a field of it, reads what is not there."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Fault(
            ModelError(
                "the value of an absent optional", instead="ask x.present first, with `and`, `or` or `if`"
            )
        )


_SEEN: dict[Domain, dict[Any, Any]] = {}


def table_of(domain: Domain) -> dict[Any, Any]:
    """The optionals or records of a domain that were made so far, by their values in rest."""
    return _SEEN.setdefault(domain, {})


def view(domain: Domain, value: Any) -> Any:
    """What a model sees of a value in rest."""
    if isinstance(domain, LeafDomain):
        return value
    table = table_of(domain)
    found = table.get(value)
    return found if found is not None else made_view(table, domain, value)


def made_view(table: dict[Any, Any], domain: Domain, value: Any) -> Any:
    """A new view, remembered in the table of its domain."""
    if isinstance(domain, Optional):
        made: Any = (Nothing if value is absent else Maybe)(domain.of, value)
    else:
        assert isinstance(domain, Record)  # noqa: S101
        made = RecordOf(domain, value)
    table[value] = made
    return made


def record_of(record: Record, values: Mapping[str, Any]) -> RecordOf:
    """The record with these fields."""
    made: RecordOf = view(record, tuple([raw(d, values[n], n) for n, d in record.fields.items()]))
    return made


def raw(domain: Domain, value: Any, name: str) -> Any:
    """A value in rest, from what a model assigned; raises ModelError when it is of another kind."""
    if isinstance(domain, Optional):
        if value is absent:
            return absent
        if isinstance(value, Maybe):
            if value._of != domain.of:  # noqa: SLF001
                raise ModelError(
                    "an optional of another kind assigned", instead="both must have the same domain"
                )
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
    assert isinstance(domain, LeafDomain)  # noqa: S101
    if _is_of(domain, value):
        return value
    if value is None:
        raise ModelError(f"{name}: None used as a state value", instead="write `absent`, on an Optional")
    raise ModelError(f"{name}: {value!r} is no value of {domain!r}", instead="assign a value of its domain")


def _is_of(domain: LeafDomain, value: Any) -> bool:
    if isinstance(domain, Sort):
        return isinstance(value, Element) and value.sort == domain
    if isinstance(domain, Enumeration):
        return isinstance(value, Member) and value.enumeration is domain
    return type(value) is (bool if isinstance(domain, Boolean) else int)


def in_bounds(domain: Domain, value: Any, scope: Scope) -> bool:
    """Whether every number in a value lies within the scope; a state with one outside is cut."""
    if isinstance(domain, Optional):
        return value is absent or in_bounds(domain.of, value, scope)
    if isinstance(domain, Record):
        return all(in_bounds(d, v, scope) for d, v in zip(domain.fields.values(), value, strict=True))
    if type(value) is not int:
        return True
    assert isinstance(domain, LeafDomain)  # noqa: S101
    low, high = scope.limits(domain)
    return low <= value <= high


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
    return list(itertools.product(*(values_of(domain, scope) for domain in variable.index)))


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
