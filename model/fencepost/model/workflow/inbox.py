"""Requests of those without a lease (§4): recorded in the inbox in one guarded transaction, and nothing else.

What a request asks for happens only in a commit of the owner that names it.
"""

from __future__ import annotations

from fencepost.model.core.state import NETWORK, STORE
from fencepost.model.domains import BOOLEAN, Element, Member
from fencepost.model.language import State, implies, refuse_unless, switched, when
from fencepost.model.workflow.state import (
    REQUESTER,
    Stands,
    Status,
    Wish,
    fingerprints,
    is_decision,
    requests,
    steps,
    workflow,
)


@workflow.action(REQUESTER, switch="cancels", r=workflow.fresh(requests, unless="wish"))
def ask_to_cancel(s: State, r: Element) -> None:
    """Somebody asks for the instance to be cancelled."""
    when(s.begun)

    s.wish[r] = Wish.cancel
    s.arriving[r] = True


@workflow.action(
    REQUESTER, switch="gates", r=workflow.fresh(requests, unless="wish"), x=steps, fingerprint=fingerprints,
    agrees=BOOLEAN,
)  # fmt: skip
def decide_approval(s: State, r: Element, x: Element, fingerprint: Element, agrees: bool) -> None:
    """Somebody approves or rejects what a step is to do, as it was shown to them."""
    when(s.begun)

    s.wish[r] = Wish.approve if agrees else Wish.reject
    s.about[r] = x
    s.approves[r] = fingerprint
    s.arriving[r] = True


@workflow.action(REQUESTER, switch="operator", r=workflow.fresh(requests, unless="wish"), x=steps, wish=Wish)
def decide_by_hand(s: State, r: Element, x: Element, wish: Member) -> None:
    """An operator says what is to become of a step that is in a person's hands."""
    when(s.begun)
    when(wish != Wish.cancel and wish != Wish.approve and wish != Wish.reject and wish != Wish.late_result)

    s.wish[r] = wish
    s.about[r] = x
    s.arriving[r] = True


@workflow.operation(NETWORK, home=STORE, r=requests, again=BOOLEAN)
def record_request(s: State, r: Element, again: bool) -> None:
    """A copy of a request arrives and the store records it; with `again`, another copy is on its way."""
    when(s.arriving[r])
    when(implies(again, switched("request_duplicated")))
    s.arriving[r] = again
    if s.stands[r] != Stands.nowhere:
        return
    refuse_unless(not s.finished or s.wish[r] == Wish.late_result, "finished")
    if s.wish[r] == Wish.approve:
        refuse_unless(not s.late[s.about[r].value], "deadline-passed")
        s.in_time[r] = True
    if is_decision(s, r):
        refuse_unless(s.status[s.about[r].value] == Status.manual_intervention, "nothing-to-decide")

    s.stands[r] = Stands.inbox
