"""What an operator may decide of a step that is in a person's hands (§5, §12), and an owner then commits."""

from __future__ import annotations

from fencepost.model.domains import Element, Member
from fencepost.model.language import State, derived, ite, refuse_unless, switched, when
from fencepost.model.workflow.beliefs import commit_on, known_undone, learn_committed, learn_ended
from fencepost.model.workflow.lifecycle import step_commit
from fencepost.model.workflow.state import (
    Cause,
    Stands,
    Status,
    Wish,
    cancel_waits,
    is_decision,
    is_offered,
    requests,
)


@step_commit(learn_committed, switch="operator", r=requests)
def run_by_hand(s: State, w: Element, x: Element, r: Element, lost: bool) -> None:
    """An operator has a step run again with the same intent; whatever else was decided about it is over."""
    commit_on(s, w, lost)
    refuse_unless(is_offered(s, r, Wish.run_again, x), "no-such-request")
    refuse_unless(s.status[x] == Status.manual_intervention and not s.undoing[x], "illegal-transition")
    refuse_unless(s.cause == Cause.none, "unwinding")
    refuse_unless(not cancel_waits(s), "cancel-requested")

    s.state_version = s.state_version + 1
    s.status[x] = Status.running
    s.stands.update_where(lambda q, now: ite(is_open_decision(s, q, x), Stands.consumed, now))


@step_commit(learn_ended, switch="operator", r=requests, wish=Wish)
def attest(s: State, w: Element, x: Element, r: Element, wish: Member, lost: bool) -> None:
    """An operator says how a step ended that nobody can ask about; a key that is kept is buried first.

    Whatever else was decided about the step is over.
    """
    when(may_be_attested(s, w, x, wish))
    commit_on(s, w, lost)
    refuse_unless(is_offered(s, r, wish, x), "no-such-request")
    refuse_unless(s.status[x] == Status.manual_intervention, "illegal-transition")
    refuse_unless(s.undoing[x] == (wish == Wish.compensated), "illegal-transition")

    s.state_version = s.state_version + 1
    s.status[x] = attested_as(wish)
    s.succeeded_at[x] = ite(wish == Wish.succeeded, s.state_version, s.succeeded_at[x])
    s.cause = ite(wish == Wish.failed and s.cause == Cause.none, Cause.failure, s.cause)
    s.attested[x] = True
    s.stands.update_where(lambda q, now: ite(is_open_decision(s, q, x), Stands.consumed, now))


@derived
def is_open_decision(s: State, r: Element, x: Element) -> object:
    """Whether the inbox holds request `r` unconsumed, and an operator decides about step `x` by it."""
    return s.stands[r] == Stands.inbox and is_decision(s, r) and s.about[r] == x


@derived
def may_be_attested(s: State, w: Element, x: Element, wish: Member) -> object:
    """Whether an operator's word is enough: of a compensation, a buried key, or where none is kept."""
    if wish == Wish.compensated:
        return True
    return (wish == Wish.succeeded or wish == Wish.failed) and (
        not switched("keyed") or known_undone(s, w, x)
    )


@derived
def attested_as(wish: Member) -> object:
    """The status that an operator's word gives a step."""
    if wish == Wish.succeeded:
        return Status.succeeded
    if wish == Wish.failed:
        return Status.failed
    return Status.compensated
