"""The tables of the store, as they are since version 3 (§1, §4 to §14), and what makes them of version 2.

They repeat what a database can hold by itself: a writer that goes past the statements of the store meets
the checks and triggers here. `instances` is the row of the gates, `steps` what §5 says of each step; `inbox`
holds the requests of those without a lease, `triggers` what an instance began with. The event log and the
clock are as version 1 made them; see `sql_history.py`. What version 5 made of `steps` is in `sql_waiting.py`.
"""

from __future__ import annotations

from typing import Final

_INSTANCES: Final = (
    # A null expiry is minus infinity: released, or never leased. The causes say where an instance stands,
    # also within a commit that ends it: one that has begun to unwind never runs again, and never succeeds.
    """
    create table instances (
        instance text not null primary key check (instance <> ''),
        owner_worker text check (owner_worker <> ''),
        owner_incarnation integer check (owner_incarnation >= 0),
        lease_version integer not null check (lease_version >= 0),
        expires_at_ms integer check (expires_at_ms >= 0),
        state_version integer not null check (state_version >= 0),
        status text not null check (
            status in ('running', 'unwinding', 'succeeded', 'failed', 'cancelled', 'manual_intervention')),
        unwinding_cause text check (unwinding_cause <> ''),
        manual_cause text check (manual_cause <> ''),
        definition text check (definition <> ''),
        definition_fingerprint text check (definition_fingerprint <> ''),
        deadline_at_ms integer check (deadline_at_ms >= 0),
        check ((owner_worker is null) = (owner_incarnation is null)),
        check ((owner_worker is null) = (lease_version = 0)),
        check (expires_at_ms is null or lease_version > 0),
        check (status not in ('running', 'succeeded') or unwinding_cause is null),
        check (status <> 'unwinding' or unwinding_cause is not null),
        check ((status = 'manual_intervention') = (manual_cause is not null)),
        check ((definition is null) = (definition_fingerprint is null))
    ) strict, without rowid
    """,
    """
    create trigger versions_never_fall before update on instances
    when new.lease_version < old.lease_version or new.state_version < old.state_version
    begin select raise(abort, 'a version never falls'); end
    """,
    """
    create trigger causes_for_unwinding_are_kept before update on instances
    when old.unwinding_cause is not null and new.unwinding_cause is not old.unwinding_cause
    begin select raise(abort, 'an instance that unwinds goes on unwinding'); end
    """,
    # The migrations that are registered (§14): the only way from one definition to another.
    """
    create table migrations (
        migration text not null primary key check (migration <> ''),
        from_definition text not null check (from_definition <> ''),
        from_fingerprint text not null check (from_fingerprint <> ''),
        to_definition text not null check (to_definition <> ''),
        to_fingerprint text not null check (to_fingerprint <> '')
    ) strict, without rowid
    """,
    """
    create trigger migrations_stay before update on migrations
    begin select raise(abort, 'a registered migration stays as it is'); end
    """,
    """
    create trigger migrations_are_not_deleted before delete on migrations
    begin select raise(abort, 'a registered migration stays as it is'); end
    """,
    """
    create trigger definitions_are_pinned before update on instances
    when (new.definition, new.definition_fingerprint) is not (old.definition, old.definition_fingerprint)
     and not exists (select 1 from migrations
                      where from_definition = old.definition and from_fingerprint = old.definition_fingerprint
                        and to_definition = new.definition and to_fingerprint = new.definition_fingerprint)
    begin select raise(abort, 'an instance is pinned to its definition'); end
    """,
    """
    create index open_instances on instances (instance)
     where status not in ('succeeded', 'failed', 'cancelled')
    """,
    "create index instances_by_status on instances (status, instance)",
)

_STEPS: Final = (
    # The steps (§5), each with its intent and what came of it. `planned` ones began with the instance.
    # Columns that begin with `undo` are the intent of the compensation (§12).
    """
    create table steps (
        instance text not null references instances (instance),
        step text not null check (step <> ''),
        status text not null check (
            status in ('pending', 'running', 'succeeded', 'waiting_approval', 'retry_scheduled', 'failed',
                       'compensating', 'compensated', 'cancelled', 'manual_intervention')),
        attempt integer not null check (attempt >= 0),
        intent_version integer check (intent_version > 0),
        idempotency_key text check (idempotency_key <> ''),
        fingerprint text check (fingerprint <> ''),
        resource text check (resource <> ''),
        operation text check (operation <> ''),
        parameters text check (parameters <> ''),
        expected_revision integer check (expected_revision >= 0),
        compensation text check (compensation <> ''),
        intent_lease_version integer check (intent_lease_version > 0),
        unwinding text check (unwinding <> ''),
        receipt text check (receipt <> ''),
        evidence text check (
            evidence in ('unsent', 'tombstoned', 'recorded-refusal', 'fenced-and-not-found')),
        former_evidence text check (
            former_evidence in ('unsent', 'tombstoned', 'recorded-refusal', 'fenced-and-not-found')),
        reason text check (reason <> ''),
        from_status text check (from_status in ('running', 'retry_scheduled', 'compensating')),
        state_version integer not null check (state_version >= 0),
        planned integer not null default 0 check (planned in (0, 1)),
        needs_approval integer not null default 0 check (needs_approval in (0, 1)),
        approval_fingerprint text check (approval_fingerprint <> ''),
        approval_deadline_at_ms integer check (approval_deadline_at_ms >= 0),
        approved_by integer check (approved_by > 0),
        deadline_at_ms integer check (deadline_at_ms >= 0),
        most_attempts integer check (most_attempts > 0),
        timer_at_ms integer check (timer_at_ms >= 0),
        error_class text check (error_class <> ''),
        result text check (result <> ''),
        succeeded_at_version integer check (succeeded_at_version > 0),
        attested integer not null default 0 check (attested in (0, 1)),
        undo_version integer check (undo_version > 0),
        undo_key text check (undo_key <> ''),
        undo_fingerprint text check (undo_fingerprint <> ''),
        undo_resource text check (undo_resource <> ''),
        undo_operation text check (undo_operation <> ''),
        undo_parameters text check (undo_parameters <> ''),
        undo_expected_revision integer check (undo_expected_revision >= 0),
        undo_lease_version integer check (undo_lease_version > 0),
        undo_receipt text check (undo_receipt <> ''),
        undo_attempt integer not null default 0 check (undo_attempt >= 0),
        primary key (instance, step),
        unique (idempotency_key),
        unique (undo_key),
        foreign key (instance, approved_by) references inbox (instance, number),
        check (state_version > 0 or (planned = 1 and status = 'pending')),
        check (status not in ('pending', 'waiting_approval') or intent_version is null),
        check (attempt > 0 or status in ('pending', 'waiting_approval', 'cancelled', 'failed')),
        check ((intent_version is null) = (idempotency_key is null)),
        check ((intent_version is null) = (fingerprint is null)),
        check ((intent_version is null) = (resource is null)),
        check ((intent_version is null) = (operation is null)),
        check ((intent_version is null) = (parameters is null)),
        check ((intent_version is null) = (intent_lease_version is null)),
        check (intent_version is not null or coalesce(expected_revision, compensation) is null),
        check ((coalesce(intent_version, 1) > 1) = (former_evidence is not null)),
        check (receipt is null or intent_version is not null),
        check (receipt is null or status in (
            'running', 'succeeded', 'compensating', 'compensated', 'manual_intervention')),
        check (status <> 'succeeded' or intent_version is null or attested or receipt is not null),
        check (evidence is null or intent_version is not null),
        check (evidence is null or status in ('failed', 'cancelled')),
        check (status not in ('failed', 'cancelled') or intent_version is null or attested
               or evidence is not null),
        check (evidence <> 'tombstoned' or unwinding is not null),
        check ((status = 'manual_intervention') = (from_status is not null)),
        check (status <> 'manual_intervention' or reason is not null),
        check (status <> 'waiting_approval' or (needs_approval and approval_fingerprint is not null)),
        check (not needs_approval or approved_by is not null
               or status in ('pending', 'waiting_approval', 'cancelled', 'failed')),
        check (status <> 'retry_scheduled' or (timer_at_ms is not null and error_class is not null)),
        check (timer_at_ms is null or status in ('retry_scheduled', 'compensating')),
        check ((succeeded_at_version is not null) = (status in ('succeeded', 'compensating', 'compensated')
               or ifnull(from_status, '') = 'compensating')),
        check ((undo_version is not null) = (status in ('compensating', 'compensated')
               or ifnull(from_status, '') = 'compensating')),
        check (undo_version is null or compensation is not null),
        check ((undo_version is null) = (undo_key is null)),
        check ((undo_version is null) = (undo_fingerprint is null)),
        check ((undo_version is null) = (undo_resource is null)),
        check ((undo_version is null) = (undo_operation is null)),
        check ((undo_version is null) = (undo_parameters is null)),
        check ((undo_version is null) = (undo_lease_version is null)),
        check ((undo_version is null) = (undo_attempt = 0)),
        check (undo_version is not null or coalesce(undo_expected_revision, undo_receipt) is null),
        check (status <> 'compensated' or attested or undo_receipt is not null)
    ) strict, without rowid
    """,
    """
    create trigger steps_change_as_listed after update on steps
    when old.status not in ('succeeded', 'failed', 'cancelled', 'compensated')
     and new.status not in (old.status, 'pending') and (old.status, new.status) not in (values
        ('pending', 'running'), ('pending', 'waiting_approval'), ('pending', 'cancelled'),
        ('waiting_approval', 'running'), ('waiting_approval', 'cancelled'), ('waiting_approval', 'failed'),
        ('running', 'succeeded'), ('running', 'failed'), ('running', 'cancelled'),
        ('running', 'retry_scheduled'), ('running', 'manual_intervention'),
        ('retry_scheduled', 'running'), ('retry_scheduled', 'succeeded'), ('retry_scheduled', 'failed'),
        ('retry_scheduled', 'cancelled'), ('retry_scheduled', 'manual_intervention'),
        ('compensating', 'compensated'), ('compensating', 'manual_intervention'),
        ('manual_intervention', 'running'), ('manual_intervention', 'succeeded'),
        ('manual_intervention', 'failed'), ('manual_intervention', 'cancelled'),
        ('manual_intervention', 'compensated'))
    begin select raise(abort, 'a step changes its status only as listed'); end
    """,
    """
    create trigger approvals_are_consumed before update on steps
    when new.approved_by is not old.approved_by
     and not exists (select 1 from inbox
                      where inbox.instance = new.instance and inbox.step = new.step
                        and number = new.approved_by and kind = 'approval-decision' and decision = 'approved'
                        and consumed_by = new.state_version)
    begin select raise(abort, 'an approval is consumed by the commit that uses it'); end
    """,
)

STEPS_SINCE_3: Final = (
    """
    create trigger intents_are_kept before update on steps
    when old.intent_version is not null and (
        new.intent_version is null or new.intent_version not in (old.intent_version, old.intent_version + 1)
        or new.intent_version = old.intent_version and (
            new.idempotency_key is not old.idempotency_key or new.fingerprint is not old.fingerprint
            or new.resource is not old.resource or new.operation is not old.operation
            or new.parameters is not old.parameters or new.expected_revision is not old.expected_revision
            or new.compensation is not old.compensation
            or new.intent_lease_version is not old.intent_lease_version))
    begin select raise(abort, 'a stored intent is not overwritten'); end
    """,
    """
    create trigger intents_begin_at_one before update on steps
    when old.intent_version is null and new.intent_version > 1
    begin select raise(abort, 'the first intent has version 1'); end
    """,
    """
    create trigger receipts_are_kept before update on steps
    when old.receipt is not null
     and (new.receipt is not old.receipt or new.intent_version is not old.intent_version)
    begin select raise(abort, 'a receipt is not overwritten'); end
    """,
    """
    create trigger reasons_for_unwinding_are_kept before update on steps
    when old.unwinding is not null
     and (new.unwinding is not old.unwinding or new.intent_version is not old.intent_version)
    begin select raise(abort, 'what unwinds goes on unwinding'); end
    """,
    """
    create trigger terminal_steps_stay before update on steps
    when old.status in ('failed', 'cancelled', 'compensated') or new.status = 'pending'
      or (old.status = 'succeeded' and new.status <> 'compensating')
    begin select raise(abort, 'no step leaves a terminal status or goes back to pending'); end
    """,
    """
    create trigger steps_start_in_order before update on steps
    when new.status = 'running'
     and old.status in ('pending', 'waiting_approval', 'retry_scheduled', 'manual_intervention')
     and (exists (select 1 from instances where instances.instance = new.instance
                     and coalesce(unwinding_cause, manual_cause) is not null)
       or exists (select 1 from dependencies
                     join steps as needed on needed.instance = dependencies.instance
                      and needed.step = dependencies.needs
                   where dependencies.instance = new.instance and dependencies.step = new.step
                     and needed.status <> 'succeeded')
       or exists (select 1 from inbox
                   where inbox.instance = new.instance and kind = 'cancel' and consumed_by is null))
    begin select raise(abort, 'no step starts before what it depends on, or in an instance that ends'); end
    """,
    """
    create trigger people_decide before update on steps
    when old.status = 'manual_intervention' and new.status <> old.status
     and not exists (select 1 from inbox
                      where inbox.instance = new.instance and inbox.step = new.step
                        and kind = 'operator-decision' and decision = new.status
                        and consumed_by = new.state_version)
    begin select raise(abort, 'a person decides, and the decision is consumed'); end
    """,
    """
    create trigger compensations_go_backwards before update on steps
    when old.status = 'succeeded' and new.status = 'compensating'
     and (not exists (select 1 from instances where instances.instance = new.instance
                         and unwinding_cause is not null and manual_cause is null)
       or exists (select 1 from steps as later where later.instance = new.instance
                     and later.succeeded_at_version > old.succeeded_at_version
                     and later.compensation is not null and later.status <> 'compensated'))
    begin select raise(abort, 'what succeeded last is compensated first, while the instance unwinds'); end
    """,
    """
    create trigger compensations_are_kept before update on steps
    when old.undo_version is not null and (
        new.undo_version is not old.undo_version or new.undo_key is not old.undo_key
        or new.undo_fingerprint is not old.undo_fingerprint or new.undo_resource is not old.undo_resource
        or new.undo_operation is not old.undo_operation or new.undo_parameters is not old.undo_parameters
        or new.undo_expected_revision is not old.undo_expected_revision
        or new.undo_lease_version is not old.undo_lease_version
        or (old.undo_receipt is not null and new.undo_receipt is not old.undo_receipt))
    begin select raise(abort, 'a stored compensation is not overwritten'); end
    """,
    """
    create trigger steps_stay before delete on steps
    begin select raise(abort, 'no step is deleted'); end
    """,
    "create index timers on steps (timer_at_ms, instance, step) where timer_at_ms is not null",
)
"""The triggers and the index of `steps` that are still as version 3 made them."""

_BESIDE_STEPS: Final = (
    # What a step depends on (§5): settled when the instance begins.
    """
    create table dependencies (
        instance text not null,
        step text not null,
        needs text not null check (needs <> step),
        primary key (instance, step, needs),
        foreign key (instance, step) references steps (instance, step),
        foreign key (instance, needs) references steps (instance, step)
    ) strict, without rowid
    """,
    """
    create trigger dependencies_stay before update on dependencies
    begin select raise(abort, 'what a step depends on stays'); end
    """,
    """
    create trigger dependencies_are_not_deleted before delete on dependencies
    begin select raise(abort, 'what a step depends on stays'); end
    """,
    # What each accepted commit changed (§4): beside the event log, and as append-only as that.
    """
    create table step_log (
        instance text not null,
        state_version integer not null,
        step text not null,
        status text not null check (
            status in ('running', 'succeeded', 'waiting_approval', 'retry_scheduled', 'failed',
                       'compensating', 'compensated', 'cancelled', 'manual_intervention')),
        attempt integer not null check (attempt >= 0),
        intent_version integer check (intent_version > 0),
        idempotency_key text,
        unwinding text,
        receipt text,
        evidence text check (
            evidence in ('unsent', 'tombstoned', 'recorded-refusal', 'fenced-and-not-found')),
        primary key (instance, state_version, step),
        foreign key (instance, state_version) references event_log (instance, state_version),
        foreign key (instance, step) references steps (instance, step)
    ) strict, without rowid
    """,
    """
    create trigger step_log_is_not_rewritten before update on step_log
    begin select raise(abort, 'the step log is append-only'); end
    """,
    """
    create trigger step_log_is_not_shortened before delete on step_log
    begin select raise(abort, 'the step log is append-only'); end
    """,
)

_OUTSIDE: Final = (
    # Requests of those without a lease (§4), numbered in each instance; each takes effect in one commit.
    """
    create table inbox (
        instance text not null references instances (instance),
        number integer not null check (number > 0),
        request_id text not null check (request_id <> ''),
        kind text not null check (
            kind in ('cancel', 'approval-decision', 'operator-decision', 'late-result')),
        requester text not null check (requester <> ''),
        step text check (step <> ''),
        decision text check (decision <> ''),
        intent_version integer check (intent_version > 0),
        idempotency_key text check (idempotency_key <> ''),
        fingerprint text check (fingerprint <> ''),
        receipt text check (receipt <> ''),
        reason text check (reason <> ''),
        recorded_at_ms integer not null check (recorded_at_ms >= 0),
        consumed_by integer check (consumed_by > 0),
        primary key (instance, number),
        unique (instance, request_id),
        foreign key (instance, step) references steps (instance, step),
        foreign key (instance, consumed_by) references event_log (instance, state_version),
        check (kind <> 'cancel' or coalesce(step, decision) is null),
        check (kind <> 'approval-decision' or ifnull(
            decision in ('approved', 'rejected') and step <> '' and intent_version > 0 and fingerprint <> '',
            false)),
        check (kind <> 'operator-decision' or ifnull(iif(step is null, decision = 'resumed',
            decision in ('running', 'succeeded', 'failed', 'cancelled', 'compensated')), false)),
        check (kind <> 'late-result' or ifnull(
            step <> '' and idempotency_key <> '' and fingerprint <> '' and receipt <> '', false))
    ) strict, without rowid
    """,
    """
    create trigger requests_are_numbered before insert on inbox
    when new.consumed_by is not null or new.number <> 1 + ifnull(
        (select max(number) from inbox where inbox.instance = new.instance), 0)
    begin select raise(abort, 'requests are numbered one after the other, and begin unconsumed'); end
    """,
    """
    create trigger requests_are_consumed_once before update on inbox
    when old.consumed_by is not null or new.instance <> old.instance or new.number <> old.number
      or new.request_id <> old.request_id or new.kind <> old.kind or new.requester <> old.requester
      or new.step is not old.step or new.decision is not old.decision
      or new.intent_version is not old.intent_version or new.idempotency_key is not old.idempotency_key
      or new.fingerprint is not old.fingerprint or new.receipt is not old.receipt
      or new.reason is not old.reason or new.recorded_at_ms <> old.recorded_at_ms
      or new.consumed_by is not (select state_version from instances
                                  where instances.instance = old.instance)
    begin select raise(abort, 'a request is consumed once, by the commit being made, and never changed'); end
    """,
    """
    create trigger requests_stay before delete on inbox
    begin select raise(abort, 'no request is deleted'); end
    """,
    "create index unconsumed_requests on inbox (instance, number) where consumed_by is null",
    # What an instance began with, and the record that a trigger is delivered again (§13): never changed.
    """
    create table triggers (
        source text not null check (source <> ''),
        event_id text not null check (event_id <> ''),
        fingerprint text not null check (fingerprint <> ''),
        instance text not null unique references instances (instance),
        input text not null,
        implicit_inputs text not null,
        triggered_at_ms integer not null check (triggered_at_ms >= 0),
        primary key (source, event_id)
    ) strict, without rowid
    """,
    """
    create trigger triggers_stay before update on triggers
    begin select raise(abort, 'what an instance began with stays'); end
    """,
    """
    create trigger triggers_are_not_deleted before delete on triggers
    begin select raise(abort, 'what an instance began with stays'); end
    """,
    # Intents to tell somebody something (§13): committed with the change of state that is told.
    """
    create table notifications (
        instance text not null,
        kind text not null check (kind <> ''),
        recipient text not null check (recipient <> ''),
        target_version integer not null check (target_version >= 0),
        idempotency_key text not null unique check (idempotency_key <> ''),
        fingerprint text not null check (fingerprint <> ''),
        parameters text not null check (parameters <> ''),
        state_version integer not null,
        receipt text check (receipt <> ''),
        primary key (instance, kind, recipient, target_version),
        foreign key (instance, state_version) references event_log (instance, state_version)
    ) strict, without rowid
    """,
    """
    create trigger notifications_are_kept before update on notifications
    when (old.receipt is not null and new.receipt is not old.receipt)
      or new.instance <> old.instance or new.kind <> old.kind
      or new.recipient <> old.recipient or new.target_version <> old.target_version
      or new.idempotency_key <> old.idempotency_key or new.fingerprint <> old.fingerprint
      or new.parameters <> old.parameters or new.state_version <> old.state_version
    begin select raise(abort, 'of a notification only the receipt is added, once'); end
    """,
    """
    create trigger notifications_stay before delete on notifications
    begin select raise(abort, 'no notification is deleted'); end
    """,
    """
    create index undelivered on notifications (instance, kind, recipient, target_version)
     where receipt is null
    """,
)

# A check cannot be changed, so the tables are made anew. What refers to them is checked when all is there.
TO_VERSION_3: Final = (
    "pragma defer_foreign_keys = on",
    "create temp table kept_instances as select * from instances",
    "create temp table kept_steps as select * from steps",
    "create temp table kept_step_log as select * from step_log",
    "drop table step_log",
    "drop table steps",
    "drop table instances",
    *_INSTANCES,
    *_STEPS,
    *STEPS_SINCE_3,
    *_BESIDE_STEPS,
    *_OUTSIDE,
    """
    insert into instances (instance, owner_worker, owner_incarnation, lease_version, expires_at_ms,
                           state_version, status)
    select * from kept_instances
    """,
    """
    insert into steps (instance, step, status, attempt, intent_version, idempotency_key, fingerprint,
                       resource, operation, parameters, expected_revision, compensation, intent_lease_version,
                       unwinding, receipt, evidence, former_evidence, reason, from_status, state_version,
                       succeeded_at_version)
    select *, iif(status = 'succeeded', state_version, null) from kept_steps
    """,
    "insert into step_log select * from kept_step_log",
    "drop table kept_instances",
    "drop table kept_steps",
    "drop table kept_step_log",
)
"""What makes version 3 of version 2, and keeps every row."""
