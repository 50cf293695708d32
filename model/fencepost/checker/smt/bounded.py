"""Induction on a finite instance: counterexamples to it, and claims shown for the sizes of one scope.

Where a proof for all sizes fails, a finite instance says why: a state that satisfies all hypotheses, a move,
and the state after it that breaks the claim. The state need not be reachable; then an invariant is missing.
What is shown here holds for the scope only. What may not live here: runs from the first state (`search.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.checker.smt.finite import Codes, Steps, holds_at
from fencepost.checker.smt.solver import SAT, UNKNOWN, UNSAT, Deadline
from fencepost.checker.smt.translate import Formula
from fencepost.model import terms as t
from fencepost.model.ground import GroundModel
from fencepost.model.trace import PRIME

START = -1
"""In place of a command's number: the first state itself breaks the claim."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A step that breaks a claim: the state before, the number of the command, the state after.

    With `command` = `START` both states are the first state.
    """

    claim: str
    before: Codes
    command: int
    after: Codes


@dataclass(frozen=True, slots=True)
class InductionResult:
    """An answer: ``unsat`` (no such step within the scope), ``sat`` with the step, or ``unknown``."""

    status: str
    counterexample: Counterexample | None
    seconds: float


Goal = t.Term | Sequence[t.Term]
"""A claim over cells: one term about a state, or one term per command about a step."""


class _Instance:
    """One step of a finite instance, loaded once into a solver that then answers many questions."""

    def __init__(self, model: GroundModel, goals: Mapping[str, Goal], *, seed: int, integers: bool) -> None:
        asked: list[t.Term] = []
        for goal in goals.values():
            asked += [goal] if isinstance(goal, t.Term) else list(goal)
        self.goals = goals
        self.steps = Steps(model, asked, integers=integers)
        self.cells = self.steps.cells
        self.solver = self.cells.solver(timeout_s=1.0, seed=seed)
        self.solver.add(self.cells.ranges() + self.steps.relation())
        self.assumed: dict[str, Formula] = {}
        self.broken: dict[str, Formula] = {}
        for name, goal in goals.items():
            broken = self.cells.switch(f"broken {name}")
            if isinstance(goal, t.Term):
                self.assumed[name] = self.cells.switch(f"assumed {name}")
                self.implies(self.assumed[name], self.cells.formula(goal))
                self.implies(broken, self.cells.negation(self.cells.formula(self.steps.primed(goal))))
            else:
                self.implies(broken, self.steps.broken(goal))
            self.broken[name] = broken

    def implies(self, switch: Formula, formula: Formula) -> None:
        self.solver.add(self.cells.z3.Implies(switch, formula, self.cells.context))

    def ask(self, hypotheses: Iterable[str], name: str, limit_s: float) -> InductionResult:
        started = time.monotonic()
        if limit_s <= 0:
            return InductionResult(UNKNOWN, None, 0.0)
        self.solver.set("timeout", max(1, int(min(limit_s, 4e6) * 1000)))
        assumed = [self.assumed[h] for h in hypotheses]
        status = str(self.solver.check(*assumed, self.broken[name]))
        found = self.counterexample(name) if status == SAT else None
        return InductionResult(status, found, time.monotonic() - started)

    def counterexample(self, name: str) -> Counterexample:
        solution, cells = self.solver.model(), self.cells
        command = next(
            index
            for taken, (index, _) in zip(self.steps.taken, self.steps.moves, strict=True)
            if cells.code(solution, taken)
        )
        return Counterexample(name, cells.codes(solution), command, cells.codes(solution, PRIME))


def counterexample_to_induction(
    model: GroundModel,
    hypotheses: Iterable[t.Term],
    goal: Goal,
    *,
    timeout_s: float = 10.0,
    seed: int = 0,
    integers: bool = False,
) -> InductionResult:
    """A step within the scope, from a state that satisfies the hypotheses, that breaks `goal`.

    `goal` is a claim about states (`GroundModel.state_claim`; it is assumed before the step only if it is
    also among the hypotheses) or about steps (`GroundModel.step_claim`). `integers` asks with integers
    instead of bit vectors.
    """
    named: dict[str, Goal] = {f"hypothesis {i}": term for i, term in enumerate(hypotheses)}
    instance = _Instance(model, {**named, "goal": goal}, seed=seed, integers=integers)
    return instance.ask(named, "goal", timeout_s)


@dataclass(frozen=True, slots=True)
class BoundedResult:
    """What induction on one finite instance showed.

    `shown` has every claim, step claim and invariant: true means that it holds in every reachable state or
    step within the scope. For the others `counterexamples` has a step that breaks it, unless time ran out
    (`unknown`).
    """

    shown: Mapping[str, bool]
    counterexamples: Mapping[str, Counterexample]
    unknown: tuple[str, ...]
    seconds: float


def induct(
    model: GroundModel,
    claims: Mapping[str, t.Term],
    steps: Mapping[str, Sequence[t.Term]],
    supporting: Mapping[str, t.Term],
    *,
    timeout_s: float = 10.0,
    budget_s: float = 60.0,
    seed: int = 0,
    integers: bool = False,
) -> BoundedResult:
    """Show claims by induction within the scope of `model`: BOUNDED by it, never a proof for all sizes.

    What fails is dropped from the hypotheses and the rest asked again, until what is left carries itself.
    `timeout_s` bounds one question and `budget_s` all of them, in seconds.
    """
    started, deadline = time.monotonic(), Deadline(budget_s)
    states = {**claims, **supporting}
    goals: dict[str, Goal] = {**states, **steps}
    found: dict[str, Counterexample] = {}
    for name, term in states.items():
        if not holds_at(term, model.cells, model.initial):
            found[name] = Counterexample(name, model.initial, START, model.initial)
    unknown: list[str] = []
    alive = [name for name in goals if name not in found]
    instance = _Instance(model, goals, seed=seed, integers=integers)
    settled: set[str] = set()
    while len(settled) < len(alive):
        settled = set()
        for name in list(alive):
            hypotheses = [h for h in alive if h in states]
            answer = instance.ask(hypotheses, name, min(timeout_s, deadline.left_s))
            if answer.status == UNSAT:
                settled.add(name)
                continue
            alive.remove(name)
            settled = set() if name in states else settled
            if answer.counterexample is None:
                unknown.append(name)
            else:
                found[name] = answer.counterexample
    shown = {name: name in alive for name in goals}
    return BoundedResult(shown, found, tuple(unknown), time.monotonic() - started)


def leaves_its_field(
    model: GroundModel, *, hypotheses: Iterable[t.Term] = (), timeout_s: float = 10.0, seed: int = 0
) -> InductionResult:
    """A move that writes a number which its cell cannot hold, although nothing cuts it.

    ``unsat`` shows that the fields of the compiled reading never overflow: from any values within the scope,
    or from those that satisfy the hypotheses.
    """
    started = time.monotonic()
    known = list(hypotheses)
    steps = Steps(model, known)
    cells = steps.cells
    solver = cells.solver(timeout_s=timeout_s, seed=seed)
    solver.add([*cells.ranges(), *steps.relation(), *map(cells.formula, known)])
    solver.add(cells.negation(cells.all_of(cells.ranges(PRIME))))
    status = str(solver.check())
    found = None
    if status == SAT:
        solution: Any = solver.model()
        command = next(
            index
            for taken, (index, _) in zip(steps.taken, steps.moves, strict=True)
            if cells.code(solution, taken)
        )
        found = Counterexample("field", cells.codes(solution), command, cells.codes(solution, PRIME))
    return InductionResult(status, found, time.monotonic() - started)
