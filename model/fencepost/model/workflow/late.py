"""Late results (§4): a receipt that reaches a worker when it is no longer the owner is not dropped.

It goes to the inbox with the key that it was got under; the owner merges one with the stored key. Any other
stays there, as evidence. Of a key's fingerprint nothing is said here: `effects` has it.
"""

from __future__ import annotations

from fencepost.model.core.state import WORKER
from fencepost.model.domains import Element
from fencepost.model.language import State, refuse_unless, when
from fencepost.model.workflow.beliefs import commit_on, learn_ended
from fencepost.model.workflow.calls import comes_late, let_go
from fencepost.model.workflow.lifecycle import step_commit
from fencepost.model.workflow.state import (
    Answer,
    Stands,
    Status,
    Wish,
    calls,
    is_offered,
    is_under_way,
    requests,
    workflow,
)


@workflow.action(WORKER, switch="late_results", c=calls, r=workflow.fresh(requests, unless="wish"))
def hand_in(s: State, c: Element, r: Element) -> None:
    """A receipt reaches a worker that is not the owner that sent the call; it hands the receipt in."""
    when(comes_late(s, c))
    sent = s.call[c].value

    s.wish[r] = Wish.late_result
    s.about[r] = sent.step
    s.result_of[r] = sent.intent
    s.arriving[r] = True
    s.reply[c] = Answer.none
    let_go(s, c)


@step_commit(learn_ended, switch="late_results", r=requests)
def merge(s: State, w: Element, x: Element, r: Element, lost: bool) -> None:
    """The owner commits a step's success with the receipt of a late result under the stored key."""
    commit_on(s, w, lost)
    refuse_unless(is_offered(s, r, Wish.late_result, x), "no-such-request")
    refuse_unless(s.result_of[r] == s.intent[x], "no-such-request")
    refuse_unless(is_under_way(s.status[x]), "illegal-transition")

    s.state_version = s.state_version + 1
    s.status[x] = Status.succeeded
    s.succeeded_at[x] = s.state_version
    s.stands[r] = Stands.consumed
