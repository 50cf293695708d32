"""How notifications go out: intended, sent under their key until it is committed that they were (§6, §13).

A worker commits that a notification is to be sent, sends it, waits for the reply and commits that it was
sent. It may crash in between, and cannot tell a slow reply from a lost one; whoever finds the first commit
and not the second sends again, under the same key.
"""

from __future__ import annotations

from fencepost.model.core.state import NETWORK, STORE, WORKER
from fencepost.model.domains import BOOLEAN, Element, Member
from fencepost.model.language import State, implies, ite, refuse_unless, switched, when
from fencepost.model.triggers.state import (
    REQUESTER,
    Notice,
    Torn,
    instances,
    kinds,
    notices,
    target_versions,
    triggers,
)


@triggers.action(REQUESTER)
def change_target(s: State) -> None:
    """The recipient's target changes: what was sent to the former one is owed to the new one, too."""
    s.target = s.target + 1


@triggers.operation(WORKER, home=STORE, i=instances, k=kinds)
def intend_notice(s: State, i: Element, k: Element) -> None:
    """A worker commits that a notification is to be sent to the target as it stands, before it is sent."""
    when(s.row[i].present)
    if s.intended[i, k, s.target]:
        return
    refuse_unless(not s.row[i].finished, "finished")

    s.intended[i, k, s.target] = True
    s.row[i] = s.row[i].changed(state=s.row[i].state + 1)


@triggers.action(
    WORKER,
    i=instances,
    k=kinds,
    target=target_versions,
    n=triggers.fresh(notices, unless="notice"),
    key=target_versions,
)
def send_notice(s: State, i: Element, k: Element, target: int, n: Element, key: int) -> None:
    """A worker sends a notification that the store holds as intended, and not as sent."""
    when(s.intended[i, k, target])
    when(not s.settled[i, k, target])
    when(key == target or switched("key_per_retry"))

    s.notice[n] = Notice(instance=i, kind=k, target=target, key=key)
    s.in_flight[n] = True
    s.awaited[n] = True


@triggers.action(NETWORK, n=notices, again=BOOLEAN, torn=Torn)
def decide_notice(s: State, n: Element, again: bool, torn: Member) -> None:
    """A copy of a notice reaches the recipient, which takes it unless it knows the key, and answers ok."""
    when(s.in_flight[n])
    when(implies(again, switched("notice_duplicated")))
    when(implies(torn != Torn.whole, switched("two_transactions")))
    s.in_flight[n] = again
    sent = s.notice[n].value

    if not s.kept[sent.instance, sent.kind, sent.key]:
        if torn != Torn.record_only:
            take_notice(s, n)
        if torn != Torn.effect_only:
            s.kept[sent.instance, sent.kind, sent.key] = True
    if torn == Torn.whole:
        s.reply[n] = True


def take_notice(s: State, n: Element) -> None:
    """The notification reaches its target."""
    sent = s.notice[n].value
    s.received[sent.instance, sent.kind, sent.target] = True
    s.landings[n] = ite(s.landings[n], False, True)


def learn_recorded(s: State, n: Element, answer: Member) -> None:
    """Whatever the answer, the worker is done with this notice."""
    s.awaited[n] = False
    s.reply[n] = False


@triggers.operation(WORKER, home=STORE, answered=learn_recorded, n=notices)
def record_notice(s: State, n: Element) -> None:
    """A worker that has a reply commits that the notification was sent; once that is known, it stays so."""
    when(s.awaited[n])
    when(s.reply[n])
    sent = s.notice[n].value
    if s.settled[sent.instance, sent.kind, sent.target]:
        return
    refuse_unless(not s.row[sent.instance].finished, "finished")

    s.settled[sent.instance, sent.kind, sent.target] = True
    s.row[sent.instance] = s.row[sent.instance].changed(state=s.row[sent.instance].state + 1)
