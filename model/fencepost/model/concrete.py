"""The state while a model is run: reads give concrete values, writes are remembered until the state is left.

The counterpart of `symbolic.py`. A running state can stand for one state in rest after another, and its
families copy their cells only when they are written: most actions tried on a state do not even begin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from fencepost.model.domains import LeafDomain
from fencepost.model.errors import ModelError, raised_at
from fencepost.model.language import Cut, Fault, check_takes
from fencepost.model.protocol import Protocol, Scope, Variable, did_you_mean
from fencepost.model.rest import (
    Maybe,
    RecordOf,
    code_of,
    in_bounds,
    made_view,
    places,
    raw,
    table_of,
    values_of,
)


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
            {i[0] if len(variable.index) == 1 else i: n for n, i in enumerate(self.index)}
            if variable.index
            else {}
        )
        self.kind: type | None = None
        self.valid: frozenset[Any] = frozenset()
        self.table: dict[Any, Any] | None = None
        if isinstance(variable.domain, LeafDomain):
            values = values_of(variable.domain, scope)
            self.kind, self.valid = type(values[0]), frozenset(values)
        else:
            self.table = table_of(variable.domain)
        self._fitting: dict[Any, bool] = {}

    def seen(self, value: Any) -> Any:
        """What a model sees of a value in rest."""
        if self.table is None:
            return value
        found = self.table.get(value)
        return found if found is not None else made_view(self.table, self.variable.domain, value)

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

    __slots__ = ("_changed", "_kind", "_places", "_valid", "cells", "out_of_bounds", "shape")

    def __init__(self, shape: Shape, changed: dict[Shape, Any] | None) -> None:
        self.shape = shape
        self.cells: Any = ()
        self.out_of_bounds = False
        self._changed = changed
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
        cells = self._copy() if type(self.cells) is tuple else self.cells
        cells[place] = new

    def _checked(self, value: Any) -> Any:
        if type(value) is self._kind and value in self._valid:
            return value
        shape = self.shape
        new = raw(shape.variable.domain, value, shape.name)
        if not shape.fits(new):
            self.out_of_bounds = True
        return new

    def _copy(self) -> list[Any]:
        self._will_change()
        copied = self.cells = list(self.cells)
        return copied

    def _will_change(self) -> None:
        changed = self._changed
        if changed is None:
            raise _written_by_a_claim(self.shape.name)
        changed[self.shape] = self

    def fill(self, value: Any) -> None:
        """Give every cell the same value."""
        self._will_change()
        self.cells = [self._checked(value)] * len(self.cells)

    def update_where(self, fn: Callable[..., Any]) -> None:
        """Replace each cell by ``fn(*index, old value)``, all cells at once."""
        check_takes(fn, len(self.shape.variable.index) + 1, "update_where")
        shape = self.shape
        calls = [(*index, shape.seen(old)) for index, old in zip(shape.index, self.cells, strict=True)]
        new = [self._checked(value) for value in all_values(fn, calls)]
        self._will_change()
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
        self._will_change()
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


class RunningState:
    """A state while an action runs on it or a claim reads it; `load` gives it another state to stand for.

    Variables are plain attributes, so that reading one asks nothing of this class; `not_there` makes of an
    AttributeError what the author of a model is told.
    """

    def __init__(self, shapes: Mapping[str, Shape], *, writable: bool) -> None:
        d = self.__dict__
        changed: dict[Shape, Any] = {}
        d["_shapes"], d["_writable"], d["_rest"], d["_changed"] = shapes, writable, (), changed
        d["_scalars"] = [shape for shape in shapes.values() if not shape.variable.index]
        d["_families"] = []
        for shape in shapes.values():
            if shape.variable.index:
                kind = FamilyOf if shape.table is None else FamilyOfParts
                family = kind(shape, changed if writable else None)
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

    def __setattr__(self, name: str, value: Any) -> None:
        d = self.__dict__
        shape: Shape | None = d["_shapes"].get(name)
        if shape is None:
            what, instead = self.unknown(name)
            raise ModelError(what, instead=instead)
        if shape.places:
            d[name].become(value)
            return
        if not d["_writable"]:
            raise _written_by_a_claim(name)
        if type(value) is shape.kind and value in shape.valid:
            d["_changed"][shape] = d[name] = value
        else:
            value = d["_changed"][shape] = raw(shape.variable.domain, value, name)
            d[name] = shape.seen(value)

    def __delattr__(self, name: str) -> None:
        raise ModelError(f"{name} deleted", instead="a state variable always has a value; assign one")

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def unknown(self, name: str) -> tuple[str, str]:
        """What is wrong with asking for a variable that is not there, and what to do."""
        return f"no state variable {name!r}", did_you_mean(name, self.__dict__["_shapes"], "declare it")

    def undo(self, home: str) -> None:
        """Forget every write to variables of `home`."""
        d = self.__dict__
        for shape in [x for x in d["_changed"] if x.variable.home == home]:
            self._restore(shape, d["_changed"].pop(shape))

    def forget(self) -> None:
        """Forget every write: stand for the state that was loaded."""
        d = self.__dict__
        changed = d["_changed"]
        for shape, value in changed.items():
            self._restore(shape, value)
        changed.clear()
        d.pop("_late_refusal", None)

    def _restore(self, shape: Shape, value: Any) -> None:
        d = self.__dict__
        if shape.places:
            value.cells, value.out_of_bounds = d["_rest"][shape.position], False
        else:
            d[shape.name] = shape.seen(d["_rest"][shape.position])

    def at_rest(self) -> tuple[Any, ...]:
        """The state as a tuple; raises Cut when a number has left the scope."""
        d = self.__dict__
        rest: tuple[Any, ...] = d["_rest"]
        if not d["_changed"]:
            return rest
        cells = list(rest)
        for shape, value in d["_changed"].items():
            if shape.places:
                if value.out_of_bounds:
                    raise Cut
                cells[shape.position] = tuple(value.cells)
            elif value in shape.valid or shape.fits(value):
                cells[shape.position] = value
            else:
                raise Cut
        return tuple(cells)


def _written_by_a_claim(name: str) -> ModelError:
    return ModelError(f"{name} written by a claim", instead="claims only read")


def not_there(error: AttributeError) -> ModelError | None:
    """What to say to the author of a model about an attribute that a state or a value of it does not have."""
    if not isinstance(error.obj, (RunningState, RecordOf, Maybe)):
        return None
    what, instead = error.obj.unknown(str(error.name))
    return ModelError(what, instead=instead, site=raised_at(error.__traceback__))


def shapes_of(protocol: Protocol, scope: Scope) -> dict[str, Shape]:
    """The shapes of all variables of a protocol in a scope."""
    return {v.name: Shape(v, scope, i) for i, v in enumerate(protocol.variables.values())}


__all__ = [
    "FamilyOf",
    "FamilyOfParts",
    "RunningState",
    "Shape",
    "all_values",
    "in_bounds",
    "not_there",
    "shapes_of",
    "values_of",
]
