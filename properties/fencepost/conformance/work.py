"""What `verify_statements` runs: the starts, and at each the pairs of calls and the single calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fencepost.checker.subject import UsageError
from fencepost.conformance.chosen_goals import goals_of
from fencepost.conformance.classes import Call, Classes, Pair, Start
from fencepost.conformance.moves import Move
from fencepost.conformance.oracle import Oracle
from fencepost.conformance.plans import Plan
from fencepost.conformance.vocabulary import ASSUMES
from fencepost.model import Scope

MOST_MOVES = 6


@dataclass(frozen=True, slots=True)
class Work:
    """A start, with the pairs and the single calls that differ from those of nearer starts."""

    start: Start
    pairs: tuple[Pair, ...]
    alone: tuple[Call, ...]


_WORK: dict[Any, tuple[Any, tuple[Work, ...]]] = {}
"""The protocol stands beside its work so that nothing else gets its identity."""


def scope_of_starts(plan: Plan) -> Scope:
    """The scope in which starts are looked for."""
    scope = plan.reach.starts
    if scope is None:
        raise UsageError(
            f"{plan.oracle.protocol.name} is not looked at statement by statement; leave out --statements"
        )
    return scope.but(switches=scope.switches & plan.oracle.scope.switches)


def starts_in_words(plan: Plan) -> str:
    """How far starts go, and what is taken for granted: for the bound of what was run."""
    scope = scope_of_starts(plan)
    sizes = ", ".join(f"{n} {kind}s" for kind, n in scope.sizes.items())
    bounds = ", ".join(f"{name} ≤ {n}" for name, n in scope.bounds.items())
    return f"starts at most {MOST_MOVES} moves away with {sizes}, {bounds}; {ASSUMES}"


def work_of(plan: Plan, *, every_pair: bool) -> tuple[Work, ...]:
    """What is run, nearest starts first; found once in a process.

    Of pairs whose calls do the same, alone and after one another, in time and too late, one is run, from the
    nearest start; with `every_pair`, each pair of each class.
    """
    protocol, scope = plan.oracle.protocol, scope_of_starts(plan)
    key = (id(protocol), tuple(plan.performances), scope.switches, every_pair)
    if key not in _WORK:
        small = Plan(plan.adapter, Oracle(protocol, scope))
        classes = Classes(small, MOST_MOVES)
        _WORK[key] = protocol, tuple(_work(classes, every_pair=every_pair))
    return _WORK[key][1]


def _work(classes: Classes, *, every_pair: bool) -> Iterator[Work]:
    seen: set[Any] = set()
    for start in classes.starts():
        pairs, alone = [], []
        for kind, pair in classes.pairs(start):
            if every_pair or kind not in seen:
                seen.add(kind)
                pairs.append(pair)
        for call in classes.calls(start.state):
            kind = classes.call_kind(start.state, call)
            if kind not in seen:
                seen.add(kind)
                alone.append(call)
        if pairs or alone:
            yield Work(start, tuple(pairs), tuple(alone))


def to_witnesses(plan: Plan) -> list[Work]:
    """The shortest way to each witness in whole calls, with nothing to run at its end.

    So that what a claim speaks of is seen to happen, also where it lies further away than the starts.
    """
    names = {w.name for w in plan.witnesses}
    found = []
    for goal in goals_of(plan):
        if goal.name in names:
            moves, state = [], plan.oracle.runner.initial()
            for action, codes in goal.steps:
                moves.append(Move(action, codes))
                state = plan.oracle.moves(state)[action][codes].state
            found.append(Work(Start(tuple(moves), state), (), ()))
    return found
