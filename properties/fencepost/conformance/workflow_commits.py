"""The commits of the workflow protocol, with an implementation: what each changes, what goes with it (§5).

Evidence, receipts and numbers are what the worker knows in the model; timers and deadlines are set far ahead
(see `timers`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fencepost.conformance import core, effects, timers
from fencepost.conformance.adapter import Answer, Capability, Commit, Intent, StepChange
from fencepost.conformance.mapping import Decorator, Performance, Sensible, performing
from fencepost.conformance.vocabulary import Names
from fencepost.conformance.workflow_seen import name_of, undo_key, work_key
from fencepost.model import State, some
from fencepost.model.concrete import RunningState, values_of
from fencepost.model.domains import Element, Member
from fencepost.model.workflow.state import (
    Deed,
    Kind,
    Knows,
    Stands,
    Status,
    Wish,
    fingerprints,
    is_under_way,
    requests,
)

if TYPE_CHECKING:
    from fencepost.conformance.session import Session

PERFORMANCES: dict[str, Performance] = {
    **{
        name: core.PERFORMANCES[name]
        for name in ("acquire", "reread", "expire", "crash", "restart", "pause", "resume")
    },
    "restart_downstream": replace(effects.PERFORMANCES["restart_downstream"], needs=Capability.WORKFLOW),
}

performs = performing(PERFORMANCES, needs=Capability.WORKFLOW)


def commits(action: str, sensible: Sensible | None = None) -> Decorator:
    """The decorated function does `action`, which is a commit."""

    def sent(model: RunningState, names: Names, w: Element, *others: Any) -> str:
        return _commit_id(model, names, action, w, *others)

    return performs(action, sends=sent, sensible=sensible)


UNDONE = "fingerprint of the compensation"
"""In the model a compensation has no parameters of its own, and so always the same fingerprint."""

NO_NUMBER = 900
"""What a worker names that takes a request to be in the inbox which is not there: no inbox has so many."""


# -- Commits.


def _commit_id(model: RunningState, names: Names, action: str, w: Element, *others: Any) -> str:
    """The id of a commit: who sends it, on which versions, and what it is for."""
    owner, believed = names.owner((w, model.incarnation[w])), model.believes[w]
    what = [action, *(name_of(each) for each in others if not isinstance(each, bool))]
    return f"{owner.worker}.{owner.incarnation}.{believed.lease}-{believed.state}-{'-'.join(what)}"


def _commit(
    session: Session,
    action: str,
    w: Element,
    *others: Any,
    change: StepChange | None = None,
    finishes: bool = False,
    unwinds: str | None = None,
    consumes: int | None = None,
) -> Answer:
    """The call, with the versions that the worker believes in."""
    model, names = session.model, session.names
    believed = model.believes[w]
    made = Commit(
        commit_id=_commit_id(model, names, action, w, *others),
        owner=names.owner((w, model.incarnation[w])),
        lease_version=believed.lease,
        state_version=believed.state,
        finishes=finishes,
        change=change,
        unwinds=unwinds,
        consumes=consumes,
    )
    names.commits[made.commit_id] = made
    return session.worker(w).commit(made)


def _cause(session: Session, w: Element, cause: str) -> str | None:
    """The cause for which the instance is to unwind, unless the worker has read that it does so already."""
    return None if session.model.unwinds[w] else cause


def _intent(session: Session, x: Element, version: int, fingerprint: Element) -> Intent:
    undoable = bool(session.model.undoable[x])
    return Intent(version, work_key(x.label, version), fingerprint.label, undoable=undoable)


def _version(session: Session, w: Element, x: Element) -> int:
    """The version of the step's intent as the worker last read it."""
    return int(session.model.seen[w, x].intent)


def _evidence(model: RunningState, w: Element, x: Element) -> str | None:
    """How the worker knows that the effect under way has not happened and never will (§6)."""
    if model.knows[w, x] == Knows.unsent:
        return "unsent"
    if model.knows[w, x] != Knows.not_happened:
        return None
    kept = model.record[x, Deed.act, model.seen[w, x].intent]
    return "tombstoned" if kept.present and kept.value == Kind.tombstone else "recorded-refusal"


def _number(session: Session, r: Element) -> int:
    """The number of a request in the inbox; one that nobody has where it is not there."""
    seen = session.seen.observation.workflow
    inbox = () if seen is None else seen.inbox
    return next((each.number for each in inbox if each.request.request_id == r.label), NO_NUMBER)


@commits("start")
def start(
    session: Session, w: Element, x: Element, fingerprint: Element, lost: bool  # noqa: ARG001, FBT001
) -> Answer:  # fmt: skip
    """The call, with the first intent."""
    intent = _intent(session, x, _version(session, w, x) + 1, fingerprint)
    change = StepChange("running", step=x.label, intent=intent)
    return _commit(session, "start", w, x, fingerprint, change=change)


def _nobody_approves_it(
    s: State, w: Element, x: Element, fingerprint: Element, *others: Any  # noqa: ARG001
) -> object:  # fmt: skip
    """An implementation may tell an approval of the former intent from one of another that does the same."""
    return not some(
        requests,
        lambda r: (
            s.stands[r] != Stands.consumed
            and s.wish[r] == Wish.approve
            and s.about[r] == x
            and s.approves[r] == fingerprint
        ),
    )


@commits("intend_anew", sensible=_nobody_approves_it)
def intend_anew(
    session: Session, w: Element, x: Element, fingerprint: Element, lost: bool  # noqa: ARG001, FBT001
) -> Answer:  # fmt: skip
    """The call, with another intent and how it is known that the former came to nothing."""
    intent, gated = _intent(session, x, _version(session, w, x) + 1, fingerprint), session.model.gated[x]
    change = StepChange(
        "waiting_approval" if gated else "running",
        step=x.label,
        intent=intent,
        evidence=_evidence(session.model, w, x),
        approval_until_ms=timers.later_ms(session.seen, session.now_ms) if gated else None,
    )
    return _commit(session, "intend_anew", w, x, fingerprint, change=change)


@commits("succeed")
def succeed(session: Session, w: Element, x: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call, with the receipt."""
    key = work_key(x.label, _version(session, w, x))
    change = StepChange("succeeded", step=x.label, receipt=session.names.receipt_of(key))
    return _commit(session, "succeed", w, x, change=change)


@commits("fail")
def fail(session: Session, w: Element, x: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call; the instance unwinds with it."""
    change = StepChange("failed", step=x.label, evidence=_evidence(session.model, w, x), reason="failed")
    return _commit(session, "fail", w, x, change=change, unwinds=_cause(session, w, "failure"))


def _does_not_undo(s: State, w: Element, x: Element, *others: Any) -> object:  # noqa: ARG001
    """A compensation is handed over by the same change of status, as another action."""
    return s.seen[w, x].status != Status.compensating


@commits("hand_over", sensible=_does_not_undo)
def hand_over(session: Session, w: Element, x: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call."""
    change = StepChange("manual_intervention", step=x.label, reason="it may have happened")
    return _commit(session, "hand_over", w, x, change=change)


@commits("finish")
def finish(session: Session, w: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call."""
    return _commit(session, "finish", w, finishes=True)


# Retries.


def _has_an_error(s: State, w: Element, x: Element, *others: Any) -> object:  # noqa: ARG001
    """What was not sent had no error, and of a step that is scheduled only the timer would move."""
    return s.knows[w, x] != Knows.unsent and s.seen[w, x].status != Status.retry_scheduled


@commits("schedule_retry", sensible=_has_an_error)
def schedule_retry(session: Session, w: Element, x: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call, with a timer that is later than all others."""
    change = StepChange(
        "retry_scheduled",
        step=x.label,
        reason="busy",
        timer_at_ms=timers.later_ms(session.seen, session.now_ms),
    )
    return _commit(session, "schedule_retry", w, x, change=change)


def _has_begun(s: State, w: Element, x: Element, *others: Any) -> object:  # noqa: ARG001
    """Of a step that has not begun, the same change of status would start it."""
    return s.seen[w, x].status != Status.pending


@commits("run_again", sensible=_has_begun)
def run_again(session: Session, w: Element, x: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call; the key stays."""
    return _commit(session, "run_again", w, x, change=StepChange("running", step=x.label))


# Approvals.


def _is_gated(s: State, w: Element, x: Element, *others: Any) -> object:  # noqa: ARG001
    """An approval is asked for, and given, where the definition has a gate."""
    return s.gated[x]


@commits("ask_approval", sensible=_is_gated)
def ask_approval(
    session: Session, w: Element, x: Element, fingerprint: Element, lost: bool  # noqa: ARG001, FBT001
) -> Answer:  # fmt: skip
    """The call, with what is to be approved, until a moment that is later than all others."""
    intent = _intent(session, x, _version(session, w, x) + 1, fingerprint)
    change = StepChange(
        "waiting_approval",
        step=x.label,
        intent=intent,
        approval_until_ms=timers.later_ms(session.seen, session.now_ms),
    )
    return _commit(session, "ask_approval", w, x, fingerprint, change=change)


@commits("run_approved")
def run_approved(
    session: Session, w: Element, x: Element, r: Element, lost: bool  # noqa: ARG001, FBT001
) -> Answer:  # fmt: skip
    """The call, with the intent that was to be approved and the number of the approval."""
    model = session.model
    asked = model.fingerprint[x]
    fingerprint = asked.value if asked.present else values_of(fingerprints, session.names.scope)[0]
    intent = _intent(session, x, max(1, _version(session, w, x)), fingerprint)
    change = StepChange("running", step=x.label, intent=intent, request=_number(session, r))
    return _commit(session, "run_approved", w, x, r, change=change)


@commits("take_no")
def take_no(
    session: Session, w: Element, x: Element, r: Element, lost: bool  # noqa: ARG001, FBT001
) -> Answer:  # fmt: skip
    """The call, with the number of the rejection; the instance unwinds with it."""
    change = StepChange("cancelled", step=x.label, request=_number(session, r), reason="rejected")
    return _commit(session, "take_no", w, x, r, change=change, unwinds=_cause(session, w, "cancel"))


@commits("give_up_waiting")
def give_up_waiting(session: Session, w: Element, x: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call; the instance unwinds with it."""
    change = StepChange("failed", step=x.label, reason="nobody decided")
    return _commit(session, "give_up_waiting", w, x, change=change, unwinds=_cause(session, w, "failure"))


@commits("merge")
def merge(
    session: Session, w: Element, x: Element, r: Element, lost: bool  # noqa: ARG001, FBT001
) -> Answer:  # fmt: skip
    """The call, with the number of the late result and the receipt that it tells of."""
    receipt = session.names.receipt_of(work_key(x.label, session.model.result_of[r]))
    change = StepChange("succeeded", step=x.label, receipt=receipt, request=_number(session, r))
    return _commit(session, "merge", w, x, r, change=change)


# What an operator decides.


@commits("run_by_hand")
def run_by_hand(
    session: Session, w: Element, x: Element, r: Element, lost: bool  # noqa: ARG001, FBT001
) -> Answer:  # fmt: skip
    """The call, with the number of the decision."""
    change = StepChange("running", step=x.label, decision=_number(session, r))
    return _commit(session, "run_by_hand", w, x, r, change=change)


@commits("attest")
def attest(
    session: Session, w: Element, x: Element, r: Element, wish: Member, lost: bool  # noqa: ARG001, FBT001
) -> Answer:  # fmt: skip
    """The call, with the number of the decision, and nothing else to show for it."""
    change = StepChange(wish.name, step=x.label, decision=_number(session, r), reason="attested")
    unwinds = _cause(session, w, "failure") if wish == Wish.failed else None
    return _commit(session, "attest", w, x, r, wish, change=change, unwinds=unwinds)


# Unwinding.


@commits("acknowledge_cancel")
def acknowledge_cancel(
    session: Session, w: Element, r: Element, lost: bool  # noqa: ARG001, FBT001
) -> Answer:  # fmt: skip
    """The call, with the number of the cancel; the instance unwinds with it."""
    number = _number(session, r)
    unwinds = _cause(session, w, "cancel")
    return _commit(session, "acknowledge_cancel", w, r, unwinds=unwinds, consumes=number)


@commits("give_up")
def give_up(session: Session, w: Element, x: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call: the step stays as it was read, with the reason to give it up."""
    status = session.model.seen[w, x].status.name.replace("-", "_")
    change = StepChange(status, step=x.label, unwinding="failed")
    return _commit(session, "give_up", w, x, change=change, unwinds="failure")


@commits("call_off")
def call_off(session: Session, w: Element, x: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call; of what was under way, with how it is known that it came to nothing."""
    model = session.model
    under_way = model.seen[w, x].status in (Status.running, Status.retry_scheduled)
    evidence = _evidence(model, w, x) if under_way else None
    change = StepChange("cancelled", step=x.label, evidence=evidence, reason="called off")
    return _commit(session, "call_off", w, x, change=change)


@commits("compensate")
def compensate(session: Session, w: Element, x: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call, with the intent of the compensation."""
    version = max(1, _version(session, w, x))
    intent = Intent(version, undo_key(x.label, version), UNDONE)
    change = StepChange("compensating", step=x.label, intent=intent)
    return _commit(session, "compensate", w, x, change=change)


@commits("end_compensation")
def end_compensation(session: Session, w: Element, x: Element, lost: bool) -> Answer:  # noqa: ARG001, FBT001
    """The call, with the receipt of the compensation."""
    key = undo_key(x.label, _version(session, w, x))
    change = StepChange("compensated", step=x.label, receipt=session.names.receipt_of(key))
    return _commit(session, "end_compensation", w, x, change=change)


def _undoes(s: State, w: Element, x: Element, *others: Any) -> object:  # noqa: ARG001
    """A step is handed over by the same change of status, as another action."""
    return not is_under_way(s.seen[w, x].status)


@commits("hand_over_compensation", sensible=_undoes)
def hand_over_compensation(
    session: Session, w: Element, x: Element, lost: bool  # noqa: ARG001, FBT001
) -> Answer:  # fmt: skip
    """The call."""
    change = StepChange("manual_intervention", step=x.label, reason="it cannot be undone")
    return _commit(session, "hand_over_compensation", w, x, change=change)
