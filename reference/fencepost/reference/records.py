"""What the records of the database mean, in the words of `values.py`; the parameters of its statements."""

from __future__ import annotations

import json
from typing import Final, TypeAlias

from fencepost.reference.handle import Record
from fencepost.reference.values import (
    Commit,
    Definition,
    Entry,
    Evidence,
    Intent,
    Move,
    Notification,
    Owner,
    Row,
    StepChange,
    StepEntry,
    StepRow,
    StepStatus,
)
from fencepost.reference.values_inbox import (
    Beginning,
    Migration,
    Notified,
    Origin,
    Request,
    Requested,
    RequestKind,
    StepPlan,
)

ROW_COLUMNS: Final = 12
"""How many columns of `instances` stand first in every record that tells of a row."""

Parameters: TypeAlias = dict[str, str | int | bytes | None]
"""The parameters of a statement, by name."""


def row_of(record: Record) -> Row:
    """A row from the columns that every statement on `instances` begins with."""
    instance, worker, incarnation, lease_version, expires_at_ms, state_version, status, *rest = record
    unwinding_cause, manual_cause, definition, fingerprint, deadline_at_ms = rest[: ROW_COLUMNS - 7]
    return Row(
        instance=instance,
        owner=None if worker is None else Owner(worker, incarnation),
        lease_version=lease_version,
        expires_at_ms=expires_at_ms,
        state_version=state_version,
        status=status,
        unwinding_cause=unwinding_cause,
        manual_cause=manual_cause,
        definition=None if definition is None else Definition(definition, fingerprint),
        deadline_at_ms=deadline_at_ms,
    )


def entry_of(record: Record) -> Entry:
    """An entry of the event log."""
    instance, state_version, lease_version, worker, incarnation, *rest = record
    return Entry(instance, state_version, lease_version, Owner(worker, incarnation), *rest)


def step_of(record: Record) -> StepRow:
    """A step."""
    instance, step, status, attempt, version, key, fingerprint, resource, operation, *rest = record
    parameters, revision, compensation, intent_lease_version, unwinding, receipt, *rest = rest
    evidence, former_evidence, reason, from_status, state_version, *rest = rest
    needs_approval, approval_fingerprint, approval_deadline_at_ms, approved_by, *rest = rest
    deadline_at_ms, most_attempts, timer_at_ms, error_class, result, succeeded_at_version, *rest = rest
    attested, undo_version, undo_key, undo_fingerprint, undo_resource, undo_operation, *rest = rest
    undo_parameters, undo_revision, undo_lease_version, undo_receipt, undo_attempt, needs = rest
    intent = undo = None
    if version is not None:
        intent = Intent(version, key, fingerprint, resource, operation, parameters, revision, compensation)
    if undo_version is not None:
        undo = Intent(
            undo_version,
            undo_key,
            undo_fingerprint,
            undo_resource,
            undo_operation,
            undo_parameters,
            undo_revision,
        )
    return StepRow(
        instance=instance,
        step=step,
        status=StepStatus(status),
        attempt=attempt,
        intent=intent,
        intent_lease_version=intent_lease_version,
        unwinding=unwinding,
        receipt=receipt,
        evidence=None if evidence is None else Evidence(evidence),
        former_evidence=None if former_evidence is None else Evidence(former_evidence),
        reason=reason,
        from_status=None if from_status is None else StepStatus(from_status),
        state_version=state_version,
        depends_on=tuple(sorted(json.loads(needs))),
        needs_approval=bool(needs_approval),
        approval_fingerprint=approval_fingerprint,
        approval_deadline_at_ms=approval_deadline_at_ms,
        approved_by=approved_by,
        deadline_at_ms=deadline_at_ms,
        most_attempts=most_attempts,
        timer_at_ms=timer_at_ms,
        error_class=error_class,
        result=result,
        succeeded_at_version=succeeded_at_version,
        attested=bool(attested),
        undo=undo,
        undo_lease_version=undo_lease_version,
        undo_receipt=undo_receipt,
        undo_attempt=undo_attempt,
    )


def step_entry_of(record: Record) -> StepEntry:
    """An entry of the step log."""
    instance, state_version, step, status, attempt, version, key, unwinding, receipt, evidence = record
    return StepEntry(
        instance=instance,
        state_version=state_version,
        step=step,
        status=StepStatus(status),
        attempt=attempt,
        intent_version=version,
        key=key,
        unwinding=unwinding,
        receipt=receipt,
        evidence=None if evidence is None else Evidence(evidence),
    )


def requested_of(record: Record) -> Requested:
    """A request as the inbox holds it."""
    instance, number, recorded_at_ms, consumed_by, kind, *rest = record
    return Requested(instance, number, recorded_at_ms, consumed_by, Request(RequestKind(kind), *rest))


def notified_of(record: Record) -> Notified:
    """A notification as the store holds it."""
    instance, kind, recipient, target_version, key, fingerprint, parameters, state_version, receipt = record
    notification = Notification(kind, recipient, target_version, key, fingerprint, parameters)
    return Notified(instance, state_version, notification, receipt)


def migration_of(record: Record) -> Migration:
    """A registered migration."""
    name, former, former_fingerprint, later, later_fingerprint = record
    return Migration(name, Definition(former, former_fingerprint), Definition(later, later_fingerprint))


def origin_of(record: Record) -> Origin:
    """What an instance began with."""
    return Origin(*record)


def beginning_parameters(beginning: Beginning) -> Parameters:
    """The parameters of the statements that begin an instance."""
    return {
        "instance": beginning.instance,
        "definition": beginning.definition.id,
        "definition_fingerprint": beginning.definition.fingerprint,
        "input": beginning.input,
        "fingerprint": beginning.fingerprint,
        "implicit_inputs": beginning.implicit_inputs,
        "deadline_at_ms": beginning.deadline_at_ms,
    }


def plan_parameters(plan: StepPlan) -> Parameters:
    """The parameters of the statement that begins a step with its instance."""
    return {
        "step": plan.step,
        "needs_approval": plan.needs_approval,
        "approval_deadline_at_ms": plan.approval_deadline_at_ms,
        "deadline_at_ms": plan.deadline_at_ms,
        "most_attempts": plan.most_attempts,
    }


def migration_parameters(migration: Migration) -> Parameters:
    """The parameters of the statements on one migration."""
    return {
        "migration": migration.name,
        "from_definition": migration.former.id,
        "from_fingerprint": migration.former.fingerprint,
        "to_definition": migration.later.id,
        "to_fingerprint": migration.later.fingerprint,
    }


def change_parameters(change: StepChange) -> Parameters:
    """The parameters of the statements that change one step, beside those of the commit."""
    intent = change.intent
    return {
        "step": change.step,
        "to": change.status.value,
        "again": change.another_attempt,
        "unwinding": change.unwinding,
        "receipt": change.receipt,
        "proof": None if change.evidence is None else change.evidence.value,
        "reason": change.reason,
        "result": change.result,
        "error_class": change.error_class,
        "timer_at_ms": change.timer_at_ms,
        "approval_fingerprint": change.approval_fingerprint,
        "approval_deadline_at_ms": change.approval_deadline_at_ms,
        "request": change.request,
        "decision": change.decision,
        "version": None if intent is None else intent.intent_version,
        "idempotency_key": None if intent is None else intent.key,
        "fingerprint": None if intent is None else intent.fingerprint,
        "resource": None if intent is None else intent.resource,
        "operation": None if intent is None else intent.operation,
        "parameters": None if intent is None else intent.parameters,
        "expected_revision": None if intent is None else intent.expected_revision,
        "compensation": None if intent is None else intent.compensation,
    }


def commit_parameters(commit: Commit) -> Parameters:
    """The parameters of the commit's own compare-and-set."""
    return {
        "instance": commit.instance,
        "worker": commit.owner.worker,
        "incarnation": commit.owner.incarnation,
        "commit_id": commit.commit_id,
        "expected_state_version": commit.expected_state_version,
        "expected_lease_version": commit.expected_lease_version,
        "lease": commit.expected_lease_version,
        "event": commit.event,
        "payload": commit.payload,
        "finishes": int(commit.finishes),
    }


def move_parameters(move: Move) -> Parameters:
    """The parameters of the statement that changes the status of an instance."""
    return {
        "to": move.status.value,
        "cause": move.cause,
        "decision": move.decision,
        "migration": move.migration,
        "definition": None if move.definition is None else move.definition.id,
        "definition_fingerprint": None if move.definition is None else move.definition.fingerprint,
    }


def request_parameters(request: Request) -> Parameters:
    """The parameters of the statement that records a request."""
    return {
        "kind": request.kind.value,
        "late": request.kind is RequestKind.LATE_RESULT,
        "request_id": request.request_id,
        "requester": request.requester,
        "step": request.step,
        "decision": request.decision,
        "intent_version": request.intent_version,
        "idempotency_key": request.key,
        "fingerprint": request.fingerprint,
        "receipt": request.receipt,
        "reason": request.reason,
    }


def notification_parameters(notification: Notification) -> Parameters:
    """The parameters of the statement that stores a notification."""
    return {
        "kind": notification.kind,
        "recipient": notification.recipient,
        "target_version": notification.target_version,
        "idempotency_key": notification.key,
        "fingerprint": notification.fingerprint,
        "parameters": notification.parameters,
    }
