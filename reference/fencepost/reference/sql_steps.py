"""All SQL of steps and intents (§5, §6), as text: tables, and the statements of a commit that changes steps.

To be read like `sql.py`, to which this is the second half: a line of a `where` is a guard and names its
refusal, a line of a `set` is an effect. A step begins as `pending` in the commit that first changes it. Both
the guards and the schema say what an intent needs; the schema for writers that go past this module.
"""

from __future__ import annotations

from typing import Final

SCHEMA: Final = (
    # The steps (§5), each with its stored intent and what came of it.
    """
    create table steps (
        instance text not null references instances (instance),
        step text not null check (step <> ''),
        status text not null check (
            status in ('pending', 'running', 'succeeded', 'failed', 'cancelled', 'manual_intervention')),
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
        from_status text check (from_status = 'running'),
        state_version integer not null check (state_version > 0),
        primary key (instance, step),
        unique (idempotency_key),
        check ((status = 'pending') <= (intent_version is null)),
        check ((status = 'pending' or status = 'cancelled') or attempt > 0),
        check ((intent_version is null) = (idempotency_key is null)),
        check ((intent_version is null) = (fingerprint is null)),
        check ((intent_version is null) = (resource is null)),
        check ((intent_version is null) = (operation is null)),
        check ((intent_version is null) = (parameters is null)),
        check ((intent_version is null) = (intent_lease_version is null)),
        check (intent_version is not null or coalesce(expected_revision, compensation) is null),
        check ((coalesce(intent_version, 1) > 1) = (former_evidence is not null)),
        check (receipt is null or intent_version is not null),
        check (receipt is null or status in ('running', 'succeeded', 'manual_intervention')),
        check (status <> 'succeeded' or intent_version is null or receipt is not null),
        check (evidence is null or intent_version is not null),
        check (evidence is null or status in ('failed', 'cancelled')),
        check (status not in ('failed', 'cancelled') or intent_version is null or evidence is not null),
        check (evidence <> 'tombstoned' or unwinding is not null),
        check ((status = 'manual_intervention') = (from_status is not null)),
        check (status <> 'manual_intervention' or reason is not null)
    ) strict, without rowid
    """,
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
    when old.status in ('succeeded', 'failed', 'cancelled') or new.status = 'pending'
    begin select raise(abort, 'no step leaves a terminal status or goes back to pending'); end
    """,
    """
    create trigger steps_stay before delete on steps
    begin select raise(abort, 'no step is deleted'); end
    """,
    # What each accepted commit changed (§4): beside the event log, and as append-only as that.
    """
    create table step_log (
        instance text not null,
        state_version integer not null,
        step text not null,
        status text not null check (
            status in ('running', 'succeeded', 'failed', 'cancelled', 'manual_intervention')),
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

# A commit that may be refused after its first write is undone up to here; the store's now is kept.
SAVEPOINT: Final = "savepoint changes"
ROLLBACK_TO_SAVEPOINT: Final = "rollback to changes"

BEGIN_STEP: Final = """
insert into steps (instance, step, status, attempt, state_version)
values (:instance, :step, 'pending', 0, :state_version)  -- effect: a step without a row begins, pending
on conflict do nothing
"""

# `:proof` is the change's evidence, `:again` another attempt, `:version` that of a new intent, `:lease` the
# committer's lease version. A step whose `resource` is null has no intent.
CHANGE_STEP: Final = """
update steps
   set status = :to                                       -- effect: status becomes the change's
     , attempt = attempt + (:again or (status = 'pending' and :to = 'running'))  -- effect: attempt rises
     , intent_version = coalesce(:version, intent_version)  -- effect: an intent is stored: its version
     , idempotency_key = coalesce(:idempotency_key, idempotency_key)  -- effect: its key
     , fingerprint = coalesce(:fingerprint, fingerprint)  -- effect: its fingerprint
     , resource = coalesce(:resource, resource)           -- effect: its resource
     , operation = coalesce(:operation, operation)        -- effect: its operation
     , parameters = coalesce(:parameters, parameters)     -- effect: its parameters
     , expected_revision = iif(:version, :expected_revision, expected_revision)  -- effect: its revision
     , compensation = iif(:version, :compensation, compensation)  -- effect: its compensation
     , intent_lease_version = iif(:version, :lease, intent_lease_version)  -- effect: its committer's
     , unwinding = coalesce(unwinding, :unwinding)        -- effect: the reason for giving it up
     , receipt = coalesce(receipt, :receipt)              -- effect: the receipt
     , evidence = iif(:version is null, :proof, null)     -- effect: how it is known not to have happened
     , former_evidence = iif(:version > 1, :proof, former_evidence)  -- effect: or the intent before it
     , reason = :reason                                   -- effect: why the status is this
     , from_status = iif(:to = 'manual_intervention', status, null)  -- effect: where a person takes over
     , state_version = :state_version                     -- effect: which commit changed it
 where instance = :instance and step = :step                                  -- refuse: illegal-transition
   and :to <> 'pending'                                                       -- refuse: illegal-transition
   and status in ('pending', 'running')                                       -- refuse: illegal-transition
   and (status = 'running' or :to in ('running', 'cancelled'))                -- refuse: illegal-transition
   and (status <> :to or :again or ifnull(:receipt, :unwinding) is not null)  -- refuse: illegal-transition
   and (not :again or (status = 'running' and :to = 'running'))               -- refuse: illegal-transition
   and (:version is null or :to = 'running')                                  -- refuse: illegal-transition
   and ifnull(:version = ifnull(intent_version, 0) + 1, true)                 -- refuse: illegal-transition
   and (:version is null or status = 'pending' or :again)                     -- refuse: illegal-transition
   and (:version is null or status = 'pending' or :proof is not null)         -- refuse: illegal-transition
   and (:version is null or coalesce(unwinding, :unwinding, :receipt) is null)  -- refuse: illegal-transition
   and (:unwinding is null or (unwinding is null and :to = 'running'))        -- refuse: illegal-transition
   and (:receipt is null or resource is not null)                             -- refuse: illegal-transition
   and (:receipt is null or :to in ('running', 'succeeded'))                  -- refuse: illegal-transition
   and ifnull(receipt = :receipt, true)                                       -- refuse: illegal-transition
   and (:to <> 'succeeded' or resource is null or receipt > '' or :receipt > '') -- refuse: illegal-transition
   and (:to <> 'failed' or resource is null or :proof is not null)            -- refuse: illegal-transition
   and (:to <> 'cancelled' or resource is null or :proof is not null)         -- refuse: illegal-transition
   and (:proof is null or resource is not null)                               -- refuse: illegal-transition
   and (:proof is null or ifnull(receipt, :receipt) is null)                  -- refuse: illegal-transition
   and (:proof is null or :version > 1 or :to in ('failed', 'cancelled'))     -- refuse: illegal-transition
   and (:proof is not 'unsent' or intent_lease_version = :lease)              -- refuse: illegal-transition
   and (:proof is not 'tombstoned' or unwinding is not null)                  -- refuse: illegal-transition
   and (:proof is not 'fenced-and-not-found' or intent_lease_version < :lease)  -- refuse: illegal-transition
   and (:to <> 'manual_intervention' or :reason is not null)                  -- refuse: illegal-transition
returning step
"""

APPEND_STEP: Final = """
insert into step_log (instance, state_version, step, status, attempt, intent_version, idempotency_key,
                      unwinding, receipt, evidence)
select instance, :state_version, step, status, attempt, intent_version, idempotency_key,
       unwinding, receipt, :proof  -- effect: the step log gains what the commit left of the step
  from steps
 where instance = :instance and step = :step
"""

# Runs last in a commit that finishes. Finished is succeeded, failed or cancelled, nothing to unwind (§1).
FINISH: Final = """
with ended as (select status, compensation from steps where instance = :instance),
     on_the_way as (select 1 from ended where status in ('pending', 'running', 'manual_intervention')),
     not_well as (select status from ended where status in ('failed', 'cancelled')),
     to_unwind as (select 1 from ended, not_well where ended.status = 'succeeded' and compensation <> '')
update instances
   set status = ifnull((select max(status) from not_well), 'succeeded')  -- effect: by how the steps ended
 where instance = :instance                    -- refuse: illegal-transition
   and not exists (select 1 from on_the_way)   -- refuse: illegal-transition
   and not exists (select 1 from to_unwind)    -- refuse: illegal-transition
returning status
"""

READ_STEPS: Final = """
select instance, step, status, attempt, intent_version, idempotency_key, fingerprint, resource, operation,
       parameters, expected_revision, compensation, intent_lease_version, unwinding, receipt, evidence,
       former_evidence, reason, from_status, state_version
  from steps
 where instance = :instance
 order by step
"""

STEP_LOG: Final = """
select instance, state_version, step, status, attempt, intent_version, idempotency_key,
       unwinding, receipt, evidence
  from step_log
 where instance = :instance
 order by state_version, step
"""

UNFINISHED: Final = """
select instance
  from instances
 where status = 'running' and instance > :after
   and not exists (select 1 from steps
                    where steps.instance = instances.instance
                      and steps.status in ('failed', 'cancelled', 'manual_intervention'))
 order by instance
 limit :most
"""
