"""Run workflows (§4 to §14): start instances, work on them, recover them; cancel, approve and decide.

`work` is what a worker process does, `run_instance` one pass over one instance, `recover` the same without
starting anything. Each call of a requester puts a request into the inbox of an instance; a worker honours it.
What the protocol refuses is in the answers; only broken arguments and a broken environment raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fencepost.reference import codes
from fencepost.reference.downstream_values import TakesEffects
from fencepost.reference.driving import drive, input_fingerprint
from fencepost.reference.keys import canonical_json, trigger_key
from fencepost.reference.session import Ended, Run, nothing
from fencepost.reference.store import Store
from fencepost.reference.telling import deliver
from fencepost.reference.values import (
    FINISHED,
    Answer,
    ArgumentError,
    Owner,
    Refused,
    Row,
    StepStatus,
    StoreError,
)
from fencepost.reference.values_inbox import (
    Beginning,
    Requested,
    approval,
    cancellation,
    operator_decision,
    resumption,
)
from fencepost.reference.workflow import Workflow


def start(
    store: Store,
    workflow: Workflow,
    *,
    source: str,
    event_id: str,
    input: Any = None,  # noqa: A002  # what everybody calls it
    implicit: Any = None,
    instance: str | None = None,
) -> Answer[Row]:
    """Begin the one instance of an event, however often it is delivered (§13); ok with its row.

    `input` and `implicit` are JSON: what the event says, and what is taken for granted (time zone, ordering,
    versions of models and configuration), which later owners use as it is recorded (§15). `instance` is its
    name, by default made of `source` and `event_id`. Refused `key-conflict` if the event is known with
    another input, `instance-exists` if the name is taken. Raises `ArgumentError` for what JSON does not have,
    and for a workflow without steps.
    """
    if not workflow.steps:
        raise ArgumentError(f"start: {workflow.id!r} has no steps; define one with @workflow.step()")
    now_ms = store.now_ms()
    beginning = Beginning(
        instance=instance or trigger_key(source, event_id).removeprefix("trigger/"),
        definition=workflow.definition,
        input=canonical_json(input),
        fingerprint=input_fingerprint(workflow.id, input),
        implicit_inputs=canonical_json(implicit),
        steps=workflow.plans(now_ms),
        deadline_at_ms=None if workflow.deadline_ms is None else now_ms + workflow.deadline_ms,
    )
    return store.trigger(source, event_id, beginning)


# Workers.


def run_instance(
    store: Store,
    downstream: TakesEffects,
    *,
    owner: Owner,
    instance: str,
    workflows: Sequence[Workflow],
    lease_ms: int,
    monotonic_ms: Callable[[], int],
    notifier: TakesEffects | None = None,
    at: Callable[[str], None] = nothing,
) -> Run:
    """One pass over one instance: all that can be done now, under one lease (§3 to §14); how it ended.

    If nothing can be done, no lease is taken. The `owner`'s incarnation must be new in each process (§1).
    `lease_ms` is how long the lease is asked for, in milliseconds; it is renewed when half of it is over.
    `monotonic_ms` is the worker's own clock, from any moment, never set back. `notifier` takes notifications,
    by default the downstream. `at` is told of each point between two steps of the work; what it raises goes
    through, as a crash there would.
    """
    return drive(
        store,
        downstream,
        owner,
        instance,
        workflows,
        lease_ms=lease_ms,
        monotonic_ms=monotonic_ms,
        notifier=notifier,
        at=at,
        starts=True,
    )


def recover(
    store: Store,
    downstream: TakesEffects,
    *,
    owner: Owner,
    instance: str,
    workflows: Sequence[Workflow],
    lease_ms: int,
    monotonic_ms: Callable[[], int],
    notifier: TakesEffects | None = None,
    at: Callable[[str], None] = nothing,
) -> Run:
    """Settle what earlier owners left half-done, honour what was requested, and start nothing new (§8).

    For who brings a store back up by hand; a worker recovers by itself. It also migrates an instance that
    waits because of its definition, which `work` does not look for. The arguments are those of
    `run_instance`.
    """
    return drive(
        store,
        downstream,
        owner,
        instance,
        workflows,
        lease_ms=lease_ms,
        monotonic_ms=monotonic_ms,
        notifier=notifier,
        at=at,
        starts=False,
    )


def work(
    store: Store,
    downstream: TakesEffects,
    *,
    owner: Owner,
    workflows: Sequence[Workflow],
    lease_ms: int,
    monotonic_ms: Callable[[], int],
    stop: Callable[[], bool] = lambda: False,
    wait: Callable[[], None] | None = None,
    heard: Callable[[Run], None] = lambda _: None,
    notifier: TakesEffects | None = None,
    at: Callable[[str], None] = nothing,
) -> int:
    """Work on all instances of these workflows, one pass after the other; how many passes there were.

    When there is nothing to do now, it returns; with `wait` it calls that, and looks again, also if the store
    did not answer, which without `wait` raises `StoreError`. `stop` is asked before each pass, `heard` told
    how it ended. A pass that loses its lease ends, and the next instance follows. The other arguments
    are those of `run_instance`.
    """
    passes = 0
    while True:
        progress = False
        for instance in _workable(store, patient=wait is not None):
            if stop():
                return passes
            run = run_instance(
                store,
                downstream,
                owner=owner,
                instance=instance,
                workflows=workflows,
                lease_ms=lease_ms,
                monotonic_ms=monotonic_ms,
                notifier=notifier,
                at=at,
            )
            passes += 1
            heard(run)
            progress = progress or run.ended is Ended.FINISHED
        _tell_the_rest(store, notifier or downstream, patient=wait is not None)
        if progress:
            continue
        if wait is None or stop():
            return passes
        wait()


def _workable(store: Store, *, patient: bool) -> Iterator[str]:
    after = ""
    while True:
        try:
            names = store.workable(after=after)
        except ArgumentError:
            raise
        except StoreError:
            if patient:
                return
            raise
        if not names:
            return
        yield from names
        after = names[-1]


def _tell_the_rest(store: Store, notifier: TakesEffects, *, patient: bool) -> None:
    try:
        deliver(store, notifier)
    except ArgumentError:
        raise
    except StoreError:
        if not patient:
            raise


# Requesters. Each request has an id that is the same each time it is sent, and is never used for another.


def cancel(
    store: Store, instance: str, *, requester: str, request_id: str | None = None, reason: str | None = None
) -> Answer[Requested]:
    """Ask that an instance be cancelled: nothing starts from now on, and what was done is undone (§10).

    Ok with the request: it will be honoured. Refused `finished` if it comes too late, `no-such-instance`.
    """
    asked = cancellation(
        request_id or _request_id("cancel", requester, reason), requester=requester, reason=reason
    )
    return store.request(instance, asked)


def _request_id(what: str, requester: str, reason: str | None) -> str:
    """The same for the same request, so that asking twice is asking once."""
    return f"{what} by {requester}" + (f": {reason}" if reason else "")


def approve(
    store: Store,
    instance: str,
    *,
    step: str,
    requester: str,
    request_id: str | None = None,
    reason: str | None = None,
) -> Answer[Requested]:
    """Approve what a step is about to do, once (§11).

    Refused `deadline-passed` if it comes too late, `illegal-transition` if the step does not wait for an
    approval now, `no-such-step` if it never does, `finished`, `no-such-instance`.
    """
    return _decide_gate(store, instance, step, requester, request_id, reason, approved=True)


def reject(
    store: Store,
    instance: str,
    *,
    step: str,
    requester: str,
    request_id: str | None = None,
    reason: str | None = None,
) -> Answer[Requested]:
    """Refuse what a step is about to do: it is cancelled, and the instance unwinds (§11). See `approve`."""
    return _decide_gate(store, instance, step, requester, request_id, reason, approved=False)


def _decide_gate(
    store: Store,
    instance: str,
    step: str,
    requester: str,
    request_id: str | None,
    reason: str | None,
    *,
    approved: bool,
) -> Answer[Requested]:
    seen = store.read(instance)
    if isinstance(seen, Refused):
        return seen
    stored = next((each for each in seen.value.steps if each.step == step), None)
    if stored is None or not stored.needs_approval:
        return Refused(codes.NO_SUCH_STEP, seen.value)
    if seen.value.status in FINISHED:
        return Refused(codes.FINISHED, seen.value)
    if stored.status is not StepStatus.WAITING_APPROVAL or stored.approval_fingerprint is None:
        return Refused(codes.ILLEGAL_TRANSITION, seen.value)
    word, version = "approve" if approved else "reject", stored.asked_version
    what = f"{word} {step}" if version == 1 else f"{word} {step}, intent {version}"
    asked = approval(
        request_id or _request_id(what, requester, reason),
        requester=requester,
        step=step,
        fingerprint=stored.approval_fingerprint,
        approved=approved,
        intent_version=version,
        reason=reason,
    )
    return store.request(instance, asked)


def decide(
    store: Store,
    instance: str,
    *,
    step: str,
    status: StepStatus,
    requester: str,
    request_id: str,
    reason: str | None = None,
) -> Answer[Requested]:
    """Decide what becomes of a step that waits for a person now (§5, §12).

    `running` sends the same intent again, `succeeded`, `failed`, `cancelled` and, of a compensation,
    `compensated` settle it. Where keys are kept a worker first writes a tombstone, so that nothing of the
    step can still happen, and what that finds out goes before the decision: a receipt is taken over, and a
    step whose effect happened is not called failed. What nobody can prove is marked attested.

    A decision is about what has happened until now: it counts until the step leaves the person's hands, and
    of several the newest that can be honoured. Refused `nothing-to-decide` if the step waits for nobody,
    `finished`, `no-such-step`, `no-such-instance`. Raises `ArgumentError` for another status.
    """
    asked = operator_decision(request_id, requester=requester, step=step, status=status, reason=reason)
    return store.request(instance, asked)


def resume(
    store: Store, instance: str, *, requester: str, request_id: str, reason: str | None = None
) -> Answer[Requested]:
    """Decide that an instance that waits for a person goes on where it was (§8): after other code, say.

    Refused `nothing-to-decide` if it waits for nobody, `finished`, `no-such-instance`.
    """
    return store.request(instance, resumption(request_id, requester=requester, reason=reason))
