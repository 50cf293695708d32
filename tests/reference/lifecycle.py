"""What the tests of the whole lifecycle share: an instance with steps, commits that say only what changes."""

from typing import Any

from fencepost.reference import (
    STATEMENTS,
    Answer,
    Beginning,
    Commit,
    Definition,
    Entry,
    InstanceStatus,
    Intent,
    Move,
    Request,
    Requested,
    Row,
    StepChange,
    StepPlan,
    StepRow,
    StepStatus,
    Store,
    compensation_key,
    step_key,
)
from fencepost.reference.records import request_parameters, requested_of

from .support import ADA, ok

(
    PENDING,
    RUNNING,
    SUCCEEDED,
    FAILED,
    CANCELLED,
    MANUAL,
    WAITING,
    RETRY,
    COMPENSATING,
    COMPENSATED,
) = StepStatus

DEFINITION = Definition("order", "code-1")
LATER = Definition("order", "code-2")
LONG_MS = 10**6

UNWIND = Move(InstanceStatus.UNWINDING, cause="the customer withdrew")
HAND_OVER = Move(InstanceStatus.MANUAL_INTERVENTION, cause="the definition is another one")


def beginning(*plans: StepPlan, instance: str = "order-1", **more: Any) -> Beginning:
    return Beginning(instance, DEFINITION, "orders/1.json", "input-1", "tz=UTC", plans, **more)


def begun(store: Store, *plans: StepPlan, instance: str = "order-1", **more: Any) -> Row:
    """A triggered instance whose lease ada holds for long."""
    ok(store.trigger("shop", instance, beginning(*plans, instance=instance, **more)))
    return ok(store.acquire(instance, ADA, lease_ms=LONG_MS))


def commit(
    store: Store,
    *changes: StepChange,
    instance: str = "order-1",
    move: Move | None = None,
    requests: tuple[int, ...] = (),
    finishes: bool = False,
    row: Row | None = None,
    **more: Any,
) -> Answer[Entry]:
    """Commit on the row as it stands, as its owner; on `row`, if it is known to stand so."""
    row = row or ok(store.read(instance))
    assert row.owner is not None
    return store.commit(
        Commit(
            instance=instance,
            owner=row.owner,
            commit_id=f"{row.lease_version}-{row.state_version}",
            expected_state_version=row.state_version,
            expected_lease_version=row.lease_version,
            event="went on",
            finishes=finishes,
            changes=changes,
            move=move,
            requests=requests,
            **more,
        )
    )


def asked(store: Store, request: Request, instance: str = "order-1") -> int:
    """The number under which a request stands in the inbox."""
    recorded: Requested = ok(store.request(instance, request))
    return recorded.number


def decided_unasked(store: Store, request: Request, instance: str = "order-1") -> int:
    """The number of a decision that is in the inbox although, it may be, nobody was asked: past the guard."""
    (guard,) = (
        line for line in STATEMENTS.request.splitlines() if line.endswith("refuse: nothing-to-decide")
    )
    arguments = {**request_parameters(request), "instance": instance, "now_ms": store.now_ms()}
    recording = store._connection.execute(STATEMENTS.request.replace(f"{guard}\n", ""), arguments)
    ((recorded),) = recording.fetchall()
    return requested_of(recorded).number


def step_of(store: Store, step: str, instance: str = "order-1") -> StepRow:
    return next(each for each in ok(store.read(instance)).steps if each.step == step)


def intent_of(step: str, instance: str = "order-1", version: int = 1, **more: Any) -> Intent:
    """The intent of a step; its fingerprint is that of its name."""
    whole: dict[str, Any] = {
        "intent_version": version,
        "key": step_key(instance, step, "payment", version),
        "fingerprint": f"print of {step}",
        "resource": "payment",
        "operation": "charge",
        "parameters": "{}",
    }
    return Intent(**(whole | more))


def started(step: str, instance: str = "order-1", **more: Any) -> StepChange:
    return StepChange(step, RUNNING, intent=intent_of(step, instance, **more))


def succeeded(step: str) -> StepChange:
    return StepChange(step, SUCCEEDED, receipt=f"receipt of {step}")


def undo_of(step: str, instance: str = "order-1") -> Intent:
    """The intent of a compensation."""
    key = compensation_key(instance, step, 1)
    return Intent(1, key, f"print of undoing {step}", "payment", "refund", "{}")


def undoing(step: str, instance: str = "order-1") -> StepChange:
    return StepChange(step, COMPENSATING, intent=undo_of(step, instance))
