"""Bounded model checking: a shortest run from the first state that breaks a claim, up to a depth.

Longer and longer runs are asked for, so the first one found is a shortest. It agrees with breadth-first
search on small models, and goes where the states are too many to list. What may not live here: claims for all
sizes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.checker.smt.finite import Codes, Steps
from fencepost.checker.smt.solver import SAT, UNKNOWN, UNSAT, Deadline
from fencepost.checker.smt.translate import Formula
from fencepost.model import terms as t
from fencepost.model.ground import GroundModel
from fencepost.model.trace import PRIME

BROKEN, NONE = "broken", "none"


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What the search found.

    `status`: ``broken`` (then `claim`, `commands` (numbers in the model's list) and `states`, one more than
    commands, give the run), ``none`` (no run of up to `depth` steps breaks a claim) or ``unknown`` (out of
    time; runs of up to `depth` steps break none). `ended` says that no run is longer than `depth` steps.
    """

    status: str
    depth: int
    seconds: float
    claim: str = ""
    commands: tuple[int, ...] = ()
    states: tuple[Codes, ...] = ()
    ended: bool = False


class _Unrolling:
    """The steps of a run as formulas about numbered states."""

    def __init__(
        self, model: GroundModel, claims: Mapping[str, t.Term], steps: Mapping[str, Sequence[t.Term]]
    ) -> None:
        asked = [*claims.values(), *(term for each in steps.values() for term in each)]
        self.steps = Steps(model, asked)
        self.cells = self.steps.cells
        self.relation = self.cells.all_of(self.steps.relation())
        self._pairs: dict[int, list[tuple[Formula, Formula]]] = {}
        self.claims = {name: self.cells.formula(claim) for name, claim in claims.items()}
        self.step_claims = {name: self.steps.broken(each) for name, each in steps.items()}

    def at(self, formula: Formula, number: int) -> Formula:
        """A formula about a step, said of the step from state `number`."""
        pairs = self._pairs.get(number)
        if pairs is None:
            pairs = self._pairs[number] = self._renaming(number)
        return self.cells.z3.substitute(formula, *pairs)

    def _renaming(self, number: int) -> list[tuple[Formula, Formula]]:
        cells, model = self.cells, self.steps.model
        pairs = [
            (cells.cell(cell, suffix), cells.cell(cell, f" @{place}"))
            for cell in model.cells
            for suffix, place in (("", number), (PRIME, number + 1))
        ]
        return pairs + [
            (taken, self.taken(i, number))
            for taken, (i, _) in zip(self.steps.taken, self.steps.moves, strict=True)
        ]

    def taken(self, index: int, number: int) -> Formula:
        """That the step from state `number` is the command `index`."""
        return self.cells.switch(f"taken {index} @{number}")

    def break_at(self, number: int) -> dict[str, Formula]:
        """Each claim's being broken by the run that ends in state `number`."""
        found = {name: self.cells.negation(self.at(formula, number)) for name, formula in self.claims.items()}
        if number:
            found.update((name, self.at(formula, number - 1)) for name, formula in self.step_claims.items())
        return found

    def run(self, solution: Any, length: int) -> tuple[tuple[int, ...], tuple[Codes, ...]]:
        """The commands and states of a run that the solver found."""
        cells = self.cells
        states = tuple(cells.codes(solution, f" @{n}") for n in range(length + 1))
        commands = tuple(
            next(i for i, _ in self.steps.moves if cells.code(solution, self.taken(i, n)))
            for n in range(length)
        )
        return commands, states


def bmc(
    model: GroundModel,
    claims: Mapping[str, t.Term],
    depth: int,
    *,
    steps: Mapping[str, Sequence[t.Term]] | None = None,
    budget_s: float = 60.0,
    seed: int = 0,
) -> SearchResult:
    """A shortest run of at most `depth` steps that breaks a claim, or that there is none.

    `claims` are terms over cells (`GroundModel.state_claim`), `steps` one term per command
    (`GroundModel.step_claim`). `budget_s` bounds the whole search, in seconds.
    """
    started, deadline = time.monotonic(), Deadline(budget_s)
    unrolling = _Unrolling(model, claims, steps or {})
    cells = unrolling.cells
    solver = cells.solver(timeout_s=budget_s, seed=seed)
    solver.add(unrolling.at(cells.all_of(unrolling.steps.initial()), 0))

    def ask(*assumed: Formula) -> str:
        if deadline.left_s <= 0:
            return UNKNOWN
        solver.set("timeout", max(1, int(deadline.left_s * 1000)))
        return str(solver.check(*assumed))

    def result(status: str, length: int, **more: Any) -> SearchResult:
        return SearchResult(status, length, time.monotonic() - started, **more)

    for length in range(depth + 1):
        if length:
            solver.add(unrolling.at(unrolling.relation, length - 1))
        broken = unrolling.break_at(length)
        asked = cells.switch(f"broken @{length}")
        solver.add(cells.z3.Implies(asked, cells.any_of(broken.values()), cells.context))
        answer = ask(asked)
        if answer == SAT:
            solution = solver.model()
            commands, states = unrolling.run(solution, length)
            claim = next(name for name, formula in broken.items() if cells.code(solution, formula))
            return result(BROKEN, length, claim=claim, commands=commands, states=states)
        if answer != UNSAT:
            return result(UNKNOWN, length - 1)
        if length and ask() == UNSAT:
            return result(NONE, length - 1, ended=True)
    return result(NONE, depth)
