"""Run workflows (§4 to §14): start instances, work on them, recover them; cancel, approve and decide.

`work` is what a worker process does, `run_instance` one pass over one instance, `recover` the same without
starting anything. Each call of a requester puts a request into the inbox of an instance; a worker honours it.
What the protocol refuses is in the answers; only broken arguments and a broken environment raise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from fencepost.reference import codes
from fencepost.reference.downstream_values import Capabilities, TakesEffects
from fencepost.reference.driving import drive, input_fingerprint
from fencepost.reference.keys import canonical_json, trigger_key
from fencepost.reference.session import Ended, Run, nothing, reading_ms
from fencepost.reference.store import Store
from fencepost.reference.telling import Rounds
from fencepost.reference.values import (
    FINISHED,
    MAX_TIME_MS,
    Answer,
    ArgumentError,
    HandleError,
    Ok,
    Owner,
    Refused,
    Row,
    StepRow,
    StepStatus,
    StoreError,
    checked_owner,
    shown,
    text,
    whole,
)
from fencepost.reference.values_inbox import (
    Beginning,
    Requested,
    approval,
    cancellation,
    operator_decision,
    resumption,
)
from fencepost.reference.wording import said
from fencepost.reference.workflow import Workflow

UNANSWERED: Final = 100
"""After how many calls without an answer a worker that waits gives the store up, if no round was better."""

SEPARATES: Final = re.compile(r"[\s%:,]")
"""What separates the parts of a request's id, and so is percent-encoded within a part."""


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
    if not isinstance(workflow, Workflow):
        raise ArgumentError(f"start: workflow must be a Workflow, not {shown(workflow)}; pass the object")
    if not workflow.steps:
        raise ArgumentError(f"start: {workflow.id!r} has no steps; define one with @workflow.step()")
    named = trigger_key(source, event_id).removeprefix("trigger/") if instance is None else instance
    now_ms = store.now_ms()
    beginning = Beginning(
        instance=text("start", "instance", named),
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
    _check("run_instance", downstream, owner, workflows, lease_ms, monotonic_ms, notifier)
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
    _check("recover", downstream, owner, workflows, lease_ms, monotonic_ms, notifier)
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

    When there is nothing to do now, it returns; with `wait` it calls that, and looks again. `stop` is asked
    before each pass, `heard` told how it ended. A pass that loses its lease ends, and the next instance
    follows. So it does where a pass breaks, which ends it as `broken`: `heard` is told what was raised, and
    without `wait` the first such error is raised, once the others were served. The other arguments are those
    of `run_instance`.

    If the store does not answer, that raises `StoreError`. With `wait`, `heard` is told of it as an
    `undecided` run of no instance, and it is raised when it happened `UNANSWERED` times in a row. A closed
    store raises `HandleError` at once.
    """
    _check("work", downstream, owner, workflows, lease_ms, monotonic_ms, notifier)
    one = partial(
        run_instance,
        store,
        downstream,
        owner=owner,
        workflows=workflows,
        lease_ms=lease_ms,
        monotonic_ms=monotonic_ms,
        notifier=notifier,
        at=at,
    )
    rounds = Rounds(store, notifier or downstream)
    patience = _Patience(heard, waits=wait is not None)
    passes = 0
    broken: StoreError | None = None
    while True:
        progress, before = False, patience.unanswered
        for instance in _workable(store, patience):
            if stop():
                return passes
            try:
                run = one(instance=instance)
            except StoreError as error:
                broken = broken or error
                run = Run(Ended.BROKEN, instance, why=said(error))
            passes += 1
            heard(run)
            progress = progress or run.ended is Ended.FINISHED
        _tell_the_rest(rounds, patience)
        if patience.unanswered == before:
            patience.unanswered = 0  # a round in which each answer came
        if progress:
            continue
        if wait is None and broken is not None:
            raise broken
        if wait is None or stop():
            return passes
        wait()


@dataclass(slots=True)
class _Patience:
    """How long a worker puts up with a store that does not answer."""

    heard: Callable[[Run], None]
    waits: bool
    unanswered: int = 0

    def strain(self, error: StoreError) -> None:
        """Tell of an error, or raise it: at once where waiting is of no use, else when it comes too often."""
        self.unanswered += 1
        of_no_use = isinstance(error, ArgumentError | HandleError)
        if of_no_use or not self.waits or self.unanswered >= UNANSWERED:
            raise error
        self.heard(Run(Ended.UNDECIDED, "", why=f"the store does not answer: {said(error)}"))


def _workable(store: Store, patience: _Patience) -> Iterator[str]:
    after = ""
    while True:
        try:
            names = store.workable(after=after)
        except StoreError as error:
            patience.strain(error)
            return
        if not names:
            return
        yield from names
        after = names[-1]


def _tell_the_rest(rounds: Rounds, patience: _Patience) -> None:
    try:
        rounds.go()
    except StoreError as error:
        patience.strain(error)


def _check(
    who: str,
    downstream: object,
    owner: object,
    workflows: object,
    lease_ms: object,
    monotonic_ms: object,
    notifier: object,
) -> None:
    """Refuse what is wrong for every instance, before the first one."""
    checked_owner(who, owner)
    if not isinstance(workflows, Sequence) or not all(isinstance(each, Workflow) for each in workflows):
        raise ArgumentError(
            f"{who}: workflows must be a list of Workflow, not {shown(workflows)}; write [workflow]"
        )
    whole(who, "lease_ms", lease_ms, lowest=1, highest=MAX_TIME_MS)
    reading_ms(who, monotonic_ms)
    for name, each in (("downstream", downstream), ("notifier", notifier or downstream)):
        if not isinstance(getattr(each, "capabilities", None), Capabilities):
            raise ArgumentError(
                f"{who}: {name} must be a downstream with its Capabilities, not {shown(each)}; "
                "see TakesEffects"
            )


# Requesters. Each request has an id that is the same each time it is sent, and is never used for another.


def cancel(
    store: Store, instance: str, *, requester: str, request_id: str | None = None, reason: str | None = None
) -> Answer[Requested]:
    """Ask that an instance be cancelled: nothing starts from now on, and what was done is undone (§10).

    Ok with the request: it will be honoured. Refused `finished` if it comes too late, `no-such-instance`.
    """
    name = _request_id("cancel", "cancel", requester, reason) if request_id is None else request_id
    return store.request(instance, cancellation(name, requester=requester, reason=reason))


def _request_id(who: str, what: str, requester: str, reason: str | None) -> str:
    """The same for the same request, and another for any other: no part looks like two."""
    by = f"{what} by {_part(who, 'requester', requester)}"
    return by if reason is None else f"{by}: {text(who, 'reason', reason)}"


def _part(who: str, what: str, value: str) -> str:
    return SEPARATES.sub(lambda found: quote(found.group()), text(who, what, value))


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
    approval now, `no-such-step` if it never does, `finished`, `no-such-instance`. The same call again, also
    after the step has started or the instance has ended, is answered as the first. Without a `request_id`
    the same call is one for the same question: where a step asks anew (§6), it approves that.
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
    word = "approve" if approved else "reject"
    seen = store.read(instance)
    if isinstance(seen, Refused):
        return seen
    stored = next((each for each in seen.value.steps if each.step == text(word, "step", step)), None)
    if stored is None or not stored.needs_approval:
        return Refused(codes.NO_SUCH_STEP, seen.value)
    fingerprint = stored.approval_fingerprint
    waits = stored.status is StepStatus.WAITING_APPROVAL and seen.value.status not in FINISHED
    names = (
        [_gate_id(word, step, version, requester, reason) for version in _versions(stored, waits=waits)]
        if request_id is None
        else [text(word, "request_id", request_id)]
    )
    known = _known(store, instance, names)
    if known is not None:
        decision, first = "approved" if approved else "rejected", known.request
        said_then = (first.requester, first.step, first.decision, first.reason)
        same = said_then == (requester, step, decision, reason)
        return Ok(known) if same else Refused(codes.KEY_CONFLICT, seen.value)
    if not waits or fingerprint is None:
        return Refused(_too_late(seen.value), seen.value)
    asked = approval(
        names[0],
        requester=requester,
        step=step,
        fingerprint=fingerprint,
        approved=approved,
        intent_version=stored.asked_version,
        reason=reason,
    )
    return store.request(instance, asked)


def _versions(stored: StepRow, *, waits: bool) -> range:
    """Which intents of a step the call may be about: the one that is asked for, else the newest known."""
    return range(stored.asked_version, stored.asked_version - 1 if waits else 0, -1)


def _gate_id(word: str, step: str, version: int, requester: str, reason: str | None) -> str:
    what = f"{word} {_part(word, 'step', step)}"
    return _request_id(word, what if version == 1 else f"{what}, intent {version}", requester, reason)


def _known(store: Store, instance: str, names: list[str]) -> Requested | None:
    """The request in the inbox under the first of these ids that is known."""
    inbox = {each.request.request_id: each for each in store.inbox(instance)}
    return next((inbox[name] for name in names if name in inbox), None)


def _too_late(row: Row) -> str:
    return codes.FINISHED if row.status in FINISHED else codes.ILLEGAL_TRANSITION


def decide(
    store: Store,
    instance: str,
    *,
    step: str,
    status: StepStatus | str,
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
