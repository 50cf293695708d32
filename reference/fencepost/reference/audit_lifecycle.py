"""What an audit says of instances and their steps (§5, §9, §10, §12; L1, S14, S15, S18, S20)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from fencepost.reference.audit_records import (
    ENDED_WITHOUT,
    FINISHED,
    Found,
    Records,
    first,
    grouped,
    starts,
    step_logs,
    steps,
    whose,
)
from fencepost.reference.downstream_observe import AppliedEffect
from fencepost.reference.values import InstanceStatus, Row, StepEntry, StepRow, StepStatus
from fencepost.reference.values_inbox import Requested, RequestKind

MOVING: Final = (StepStatus.RUNNING, StepStatus.RETRY_SCHEDULED, StepStatus.COMPENSATING)
"""Steps in these go on by themselves, as soon as there is a worker and the time has come."""

NOT_STARTED: Final = (StepStatus.PENDING, StepStatus.WAITING_APPROVAL)
"""Steps in these are cancelled by the first commits of an instance that unwinds."""


def every_instance_settles(records: Records) -> Found:
    """Each instance that was begun is finished, or waits for a person."""
    rows = {row.instance: row for row in records.store.rows}
    inbox = grouped(records.store.requests, lambda each: each.instance)
    wrongs = [f"{name} is not in the store" for name in records.instances if name not in rows]
    waiting = list[str]()
    for row in rows.values():
        if row.status in FINISHED:
            continue
        awaited = _awaits(row, inbox.get(row.instance, []), records.store.now_ms)
        if awaited:
            waiting.append(f"{row.instance} for {awaited}")
        else:
            wrongs.append(f"{row.instance} is still {row.status}, and no person is asked for anything")
    ends = Counter(row.status for row in rows.values() if row.status in FINISHED)
    said = [f"{number:,} {status}" for status, number in sorted(ends.items())]
    if waiting:
        more = f" and {len(waiting) - 3:,} more" if len(waiting) > 3 else ""
        said.append(f"{len(waiting):,} waiting for a person ({'; '.join(waiting[:3])}{more})")
    return f"of {len(records.instances):,} instances {', '.join(said) or 'none'}", bool(rows), wrongs


def _awaits(row: Row, inbox: Sequence[Requested], now_ms: int) -> str:
    """What an instance that is not finished waits for a person to say; empty if there is work to do."""
    standing = [each.request for each in inbox if each.consumed_by is None]
    if row.manual_cause is not None:
        return f"a decision: {row.manual_cause}"
    unwinds = row.unwinding_cause is not None
    if any(each.kind is RequestKind.CANCEL for each in standing) or _passed(row.deadline_at_ms, now_ms):
        return ""
    decided = {
        (each.step, each.fingerprint, each.intent_version)
        for each in standing
        if each.kind is RequestKind.APPROVAL_DECISION
    }
    succeeded = {step.step for step in row.steps if step.status is StepStatus.SUCCEEDED}
    asked = list[str]()
    for step in row.steps:
        if step.status in MOVING or (unwinds and step.status in NOT_STARTED):
            return ""
        if step.status is StepStatus.PENDING and succeeded.issuperset(step.depends_on):
            return ""
        if step.status is StepStatus.WAITING_APPROVAL:
            over = _passed(step.approval_deadline_at_ms, now_ms)
            if over or (step.step, step.approval_fingerprint, step.asked_version) in decided:
                return ""
            asked.append(f"the approval of {step.step}")
        if step.status is StepStatus.MANUAL_INTERVENTION:
            asked.append(f"a decision on {step.step}: {step.reason}")
    return " and ".join(asked)


def _passed(at_ms: int | None, now_ms: int) -> bool:
    return at_ms is not None and at_ms <= now_ms


def recovery_repeats_nothing(records: Records) -> Found:
    """A step that has succeeded is not run again: from then on it is at most compensated."""
    wrongs, done = [], 0
    for entries in step_logs(records).values():
        succeeded = first(entries, StepStatus.SUCCEEDED)
        if succeeded is None:
            continue
        done += 1
        back = first(entries, StepStatus.COMPENSATING)
        wrongs += [
            f"{whose(entry)} had succeeded at entry {succeeded} and became {entry.status} "
            f"at entry {entry.state_version}"
            for entry in entries
            if succeeded < entry.state_version and (back is None or entry.state_version < back)
        ]
        wrongs += [
            f"{whose(entry)} was being compensated and became {entry.status} at entry {entry.state_version}"
            for entry in entries
            if back is not None and entry.state_version > back and entry.status in MOVING[:2]
        ]
    taken_over = sum(max(0, row.lease_version - 1) for row in records.store.rows)
    return f"{done:,} successes, {taken_over:,} takeovers", done > 0 and taken_over > 0, wrongs


def order_is_kept(records: Records) -> Found:
    """No step began before all that it depends on had succeeded, and no instance succeeded without each step.

    What a step depends on is what the store says of it. A success in the commit that starts the step counts.
    """
    of, wrongs, begun = step_logs(records), [], 0
    for row in records.store.rows:
        for step in row.steps:
            for entry in starts(of.get((row.instance, step.step), [])):
                begun += 1
                for needed in step.depends_on:
                    succeeded = first(of.get((row.instance, needed), []), StepStatus.SUCCEEDED)
                    if succeeded is None or succeeded > entry.state_version:
                        wrongs.append(
                            f"{whose(step)} began at entry {entry.state_version}, before {needed}, "
                            "which it depends on, had succeeded"
                        )
        missing = [step.step for step in row.steps if step.status is not StepStatus.SUCCEEDED]
        if row.status == InstanceStatus.SUCCEEDED and missing:
            wrongs.append(f"{row.instance} succeeded without {', '.join(missing)}")
    edges = sum(len(step.depends_on) for step in steps(records))
    return f"{begun:,} times a step was begun, {edges:,} dependencies", begun > 0, wrongs


def timer_fires_once(records: Records) -> Found:
    """Each attempt of a step is counted, one by one, and there are no more than its budget allows."""
    of, wrongs, retries = step_logs(records), [], 0
    for step in steps(records):
        entries, most = of.get((step.instance, step.step), []), step.most_attempts
        if entries and entries[0].attempt > 1:
            wrongs.append(f"{whose(step)} began with attempt {entries[0].attempt}")
        for former, entry in pairwise(entries):
            again = former.status is StepStatus.RETRY_SCHEDULED and entry.status is StepStatus.RUNNING
            retries += again
            if entry.attempt - former.attempt not in ((1,) if again else (0, 1)):
                wrongs.append(
                    f"{whose(step)} went from attempt {former.attempt} to {entry.attempt} "
                    f"at entry {entry.state_version}"
                )
        if most is not None and step.attempt > most:
            wrongs.append(f"{whose(step)} was attempted {step.attempt} times, and may be {most} times")
        if entries and entries[-1].attempt != step.attempt:
            wrongs.append(
                f"{whose(step)} has attempt {step.attempt}, and its log ends with {entries[-1].attempt}"
            )
    return f"{retries:,} retries after their time", retries > 0, wrongs


# Compensations (§10, §12).


def compensation_once_in_order(records: Records) -> Found:
    """What happened, and can be undone, is undone once, the last success first; nothing else is undone.

    Only an instance that unwinds undoes anything, and one that ended so leaves nothing to undo.
    """
    of = grouped(records.downstream.effects, lambda effect: effect.key)
    wrongs = list[str]()
    logs, begun = step_logs(records), 0
    for row in records.store.rows:
        log = {step.step: logs.get((row.instance, step.step), []) for step in row.steps}
        begun += sum(first(entries, StepStatus.COMPENSATING) is not None for entries in log.values())
        wrongs += _undone_out_of_order(row, log)
        wrongs += _left_undone(row)
        for step in row.steps:
            if step.undo is not None:
                wrongs += _undone_wrongly(step, of)
        wrongs += _effects_out_of_order(row, log, of)
    done = sum(step.status is StepStatus.COMPENSATED for step in steps(records))
    return f"{begun:,} compensations begun, {done:,} done", done > 0, wrongs


def _undone_out_of_order(row: Row, log: Mapping[str, Sequence[StepEntry]]) -> Iterator[str]:
    """Steps whose compensation began without a success, or while a later success was still to be undone."""
    undoable = {step.step for step in row.steps if step.intent is not None and step.intent.compensation}
    succeeded = {name: first(entries, StepStatus.SUCCEEDED) for name, entries in log.items()}
    for name, entries in log.items():
        begun, own = first(entries, StepStatus.COMPENSATING), succeeded[name]
        if begun is None:
            continue
        if own is None or own > begun:
            yield f"{name} of {row.instance} was compensated at entry {begun} without having succeeded"
            continue
        if row.unwinding_cause is None:
            yield f"{name} of {row.instance} was compensated though the instance does not unwind"
        for other in undoable - {name}:
            later, done = succeeded[other], first(log[other], StepStatus.COMPENSATED)
            if later is not None and later > own and (done is None or done > begun):
                yield (
                    f"{name} of {row.instance} was compensated at entry {begun}, before {other}, "
                    f"which had succeeded later"
                )


def _left_undone(row: Row) -> Iterator[str]:
    if row.status not in (InstanceStatus.FAILED, InstanceStatus.CANCELLED):
        return
    for step in row.steps:
        if step.status is StepStatus.SUCCEEDED and step.intent is not None and step.intent.compensation:
            yield f"{row.instance} ended as {row.status}, and {step.step} was never undone"


def _undone_wrongly(step: StepRow, of: Mapping[str, Sequence[AppliedEffect]]) -> Iterator[str]:
    """A compensation that happened twice, or for an effect that had not happened before it."""
    if step.undo is None or step.intent is None:
        return
    undone, done = of.get(step.undo.key, []), of.get(step.intent.key, [])
    if len(undone) > 1:
        numbers = ", ".join(f"effect {effect.number}" for effect in undone)
        yield f"{whose(step)} was compensated {len(undone)} times: {numbers}"
    happened = any(effect.number < undone[0].number for effect in done) if undone else True
    if not happened and not step.attested:
        yield f"{whose(step)} was compensated by effect {undone[0].number}, and had not happened before"
    if step.status in ENDED_WITHOUT:
        yield f"{whose(step)} was compensated, and is {step.status}"


def _effects_out_of_order(
    row: Row, log: Mapping[str, Sequence[StepEntry]], of: Mapping[str, Sequence[AppliedEffect]]
) -> Iterator[str]:
    """Compensations whose effects are in the ledger in another order than the falling one."""
    undone = [
        (of[step.undo.key][0].number, first(log[step.step], StepStatus.SUCCEEDED) or 0, step.step)
        for step in row.steps
        if step.undo is not None and step.undo.key in of
    ]
    for (number, own, name), (_, later, other) in pairwise(sorted(undone)):
        if later > own:
            yield (
                f"{name} of {row.instance} was undone by effect {number}, before {other}, "
                "which had succeeded later"
            )
