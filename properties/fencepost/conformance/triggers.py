"""Triggers and notifications, with an implementation: how each action is done, where variables are observed.

The counterpart of the model of §13; `triggers_handles` is what a run has open. What a source was told is
observed, and so is what has reached a target, since neither is for the model to say. The target's version is
the harness's own: a store is given it with each notification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fencepost.conformance.adapter import Answer, Capability, Ok, Refused, Surroundings
from fencepost.conformance.adapter_triggers import Note, Trigger, Triggered, TriggersAdapter
from fencepost.conformance.counterparts import Counterpart, Reach, refuse_without
from fencepost.conformance.goals import Goal
from fencepost.conformance.mapping import Performance, performing
from fencepost.conformance.triggers_handles import Handles, outlive
from fencepost.conformance.vocabulary import CannotEmbedError, Landing, MappingError, Seen
from fencepost.model import Scope, absent
from fencepost.model.concrete import values_of
from fencepost.model.domains import Element, Member, Sort
from fencepost.model.triggers.state import (
    events,
    fingerprints,
    instances,
    kinds,
    notices,
    requests,
    sources,
    target_versions,
)

if TYPE_CHECKING:
    from fencepost.conformance.oracle import Oracle, Rest, Transition
    from fencepost.conformance.session import Session


def _handles(session: Session) -> Handles:
    found = session.names.handles
    if not isinstance(found, Handles):
        raise MappingError(f"{session.plan.adapter.name}: there are no triggers; {COUNTERPART.remedy()}")
    return found


def open_handles(adapter: Any, world: Any, around: Surroundings, scope: Scope) -> Handles:
    """What a run of an adapter with triggers has open. UsageError if it has not what that takes."""
    refuse_without(adapter, Capability.TRIGGERS, TriggersAdapter)
    return Handles(adapter, world, around, scope)


PERFORMANCES: dict[str, Performance] = {}

performs = performing(PERFORMANCES, needs=Capability.TRIGGERS)

# -- Triggers.


@performs("send_trigger")
def send_trigger(
    session: Session, a: Element, e: Element, r: Element, key: Element, fingerprint: Element
) -> None:
    """Nothing reaches the store yet."""


@performs("decide_trigger", tells_of_row=False)
def decide_trigger(
    session: Session, r: Element, i: Element, again: bool, torn: Member  # noqa: ARG001, FBT001
) -> Answer:  # fmt: skip
    """The trigger arrives, as its source sent it."""
    handles, sent = _handles(session), session.model.request[r]
    trigger = Trigger(sent.source.label, sent.key.label, sent.fingerprint.label, i.label)
    handles.deciding = (i, trigger)
    handles.told[r.label] = None
    told = handles.desk_for(r.label).deliver(trigger)
    if isinstance(told, Ok | Refused):
        handles.told[r.label] = told.instance
    return told


@performs("receive_answer")
def receive_answer(session: Session, r: Element) -> None:
    """The harness hands on the answer that it has kept."""
    _handles(session).told[r.label] = None


@performs("lose_trigger")
def lose_trigger(session: Session, r: Element) -> None:
    """The harness never makes the call."""


@performs("lose_answer")
def lose_answer(session: Session, r: Element) -> None:
    """The harness throws away the answer that it has kept."""
    _handles(session).told[r.label] = None


# -- The instance.


@performs("acquire", tells_of_row=False)
def acquire(session: Session, i: Element) -> Answer:
    """The call, by a worker that has never been, once the former lease has run out."""
    handles, name = _handles(session), _handles(session).named(i)
    outlive(session, handles.row(name))
    return handles.take_over(name)


@performs("finish", tells_of_row=False)
def finish(session: Session, i: Element) -> Answer:
    """The call."""
    handles, name = _handles(session), _handles(session).named(i)
    hand = handles.hand(session, name)
    if isinstance(hand, Answer):
        return hand
    handles.commits += 1
    return hand.finish(name, f"end-{handles.commits}")


# -- Notifications.


@performs("change_target")
def change_target(session: Session) -> None:
    """The harness gives the next notifications the next version of the target."""
    _handles(session).target += 1


@performs("intend_notice", tells_of_row=False)
def intend_notice(session: Session, i: Element, k: Element) -> Answer:
    """The call, for the target as it stands."""
    handles = _handles(session)
    note = Note(handles.named(i), k.label, handles.target)
    hand = handles.hand(session, note.instance)
    return hand if isinstance(hand, Answer) else hand.intend(note)


@performs("send_notice")
def send_notice(session: Session, i: Element, k: Element, target: int, n: Element, key: int) -> None:
    """Nothing reaches the recipient yet."""


@performs("decide_notice", tells_of_row=False)
def decide_notice(session: Session, n: Element, again: bool, torn: Member) -> Answer:  # noqa: ARG001, FBT001
    """The notification arrives, as its worker sent it."""
    handles = _handles(session)
    handles.taking = n.label
    return handles.recipient_for(n.label).take(_note(session, n))


@performs("record_notice", tells_of_row=False)
def record_notice(session: Session, n: Element) -> Answer:
    """The call."""
    note = _note(session, n)
    hand = _handles(session).hand(session, note.instance)
    return hand if isinstance(hand, Answer) else hand.record(note)


def _note(session: Session, n: Element) -> Note:
    sent = session.model.notice[n]
    return Note(_handles(session).named(sent.instance), sent.kind.label, sent.target)


@performs("lose_notice")
def lose_notice(session: Session, n: Element) -> None:
    """The harness never makes the call."""


@performs("lose_reply")
def lose_reply(session: Session, n: Element) -> None:
    """The harness throws away the reply that it has kept."""


# -- What goes wrong.


@performs("crash")
def crash(session: Session, i: Element) -> None:
    """The worker's hand is gone."""
    handles = _handles(session)
    handles.crash(handles.named(i))


@performs("crash_source")
def crash_source(session: Session, a: Element) -> None:  # noqa: ARG001
    """The desk, through which sources hand in their events, is closed and opened again."""
    _handles(session).restart_desk()


@performs("expire_trigger")
def expire_trigger(session: Session, a: Element, key: Element) -> None:  # noqa: ARG001
    """A store that forgets is not run: its claims say nothing then."""
    raise MappingError(f"{session.plan.adapter.name}: no adapter can make the record of {key.label} expire")


@performs("expire_notice")
def expire_notice(session: Session, i: Element, k: Element, key: int) -> None:  # noqa: ARG001
    """A recipient that forgets is not run: its claims say nothing then."""
    raise MappingError(f"{session.plan.adapter.name}: no adapter can make key {key} expire")


@performs("restart_store")
def restart_store(session: Session) -> None:
    """The desk is closed and opened again."""
    _handles(session).restart_desk()


@performs("restart_recipient")
def restart_recipient(session: Session) -> None:
    """The recipient is closed and opened again."""
    _handles(session).restart_recipient()


# -- What is observed.


def _seen(seen: Seen) -> tuple[Triggered, Handles]:
    found, handles = seen.observation.more, seen.names.handles
    if not isinstance(found, Triggered) or not isinstance(handles, Handles):
        raise MappingError("triggers are observed by what `observe_triggers` gives; it gave something else")
    return found, handles


def _labelled(sort: Sort, label: str, scope: Scope) -> Element:
    element: Element
    for element in values_of(sort, scope):
        if element.label == label:
            return element
    raise CannotEmbedError(f"a {sort.name} {label!r} is stored, which nobody sent")


def _rows(seen: Seen) -> tuple[Any, ...]:
    found, handles = _seen(seen)
    scope, cells = seen.names.scope, {}
    for row in found.rows:
        given = handles.input_of(row)
        i = handles.element(row.instance)
        if i in cells:
            raise CannotEmbedError(f"there are two rows of the instance {row.instance!r}")
        cells[i] = (
            _labelled(sources, given.source, scope),
            _labelled(events, given.event, scope),
            _labelled(fingerprints, given.fingerprint, scope),
            handles.counted(row),
            row.state_version,
            row.finished,
        )
    return tuple(cells.get(i, absent) for i in values_of(instances, scope))


def _given(seen: Seen) -> tuple[Any, ...]:
    found, handles = _seen(seen)
    names = {row.instance for row in found.rows} | {known.instance for known in found.known}
    given = {handles.element(name) for name in sorted(names)}
    return tuple(i in given for i in values_of(instances, seen.names.scope))


def _records(seen: Seen) -> tuple[Any, ...]:
    found, handles = _seen(seen)
    scope = seen.names.scope
    cells = {
        (_labelled(sources, each.source, scope), _labelled(events, each.event, scope)): (
            _labelled(fingerprints, each.fingerprint, scope),
            handles.element(each.instance),
        )
        for each in found.known
    }
    return tuple(
        cells.get((a, e), absent) for a in values_of(sources, scope) for e in values_of(events, scope)
    )


def _told(seen: Seen) -> tuple[Any, ...]:
    _, handles = _seen(seen)
    named = (handles.told.get(r.label) for r in values_of(requests, seen.names.scope))
    return tuple(absent if name is None else handles.element(name) for name in named)


def _by_note(seen: Seen, notes: Iterable[Note]) -> tuple[Any, ...]:
    _, handles = _seen(seen)
    scope = seen.names.scope
    found = {(handles.element(n.instance), n.kind, n.target_version) for n in notes}
    places = [
        (i, k.label, v)
        for i in values_of(instances, scope)
        for k in values_of(kinds, scope)
        for v in range(scope.size(target_versions))
    ]
    strange = found - set(places)
    if strange:
        raise CannotEmbedError(f"there is a notification that nobody sent: {min(strange, key=str)}")
    return tuple(place in found for place in places)


def _landings(seen: Seen) -> tuple[Any, ...]:
    decisions = [landing.request for landing in seen.landed]  # what landed once more in one is not in here
    return tuple(decisions.count(n.label) % 2 == 1 for n in values_of(notices, seen.names.scope))


STORED: Mapping[str, tuple[Callable[[Seen], Any], Capability | None]] = {
    "row": (_rows, Capability.TRIGGERS),
    "given": (_given, Capability.TRIGGERS),
    "record": (_records, Capability.TRIGGERS),
    "target": (lambda seen: _seen(seen)[1].target, Capability.TRIGGERS),
    "intended": (lambda seen: _by_note(seen, _seen(seen)[0].intended), Capability.TRIGGERS),
    "settled": (lambda seen: _by_note(seen, _seen(seen)[0].recorded), Capability.TRIGGERS),
    "kept": (lambda seen: _by_note(seen, _seen(seen)[0].kept), Capability.TRIGGERS),
    "received": (lambda seen: _by_note(seen, _seen(seen)[0].received), Capability.TRIGGERS),
    "landings": (_landings, Capability.TRIGGERS),
    "told": (_told, Capability.TRIGGERS),
}
"""For each variable that is observed: its value in rest, and the capability without which it is not."""


def landed_again(
    oracle: Oracle, made: Transition, landed: Sequence[Landing]
) -> list[tuple[Rest, Transition]]:
    """A step for each time beyond the first that a notice landed in one decision: to ask the claims about."""
    found = []
    labels = [n.label for n in values_of(notices, oracle.scope)]
    for landing in landed:
        for _ in range(landing.times - 1 if landing.request in labels else 0):
            here, before = labels.index(landing.request), made.state
            cells = list(before[oracle.protocol.position("landings")])
            cells[here] = not cells[here]
            made = made._replace(state=oracle.overlaid(before, {"landings": tuple(cells)}))
            found.append((before, made))
    return found


# -- Where runs go besides: by the codes of the arguments, in which 0 is the first of its kind, or no.

_BEGUN = (("send_trigger", (0, 0, 0, 0, 0)), ("decide_trigger", (0, 0, 0, 0)))
_INTENDED = (*_BEGUN, ("intend_notice", (0, 0)))
_FIRST = (("send_notice", (0, 0, 0, 0, 0)), ("decide_notice", (0, 0, 0)))
_TOLD = (*_INTENDED, *_FIRST)
_TAKEN_OVER = (("crash", (0,)), ("acquire", (0,)))
_AGAIN = (("send_notice", (0, 0, 0, 1, 0)), ("decide_notice", (1, 0, 0)), ("record_notice", (1,)))
_SECOND = (
    ("intend_notice", (0, 0)),
    ("send_notice", (0, 0, 1, 1, 1)),
    ("decide_notice", (1, 0, 0)),
    ("record_notice", (1,)),
)


def _journeys(_: Scope) -> tuple[Goal, ...]:
    recorded = (*_TOLD, ("record_notice", (0,)))
    return (
        Goal("a new owner after a notification", (*recorded, ("acquire", (0,)))),
        Goal("a new owner sends what the former intended", (*_INTENDED, *_TAKEN_OVER, *_FIRST)),
        Goal("another target is told, and that is recorded", (*_TOLD, ("change_target", ()), *_SECOND)),
        Goal("a notice arrives again after a crash", (*_TOLD, ("crash", (0,)), *_AGAIN)),
    )


# -- How far runs go.

_SWITCHES = frozenset({
    "crash", "reply_lost", "trigger_lost", "trigger_duplicated", "payload_changed", "notice_lost",
    "notice_duplicated",
})  # fmt: skip

SCOPE = Scope(
    "triggers",
    sizes={"source": 2, "event": 2, "request": 3, "instance": 4, "fingerprint": 2, "kind": 2, "notice": 3},
    bounds={"lease_version": 3, "state_version": 7, "target_version": 2},
    switches=_SWITCHES,
    why="two sources with events of the same ids, and notices of two kinds that are late, lost and repeated",
)
GOALS = Scope(
    "goals",
    sizes={"source": 2, "event": 1, "request": 2, "instance": 2, "fingerprint": 2, "kind": 1, "notice": 2},
    bounds={"lease_version": 1, "state_version": 3, "target_version": 1},
    switches=_SWITCHES,
    why="two sources whose events have one id, and two notices, which are enough for every witness",
)

COUNTERPART = Counterpart(
    model="triggers",
    where=__name__,
    performances=PERFORMANCES,
    stored=STORED,
    reach=lambda _: Reach(SCOPE, goals=(GOALS,), share=0.25),
    marked_by="notice",
    needs=Capability.TRIGGERS,
    to_write="write what TriggersAdapter names",
    landed_again=landed_again,
    open_handles=open_handles,
    journeys=_journeys,
    assumes="one clock, leases taken where a commit needs one, only calls that the protocol's own make",
)
