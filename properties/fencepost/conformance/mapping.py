"""How an action of a model is done with an implementation: a function per action, under its name.

Actions of workers and of the network become calls; those of the world become faults that the harness
arranges, or nothing at all where only the harness knows (a worker that stands still makes no calls). The
tables stand in a module per protocol (see `counterparts`). Nothing else lists actions: what can happen, when,
and with which arguments is read from the protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from fencepost.conformance.adapter import Answer, Capability
from fencepost.conformance.vocabulary import Names
from fencepost.model.concrete import RunningState
from fencepost.model.run import Rest, Transition

if TYPE_CHECKING:
    from fencepost.conformance.session import Session

Performer = Callable[..., Answer | None]

Sensible = Callable[..., object]


class Lease(Enum):
    """What an action, when it is accepted, does to the time at which a lease ends."""

    STAYS = "stays"
    BEGINS = "begins"
    EXTENDS = "extends"
    ENDS = "ends"
    RUNS_OUT = "runs out"
    CARRIES_ON = "carries on"
    """Time passes, and who has the lease renews it if it would run out meanwhile."""


@dataclass(frozen=True, slots=True)
class Performance:
    """How an action is done: the function, the capability that it takes, and what it does to the lease's end.

    `asks_for` is the parameter that names the commit whose fate the call asks for, `request` the one that
    names the request which a downstream decides; `sends` gives the id of the commit that the call makes. Only
    what the store answers tells of the row. `sensible` says, in the words of the model, in which states that
    allow the action somebody would do it with these parameters: None means in all. `turned_out` says which
    action, with which arguments, the call turned out to be, where one call is there for several.
    """

    function: Performer
    needs: Capability | None = None
    lease: Lease = Lease.STAYS
    asks_for: str = ""
    request: str = ""
    tells_of_row: bool = True
    sends: Callable[..., str] | None = None
    sensible: Sensible | None = None
    turned_out: Callable[..., tuple[str, tuple[Any, ...]]] | None = None

    @property
    def is_call(self) -> bool:
        """Whether it is a call to the implementation: its mapping is written to give an answer."""
        return "Answer" in str(self.function.__annotations__.get("return"))

    def commit_id(self, model: RunningState, names: Names, arguments: tuple[Any, ...]) -> str | None:
        """The id of the commit that the call makes; None where it makes none."""
        return None if self.sends is None else self.sends(model, names, *arguments)

    def made(self, session: Session, expected: Transition, answered: str, state: Rest) -> Transition:
        """The step that was made: claims are asked about what it was, not about what it was to be."""
        action, arguments = expected.action, expected.arguments
        if self.turned_out is not None:
            name, arguments = self.turned_out(session, *arguments)
            action = session.plan.oracle.protocol.actions[name]
        if action is not expected.action:
            answered = "ok" if action.is_operation else "done"
        return Transition(action, arguments, answered, state)

    def otherwise(self, expected: Transition, made: Transition) -> str:
        """What to say if the step turned out to be another one than the model makes here."""
        if made.action is expected.action:
            return ""
        there, done = expected.action, made.action
        return f"the model does {there.name} here ({there.doc}), the implementation did {done.name}"

    @property
    def takes_lease_ms(self) -> bool:
        """Whether a length of a lease goes with the call."""
        return self.lease in (Lease.BEGINS, Lease.EXTENDS)


Decorator = Callable[[Performer], Performer]


def performing(table: dict[str, Performance], **common: Any) -> Callable[..., Decorator]:
    """A decorator, called with an action's name and details, that puts the decorated function into `table`.

    The function takes the session and the action's parameters. `common` are details of all of the table.
    """

    def performs(action: str, **details: Any) -> Decorator:
        def add(function: Performer) -> Performer:
            table[action] = Performance(function, **{**common, **details})
            return function

        return add

    return performs
