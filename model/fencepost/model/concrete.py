"""Concrete values: what state variables are while a model is simply run.

The counterpart of `values.py`. Booleans and numbers are Python's own; elements and members are the interned objects of
`domains.py`; optionals and records are immutable objects, one per value; families are views that copy on their first
write. A state in rest is a plain tuple.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

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
    """A concrete record: its fields are attributes."""

    def __init__(self, domain: Record, values: tuple[Any, ...]) -> None:
        d = self.__dict__
        d["_domain"], d["_values"] = domain, values
        for (field, of), value in zip(domain.fields.items(), values, strict=True):
            d[field] = view(of, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        fields = list(self._domain.fields)
        raise ModelError(f"{self._domain.name} has no field {name!r}", instead=f"it has {fields}")

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
    """A concrete value that may be absent: `present`, and where it is present `value` and the fields of a record."""

    def __init__(self, of: Domain, value: Any) -> None:
        d = self.__dict__
        d["_of"], d["_raw"] = of, value
        d["present"] = value is not absent
        if value is not absent:
            seen = view(of, value)
            if isinstance(of, Record):
                d.update((field, seen.__dict__[field]) for field in of.fields)
            d["value"] = seen

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._raw is absent:
            raise Fault(
                ModelError(
                    "the value of an absent optional",
                    instead="ask x.present first, with `and`, `or` or `if`",
                )
            )
        if isinstance(self._of, Record):
            return getattr(self.value, name)
        raise ModelError(f"{self!r} has no field {name!r}", instead="only records have fields")

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


_SEEN: dict[Domain, dict[Any, Any]] = {}


def _table(domain: Domain) -> dict[Any, Any]:
    """The optionals or records of a domain that were made so far, by their values in rest."""
    return _SEEN.setdefault(domain, {})


def view(domain: Domain, value: Any) -> Any:
    """What a model sees of a value in rest."""
    if isinstance(domain, LeafDomain):
        return value
    table = _table(domain)
    found = table.get(value)
    return found if found is not None else _made(table, domain, value)


def _made(table: dict[Any, Any], domain: Domain, value: Any) -> Any:
    if isinstance(domain, Optional):
        made: Any = Maybe(domain.of, value)
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


class Shape:
    """All that a running state needs to know about one variable in a scope."""

    __slots__ = (
        "_fitting",
        "index",
        "kind",
        "name",
        "places",
        "position",
        "scope",
        "table",
        "valid",
        "variable",
    )

    def __init__(self, variable: Variable, scope: Scope, position: int) -> None:
        self.variable = variable
        self.name = variable.name
        self.scope = scope
        self.position = position
        self.index = places(variable, scope)
        self.places = (
            {i if len(i) > 1 else i[0]: n for n, i in enumerate(self.index)} if variable.index else {}
        )
        self.kind: type | None = None
        self.valid: frozenset[Any] = frozenset()
        self.table: dict[Any, Any] | None = None
        if isinstance(variable.domain, LeafDomain):
            values = values_of(variable.domain, scope)
            self.kind, self.valid = type(values[0]), frozenset(values)
        else:
            self.table = _table(variable.domain)
        self._fitting: dict[Any, bool] = {}

    def seen(self, value: Any) -> Any:
        """What a model sees of a value in rest."""
        if self.table is None:
            return value
        found = self.table.get(value)
        return found if found is not None else _made(self.table, self.variable.domain, value)

    def fits(self, value: Any) -> bool:
        """Whether a value in rest lies within the scope."""
        found = self._fitting.get(value)
        if found is None:
            found = self._fitting[value] = in_bounds(self.variable.domain, value, self.scope)
        return found

    def place(self, key: Any) -> int:
        """The place of a cell; signals a fault below the index domain and a cut above it."""
        index = self.variable.index
        items = key if isinstance(key, tuple) else (key,)
        if len(items) != len(index):
            raise ModelError(f"s.{self.name}[…] given {len(items)} indices", instead=f"it takes {len(index)}")
        found = 0
        for item, domain in zip(items, index, strict=True):
            code = code_of(domain, raw(domain, item, self.name))
            low, high = self.scope.limits(domain)
            if code < low:
                raise Fault(ModelError(f"an index of {self.name} below {low}", instead="guard it"))
            if code > high:
                raise Cut
            found = found * (high - low + 1) + code - low
        return found


def _forbid(what: str, instead: str) -> Callable[..., NoReturn]:
    def method(_self: object, *_args: object) -> NoReturn:
        raise ModelError(what, instead=instead)

    return method


class FamilyOf:
    """A family variable of a running state."""

    __slots__ = ("_kind", "_places", "_state", "_valid", "cells", "out_of_bounds", "shape")

    def __init__(self, shape: Shape, state: RunningState) -> None:
        self.shape = shape
        self.cells: Any = ()
        self.out_of_bounds = False
        self._state = state
        self._places, self._kind, self._valid = shape.places, shape.kind, shape.valid

    def __getitem__(self, key: Any) -> Any:
        try:
            return self.cells[self._places[key]]
        except (KeyError, TypeError):  # not a plain index, or none of this scope
            return self.cells[self.shape.place(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        try:
            place = self._places[key]
        except (KeyError, TypeError):
            place = self.shape.place(key)
        new = self._checked(value)
        if type(self.cells) is tuple:
            self._copy()
        self.cells[place] = new

    def _checked(self, value: Any) -> Any:
        if type(value) is self._kind and value in self._valid:
            return value
        shape = self.shape
        new = raw(shape.variable.domain, value, shape.name)
        if not shape.fits(new):
            self.out_of_bounds = True
        return new

    def _copy(self) -> None:
        changed(self._state, self.shape.name)
        self.cells = list(self.cells)

    def fill(self, value: Any) -> None:
        """Give every cell the same value."""
        changed(self._state, self.shape.name)
        self.cells = [self._checked(value)] * len(self.cells)

    def update_where(self, fn: Callable[..., Any]) -> None:
        """Replace each cell by ``fn(*index, old value)``, all cells at once."""
        shape = self.shape
        calls = [(*index, shape.seen(old)) for index, old in zip(shape.index, self.cells, strict=True)]
        new = [self._checked(value) for value in all_values(fn, calls)]
        changed(self._state, shape.name)
        self.cells = new

    def become(self, other: Any) -> None:
        """Take over every cell of another family, as a copy: ``s.before = s.now``."""
        mine = self.shape.variable
        theirs = other.shape.variable if isinstance(other, FamilyOf) else None
        if theirs is None or (theirs.index, theirs.domain) != (mine.index, mine.domain):
            raise ModelError(
                f"the family {mine.name} assigned as a whole",
                instead=f"use s.{mine.name}[i] = …, .fill(…), .update_where(…), or a family of the same kind",
            )
        changed(self._state, mine.name)
        self.cells, self.out_of_bounds = list(other.cells), other.out_of_bounds

    def __bool__(self) -> bool:
        raise ModelError(
            f"the truth of the family {self.shape.name}", instead="use every or some over its index"
        )

    def __eq__(self, other: object) -> bool:
        raise ModelError(
            f"the family {self.shape.name} compared as a whole",
            instead="use every(index, lambda i: a[i] == b[i])",
        )

    __hash__ = None  # type: ignore[assignment]
    __iter__ = _forbid("a loop over a family", "loop over a sort, or use every / some / count")
    __contains__ = _forbid("`in` on a family", "use some(domain, lambda x: …)")
    __len__ = _forbid("len() of a family", "use count(domain, lambda x: …)")


class FamilyOfParts(FamilyOf):
    """A family whose cells are optionals or records."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        try:
            cell = self.cells[self._places[key]]
        except (KeyError, TypeError):
            cell = self.cells[self.shape.place(key)]
        return self.shape.seen(cell)


def all_values(fn: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Any]:
    """The value of `fn` for each of its arguments. A fault for one comes before a cut for another."""
    try:
        return [fn(*arguments) for arguments in calls]
    except Cut:
        for arguments in calls:
            try:
                fn(*arguments)
            except Cut:
                continue
        raise


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


class RunningState:
    """A state while an action runs on it or a claim reads it; `load` gives it another state to stand for."""

    def __init__(self, shapes: Mapping[str, Shape], *, writable: bool) -> None:
        d = self.__dict__
        d["_shapes"], d["_writable"], d["_rest"], d["_changed"] = shapes, writable, (), {}
        d["_scalars"] = [shape for shape in shapes.values() if not shape.variable.index]
        d["_families"] = []
        for shape in shapes.values():
            if shape.variable.index:
                family = (FamilyOfParts if shape.table is not None else FamilyOf)(shape, self)
                d["_families"].append((family, shape.position))
                d[shape.name] = family

    def load(self, rest: tuple[Any, ...]) -> None:
        """Stand for the state `rest`."""
        d = self.__dict__
        d["_rest"] = rest
        for family, position in d["_families"]:
            family.cells = rest[position]
        for shape in d["_scalars"]:
            value = rest[shape.position]
            d[shape.name] = value if shape.table is None else shape.seen(value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _unknown(name, self._shapes)

    def __setattr__(self, name: str, value: Any) -> None:
        d = self.__dict__
        shape: Shape | None = d["_shapes"].get(name)
        if shape is None:
            raise _unknown(name, d["_shapes"])
        if shape.variable.index:
            d[name].become(value)
            return
        if not d["_writable"]:
            raise _written_by_a_claim(name)
        if not (type(value) is shape.kind and value in shape.valid):
            value = raw(shape.variable.domain, value, name)
        d["_changed"][name] = value
        d[name] = value if shape.table is None else shape.seen(value)

    def __delattr__(self, name: str) -> None:
        raise ModelError(f"{name} deleted", instead="a state variable always has a value; assign one")

    def undo(self, home: str) -> None:
        """Forget every write to variables of `home`."""
        d = self.__dict__
        for name in [n for n in d["_changed"] if d["_shapes"][n].variable.home == home]:
            del d["_changed"][name]
            self._restore(name)

    def forget(self) -> None:
        """Forget every write: stand for the state that was loaded."""
        d = self.__dict__
        d.pop("_late_refusal", None)
        if d["_changed"]:
            for name in d["_changed"]:
                self._restore(name)
            d["_changed"].clear()

    def _restore(self, name: str) -> None:
        d = self.__dict__
        shape: Shape = d["_shapes"][name]
        if shape.variable.index:
            d[name].cells, d[name].out_of_bounds = d["_rest"][shape.position], False
        else:
            d[name] = shape.seen(d["_rest"][shape.position])

    def at_rest(self) -> tuple[Any, ...]:
        """The state as a tuple; raises Cut when a number has left the scope."""
        d = self.__dict__
        if not d["_changed"]:
            return d["_rest"]  # type: ignore[no-any-return]
        rest = list(d["_rest"])
        for name, value in d["_changed"].items():
            shape = d["_shapes"][name]
            if shape.variable.index:
                family = d[name]
                if family.out_of_bounds:
                    raise Cut
                rest[shape.position] = tuple(family.cells)
            elif not shape.fits(value):
                raise Cut
            else:
                rest[shape.position] = value
        return tuple(rest)


def changed(state: RunningState, name: str) -> None:
    """Note that a family is about to be written."""
    d = state.__dict__
    if not d["_writable"]:
        raise _written_by_a_claim(name)
    d["_changed"][name] = None


def _written_by_a_claim(name: str) -> ModelError:
    return ModelError(f"{name} written by a claim", instead="claims only read")


def _unknown(name: str, known: Mapping[str, Any]) -> ModelError:
    return ModelError(f"no state variable {name!r}", instead=did_you_mean(name, known, "declare it"))


def shapes_of(protocol: Protocol, scope: Scope) -> dict[str, Shape]:
    """The shapes of all variables of a protocol in a scope."""
    return {v.name: Shape(v, scope, i) for i, v in enumerate(protocol.variables.values())}
