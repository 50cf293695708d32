"""What an audit says of those without a lease (§4, §10, §11, §13; S16, S17, S21, S26).

Requests and commits have times of the same clock, the store's now, in milliseconds. What has the same time
as a request may have come before it; the row that its requester read afterwards says more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fencepost.reference.audit_records import (
    FINISHED,
    OK,
    UNKNOWN,
    Found,
    Records,
    grouped,
    starts,
    step_logs,
    steps,
    whose,
)
from fencepost.reference.values import InstanceStatus, StepRow, StepStatus
from fencepost.reference.values_inbox import Requested, RequestKind


def cancel_is_honoured(records: Records) -> Found:
    """After an accepted cancel no step starts, and the instance does not end as if there were none."""
    rows = {row.instance: row for row in records.store.rows}
    at_ms = {(e.instance, e.state_version): e.committed_at_ms for e in records.store.entries}
    seen = {(a.instance, a.request_id): a.seen_version for a in records.journal.asked if a.answer == OK}
    logs = grouped(step_logs(records).values(), lambda entries: entries[0].instance)
    wrongs, accepted = [], 0
    for each in _of_kind(records, RequestKind.CANCEL):
        accepted += 1
        row, known = rows[each.instance], seen.get((each.instance, each.request.request_id))
        who = f"the cancel of {each.instance} by {each.request.requester}"
        for entry in (entry for entries in logs.get(each.instance, []) for entry in starts(entries)):
            later = at_ms.get((entry.instance, entry.state_version), 0) > each.recorded_at_ms
            if later or (known is not None and entry.state_version > known):
                wrongs.append(f"{entry.step} began at entry {entry.state_version}, after {who}")
        if row.status == InstanceStatus.SUCCEEDED:
            wrongs.append(f"{each.instance} succeeded, after {who}")
        elif row.status in FINISHED and each.consumed_by is None:
            wrongs.append(f"{each.instance} ended without {who} having been taken note of")
    late = sum(
        asked.kind == RequestKind.CANCEL and asked.answer == "finished" for asked in records.journal.asked
    )
    return f"{accepted:,} cancels accepted, {late:,} too late", accepted > 0, wrongs


def _of_kind(records: Records, kind: RequestKind) -> Iterator[Requested]:
    return (each for each in records.store.requests if each.request.kind is kind)


def approval_spent_once(records: Records) -> Found:
    """A step with a gate starts only by an approval of what it does, given in time, and used for it alone."""
    inbox = grouped(
        _of_kind(records, RequestKind.APPROVAL_DECISION), lambda each: (each.instance, each.request.step)
    )
    logs, wrongs, spent = step_logs(records), list[str](), 0
    for step in steps(records):
        used = [
            each
            for each in inbox.get((step.instance, step.step), [])
            if each.consumed_by is not None and each.request.decision == "approved"
        ]
        spent += len(used)
        entries = logs.get((step.instance, step.step), [])
        began = next(starts(entries), None)
        if step.needs_approval and began is not None:
            by = [each for each in used if each.consumed_by == began.state_version]
            if not by:
                wrongs.append(f"{whose(step)} began at entry {began.state_version} without an approval")
        elif used:
            wrongs.append(f"{whose(step)} used an approval, and needs none or never began")
        wrongs += _misused(step, used, {entry.state_version for entry in starts(entries)})
    rejected = sum(
        each.consumed_by is not None and each.request.decision == "rejected"
        for each in _of_kind(records, RequestKind.APPROVAL_DECISION)
    )
    return f"{spent:,} approvals spent, {rejected:,} rejections", spent > 0, wrongs


def _misused(step: StepRow, used: Sequence[Requested], began: set[int]) -> Iterator[str]:
    """Approvals that were used twice, too late, or for something else."""
    versions = Counter(each.request.intent_version for each in used)
    for version, number in versions.items():
        if number > 1:
            yield f"{whose(step)} used {number} approvals for one intent, version {version}"
    deadline_ms = step.approval_deadline_at_ms
    for each in used:
        what = f"approval {each.number}, by {each.request.requester}, of {whose(step)}"
        if deadline_ms is not None and each.recorded_at_ms >= deadline_ms:
            yield f"{what} was given {each.recorded_at_ms - deadline_ms} ms after its deadline, and used"
        if each.consumed_by not in began:
            yield f"{what} was used by entry {each.consumed_by}, which does not start the step"
        current = step.intent is None or step.intent.intent_version == each.request.intent_version
        does = step.approval_fingerprint if step.intent is None else step.intent.fingerprint
        asked = does if step.evidence is not None else step.approval_fingerprint  # else perhaps another's
        if current and not (each.request.fingerprint == asked == does):
            yield f"{what} is for {_short(each.request.fingerprint)}, and the step does {_short(does)}"


def _short(fingerprint: str | None) -> str:
    return "nothing" if fingerprint is None else f"{fingerprint[:12]}…"


def request_consumed_once(records: Records) -> Found:
    """A request that was answered ok is in the inbox, a refused one is not; each takes effect once, or never.

    What a person decides takes effect only in the commit that names the decision, and is over with it.
    """
    requests = records.store.requests
    there = {(each.instance, each.request.request_id): each.number for each in requests}
    accepted = {(a.instance, a.request_id) for a in records.journal.asked if a.answer == OK}
    wrongs = []
    for asked in records.journal.asked:
        number = there.get((asked.instance, asked.request_id))
        what = f"the request {asked.request_id!r} to {asked.instance}"
        if asked.answer == OK and number != asked.number:
            wrongs.append(f"{what} was answered ok as number {asked.number}, and is not there as that")
        never = (asked.instance, asked.request_id) not in accepted
        if asked.answer not in (OK, UNKNOWN) and number is not None and never:
            wrongs.append(f"{what} was refused ({asked.answer}), and is there as number {number}")
    wrongs += _misnumbered(records)
    wrongs += _used_wrongly(records)
    wrongs += _undecided(records)
    wrongs += _about_nothing(records)
    used = sum(each.consumed_by is not None for each in requests)
    return f"{len(requests):,} requests, {used:,} took effect", used > 0, wrongs


def _misnumbered(records: Records) -> Iterator[str]:
    for instance, inbox in grouped(records.store.requests, lambda each: each.instance).items():
        numbers = [each.number for each in inbox]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"the requests to {instance} are numbered {', '.join(map(str, numbers[:9]))}"


def _used_wrongly(records: Records) -> Iterator[str]:
    """Requests that took effect in a commit that is not there, or was earlier than they were."""
    at_ms = {(e.instance, e.state_version): e.committed_at_ms for e in records.store.entries}
    for each in records.store.requests:
        if each.consumed_by is None:
            continue
        what = f"request {each.number} to {each.instance}"
        used_at_ms = at_ms.get((each.instance, each.consumed_by))
        if used_at_ms is None:
            yield f"{what} took effect in entry {each.consumed_by}, which is not there"
        elif used_at_ms < each.recorded_at_ms:
            yield f"{what} took effect in entry {each.consumed_by}, before it was made"


def _undecided(records: Records) -> Iterator[str]:
    """Steps that stopped waiting for a person without that person's decision."""
    decisions = {
        (each.instance, each.request.step, each.consumed_by, each.request.decision)
        for each in _of_kind(records, RequestKind.OPERATOR_DECISION)
    }
    for entries in step_logs(records).values():
        former = None
        for entry in entries:
            left = former is StepStatus.MANUAL_INTERVENTION and entry.status is not former
            if left and (entry.instance, entry.step, entry.state_version, entry.status) not in decisions:
                yield (
                    f"{whose(entry)} waited for a person and became {entry.status} at entry "
                    f"{entry.state_version}, which nobody had decided"
                )
            former = entry.status


def _about_nothing(records: Records) -> Iterator[str]:
    """Decisions that still stand about steps that wait for none: they would count the next time."""
    asked_for = {
        (step.instance, step.step) for step in steps(records) if step.status is StepStatus.MANUAL_INTERVENTION
    }
    for each in _of_kind(records, RequestKind.OPERATOR_DECISION):
        step, stands = each.request.step, each.consumed_by is None
        if stands and step is not None and (each.instance, step) not in asked_for:
            yield (
                f"decision {each.number} about {step} of {each.instance} stands in the inbox, "
                "and the step waits for none"
            )


def one_instance_per_trigger(records: Records) -> Found:
    """Each event began one instance, however often it was delivered, and no instance was begun by two."""
    rows = {row.instance for row in records.store.rows}
    begun = {(origin.source, origin.event_id): origin.instance for origin in records.store.origins}
    deliveries = Counter((each.source, each.event_id) for each in records.journal.triggered)
    wrongs = []
    for each in records.journal.triggered:
        of = begun.get((each.source, each.event_id))
        if each.answer == OK and of != each.instance:
            wrongs.append(
                f"event {each.event_id} of {each.source} was answered with {each.instance}, "
                f"and began {of or 'nothing'}"
            )
    wrongs += [
        f"event {event_id} of {source} began {instance}, which is not in the store"
        for (source, event_id), instance in begun.items()
        if instance not in rows
    ]
    wrongs += [
        f"{instance} was begun by {number} events"
        for instance, number in Counter(begun.values()).items()
        if number > 1
    ]
    again = sum(number - 1 for number in deliveries.values())
    return f"{len(begun):,} events, {again:,} times delivered again", bool(begun) and again > 0, wrongs
