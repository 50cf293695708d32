"""Where runs are sent first: shortest runs of the model to every place in which something can be seen to go wrong.

Goals are found by searching the model, so none is written by hand: each witness; each kind of step (an action with
how it ends); and, for each claim and each operation, a step that the model refuses and that would break the claim if it
were accepted, which is where an implementation that lacks a guard is caught.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fencepost.model import Protocol, Scope
from fencepost.properties import Claim

MAX_STATES = 150_000
"""Goals lie a few steps away; what is not among this many states is left to chance."""

Steps = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Goal:
    """A name for what is reached, and the steps that lead there: actions with the codes of their arguments."""

    name: str
    steps: Steps


def goals(protocol: Protocol, scope: Scope, claims: Iterable[Claim], witnesses: Iterable[Claim]) -> tuple[Goal, ...]:
    """The goals of a protocol in a scope, nearest first; of several with the same steps, one."""
    from fencepost.checker.native import Seek, explore  # noqa: PLC0415
    from fencepost.model import terms as t  # noqa: PLC0415
    from fencepost.model.ground import ground_model  # noqa: PLC0415

    model = ground_model(protocol, scope)
    never = t.boolean(False)
    always = t.boolean(True)
    seeks: list[Seek] = []

    seeks += [
        Seek(w.name, model.step_claim(w.predicate) if w.over_steps else model.state_claim(w.predicate))
        for w in witnesses
    ]
    kinds = {(c.action.name, c.outcome) for c in model.commands if c.moves}
    for action, outcome in sorted(kinds):
        seeks.append(
            Seek(
                f"{action}: {outcome}",
                tuple(always if (c.action.name, c.outcome) == (action, outcome) else never for c in model.commands),
            )
        )
    accepted: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for number, command in enumerate(model.commands):
        if command.outcome == "ok":
            accepted.setdefault((command.action.name, command.arguments), []).append(number)
    operations = sorted({c.action.name for c in model.commands if c.source.refused})
    for claim in claims:
        if not claim.over_steps:
            continue  # what breaks a claim over states is, but for the dearest of searches, found with one over steps
        truths = model.step_claim(claim.predicate)
        for operation in operations:
            terms = [
                t.or_(t.not_(truths[i]) for i in accepted.get((c.action.name, c.arguments), ()))
                if c.source.refused and c.action.name == operation
                else never
                for c in model.commands
            ]
            if any(term is not never for term in terms):
                seeks.append(Seek(f"{operation} that would break {claim.name}", tuple(terms)))
    result = explore(model, seeks=seeks, max_states=MAX_STATES)
    found: dict[Steps, Goal] = {}
    for seek in seeks:
        hit = result.hits.get(seek.name)
        if hit is None:
            continue
        numbers = [number for number, _ in result.path(hit.state)]
        numbers += [] if hit.command is None else [hit.command]
        steps = tuple((model.commands[n].action.name, model.commands[n].arguments) for n in numbers)
        found.setdefault(steps, Goal(seek.name, steps))
    return tuple(sorted(found.values(), key=lambda g: len(g.steps)))
