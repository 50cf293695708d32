"""Bounded model checking: a shortest run from the first state that breaks a claim, if there is one within a depth.

Longer and longer runs are asked for, so the first one found is a shortest. It agrees with breadth-first search on
small models, and goes where the states are too many to list. What may not live here: claims for all sizes.
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

    `status`: ``broken`` (then `claim`, `commands` (numbers in the model's list) and `states`, one more than commands,
    give the run), ``none`` (no run of up to `depth` steps breaks a claim) or ``unknown`` (out of time; runs of up to
    `depth` steps break none). `ended` says that no run is longer than `depth` steps.
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

    def __init__(self, model: GroundModel, claims: Mapping[str, t.Term], steps: Mapping[str, Sequence[t.Term]]) -> None:
        asked = [*claims.values(), *(term for each in steps.values() for term in each)]
        self.steps = Steps(model, asked)
        self.cells = self.steps.cells
        self.relation = self.steps.relation()
        self.claims = {name: self.cells.formula(claim) for name, claim in claims.items()}
        self.step_claims = {name: self.steps.broken(each) for name, each in steps.items()}

    def at(self, formula: Formula, number: int) -> Formula:
        """A formula about a step, said of the step from state `number`."""
        z3, cells = self.cells.z3, self.cells
        pairs = []
        for cell in self.steps.model.cells:
            for suffix, place in (("", number), (PRIME, number + 1)):
                old = cells.cell(cell, suffix)
                pairs.append((old, z3.Const(f"{cell.name} @{place}", old.sort())))
        for old in self.steps.taken:
            pairs.append((old, z3.Bool(f"{old.decl().name()} @{number}", cells.context)))
        return z3.substitute(formula, *pairs)

    def break_at(self, number: int) -> dict[str, Formula]:
        """Each claim's being broken by the run that ends in state `number`."""
        found = {name: self.cells.negation(self.at(formula, number)) for name, formula in self.claims.items()}
        if number:
            found.update((name, self.at(formula, number - 1)) for name, formula in self.step_claims.items())
        return found

    def run(self, solution: Any, length: int) -> tuple[tuple[int, ...], tuple[Codes, ...]]:
        """The commands and states of a run that the solver found."""
        cells = self.cells
        states = tuple(
            cells.codes(solution, at=lambda formula, number=n: self.at(formula, number))  # type: ignore[misc]
            for n in range(length + 1)
        )
        commands = tuple(
            next(
                index
                for taken, (index, _) in zip(self.steps.taken, self.steps.moves, strict=True)
                if cells.code(solution, self.at(taken, n))
            )
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

    `claims` are terms over cells (`GroundModel.state_claim`), `steps` one term per command (`GroundModel.step_claim`).
    `budget_s` bounds the whole search, in seconds.
    """
    started, deadline = time.monotonic(), Deadline(budget_s)
    unrolling = _Unrolling(model, claims, steps or {})
    cells = unrolling.cells
    solver = cells.solver(timeout_s=budget_s, seed=seed)
    solver.add([unrolling.at(formula, 0) for formula in unrolling.steps.initial()])

    def ask(*assumed: Formula) -> str:
        if deadline.left_s <= 0:
            return UNKNOWN
        solver.set("timeout", max(1, int(deadline.left_s * 1000)))
        return str(solver.check(*assumed))

    def result(status: str, length: int, **more: Any) -> SearchResult:
        return SearchResult(status, length, time.monotonic() - started, **more)

    for length in range(depth + 1):
        if length:
            solver.add([unrolling.at(formula, length - 1) for formula in unrolling.relation])
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
