"""Symbolic values: what state variables are while an action or a claim is traced.

Every operation that Python would misread in silence raises an error at the model's own line. The counterpart
with concrete values is `concrete.py`; the two offer the same operations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from fencepost.model import terms as t
from fencepost.model.domains import (
    BOOLEAN,
    INTEGER,
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
    is_language,
)
from fencepost.model.errors import ModelError
from fencepost.model.language import Absent, absent
from fencepost.model.rest import RecordOf

if TYPE_CHECKING:
    from fencepost.model.trace import Tracer


def _forbid(what: str, instead: str) -> Callable[..., NoReturn]:
    def method(_self: object, *_args: object) -> NoReturn:
        raise ModelError(what, instead=instead)

    return method


_ARITHMETIC = "only + and - have a reading for all sizes"
_TEXT = "f-strings and str() of state cannot be read; use the value itself"


class Symbolic:
    """Base of symbolic values: forbids what cannot be read."""

    __slots__ = ("tracer",)
    tracer: Tracer
    __len__ = _forbid("len() of a state value", "use count(domain, lambda x: …)")
    __index__ = _forbid("a state value used as a Python number", "index families with it: s.family[x]")
    __int__ = __float__ = _forbid("a number made of a state value", "use the value itself")
    __iter__ = _forbid("a loop over a state value", "loop over a sort, or use every / some / count")
    __contains__ = _forbid("`in` on a state value", "use some(domain, lambda x: …)")
    __str__ = _forbid("the text of a state value", _TEXT)
    __format__ = _forbid("an f-string of a state value", _TEXT)
    __and__ = __rand__ = _forbid("& between state values", "write `and`")
    __or__ = __ror__ = _forbid("| between state values", "write `or`")
    __xor__ = __rxor__ = _forbid("^ between state values", "write !=")
    __invert__ = _forbid("~ on a state value", "write `not`")
    __mul__ = __rmul__ = __matmul__ = __pow__ = __rpow__ = _forbid("* on a state value", _ARITHMETIC)
    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = _forbid(
        "division of a state value", _ARITHMETIC
    )
    __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _forbid("division of a state value", _ARITHMETIC)
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _forbid("a shift of a state value", _ARITHMETIC)
    __abs__ = __round__ = __trunc__ = __floor__ = __ceil__ = _forbid("rounding of a state value", _ARITHMETIC)
    __call__ = _forbid("a state value was called", "state values are not functions")

    def __hash__(self) -> int:
        raise ModelError(
            "the hash of a state value",
            instead="compare with ==; a set or dict of state values cannot be read",
        )

    def __repr__(self) -> str:
        if not is_language(sys._getframe(1)):  # its error messages ask for the text
            raise ModelError("the text of a state value", instead=_TEXT)
        return self._shown()

    def _shown(self) -> str:
        """The text of the value for messages of the language, which no model can get at."""
        return f"<{type(self).__name__}>"


class Value(Symbolic):
    """A symbolic boolean, number, element or member: one term."""

    __slots__ = ("term",)

    def __init__(self, tracer: Tracer, term: t.Term) -> None:
        self.tracer = tracer
        self.term = term

    def _shown(self) -> str:
        return t.show(self.term)

    def __bool__(self) -> bool:
        if not isinstance(self.term.domain, Boolean):
            raise ModelError(
                f"the truth of {self!r}, which is not a boolean",
                instead="compare it: == 0, > 0 or == Some.member",
            )
        return self.tracer.decide(self.term)

    def _other(self, other: object) -> t.Term:
        return lift(self.tracer, other, t.kind(self.term.domain))

    def __eq__(self, other: object) -> Any:
        if isinstance(other, (OptionalValue, RecordValue)):
            return other == self
        if isinstance(other, Absent):
            raise ModelError(
                f"{self!r} compared with absent, but it is not optional", instead="drop the comparison"
            )
        return Value(self.tracer, t.eq(self.term, self._other(other)))

    __hash__ = Symbolic.__hash__  # a class with its own == would lose it

    def __ne__(self, other: object) -> Any:
        return Value(self.tracer, t.not_((self == other).term))

    def _number(self, other: object) -> t.Term:
        if t.kind(self.term.domain) is not INTEGER:
            raise ModelError(
                f"an order or sum of {self!r}, which is not a number", instead="only == and != apply"
            )
        return lift(self.tracer, other, INTEGER)

    def __lt__(self, other: object) -> Any:
        return Value(self.tracer, t.lt(self.term, self._number(other)))

    def __le__(self, other: object) -> Any:
        return Value(self.tracer, t.le(self.term, self._number(other)))

    def __gt__(self, other: object) -> Any:
        return Value(self.tracer, t.lt(self._number(other), self.term))

    def __ge__(self, other: object) -> Any:
        return Value(self.tracer, t.le(self._number(other), self.term))

    def __add__(self, other: object) -> Any:
        return Value(self.tracer, t.add(self.term, self._number(other)))

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        return Value(self.tracer, t.add(self.term, t.negate(self._number(other))))

    def __rsub__(self, other: object) -> Any:
        return Value(self.tracer, t.add(self._number(other), t.negate(self.term)))

    def __neg__(self) -> Any:
        self._number(0)
        return Value(self.tracer, t.negate(self.term))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("present", "value"):
            raise ModelError(f"{self!r} is not optional: it has no .{name}", instead="use it as it is")
        raise ModelError(f"{self!r} has no field {name!r}", instead="only records have fields")


class RecordValue(Symbolic):
    """A symbolic record: immutable; its leaves' terms by dotted suffix."""

    __slots__ = ("domain", "parts")

    def __init__(self, tracer: Tracer, domain: Record, parts: dict[str, t.Term]) -> None:
        object.__setattr__(self, "tracer", tracer)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "parts", parts)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        field = self.domain.fields.get(name)
        if field is None:
            raise ModelError(
                f"{self.domain.name} has no field {name!r}", instead=f"it has {list(self.domain.fields)}"
            )
        return wrap(self.tracer, field, _below(self.parts, f".{name}"))

    def __setattr__(self, name: str, value: object) -> None:
        raise ModelError(
            f"assignment to field {name!r} of a record",
            instead="records are immutable: assign x.changed(field=…)",
        )

    def changed(self, **values: Any) -> RecordValue:
        """The same record with some fields replaced."""
        for name in values:
            getattr(self, name)
        fields = {n: values.get(n, getattr(self, n)) for n in self.domain.fields}
        return record_value(self.tracer, self.domain, fields)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, OptionalValue):
            return other == self
        parts = encode(self.tracer, self.domain, other)
        return Value(self.tracer, t.and_(t.eq(self.parts[k], parts[k]) for k in parts))

    __hash__ = Symbolic.__hash__  # a class with its own == would lose it

    def __ne__(self, other: object) -> Any:
        return Value(self.tracer, t.not_((self == other).term))

    def __bool__(self) -> bool:
        raise ModelError(
            f"the truth of a {self.domain.name}", instead="compare it, or one of its fields, with =="
        )


class OptionalValue(Symbolic):
    """A symbolic value that may be absent."""

    __slots__ = ("domain", "parts")

    def __init__(self, tracer: Tracer, domain: Optional, parts: dict[str, t.Term]) -> None:
        object.__setattr__(self, "tracer", tracer)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "parts", parts)

    @property
    def present(self) -> Value:
        """Whether there is a value."""
        return Value(self.tracer, self.parts[".present"])

    @property
    def value(self) -> Any:
        """The value; a fault of the model where it is absent."""
        if not self.tracer.decide(self.parts[".present"]):
            self.tracer.fault(
                "the value of an absent optional", "ask x.present first, with `and`, `or` or `if`"
            )
        return wrap(self.tracer, self.domain.of, {k: v for k, v in self.parts.items() if k != ".present"})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.value, name)

    def __setattr__(self, name: str, value: object) -> None:
        raise ModelError(f"assignment to {name!r} of an optional", instead="assign the whole variable")

    def __eq__(self, other: object) -> Any:
        mine = self.parts[".present"]
        if isinstance(other, Absent):
            return Value(self.tracer, t.not_(mine))
        if isinstance(other, OptionalValue):
            if not _comparable(self.domain.of, other.domain.of):
                raise ModelError(
                    "two optionals of different kinds compared", instead="both must hold the same kind"
                )
            theirs = other.parts[".present"]
            same = t.and_(t.eq(v, other.parts[k]) for k, v in self.parts.items() if k != ".present")
            return Value(
                self.tracer, t.or_((t.and_((mine, theirs, same)), t.and_((t.not_(mine), t.not_(theirs)))))
            )
        parts = encode(self.tracer, self.domain.of, other)
        return Value(self.tracer, t.and_((mine, *(t.eq(self.parts[k], v) for k, v in parts.items()))))

    __hash__ = Symbolic.__hash__  # a class with its own == would lose it

    def __ne__(self, other: object) -> Any:
        return Value(self.tracer, t.not_((self == other).term))

    def __lt__(self, other: object) -> Any:
        return self.value < other

    def __le__(self, other: object) -> Any:
        return self.value <= other

    def __gt__(self, other: object) -> Any:
        return self.value > other

    def __ge__(self, other: object) -> Any:
        return self.value >= other

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


def _comparable(a: Domain, b: Domain) -> bool:
    if isinstance(a, LeafDomain) and isinstance(b, LeafDomain):
        return t.kind(a) == t.kind(b)
    return a == b


def _below(parts: dict[str, t.Term], prefix: str) -> dict[str, t.Term]:
    return {k[len(prefix) :]: v for k, v in parts.items() if k == prefix or k.startswith(prefix + ".")}


def wrap(tracer: Tracer, domain: Domain, parts: dict[str, t.Term]) -> Any:
    """The value of `domain` that has these leaf terms."""
    if isinstance(domain, Optional):
        return OptionalValue(tracer, domain, parts)
    if isinstance(domain, Record):
        return RecordValue(tracer, domain, parts)
    return Value(tracer, parts[""])


def symbolic(tracer: Tracer, value: Any) -> Any:
    """A value of a reading, where a constant record may have been given."""
    if isinstance(value, RecordOf):
        domain: Record = value._domain  # noqa: SLF001
        return record_value(tracer, domain, {n: getattr(value, n) for n in domain.fields})
    return value


def lift(tracer: Tracer, value: object, domain: t.TermDomain) -> t.Term:
    """The term of a leaf value, symbolic or concrete, that is used where `domain` is meant."""
    if isinstance(value, OptionalValue):
        value = value.value
    if isinstance(value, Value):
        if t.kind(value.term.domain) != t.kind(domain):
            raise ModelError(
                f"{value!r} is a {_name(value.term.domain)}", instead=f"a {_name(domain)} is meant here"
            )
        return value.term
    wanted = t.kind(domain)
    if value is True or value is False:
        if wanted == BOOLEAN:
            return t.boolean(value is True)
    elif isinstance(value, int):
        if wanted is INTEGER:
            return t.integer(value)
    elif isinstance(value, Element):
        if value.sort == wanted:
            tracer.check_named(value)
            return t.constant(value.index, value.sort)
    elif isinstance(value, Member) and value.enumeration is wanted:
        return t.constant(value.code, value.enumeration)
    if value is None:
        raise ModelError("None used as a state value", instead="write `absent`, on an Optional")
    raise ModelError(f"{value!r} is not a {_name(domain)}", instead=f"a {_name(domain)} is meant here")


def _name(domain: t.TermDomain) -> str:
    if isinstance(domain, Boolean):
        return "boolean"
    if isinstance(domain, (Sort, Enumeration)):
        return domain.name
    return "number"


def default_code(leaf: LeafDomain) -> int:
    """The code that a leaf of an absent optional has, so that equal states look equal."""
    return leaf.low if isinstance(leaf, Range) else 0


def encode(tracer: Tracer, domain: Domain, value: object) -> dict[str, t.Term]:
    """The leaf terms of a value assigned to `domain`."""
    if isinstance(domain, Optional):
        if isinstance(value, Absent):
            leaves = domain.of.leaves()
            return {".present": t.FALSE, **{s: t.constant(default_code(d), d) for s, d in leaves}}
        if isinstance(value, OptionalValue):
            if value.domain != domain:
                raise ModelError(
                    "an optional of another kind assigned", instead="both must have the same domain"
                )
            return dict(value.parts)
        return {".present": t.TRUE, **encode(tracer, domain.of, value)}
    if isinstance(value, Absent):
        raise ModelError("absent assigned to what is not optional", instead="declare it Optional(…)")
    if isinstance(domain, Record):
        if isinstance(value, OptionalValue):
            value = value.value
        value = symbolic(tracer, value)
        if not isinstance(value, RecordValue) or value.domain is not domain:
            raise ModelError(f"{value!r} is not a {domain.name}", instead=f"build it with {domain.name}(…)")
        return dict(value.parts)
    assert isinstance(domain, LeafDomain)  # noqa: S101
    return {"": lift(tracer, value, domain)}


def record_value(tracer: Tracer, record: Record, values: dict[str, Any]) -> RecordValue:
    """A record value from the values of its fields."""
    parts: dict[str, t.Term] = {}
    for name, domain in record.fields.items():
        for suffix, term in encode(tracer, domain, values[name]).items():
            parts[f".{name}{suffix}"] = term
    return RecordValue(tracer, record, parts)


__all__ = [
    "OptionalValue",
    "RecordValue",
    "Symbolic",
    "Value",
    "absent",
    "default_code",
    "encode",
    "lift",
    "record_value",
    "wrap",
]
