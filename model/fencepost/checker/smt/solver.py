"""Asking Z3 whether formulas can hold together, within limits of time and with a fixed seed.

`unsat` is the only answer that proves anything. Quantifiers make Z3 give up or loop where another setting
decides, so a question is asked in a few ways, shortest first, until one answers or the time is over.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fencepost.checker.smt.translate import Formula, Translator

SAT, UNSAT, UNKNOWN = "sat", "unsat", "unknown"

OUT_OF_BUDGET: Final = "out of budget"
"""The way in which a question was asked that the end of the budget left without an answer."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ask: Z3's options, and the share of the time limit that it may use.

    A `light` way leaves out the assumptions that are likely to be a burden, and names those that its
    ``unsat`` rests on; its other answers count for nothing. A way that is `alone` leaves out all but one. A
    `supplied` way takes it that ids never run out.
    """

    name: str
    share: float
    options: Mapping[str, Any]
    light: bool = False
    alone: bool = False
    supplied: bool = False


_MATCHING: Final[Mapping[str, Any]] = {"auto_config": False, "smt.mbqi": False}
# Matching shows almost everything that holds, in milliseconds, and ends soon where it shows nothing; looking
# for models of the quantifiers finds what does not hold, and some proofs that matching has no patterns for.
# What an action has little to do with follows from itself, whatever else holds: that is shown soonest.
WAYS: Final = (
    Way("from itself", 0.05, _MATCHING, light=True, alone=True),
    Way("matching", 0.15, _MATCHING, light=True),
    Way("matching with ids left", 0.15, _MATCHING, light=True, supplied=True),
    Way("models", 0.4, {"auto_config": False}),
    Way("macros", 0.3, {"smt.macro_finder": True, "smt.arith.solver": 2}),
)
BRIEFLY: Final = (WAYS[1], Way("models", 0.1, {"auto_config": False}))
"""For a claim that is lost already: the rest of its obligations is only for the report."""
MODELS: Final = WAYS[3:]
"""For a question that is hoped to be answered ``sat``."""


class Deadline:
    """A budget of seconds for many questions."""

    def __init__(self, budget_s: float | None) -> None:
        self._end = None if budget_s is None else time.monotonic() + budget_s

    @property
    def left_s(self) -> float:
        """How many seconds are left, at least zero."""
        return float("inf") if self._end is None else max(0.0, self._end - time.monotonic())


@dataclass(frozen=True, slots=True)
class Answer:
    """What the solver said: `status`, in how many seconds and in which way it was asked.

    `used` names the assumptions that an ``unsat`` rests on; `supplied` tells whether it takes it that ids
    never run out.
    """

    status: str
    seconds: float
    way: str
    used: frozenset[str] = frozenset()
    supplied: bool = False


class Asker:
    """Asks questions about formulas of one translator."""

    def __init__(self, translator: Translator, deadline: Deadline, *, timeout_s: float, seed: int) -> None:
        self.translator = translator
        self.deadline = deadline
        self.timeout_s = timeout_s
        self.seed = seed

    def ask(
        self,
        formulas: Iterable[Formula],
        assumed: Mapping[str, Formula] | None = None,
        *,
        itself: str = "",
        heavy: Container[str] = (),
        supply: Iterable[Formula] = (),
        ways: Iterable[Way] = WAYS,
    ) -> Answer:
        """Whether the formulas can hold together with the assumptions: ``unsat``, ``sat`` or ``unknown``.

        `heavy` names the assumptions that a light way leaves out, and `itself` the one that is left alone;
        `supply` says that ids never run out.
        """
        asserted, named, supplies = list(formulas), dict(assumed or {}), list(supply)
        spared = {name: formula for name, formula in named.items() if name not in heavy}
        only = {name: formula for name, formula in named.items() if name == itself}
        started = time.monotonic()
        how = ""
        for way in ways:
            if (way.supplied and not supplies) or (way.alone and not only):
                continue
            limit_s, how = min(self.timeout_s * way.share, self.deadline.left_s), way.name
            if limit_s <= 0:
                return Answer(UNKNOWN, time.monotonic() - started, OUT_OF_BUDGET)
            given = [*asserted, *supplies] if way.supplied else asserted
            assumptions = only if way.alone else spared if way.light else named
            answer = self._ask(given, assumptions, way, limit_s)
            if answer.status == UNSAT and not way.light:
                answer = self._traced(given, (spared, named), way, limit_s) or answer
            if answer.status == UNSAT or (answer.status == SAT and not way.light):
                return replace(answer, seconds=time.monotonic() - started)
        how = OUT_OF_BUDGET if self.deadline.left_s <= 0 else how
        return Answer(UNKNOWN, time.monotonic() - started, how)

    def _traced(
        self, formulas: list[Formula], choices: tuple[dict[str, Formula], ...], way: Way, limit_s: float
    ) -> Answer | None:
        """The same ``unsat`` again, from the fewest assumptions, with the names of those that it rests on."""
        for assumed in choices:
            left_s = min(limit_s, self.deadline.left_s)
            answer = self._ask(formulas, assumed, replace(way, light=True), left_s)
            if answer.status == UNSAT:
                return answer
        return None

    def _ask(self, formulas: list[Formula], assumed: dict[str, Formula], way: Way, limit_s: float) -> Answer:
        z3 = self.translator.z3
        solver = z3.Solver(ctx=self.translator.context)
        solver.set("timeout", max(1, int(limit_s * 1000)))
        for name, value in {"smt.random_seed": self.seed, **way.options}.items():
            solver.set(name, value)
        solver.add(formulas)
        names = {f"assumed {i}": name for i, name in enumerate(assumed)}
        for literal, formula in zip(names, assumed.values(), strict=True):
            if way.light:
                solver.assert_and_track(formula, z3.Bool(literal, self.translator.context))
            else:
                solver.add(formula)
        status = str(solver.check())
        if status != UNSAT:
            return Answer(status, 0.0, way.name)
        used = [names[c.decl().name()] for c in solver.unsat_core()] if way.light else list(assumed)
        return Answer(status, 0.0, way.name, frozenset(used), way.supplied)
