"""The workflow protocol, with an implementation: how each action is done (§4, §5, §9 to §12).

The counterpart of `effects` for instances with several steps; `workflow_commits` has the commits, and
`workflow_seen` says where each variable is observed. What the author chooses in the model is the definition
that the world is begun with. Timers and the deadlines of approvals are moments on the clock, far apart and
farther than any lease lasts: they come when the model says so, and a lease that is live then is renewed
beyond them first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fencepost.conformance import effects, timers
from fencepost.conformance.adapter import Ability, Answer, Capability, Effect
from fencepost.conformance.adapter_workflow import Definition, Request, StepPlan
from fencepost.conformance.counterparts import Counterpart, Reach
from fencepost.conformance.mapping import Lease
from fencepost.conformance.vocabulary import MappingError, Names
from fencepost.conformance.workflow_commits import PERFORMANCES, UNDONE, performs
from fencepost.conformance.workflow_seen import STORED, undo_key, work_key
from fencepost.conformance.workflow_sights import SIGHTS
from fencepost.model import Scope, State
from fencepost.model.concrete import RunningState, values_of
from fencepost.model.core.state import workers
from fencepost.model.domains import Element, Member
from fencepost.model.workflow.state import Answer as Reply
from fencepost.model.workflow.state import Deed, Status, Wish, steps
from fencepost.model.workflow.state import workflow as protocol

if TYPE_CHECKING:
    from fencepost.conformance.session import Session

# -- The definition, which the author chooses before anything happens.


def _planned(session: Session, **chosen: tuple[Element, ...]) -> None:
    """The world is begun anew with the definition that the model has, and what is chosen now."""
    model, scope = session.model, session.names.scope
    plans = []
    for x in values_of(steps, scope):
        needs = [y for y in values_of(steps, scope) if model.needs[x, y] or chosen.get("needs") == (x, y)]
        plans.append(
            StepPlan(
                x.label,
                needs=tuple(y.label for y in needs),
                gated=bool(model.gated[x]) or chosen.get("gated") == (x,),
                undoable=bool(model.undoable[x]) and chosen.get("for_good") != (x,),
            )
        )
    session.begin(Definition(tuple(plans)))


def begin_world(session: Session) -> None:
    """The world as the model begins: steps that depend on nothing, need no approval and can be undone."""
    _planned(session)


@performs("depend")
def depend(session: Session, x: Element, y: Element) -> None:
    """The world is begun anew, with a step that depends on another."""
    _planned(session, needs=(x, y))


@performs("gate")
def gate(session: Session, x: Element) -> None:
    """The world is begun anew, with a step that needs an approval."""
    _planned(session, gated=(x,))


@performs("have_no_compensation")
def have_no_compensation(session: Session, x: Element) -> None:
    """The world is begun anew, with a step that cannot be undone."""
    _planned(session, for_good=(x,))


@performs("begin")
def begin(session: Session) -> None:
    """From now on somebody may ask for something."""


# -- The clock.


@performs("reach_timer", lease=Lease.CARRIES_ON)
def reach_timer(session: Session, x: Element) -> None:
    """The clock comes to the timer."""
    session.reach(timers.moment_of(session.seen, x.label))


@performs("reach_deadline", lease=Lease.CARRIES_ON)
def reach_deadline(session: Session, x: Element) -> None:
    """The clock comes to the moment until which an approval may be recorded."""
    session.reach(timers.moment_of(session.seen, x.label))


# -- Requests.


@performs("ask_to_cancel")
def ask_to_cancel(session: Session, r: Element) -> None:
    """Nothing reaches the inbox yet."""


def _has_a_gate(s: State, r: Element, x: Element, *others: Any) -> object:  # noqa: ARG001
    return s.gated[x]


@performs("decide_approval", sensible=_has_a_gate)
def decide_approval(
    session: Session, r: Element, x: Element, fingerprint: Element, agrees: bool  # noqa: ARG001, FBT001
) -> None:  # fmt: skip
    """Nothing reaches the inbox yet; the intent is the one that was last asked for, or else the first."""
    session.names.notes[f"intent of {r.label}"] = max(1, session.model.intent[x])


@performs("decide_by_hand")
def decide_by_hand(session: Session, r: Element, x: Element, wish: Member) -> None:
    """Nothing reaches the inbox yet."""


@performs("record_request", tells_of_row=False)
def record_request(session: Session, r: Element, again: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call, as its sender made it."""
    return session.requester.request(request_of(session.model, session.names, r))


def request_of(model: RunningState, names: Names, r: Element) -> Request:
    """What was asked for under this name."""
    wish, about, approves = model.wish[r], model.about[r], model.approves[r]
    if wish.value == Wish.late_result:
        step = about.value.label
        key, fingerprint = _key_and_fingerprint(names, about.value, Deed.act, model.result_of[r])
        return Request(r.label, "late-result", step, fingerprint, key, names.receipt_of(key))
    return Request(
        r.label,
        "running" if wish.value == Wish.run_again else wish.value.name,
        about.value.label if about.present else None,
        approves.value.label if approves.present else None,
        intent_version=names.notes.get(f"intent of {r.label}", 1),
    )


@performs("hand_in")
def hand_in(session: Session, c: Element, r: Element) -> None:  # noqa: ARG001
    """The receipt is handed in; nothing reaches the inbox yet."""
    if not session.model.in_flight[c]:
        session.names.let_go(c.label)


@performs("lose_request")
def lose_request(session: Session, r: Element) -> None:
    """The harness never makes the call."""


# -- The downstream.


@performs("send_effect")
def send_effect(session: Session, w: Element, c: Element, x: Element) -> None:
    """Nothing reaches the downstream yet."""


@performs("send_tombstone")
def send_tombstone(session: Session, w: Element, c: Element, x: Element) -> None:
    """Nothing reaches the downstream yet."""


@performs("decide_call", tells_of_row=False, request="c")
def decide_call(session: Session, c: Element, again: bool, declines: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call arrives, as its sender made it; that the downstream declines is arranged by the adapter."""
    sent, names = session.model.call[c].value, session.names
    names.deciding = c.label
    key, fingerprint = _key_and_fingerprint(names, sent.step, sent.deed, sent.intent)
    if sent.buries:
        return effects.noted(session, session.downstream.tombstone(key, fingerprint, token=sent.token))
    return effects.noted(
        session, session.downstream.apply(Effect(key, fingerprint, sent.token, declines=declines))
    )


@performs("query", tells_of_row=False)
def query(session: Session, w: Element, x: Element) -> Answer:
    """The call, with the key of what the worker last read to be under way."""
    seen = session.model.seen[w, x]
    deed = Deed.undo if seen.status == Status.compensating else Deed.act
    key, _ = _key_and_fingerprint(session.names, x, deed, seen.intent)
    return effects.noted(session, session.downstream.query(key))


def _key_and_fingerprint(names: Names, x: Element, deed: Member, version: int) -> tuple[str, str]:
    if deed == Deed.undo:
        return undo_key(x.label, version), UNDONE
    key = work_key(x.label, version)
    return key, names.intents.get(key, "never stored")


@performs("lose_call")
def lose_call(session: Session, c: Element) -> None:
    """The harness never makes the call."""
    if session.model.reply[c] == Reply.none:
        session.names.let_go(c.label)


@performs("receive_reply")
def receive_reply(session: Session, c: Element) -> None:
    """The harness hands on the answer that it has kept."""
    if not session.model.in_flight[c]:
        session.names.let_go(c.label)


@performs("lose_reply")
def lose_reply(session: Session, c: Element) -> None:
    """The harness throws away the answer that it has kept."""
    if not session.model.in_flight[c]:
        session.names.let_go(c.label)


@performs("expire_record")
def expire_record(session: Session, x: Element, deed: Member, i: int) -> None:  # noqa: ARG001
    """A downstream that forgets is not run: its claims say nothing then."""
    raise MappingError(f"{session.plan.adapter.name}: no adapter can make the key of {x.label} expire")


# -- How far runs go.

SWITCHES = {
    Ability.FENCED: ("fenced",),
    Ability.KEYED: ("keyed",),
    Ability.DECLINES: ("declining",),
}
"""What the model may do, by what the downstream can."""

_ALWAYS = frozenset({
    "chained", "gates", "irreversible", "retries", "intent_renewed", "cancels", "operator", "late_results",
    "crash", "pause", "reply_lost", "call_lost", "call_duplicated", "request_lost", "request_duplicated",
})  # fmt: skip

GOALS_IN = ("quick-step", "quick-two", "quick-owners", "quick-calls", "quick-requests", "approved",
            "approved-anew", "undone", "handed-in")  # fmt: skip
"""The scopes of the model in which goals are looked for: between them every claim is exercised."""


def scope_of(abilities: frozenset[Ability]) -> Scope:
    """The scope of runs with a downstream that can do this."""
    switches = {switch for ability in abilities for switch in SWITCHES.get(ability, ())}
    return Scope(
        "workflow",
        sizes={"worker": 2, "step": 2, "call": 2, "request": 2, "fingerprint": 2},
        bounds={"lease_version": 4, "state_version": 14, "intent_version": 2, "attempt": 2, "incarnation": 2},
        switches=_ALWAYS | switches,
        why="two workers, two steps that may depend on each other, two requests, and all that goes wrong",
    )


def goal_scopes(abilities: frozenset[Ability]) -> tuple[Scope, ...]:
    """The model's own scopes, with a downstream that can do this."""
    runs = scope_of(abilities)
    downstream = runs.switches - _ALWAYS
    found = (protocol.scopes[name] for name in GOALS_IN)
    more = {"quick-two": {"irreversible"}}
    two = protocol.scopes["quick-two"]
    by_hand = two.but(name="quick-two, by hand", switches=two.switches | {"operator"})
    scopes = (*found, by_hand)
    return tuple(
        s.but(switches=(s.switches & _ALWAYS) | downstream | more.get(s.name, set())) for s in scopes
    )


COUNTERPART = Counterpart(
    model="workflow",
    sights=tuple(SIGHTS),
    where=__name__,
    performances=PERFORMANCES,
    stored=STORED,
    reach=lambda abilities: Reach(scope_of(abilities), goals=goal_scopes(abilities), share=0.1, sparing=True),
    marked_by="undoable",
    needs=Capability.WORKFLOW,
    to_write="write what WorkflowAdapter names",
    landed_again=effects.landed_again,
    begin=begin_world,
    narrow="with such a downstream",
)

assert workers  # a parameter of most actions  # noqa: S101
