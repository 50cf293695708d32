"""The finite reading as formulas: cells as bit vectors, and one step as a relation between two states.

Every number has as many bits as the largest value that any term can take, so nothing wraps around; integers
can be used instead, and a test compares the two. What may not live here: what is asked about the relation
(`bounded.py`, `search.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fencepost.checker.smt.obligations import subterms
from fencepost.checker.smt.translate import Formula
from fencepost.model import terms as t
from fencepost.model.domains import Boolean
from fencepost.model.errors import ModelError
from fencepost.model.ground import Cell, GroundCommand, GroundModel
from fencepost.model.trace import PRIME

Codes = Mapping[str, int]
"""A state: the code of each cell by name."""


class Cells:
    """Turns ground terms over the cells of a model into formulas, each distinct term once.

    `terms` are all terms that will be asked about: they decide how many bits a number takes.
    """

    def __init__(self, cells: Iterable[Cell], terms: Iterable[t.Term], *, integers: bool = False) -> None:
        import z3

        self.z3: Any = z3
        self.context: Any = z3.Context()
        self.cells = {c.name: c for c in cells}
        self._ranges: dict[t.Term, tuple[int, int]] = {}
        self._made: dict[t.Term, Formula] = {}
        self._placed: dict[tuple[str, str], Formula] = {}
        ends = [end for c in self.cells.values() for end in (c.low, c.high)]
        for term in subterms(terms):
            if not isinstance(term.domain, Boolean):
                ends += self._range(term)
        bits = 1 + max(max(ends, default=0), -min(ends, default=0) - 1, 0).bit_length()
        self._sort: Any = z3.IntSort(self.context) if integers else z3.BitVecSort(bits, self.context)
        self._value: Callable[[int], Formula] = (
            (lambda n: z3.IntVal(n, self.context))
            if integers
            else (lambda n: z3.BitVecVal(n, bits, self.context))
        )

    def solver(self, *, timeout_s: float, seed: int) -> Any:
        """A solver for these formulas, incremental, with a limit of time for each question."""
        logic = "QF_LIA" if self._sort.kind() == self.z3.Z3_INT_SORT else "QF_BV"
        solver = self.z3.SolverFor(logic, ctx=self.context)
        solver.set("timeout", max(1, int(min(timeout_s, 4e6) * 1000)))
        solver.set("random_seed", seed)
        return solver

    def formula(self, term: t.Term) -> Formula:
        """The formula of a ground term."""
        found = self._made.get(term)
        if found is None:
            builder = _BUILDERS.get(term.op)
            if builder is None:
                raise ModelError(
                    f"{term.op} in {term!r} is not over cells", instead="ground it in a scope first"
                )
            found = self._made[term] = builder(self, term, [self.formula(a) for a in term.args])
        return found

    def cell(self, cell: Cell, suffix: str = "") -> Formula:
        """The value of a cell, in the state that `suffix` names."""
        found = self._placed.get((cell.name, suffix))
        if found is None:
            sort = self.z3.BoolSort(self.context) if isinstance(cell.domain, Boolean) else self._sort
            found = self._placed[cell.name, suffix] = self.z3.Const(f"{cell.name}{suffix}", sort)
        return found

    def within(self, formula: Formula, low: int, high: int) -> list[Formula]:
        """That a number lies between two ends."""
        return [self._value(low) <= formula, formula <= self._value(high)]

    def ranges(self, suffix: str = "") -> list[Formula]:
        """That every cell of a state lies within the scope."""
        found: list[Formula] = []
        for cell in self.cells.values():
            if not isinstance(cell.domain, Boolean):
                found += self.within(self.cell(cell, suffix), cell.low, cell.high)
        return found

    def codes(self, solution: Any, suffix: str = "") -> dict[str, int]:
        """The state that a solution gives."""
        return {name: self.code(solution, self.cell(cell, suffix)) for name, cell in self.cells.items()}

    def code(self, solution: Any, formula: Formula) -> int:
        """The value of a formula in a solution, as a code."""
        value = solution.eval(formula, model_completion=True)
        if self.z3.is_bool(value):
            return int(self.z3.is_true(value))
        return int(value.as_signed_long() if self.z3.is_bv_value(value) else value.as_long())

    def all_of(self, formulas: Iterable[Formula]) -> Formula:
        """Conjunction."""
        return self.z3.And(list(formulas), self.context)

    def any_of(self, formulas: Iterable[Formula]) -> Formula:
        """Disjunction."""
        return self.z3.Or(list(formulas), self.context)

    def negation(self, formula: Formula) -> Formula:
        """Negation."""
        return self.z3.Not(formula, self.context)

    def switch(self, name: str) -> Formula:
        """A truth value that is none of the cells."""
        return self.z3.Bool(name, self.context)

    def choice(self, condition: Formula, yes: Formula, no: Formula) -> Formula:
        """`yes` where `condition` holds, else `no`."""
        return self.z3.If(condition, yes, no, self.context)

    def _range(self, term: t.Term) -> tuple[int, int]:
        found = self._ranges.get(term)
        if found is None:
            found = self._ranges[term] = self._range_of(term)
        return found

    def _range_of(self, term: t.Term) -> tuple[int, int]:
        if term.op == "const":
            return int(term.payload or 0), int(term.payload or 0)
        if term.op == "var":
            cell = self.cells[str(term.payload).removesuffix(PRIME)]
            return cell.low, cell.high
        if term.op == "neg":
            low, high = self._range(term.args[0])
            return -high, -low
        (low, high), (other_low, other_high) = self._range(term.args[-2]), self._range(term.args[-1])
        if term.op == "add":
            return low + other_low, high + other_high
        return min(low, other_low), max(high, other_high)

    # -- one operation each

    def _const(self, term: t.Term, _args: list[Formula]) -> Formula:
        if isinstance(term.domain, Boolean):
            return self.z3.BoolVal(bool(term.payload), self.context)
        return self._value(int(term.payload or 0))

    def _var(self, term: t.Term, _args: list[Formula]) -> Formula:
        name = str(term.payload)
        cell = self.cells.get(name.removesuffix(PRIME))
        if cell is None:
            raise ModelError(
                f"{name!r} is not a cell", instead="ask about cells, or about a step through `after`"
            )
        return self.cell(cell, name[len(cell.name) :])

    def _and(self, _term: t.Term, args: list[Formula]) -> Formula:
        return self.all_of(args)

    def _or(self, _term: t.Term, args: list[Formula]) -> Formula:
        return self.any_of(args)

    def _not(self, _term: t.Term, args: list[Formula]) -> Formula:
        return self.negation(args[0])

    def _eq(self, _term: t.Term, args: list[Formula]) -> Formula:
        return args[0] == args[1]

    def _le(self, _term: t.Term, args: list[Formula]) -> Formula:
        return args[0] <= args[1]

    def _add(self, _term: t.Term, args: list[Formula]) -> Formula:
        return args[0] + args[1]

    def _neg(self, _term: t.Term, args: list[Formula]) -> Formula:
        return -args[0]

    def _ite(self, _term: t.Term, args: list[Formula]) -> Formula:
        return self.choice(*args)


_BUILDERS: Mapping[str, Callable[[Cells, t.Term, list[Formula]], Formula]] = {
    "const": Cells._const,  # noqa: SLF001
    "var": Cells._var,  # noqa: SLF001
    "and": Cells._and,  # noqa: SLF001
    "or": Cells._or,  # noqa: SLF001
    "not": Cells._not,  # noqa: SLF001
    "eq": Cells._eq,  # noqa: SLF001
    "le": Cells._le,  # noqa: SLF001
    "add": Cells._add,  # noqa: SLF001
    "neg": Cells._neg,  # noqa: SLF001
    "ite": Cells._ite,  # noqa: SLF001
}


class Steps:
    """The moves of a model as one relation: a choice of command, the state before, the state after.

    Commands that lead nowhere (cuts and faults) take no part; a move whose numbers do not fit the scope is
    cut.
    """

    def __init__(self, model: GroundModel, terms: Iterable[t.Term] = (), *, integers: bool = False) -> None:
        self.model = model
        self.moves = tuple((i, c) for i, c in enumerate(model.commands) if c.moves)
        spoken = [*terms]
        for _, command in self.moves:
            spoken += [command.guard, *command.updates.values(), *(fit for fit, _, _ in command.fits)]
        self.cells = Cells(model.cells, spoken, integers=integers)
        self.taken = [self.cells.switch(f"taken {i}") for i, _ in self.moves]

    def enabled(self, command: GroundCommand) -> Formula:
        """That a command can move from the state before, within the scope."""
        cells = self.cells
        fits = [f for term, low, high in command.fits for f in cells.within(cells.formula(term), low, high)]
        return cells.all_of([cells.formula(command.guard), *fits])

    def relation(self) -> list[Formula]:
        """That exactly one command is taken, that it can move, and what it does to each cell."""
        cells, z3 = self.cells, self.cells.z3
        found = [cells.any_of(self.taken)]
        if len(self.taken) > 1:
            found.append(z3.AtMost(*self.taken, 1))
        writers: dict[str, list[tuple[Formula, t.Term]]] = {name: [] for name in cells.cells}
        for taken, (_, command) in zip(self.taken, self.moves, strict=True):
            found.append(z3.Implies(taken, self.enabled(command), cells.context))
            for name, value in command.updates.items():
                writers[name].append((taken, value))
        for name, cell in cells.cells.items():
            value = cells.cell(cell)
            for taken, new in writers[name]:
                value = cells.choice(taken, cells.formula(new), value)
            found.append(cells.cell(cell, PRIME) == value)
        return found

    def broken(self, step_claim: Sequence[t.Term]) -> Formula:
        """That the command taken breaks a claim about steps (one term per command of the model)."""
        cells = self.cells
        return cells.any_of(
            cells.all_of([taken, cells.negation(cells.formula(step_claim[i]))])
            for taken, (i, _) in zip(self.taken, self.moves, strict=True)
            if step_claim[i] is not t.TRUE
        )

    def primed(self, term: t.Term) -> t.Term:
        """A term about the state before, said of the state after."""
        return t.substitute(term, {c.term: t.variable(c.name + PRIME, c.domain) for c in self.model.cells})

    def initial(self) -> list[Formula]:
        """That the state before is the first state."""
        cells = self.cells
        return [
            cells.cell(c) == cells.formula(t.constant(self.model.initial[c.name], c.domain))
            for c in self.model.cells
        ]


def holds_at(term: t.Term, cells: Iterable[Cell], codes: Codes) -> bool:
    """The truth of a ground term in one state."""
    value = t.substitute(term, {c.term: t.constant(codes[c.name], c.domain) for c in cells})
    if not t.is_const(value):
        raise ModelError(f"{value!r} is not decided by the state", instead="ask about cells only")
    return bool(value.payload)


__all__ = ["Cells", "Codes", "Steps", "holds_at"]
