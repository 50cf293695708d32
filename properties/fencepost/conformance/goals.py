"""Where runs are sent first: by the shortest way to wherever something can be seen to go wrong.

Goals are found by searching the model, so none is written by hand: each witness; each branch of each action;
each refusal where no other guard would refuse; and, for each claim and each operation, a step that the model
refuses and that would break the claim if it were accepted. The last two are where an implementation that
lacks a guard is caught.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fencepost.checker.fingerprints import canonical
from fencepost.conformance.mapping import Sensible
from fencepost.model import Protocol, Scope, State, when
from fencepost.model import terms as t
from fencepost.properties import Claim

if TYPE_CHECKING:
    from fencepost.model.ground import GroundCommand, GroundModel

MAX_STATES = 600_000
"""Goals lie a few steps away; what is not among this many states is left to chance."""

NEVER, ALWAYS = t.or_(()), t.and_(())

Steps = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Goal:
    """What is reached, and the steps that lead there: actions with the codes of their arguments.

    `also` is what else is reached by the same steps. `scope` is what the run is made in, None wherever it is.
    """

    name: str
    steps: Steps
    also: tuple[str, ...] = ()
    scope: Scope | None = None


def narrowed(protocol: Protocol, sensible: Mapping[str, Sensible]) -> Protocol:
    """The protocol in which the actions happen only where somebody would do them."""
    bodies: dict[str, Any] = {
        name: _where(protocol.actions[name].function, condition) for name, condition in sensible.items()
    }
    return protocol.variant(protocol.name, **bodies) if bodies else protocol


def _where(body: Callable[..., None], condition: Sensible) -> Callable[..., None]:
    def narrow(s: State, *parameters: Any) -> None:
        """An action that is not tried everywhere."""
        when(condition(s, *parameters))
        body(s, *parameters)

    return narrow


def goals(
    protocol: Protocol,
    scope: Scope,
    *,
    offered: Collection[str],
    claims: Iterable[Claim],
    witnesses: Iterable[Claim],
) -> tuple[Goal, ...]:
    """The goals of a protocol in a scope, nearest first; of several with the same steps, one.

    Only actions that are `offered` lead there.
    """
    from fencepost.checker.native import Seek, explore
    from fencepost.model.ground import ground_model

    model = ground_model(protocol, scope)
    model = replace(model, commands=tuple(c for c in model.commands if c.action.name in offered))
    seeks = [
        Seek(w.name, model.step_claim(w.predicate) if w.over_steps else model.state_claim(w.predicate))
        for w in witnesses
    ]
    seeks += [Seek(name, terms) for name, terms in (*_branches(model), *_refusals(model, claims))]
    result = explore(model, seeks=seeks, max_states=MAX_STATES)
    found: dict[Steps, Goal] = {}
    for seek in seeks:
        hit = result.hits.get(seek.name)
        if hit is None:
            continue
        numbers = [number for number, _ in result.path(hit.state)]
        numbers += [] if hit.command is None else [hit.command]
        steps = tuple((model.commands[n].action.name, model.commands[n].arguments) for n in numbers)
        first = found.setdefault(steps, Goal(seek.name, steps))
        if first.name != seek.name:
            found[steps] = replace(first, also=(*first.also, seek.name))
    return tuple(sorted(found.values(), key=lambda goal: len(goal.steps)))


def _branches(model: GroundModel) -> Iterator[tuple[str, tuple[t.Term, ...]]]:
    """Each branch of each action, taken."""
    branches = {id(c.source): c for c in model.commands if c.moves}
    for branch, command in branches.items():
        said = "".join(canonical(term) for term in command.source.guard)
        number = hashlib.sha256(said.encode()).hexdigest()[:6]  # the same in each scope
        name = f"{command.action.name}: {command.outcome}, branch {number}"
        yield name, tuple(ALWAYS if id(c.source) == branch else NEVER for c in model.commands)


def _refusals(model: GroundModel, claims: Iterable[Claim]) -> Iterator[tuple[str, tuple[t.Term, ...]]]:
    """Steps that the model refuses: for one reason alone, or where accepting would break a claim."""
    accepting: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for number, command in enumerate(model.commands):
        if command.outcome == "ok":
            accepting.setdefault((command.action.name, command.arguments), []).append(number)

    def where(kind: tuple[str, str], wanted: Mapping[int, t.Term]) -> tuple[t.Term, ...]:
        terms = []
        for command in model.commands:
            same = command.action.name == kind[0] and kind[1] in ("", command.outcome)
            others = accepting.get((command.action.name, command.arguments), ())
            terms.append(
                t.or_(
                    [
                        t.and_([wanted[i], *_others(model.commands[i], command, alone=bool(kind[1]))])
                        for i in others
                    ]
                )
                if command.source.refused and same
                else NEVER
            )
        return tuple(terms)

    numbers = [i for found in accepting.values() for i in found]
    for action, code in sorted({(c.action.name, c.outcome) for c in model.commands if c.source.refused}):
        yield f"{action}: {code} alone", where((action, code), dict.fromkeys(numbers, ALWAYS))
    operations = sorted({c.action.name for c in model.commands if c.source.refused})
    for claim in claims:
        if not claim.over_steps:
            continue  # dear to compile, and what would break one would break a claim over steps
        truths = model.step_claim(claim.predicate)
        for operation in operations:
            terms = where((operation, ""), {i: t.not_(truths[i]) for i in numbers})
            if any(term is not NEVER for term in terms):
                yield f"{operation} that would break {claim.name}", terms


def _others(accepted: GroundCommand, refused: GroundCommand, *, alone: bool) -> list[t.Term]:
    """What an accepted command requires besides the one guard by which the other is refused."""
    if not alone:
        return []
    have, needed = set(_parts(refused.guard)), _parts(accepted.guard)
    others = [part for part in needed if t.not_(part) not in have]
    on_the_way = have - {t.not_(part) for part in needed} <= set(needed)
    return others if on_the_way else [NEVER]


def _parts(term: t.Term) -> tuple[t.Term, ...]:
    return term.args if term.op == "and" else (term,)
