"""The statements of a commit that changes steps (§5, §6, §9 to §11), as text; see also `sql_undo.py`.

To be read like `sql.py`: a line of a `where` is a guard and names its refusal, one of a `set` is an effect.
What a guard looks up beside the step has a name in the `with` before. A step that was not planned begins as
`pending` in the commit that first changes it. Both the guards and the schema say what may be; the schema for
writers that go past this module.

Where an instance stands is read from its causes, not from its status: a commit that ends the instance has
set the status already when its steps are changed. Requests that the commit names have been consumed by then.
"""

from __future__ import annotations

from typing import Final

# A commit that may be refused after its first write is undone up to here; the store's now is kept.
SAVEPOINT: Final = "savepoint changes"
ROLLBACK_TO_SAVEPOINT: Final = "rollback to changes"

BEGIN_STEP: Final = """
insert into steps (instance, step, status, attempt, state_version)
values (:instance, :step, 'pending', 0, :state_version)  -- effect: a step without a row begins, pending
on conflict do nothing
"""

# Where the instance stands, which of its requests the commit has consumed for this step, and which not.
HERE: Final = """
with here as (select * from instances where instance = :instance),
     open as (select 1 from here where manual_cause is null),
     runs as (select 1 from open, here where unwinding_cause is null),
     late as (select 1 from here where deadline_at_ms <= :now_ms),
     cancels as (select 1 from inbox where instance = :instance and kind = 'cancel' and consumed_by is null),
     requests as (select * from inbox where instance = :instance and step = :step),
     named as (select * from requests where number = :request and consumed_by = :state_version),"""

# §5's table, but for what is in `sql_undo.py`; and what this change is. A step starts when it becomes
# running, or is attempted again; it is fresh as long as no intent could have been committed.
CHANGE: Final = """
     ways (was, becomes) as (values
        ('pending', 'running'), ('pending', 'waiting_approval'), ('pending', 'cancelled'),
        ('waiting_approval', 'running'), ('waiting_approval', 'cancelled'), ('waiting_approval', 'failed'),
        ('running', 'running'), ('running', 'succeeded'), ('running', 'failed'), ('running', 'cancelled'),
        ('running', 'retry_scheduled'), ('running', 'manual_intervention'), ('running', 'waiting_approval'),
        ('retry_scheduled', 'retry_scheduled'), ('retry_scheduled', 'running'),
        ('retry_scheduled', 'succeeded'), ('retry_scheduled', 'failed'), ('retry_scheduled', 'cancelled'),
        ('retry_scheduled', 'manual_intervention'), ('compensating', 'manual_intervention')),
     facts as (select :to = 'running' and (status <> 'running' or :again) as starts,
                      :to = 'waiting_approval' as asks, status = 'waiting_approval' as waits,
                      :to = 'waiting_approval' and status = 'running' as anew,
                      ifnull(:proof, evidence) as undone, :to in ('failed', 'cancelled') as ends,
                      ifnull(approval_deadline_at_ms <= :now_ms, false) as lapsed,
                      status = 'pending' or (status = 'retry_scheduled' and resource is null) as fresh,
                      :to = 'retry_scheduled' and status = 'running' as schedules,
                      :again or status = 'running' and :to in ('retry_scheduled', 'waiting_approval') as more,
                      coalesce(:receipt, :unwinding, :timer_at_ms) is not null as records,
                      exists (select 1 from open, here where unwinding_cause is not null) as unwinds,
                      unwinding is not null or exists (select 1 from reasons) as gives_up
                 from steps where instance = :instance and step = :step),
     reasons as (select 1 from here where unwinding_cause is not null union all
                 select 1 from requests where decision = 'running' and consumed_by is not null),
     unmet as (select 1 from dependencies as d join steps as needed on needed.instance = d.instance
                and needed.step = d.needs where d.instance = :instance and d.step = :step
                and needed.status <> 'succeeded'),
     undecided as (select 1 from requests join steps using (instance, step) where consumed_by is null
                    and decision = 'approved' and requests.fingerprint = approval_fingerprint
                    and requests.intent_version = ifnull(steps.intent_version, 0) + 1),
     serves as (select 1 from named join steps using (instance, step) where
                decision = 'rejected' and :to = 'cancelled'
                or decision = 'approved' and :to = 'running' and named.fingerprint = approval_fingerprint
                and (steps.status <> 'waiting_approval'
                     or named.intent_version = ifnull(steps.intent_version, 0) + 1)
                or named.kind = 'late-result' and :to = 'succeeded' and named.receipt = :receipt
                and named.idempotency_key = steps.idempotency_key
                and named.fingerprint = steps.fingerprint)"""

_CHANGE_EXPLANATION: Final = """
select {verdicts}
  from (select 1) left join steps on steps.instance = :instance and steps.step = :step left join facts on true
"""

CHANGE_EXPLANATION: Final = f"{HERE}{CHANGE}{_CHANGE_EXPLANATION}"

# `:proof` is the change's evidence, `:again` another attempt, `:version` that of a new intent, `:lease` the
# committer's lease version, `:request` the number of a request. A step whose `resource` is null has no
# intent. One that waits has none for which it waits: that comes with its approval, under the next version. If
# it ran before, it keeps the former one until then, with what shows that this one came to nothing.
_CHANGE_STEP: Final = """
update steps
   set status = :to                                       -- effect: status becomes the change's
     , attempt = attempt + (:again or (status <> 'running' and :to = 'running'))  -- effect: attempt rises
     , intent_version = coalesce(:version, intent_version)  -- effect: an intent is stored: its version
     , idempotency_key = coalesce(:idempotency_key, idempotency_key)  -- effect: its key
     , fingerprint = coalesce(:fingerprint, fingerprint)  -- effect: its fingerprint
     , resource = coalesce(:resource, resource)           -- effect: its resource
     , operation = coalesce(:operation, operation)        -- effect: its operation
     , parameters = coalesce(:parameters, parameters)     -- effect: its parameters
     , expected_revision = iif(:version, :expected_revision, expected_revision)  -- effect: its revision
     , compensation = iif(:version, :compensation, compensation)  -- effect: its compensation
     , intent_lease_version = iif(:version, :lease, intent_lease_version)  -- effect: its committer's
     , unwinding = coalesce(unwinding, :unwinding, iif(:proof is 'tombstoned' and :version is null,
                            (select unwinding_cause from here), null))  -- effect: why it is given up
     , receipt = coalesce(receipt, :receipt)              -- effect: the receipt
     , evidence = iif(:version is null, undone, null)     -- effect: how it is known not to have happened
     , former_evidence = iif(:version > 1, undone, former_evidence)  -- effect: or the intent before it
     , reason = :reason                                   -- effect: why the status is this
     , from_status = iif(:to = 'manual_intervention', status, null)  -- effect: where a person takes over
     , state_version = :state_version                     -- effect: which commit changed it
     , result = coalesce(:result, result)                 -- effect: what its success gave
     , error_class = iif(:version, null, coalesce(:error_class, error_class))  -- effect: what went wrong
     , timer_at_ms = iif(:to = 'retry_scheduled', coalesce(:timer_at_ms, timer_at_ms), null)  -- effect: timer
     , succeeded_at_version = iif(:to = 'succeeded', :state_version, succeeded_at_version)  -- effect: success
     , approval_fingerprint = coalesce(:approval_fingerprint, approval_fingerprint)  -- effect: what is asked
     , approval_deadline_at_ms = coalesce(:approval_deadline_at_ms, approval_deadline_at_ms)  -- effect: until
     , approved_by = iif(:to = 'running', coalesce(:request, approved_by), approved_by)  -- effect: approval
  from facts
 where (:request is null or exists (select 1 from serves))                      -- refuse: no-such-request
   and steps.instance = :instance and steps.step = :step                        -- refuse: illegal-transition
   and (status, :to) in (select was, becomes from ways)                        -- refuse: illegal-transition
   and exists (select 1 from open)                                             -- refuse: illegal-transition
   and (not :again or (status = 'running' and :to = 'running'))                -- refuse: illegal-transition
   and (status <> :to or :again or records)                                    -- refuse: illegal-transition
   and (not asks or (needs_approval and :approval_fingerprint is not null))    -- refuse: illegal-transition
   and (asks or ifnull(:approval_fingerprint, :approval_deadline_at_ms) is null) -- refuse: illegal-transition
   and (not (waits and starts) or :request is not null)                        -- refuse: illegal-transition
   and (not waits or :version is null or :fingerprint = approval_fingerprint)  -- refuse: illegal-transition
   and (not waits or :to <> 'failed' or approval_deadline_at_ms is not null)   -- refuse: illegal-transition
   and (not (waits and starts) or resource is null or :version is not null)    -- refuse: illegal-transition
   and (not anew or (resource is not null and :proof is not null))             -- refuse: illegal-transition
   and (:request is null or waits or :to = 'succeeded')                        -- refuse: illegal-transition
   and (:timer_at_ms is null or :to = 'retry_scheduled')                       -- refuse: illegal-transition
   and (not schedules or (:timer_at_ms >= 0 and :error_class > ''))            -- refuse: illegal-transition
   and (not schedules or receipt is null)                                       -- refuse: illegal-transition
   and (not more or ifnull(attempt < most_attempts, true))                     -- refuse: illegal-transition
   and (:version is null or :to = 'running')                                   -- refuse: illegal-transition
   and ifnull(:version = ifnull(intent_version, 0) + 1, true)                  -- refuse: illegal-transition
   and (:version is null or fresh or waits or :again)                          -- refuse: illegal-transition
   and (:version is null or fresh or waits or :proof is not null)              -- refuse: illegal-transition
   and (:version is null or coalesce(:unwinding, :receipt) is null)            -- refuse: illegal-transition
   and (:unwinding is null or unwinding is null)                               -- refuse: illegal-transition
   and (:unwinding is null or :to in ('running', 'retry_scheduled'))           -- refuse: illegal-transition
   and (:unwinding is null or status in ('pending', :to))                      -- refuse: illegal-transition
   and (:receipt is null or resource is not null)                              -- refuse: illegal-transition
   and (:receipt is null or :to = 'succeeded' or :to = 'running')              -- refuse: illegal-transition
   and (:receipt is null or :to = 'succeeded' or status = 'running')           -- refuse: illegal-transition
   and ifnull(receipt = :receipt, true)                                        -- refuse: illegal-transition
   and (:to <> 'succeeded' or resource is null or receipt > '' or :receipt > '') -- refuse: illegal-transition
   and (:result is null or :to = 'succeeded')                                  -- refuse: illegal-transition
   and (:to <> 'failed' or resource is null or undone is not null)             -- refuse: illegal-transition
   and (:to <> 'cancelled' or resource is null or undone is not null)          -- refuse: illegal-transition
   and (:proof is null or (resource is not null and not waits))                -- refuse: illegal-transition
   and (:proof is null or ifnull(receipt, :receipt) is null)                   -- refuse: illegal-transition
   and (:proof is null or anew or :version > 1 or ends)                        -- refuse: illegal-transition
   and (:proof is not 'unsent' or intent_lease_version = :lease)               -- refuse: illegal-transition
   and (:proof is not 'unsent' or (status = 'running' and error_class is null)) -- refuse: illegal-transition
   and (:proof is not 'tombstoned' or gives_up)                                 -- refuse: illegal-transition
   and (:proof is not 'fenced-and-not-found' or intent_lease_version < :lease) -- refuse: illegal-transition
   and (:to <> 'manual_intervention' or :reason is not null)                   -- refuse: illegal-transition
   and (not (starts or asks) or exists (select 1 from runs))                    -- refuse: unwinding
   and (unwinding is null or not (starts or asks) or (:again and :version is null)) -- refuse: unwinding
   and (:to <> 'cancelled' or :request > 0 or unwinds or not (planned or waits)) -- refuse: not-unwinding
   and (not starts or ifnull(:now_ms < deadline_at_ms, true))                  -- refuse: deadline-passed
   and (not starts or not exists (select 1 from late))                         -- refuse: deadline-passed
   and ifnull(:now_ms < :approval_deadline_at_ms, true)                        -- refuse: deadline-passed
   and (not anew or :approval_deadline_at_ms > 0 or not lapsed)                -- refuse: deadline-passed
   and (status <> 'retry_scheduled' or not starts or timer_at_ms <= :now_ms)   -- refuse: not-due
   and (not waits or :to <> 'failed' or approval_deadline_at_ms <= :now_ms)    -- refuse: not-due
   and (not waits or :to <> 'failed' or not exists (select 1 from undecided))  -- refuse: approval-recorded
   and (not (starts or asks) or not exists (select 1 from cancels))             -- refuse: cancel-requested
   and (not (starts or asks) or not exists (select 1 from unmet))               -- refuse: dependency-unmet
   and (not needs_approval or status <> 'pending' or :to <> 'running')          -- refuse: approval-needed
   and (:version is null or not needs_approval or waits)                        -- refuse: approval-needed
returning step
"""

CHANGE_STEP: Final = f"{HERE}{CHANGE}{_CHANGE_STEP}"

APPEND_STEP: Final = """
insert into step_log (instance, state_version, step, status, attempt, intent_version, idempotency_key,
                      unwinding, receipt, evidence)
select instance, :state_version, step, status, attempt, intent_version, idempotency_key,
       unwinding, receipt, :proof  -- effect: the step log gains what the commit left of the step
  from steps
 where instance = :instance and step = :step
"""

# What an instance has still to do. Finished is succeeded, failed or cancelled, nothing to unwind (§1).
ENDS: Final = """
with ended as (select * from steps where instance = :instance),
     on_the_way as (select 1 from ended where status in ('pending', 'waiting_approval', 'running',
                     'retry_scheduled', 'compensating', 'manual_intervention')),
     not_well as (select status from ended where status in ('failed', 'cancelled')),
     unwinds as (select 1 from instances where instance = :instance and unwinding_cause is not null),
     ends_ill as (select 1 from unwinds union all select 1 from not_well),
     to_unwind as (select 1 from ended, ends_ill where ended.status = 'succeeded' and compensation <> ''),
     cancels as (select 1 from inbox where instance = :instance and consumed_by is null and kind = 'cancel')
"""

_FINISH_EXPLANATION: Final = """
select {verdicts}
  from (select 1) left join instances on instance = :instance
"""

FINISH_EXPLANATION: Final = f"{ENDS}{_FINISH_EXPLANATION}"

# Runs last in a commit that finishes. One that unwinds has failed if a step has, and else was cancelled.
_FINISH: Final = """
update instances
   set status = coalesce((select max(status) from not_well)
                         , iif(unwinding_cause is null, 'succeeded', 'cancelled'))  -- effect: by its steps
 where instance = :instance                          -- refuse: illegal-transition
   and manual_cause is null                          -- refuse: illegal-transition
   and not exists (select 1 from cancels)            -- refuse: cancel-requested
   and not exists (select 1 from on_the_way)         -- refuse: unfinished-steps
   and not exists (select 1 from to_unwind)          -- refuse: unfinished-steps
returning status
"""

FINISH: Final = f"{ENDS}{_FINISH}"

READ_STEPS: Final = """
select instance, step, status, attempt, intent_version, idempotency_key, fingerprint, resource, operation,
       parameters, expected_revision, compensation, intent_lease_version, unwinding, receipt, evidence,
       former_evidence, reason, from_status, state_version, needs_approval, approval_fingerprint,
       approval_deadline_at_ms, approved_by, deadline_at_ms, most_attempts, timer_at_ms, error_class, result,
       succeeded_at_version, attested, undo_version, undo_key, undo_fingerprint, undo_resource,
       undo_operation, undo_parameters, undo_expected_revision, undo_lease_version, undo_receipt,
       undo_attempt,
       (select json_group_array(needs) from dependencies
         where dependencies.instance = steps.instance and dependencies.step = steps.step)
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
