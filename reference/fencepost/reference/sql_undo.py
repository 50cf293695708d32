"""The statements of a commit for the ways back (§8, §10, §12): unwinding, compensation, a person's decision.

To be read like `sql_steps.py`, whose `HERE` they share. A change to `compensating` or `compensated` is made
by `COMPENSATE_STEP`, one by an operator's decision by `SETTLE_STEP`, one of the instance itself by `MOVE`.
"""

from __future__ import annotations

from typing import Final

from fencepost.reference.sql_steps import HERE

# Compensation begins when nothing else is open, and what succeeded last comes first.
UNDO: Final = """
     unwinds as (select 1 from open, here where unwinding_cause is not null),
     unsettled as (select 1 from steps where instance = :instance and status in (
        'pending', 'waiting_approval', 'running', 'retry_scheduled', 'compensating',
        'manual_intervention')),
     later as (select 1 from steps as it join steps as other on other.instance = it.instance
                and other.succeeded_at_version > it.succeeded_at_version and other.compensation <> ''
                and other.status <> 'compensated' where it.instance = :instance and it.step = :step)"""

DECISION: Final = """
     decides as (select decision from requests where number = :decision and kind = 'operator-decision'
                and consumed_by = :state_version)"""

EXPLANATION: Final = """
select {verdicts}
  from (select 1) left join steps on instance = :instance and step = :step
"""

UNDO_EXPLANATION: Final = f"{HERE}{UNDO}{EXPLANATION}"
SETTLE_EXPLANATION: Final = f"{HERE}{DECISION}{EXPLANATION}"

# Here `:version`, `:receipt` and `:again` are those of the compensation. That nothing goes from succeeded to
# compensated follows: the one needs a receipt, and the other has none yet.
_COMPENSATE_STEP: Final = """
update steps
   set status = :to                                       -- effect: status becomes the change's
     , undo_version = coalesce(undo_version, :version)    -- effect: the compensation's intent is stored
     , undo_key = coalesce(undo_key, :idempotency_key)    -- effect: its key
     , undo_fingerprint = coalesce(undo_fingerprint, :fingerprint)  -- effect: its fingerprint
     , undo_resource = coalesce(undo_resource, :resource)  -- effect: its resource
     , undo_operation = coalesce(undo_operation, :operation)  -- effect: its operation
     , undo_parameters = coalesce(undo_parameters, :parameters)  -- effect: its parameters
     , undo_expected_revision = iif(:version, :expected_revision, undo_expected_revision)  -- effect: revision
     , undo_lease_version = iif(:version, :lease, undo_lease_version)  -- effect: its committer's
     , undo_receipt = coalesce(undo_receipt, :receipt)    -- effect: its receipt
     , undo_attempt = undo_attempt + (:again or status = 'succeeded')  -- effect: its attempts
     , timer_at_ms = iif(:again or :to = 'compensated', null,
                         ifnull(:timer_at_ms, timer_at_ms))  -- effect: the timer of its next attempt
     , error_class = coalesce(:error_class, error_class)  -- effect: what went wrong
     , reason = :reason                                   -- effect: why the status is this
     , state_version = :state_version                     -- effect: which commit changed it
 where instance = :instance and step = :step                                   -- refuse: illegal-transition
   and status in ('succeeded', 'compensating')                                 -- refuse: illegal-transition
   and (status = 'succeeded') = (:version is not null)                         -- refuse: illegal-transition
   and (status = 'compensating' or (compensation > '' and not :again))         -- refuse: illegal-transition
   and (status <> :to or :again or ifnull(:receipt, :timer_at_ms) is not null) -- refuse: illegal-transition
   and (:to <> 'compensated' or ifnull(undo_receipt, :receipt) is not null)    -- refuse: illegal-transition
   and (:receipt is null or status = 'compensating')                           -- refuse: illegal-transition
   and ifnull(undo_receipt = :receipt, true)                                   -- refuse: illegal-transition
   and (not :again or (:to = 'compensating' and undo_receipt is null))         -- refuse: illegal-transition
   and (:timer_at_ms is null or (:to = 'compensating' and :error_class > ''))  -- refuse: illegal-transition
   and (not :again or ifnull(undo_attempt < most_attempts, true))              -- refuse: illegal-transition
   and (:timer_at_ms is null or ifnull(undo_attempt < most_attempts, true))    -- refuse: illegal-transition
   and coalesce(:proof, :unwinding, :request, :result) is null                 -- refuse: illegal-transition
   and :approval_fingerprint is null                                           -- refuse: illegal-transition
   and exists (select 1 from unwinds)                                           -- refuse: not-unwinding
   and (not :again or ifnull(timer_at_ms <= :now_ms, true))                    -- refuse: not-due
   and (status = 'compensating' or not exists (select 1 from unsettled))        -- refuse: unfinished-steps
   and (status = 'compensating' or not exists (select 1 from later))            -- refuse: not-in-order
returning step
"""

COMPENSATE_STEP: Final = f"{HERE}{UNDO}{_COMPENSATE_STEP}"

# What is settled without receipt or evidence rests on the operator's word: it is attested (§12).
_SETTLE_STEP: Final = """
update steps
   set status = :to                                       -- effect: status becomes what was decided
     , attempt = attempt + (:to = 'running')              -- effect: attempt rises if it is run again
     , unwinding = coalesce(unwinding, :unwinding)        -- effect: the reason for giving it up
     , receipt = coalesce(receipt, :receipt)              -- effect: the receipt
     , evidence = :proof                                  -- effect: how it is known not to have happened
     , reason = :reason                                   -- effect: why the status is this
     , from_status = null                                 -- effect: nobody waits for a person any more
     , state_version = :state_version                     -- effect: which commit changed it
     , result = coalesce(:result, result)                 -- effect: what its success gave
     , error_class = coalesce(:error_class, error_class)  -- effect: what went wrong
     , succeeded_at_version = iif(:to = 'succeeded', :state_version, succeeded_at_version)  -- effect: success
     , attested = case :to when 'succeeded' then resource is not null and ifnull(receipt, :receipt) is null
                           when 'compensated' then undo_receipt is null
                           when 'running' then attested
                           else resource is not null and :proof is null end  -- effect: attested
 where :to in (select decision from decides)                                    -- refuse: no-such-request
   and instance = :instance and step = :step                                    -- refuse: illegal-transition
   and status = 'manual_intervention' and exists (select 1 from open)          -- refuse: illegal-transition
   and (from_status = 'compensating') = (:to = 'compensated')                  -- refuse: illegal-transition
   and (:to <> 'running' or receipt is null)                                    -- refuse: illegal-transition
   and (:receipt is null or (:to = 'succeeded' and resource is not null))      -- refuse: illegal-transition
   and ifnull(receipt = :receipt, true)                                        -- refuse: illegal-transition
   and (:to not in ('failed', 'cancelled') or receipt is null)                 -- refuse: illegal-transition
   and (:proof is null or (:to in ('failed', 'cancelled') and resource > ''))  -- refuse: illegal-transition
   and (:proof is not 'unsent' or intent_lease_version = :lease)               -- refuse: illegal-transition
   and (:proof is not 'unsent' or from_status = 'running')                     -- refuse: illegal-transition
   and (:proof is not 'fenced-and-not-found' or intent_lease_version < :lease) -- refuse: illegal-transition
   and (:unwinding is null or (unwinding is null and :proof is 'tombstoned'))  -- refuse: illegal-transition
   and (:proof is not 'tombstoned' or ifnull(unwinding, :unwinding) is not null) -- refuse: illegal-transition
   and (:result is null or :to = 'succeeded')                                  -- refuse: illegal-transition
   and not :again and coalesce(:version, :timer_at_ms) is null                 -- refuse: illegal-transition
   and :approval_fingerprint is null                                           -- refuse: illegal-transition
   and (:to <> 'running' or (unwinding is null and exists (select 1 from runs))) -- refuse: unwinding
   and (:to <> 'running' or ifnull(:now_ms < deadline_at_ms, true))            -- refuse: deadline-passed
   and (:to <> 'running' or not exists (select 1 from late))                   -- refuse: deadline-passed
   and (:to <> 'running' or not exists (select 1 from cancels))                -- refuse: cancel-requested
returning step
"""

SETTLE_STEP: Final = f"{HERE}{DECISION}{_SETTLE_STEP}"

MOVES: Final = """
with resumes as (select 1 from inbox where instance = :instance and number = :decision and step is null
                  and kind = 'operator-decision' and consumed_by = :state_version),
     migrates as (select 1 from migrations, instances as it where it.instance = :instance
                   and migration = :migration and from_definition = it.definition
                   and from_fingerprint = it.definition_fingerprint
                   and to_definition = :definition and to_fingerprint = :definition_fingerprint)"""

_MOVE_EXPLANATION: Final = """
select {verdicts}
  from (select 1) left join instances on instance = :instance
"""

MOVE_EXPLANATION: Final = f"{MOVES}{_MOVE_EXPLANATION}"

# Runs before the steps are changed. Out of manual_intervention an instance goes back to where it came from.
_MOVE: Final = """
update instances
   set status = :to                                       -- effect: status becomes the move's
     , unwinding_cause = ifnull(unwinding_cause, iif(:to = 'unwinding', :cause, null))  -- effect: why, if so
     , manual_cause = iif(:to = 'manual_intervention', :cause, null)  -- effect: why a person has to decide
     , definition = ifnull(:definition, definition)       -- effect: a migration gives another definition
     , definition_fingerprint = ifnull(:definition_fingerprint, definition_fingerprint)  -- effect: likewise
 where instance = :instance                                                    -- refuse: illegal-transition
   and (:to <> 'running' or :cause is null)                                     -- refuse: illegal-transition
   and (:to <> 'unwinding' or ifnull(unwinding_cause, :cause) is not null)      -- refuse: illegal-transition
   and (:to <> 'manual_intervention' or (manual_cause is null and :cause <> '')) -- refuse: illegal-transition
   and coalesce(:cause, manual_cause, :migration) is not null                  -- refuse: illegal-transition
   and (manual_cause is null or coalesce(:decision, :migration) is not null)   -- refuse: illegal-transition
   and (:decision is null or manual_cause is not null)                         -- refuse: illegal-transition
   and (:decision is null or exists (select 1 from resumes))                   -- refuse: illegal-transition
   and (:to <> 'running' or unwinding_cause is null)                            -- refuse: unwinding
   and (:to <> 'unwinding' or :cause is null or unwinding_cause is null)        -- refuse: unwinding
   and (:migration is null or exists (select 1 from migrates))                 -- refuse: no-such-migration
returning status
"""

MOVE: Final = f"{MOVES}{_MOVE}"
