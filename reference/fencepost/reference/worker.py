"""A worker: runs the steps of an instance in order, each with at most one effect outside (§3, §4, §6).

The order of one effect, with a crash possible between any two: derive key and fingerprint; commit `running`
with the intent; only when that commit is known to be accepted, send, with the lease version as the token; get
the receipt; commit the outcome with it. What an earlier owner left half-done, `recovery.py` settles.

A worker that dies needs no clean-up, and one that lost its lease learns it from an answer at the latest.
Nothing here reads a clock or a random source: those are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.reference.downstream_values import TakesEffects
from fencepost.reference.keys import canonical_json, fingerprint, step_key
from fencepost.reference.recovery import send, settle
from fencepost.reference.session import Ended, Run, RunEndsError, Session, begin, nothing
from fencepost.reference.store import Store
from fencepost.reference.values import (
    ArgumentError,
    Intent,
    Owner,
    StepChange,
    StepStatus,
    shown,
    text,
    whole,
)


@dataclass(frozen=True, slots=True)
class Effect:
    """What a step does outside: an operation on a resource, with parameters that JSON can hold (§6).

    `schema_version` is that of the parameters' form. `expected_revision` is for downstreams with revisions.
    Over HTTP the whole request may have 64 KiB. Raises `ArgumentError` for what is none of these.
    """

    resource: str
    operation: str
    parameters: Mapping[str, Any]
    schema_version: int = 1
    expected_revision: int | None = None

    def __post_init__(self) -> None:
        text("Effect", "resource", self.resource)
        text("Effect", "operation", self.operation)
        if not isinstance(self.parameters, Mapping):
            raise ArgumentError(
                f"Effect: parameters must be a mapping of names, not {shown(self.parameters)}; "
                "pass {} for none"
            )
        whole("Effect", "schema_version", self.schema_version)
        if self.expected_revision is not None:
            whole("Effect", "expected_revision", self.expected_revision)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a workflow: its name, its effect if it has one, and a name for what would undo that."""

    name: str
    effect: Effect | None = None
    compensation: str | None = None

    def __post_init__(self) -> None:
        text("Step", "name", self.name)


def intent_of(instance: str, step: Step, effect: Effect, *, version: int = 1) -> Intent:
    """An intent of a step, by default the first: derived, then stored, and never derived again (§6)."""
    parameters = dict(effect.parameters)
    return Intent(
        intent_version=version,
        key=step_key(instance, step.name, effect.resource, version),
        fingerprint=fingerprint(effect.operation, effect.resource, effect.schema_version, parameters),
        resource=effect.resource,
        operation=effect.operation,
        parameters=canonical_json(parameters),
        expected_revision=effect.expected_revision,
        compensation=step.compensation,
    )


def _start(session: Session, step: Step) -> None:
    """Run a step that is pending: its effect, if it has one, is sent for the first time."""
    session.may_send()
    if step.effect is None:
        session.commit("started", StepChange(step.name, StepStatus.RUNNING))
        session.commit("succeeded", StepChange(step.name, StepStatus.SUCCEEDED))
        return
    intent = intent_of(session.row.instance, step, step.effect)
    session.at("derived")
    session.commit("started", StepChange(step.name, StepStatus.RUNNING, intent=intent))
    session.at("intent-committed")
    send(session, step.name)


def run_once(
    store: Store,
    downstream: TakesEffects,
    owner: Owner,
    instance: str,
    steps: Sequence[Step],
    *,
    lease_ms: int,
    monotonic_ms: Callable[[], int],
    at: Callable[[str], None] = nothing,
) -> Run:
    """Acquire the instance, settle what an earlier owner left, and run its steps in order (§6, §8).

    `lease_ms` is how long the lease is asked for, in milliseconds; it is renewed when half of it is over.
    `monotonic_ms` is the worker's own clock, from any moment, never set back. `at` is told of each point
    between two steps, for those who look on; what it raises goes through, as a crash there would.

    The owner's incarnation must be new in each process (§1). Raises `ArgumentError` for steps that cannot be.
    """
    if len({step.name for step in steps}) < len(steps):
        raise ArgumentError("run_once: two steps have one name; rename one of them")
    session: Session | None = None
    try:
        session = begin(
            store, downstream, owner, instance, lease_ms=lease_ms, monotonic_ms=monotonic_ms, at=at
        )
        for step in steps:
            stored = session.steps.get(step.name)
            if stored is None or stored.status is StepStatus.PENDING:
                _start(session, step)
            elif stored.status is StepStatus.RUNNING:
                settle(session, step.name)
            stored = session.steps[step.name]
            if stored.status is not StepStatus.SUCCEEDED:
                session.end(Ended.STOPPED, stored.reason or stored.status, step.name)
        session.commit("finished", finishes=True)
    except RunEndsError as ends:
        if session is not None and ends.run.ended in (Ended.STOPPED, Ended.UNDECIDED):
            session.release()
        return ends.run
    return Run(Ended.FINISHED, instance)


def run_worker(
    store: Store,
    downstream: TakesEffects,
    owner: Owner,
    steps_of: Callable[[str], Sequence[Step]],
    *,
    stop: Callable[[], bool],
    most: int,
    lease_ms: int,
    monotonic_ms: Callable[[], int],
    wait: Callable[[], None] = lambda: None,
    at: Callable[[str], None] = nothing,
) -> tuple[Run, ...]:
    """Run unfinished instances, one after the other, until none is left; what came of each run.

    `steps_of` gives the steps of an instance. Ends also when `stop` says so, asked before each run, and after
    `most` runs. `wait` is called after a round in which no instance came to its end, before the next.
    """
    whole("run_worker", "most", most)
    runs: list[Run] = []
    while True:
        ended = False
        after, names = "", store.unfinished()
        if not names:
            return tuple(runs)
        while names:
            for instance in names:
                if len(runs) >= most or stop():
                    return tuple(runs)
                run = run_once(
                    store,
                    downstream,
                    owner,
                    instance,
                    steps_of(instance),
                    lease_ms=lease_ms,
                    monotonic_ms=monotonic_ms,
                    at=at,
                )
                runs.append(run)
                ended = ended or run.ended in (Ended.FINISHED, Ended.STOPPED)
            after = names[-1]
            names = store.unfinished(after=after)
        if not ended:
            wait()
