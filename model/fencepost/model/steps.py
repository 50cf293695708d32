"""What a term over the cells before and after a step becomes when one command makes the step.

Most commands change few of the cells that a claim reads. So what becomes of a term where nothing changes is
made once, for all commands, and a command makes anew only what it changes something in. What may not live
here: terms over families; by now they are over the cells of a scope (`ground`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fencepost.model import terms as t
from fencepost.model.trace import PRIME

if TYPE_CHECKING:
    from fencepost.model.ground import Cell, GroundCommand
    from fencepost.model.trace import Command

WORD = "step "
"""How the names of variables begin that stand for a word about the step, such as ``step action acquire``."""


def step_word(word: str, command: Command) -> bool:
    """Whether a word about the step is true of a command."""
    _, kind, *name = word.split(" ", 2)
    if kind == "refused":
        return command.refused
    return name == [command.action.name if kind == "action" else command.outcome]


class Steps:
    """The steps of some commands: terms over both states, as terms over the cells before each of them."""

    def __init__(self, cells: Mapping[str, Cell], commands: Sequence[GroundCommand]) -> None:
        self._cells = cells
        self._commands = commands
        self._bits = {name: 1 << number for number, name in enumerate(cells)}
        self._words: dict[str, int] = {}
        self._masks: dict[t.Term, int] = {}
        self._still: dict[t.Term, t.Term] = {}
        self._changed = [sum(self._bits[name] for name in c.updates) for c in commands]
        self._made: list[dict[t.Term, t.Term]] = [{} for _ in commands]

    def of(self, term: t.Term) -> tuple[t.Term, ...]:
        """A ground term over primed and unprimed cells, as one over the cells before, for each command."""
        mask = self._mask(term)
        words = [(name, bit) for name, bit in self._words.items() if mask & bit]
        return tuple(
            self._after(term, number, changed | self._true(words, self._commands[number]))
            for number, changed in enumerate(self._changed)
        )

    def _true(self, words: Iterable[tuple[str, int]], command: GroundCommand) -> int:
        return sum(bit for name, bit in words if step_word(name, command.source))

    def _mask(self, term: t.Term) -> int:
        """Which cells after the step, and which words about it, are read in a term: a bit for each."""
        found = self._masks.get(term)
        if found is None:
            found = self._bit(str(term.payload)) if term.op == "var" else 0
            for arg in term.args:
                found |= self._mask(arg)
            self._masks[term] = found
        return found

    def _bit(self, name: str) -> int:
        if name.endswith(PRIME):
            return self._bits[name.removesuffix(PRIME)]
        if name.startswith(WORD):
            return self._words.setdefault(name, 1 << (len(self._bits) + len(self._words)))
        return 0

    def _after(self, term: t.Term, number: int, changed: int) -> t.Term:
        """A term after a command that changes the cells, and makes the words true, whose bits are given."""
        command, made = self._commands[number], self._made[number]

        def visit(term: t.Term) -> t.Term:
            if not self._masks[term] & changed:
                return self._unchanged(term)
            found = made.get(term)
            if found is None:
                if term.op == "var":
                    name = str(term.payload)
                    found = t.TRUE if name.startswith(WORD) else command.updates[name.removesuffix(PRIME)]
                else:
                    found = _with(term, [visit(a) for a in term.args])
                made[term] = found
            return found

        return visit(term)

    def _unchanged(self, term: t.Term) -> t.Term:
        """A term after a step that changes nothing in it and makes none of its words true."""
        if not self._masks[term]:
            return term
        found = self._still.get(term)
        if found is None:
            if term.op == "var":
                name = str(term.payload)
                found = t.FALSE if name.startswith(WORD) else self._cells[name.removesuffix(PRIME)].term
            else:
                found = _with(term, [self._unchanged(a) for a in term.args])
            self._still[term] = found
        return found


def _with(term: t.Term, args: Sequence[t.Term]) -> t.Term:
    made = tuple(args)
    return term if made == term.args else t.rebuild(term, made)
