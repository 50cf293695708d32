"""The effects protocol, with an implementation: how each action is done, and where each variable is observed.

The counterpart of `mapping` and `vocabulary` for gate 3 (§6, §7). Keys and fingerprints are named after the
model's values, so a run uses the same ones each time; the evidence that goes with a commit is what its worker
knows in the model. Two variables of history are observed too, since what takes effect outside is not for the
model to say: `landings` and `landed_as`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fencepost.conformance import core
from fencepost.conformance.adapter import (
    Ability,
    Answer,
    Capability,
    Commit,
    Effect,
    Intent,
    Ok,
    StepChange,
)
from fencepost.conformance.counterparts import Counterpart, Reach
from fencepost.conformance.mapping import Performance, performing
from fencepost.conformance.vocabulary import CannotEmbedError, Landing, MappingError, Names, Seen
from fencepost.model import Scope, absent
from fencepost.model.concrete import RunningState, values_of
from fencepost.model.core.state import state_versions
from fencepost.model.domains import Element, Member
from fencepost.model.effects.state import Kind, Knows, Status, calls, fingerprints, intent_versions, revisions

if TYPE_CHECKING:
    from fencepost.conformance.oracle import Oracle, Rest, Transition
    from fencepost.conformance.session import Session

PERFORMANCES: dict[str, Performance] = {
    name: core.PERFORMANCES[name]
    for name in ("acquire", "reread", "expire", "crash", "restart", "pause", "resume")
}


performs = performing(PERFORMANCES, needs=Capability.EFFECTS)


# -- The step: each change is a commit.

STATUSES = {"pending": "pending", "running": "running", "unwinding": "running", "succeeded": "succeeded",
            "cancelled": "cancelled", "manual": "manual_intervention"}  # fmt: skip
"""What §5 calls the statuses of the model; there `unwinding` is running with the reason to undo it."""


def _sent(model: RunningState, names: Names, w: Element, to: Member, *others: Any) -> str:  # noqa: ARG001
    """The id of the commit that a worker sends."""
    owner, believed = names.owner((w, model.incarnation[w])), model.believes[w]
    return f"{owner.worker}.{owner.incarnation}.{believed.lease}-{believed.state}-{to.name}"


@performs("commit", sends=_sent)
def commit(
    session: Session, w: Element, to: Member, fingerprint: Element, lost: bool  # noqa: ARG001, FBT001
) -> Answer:  # fmt: skip
    """The call, with the versions that the worker believes in."""
    model, names = session.model, session.names
    believed = model.believes[w]
    made = Commit(
        commit_id=_sent(model, names, w, to),
        owner=names.owner((w, model.incarnation[w])),
        lease_version=believed.lease,
        state_version=believed.state,
        finishes=to in (Status.succeeded, Status.cancelled),
        change=_change(session, w, to, fingerprint),
    )
    names.commits[made.commit_id] = made
    return session.worker(w).commit(made)


def _change(session: Session, w: Element, to: Member, fingerprint: Element) -> StepChange:
    model, names = session.model, session.names
    former = model.log[model.believes[w].state].intent
    status = STATUSES[to.name]
    if to == Status.running:
        revised = Ability.REVISIONED in session.abilities
        intent = Intent(
            former + 1, names.key(former + 1), fingerprint.label, model.revision if revised else None
        )
        return StepChange(status, intent=intent, evidence=_evidence(model, w, former) if former else None)
    if to == Status.unwinding:
        return StepChange(status, unwinding="withdrawn")
    if to == Status.succeeded:
        return StepChange(status, receipt=names.receipt_of(names.key(former)))
    if to == Status.cancelled:
        return StepChange(status, evidence=_evidence(model, w, former))
    return StepChange(status, reason="it may have happened, and cannot be found out")


def _evidence(model: RunningState, w: Element, version: int) -> str:
    """How the worker knows that the effect has not happened and never will (§6)."""
    if model.knows[w] == Knows.unsent:
        return "unsent"
    kept = model.record[version]
    if kept.present and kept.kind == Kind.tombstone:
        return "tombstoned"
    return "recorded-refusal" if kept.present else "fenced-and-not-found"


# -- The effect.


@performs("send_effect")
def send_effect(session: Session, w: Element, c: Element, key: int, fingerprint: Element) -> None:
    """Nothing reaches the downstream yet."""


@performs("send_tombstone")
def send_tombstone(session: Session, w: Element, c: Element) -> None:
    """Nothing reaches the downstream yet."""


@performs("decide_call", tells_of_row=False, request="c")
def decide_call(
    session: Session, c: Element, again: bool, declines: bool, torn: Member  # noqa: ARG001, FBT001
) -> Answer:  # fmt: skip
    """The request arrives, as its sender made it; that the downstream declines is arranged by the adapter."""
    sent, names = session.model.call[c], session.names
    names.deciding = c.label
    key = names.key(sent.key)
    if sent.buries:
        return noted(session, session.downstream.tombstone(key, sent.fingerprint.label, token=sent.token))
    revised = Ability.REVISIONED in session.abilities
    effect = Effect(key, sent.fingerprint.label, sent.token, sent.revision if revised else None, declines)
    return noted(session, session.downstream.apply(effect))


@performs("raise_fence", tells_of_row=False)
def raise_fence(session: Session, w: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call, with the lease version that the worker believes in as the token."""
    return session.downstream.raise_fence(session.model.believes[w].lease)


@performs("query", tells_of_row=False)
def query(session: Session, w: Element) -> Answer:
    """The call, with the key of the intent as the worker last read it."""
    model = session.model
    version = model.log[model.believes[w].state].intent
    return noted(session, session.downstream.query(session.names.key(version)))


def noted(session: Session, told: Answer) -> Answer:
    """The answer; the receipt that it tells of is remembered, for the commit of the success."""
    if isinstance(told, Ok) and told.held is not None and told.held.receipt is not None:
        session.names.receipts[told.held.key] = told.held.receipt
    return told


@performs("receive_reply")
def receive_reply(session: Session, c: Element) -> None:
    """The harness hands on the answer that it has kept."""


# -- What goes wrong.


@performs("lose_request")
def lose_request(session: Session, c: Element) -> None:
    """The harness never makes the call."""


@performs("lose_reply")
def lose_reply(session: Session, c: Element) -> None:
    """The harness throws away the answer that it has kept."""


@performs("move_revision")
def move_revision(session: Session) -> None:
    """Somebody else changes the resource."""
    session.downstream.change_elsewhere()


@performs("expire_record")
def expire_record(session: Session, key: int) -> None:
    """A downstream that forgets is not run: its claims say nothing then."""
    raise MappingError(f"{session.plan.adapter.name}: no adapter can make key {key} expire")


@performs("restart_downstream")
def restart_downstream(session: Session) -> None:
    """The downstream's handle is closed and opened again."""
    session.restart_downstream()


# -- What is observed.


def _log(seen: Seen) -> tuple[Any, ...]:
    cells: list[Any] = [(Status.pending, 0)] * seen.names.scope.size(state_versions)
    for entry in seen.observation.steps:
        if not 0 < entry.state_version < len(cells):
            raise CannotEmbedError(f"the step was changed at state version {entry.state_version}")
        if not 0 <= entry.intent_version < seen.names.scope.size(intent_versions):
            raise CannotEmbedError(f"the step has an intent of version {entry.intent_version}")
        unwinds = entry.unwinding and entry.status == STATUSES["unwinding"]
        status = "unwinding" if unwinds else next((m for m, s in STATUSES.items() if s == entry.status), "")
        if not status:
            raise CannotEmbedError(f"the step has the status {entry.status!r}")
        cells[entry.state_version] = (getattr(Status, status), entry.intent_version)
    return tuple(cells)


def _intents(seen: Seen) -> tuple[Any, ...]:
    scope, remembered = seen.names.scope, seen.names.intents
    for intent in seen.observation.intents:
        if intent.key != seen.names.key(intent.version):
            raise CannotEmbedError(f"the intent of version {intent.version} has the key {intent.key!r}")
        if (intent.revision or 0) >= scope.size(revisions):
            raise CannotEmbedError(f"the intent expects revision {intent.revision}")
        remembered[intent.version] = (_fingerprint(seen, intent.fingerprint), intent.revision or 0)
    last = max((e.intent_version for e in seen.observation.steps), default=0)
    versions = range(scope.size(intent_versions))
    return tuple(remembered.get(i, absent) if i <= last else absent for i in versions)


def _fingerprint(seen: Seen, name: str) -> Element:
    element: Element
    for element in values_of(fingerprints, seen.names.scope):
        if element.label == name:
            return element
    raise CannotEmbedError(f"a fingerprint {name!r} is stored, which nobody sent")


def _by_key(seen: Seen, found: Mapping[str, Any], nothing: Any) -> tuple[Any, ...]:
    """A value for each intent version, by what is found under its key."""
    keys = [seen.names.key(i) for i in range(seen.names.scope.size(intent_versions))]
    strange = set(found) - set(keys)
    if strange:
        raise CannotEmbedError(f"the downstream knows the key {min(strange)!r}, which nobody sent")
    return tuple(found.get(key, nothing) for key in keys)


def _record(seen: Seen) -> tuple[Any, ...]:
    found = {}
    for held in seen.ledger.held:
        if held.kind == "nothing":
            continue
        if held.kind not in ("receipt", "declined", "tombstone"):
            raise CannotEmbedError(f"under {held.key} is kept {held.kind!r}")
        found[held.key] = (getattr(Kind, held.kind), _fingerprint(seen, held.fingerprint))
    return _by_key(seen, found, absent)


def _happened(seen: Seen) -> tuple[Any, ...]:
    return _by_key(seen, {h.key: True for h in seen.ledger.happened}, nothing=False)


def _landed_as(seen: Seen) -> tuple[Any, ...]:
    return _by_key(seen, {h.key: _fingerprint(seen, h.fingerprint) for h in seen.ledger.happened}, absent)


def _landings(seen: Seen) -> tuple[Any, ...]:
    decisions = [landing.request for landing in seen.landed]  # what landed once more in one is not in here
    return tuple(decisions.count(c.label) % 2 == 1 for c in values_of(calls, seen.names.scope))


def landed_again(
    oracle: Oracle, made: Transition, landed: Sequence[Landing]
) -> list[tuple[Rest, Transition]]:
    """A step for each effect beyond the first that a request had in one decision: to ask the claims about."""
    found = []
    for landing in landed:
        for _ in range(landing.times - 1):
            labels = [c.label for c in values_of(calls, oracle.scope)]
            if landing.request not in labels:
                break
            here, before = labels.index(landing.request), made.state
            cells = list(before[oracle.protocol.position("landings")])
            cells[here] = not cells[here]
            made = made._replace(state=oracle.overlaid(before, {"landings": tuple(cells)}))
            found.append((before, made))
    return found


STORED: Mapping[str, tuple[Callable[[Seen], Any], Capability | None]] = {
    **{name: core.STORED[name] for name in ("owner", "lease_version", "live", "state_version", "finished")},
    "log": (_log, Capability.EFFECTS),
    "intent": (_intents, Capability.EFFECTS),
    "receipt": (lambda seen: seen.observation.receipt is not None, Capability.EFFECTS),
    "fence": (lambda seen: seen.ledger.fence, Capability.EFFECTS),
    "record": (_record, Capability.EFFECTS),
    "revision": (lambda seen: seen.ledger.revision, Capability.EFFECTS),
    "happened": (_happened, Capability.EFFECTS),
    "landings": (_landings, Capability.EFFECTS),
    "landed_as": (_landed_as, Capability.EFFECTS),
}
"""For each variable that is observed: its value in rest, and the capability without which it is not."""


# -- How far runs go.

SWITCHES: Mapping[Ability, tuple[str, ...]] = {
    Ability.FENCED: ("fenced",),
    Ability.KEYED: ("keyed", "intent_rederived"),
    Ability.QUERYABLE: ("queryable",),
    Ability.REVISIONED: ("revisioned", "revision_moved"),
    Ability.DECLINES: ("declining",),
}
"""What the model may do, by what the downstream can."""


def scope_of(abilities: frozenset[Ability]) -> Scope:
    """The scope of runs with a downstream that can do this."""
    return _scope(abilities, "effects", calls=3, leases=3, states=4, incarnations=2, revisions=3)


def goal_scope(abilities: frozenset[Ability]) -> Scope:
    """The scope in which goals are looked for: with a fence, a takeover of a takeover is one."""
    leases = 3 if Ability.FENCED in abilities else 2
    return _scope(abilities, "goals", calls=2, leases=leases, states=3, incarnations=1, revisions=1)


def class_scope(abilities: frozenset[Ability]) -> Scope:
    """The scope of the states from which statements are interleaved."""
    return _scope(abilities, "classes", calls=2, leases=2, states=3, incarnations=1, revisions=1)


def _scope(
    abilities: frozenset[Ability],
    name: str,
    *,
    calls: int,
    leases: int,
    states: int,
    incarnations: int,
    revisions: int,
) -> Scope:
    switches = {switch for ability in abilities for switch in SWITCHES.get(ability, ())}
    return Scope(
        name,
        sizes={"worker": 2, "call": calls, "fingerprint": 2 if Ability.KEYED in abilities else 1},
        bounds={
            "lease_version": leases,
            "state_version": states,
            "intent_version": 2,
            "incarnation": incarnations,
            "revision": revisions if Ability.REVISIONED in abilities else 0,
        },
        switches=frozenset(switches | {"crash", "reply_lost", "request_lost", "request_duplicated"}),
        why="two workers who take over from each other, and requests that are late, lost and repeated",
    )


COUNTERPART = Counterpart(
    model="effects",
    where=__name__,
    performances=PERFORMANCES,
    stored=STORED,
    reach=lambda abilities: Reach(
        scope_of(abilities), goals=(goal_scope(abilities),), starts=class_scope(abilities)
    ),
    marked_by="landed_as",
    needs=Capability.EFFECTS,
    to_write="write what EffectsAdapter names",
    landed_again=landed_again,
    narrow="with such a downstream",
)
