"""The downstream: fence, then key (§7). Each call is one transaction, with its record and token."""

from __future__ import annotations

from fencepost.model.core.state import NETWORK
from fencepost.model.domains import BOOLEAN, Element, Member
from fencepost.model.language import State, derived, implies, ite, refuse_unless, switched, when
from fencepost.model.workflow.state import DOWNSTREAM, Answer, Kind, calls, workflow


def send_reply(s: State, c: Element, answer: Member) -> None:
    """The answer starts on its way back: the refusal, or what is kept."""
    sent = s.call[c].value
    s.reply[c] = answer
    if answer == Answer.ok and switched("keyed"):
        s.reply[c] = told(s.record[sent.step, sent.deed, sent.intent].value)
    if switched("fenced") and (s.reply[c] == Answer.ok or (sent.buries and s.reply[c] == Answer.tombstoned)):
        s.contacted = ite(sent.token > s.contacted, sent.token, s.contacted)


@derived
def told(kind: Member) -> object:
    """The reply that tells of what is kept."""
    if kind == Kind.receipt:
        return Answer.ok
    if kind == Kind.tombstone:
        return Answer.tombstoned
    return Answer.declined


@workflow.operation(NETWORK, home=DOWNSTREAM, answered=send_reply, c=calls, again=BOOLEAN, declines=BOOLEAN)
def decide_call(s: State, c: Element, again: bool, declines: bool) -> None:
    """A copy of a call arrives and the downstream decides it; with `again`, another copy is on its way."""
    when(s.in_flight[c])
    when(implies(again, switched("call_duplicated")))
    when(implies(declines, switched("declining")))
    s.in_flight[c] = again
    sent = s.call[c].value
    kept = s.record[sent.step, sent.deed, sent.intent]
    refuse_unless(not switched("fenced") or sent.token >= s.fence, "stale-token")
    if switched("keyed") and kept.present:
        refuse_unless(sent.buries or kept.value != Kind.tombstone, "tombstoned")
        if kept.value != Kind.declined:
            record_token(s, c)
    elif sent.buries:
        keep(s, c, Kind.tombstone)
        s.buried[sent.step, sent.deed, sent.intent] = True
    elif switched("keyed") and declines:
        keep(s, c, Kind.declined)
    else:
        refuse_unless(not declines, "declined")
        take_effect(s, c)
        keep(s, c, Kind.receipt)


def take_effect(s: State, c: Element) -> None:
    """The effect takes place."""
    sent = s.call[c].value
    s.happened[sent.step, sent.deed, sent.intent] = True
    s.landings[c] = ite(s.landings[c], False, True)


def keep(s: State, c: Element, kind: Member) -> None:
    """What was decided is kept under the key, and the token of an answer that is no refusal with it."""
    sent = s.call[c].value
    if switched("keyed"):
        s.record[sent.step, sent.deed, sent.intent] = kind
    if kind != Kind.declined:
        record_token(s, c)


def record_token(s: State, c: Element) -> None:
    """The token of the call becomes the fence: no lower one is accepted from now on."""
    if switched("fenced"):
        s.fence = s.call[c].token
