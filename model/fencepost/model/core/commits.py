"""Gate 2, the commit: whose change of state is accepted (§4).

A commit is a message with an id of its own. It may be late, arrive twice or not at all; the store decides
each copy in one transaction, and the id lets sender and store agree on what became of it. A worker may have
several commits on their way, sent on the same beliefs: it runs steps at the same time.
"""

from __future__ import annotations

from fencepost.model.core.state import (
    NETWORK,
    STORE,
    WORKER,
    Answer,
    Request,
    acts,
    commits,
    core,
    in_log,
    me,
    workers,
)
from fencepost.model.domains import BOOLEAN, Element, Member
from fencepost.model.language import State, absent, derived, refuse_unless, switched, when


@derived
def awaits(s: State, c: Element) -> object:
    """Whether the worker that sent commit `c` still runs and waits for its answer."""
    return s.request[c].present and s.awaited[c] and acts(s, s.request[c].by.worker)


@core.action(WORKER, w=workers, c=core.fresh(commits, unless="request"), finishes=BOOLEAN)
def send_commit(s: State, w: Element, c: Element, finishes: bool) -> None:
    """A worker sends a commit, on the versions that it believes to stand."""
    when(acts(s, w))
    when(s.believes[w].present)
    believed = s.believes[w].value

    s.request[c] = Request(by=me(s, w), lease=believed.lease, state=believed.state, finishes=finishes)
    s.in_flight[c] = True
    s.awaited[c] = True


def send_answer(s: State, c: Element, kept: bool, answer: Member) -> None:
    """The answer starts on its way back."""
    s.answer[c] = answer


def refuse_unless_current(s: State, by: object, lease: object, state: object) -> None:
    """Gate 2 itself: who commits owns the live lease, and names both versions as they stand."""
    refuse_unless(lease == s.lease_version, "stale-lease-version")
    refuse_unless(s.owner == by, "not-the-owner")
    refuse_unless(not s.finished, "finished")
    refuse_unless(s.live, "lease-expired")
    refuse_unless(state == s.state_version, "stale-state-version")


@core.operation(NETWORK, home=STORE, answered=send_answer, c=commits, kept=BOOLEAN)
def decide_commit(s: State, c: Element, kept: bool) -> None:
    """A copy of a commit arrives and the store decides it; with `kept`, another copy is still on its way."""
    when(s.in_flight[c])
    when(not kept or switched("commit_duplicated"))
    s.in_flight[c] = kept
    if in_log(s, c):
        return
    sent = s.request[c].value
    refuse_unless_current(s, sent.by, sent.lease, sent.state)

    s.state_version = s.state_version + 1
    s.log[s.state_version] = c
    s.finished = sent.finishes


@core.action(WORKER, c=commits)
def receive_answer(s: State, c: Element) -> None:
    """The answer reaches the worker that waits for it."""
    when(awaits(s, c))
    when(s.answer[c] != Answer.none)

    learn_decided(s, c, s.answer[c])
    s.answer[c] = Answer.none


@core.action(WORKER, c=commits)
def ask(s: State, c: Element) -> None:
    """A worker without an answer asks the store: accepted, never to be, or undecided; then it sends again."""
    when(awaits(s, c))
    when(s.answer[c] == Answer.none)
    if in_log(s, c):
        learn_decided(s, c, Answer.ok)
    elif s.lease_version != s.request[c].lease:
        learn_decided(s, c, Answer.stale_lease_version)
    else:
        s.in_flight[c] = True


def learn_decided(s: State, c: Element, answer: Member) -> None:
    """What a worker does once it knows what became of its commit: go on, re-read, or stop being the owner."""
    sent = s.request[c].value
    w = sent.by.worker
    s.awaited[c] = False
    if s.believes[w].present and s.believes[w].lease == sent.lease:
        if answer == Answer.ok:
            if s.believes[w].state == sent.state:
                s.believes[w] = s.believes[w].changed(state=sent.state + 1)
        else:
            s.believes[w] = absent
            s.unsure[w] = answer == Answer.stale_state_version
