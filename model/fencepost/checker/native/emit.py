"""LLVM IR text, one function at a time: ground terms as values, and bookkeeping of blocks."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.checker.native.layout import WORD_BITS, Layout
from fencepost.model import terms as t
from fencepost.model.domains import BOOLEAN
from fencepost.model.errors import ModelError


def signed(value: int) -> int:
    """An unsigned 64-bit number as IR writes it."""
    return value - (1 << WORD_BITS) if value >> (WORD_BITS - 1) else value


PIECE = 40
"""Terms that are computed at once: fewer would be guessed wrong more often than they save."""


def weight_of(term: t.Term) -> int:
    """How many operations `term` takes, if none is shared."""
    found = _WEIGHTS.get(term)
    if found is None:
        found = _WEIGHTS[term] = 1 + sum(map(weight_of, term.args))
    return found


_WEIGHTS: dict[t.Term, int] = {}


class Emitter:
    """The body of one function over the words of a state (`%w0`, `%w1`, …).

    A term is computed once in the block where it is first needed and reused in blocks that this one
    dominates: between `mark()` and `release(mark)` lies what is known on one branch only.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.lines: list[str] = []
        self.block = "entry"
        self._names = 0
        self._values: dict[t.Term, str] = {}
        self._trail: list[t.Term] = []

    # -- text

    def value(self, text: str) -> str:
        """Add an instruction that gives a value; gives its name."""
        self._names += 1
        name = f"%t{self._names}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Add an instruction without a value."""
        self.lines.append(f"  {text}")

    def label(self, what: str) -> str:
        """A fresh label."""
        self._names += 1
        return f"{what}{self._names}"

    def begin(self, label: str) -> None:
        """Start the block `label`."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """End the block: go on at `label`."""
        self.do(f"br label %{label}")

    def fork(self, condition: str, then: str, otherwise: str) -> None:
        """End the block: go on at one of two labels."""
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def join(self, kind: str, arms: Sequence[tuple[str, str]], label: str) -> str:
        """Start the block `label`, reached from each (value, block) of `arms`; gives the value there."""
        self.begin(label)
        if len({value for value, _ in arms}) == 1:
            return arms[0][0]
        return self.value(f"phi {kind} " + ", ".join(f"[{value}, %{block}]" for value, block in arms))

    # -- what is known where

    def mark(self) -> int:
        """Start of a branch."""
        return len(self._trail)

    def release(self, mark: int) -> None:
        """End of the branch that started at `mark`."""
        for term in self._trail[mark:]:
            del self._values[term]
        del self._trail[mark:]

    # -- terms

    def number(self, term: t.Term) -> str:
        """`term` as an i64; a boolean as 0 or 1."""
        if term.op == "const":
            return str(int(term.payload or 0))
        if term.domain == BOOLEAN:
            return self.value(f"zext i1 {self.truth(term)} to i64")
        found = self._values.get(term)
        if found is None:
            found = self._remember(term, self._number(term))
        return found

    def truth(self, term: t.Term) -> str:
        """A boolean term as an i1."""
        if term.op == "const":
            return "true" if term.payload else "false"
        found = self._values.get(term)
        if found is None:
            found = self._remember(term, self._truth(term))
        return found

    def _remember(self, term: t.Term, name: str) -> str:
        self._values[term] = name
        self._trail.append(term)
        return name

    def _number(self, term: t.Term) -> str:
        if term.op == "var":
            return self._cell(term)
        if term.op == "add":
            return self.value(f"add i64 {self.number(term.args[0])}, {self.number(term.args[1])}")
        if term.op == "neg":
            return self.value(f"sub i64 0, {self.number(term.args[0])}")
        if term.op == "ite":
            condition, a, b = self.truth(term.args[0]), self.number(term.args[1]), self.number(term.args[2])
            return self.value(f"select i1 {condition}, i64 {a}, i64 {b}")
        raise _not_ground(term)

    def _truth(self, term: t.Term) -> str:
        if term.op == "var":
            return self._flag(term)
        if term.op == "not":
            return self.value(f"xor i1 {self.truth(term.args[0])}, true")
        if term.op in ("and", "or"):
            return self._junction(term)
        if term.op == "eq":
            a, b = term.args
            if a.domain == BOOLEAN:
                return self.value(f"icmp eq i1 {self.truth(a)}, {self.truth(b)}")
            return self.value(f"icmp eq i64 {self.number(a)}, {self.number(b)}")
        if term.op == "le":
            return self.value(f"icmp sle i64 {self.number(term.args[0])}, {self.number(term.args[1])}")
        if term.op == "ite":
            condition, yes, no = (self.truth(arg) for arg in term.args)
            return self.value(f"select i1 {condition}, i1 {yes}, i1 {no}")
        raise _not_ground(term)

    def _junction(self, term: t.Term) -> str:
        """The value of an `and` or `or`: a large one is computed in pieces, until one of them decides it."""
        arms: list[tuple[str, str]] = []
        decided = "true" if term.op == "or" else "false"
        end = self.label("decided")
        mark, result, size = self.mark(), "", 0
        for part in term.args:
            weight = weight_of(part)
            if result and size + weight > PIECE:
                go_on = self.label("undecided")
                self.fork(result, *((end, go_on) if term.op == "or" else (go_on, end)))
                arms.append((decided, self.block))
                mark = mark if len(arms) > 1 else self.mark()
                self.begin(go_on)
                result, size = "", 0
            truth = self.truth(part)
            result = self.value(f"{term.op} i1 {result}, {truth}") if result else truth
            size += weight
        if not arms:
            return result
        arms.append((result, self.block))
        self.jump(end)
        self.release(mark)
        return self.join("i1", arms, end)

    def _cell(self, term: t.Term) -> str:
        place = self.layout.places.get(str(term.payload))
        if place is None:
            raise _not_ground(term)
        if not place.bits:
            return str(place.low)
        name = f"%w{place.word}"
        if place.shift:
            name = self.value(f"lshr i64 {name}, {place.shift}")
        if place.shift + place.bits < WORD_BITS:
            name = self.value(f"and i64 {name}, {(1 << place.bits) - 1}")
        return self.value(f"add i64 {name}, {place.low}") if place.low else name

    def _flag(self, term: t.Term) -> str:
        place = self.layout.places.get(str(term.payload))
        if place is None:
            raise _not_ground(term)
        if not place.bits:
            return "true" if place.low else "false"
        bit = self.value(f"and i64 %w{place.word}, {signed(place.mask)}")
        return self.value(f"icmp ne i64 {bit}, 0")


def _not_ground(term: t.Term) -> ModelError:
    return ModelError(
        f"{t.show(term)} is no term over the cells of one state",
        instead="give explore() what GroundModel.state_claim or GroundModel.step_claim returns",
    )
