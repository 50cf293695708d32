"""Breadth-first search on the run reading: slow, short, and what the compiled search must agree with."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from fencepost.model import Protocol, Scope
from fencepost.model.run import Rest, Runner, Transition
from fencepost.properties import Claim, Kind


@dataclass(slots=True)
class PlainResult:
    """What the plain search found; `depth` counts breadth-first levels, the first state's included."""

    states: int = 0
    transitions: int = 0
    cut: int = 0
    depth: int = 0
    complete: bool = True
    seconds: float = 0.0
    hits: dict[str, list[tuple[str, tuple[int, ...]]]] = field(default_factory=dict)
    """By claim: the steps of a shortest run to its first violation, or to where a witness is true."""


def search(
    protocol: Protocol,
    scope: Scope,
    claims: Iterable[Claim] = (),
    *,
    max_states: int | None = None,
    budget_s: float | None = None,
) -> PlainResult:
    """Look at every state; the search is incomplete when `max_states` or `budget_s` (seconds) ended it."""
    started = time.monotonic()
    runner = Runner(protocol, scope)
    result = PlainResult()
    open_claims = {c.name: c for c in claims}
    parents: dict[Rest, tuple[Rest, Transition] | None] = {runner.initial(): None}
    level = list(parents)
    for state in level:
        _look(runner, open_claims, result, parents, state, None)
    while level:
        result.depth += 1
        following: list[Rest] = []
        for state in level:
            if (max_states is not None and len(parents) >= max_states) or (
                budget_s is not None and time.monotonic() - started > budget_s
            ):
                result.complete = False
                following.clear()
                break
            for action, arguments in runner.choices():
                made = runner.attempt(state, action, arguments)
                if made == "cut":
                    result.cut += 1
                if not isinstance(made, Transition):
                    continue
                result.transitions += 1
                _look(runner, open_claims, result, parents, state, made)
                if made.state not in parents:
                    parents[made.state] = (state, made)
                    following.append(made.state)
                    _look(runner, open_claims, result, parents, made.state, None)
        level = following
    result.states = len(parents)
    result.seconds = time.monotonic() - started
    return result


def _look(
    runner: Runner,
    open_claims: dict[str, Claim],
    result: PlainResult,
    parents: dict[Rest, tuple[Rest, Transition] | None],
    state: Rest,
    step: Transition | None,
) -> None:
    for claim in list(open_claims.values()):
        if claim.over_steps is (step is None):
            continue
        true = (
            runner.holds(claim.predicate, state)
            if step is None
            else runner.holds_step(claim.predicate, state, step)
        )
        if true is (claim.kind is Kind.SOMETIMES):
            del open_claims[claim.name]
            run = _run_to(parents, state)
            result.hits[claim.name] = run if step is None else [*run, (step.action.name, step.codes)]


def _run_to(
    parents: dict[Rest, tuple[Rest, Transition] | None], state: Rest
) -> list[tuple[str, tuple[int, ...]]]:
    steps = []
    link = parents[state]
    while link is not None:
        before, made = link
        steps.append((made.action.name, made.codes))
        link = parents[before]
    return steps[::-1]
