"""The table of steps, as it is since version 5 (§5, §6, §11), and what makes it of version 4.

A step that ran may wait for the approval of another intent: it goes back to `waiting_approval`, and keeps the
former intent with the evidence that this one came to nothing, until the approval brings the next. All else is
as version 3 made it; see `sql_schema.py`.
"""

from __future__ import annotations

from typing import Final

from fencepost.reference.sql_schema import STEPS_SINCE_3

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
        check (status <> 'pending' or intent_version is null),
        check (status <> 'waiting_approval' or intent_version is null or evidence is not null),
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
        check (evidence is null or status in ('waiting_approval', 'failed', 'cancelled')),
        check (status not in ('failed', 'cancelled') or intent_version is null or attested
               or evidence is not null),
        check (evidence <> 'tombstoned' or unwinding is not null or approved_by is not null),
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
)

_TRIGGERS: Final = (
    """
    create trigger steps_change_as_listed after update on steps
    when old.status not in ('succeeded', 'failed', 'cancelled', 'compensated')
     and new.status not in (old.status, 'pending') and (old.status, new.status) not in (values
        ('pending', 'running'), ('pending', 'waiting_approval'), ('pending', 'cancelled'),
        ('waiting_approval', 'running'), ('waiting_approval', 'cancelled'), ('waiting_approval', 'failed'),
        ('running', 'succeeded'), ('running', 'failed'), ('running', 'cancelled'),
        ('running', 'retry_scheduled'), ('running', 'manual_intervention'), ('running', 'waiting_approval'),
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
    when (new.approved_by is not old.approved_by
          or old.status = 'waiting_approval' and new.status = 'running')
     and not exists (select 1 from inbox
                      where inbox.instance = new.instance and inbox.step = new.step
                        and number = new.approved_by and kind = 'approval-decision' and decision = 'approved'
                        and consumed_by = new.state_version)
    begin select raise(abort, 'an approval is consumed by the commit that uses it'); end
    """,
    # With the next intent, what is known of the former goes with it, and nothing else starts the step.
    """
    create trigger what_is_known_of_an_intent_is_kept before update on steps
    when old.status = 'waiting_approval' and old.evidence is not null
     and iif(new.intent_version is old.intent_version, new.evidence, new.former_evidence) is not old.evidence
    begin select raise(abort, 'what is known of an intent is kept'); end
    """,
    """
    create trigger former_intents_are_not_run before update on steps
    when old.status = 'waiting_approval' and new.status = 'running'
     and old.intent_version is not null and new.intent_version is old.intent_version
    begin select raise(abort, 'an approval is for another intent than the former'); end
    """,
)

# A check cannot be changed, so the table is made anew. What refers to it is checked when all is there.
TO_VERSION_5: Final = (
    "pragma defer_foreign_keys = on",
    "create temp table kept_steps as select * from steps",
    "drop table steps",
    *_STEPS,
    "insert into steps select * from kept_steps",
    *STEPS_SINCE_3,
    *_TRIGGERS,
    "drop table kept_steps",
)
"""What makes version 5 of version 4, and keeps every row."""
