"""How each action of the model is done with an implementation: a function per action, under its name.

Actions of workers and of the network become calls; those of the world become faults that the harness
arranges, or nothing at all where only the harness knows (a worker that stands still makes no calls). Nothing
else lists actions: what can happen, when, and with which arguments is read from the protocol.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from fencepost.conformance.adapter import Answer, Capability, Commit
from fencepost.conformance.vocabulary import MappingError, Names, has_downstream
from fencepost.model import Protocol
from fencepost.model.concrete import RunningState
from fencepost.model.domains import Element
from fencepost.model.protocol import Action

if TYPE_CHECKING:
    from fencepost.conformance.session import Session

Performer = Callable[..., Answer | None]


class Lease(Enum):
    """What an action, when it is accepted, does to the time at which a lease ends."""

    STAYS = "stays"
    BEGINS = "begins"
    EXTENDS = "extends"
    ENDS = "ends"
    RUNS_OUT = "runs out"


@dataclass(frozen=True, slots=True)
class Performance:
    """How an action is done: the function, the capability that it takes, and what it does to the lease's end.

    `asks_for` is the parameter that names the commit whose fate the call asks for, `request` the one that
    names the request which a downstream decides; `sends` gives the id of the commit that the call makes. Only
    what the store answers tells of the row.
    """

    function: Performer
    needs: Capability | None = None
    lease: Lease = Lease.STAYS
    asks_for: str = ""
    request: str = ""
    tells_of_row: bool = True
    sends: Callable[..., str] | None = None

    @property
    def is_call(self) -> bool:
        """Whether it is a call to the implementation: its mapping is written to give an answer."""
        return "Answer" in str(self.function.__annotations__.get("return"))

    def commit_id(self, model: RunningState, names: Names, arguments: tuple[Any, ...]) -> str | None:
        """The id of the commit that the call makes; None where it makes none."""
        return None if self.sends is None else self.sends(model, names, *arguments)

    @property
    def takes_lease_ms(self) -> bool:
        """Whether a length of a lease goes with the call."""
        return self.lease in (Lease.BEGINS, Lease.EXTENDS)


PERFORMANCES: dict[str, Performance] = {}
"""For the core. Those for effects are in `effects`."""


def performs(action: str, **details: Any) -> Callable[[Performer], Performer]:
    """The decorated function does `action`; it takes the session and the action's parameters."""

    def add(function: Performer) -> Performer:
        PERFORMANCES[action] = Performance(function, **details)
        return function

    return add


def performance_of(protocol: Protocol, action: Action) -> Performance:
    """How an action is done. MappingError when that is not written, or takes other parameters."""
    parameters = [name for name, _ in action.parameters]
    signature = ", ".join(["session", *parameters])
    where, table = _table_of(protocol)
    found = table.get(action.name)
    if found is None:
        raise MappingError(
            f"the action {action.name!r} of {protocol.name} is not mapped to implementations; "
            f"write in {where}\n"
            f"    @performs({action.name!r})\n"
            f"    def {action.name}({signature}):\n"
            f'        """{action.doc}"""\n'
            "that makes the call and gives its answer, or None when the action is no call"
        )
    has = list(inspect.signature(found.function).parameters)[1:]
    if has != parameters:
        raise MappingError(
            f"the action {action.name!r} of {protocol.name} takes {parameters}, "
            f"its mapping in {where} takes {has}; "
            f"change it to def {action.name}({signature})"
        )
    return found


def _table_of(protocol: Protocol) -> tuple[str, Mapping[str, Performance]]:
    """The module that maps the actions of a protocol, and its table."""
    if not has_downstream(protocol):
        return __name__, PERFORMANCES
    from fencepost.conformance import effects

    return effects.__name__, effects.PERFORMANCES


# -- Calls of workers.


@performs("acquire", lease=Lease.BEGINS)
def acquire(session: Session, w: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call; that its reply is lost is up to the harness, which does not hand it on."""
    return session.worker(w).acquire(lease_ms=session.lease_ms)


@performs("renew", needs=Capability.RENEW, lease=Lease.EXTENDS)
def renew(session: Session, w: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call, with the lease version that the worker believes in."""
    return session.worker(w).renew(session.model.believes[w].lease, lease_ms=session.lease_ms)


@performs("release", needs=Capability.RELEASE, lease=Lease.ENDS)
def release(session: Session, w: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call, with the lease version that the worker believes in."""
    return session.worker(w).release(session.model.believes[w].lease)


@performs("reread", needs=Capability.READ)
def reread(session: Session, w: Element) -> Answer:
    """The call."""
    return session.worker(w).read()


@performs("ask", needs=Capability.ASK, asks_for="c")
def ask(session: Session, c: Element) -> Answer:
    """The call, by the worker that waits."""
    return session.worker(session.model.request[c].by.worker).ask(session.commit_id(c))


# -- The network.


@performs("send_commit")
def send_commit(session: Session, w: Element, c: Element, finishes: bool) -> None:  # noqa: FBT001
    """Nothing reaches the store yet."""


def _sent(model: RunningState, names: Names, c: Element, kept: bool) -> str:  # noqa: ARG001, FBT001
    """The id of a commit that arrives."""
    by = model.request[c].by
    return names.commit_id(names.owner((by.worker, by.incarnation)), c)


@performs("decide_commit", sends=_sent)
def decide_commit(session: Session, c: Element, kept: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call, as its sender made it; when the sender is dead, its connection has outlived it."""
    sent = session.model.request[c]
    commit = Commit(
        commit_id=session.commit_id(c),
        owner=session.sender(c),
        lease_version=sent.lease,
        state_version=sent.state,
        finishes=sent.finishes,
    )
    return session.deliver(commit)


@performs("receive_answer")
def receive_answer(session: Session, c: Element) -> None:
    """The harness hands on the answer that it has kept."""


@performs("lose_commit")
def lose_commit(session: Session, c: Element) -> None:
    """The harness never makes the call."""


@performs("lose_answer")
def lose_answer(session: Session, c: Element) -> None:
    """The harness throws away the answer that it has kept."""


# -- The clock, and what goes wrong with workers.


@performs("expire", lease=Lease.RUNS_OUT)
def expire(session: Session) -> None:
    """The session has set the clock to the end of the lease or beyond."""


@performs("crash")
def crash(session: Session, w: Element) -> None:
    """The worker's handle is gone."""
    session.drop(w)


@performs("restart")
def restart(session: Session, w: Element) -> None:
    """A new handle, of the next incarnation."""
    session.open(w, session.model.incarnation[w] + 1)


@performs("pause")
def pause(session: Session, w: Element) -> None:
    """The worker makes no calls; its handle stays open."""


@performs("resume")
def resume(session: Session, w: Element) -> None:
    """The worker goes on with the handle that it had."""
