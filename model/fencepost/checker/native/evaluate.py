"""Ground terms on concrete codes: to find again which command led from a state to the next."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.model import terms as t
from fencepost.model.ground import GroundCommand


class Evaluator:
    """Values of terms in one state; a boolean is 0 or 1."""

    def __init__(self, codes: Mapping[str, int]) -> None:
        self._codes = codes
        self._found: dict[t.Term, int] = {}

    def __call__(self, term: t.Term) -> int:
        """The value of `term`."""
        found = self._found.get(term)
        if found is None:
            found = self._found[term] = self._compute(term)
        return found

    def _compute(self, term: t.Term) -> int:
        args = term.args
        match term.op:
            case "const":
                return int(term.payload or 0)
            case "var":
                return self._codes[str(term.payload)]
            case "not":
                return 1 - self(args[0])
            case "and":
                return int(all(self(a) for a in args))
            case "or":
                return int(any(self(a) for a in args))
            case "eq":
                return int(self(args[0]) == self(args[1]))
            case "le":
                return int(self(args[0]) <= self(args[1]))
            case "add":
                return self(args[0]) + self(args[1])
            case "neg":
                return -self(args[0])
            case "ite":
                return self(args[1] if self(args[0]) else args[2])
        raise ValueError(f"{term.op} is no operation of ground terms")


def successor(command: GroundCommand, codes: Mapping[str, int]) -> dict[str, int] | None:
    """The state after `command`, or None where it is not enabled, cut or leads nowhere."""
    value = Evaluator(codes)
    if not command.moves or not value(command.guard):
        return None
    if any(not low <= value(term) <= high for term, low, high in command.fits):
        return None
    return {**codes, **{name: value(term) for name, term in command.updates.items()}}
