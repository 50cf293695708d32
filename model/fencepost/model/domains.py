"""The values that state variables, parameters and messages range over.

A domain says which values there are; a scope says how many of them a finite reading looks at. Composite
domains (`Optional`, `Record`) are flattened to *leaves*: one boolean, number, enumeration member or element
each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.errors import ModelError


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
        if self.low > self.high:
            raise ModelError(
                f"Range({self.low}, {self.high}) is empty", instead="put the smaller bound first"
            )


@dataclass(frozen=True, slots=True)
class Counter(LeafDomain):
    """Whole numbers from 0 without an end. A scope bounds it by name; a write beyond its bound is a cut."""

    name: str


class Element:
    """One concrete element of a sort, such as worker ``w1``. Elements have identity and no order."""

    __slots__ = ("index", "label", "sort")

    def __init__(self, sort: Sort, index: int) -> None:
        self.sort = sort
        self.index = index
        self.label = f"{sort.prefix}{index + 1}"

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

    def __repr__(self) -> str:
        return self.name

    def __bool__(self) -> bool:
        raise ModelError(
            f"the truth of {self.name}", instead=f"compare it: == {self.enumeration.name}.{self.name}"
        )

    def __index__(self) -> int:
        raise ModelError(f"the member {self.name} used as a number", instead="members have no order")


class Enumeration(LeafDomain):
    """A closed set of named members: ``Phase = Enumeration("Phase", "idle", "held")``; ``Phase.idle``."""

    def __init__(self, name: str, *members: str) -> None:
        attributes = {_attribute(m) for m in members}
        if not members or len(attributes) != len(members):
            raise ModelError(f"enumeration {name} needs distinct members", instead="name each member once")
        for taken in attributes & {"name", "members", "leaves"}:
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
            raise ModelError(
                "an Optional of an Optional", instead="use an Enumeration for the states in between"
            )

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
        for field_name, domain in fields.items():
            if field_name in ("present", "changed"):
                raise ModelError(
                    f"field name {field_name!r} of {name} is taken by the language", instead="rename it"
                )
            if isinstance(domain, Optional):
                raise ModelError(
                    f"field {field_name} of {name} is optional", instead="make the record optional"
                )

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
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "of", of)


def index_low(domain: LeafDomain) -> int:
    """The smallest index or value of a numeric domain."""
    return domain.low if isinstance(domain, Range) else 0
