"""Recovery and unwinding (§6, §7, §8): what to do about an effect that may or may not have happened.

Which way there is depends on what the downstream can do. Keyed: the same request again, under its stored key,
has one effect at most. Fenced, and can be asked: raise the fence, so that no old request lands any more, then
ask. Can only be asked: a receipt settles it, its absence does not. Otherwise a person decides. Succeeded
steps are not touched; nothing is derived that is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fencepost.reference import downstream_values as words
from fencepost.reference.answers import asked
from fencepost.reference.downstream_values import (
    EffectRequest,
    NotFound,
    Receipt,
    RecordedRefusal,
    TakesEffects,
    Tombstone,
    Unknown,
)
from fencepost.reference.keys import step_key
from fencepost.reference.session import Ended, Run, RunEndsError, Session, begin, nothing
from fencepost.reference.store import Store
from fencepost.reference.values import (
    Evidence,
    Intent,
    Ok,
    Owner,
    Refused,
    StepChange,
    StepRow,
    StepStatus,
    StoreError,
    text,
)

OWN_DECISIONS: Final = (words.DECLINED, words.WRONG_REVISION)
"""Refusals by which a downstream decides about the intent itself; a keyed one holds them under the key."""


def settle(session: Session, step: str) -> None:
    """Settle a step that an earlier owner left running (§8). Ends the run if that is not possible now."""
    stored = session.steps[step]
    can = session.downstream.capabilities
    if stored.intent is None:
        session.commit("succeeded", StepChange(step, StepStatus.SUCCEEDED))
    elif stored.receipt is not None:
        _succeed(session, step, stored.receipt)
    elif stored.unwinding is not None:
        _give_up(session, step)
    elif can.keyed:
        send(session, step)
    elif can.fenced and can.queryable:
        if _is_absent(session, step):
            _again(session, step, stored.intent)
    else:
        _ask_or_hand_over(session, step, "it was left unknown")


def unwind(
    store: Store,
    downstream: TakesEffects,
    owner: Owner,
    instance: str,
    step: str,
    *,
    reason: str,
    lease_ms: int,
    monotonic_ms: Callable[[], int],
    at: Callable[[str], None] = nothing,
) -> Run:
    """Give a step up, for a reason that is committed first (§7): cancelled, or succeeded if it did happen.

    A step that has its outcome keeps it. The lease is acquired for it, and released; the arguments are those
    of `run_once`. What undoes a step that did happen, its compensation, is not run here.
    """
    text("unwind", "step", step)
    text("unwind", "reason", reason)
    session: Session | None = None
    try:
        session = begin(
            store, downstream, owner, instance, lease_ms=lease_ms, monotonic_ms=monotonic_ms, at=at
        )
        stored = session.steps.get(step)
        if stored is None or stored.status is StepStatus.PENDING:
            session.commit("cancelled", StepChange(step, StepStatus.CANCELLED, reason=reason))
        elif stored.status is StepStatus.RUNNING:
            _unwind_running(session, stored, reason)
        stored = session.steps[step]
        session.end(Ended.STOPPED, stored.reason or stored.status, step)
    except RunEndsError as ends:
        if session is not None and ends.run.ended in (Ended.STOPPED, Ended.UNDECIDED):
            session.release()
        return ends.run


def _unwind_running(session: Session, stored: StepRow, reason: str) -> None:
    if stored.intent is None:
        session.commit("cancelled", StepChange(stored.step, StepStatus.CANCELLED, reason=reason))
    elif stored.receipt is not None:
        _succeed(session, stored.step, stored.receipt)
    else:
        if stored.unwinding is None:
            session.commit("unwinding", StepChange(stored.step, StepStatus.RUNNING, unwinding=reason))
        session.at("reason-committed")
        _give_up(session, stored.step)


def send(session: Session, step: str) -> None:
    """Send the stored intent, under its stored key, and commit what comes of it (§6)."""
    intent = _intent(session, step)
    session.may_send()
    session.at("sending")
    answer = asked(
        lambda: session.downstream.apply(
            EffectRequest(
                instance=session.row.instance,
                resource=intent.resource,
                operation=intent.operation,
                parameters=intent.parameters,
                fingerprint=intent.fingerprint,
                key=intent.key,
                token=session.token,
                expected_revision=intent.expected_revision,
            )
        ),
        Receipt,
    )
    session.at("answered")
    if isinstance(answer, Ok):
        _succeed(session, step, answer.value.receipt)
    elif isinstance(answer, Refused):
        _refused(session, step, answer)
    else:
        can = session.downstream.capabilities
        if can.keyed or (can.fenced and can.queryable):
            session.end(Ended.UNDECIDED, answer.why, step)  # recovery settles it, under another lease
        _ask_or_hand_over(session, step, answer.why)


def _refused(session: Session, step: str, answer: Refused[words.Held]) -> None:
    """An effect was refused. Only some refusals say that the intent's effect did not happen (§2)."""
    code, can = answer.code, session.downstream.capabilities
    if code == words.STALE_TOKEN:
        session.end(Ended.LOST, code, step)
    if code == words.IN_PROGRESS:
        session.end(Ended.UNDECIDED, code, step)
    if code == words.TOMBSTONED:
        if session.steps[step].unwinding is None:
            session.commit("unwinding", StepChange(step, StepStatus.RUNNING, unwinding=code))
        session.commit("cancelled", _cancelled(step, Evidence.TOMBSTONED, code))
    elif code in OWN_DECISIONS and can.keyed:
        session.commit("failed", _failed(step, Evidence.RECORDED_REFUSAL, code))
        session.at("outcome-committed")
    elif code in OWN_DECISIONS and can.fenced and can.queryable:
        # This call had no effect, but another one of this intent may have had: so fence them off, and ask.
        session.take_anew()
        if _is_absent(session, step):
            session.commit("failed", _failed(step, Evidence.FENCED_AND_NOT_FOUND, code))
    elif code in OWN_DECISIONS:
        _ask_or_hand_over(session, step, code)
    else:
        _hand_over(session, step, _words(answer))


def _give_up(session: Session, step: str) -> None:
    """Unwind a step whose reason has been committed: by a tombstone, or by fence and query (§7)."""
    intent = _intent(session, step)
    can = session.downstream.capabilities
    if can.keyed:
        session.may_send()
        answer = asked(
            lambda: session.downstream.tombstone(
                intent.key,
                intent.fingerprint,
                instance=session.row.instance,
                resource=intent.resource,
                token=session.token,
            ),
            Receipt,
            Tombstone,
            RecordedRefusal,
        )
        session.at("tombstone-answered")
        if isinstance(answer, Unknown):
            session.end(Ended.UNDECIDED, answer.why, step)
        if isinstance(answer, Refused):
            _refused(session, step, answer)
        else:
            _found(session, step, answer.value)
    elif can.fenced and can.queryable:
        if _is_absent(session, step):
            why = session.steps[step].unwinding or ""
            session.commit("cancelled", _cancelled(step, Evidence.FENCED_AND_NOT_FOUND, why))
    else:
        _ask_or_hand_over(session, step, "it is to be given up")


def _is_absent(session: Session, step: str) -> bool:
    """Raise the fence, then ask (§6 d). True if the effect did not happen; else its receipt is committed.

    Needs a lease version above those under which it was sent, so not one under which this owner has sent.
    """
    intent = _intent(session, step)
    session.may_send()
    raised = asked(
        lambda: session.downstream.raise_fence(session.row.instance, intent.resource, token=session.token),
        int,
    )
    session.at("fence-raised")
    if isinstance(raised, Refused) and raised.code == words.MALFORMED:
        _hand_over(session, step, _words(raised))
        return False
    if isinstance(raised, Refused):
        session.end(Ended.LOST, raised.code, step)
    if isinstance(raised, Unknown):
        session.end(Ended.UNDECIDED, raised.why, step)
    return not _query(session, step)


def _query(session: Session, step: str) -> bool:
    """Whether the downstream knows of the effect; then the step has its outcome."""
    intent = _intent(session, step)
    answer = asked(
        lambda: session.downstream.query(intent.key), Receipt, Tombstone, RecordedRefusal, NotFound
    )
    session.at("query-answered")
    if isinstance(answer, Unknown):
        session.end(Ended.UNDECIDED, answer.why, step)
    if isinstance(answer, Refused):
        _hand_over(session, step, _words(answer))
        return True
    return _found(session, step, answer.value)


def _found(session: Session, step: str, held: words.Record | NotFound) -> bool:
    """Commit what a key was found to hold; False if it is nothing."""
    match held:
        case Receipt():
            _succeed(session, step, held.receipt)
        case Tombstone():
            why = session.steps[step].unwinding or words.TOMBSTONED
            session.commit("cancelled", _cancelled(step, Evidence.TOMBSTONED, why))
        case RecordedRefusal():
            session.commit("failed", _failed(step, Evidence.RECORDED_REFUSAL, held.code))
        case _:
            return False
    session.at("outcome-committed")
    return True


def _again(session: Session, step: str, former: Intent) -> None:
    """Once the former intent is known not to have happened: the same effect, as the next intent (§6)."""
    version = former.intent_version + 1
    key = step_key(session.row.instance, step, former.resource, version)
    session.commit(
        "started again",
        StepChange(
            step,
            StepStatus.RUNNING,
            intent=replace(former, intent_version=version, key=key),
            another_attempt=True,
            evidence=Evidence.FENCED_AND_NOT_FOUND,
        ),
    )
    session.at("intent-committed")
    send(session, step)


def _ask_or_hand_over(session: Session, step: str, why: str) -> None:
    """A receipt settles it; where there is none to be had, its absence proves nothing: a person decides."""
    if session.downstream.capabilities.can_be_asked and _query(session, step):
        return
    _hand_over(session, step, f"{why}; it may have happened")


def _hand_over(session: Session, step: str, why: str) -> None:
    session.commit("handed over", StepChange(step, StepStatus.MANUAL_INTERVENTION, reason=why))
    session.at("outcome-committed")


def _succeed(session: Session, step: str, receipt: str) -> None:
    session.commit("succeeded", StepChange(step, StepStatus.SUCCEEDED, receipt=receipt))
    session.at("outcome-committed")


def _failed(step: str, evidence: Evidence, why: str) -> StepChange:
    return StepChange(step, StepStatus.FAILED, evidence=evidence, reason=why)


def _cancelled(step: str, evidence: Evidence, why: str) -> StepChange:
    return StepChange(step, StepStatus.CANCELLED, evidence=evidence, reason=why)


def _intent(session: Session, step: str) -> Intent:
    intent = session.steps[step].intent
    if intent is None:
        raise StoreError(f"step {step!r} of {session.row.instance!r} has no stored intent")
    return intent


def _words(answer: Refused[words.Held]) -> str:
    """The code of a refusal; of a request that makes no sense, also why it makes none."""
    said = answer.code == words.MALFORMED and answer.observed is not None and answer.observed.why
    return f"{answer.code}: {said}" if said else answer.code
