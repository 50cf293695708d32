"""A tiny interpreter of the ground commands, independent of the checkers."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from fencepost.model import terms as t
from fencepost.model.ground import GroundModel

Codes = tuple[int, ...]
Evaluate = Callable[[Codes], tuple[int, ...]]

_OPERATIONS = {"not": "not {}", "eq": "{} == {}", "le": "{} <= {}", "add": "{} + {}", "neg": "-{}"}


def compiled(terms: Iterable[t.Term], places: Mapping[str, int]) -> Evaluate:
    """A Python function from the codes of cells to the values of terms; each subterm is computed once."""
    lines: list[str] = []
    names: dict[t.Term, str] = {}

    def name(term: t.Term) -> str:
        if term not in names:
            if term.op == "const":
                text = repr(int(term.payload or 0))
            elif term.op == "var":
                text = f"c[{places[str(term.payload)]}]"
            else:
                arguments = [name(a) for a in term.args]
                if term.op in ("and", "or"):
                    text = f" {term.op} ".join(arguments)
                elif term.op == "ite":
                    text = "{1} if {0} else {2}".format(*arguments)
                else:
                    text = _OPERATIONS[term.op].format(*arguments)
            names[term] = f"x{len(names)}"
            lines.append(f"    {names[term]} = {text}")
        return names[term]

    results = "".join(f"int({name(term)})," for term in terms)
    space: dict[str, Evaluate] = {}
    exec("\n".join(["def f(c):", *lines, f"    return ({results})"]), space)  # noqa: S102
    return space["f"]


class Move(NamedTuple):
    """A transition, cut or fault: the action, the codes of its arguments, how it ended, where it led."""

    action: str
    arguments: Codes
    outcome: str
    after: Codes


class GroundRunner:
    """Runs the commands of a ground model, one state at a time."""

    def __init__(self, model: GroundModel) -> None:
        self.model = model
        self.places = {cell.name: i for i, cell in enumerate(model.cells)}
        self.initial = tuple(model.initial[cell.name] for cell in model.cells)
        self._guards = compiled([c.guard for c in model.commands], self.places)
        self._rest: dict[int, Evaluate] = {}

    def fired(self, state: Codes) -> list[int]:
        """The numbers of the commands whose guard holds."""
        return [i for i, holds in enumerate(self._guards(state)) if holds]

    def moves(self, state: Codes) -> list[Move]:
        """All that can happen in a state; ``cut`` and ``fault`` lead nowhere."""
        return [self.move(i, state) for i in self.fired(state)]

    def move(self, number: int, state: Codes) -> Move:
        """What a command does."""
        command = self.model.commands[number]
        if number not in self._rest:
            terms = (*command.updates.values(), *(term for term, _, _ in command.fits))
            self._rest[number] = compiled(terms, self.places)
        values = self._rest[number](state)
        new, fits = values[: len(command.updates)], values[len(command.updates) :]
        cut = any(not low <= v <= high for v, (_, low, high) in zip(fits, command.fits, strict=True))
        outcome = "cut" if cut else command.outcome
        after = list(state)
        if outcome in ("cut", "fault"):
            return Move(command.action.name, command.arguments, outcome, ())
        for name, value in zip(command.updates, new, strict=True):
            cell = self.model.cells[self.places[name]]
            assert cell.low <= value <= cell.high, f"{command.label} leaves {name}"
            after[self.places[name]] = value
        return Move(command.action.name, command.arguments, outcome, tuple(after))

    def claim(self, terms: Iterable[t.Term]) -> Evaluate:
        """The values of claims in a state: of a state claim, or of a step claim for each command."""
        return compiled(terms, self.places)

    def search(self, limit: int) -> tuple[dict[Codes, int], Tally[str]]:
        """All states with their distance, and how many moves and cuts there are; at most `limit` states."""
        depth = {self.initial: 0}
        numbers: Tally[str] = Tally()
        for state in (todo := [self.initial]):
            for move in self.moves(state):
                numbers[move.outcome if move.outcome in ("cut", "fault") else "moves"] += 1
                if move.after and move.after not in depth:
                    depth[move.after] = depth[state] + 1
                    todo.append(move.after)
            if len(depth) > limit:
                break
        return depth, numbers
