"""Between which numbers a ground term lies, given what a command's guard says.

Used for two things: a check that a written value fits its field is left out where it always does, and no term
can overflow 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencepost.checker.native.layout import NUMBER_BITS, Place
from fencepost.model import terms as t
from fencepost.model.domains import BOOLEAN
from fencepost.model.errors import ModelError

Interval = tuple[int, int]


class Ranges:
    """Intervals of terms over cells; `assume` and `narrow` add what is known where they are asked for."""

    def __init__(self, places: Mapping[str, Place]) -> None:
        self._places = places
        self._known: dict[t.Term, Interval] = {}
        self._found: dict[t.Term, Interval] = {}

    def of(self, term: t.Term) -> Interval:
        """The smallest and largest value `term` can have."""
        found = self._found.get(term)
        if found is None:
            low, high = self._compute(term)
            known = self._known.get(term)
            if known is not None:
                low, high = max(low, known[0]), min(high, known[1])
            if max(abs(low), abs(high)) >> NUMBER_BITS:
                raise ModelError(
                    f"{t.show(term)} can reach {max(low, high, key=abs)}, beyond 2**{NUMBER_BITS}",
                    instead="use smaller numbers: the compiled reading computes in 64 bits",
                )
            found = self._found[term] = (low, high)
        return found

    def _compute(self, term: t.Term) -> Interval:
        if term.op == "const":
            return int(term.payload or 0), int(term.payload or 0)
        if term.op == "var":
            place = self._places.get(str(term.payload))
            return (place.low, place.high) if place is not None else (0, 1)
        if term.op == "add":
            (a, b), (c, d) = self.of(term.args[0]), self.of(term.args[1])
            return a + c, b + d
        if term.op == "neg":
            low, high = self.of(term.args[0])
            return -high, -low
        if term.op == "ite":
            (a, b), (c, d) = self.of(term.args[1]), self.of(term.args[2])
            return min(a, c), max(b, d)
        return 0, 1

    def check(self, terms: Iterable[t.Term]) -> None:
        """Raise ModelError if a number within `terms` can need more than 62 bits."""
        seen: set[t.Term] = set()
        stack = list(terms)
        while stack:
            term = stack.pop()
            if term not in seen:
                seen.add(term)
                stack += term.args
                self.of(term)

    def narrow(self, term: t.Term, low: int, high: int) -> None:
        """Note that `term` lies within low..high; nothing is noted where that is impossible."""
        now = self.of(term)
        new = max(low, now[0]), min(high, now[1])
        if new != now and new[0] <= new[1]:
            self._known[term] = new
            self._found.clear()
            if term.op == "add" and term.args[1].op == "const":
                step = int(term.args[1].payload or 0)
                self.narrow(term.args[0], new[0] - step, new[1] - step)

    def assume(self, condition: t.Term) -> None:
        """Note what follows for numbers from `condition` being true."""
        if condition.op == "and":
            for part in condition.args:
                self.assume(part)
        elif condition.op == "le":
            self._assume_le(*condition.args, gap=0)
        elif condition.op == "not" and condition.args[0].op == "le":
            a, b = condition.args[0].args
            self._assume_le(b, a, gap=1)
        elif condition.op == "eq" and condition.args[0].domain != BOOLEAN:
            self._assume_le(*condition.args, gap=0)
            self._assume_le(condition.args[1], condition.args[0], gap=0)

    def _assume_le(self, a: t.Term, b: t.Term, *, gap: int) -> None:
        """Note that a + gap <= b."""
        (low_a, high_a), (low_b, high_b) = self.of(a), self.of(b)
        self.narrow(a, low_a, min(high_a, high_b - gap))
        self.narrow(b, max(low_b, low_a + gap), high_b)
