"""Nodes of terms: immutable, made once each, and ordered by what they are.

Equal terms are the same object, in all threads of a process, so comparing them is `is`. What may not live
here: what an operation means; `terms` makes and simplifies nodes.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from fencepost.model.domains import LeafDomain


@dataclass(frozen=True, slots=True)
class Array:
    """The domain of a whole family: its index domains and the domain of one cell."""

    index: tuple[LeafDomain, ...]
    value: LeafDomain


TermDomain = LeafDomain | Array
Payload = bool | int | str | None


class Term:
    """One node. `payload` is a constant's value or a variable's name; `args` are the operands.

    `number` stands for the term in the keys of others. `rank` orders terms by what they are alone, whatever
    else was made before: small ones first.
    """

    __slots__ = ("args", "domain", "number", "op", "payload", "rank")

    def __init__(
        self, op: str, payload: Payload, args: tuple[Term, ...], domain: TermDomain, number: int
    ) -> None:
        self.op = op
        self.payload = payload
        self.args = args
        self.domain = domain
        self.number = number
        self.rank = _rank(op, payload, args, domain)

    def __repr__(self) -> str:
        from fencepost.model.terms import show

        return show(self)


_DEEP: Final = 1 << 192
_LETTERS: Final = 20


def _rank(op: str, payload: Payload, args: tuple[Term, ...], domain: TermDomain) -> int:
    """Depth, then the first letters of a variable's name, then a checksum: an order, and a short number."""
    depth = 1 + max((a.rank // _DEEP for a in args), default=0)
    text = f"{op} {payload!r} {getattr(domain, 'name', '')} {[a.rank for a in args]}".encode()
    letters = b"" if args else str(payload).encode()[:_LETTERS]
    return depth * _DEEP + int.from_bytes(letters.ljust(_LETTERS, b"\0") + crc32(text).to_bytes(4))


_TABLE: dict[tuple[object, ...], Term] = {}
_NUMBERS = itertools.count()


def node(op: str, payload: Payload, args: tuple[Term, ...], domain: TermDomain) -> Term:
    """The term of this operation on these operands: made once, and found again from then on."""
    key = (op, payload, type(payload), domain, *[a.number for a in args])
    found = _TABLE.get(key)
    if found is None:
        # One of two threads wins; a number is never given twice, since it stands for its term in other keys.
        found = _TABLE.setdefault(key, Term(op, payload, args, domain, next(_NUMBERS)))
    return found
