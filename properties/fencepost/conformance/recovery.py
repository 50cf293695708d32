"""Recovery, with an implementation: how each action is done, and where each variable is observed (§8, §14).

A worker is called one part of its recovery at a time, and after each call it is asked how far it is: `phase`,
`view` and `believes` are what the implementation has in memory, not what the model thinks. Where the model
takes up the steps or begins with the first, and where it finds a bad checkpoint, the call is the same; which
of them it is, the implementation says.

A worker whose lease was taken over meanwhile does not look at the checkpoint here. In the model it may take
up the steps, or report a checkpoint that a later owner wrote; an implementation may as well end at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from fencepost.conformance import core
from fencepost.conformance.adapter import Adapter, Answer, Capability
from fencepost.conformance.counterparts import Counterpart, Reach
from fencepost.conformance.mapping import Lease, Performance, performing
from fencepost.conformance.recovering import (
    Checkpoint,
    Recovered,
    RecoveringAdapter,
    RecoveringWorker,
    RecoveryAdapter,
    RecoveryObservation,
    Steps,
)
from fencepost.conformance.recovery_aims import AIMS
from fencepost.conformance.vocabulary import CannotEmbedError, Seen
from fencepost.model import Scope, State, absent
from fencepost.model.concrete import values_of
from fencepost.model.core.state import state_versions, workers
from fencepost.model.domains import Element, Member
from fencepost.model.recovery.state import Phase, Status, definitions, step_numbers

if TYPE_CHECKING:
    from fencepost.conformance.session import Session

PERFORMANCES: dict[str, Performance] = {
    name: core.PERFORMANCES[name] for name in ("expire", "pause", "resume")
}

performs = performing(PERFORMANCES, needs=Capability.RECOVERY)


# -- The worker.


def _worker(session: Session, w: Element) -> RecoveringWorker:
    return cast("RecoveringWorker", session.worker(w))


def _adapter(session: Session) -> RecoveringAdapter:
    return cast("RecoveringAdapter", session.plan.adapter)


def _noted(session: Session, w: Element, told: Answer, *, lost: bool = False) -> Answer:
    """The answer; how far the worker now is, is remembered."""
    worker = _worker(session, w)
    if lost:
        worker.unheard()
    session.names.notes[w.label] = worker.recovered()
    return told


@performs("check")
def check(session: Session, w: Element) -> Answer:
    """The call."""
    return _noted(session, w, _worker(session, w).check())


@performs("acquire", lease=Lease.BEGINS)
def acquire(session: Session, w: Element, lost: bool) -> Answer:  # noqa: FBT001
    """The call; the worker is told when its answer is lost."""
    return _noted(session, w, session.worker(w).acquire(lease_ms=session.lease_ms), lost=lost)


@performs("reread")
def reread(session: Session, w: Element) -> Answer:
    """The call."""
    return _noted(session, w, session.worker(w).read())


def _has_the_lease(s: State, w: Element, *others: Any) -> object:  # noqa: ARG001
    """Whether nobody has taken over from a worker that believes to have the lease."""
    return s.believes[w].lease == s.lease_version


def _has_resumed(session: Session, w: Element) -> bool:
    return _worker(session, w).recovered().phase in ("resumed", "misfit")


def _turned_out(session: Session, w: Element, *lost: bool) -> tuple[str, tuple[Any, ...]]:
    """What a worker did that was to resume, by where it is afterwards."""
    if not _has_resumed(session, w):
        return "release", (w, *(lost or (False,)))
    checkpoint = session.state[session.plan.oracle.protocol.position("checkpoint")]
    return ("begin" if checkpoint is absent else "take_up"), (w,)


_RESUMING = {"tells_of_row": False, "sensible": _has_the_lease, "turned_out": _turned_out}


@performs("take_up", **_RESUMING)
def take_up(session: Session, w: Element) -> Answer:
    """The call that resumes."""
    return _noted(session, w, _worker(session, w).resume())


@performs("begin", **_RESUMING)
def begin(session: Session, w: Element) -> Answer:
    """The call that resumes."""
    return _noted(session, w, _worker(session, w).resume())


@performs("release", lease=Lease.ENDS, **_RESUMING)
def release(session: Session, w: Element, lost: bool) -> Answer:  # noqa: FBT001
    """The call that resumes, or finds that it must not: then there is an answer to lose."""
    told = _worker(session, w).resume()
    return _noted(session, w, told, lost=lost and not _has_resumed(session, w))


@performs("commit", tells_of_row=False)
def commit(session: Session, w: Element, change: Member, lost: bool) -> Answer:  # noqa: FBT001
    """The call."""
    return _noted(session, w, _worker(session, w).change(change.name), lost=lost)


@performs("give")
def give(session: Session) -> None:
    """Somebody approves."""
    _adapter(session).give(session.world, now_ms=session.now_ms)


# -- What goes wrong with workers, and what is deployed.


@performs("crash")
def crash(session: Session, w: Element) -> None:
    """The worker's handle is gone."""
    session.drop(w)
    session.names.notes[w.label] = Recovered()


def _opened(session: Session, w: Element, definition: int) -> None:
    session.open(w, session.model.incarnation[w] + 1)
    worker = _worker(session, w)
    worker.deploy(definition)
    session.names.notes[w.label] = worker.recovered()


@performs("restart")
def restart(session: Session, w: Element) -> None:
    """A new handle, of the next incarnation, with the same code."""
    _opened(session, w, session.model.code[w])


@performs("deploy")
def deploy(session: Session, w: Element, d: int) -> None:
    """A new handle, of the next incarnation, with other code."""
    session.drop(w)
    _opened(session, w, d)


@performs("register_migration")
def register_migration(session: Session, old: int, new: int) -> None:
    """All workers learn of it."""
    _adapter(session).register_migration(session.world, old, new)


# -- What befalls the checkpoint.


def _here(session: Session) -> Checkpoint:
    """The checkpoint as the model has it."""
    return _neutral(session.state[session.plan.oracle.protocol.position("checkpoint")])


def _plant(session: Session, checkpoint: Checkpoint | None) -> None:
    _adapter(session).plant(session.world, checkpoint)


def _spoil(session: Session, knowingly: bool, **changes: Any) -> None:  # noqa: FBT001
    _plant(session, replace(_here(session), **changes, hash_fits=knowingly, mac_fits=False))


@performs("change_content")
def change_content(session: Session, knowingly: bool, done: int, now: Member) -> None:  # noqa: FBT001
    """The content is changed by the back door."""
    _spoil(session, knowingly, steps=Steps(done, now.name))


@performs("change_versions")
def change_versions(session: Session, knowingly: bool, lease: int, state: int) -> None:  # noqa: FBT001
    """The versions are changed by the back door."""
    _spoil(session, knowingly, lease_version=lease, state_version=state)


@performs("change_header")
def change_header(
    session: Session, knowingly: bool, readable: bool, ours: bool, d: int  # noqa: FBT001
) -> None:  # fmt: skip
    """The header is changed by the back door."""
    _spoil(session, knowingly, readable=readable, ours=ours, definition=d)


@performs("lose_checkpoint")
def lose_checkpoint(session: Session) -> None:
    """The checkpoint is taken away by the back door."""
    _plant(session, None)


@performs("replay_earlier")
def replay_earlier(session: Session, v: int) -> None:
    """The checkpoint of an earlier commit is put back."""
    entry = _entry(session, v)
    _plant(session, _written(entry, entry[2], v))


@performs("replay_refused")
def replay_refused(session: Session, lease: int, done: int, now: Member) -> None:
    """A checkpoint is put there that a former owner might have made."""
    _put_in_place(session, lease, Steps(done, now.name))


@performs("misplace")
def misplace(session: Session, done: int, now: Member) -> None:
    """The checkpoint of another instance is put there."""
    latest = _entry(session, session.model.state_version)
    _put_in_place(session, latest[2], Steps(done, now.name), ours=False)


def _entry(session: Session, version: int) -> Any:
    """An entry of the log as the model has it: steps, definition, lease version, and whether by hand."""
    return session.state[session.plan.oracle.protocol.position("log")][version]


def _put_in_place(session: Session, lease: int, steps: Steps, *, ours: bool = True) -> None:
    version = session.model.state_version
    made = _written(_entry(session, version), lease, version)
    _plant(session, replace(made, steps=steps, ours=ours))


def _written(entry: Any, lease: int, version: int) -> Checkpoint:
    (done, now), definition = entry[0], entry[1]
    return Checkpoint(
        readable=True,
        ours=True,
        lease_version=lease,
        state_version=version,
        definition=definition,
        steps=Steps(done, now.name),
        hash_fits=True,
        mac_fits=True,
    )


# -- What is observed.


def _neutral(raw: Any) -> Checkpoint:
    readable, ours, lease, state, definition, (done, now), fits, mac = raw
    return Checkpoint(readable, ours, lease, state, definition, Steps(done, now.name), fits, mac)


def _observed(seen: Seen) -> RecoveryObservation:
    return cast("RecoveryObservation", seen.observation)


def _steps(seen: Seen, steps: Steps) -> Any:
    if not 0 <= steps.done < seen.names.scope.size(step_numbers):
        raise CannotEmbedError(f"{steps.done} steps have succeeded")
    if steps.now not in ("pending", "running", "waiting"):
        raise CannotEmbedError(f"a step is {steps.now!r}")
    return (steps.done, getattr(Status, steps.now))


def _log(seen: Seen) -> tuple[Any, ...]:
    """Entries as they were when their state version was the present one; the last as it is now."""
    found, size = _observed(seen), seen.names.scope.size(state_versions)
    if not 0 <= found.version < size:
        raise CannotEmbedError(f"the state version is {found.version}")
    remembered = seen.names.notes.setdefault("log", {})
    remembered[found.version] = (
        _steps(seen, found.standing),
        _definition(seen, found.definition),
        found.committed_under,
        found.manual,
    )
    nothing = ((0, Status.pending), 0, 0, False)
    return tuple(remembered.get(v, nothing) if v <= found.version else nothing for v in range(size))


def _definition(seen: Seen, number: int) -> int:
    if not 0 <= number < seen.names.scope.size(definitions):
        raise CannotEmbedError(f"the definition is {number}")
    return number


def _checkpoint(seen: Seen) -> Any:
    found = _observed(seen).checkpoint
    if found is None:
        return absent
    return (
        found.readable,
        found.ours,
        found.lease_version,
        found.state_version,
        _definition(seen, found.definition),
        _steps(seen, found.steps),
        found.hash_fits,
        found.mac_fits,
    )


def _recovered(seen: Seen, w: Element) -> Recovered:
    found = seen.names.notes.get(w.label, Recovered())
    return cast("Recovered", found)


def _phases(seen: Seen) -> tuple[Any, ...]:
    return tuple(_phase(_recovered(seen, w).phase) for w in values_of(workers, seen.names.scope))


def _phase(name: str) -> Any:
    if name not in [member.name for member in Phase.members]:
        raise CannotEmbedError(f"a worker's recovery is {name!r}")
    return getattr(Phase, name)


def _views(seen: Seen) -> tuple[Any, ...]:
    return tuple(_steps(seen, _recovered(seen, w).steps) for w in values_of(workers, seen.names.scope))


def _beliefs(seen: Seen) -> tuple[Any, ...]:
    found = [_recovered(seen, w).lease for w in values_of(workers, seen.names.scope)]
    return tuple(absent if lease is None else lease for lease in found)


STORED: Mapping[str, tuple[Callable[[Seen], Any], Capability | None]] = {
    **{name: core.STORED[name] for name in ("owner", "lease_version", "live", "state_version", "finished")},
    "log": (_log, Capability.RECOVERY),
    "checkpoint": (_checkpoint, Capability.RECOVERY),
    "come": (lambda seen: _observed(seen).come, Capability.RECOVERY),
    "reported": (lambda seen: _observed(seen).reported, Capability.RECOVERY),
    "phase": (_phases, Capability.RECOVERY),
    "view": (_views, Capability.RECOVERY),
    "believes": (_beliefs, Capability.RECOVERY),
}
"""For each variable that is observed: its value in rest, and the capability without which it is not."""

# -- How far runs go.

SHARE = 0.25
"""A worker opens its file anew each time it is deployed or restarted; goals bring about every claim."""

_CHECKPOINTS = ("checkpoint_damaged", "checkpoint_replayed")
_DEFINITIONS = ("definition_changed", "migration_registered")


def scope_of(*, has_mac_key: bool) -> Scope:
    """The scope of runs: everything that can befall a checkpoint; without a key, what a hash can find."""
    return _scope("recovery", leases=3, states=3, incarnations=2, has_mac_key=has_mac_key)


def goal_scope(*, has_mac_key: bool) -> Scope:
    """The scope in which goals are looked for."""
    return _scope("goals", leases=3, states=2, incarnations=1, has_mac_key=has_mac_key)


def _scope(
    name: str, *switches: str, leases: int, states: int, incarnations: int, has_mac_key: bool
) -> Scope:
    key = "checkpoint_tampered" if has_mac_key else "mac_key_missing"
    return Scope(
        name,
        sizes={"worker": 2},
        bounds={
            "lease_version": leases,
            "state_version": states,
            "incarnation": incarnations,
            "step": 1,
            "definition": 1,
        },
        switches=frozenset({*switches, *_CHECKPOINTS, *_DEFINITIONS, key, "crash", "reply_lost"}),
        why="two handles that recover one after the other, while checkpoints and definitions change",
    )


def _part(adapter: Adapter) -> Adapter:
    return adapter.recovering() if isinstance(adapter, RecoveryAdapter) else adapter


def _reach(adapter: Adapter) -> Reach:
    has_mac_key = bool(cast("RecoveringAdapter", adapter).has_mac_key)
    return Reach(scope_of(has_mac_key=has_mac_key), goals=(goal_scope(has_mac_key=has_mac_key),), share=SHARE)


COUNTERPART = Counterpart(
    model="recovery",
    where=__name__,
    performances=PERFORMANCES,
    stored=STORED,
    reach=lambda _: Reach(scope_of(has_mac_key=True), goals=(goal_scope(has_mac_key=True),), share=SHARE),
    marked_by="checkpoint",
    needs=Capability.RECOVERY,
    to_write="write what RecoveryAdapter names",
    narrow="with what the adapter has",
    sights=tuple(AIMS.claims.values()),
    part=_part,
    own_reach=_reach,
)
