"""Asking Z3 whether formulas can hold together, within limits of time and with a fixed seed.

`unsat` is the only answer that proves anything. Quantifiers make Z3 give up or loop where another setting decides, so
a question is asked in a few ways, shortest first, until one answers or the time is over.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fencepost.checker.smt.translate import Formula, Translator

SAT, UNSAT, UNKNOWN = "sat", "unsat", "unknown"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ask: Z3's options, and the share of the time limit that it may use."""

    name: str
    share: float
    options: Mapping[str, Any]


# The first answers almost everything that holds. Matching alone ends quickly where model-based instantiation loops.
WAYS: Final = (
    Way("plain", 0.3, {}),
    Way("matching", 0.2, {"auto_config": False, "smt.mbqi": False}),
    Way("simplex", 0.5, {"smt.arith.solver": 2, "smt.random_seed": 7}),
)


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
    """What the solver said: `status`, in how many seconds, in which way it was asked, and its model if it gave one."""

    status: str
    seconds: float
    way: str
    model: Any = None


class Asker:
    """Asks questions about formulas of one translator."""

    def __init__(self, translator: Translator, deadline: Deadline, *, timeout_s: float, seed: int) -> None:
        self.translator = translator
        self.deadline = deadline
        self.timeout_s = timeout_s
        self.seed = seed

    def ask(self, formulas: Iterable[Formula], *, ways: tuple[Way, ...] = WAYS) -> Answer:
        """Whether the formulas can hold together: ``unsat``, ``sat`` or ``unknown``."""
        asserted = list(formulas)
        started = time.monotonic()
        for way in ways:
            limit_s = min(self.timeout_s * way.share, self.deadline.left_s)
            if limit_s <= 0:
                return Answer(UNKNOWN, time.monotonic() - started, "out of budget")
            answer = self._ask(asserted, way, limit_s)
            if answer is not None:
                return Answer(str(answer.check_result), time.monotonic() - started, way.name, answer.model)
        return Answer(UNKNOWN, time.monotonic() - started, ways[-1].name)

    def _ask(self, formulas: list[Formula], way: Way, limit_s: float) -> _Found | None:
        z3 = self.translator.z3
        solver = z3.Solver(ctx=self.translator.context)
        options = {"smt.random_seed": self.seed, **way.options}
        solver.set("timeout", max(1, int(limit_s * 1000)))
        for name, value in options.items():
            solver.set(name, value)
        solver.add(formulas)
        result = str(solver.check())
        if result == UNKNOWN:
            return None
        return _Found(result, solver.model() if result == SAT else None)


@dataclass(frozen=True, slots=True)
class _Found:
    check_result: str
    model: Any
