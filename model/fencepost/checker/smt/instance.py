"""Whether a move is possible at all, asked of a small finite instance.

A proof about moves that can never happen says nothing, so each action needs one state in which the invariants
and the guard of one of its moves hold together. A state of an instance is such a state, and quickly found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fencepost.checker.smt.finite import Cells
from fencepost.checker.smt.obligations import Move
from fencepost.checker.smt.solver import SAT
from fencepost.model import terms as t
from fencepost.model.domains import LeafDomain, Sort
from fencepost.model.ground import Cell, Grounder
from fencepost.model.protocol import Protocol, Scope

ELEMENTS, HIGHEST = 2, 3
"""The size of each sort and the highest value of each counter: two of each, and versions to tell apart."""


class Instance:
    """The states of a small instance of a protocol in which the invariants hold, and its moves from there.

    `timeout_s` bounds each question, in seconds; no answer counts as no.
    """

    def __init__(
        self,
        protocol: Protocol,
        moves: Iterable[Move],
        invariants: Iterable[t.Term],
        *,
        off: Iterable[str] = (),
        timeout_s: float = 1.0,
    ) -> None:
        sorts = protocol.sorts()
        scope = Scope(
            "instance",
            {name: ELEMENTS for name, domain in sorts.items() if isinstance(domain, Sort)},
            {name: HIGHEST for name, domain in sorts.items() if not isinstance(domain, Sort)},
            frozenset(protocol.switches) - frozenset(off),
        )
        grounder = Grounder(protocol, scope)
        known = [grounder.boolean(term) for term in invariants]
        chosen: dict[t.Term, Cell] = {}
        guards: dict[str, list[t.Term]] = {}
        for move in moves:
            for parameter in move.parameters:
                domain = parameter.domain
                assert isinstance(domain, LeafDomain)  # noqa: S101
                low, high = scope.limits(domain)
                chosen[parameter] = Cell(f"chosen {parameter.payload}", "", "", domain, low, high)
            values = {parameter: chosen[parameter].term for parameter in move.parameters}
            guards[move.label] = [grounder.boolean(term, values) for term in move.guard]
        asked = [*known, *(term for guard in guards.values() for term in guard)]
        self.cells = Cells([*grounder.cells.values(), *chosen.values()], asked)
        self.guards = guards
        self.solver: Any = self.cells.solver(timeout_s=timeout_s, seed=0)
        self.solver.add([*self.cells.ranges(), *map(self.cells.formula, known)])

    def allows(self, move: Move) -> bool:
        """Whether the invariants and the guard of a move hold together in some state."""
        self.solver.push()
        self.solver.add([self.cells.formula(term) for term in self.guards[move.label]])
        answer = str(self.solver.check())
        self.solver.pop()
        return answer == SAT
