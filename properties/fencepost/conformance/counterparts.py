"""The protocols that implementations are run beside, and for each what that takes.

`Counterpart` is the table of one: how its actions are done, where its variables are observed, how far runs
go. Each stands in a module of its own, named after the protocol; all else asks here and lists nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fencepost.checker.subject import Subject, UsageError
from fencepost.conformance.adapter import Ability, Adapter, Capability, EffectsAdapter, Surroundings
from fencepost.conformance.mapping import Performance
from fencepost.conformance.oracle import AS_MODELLED
from fencepost.conformance.subjects import subject_of
from fencepost.conformance.vocabulary import (
    ASSUMES,
    CannotEmbedError,
    Handles,
    Landing,
    MappingError,
    Seen,
    has_downstream,
)
from fencepost.model import Protocol, Scope
from fencepost.model.concrete import in_bounds
from fencepost.model.core.state import STORE
from fencepost.model.effects.state import DOWNSTREAM
from fencepost.model.protocol import Action
from fencepost.properties import Claim

if TYPE_CHECKING:
    from fencepost.conformance.goals import Goal
    from fencepost.conformance.oracle import Oracle, Rest, Transition
    from fencepost.conformance.session import Session

Reader = Callable[[Seen], Any]
"""Reads the value of a variable, at rest, from what was seen."""

LandedAgain = Callable[["Oracle", "Transition", Sequence[Landing]], "list[tuple[Rest, Transition]]"]


@dataclass(frozen=True, slots=True)
class Reach:
    """How far runs go: scopes of the model.

    `goals` is where goals are looked for, nowhere meaning the smallest scope of the protocol. `starts` is
    where the states are that statements are interleaved from, None when they are not; `statements` is as far
    as such schedules go, None as far as runs. `share` is how many of the random runs that are asked for are
    made: fewer where goals come to nearly everything. With `sparing` not all ways to each goal are gone, only
    those to witnesses: there are many goals. `without` is a scope without some faults, for claims that say
    nothing where those are.
    """

    runs: Scope
    goals: tuple[Scope, ...] = ()
    starts: Scope | None = None
    statements: Scope | None = None
    share: float = 1.0
    sparing: bool = False
    without: Scope | None = None


@dataclass(frozen=True, slots=True)
class Counterpart:
    """One protocol, as implementations are run beside it.

    `marked_by` is a variable that no other protocol has, by which variants are known too; `needs` is what an
    adapter declares, `to_write` what it then has to have. `landed_again` gives the steps to ask claims about
    when one request has taken effect more than once. `open_handles` opens what runs take instead of workers,
    `begin` makes a fresh world one as the model begins. `sights` are situations that runs go to as they do to
    witnesses, `journeys` more runs to make, for what is broken and shows at neither. `narrow` says why not
    all that the model does can come about with every adapter, where that is so. `part` gives the adapter that
    runs beside this protocol, where that is one of its own, and `own_reach` how far that goes. `assumes` is
    what all runs have in common, whatever their scope: for the bound.
    """

    model: str
    where: str
    performances: Mapping[str, Performance]
    stored: Mapping[str, tuple[Reader, Capability | None]]
    reach: Callable[[frozenset[Ability]], Reach]
    marked_by: str = ""
    needs: Capability | None = None
    to_write: str = ""
    landed_again: LandedAgain | None = None
    open_handles: Callable[[Any, Any, Surroundings, Scope], Handles] | None = None
    begin: Callable[[Session], None] | None = None
    sights: tuple[Claim, ...] = ()
    journeys: Callable[[Scope], Iterable[Goal]] | None = None
    narrow: str = ""
    part: Callable[[Adapter], Adapter] | None = None
    own_reach: Callable[[Adapter], Reach] | None = None
    assumes: str = ASSUMES

    def is_had_by(self, adapter: Adapter) -> bool:
        """Whether an adapter says that it has what the protocol is about."""
        return self.needs is None or self.needs in adapter.capabilities

    def remedy(self) -> str:
        """What to do for an adapter that does not."""
        return f"declare Capability.{self.needs.name if self.needs else ''} and {self.to_write}"


MODULES = ("core", "effects", "workflow", "triggers", "recovery", "replay")
"""The modules with a `COUNTERPART`, in the order in which implementations are run beside them."""


@cache
def counterparts() -> Mapping[str, Counterpart]:
    """All of them, by the name of the built-in protocol."""
    found = [import_module(f"fencepost.conformance.{name}").COUNTERPART for name in MODULES]
    return {each.model: each for each in found}


def counterpart_of(protocol: Protocol) -> Counterpart:
    """The one for a protocol, or for the protocol that it varies."""
    core, *others = counterparts().values()
    return next((each for each in others if each.marked_by in protocol.variables), core)


def counterpart_had(protocol: Protocol, adapter: Adapter) -> Counterpart:
    """The same; UsageError when the adapter does not have what it is about."""
    found = counterpart_of(protocol)
    if not found.is_had_by(adapter):
        raise UsageError(f"{adapter.name} has no {found.model}; {found.remedy()}")
    return found


def subjects_had(adapter: Adapter) -> list[Subject]:
    """The built-in protocols that an adapter has what it takes for, in the variant that it follows."""
    return [
        subject_of(each.model, adapter.model_variant)
        for each in counterparts().values()
        if each.is_had_by(adapter)
    ]


def refuse_without(adapter: Any, declared: Capability, needed: type) -> None:
    """UsageError for an adapter that declares a capability and has not all methods that it then needs."""
    missing = [n for n in dir(needed) if not n.startswith("_") and not hasattr(adapter, n)]
    if missing:
        raise UsageError(
            f"{adapter.name} declares Capability.{declared.name} and has no {', '.join(missing)}; "
            f"write what {needed.__module__}.{needed.__name__} names"
        )


def abilities_of(adapter: Adapter, protocol: Protocol) -> frozenset[Ability]:
    """What the downstream can do, where the protocol and the adapter have one."""
    if has_downstream(protocol) and counterpart_of(protocol).is_had_by(adapter):
        return adapter.downstream if isinstance(adapter, EffectsAdapter) else frozenset()
    return frozenset()


def reach_of(adapter: Adapter, protocol: Protocol) -> Reach:
    """How far an adapter's runs go beside a protocol. UsageError when it does not have what that is about."""
    found = counterpart_had(protocol, adapter)
    if found.own_reach is not None:
        return found.own_reach(part_of(adapter, protocol))
    return found.reach(abilities_of(adapter, protocol))


def part_of(adapter: Adapter, protocol: Protocol) -> Adapter:
    """The adapter that runs beside a protocol."""
    part = counterpart_of(protocol).part
    return adapter if part is None else part(adapter)


# -- Actions.


def performance_of(protocol: Protocol, action: Action) -> Performance:
    """How an action is done. MappingError when that is not written, or takes other parameters."""
    parameters = [name for name, _ in action.parameters]
    signature = ", ".join(["session", *parameters])
    counterpart = counterpart_of(protocol)
    found = counterpart.performances.get(action.name)
    if found is None:
        raise MappingError(
            f"the action {action.name!r} of {protocol.name} is not mapped to implementations; "
            f"write in {counterpart.where}\n"
            f"    @performs({action.name!r})\n"
            f"    def {action.name}({signature}):\n"
            f'        """{action.doc}"""\n'
            "that makes the call and gives its answer, or None when the action is no call"
        )
    has = list(inspect.signature(found.function).parameters)[1:]
    if has != parameters:
        raise MappingError(
            f"the action {action.name!r} of {protocol.name} takes {parameters}, "
            f"its mapping in {counterpart.where} takes {has}; "
            f"change it to def {action.name}({signature})"
        )
    return found


# -- Variables.


def stored_variables(protocol: Protocol) -> list[str]:
    """The variables whose values are observed: all that are stored, and history of what happened outside.

    MappingError when a stored one is not mapped.
    """
    counterpart = counterpart_of(protocol)
    table = counterpart.stored
    found = [n for n, v in protocol.variables.items() if v.home in (STORE, DOWNSTREAM) or n in table]
    for name in found:
        if name not in table:
            raise MappingError(
                f"{protocol.name} stores {name!r}, which no observation is mapped to; add to `Observation` "
                f"what it is read from, and to STORED in {counterpart.where} a line\n"
                f"    {name!r}: (lambda seen: …, Capability.… or None)"
            )
    return found


def observed_variables(protocol: Protocol, capabilities: frozenset[Capability]) -> list[str]:
    """The stored variables that an implementation with these capabilities shows."""
    table = counterpart_of(protocol).stored
    return [n for n in stored_variables(protocol) if table[n][1] is None or table[n][1] in capabilities]


def embedded(protocol: Protocol, names: Iterable[str], seen: Seen) -> dict[str, Any]:
    """The values of some stored variables. CannotEmbedError where the model has no such value."""
    found, table = {}, counterpart_of(protocol).stored
    for name in names:
        variable = protocol.variables[name]
        value = table[name][0](seen)
        if value is AS_MODELLED:
            continue
        if not variable.index and not in_bounds(variable.domain, value, seen.names.scope):
            raise CannotEmbedError(f"{name} is {value!r}, which is beyond the scope")
        found[name] = value
    return found
