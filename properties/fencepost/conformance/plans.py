"""What the runs of one adapter have in common: the model, the claims, and what the adapter offers of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fencepost.conformance.adapter import Ability, Adapter
from fencepost.conformance.counterparts import (
    Reach,
    abilities_of,
    counterpart_of,
    observed_variables,
    part_of,
    performance_of,
    reach_of,
)
from fencepost.conformance.mapping import Performance
from fencepost.conformance.moves import RESTART, WAIT
from fencepost.conformance.oracle import Oracle, Rest, Transition
from fencepost.conformance.vocabulary import Landing
from fencepost.model import Scope
from fencepost.properties import Claim


@dataclass(slots=True)
class Plan:
    """What the runs of one adapter have in common: the model, the claims and the witnesses."""

    adapter: Adapter
    oracle: Oracle
    claims: tuple[Claim, ...] = ()
    witnesses: tuple[Claim, ...] = ()
    performances: Mapping[str, Performance] = field(init=False)
    """How each action is done that the scope allows and the implementation offers."""
    observed: list[str] = field(init=False)
    """The stored variables that the implementation shows; others are taken to be as the model says."""
    _elsewhere: dict[str, Plan] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the mapping of each action and of each stored variable; MappingError when one is missing."""
        protocol = self.oracle.protocol
        self.adapter = part_of(self.adapter, protocol)
        offered = self.adapter.capabilities
        self.observed = observed_variables(protocol, offered)
        found = {a.name: performance_of(protocol, a) for a in protocol.actions.values()}
        allowed = {a.name for a in self.oracle.actions()}
        self.performances = {
            name: how
            for name, how in found.items()
            if name in allowed and (how.needs is None or how.needs in offered)
        }

    @property
    def abilities(self) -> frozenset[Ability]:
        """What the downstream can do, where the model and the adapter have one."""
        return abilities_of(self.adapter, self.oracle.protocol)

    @property
    def reach(self) -> Reach:
        """How far runs go by default. UsageError when the adapter lacks what the protocol is about."""
        return reach_of(self.adapter, self.oracle.protocol)

    @property
    def others(self) -> tuple[str, ...]:
        """The moves that no action of the model makes."""
        restarts = Ability.RESTARTS in self.abilities and RESTART not in self.performances
        return (WAIT, RESTART) if restarts else (WAIT,)

    def within(self, scope: Scope | None) -> Plan:
        """The same in another scope; None means this one."""
        if scope is None:
            return self
        found = self._elsewhere.get(scope.name)
        if found is None or found.oracle.scope != scope:
            oracle = Oracle(self.oracle.protocol, scope)
            found = self._elsewhere[scope.name] = Plan(self.adapter, oracle, self.claims, self.witnesses)
        return found

    def judged(
        self, before: Rest, made: Transition, landed: Sequence[Landing] = ()
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the claims that a step breaks, and of the witnesses that it reaches.

        `landed` are the effects that took place in it; any beyond the first of a request breaks what two
        steps with an effect each would break.
        """
        true = self.oracle.true_of(self.claims, before, made)
        landed_again = counterpart_of(self.oracle.protocol).landed_again
        for again in landed_again(self.oracle, made, landed) if landed and landed_again else ():
            true &= self.oracle.true_of(self.claims, *again)
        broken = tuple(c.name for c in self.claims if c.name not in true)
        reached = self.oracle.true_of(self.witnesses, before, made)
        return broken, tuple(w.name for w in self.witnesses if w.name in reached)
