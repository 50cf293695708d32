"""Which goals the runs of one adapter go straight to: those of the model, in scopes that suit the protocol.

The search takes as long as the runs themselves where a protocol is large. What it finds for the reference is
kept beside this module, and looked for anew where anything that it depends on is another.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencepost.conformance.counterparts import counterpart_of
from fencepost.conformance.goals import Goal, goals, narrowed
from fencepost.conformance.mapping import Lease
from fencepost.conformance.plans import Plan
from fencepost.model import Protocol, Scope

KEPT = Path(__file__).with_name("goals_kept.json")
"""What was found, by what it depends on."""


def key_of(plan: Plan, scopes: Sequence[Scope]) -> str:
    """A hash of what goals depend on, beside the claims."""
    said = (
        plan.oracle.fingerprint,
        [(s.name, sorted(s.sizes.items()), sorted(s.bounds.items()), sorted(s.switches)) for s in scopes],
        sorted(plan.performances),
    )
    return hashlib.sha256(repr(said).encode()).hexdigest()[:16]


def pinned(plan: Plan, scopes: Sequence[Scope]) -> tuple[Goal, ...] | None:
    """The goals that are kept for this, if they are."""
    if not plan.reach.goals[1:] or not KEPT.is_file():
        return None
    kept = json.loads(KEPT.read_text())
    asked = {claim.name for claim in (*plan.claims, *plan.witnesses)}
    if not asked <= set(kept["claims"]) or kept["key"] != key_of(plan, scopes):
        return None
    by_name = {scope.name: scope for scope in scopes}
    return tuple(
        Goal(name, _steps(steps), tuple(also), _run_in(plan, by_name[scope]))
        for name, also, scope, steps in kept["goals"]
    )


def as_kept(plan: Plan, scopes: Sequence[Scope]) -> str:
    """What the search finds, as it is to be kept."""
    lines = [
        json.dumps([goal.name, goal.also, goal.scope.name if goal.scope else "", goal.steps])
        for goal in searched(plan, scopes)
    ]
    claims = json.dumps([claim.name for claim in (*plan.claims, *plan.witnesses)])
    made = ",\n".join(lines)
    return f'{{"key": "{key_of(plan, scopes)}", "claims": {claims}, "goals": [\n{made}\n]}}\n'


def _steps(kept: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((action, tuple(codes)) for action, codes in kept)


_GOALS: dict[Any, tuple[Protocol, tuple[Goal, ...]]] = {}
"""The protocol stands beside its goals so that nothing else gets its identity."""


def goals_of(plan: Plan) -> tuple[Goal, ...]:
    """The goals of what the implementation offers, in small scopes of the model; found once in a process.

    What is reached in several scopes is a goal in the first of them.
    """
    protocol, runs = plan.oracle.protocol, plan.oracle.scope
    scopes = plan.reach.goals or (protocol.scopes.get("small", runs),)
    scopes = tuple(s.but(switches=s.switches & runs.switches) for s in scopes)
    key = (
        id(protocol),
        repr(runs),
        tuple((s.name, s.switches) for s in scopes),
        tuple(plan.performances),
        tuple(c.name for c in (*plan.claims, *plan.witnesses)),
    )
    if key not in _GOALS:
        found = pinned(plan, scopes)
        if found is None:
            found = searched(plan, scopes)
        journeys = counterpart_of(protocol).journeys
        more = () if journeys is None else journeys(scopes[0])
        every = (*more, *_by_time(plan, found), *found)
        both = {(goal.scope and goal.scope.name, goal.steps): goal for goal in every}
        _GOALS[key] = protocol, tuple(sorted(both.values(), key=lambda goal: len(goal.steps)))
    return _GOALS[key][1]


def searched(plan: Plan, scopes: Sequence[Scope]) -> tuple[Goal, ...]:
    """The goals, looked for in the model."""
    likely = {n: how.sensible for n, how in plan.performances.items() if how.sensible is not None}
    several = bool(plan.reach.goals[1:])  # what is too large to look everywhere is not looked at in vain
    tried = narrowed(plan.oracle.protocol, likely) if several else plan.oracle.protocol
    reached, found = set[str](), []
    seen = (*plan.witnesses, *counterpart_of(plan.oracle.protocol).sights)
    for scope in scopes:
        where = _run_in(plan, scope)
        for goal in goals(tried, scope, offered=plan.performances, claims=plan.claims, witnesses=seen):
            new = [name for name in (goal.name, *goal.also) if name not in reached]
            if new:
                reached.update(new)
                found.append(Goal(new[0], goal.steps, tuple(new[1:]), where))
    return tuple(_on_the_way(found)) if plan.reach.goals[1:] else tuple(found)


def _on_the_way(found: Iterable[Goal]) -> Iterator[Goal]:
    """The goals without those that the run to another one comes by, whose names it takes over."""
    kept: dict[tuple[str, Any], Goal] = {}
    by_prefix: dict[tuple[str, Any], tuple[str, Any]] = {}
    for goal in sorted(found, key=lambda each: len(each.steps), reverse=True):
        scope = "" if goal.scope is None else goal.scope.name
        longer = by_prefix.get((scope, goal.steps))
        if longer is None:
            kept[scope, goal.steps] = goal
            by_prefix.update(
                ((scope, goal.steps[:n]), (scope, goal.steps)) for n in range(1, len(goal.steps))
            )
        else:
            also = (*kept[longer].also, goal.name, *goal.also)
            kept[longer] = replace(kept[longer], also=also)
    yield from kept.values()


def _run_in(plan: Plan, scope: Scope) -> Scope | None:
    """Where the way to a goal in a scope of the model's is made: in its sizes, with the bounds of runs."""
    return scope.but(bounds=plan.oracle.scope.bounds) if plan.reach.goals[1:] else None


def beyond_reach(plan: Plan) -> frozenset[str]:
    """The witnesses that the model does not come to because of what the adapter does not have.

    None where the adapter offers less than the model may do: then that may be why.
    """
    less = {a.name for a in plan.oracle.actions()} - set(plan.performances)
    if less or not counterpart_of(plan.oracle.protocol).narrow:
        return frozenset()
    reached = {name for goal in goals_of(plan) for name in (goal.name, *goal.also)}
    return frozenset({w.name for w in plan.witnesses} - reached)


def _by_time(plan: Plan, found: Iterable[Goal]) -> Iterator[Goal]:
    """The same ways with leases that run out instead of being given back: there clocks matter."""
    leases = {name: how.lease for name, how in plan.performances.items()}
    runs_out = next((name for name, lease in leases.items() if lease is Lease.RUNS_OUT), None)
    for goal in found:
        if runs_out is not None and any(leases[action] is Lease.ENDS for action, _ in goal.steps[:-1]):
            steps = tuple((runs_out, ()) if leases[a] is Lease.ENDS else (a, v) for a, v in goal.steps)
            yield Goal(f"{goal.name}, in time", steps, (), goal.scope)
