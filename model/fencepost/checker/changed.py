"""A model that is changed in one action after another, grounded anew only where it differs.

Grounding takes most of the time of a small search. A sweep searches the same model hundreds of times, each
time with one action changed: the rules of all other actions, and what claims say of them, stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from fencepost.checker.explore import ground_claim
from fencepost.model import Protocol, Scope
from fencepost.model import terms as t
from fencepost.model.ground import GroundCommand, GroundModel, Readings, ground_model
from fencepost.properties import Claim

Ground = t.Term | tuple[t.Term, ...]


@dataclass(slots=True)
class Base:
    """The unchanged model in a scope, and what claims say of its rules, by the claim's term."""

    protocol: Protocol
    scope: Scope
    readings: Readings | None = None
    """What was traced of the model for other scopes."""
    model: GroundModel = field(init=False)
    _said: dict[t.Term, tuple[t.Term, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = ground_model(self.protocol, self.scope, self.readings)

    def changed(self, protocol: Protocol, claims: Iterable[Claim]) -> tuple[GroundModel, dict[str, Ground]]:
        """The model with some actions changed or left out, and the claims about it by name."""
        if protocol.variables != self.protocol.variables or protocol.answers != self.protocol.answers:
            model = ground_model(protocol, self.scope)
            return model, {c.name: ground_claim(model, c) for c in claims}
        commands: list[GroundCommand] = []
        kept: list[int | None] = []
        """By rule of the changed model: its number in the unchanged one."""
        for name, action in protocol.actions.items():
            if action is self.protocol.actions.get(name):
                numbers = [i for i, c in enumerate(self.model.commands) if c.action is action]
                commands += [self.model.commands[i] for i in numbers]
                kept += numbers
            else:
                own = ground_model(replace(protocol, actions={name: action}), self.scope).commands
                commands += own
                kept += [None] * len(own)
        model = replace(self.model, protocol=protocol, commands=tuple(commands), readings=Readings(protocol))
        rules = zip(commands, kept, strict=True)
        new = replace(model, commands=tuple(c for c, number in rules if number is None))
        return model, {c.name: self._terms(c, model, new, kept) for c in claims}

    def _terms(self, claim: Claim, model: GroundModel, new: GroundModel, kept: list[int | None]) -> Ground:
        """A claim as ground terms, of which those of `new` rules are to be made.

        Its own term may depend on all actions, if it asks what can move.
        """
        if not claim.over_steps:
            return model.state_claim(claim.predicate)
        term = model.traced(claim.predicate)
        if term not in self._said:
            if term is not self.model.traced(claim.predicate):
                return model.step_claim(claim.predicate)
            self._said[term] = self.model.step_claim(claim.predicate)
        unchanged = self._said[term]
        own = iter(new.step_claim(claim.predicate))
        return tuple(next(own) if number is None else unchanged[number] for number in kept)
