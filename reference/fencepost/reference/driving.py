"""Drive one pass: look, acquire, check again, do all there is to do (§8, §14).

The order is that of §8: the checkpoint (`session.begin`), the definition, the lease, both again on the row
that acquire returned, then what an earlier owner left, and only then what may start. What was checked before
the lease is advisory, and only spares a lease that would be taken for nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from fencepost.reference import codes, running_steps, unwinding
from fencepost.reference.downstream_values import TakesEffects
from fencepost.reference.keys import fingerprint
from fencepost.reference.passes import OvertakenError, Pass, reading
from fencepost.reference.planning import STARTS, Todo, What, next_todo
from fencepost.reference.session import TRIES, Ended, Run, RunEndsError, Session, begin
from fencepost.reference.store import Store
from fencepost.reference.telling import given_up, tell
from fencepost.reference.values import (
    FINISHED,
    ArgumentError,
    InstanceStatus,
    Move,
    Owner,
    Refused,
    Row,
    StepStatus,
    StoreError,
)
from fencepost.reference.values_inbox import Migration, Origin
from fencepost.reference.workflow import Workflow

OTHER_DEFINITION: Final = "definition: "
"""How the cause of an instance begins that waits for a person because no code here may go on with it."""

REPLANS: Final = 10
"""How often a pass decides anew without a commit in between: requests come seldom, and one is enough."""

HANDLERS: Final[dict[What, Callable[[Pass, Todo], None]]] = {
    What.FINISH: unwinding.finish,
    What.START: running_steps.start,
    What.ASK: running_steps.ask,
    What.APPROVED: running_steps.approved,
    What.REJECTED: running_steps.rejected,
    What.EXPIRED: running_steps.expired,
    What.SETTLE: running_steps.settle,
    What.AGAIN: running_steps.again,
    What.GIVE_UP: running_steps.give_up_in_time,
    What.MERGE: running_steps.merge,
    What.DECIDE: unwinding.decide,
    What.RESUME: unwinding.resume,
    What.UNWIND: unwinding.unwind,
    What.CONSUME: unwinding.consume,
    What.CANCEL_REST: unwinding.cancel_rest,
    What.RESOLVE: unwinding.resolve,
    What.UNDO: unwinding.undo,
    What.UNDO_AGAIN: unwinding.undo_again,
}


def drive(
    store: Store,
    downstream: TakesEffects,
    owner: Owner,
    instance: str,
    workflows: Sequence[Workflow],
    *,
    lease_ms: int,
    monotonic_ms: Callable[[], int],
    notifier: TakesEffects | None,
    at: Callable[[str], None],
    starts: bool,
) -> Run:
    """One pass; without `starts` it begins nothing new. See `flows.run_instance`."""
    session: Session | None = None
    try:
        _advised(store, instance, workflows, starts=starts)
        session = begin(
            store, downstream, owner, instance, lease_ms=lease_ms, monotonic_ms=monotonic_ms, at=at
        )
        run = _opened(session, workflows, notifier or downstream)
        _all_there_is_to_do(run, starts=starts)
    except RunEndsError as ends:
        if session is not None and ends.run.ended not in (Ended.LOST, Ended.NOT_ACQUIRED):
            session.release()
        return ends.run


def _all_there_is_to_do(run: Pass, *, starts: bool) -> NoReturn:
    """Until there is nothing to do; ends by `RunEndsError` only."""
    overtaken = 0
    while True:
        run.session.may_send()
        tell(run)
        todo = next_todo(run.row, run.requests(), run.now_ms(), ignored=run.ignored)
        if run.row.status in FINISHED:
            run.end(Ended.FINISHED, run.row.status)
        if todo.what is What.WAIT:
            run.end(Ended.WAITING, todo.why)
        if todo.what in STARTS and not starts:
            run.end(Ended.WAITING, _a_worker(todo))
        try:
            HANDLERS[todo.what](run, todo)
            overtaken = 0
        except OvertakenError as error:
            overtaken += 1
            if overtaken > REPLANS:
                run.end(Ended.UNDECIDED, str(error), todo.step)


def _a_worker(todo: Todo) -> str:
    return f"a worker: {todo.what} {todo.step}".rstrip()


# Definitions and checkpoints (§8, §14).


def code_for(row: Row, workflows: Sequence[Workflow]) -> tuple[Workflow | None, str | None]:
    """The code that may go on with an instance, and the migration that this takes, if one."""
    own = [workflow for workflow in workflows if row.definition and workflow.id == row.definition.id]
    for workflow in own:
        if workflow.definition == row.definition:
            return workflow, None
    for workflow in own:
        if row.definition in workflow.formers and not _misfit(row, workflow):
            return workflow, workflow.formers[row.definition]
    return None, None


def _misfit(row: Row, workflow: Workflow) -> str:
    """What the code lacks that the steps of an instance may still need, in words; empty if nothing."""
    for step in row.steps:
        code, named = workflow.steps.get(step.step), f"the step {step.step!r}"
        over = step.status in (StepStatus.FAILED, StepStatus.CANCELLED, StepStatus.COMPENSATED)
        if code is None and not over:
            return f"{named}, which is {step.status}, is missing"
        if code is not None and step.intent and step.intent.compensation and code.undo is None and not over:
            return f"{named} has no compensation, and began with {step.intent.compensation!r}"
        waits_again = step.status is StepStatus.WAITING_APPROVAL and step.intent is not None
        if code is not None and code.other is None and waits_again:
            return f"{named} waits for the approval of another intent, and has no function `instead`"
    return ""


def _no_migration(row: Row, workflows: Sequence[Workflow]) -> str:
    """Which migration there is from the definition of an instance, and why it is none for it; or nothing."""
    for workflow in workflows:
        if row.definition in workflow.formers:
            name = workflow.formers[row.definition]
            return f"the migration {name!r} does not fit: {_misfit(row, workflow)}"
    return ""


def _advised(store: Store, instance: str, workflows: Sequence[Workflow], *, starts: bool) -> None:
    """Look before acquiring, which is advisory: ends the pass if there is nothing that it could do (§8)."""
    seen = reading(instance, lambda: store.read(instance))
    if isinstance(seen, Refused):
        raise RunEndsError(Run(Ended.NOT_ACQUIRED, instance, why=seen.code))
    row = seen.value
    if row.status in FINISHED:
        raise RunEndsError(Run(Ended.NOT_ACQUIRED, instance, why=codes.FINISHED))
    if row.definition is None or all(workflow.id != row.definition.id for workflow in workflows):
        why = "other code" if row.definition is None else f"code of {row.definition.id!r}"
        raise RunEndsError(Run(Ended.WAITING, instance, why=why))
    requests = reading(instance, lambda: store.inbox(instance, unconsumed=True))
    todo = next_todo(row, requests, reading(instance, store.now_ms))
    workflow, migration = code_for(row, workflows)
    migrates = migration is not None and _may_leave(row, todo)
    waits = todo.what is What.WAIT or (todo.what in STARTS and not starts)
    handed_over = workflow is None and row.manual_cause is not None
    untold = _is_untold(store, instance)
    if handed_over or (waits and workflow is not None and not migrates and not untold):
        lacks = _no_migration(row, workflows) if workflow is None else ""
        why = "; ".join(part for part in (todo.why or _a_worker(todo), lacks) if part)
        raise RunEndsError(Run(Ended.WAITING, instance, why=why))


def _is_untold(store: Store, instance: str) -> bool:
    """Whether there is a notification to be sent, which has not been given up."""
    stored = reading(instance, lambda: store.notifications(instance))
    left = {each.notification.key for each in stored if each.receipt is None}
    return bool(left) and bool(left - reading(instance, lambda: given_up(store, instance)))


def _may_leave(row: Row, todo: Todo) -> bool:
    """Whether a migration may take an instance out of where it waits for a person."""
    cause = row.manual_cause
    return cause is None or cause.startswith(OTHER_DEFINITION) or todo.what is What.RESUME


def _opened(session: Session, workflows: Sequence[Workflow], notifier: TakesEffects) -> Pass:
    """Check the row that acquire returned, whatever was checked before (§8)."""
    row = session.row
    origin = reading(row.instance, lambda: session.store.origin(row.instance))
    if origin is None or row.definition is None or not _is_whole(row.definition.id, origin):
        session.end(Ended.REFUSED, "damaged: its input is not what it began with; nothing was changed")
    workflow, migration = code_for(row, workflows)
    if workflow is None:
        hand_over(session, workflows)
    run = Pass(session, workflow, origin, notifier)
    if migration is not None:
        migrate(run, migration)
    return run


def _is_whole(definition_id: str, origin: Origin) -> bool:
    try:
        return input_fingerprint(definition_id, json.loads(origin.input)) == origin.fingerprint
    except ValueError:
        return False


def input_fingerprint(definition_id: str, value: object) -> str:
    """The fingerprint of what an instance begins with."""
    return fingerprint("start", definition_id, 1, value)


def hand_over(session: Session, workflows: Sequence[Workflow] = ()) -> NoReturn:
    """No code here may go on with the instance: a person decides, and its steps stay as they are."""
    row = session.row
    if row.manual_cause is None and row.definition is not None:
        began = f"{OTHER_DEFINITION}it began with {row.definition.fingerprint[:12]}"
        lacks = _no_migration(row, workflows)
        cause = f"{began}, and {lacks}" if lacks else f"{began}, which this code is not"
        move = Move(InstanceStatus.MANUAL_INTERVENTION, cause=cause)
        session.at("before: handed over")
        code = session.attempt("handed over: other definition", move=move)
        if code is not None:
            session.end(Ended.REFUSED, code)
        session.at("after: handed over")
    session.end(Ended.WAITING, f"a person: {session.row.manual_cause}")


def migrate(run: Pass, name: str) -> None:
    """Give the instance the definition of this code, by a commit (§14)."""
    row = run.row
    todo = next_todo(row, run.requests(), run.now_ms())
    if row.definition is None or not _may_leave(row, todo):
        run.end(Ended.WAITING, f"a person: {row.manual_cause}")
    later = run.workflow.definition
    if not _register(run, Migration(name, row.definition, later)):
        run.end(Ended.REFUSED, f"the migration {name!r} is registered as another one")
    status = InstanceStatus.UNWINDING if run.unwinds else InstanceStatus.RUNNING
    number = todo.request.number if todo.what is What.RESUME and todo.request is not None else None
    move = Move(status, decision=number, definition=later, migration=name)
    try:
        run.commit("migrated", move=move, payload=name)
    except OvertakenError as error:
        run.end(Ended.UNDECIDED, str(error))


def _register(run: Pass, migration: Migration) -> bool:
    for _ in range(TRIES):
        try:
            return not isinstance(run.store.register_migration(migration), Refused)
        except ArgumentError:
            raise
        except StoreError:
            continue
    raise RunEndsError(Run(Ended.UNDECIDED, run.row.instance, why="the store does not answer"))
