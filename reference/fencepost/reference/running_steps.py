"""The way forward (§5, §6, §8, §9, §11): start a step, send its effect, retry it, or settle how it was left.

The order of one effect, with a crash possible between any two: derive key and fingerprint; commit `running`
with the intent; only when that commit is known to be accepted, send; commit the outcome with the receipt.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fencepost.reference import outcomes
from fencepost.reference.downstream_values import MALFORMED
from fencepost.reference.keys import fingerprint
from fencepost.reference.outcomes import Fate, Outcome
from fencepost.reference.passes import Failure, Made, Pass
from fencepost.reference.planning import Todo
from fencepost.reference.session import Ended
from fencepost.reference.values import Evidence, Intent, StepChange, StepStatus, StoreError

NOT_YET: Final = "not-yet-started"
"""The error class of a step that was begun without an intent, and turned out to need one."""

CHANGED: Final = Failure("changed", "what was approved is not what it would do now", retryable=False)
"""Why a step does not run whose function no longer says what was approved (§11)."""


def start(run: Pass, todo: Todo) -> None:
    """Start a step that has no gate, for the first time or after its function asked for another try."""
    step, made = todo.step, run.make(todo.step)
    run.session.at("derived")
    if isinstance(made, Intent):
        run.commit(f"{step}: started", StepChange(step, StepStatus.RUNNING, intent=made))
        send_and_conclude(run, step)
        return
    run.commit(f"{step}: started", StepChange(step, StepStatus.RUNNING))
    _without_effect(run, step, made)


def _without_effect(run: Pass, step: str, made: Made | Failure) -> None:
    """A step that is running and has no intent: nothing has happened outside."""
    if isinstance(made, Made):
        run.succeed(step, result=made.result)
    elif made.retryable and run.attempts_remain(step) and not run.unwinds:
        retry_later(run, step, made.error_class, made.why)
    else:
        fail(run, step, why=made.why, error_class=made.error_class)


def ask(run: Pass, todo: Todo) -> None:
    """Ask for the approval of what a step is about to do (§11)."""
    step, made = todo.step, run.make(todo.step)
    if isinstance(made, Failure):
        _refuse_to_ask(run, step, made)
        return
    run.commit(f"{step}: asks for approval", _question(run, step, made))


def _question(run: Pass, step: str, made: Intent | Made) -> StepChange:
    approval = run.code_of(step).approval
    deadline_ms = None if approval is None else approval.deadline_ms
    return StepChange(
        step,
        StepStatus.WAITING_APPROVAL,
        approval_fingerprint=_asked_for(step, made),
        approval_deadline_at_ms=None if deadline_ms is None else run.now_ms() + deadline_ms,
    )


def _intends_anew(run: Pass, step: str, outcome: Outcome) -> bool:
    """Give a step another intent in the place of one that came to nothing, if its code has one (§6).

    Behind a gate it waits for the approval of that one (§11), and the pass goes on with something else.
    """
    stored = run.step(step)
    given_up = run.unwinds or stored.unwinding is not None or stored.status is not StepStatus.RUNNING
    known = outcome.evidence not in (None, Evidence.TOMBSTONED)
    if given_up or not known or run.code_of(step).other is None or not run.attempts_remain(step):
        return False
    made = run.make(step)
    run.session.at("derived")
    if not isinstance(made, Intent):
        return False
    if not stored.needs_approval:
        change = StepChange(step, StepStatus.RUNNING, made, another_attempt=True, evidence=outcome.evidence)
        run.commit(f"{step}: started instead", change)
        return True
    question = replace(_question(run, step, made), evidence=outcome.evidence, reason=outcome.why or None)
    if question.approval_deadline_at_ms is None and stored.approval_deadline_at_ms is not None:
        return False  # the code knows of no deadline, and the stored one is that of the former question
    run.commit(f"{step}: asks for approval anew", question)
    return True


def _asked_for(step: str, made: Intent | Made) -> str:
    if isinstance(made, Intent):
        return made.fingerprint
    return fingerprint("result", step, 1, made.result)


def _is_approved(run: Pass, step: str, made: Intent | Made) -> bool:
    return _asked_for(step, made) == run.step(step).approval_fingerprint


def _refuse_to_ask(run: Pass, step: str, failure: Failure) -> None:
    """A gated step whose function fails before its approval has not begun: it is cancelled, not failed (§5).

    Likewise one that would do something else than what was approved, whose approval is not spent on that.
    """
    change = StepChange(step, StepStatus.CANCELLED, reason=failure.why, error_class=failure.error_class)
    run.commit_unwinding(f"{step}: cannot begin", change, cause=f"{step}: {failure.why}")


def approved(run: Pass, todo: Todo) -> None:
    """Start what was approved, if it still is what was approved."""
    step, made = todo.step, run.make(todo.step)
    run.session.at("derived")
    if isinstance(made, Failure) and run.step(step).intent is not None:
        _refuse_to_ask(run, step, made)
        return
    if not isinstance(made, Failure) and not _is_approved(run, step, made):
        _refuse_to_ask(run, step, CHANGED)
        return
    number = None if todo.request is None else todo.request.number
    intent = made if isinstance(made, Intent) else None
    run.commit(f"{step}: started", StepChange(step, StepStatus.RUNNING, intent=intent, request=number))
    if isinstance(made, Intent):
        send_and_conclude(run, step)
    else:
        _without_effect(run, step, _for_good(made))


def _for_good(made: Made | Failure) -> Made | Failure:
    """A step that has used its approval up, and has no intent, is not retried: nobody would approve that."""
    return replace(made, retryable=False) if isinstance(made, Failure) else made


def rejected(run: Pass, todo: Todo) -> None:
    """The approval was refused: the step is cancelled, and the instance unwinds."""
    asked = todo.request
    why = "rejected" if asked is None else f"rejected by {asked.request.requester}"
    if asked is not None and asked.request.reason:
        why = f"{why}: {asked.request.reason}"
    change = StepChange(
        todo.step, StepStatus.CANCELLED, reason=why, request=None if asked is None else asked.number
    )
    run.commit_unwinding(f"{todo.step}: rejected", change, cause=f"{todo.step}: {why}")


def expired(run: Pass, todo: Todo) -> None:
    """Nobody decided in time."""
    change = StepChange(todo.step, StepStatus.FAILED, reason=todo.why, error_class="approval-deadline")
    run.commit_unwinding(f"{todo.step}: nobody decided", change, cause=todo.why)


def merge(run: Pass, todo: Todo) -> None:
    """Take over what a former owner learned too late."""
    if todo.request is None:
        raise StoreError("a late result without its request")
    run.succeed(todo.step, receipt=todo.request.request.receipt, request=todo.request.number)


# Attempts.


def again(run: Pass, todo: Todo) -> None:
    """The timer of a retry is due (§9): the same intent under the same key, one attempt more."""
    step, intent = todo.step, run.step(todo.step).intent
    if intent is None:
        start(run, todo)
        return
    if not run.session.downstream.capabilities.keyed:
        found = outcomes.find(run, intent, run.session.downstream)
        if found.fate is not Fate.ABSENT:
            conclude(run, step, found)
            return
    run.commit(f"{step}: started again", StepChange(step, StepStatus.RUNNING))
    send_and_conclude(run, step)


def settle(run: Pass, todo: Todo) -> None:
    """Settle a step that an earlier owner left running (§8)."""
    step, stored, downstream = todo.step, run.step(todo.step), run.session.downstream
    intent = stored.intent
    if intent is None:
        made = run.make(step)
        if isinstance(made, Intent):
            made = Failure(NOT_YET, "it had not stored its intent", retryable=True)
        elif isinstance(made, Made) and stored.needs_approval and not _is_approved(run, step, made):
            made = CHANGED
        _without_effect(run, step, _for_good(made) if stored.needs_approval else made)
    elif stored.receipt is not None:
        run.succeed(step, receipt=stored.receipt)
    elif stored.unwinding is not None:
        give_up(run, step, stored.unwinding)
    elif downstream.capabilities.keyed:
        _once_more(run, step)
    else:
        found = outcomes.find(run, intent, downstream)
        if found.fate is Fate.ABSENT:
            _once_more(run, step)
        else:
            conclude(run, step, found)


def _once_more(run: Pass, step: str) -> None:
    """Send a stored intent again, which is safe where this is called, within the budget (§9)."""
    if not run.attempts_remain(step):
        give_up(run, step, "its attempts are used up")
        return
    run.commit(f"{step}: sent again", StepChange(step, StepStatus.RUNNING, another_attempt=True))
    send_and_conclude(run, step)


def send_and_conclude(run: Pass, step: str) -> None:
    """Send the stored intent of a step and commit what comes of it."""
    conclude(run, step, outcomes.send(run, intent_in(run, step), run.session.downstream))


def conclude(run: Pass, step: str, outcome: Outcome) -> None:
    """Commit what became of the effect of a step that runs, or waits for its retry.

    What came to nothing may have another intent, which is sent in its turn.
    """
    while outcome.fate is Fate.NOT_HAPPENED and _intends_anew(run, step, outcome):
        if run.step(step).status is not StepStatus.RUNNING:
            return
        outcome = outcomes.send(run, intent_in(run, step), run.session.downstream)
    match outcome.fate:
        case Fate.HAPPENED:
            run.succeed(step, receipt=outcome.receipt)
        case Fate.NOT_HAPPENED:
            not_happened(run, step, outcome)
        case Fate.SENSELESS:
            give_up(run, step, outcome.why)
        case Fate.STUCK:
            hand_over(run, step, outcome.why)
        case _ if run.attempts_remain(step) and not run.unwinds:
            retry_later(run, step, outcome.why.partition(":")[0] or "unknown", outcome.why)
        case _:
            give_up(run, step, f"its attempts are used up: {outcome.why}")


def retry_later(run: Pass, step: str, error_class: str, why: str) -> None:
    """Schedule another attempt. In a step that is scheduled already only the timer moves."""
    delay_ms = 0 if error_class == NOT_YET else run.code_of(step).retry.after_ms(run.step(step).attempt)
    change = StepChange(
        step,
        StepStatus.RETRY_SCHEDULED,
        timer_at_ms=run.now_ms() + delay_ms,
        error_class=error_class,
        reason=why or error_class,
    )
    run.commit(f"{step}: will be retried", change)


def give_up(run: Pass, step: str, why: str) -> None:
    """Resolve an effect that may not be sent again: prevent it, or learn that it happened (§7, §9, §10)."""
    stored = run.step(step)
    if stored.intent is None:
        status = StepStatus.CANCELLED if run.unwinds else StepStatus.FAILED
        fail(run, step, why=why, error_class=stored.error_class or "given-up", status=status)
        return
    if stored.receipt is not None:
        run.succeed(step, receipt=stored.receipt)
        return
    if stored.unwinding is None:
        run.commit(f"{step}: to be given up", StepChange(step, stored.status, unwinding=why), payload=why)
    outcome = outcomes.give_up(run, stored.intent, run.session.downstream)
    match outcome.fate:
        case Fate.HAPPENED:
            run.succeed(step, receipt=outcome.receipt)
        case Fate.NOT_HAPPENED:
            not_happened(run, step, Outcome(outcome.fate, evidence=outcome.evidence, why=why))
        case Fate.STUCK:
            hand_over(run, step, f"{why}; {outcome.why}")
        case _:
            run.end(Ended.UNDECIDED, outcome.why, step)


def give_up_in_time(run: Pass, todo: Todo) -> None:
    """A step whose deadline has passed does not start again."""
    give_up(run, todo.step, run.step(todo.step).unwinding or todo.why)


def not_happened(run: Pass, step: str, outcome: Outcome) -> None:
    """End a step whose effect is known not to have happened."""
    stored = run.step(step)
    if outcome.evidence is Evidence.TOMBSTONED and stored.unwinding is None:
        run.commit(f"{step}: to be given up", StepChange(step, stored.status, unwinding=outcome.why))
    declined = outcome.evidence is Evidence.RECORDED_REFUSAL
    status = StepStatus.CANCELLED if run.unwinds and not declined else StepStatus.FAILED
    error_class = outcome.why.partition(":")[0]
    fail(run, step, why=outcome.why, error_class=error_class, evidence=outcome.evidence, status=status)


def fail(
    run: Pass,
    step: str,
    *,
    why: str,
    error_class: str,
    evidence: Evidence | None = None,
    status: StepStatus = StepStatus.FAILED,
) -> None:
    """End a step without its effect; the instance unwinds from then on."""
    change = StepChange(
        step, status, evidence=evidence, reason=why or error_class, error_class=error_class or "failed"
    )
    payload = change.reason or "" if error_class == MALFORMED else ""
    run.commit_unwinding(f"{step}: {status}", change, cause=f"{step}: {why or error_class}", payload=payload)


def hand_over(run: Pass, step: str, why: str) -> None:
    """Leave to a person what nobody can know here."""
    change = StepChange(step, StepStatus.MANUAL_INTERVENTION, reason=why)
    run.commit(f"{step}: handed over", change, payload=why)


def intent_in(run: Pass, step: str) -> Intent:
    """The stored intent of a step that has one."""
    intent = run.step(step).intent
    if intent is None:
        raise StoreError(f"step {step!r} of {run.row.instance!r} has no stored intent")
    return intent
