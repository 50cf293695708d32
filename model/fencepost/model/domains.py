"""The values that state variables, parameters and messages range over.

A domain says which values there are; a scope says how many of them a finite reading looks at. Composite
domains (`Optional`, `Record`) are flattened to *leaves*: one boolean, number, enumeration member or element
each.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from fencepost.model.errors import ModelError, Site

_LANGUAGE = str(Path(__file__).resolve().parent / "_").removesuffix("_")
_PROTOCOLS = str(Path(__file__).resolve().parent / "core" / "_").removesuffix("_")


def is_language(frame: FrameType) -> bool:
    """Whether the language itself runs in a frame, and not the text of a model."""
    file = frame.f_code.co_filename
    return file.startswith(_LANGUAGE) and not file.startswith(_PROTOCOLS)


def _refuse(what: str, instead: str) -> NoReturn:
    """Refuse a domain at the line that declares it, through the `__init__` that a dataclass is given."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (is_language(frame) or frame.f_code.co_filename == "<string>"):
        frame = frame.f_back
    raise ModelError(
        what, instead=instead, site=Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
    )


def _need_name(name: object, what: str) -> None:
    if not isinstance(name, str) or not name:
        _refuse(f"{name!r} is no name of a {what}", "name it by one word, in quotes")


class Domain:
    """Base of all domains."""

    __slots__ = ()

    def leaves(self) -> Iterator[tuple[str, LeafDomain]]:
        """Yield (dotted suffix, leaf domain) for each part that is stored on its own."""
        raise NotImplementedError


class LeafDomain(Domain):
    """A domain whose values are not made of parts."""

    __slots__ = ()
    name: str

    def leaves(self) -> Iterator[tuple[str, LeafDomain]]:
        """A leaf is its own only part."""
        yield "", self


@dataclass(frozen=True, slots=True)
class Boolean(LeafDomain):
    """True or false."""

    name: str = "boolean"


@dataclass(frozen=True, slots=True)
class Integer(LeafDomain):
    """A whole number without a bound: the type of arithmetic results, never of a variable."""

    name: str = "integer"


BOOLEAN = Boolean()
INTEGER = Integer()


@dataclass(frozen=True, slots=True)
class Range(LeafDomain):
    """Whole numbers from `low` to `high`, both included, at every size: not a scope's business."""

    low: int
    high: int
    name: str = "range"

    def __post_init__(self) -> None:
        """Refuse an empty range."""
        for bound in (self.low, self.high):
            if type(bound) is not int:
                _refuse(f"{bound!r} is no bound of a Range", "both bounds are whole numbers")
        if self.low > self.high:
            _refuse(f"Range({self.low}, {self.high}) is empty", "put the smaller bound first")


@dataclass(frozen=True, slots=True)
class Counter(LeafDomain):
    """Whole numbers from 0 without an end. A scope bounds it by name; a write beyond its bound is a cut."""

    name: str

    def __post_init__(self) -> None:
        """A scope bounds it by its name."""
        _need_name(self.name, "counter")


def _may_know(other: object) -> bool:
    """Whether `other` is a value of the language that has an == of its own, such as an optional.

    None is not equal in silence: the readings look for it among elements; for models `lint.py` finds it.
    """
    kind = type(other)
    if kind is Element or kind is Member or isinstance(other, Domain):
        return False
    return other is None or kind.__module__.startswith("fencepost.model.")


class Element:
    """One concrete element of a sort, such as worker ``w1``. Elements have identity and no order."""

    __slots__ = ("index", "label", "sort")

    def __init__(self, sort: Sort, index: int) -> None:
        self.sort = sort
        self.index = index
        self.label = f"{sort.prefix}{index + 1}"

    def __eq__(self, other: object) -> bool:
        """Identity within a sort; to compare with anything else is a mistake, not false."""
        if self is other:
            return True
        if type(other) is Element:
            if other.sort is self.sort or other.sort == self.sort:
                return False
        elif _may_know(other):
            return NotImplemented
        raise ModelError(
            f"the {self.sort.name} {self.label} compared with {other!r}",
            instead=f"compare it with an element of {self.sort.name}",
        )

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self.label

    def __bool__(self) -> bool:
        raise ModelError(f"the truth of the {self.sort.name} {self.label}", instead="compare it with ==")

    def __index__(self) -> int:
        raise ModelError(
            f"the {self.sort.name} {self.label} used as a number", instead="elements have no order"
        )


_ELEMENTS: dict[tuple[str, str, int], Element] = {}


@dataclass(frozen=True, slots=True)
class Sort(LeafDomain):
    """A set of interchangeable things, such as workers. A scope gives its size; a proof leaves it open."""

    name: str
    prefix: str = ""

    def __post_init__(self) -> None:
        """The prefix of element names is the first letter of the sort, unless given."""
        _need_name(self.name, "sort")
        if not self.prefix:
            object.__setattr__(self, "prefix", self.name[0])

    def element(self, index: int) -> Element:
        """The element number `index` (from 0); the same object each time."""
        key = (self.name, self.prefix, index)
        found = _ELEMENTS.get(key)
        if found is None:
            found = _ELEMENTS[key] = Element(self, index)
        return found

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the elements: on finite readings only."""
        from fencepost.model.language import iterate

        return iterate(self)


class Member:
    """One member of an enumeration."""

    __slots__ = ("code", "enumeration", "name")

    def __init__(self, enumeration: Enumeration, name: str, code: int) -> None:
        self.enumeration = enumeration
        self.name = name
        self.code = code

    def __eq__(self, other: object) -> bool:
        """Identity within an enumeration; to compare with anything else is a mistake, not false."""
        if self is other:
            return True
        if type(other) is Member:
            if other.enumeration is self.enumeration:
                return False
            shown = f"{other.enumeration.name}.{_attribute(other.name)}"
        elif _may_know(other):
            return NotImplemented
        else:
            shown = repr(other)
        raise ModelError(f"{self._path} compared with {shown}", instead=f"write == {self._meant(other)}")

    __hash__ = object.__hash__

    @property
    def _path(self) -> str:
        return f"{self.enumeration.name}.{_attribute(self.name)}"

    def _meant(self, other: object) -> str:
        """What the author of a comparison with a name, or with another's member, may have meant."""
        named = other.name if isinstance(other, Member) else other
        for member in self.enumeration.members:
            if member.name == named:
                return member._path  # noqa: SLF001
        return " or ".join(m._path for m in self.enumeration.members)  # noqa: SLF001

    def __repr__(self) -> str:
        return self.name

    def __bool__(self) -> bool:
        raise ModelError(
            f"the truth of {self.name}", instead=f"compare it: == {self.enumeration.name}.{self.name}"
        )

    def __index__(self) -> int:
        raise ModelError(f"the member {self.name} used as a number", instead="members have no order")


TAKEN_NAMES = frozenset({"name", "members", "leaves"})
"""What an enumeration calls its own attributes: no member, and no action, may be named so."""


class Enumeration(LeafDomain):
    """A closed set of named members: ``Phase = Enumeration("Phase", "idle", "held")``; ``Phase.idle``."""

    def __init__(self, name: str, *members: str) -> None:
        _need_name(name, "enumeration")
        for member in members:
            _need_name(member, f"member of {name}")
        attributes = {_attribute(m) for m in members}
        if not members or len(attributes) != len(members):
            raise ModelError(f"enumeration {name} needs distinct members", instead="name each member once")
        for taken in attributes & TAKEN_NAMES:
            raise ModelError(f"member {taken!r} of {name} is taken by the language", instead="rename it")
        self.name = name
        self.members = tuple(Member(self, m, i) for i, m in enumerate(members))
        self.__dict__.update((_attribute(m.name), m) for m in self.members)

    def __getattr__(self, name: str) -> Member:
        """Explain that there is no such member; those that there are stand beside their name."""
        if name.startswith("__"):
            raise AttributeError(name)
        known = ", ".join(m.name for m in self.__dict__.get("members", ()))
        raise ModelError(f"{self.__dict__.get('name')} has no member {name!r}", instead=f"it has {known}")

    def __getitem__(self, name: str) -> Member:
        """The member of that very name (codes contain hyphens, which attributes cannot)."""
        return getattr(self, _attribute(name))  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return self.name


def _attribute(name: str) -> str:
    return name.replace("-", "_")


@dataclass(frozen=True, slots=True)
class Optional(Domain):
    """A value of `of`, or none (`absent`). Ask with ``x.present``."""

    of: Domain

    def __post_init__(self) -> None:
        """Refuse an optional of an optional: two kinds of none cannot be told apart by a reader."""
        if isinstance(self.of, Optional):
            _refuse("an Optional of an Optional", "use an Enumeration for the states in between")
        if isinstance(self.of, Family):
            _refuse("an Optional of a Family", "make each cell optional: Family(…, of=Optional(…))")
        need_domain(self.of, "an Optional")

    def leaves(self) -> Iterator[tuple[str, LeafDomain]]:
        """Whether it is there, then the parts of its value."""
        yield ".present", BOOLEAN
        yield from self.of.leaves()


class Record(Domain):
    """A value of named fields: ``Lease = Record("Lease", worker=workers, version=versions)``; immutable."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str, **fields: Domain) -> None:
        self.name = name
        self.fields: Mapping[str, Domain] = dict(fields)
        _need_name(name, "record")
        if not fields:
            _refuse(f"record {name} has no fields", f'write Record("{name}", field=domain)')
        for field_name, domain in fields.items():
            if field_name in ("present", "changed"):
                raise ModelError(
                    f"field name {field_name!r} of {name} is taken by the language", instead="rename it"
                )
            if isinstance(domain, Optional):
                raise ModelError(
                    f"field {field_name} of {name} is optional", instead="make the record optional"
                )
            need_domain(domain, f"field {field_name} of {name}")

    def leaves(self) -> Iterator[tuple[str, LeafDomain]]:
        """Every part of every field."""
        for field_name, domain in self.fields.items():
            for suffix, leaf in domain.leaves():
                yield f".{field_name}{suffix}", leaf

    def __call__(self, **values: Any) -> Any:
        """Build a value of this record; every field must be given."""
        from fencepost.model.language import build_record

        return build_record(self, values)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Family:
    """One value of `of` per combination of `index` values: ``Family(workers, of=BOOLEAN)``."""

    index: tuple[LeafDomain, ...]
    of: Domain = field(kw_only=True)

    def __init__(self, *index: LeafDomain, of: Domain) -> None:
        if not index:
            _refuse("a Family without an index", "write Family(workers, of=…)")
        for domain in index:
            if not isinstance(domain, LeafDomain) or isinstance(domain, Integer):
                _refuse(f"{domain!r} is no index of a Family", NO_INDEX)
        need_domain(of, "a Family")
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "of", of)


NO_INDEX = "use a Sort, an Enumeration, BOOLEAN, a Counter or a Range"
"""What may be an index or a parameter: never a value of parts, nor one without bounds."""


def need_domain(domain: object, where: str) -> None:
    """Refuse what no variable, optional, field or cell can hold."""
    if isinstance(domain, Integer):
        _refuse(f"{where} of whole numbers without a bound", "use a Counter or a Range")
    if not isinstance(domain, Domain):
        _refuse(
            f"{where} of {domain!r}, which is not a domain",
            "use BOOLEAN, a Counter, Range, Sort, Enumeration, Optional or Record",
        )


def index_low(domain: LeafDomain) -> int:
    """The smallest index or value of a numeric domain."""
    return domain.low if isinstance(domain, Range) else 0
