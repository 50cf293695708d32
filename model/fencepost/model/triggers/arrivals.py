"""How triggers come in: a source delivers an event until it is answered, the store begins one instance (§4).

A trigger is a request of somebody without a lease. The store writes the row and the dedup record in one
transaction, and answers what comes again with the instance that there is.
"""

from __future__ import annotations

from fencepost.model.core.state import NETWORK, STORE
from fencepost.model.domains import BOOLEAN, Element, Member
from fencepost.model.language import State, absent, implies, refuse_unless, switched, when
from fencepost.model.triggers.state import (
    SOURCE,
    Answer,
    Kept,
    Request,
    Row,
    Torn,
    events,
    fingerprints,
    instances,
    requests,
    sources,
    triggers,
)


@triggers.action(
    SOURCE,
    a=sources,
    e=events,
    r=triggers.fresh(requests, unless="request"),
    key=events,
    fingerprint=fingerprints,
)
def send_trigger(s: State, a: Element, e: Element, r: Element, key: Element, fingerprint: Element) -> None:
    """A source delivers an event, for the first time or again, as long as it knows of no answer."""
    when(not s.answered[a, e])
    when(key == e or switched("key_per_retry"))
    when(not s.payload[a, e].present or s.payload[a, e] == fingerprint or switched("payload_changed"))

    if not s.payload[a, e].present:
        s.payload[a, e] = fingerprint
    s.request[r] = Request(source=a, event=e, key=key, fingerprint=fingerprint)
    s.arriving[r] = True


def send_answer(s: State, r: Element, i: Element, again: bool, torn: Member, answer: Member) -> None:
    """The answer starts on its way back, with the instance if it is ok; a store that died answers nothing."""
    if torn == Torn.whole:
        s.answer[r] = answer
    if torn != Torn.whole or answer != Answer.ok:
        s.told[r] = absent


@triggers.operation(
    NETWORK,
    home=STORE,
    answered=send_answer,
    r=requests,
    i=triggers.fresh(instances, unless="given"),
    again=BOOLEAN,
    torn=Torn,
)
def decide_trigger(s: State, r: Element, i: Element, again: bool, torn: Member) -> None:
    """A copy of a request arrives and the store decides it; with `again`, another copy is on its way."""
    when(s.arriving[r])
    when(implies(again, switched("trigger_duplicated")))
    when(implies(torn != Torn.whole, switched("two_transactions")))
    s.arriving[r] = again
    sent = s.request[r].value
    kept = s.record[sent.source, sent.key]
    if kept.present:
        refuse_unless(kept.fingerprint == sent.fingerprint, "key-conflict")
        s.told[r] = kept.instance
    else:
        if torn != Torn.record_only:
            begin(s, r, i)
        if torn != Torn.effect_only:
            s.record[sent.source, sent.key] = Kept(fingerprint=sent.fingerprint, instance=i)
        s.given[i] = True
        s.told[r] = i


def begin(s: State, r: Element, i: Element) -> None:
    """The row of a new instance: its input, and both versions 0."""
    sent = s.request[r].value
    s.row[i] = Row(
        source=sent.source, event=sent.event, fingerprint=sent.fingerprint, lease=0, state=0, finished=False
    )


@triggers.action(SOURCE, r=requests)
def receive_answer(s: State, r: Element) -> None:
    """An answer reaches the source: with ok, the event was taken, and is not delivered again."""
    when(s.answer[r] != Answer.none)
    sent = s.request[r].value

    if s.answer[r] == Answer.ok:
        s.answered[sent.source, sent.event] = True
    s.answer[r] = Answer.none
    s.told[r] = absent
