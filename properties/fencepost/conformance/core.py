"""The core, with an implementation: how each action is done, and where each variable is observed (§3, §4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fencepost.conformance.adapter import Answer, Capability, Commit
from fencepost.conformance.counterparts import Counterpart, Reach
from fencepost.conformance.mapping import Lease, Performance, performing
from fencepost.conformance.vocabulary import CannotEmbedError, Names, Seen
from fencepost.model import Scope, absent
from fencepost.model.concrete import RunningState
from fencepost.model.core.state import state_versions
from fencepost.model.domains import Element

if TYPE_CHECKING:
    from fencepost.conformance.session import Session

PERFORMANCES: dict[str, Performance] = {}

performs = performing(PERFORMANCES)

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


# -- What is observed.


def _log(seen: Seen) -> tuple[Any, ...]:
    cells: list[Any] = [absent] * seen.names.scope.size(state_versions)
    for entry in seen.observation.log or ():
        if not 0 <= entry.state_version < len(cells):
            raise CannotEmbedError(f"the log has an entry for state version {entry.state_version}")
        if cells[entry.state_version] is not absent:
            raise CannotEmbedError(f"the log has two entries for state version {entry.state_version}")
        if entry.commit_id not in seen.names.commit_ids:
            raise CannotEmbedError(f"the log has a commit {entry.commit_id!r}, which nobody sent")
        cells[entry.state_version] = seen.names.commit_ids[entry.commit_id]
    return tuple(cells)


STORED: Mapping[str, tuple[Callable[[Seen], Any], Capability | None]] = {
    "owner": (lambda seen: seen.names.raw_owner(seen.row.owner), None),
    "lease_version": (lambda seen: seen.row.lease_version, None),
    "live": (lambda seen: seen.row.live(seen.now_ms), None),
    "state_version": (lambda seen: seen.row.state_version, None),
    "finished": (lambda seen: seen.row.finished, None),
    "log": (_log, Capability.LOG),
}
"""For each stored variable: its value in rest, and the capability without which it is not observed."""


# -- How far runs go.

SCOPE = Scope(
    "lock-step",
    sizes={"worker": 2, "commit": 3},
    bounds={"lease_version": 4, "state_version": 3, "incarnation": 2},
    switches=frozenset({"crash", "pause", "reply_lost", "commit_lost", "commit_duplicated"}),
    why="two handles, each of which restarts twice; enough versions for a takeover of a takeover",
)

_SWITCHES = frozenset({"crash", "reply_lost", "commit_duplicated"})

CLASSES = Scope(
    "classes",
    sizes={"worker": 2, "commit": 2},
    bounds={"lease_version": 3, "state_version": 2, "incarnation": 1},
    switches=_SWITCHES,
    why="the starts: two handles, two commits on their way, a takeover of a takeover, a restart",
)
STATEMENTS = Scope(
    "statements",
    sizes={"worker": 2, "commit": 3},
    bounds={"lease_version": 5, "state_version": 4, "incarnation": 2},
    switches=_SWITCHES,
    why="room for what follows a start: two calls, a takeover, a commit of the new owner, a restart",
)

COUNTERPART = Counterpart(
    model="core",
    where=__name__,
    performances=PERFORMANCES,
    stored=STORED,
    reach=lambda _: Reach(SCOPE, starts=CLASSES, statements=STATEMENTS),
)
