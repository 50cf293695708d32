"""Gate 3, the downstream: which outside effect is accepted (§7). The order is fence, key, revision.

Each request is decided in one transaction, with its record and the token, unless the downstream is torn in
two by a switch of the world. What it *keeps* and what has *happened* are variables of their own: a
downstream that loses its records has not undone its effects.
"""

from __future__ import annotations

from fencepost.model.core.state import NETWORK
from fencepost.model.domains import BOOLEAN, Element, Member
from fencepost.model.effects.state import DOWNSTREAM, Answer, Kept, Kind, Torn, calls, effects
from fencepost.model.language import State, derived, implies, ite, refuse_unless, switched, when


def send_reply(s: State, c: Element, again: bool, declines: bool, torn: Member, answer: Member) -> None:
    """The answer starts on its way back: the refusal, or what is kept; who was torn answers nothing."""
    sent = s.call[c].value
    if torn == Torn.whole:
        s.reply[c] = answer
        if answer == Answer.ok and switched("keyed"):
            s.reply[c] = told(s.record[sent.key].kind)
        if switched("fenced") and (
            s.reply[c] == Answer.ok or (sent.buries and s.reply[c] == Answer.tombstoned)
        ):
            s.contacted = ite(sent.token > s.contacted, sent.token, s.contacted)


@derived
def told(kind: Member) -> object:
    """The reply that tells of what is kept."""
    if kind == Kind.receipt:
        return Answer.ok
    if kind == Kind.tombstone:
        return Answer.tombstoned
    return Answer.declined


@effects.operation(
    NETWORK, home=DOWNSTREAM, answered=send_reply, c=calls, again=BOOLEAN, declines=BOOLEAN, torn=Torn
)
def decide_call(s: State, c: Element, again: bool, declines: bool, torn: Member) -> None:
    """A copy of a request arrives and the downstream decides it; with `again`, another copy is on its way."""
    when(s.in_flight[c])
    when(implies(again, switched("request_duplicated")))
    when(implies(declines, switched("declining")))
    when(implies(torn != Torn.whole, switched("two_transactions")))
    s.in_flight[c] = again
    sent = s.call[c].value
    kept = s.record[sent.key]
    refuse_unless(not switched("fenced") or sent.token >= s.fence, "stale-token")
    if switched("keyed") and kept.present:
        refuse_unless(kept.fingerprint == sent.fingerprint, "key-conflict")
        refuse_unless(sent.buries or kept.kind != Kind.tombstone, "tombstoned")
        if kept.kind != Kind.declined:
            record_token(s, c)
    elif sent.buries:
        keep(s, c, Kind.tombstone)
        s.buried[sent.key] = True
    elif switched("keyed") and (declines or not fits(s, c)):
        keep(s, c, Kind.declined)
    else:
        refuse_unless(fits(s, c), "wrong-revision")
        refuse_unless(not declines, "declined")
        if torn != Torn.record_only:
            take_effect(s, c)
        if torn != Torn.effect_only:
            keep(s, c, Kind.receipt)


@derived
def fits(s: State, c: Element) -> object:
    """Whether the resource still has the revision that the request expects."""
    return not switched("revisioned") or s.call[c].revision == s.revision


def take_effect(s: State, c: Element) -> None:
    """The effect takes place."""
    sent = s.call[c].value
    s.happened[sent.intent] = True
    if switched("revisioned"):
        s.revision = s.revision + 1
    s.landings[c] = ite(s.landings[c], False, True)
    s.landed_as[sent.key] = sent.fingerprint
    s.as_intended[sent.intent] = ite(is_as_stored(s, c), True, s.as_intended[sent.intent])


@derived
def is_as_stored(s: State, c: Element) -> object:
    """Whether a request has the parameters of the intent that it is for."""
    sent = s.call[c].value
    return s.intent[sent.intent].present and s.intent[sent.intent].fingerprint == sent.fingerprint


def keep(s: State, c: Element, kind: Member) -> None:
    """What was decided is kept under the key, and the token of an answer that is no refusal with it."""
    sent = s.call[c].value
    if switched("keyed") or switched("queryable"):
        s.record[sent.key] = Kept(kind=kind, fingerprint=sent.fingerprint)
    if kind != Kind.declined:
        record_token(s, c)


def record_token(s: State, c: Element) -> None:
    """The token of the request becomes the fence: no lower one is accepted from now on."""
    if switched("fenced"):
        s.fence = s.call[c].token
