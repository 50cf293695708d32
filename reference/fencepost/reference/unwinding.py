"""The way back (§10, §12): unwind, resolve what is open, compensate the last success first; and people.

A compensation is an effect of its own: it has its own key, and its intent is committed before it is sent. One
that fails stops the unwinding until a person has decided.
"""

from __future__ import annotations

from fencepost.reference import outcomes
from fencepost.reference.keys import canonical_json, compensation_key, fingerprint
from fencepost.reference.outcomes import Fate, Outcome
from fencepost.reference.passes import Failure, Pass, failure
from fencepost.reference.planning import NOT_STARTED, Todo, cancels
from fencepost.reference.running_steps import conclude, give_up, hand_over, intent_in, send_and_conclude
from fencepost.reference.session import Ended, RunEndsError
from fencepost.reference.values import (
    Evidence,
    InstanceStatus,
    Intent,
    Move,
    StepChange,
    StepStatus,
    StoreError,
    shown,
)
from fencepost.reference.values_inbox import Requested
from fencepost.reference.worker import Effect


def unwind(run: Pass, todo: Todo) -> None:
    """Begin to unwind: from this commit on no step starts."""
    run.commit_unwinding("unwinds", cause=todo.why)


def consume(run: Pass, _: Todo) -> None:
    """Take note of cancels that came when the instance was unwinding already."""
    run.commit("cancel noted", requests=tuple(each.number for each in cancels(run.requests())))


def cancel_rest(run: Pass, _: Todo) -> None:
    """Cancel what has not started."""
    why = run.row.unwinding_cause
    rest = [s.step for s in run.row.steps if s.status in NOT_STARTED]
    run.commit("rest cancelled", *(StepChange(step, StepStatus.CANCELLED, reason=why) for step in rest))


def resolve(run: Pass, todo: Todo) -> None:
    """Prevent an effect that may be on its way, or learn that it happened."""
    give_up(run, todo.step, run.row.unwinding_cause or "the instance unwinds")


def finish(run: Pass, _: Todo) -> None:
    """End the instance, in which nothing is left to do."""
    run.commit("finished", finishes=True)


# Compensations.


def undo(run: Pass, todo: Todo) -> None:
    """Begin the compensation of a step: its intent is stored with the commit that begins it."""
    step, intent = todo.step, _undo_intent(run, todo.step)
    run.session.at("derived")
    if isinstance(intent, Failure):
        cause = f"the compensation of {step} cannot be made: {intent.why}"
        run.commit(f"{step}: no compensation", move=Move(InstanceStatus.MANUAL_INTERVENTION, cause=cause))
        return
    run.commit(f"{step}: compensating", StepChange(step, StepStatus.COMPENSATING, intent=intent))
    _send_undo(run, step)


def undo_again(run: Pass, todo: Todo) -> None:
    """Go on with a compensation whose timer is due, or that an earlier owner left: same key (§12)."""
    step, stored, intent = todo.step, run.step(todo.step), _stored_undo(run, todo.step)
    downstream = run.session.downstream
    if stored.undo_receipt is not None:
        _undone(run, step, stored.undo_receipt)
        return
    exhausted = not run.undo_attempts_remain(step)
    if downstream.capabilities.keyed and not exhausted:
        found = Outcome(Fate.ABSENT)
    elif downstream.capabilities.keyed:
        found = outcomes.look(run, intent, downstream, "its attempts are used up")
    else:
        found = outcomes.find(run, intent, downstream)
    if found.fate is not Fate.ABSENT:
        _conclude_undo(run, step, found)
    elif exhausted:
        hand_over(run, step, "its attempts are used up; it has not happened")
    else:
        change = StepChange(step, StepStatus.COMPENSATING, another_attempt=True)
        run.commit(f"{step}: compensating again", change)
        _send_undo(run, step)


def _send_undo(run: Pass, step: str) -> None:
    _conclude_undo(run, step, outcomes.send(run, _stored_undo(run, step), run.session.downstream))


def _conclude_undo(run: Pass, step: str, outcome: Outcome) -> None:
    if outcome.fate is Fate.HAPPENED and outcome.receipt is not None:
        _undone(run, step, outcome.receipt)
        return
    if outcome.fate in (Fate.OPEN, Fate.ABSENT) and run.undo_attempts_remain(step):
        delay_ms = run.code_of(step).retry.after_ms(run.step(step).undo_attempt)
        change = StepChange(
            step,
            StepStatus.COMPENSATING,
            timer_at_ms=run.now_ms() + delay_ms,
            error_class=outcome.why.partition(":")[0] or "unknown",
            reason=outcome.why or "unknown",
        )
        run.commit(f"{step}: compensation will be retried", change)
    else:
        hand_over(run, step, f"its compensation failed: {outcome.why}")


def _undone(run: Pass, step: str, receipt: str) -> None:
    try:
        run.commit(f"{step}: compensated", StepChange(step, StepStatus.COMPENSATED, receipt=receipt))
    except RunEndsError as ends:
        if ends.run.ended is Ended.LOST:
            run.hand_in(step, _stored_undo(run, step), receipt)
        raise


def _undo_intent(run: Pass, step: str) -> Intent | Failure:
    """The intent of a compensation, derived once (§6): later owners take the stored one."""
    undoes, stored = run.code_of(step).undo, run.step(step)
    if undoes is None:
        return Failure("no-compensation", "the code has none for it", retryable=False)
    try:
        effect = undoes(run.context(step, receipt=stored.receipt))
        if not isinstance(effect, Effect):
            return Failure("no-effect", f"it returned {shown(effect)}; return an Effect", retryable=False)
        parameters = dict(effect.parameters)
        return Intent(
            intent_version=1,
            key=compensation_key(run.row.instance, step, 1),
            fingerprint=fingerprint(effect.operation, effect.resource, effect.schema_version, parameters),
            resource=effect.resource,
            operation=effect.operation,
            parameters=canonical_json(parameters),
            expected_revision=effect.expected_revision,
        )
    except Exception as error:  # noqa: BLE001  # whatever a compensation raises is its failure
        return failure(error)


def _stored_undo(run: Pass, step: str) -> Intent:
    intent = run.step(step).undo
    if intent is None:
        raise StoreError(f"step {step!r} of {run.row.instance!r} has no stored compensation")
    return intent


# People.


def resume(run: Pass, todo: Todo) -> None:
    """An operator decided that the instance goes on where it was."""
    status = InstanceStatus.UNWINDING if run.unwinds else InstanceStatus.RUNNING
    run.commit("resumed by a person", move=Move(status, decision=_request(todo).number))


def decide(run: Pass, todo: Todo) -> None:
    """Honour what an operator decided about a step, with the tombstone first where keys are kept (§12)."""
    asked = _request(todo)
    match StepStatus(asked.request.decision or ""):
        case StepStatus.RUNNING:
            _decided_to_run(run, todo.step, asked)
        case StepStatus.SUCCEEDED:
            _decided_success(run, todo.step, asked)
        case StepStatus.COMPENSATED:
            _decided_compensated(run, todo.step, asked)
        case status:
            _decided_failure(run, todo.step, asked, status)


def _decided_to_run(run: Pass, step: str, asked: Requested) -> None:
    """The same intent again, on the word of a person where nothing else can tell that it did not happen."""
    downstream = run.session.downstream
    run.commit(
        f"{step}: decided: {StepStatus.RUNNING}",
        StepChange(step, StepStatus.RUNNING, decision=asked.number, reason=_words(asked)),
    )
    if run.step(step).intent is None:
        return  # the next look at the step asks its function again
    if not downstream.capabilities.keyed:
        found = outcomes.find(run, intent_in(run, step), downstream)
        nobody_knows = found.fate is Fate.STUCK and not outcomes.is_fenced_and_queryable(downstream)
        if found.fate is not Fate.ABSENT and not nobody_knows:
            conclude(run, step, found)
            return
    send_and_conclude(run, step)


def _prevented(run: Pass, step: str, intent: Intent | None) -> Outcome:
    """What is known of an effect once it has been prevented as far as the downstream can do that.

    The decision in the inbox is the reason that has to be durable before a tombstone.
    """
    if intent is None:
        return Outcome(Fate.NOT_HAPPENED)
    outcome = outcomes.give_up(run, intent, run.session.downstream)
    if outcome.fate is Fate.OPEN:
        run.end(Ended.UNDECIDED, outcome.why, step)
    return outcome


def _decided_success(run: Pass, step: str, asked: Requested) -> None:
    """With its receipt if it happened, else attested: nothing is claimed about a receipt then."""
    stored = run.step(step)
    receipt = stored.receipt or _prevented(run, step, stored.intent).receipt
    run.succeed(step, receipt=receipt, decision=asked.number)


def _decided_failure(run: Pass, step: str, asked: Requested, status: StepStatus) -> None:
    """An effect that turns out to have happened is not called failed: that decision is left standing.

    The receipt goes into the inbox, where the person finds it, and where it says to all workers that this
    decision is contradicted.
    """
    stored = run.step(step)
    outcome = _prevented(run, step, stored.intent)
    if outcome.fate is Fate.HAPPENED:
        if stored.intent is not None and outcome.receipt is not None:
            run.hand_in(step, stored.intent, outcome.receipt)
        run.ignored.add(asked.number)
        return
    tombstoned = outcome.evidence is Evidence.TOMBSTONED and stored.unwinding is None
    change = StepChange(
        step,
        status,
        decision=asked.number,
        evidence=outcome.evidence,
        unwinding=_words(asked) if tombstoned else None,
        reason=_words(asked),
        error_class="decided",
    )
    run.commit_unwinding(f"{step}: decided: {status}", change, cause=f"{step}: {_words(asked)}")


def _decided_compensated(run: Pass, step: str, asked: Requested) -> None:
    if run.session.downstream.capabilities.keyed:
        _prevented(run, step, run.step(step).undo)
    change = StepChange(step, StepStatus.COMPENSATED, decision=asked.number, reason=_words(asked))
    run.commit(f"{step}: decided: {StepStatus.COMPENSATED}", change)


def _request(todo: Todo) -> Requested:
    if todo.request is None:
        raise StoreError(f"{todo.what} of {todo.step!r} names no request")
    return todo.request


def _words(asked: Requested) -> str:
    why = f": {asked.request.reason}" if asked.request.reason else ""
    return f"decided by {asked.request.requester}{why}"
