"""The statements of those without a lease (§4, §11, §13), as text, and the queries of who looks for work.

To be read like `sql.py`. A request moves no status, no lease and no version: it waits in the inbox until a
commit names its number. The queries at the end are what a worker looks for work with.
"""

from __future__ import annotations

from typing import Final

from fencepost.reference.guards import EXPLANATION

# Triggers and what an instance begins with (§13).

FIND_TRIGGER: Final = """
select instance
  from triggers
 where source = :source and event_id = :event_id
"""

KNOWN: Final = """
with known as (select 1 from triggers where instance = :instance and fingerprint = :fingerprint)"""

REDELIVER_EXPLANATION: Final = f"{KNOWN}{EXPLANATION}"

# Answers a trigger that is delivered again.
_REDELIVER: Final = """
select instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status,
       unwinding_cause, manual_cause, definition, definition_fingerprint, deadline_at_ms
  from instances
 where instance = :instance           -- refuse: no-such-instance
   and exists (select 1 from known)   -- refuse: key-conflict
"""

REDELIVER: Final = f"{KNOWN}{_REDELIVER}"

BEGIN: Final = """
insert into instances (instance, lease_version, state_version, status, definition, definition_fingerprint,
                       deadline_at_ms)
select :instance, 0, 0, 'running', :definition, :definition_fingerprint,
       :deadline_at_ms  -- effect: a row begins, running, pinned to its definition, with both versions 0
 where not exists (select 1 from instances where instance = :instance)  -- refuse: instance-exists
returning instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status,
          unwinding_cause, manual_cause, definition, definition_fingerprint, deadline_at_ms
"""

RECORD_TRIGGER: Final = """
insert into triggers (source, event_id, fingerprint, instance, input, implicit_inputs, triggered_at_ms)
values (:source, :event_id, :fingerprint, :instance, :input, :implicit_inputs,
        :now_ms)  -- effect: the event is known from now on, and what the instance began with
"""

PLAN_STEP: Final = """
insert into steps (instance, step, status, attempt, state_version, planned, needs_approval,
                   approval_deadline_at_ms, deadline_at_ms, most_attempts)
values (:instance, :step, 'pending', 0, 0, 1, :needs_approval, :approval_deadline_at_ms, :deadline_at_ms,
        :most_attempts)  -- effect: a step begins, pending
"""

PLAN_DEPENDENCY: Final = """
insert into dependencies (instance, step, needs)
values (:instance, :step, :needs)  -- effect: a step depends on another
"""

ORIGIN: Final = """
select source, event_id, fingerprint, instance, input, implicit_inputs, triggered_at_ms
  from triggers
 where instance = :instance
"""

MIGRATION_EXPLANATION: Final = "select {verdicts}"

REGISTER_MIGRATION: Final = """
insert into migrations (migration, from_definition, from_fingerprint, to_definition, to_fingerprint)
select :migration, :from_definition, :from_fingerprint, :to_definition,
       :to_fingerprint  -- effect: the migration is registered
 where not exists (select 1 from migrations where migration = :migration)  -- refuse: key-conflict
returning migration, from_definition, from_fingerprint, to_definition, to_fingerprint
"""

FIND_MIGRATION: Final = """
select migration, from_definition, from_fingerprint, to_definition, to_fingerprint
  from migrations
 where migration = :migration
"""

# The inbox (§4).

FIND_REQUEST: Final = """
select instance, number, recorded_at_ms, consumed_by, kind, request_id, requester, step, decision,
       intent_version, idempotency_key, fingerprint, receipt, reason
  from inbox
 where instance = :instance and request_id = :request_id
"""

# What a request is about, beside the instance: the step that it names, and that step's gate.
ABOUT: Final = """
with named as (select * from steps where instance = :instance and step = :step),
     gates as (select 1 from named where needs_approval),
     passed as (select 1 from named where approval_deadline_at_ms <= :now_ms),
     asks as (select 1 from named where status = 'manual_intervention'
              union all
              select 1 from instances where instance = :instance and :step is null
                                        and manual_cause is not null)"""

REQUEST_EXPLANATION: Final = f"{ABOUT}{EXPLANATION}"

# A late result is never dropped; whatever else comes to an instance that is finished, comes too late.
_REQUEST: Final = """
insert into inbox (instance, number, recorded_at_ms, kind, request_id, requester, step, decision,
                   intent_version, idempotency_key, fingerprint, receipt, reason)
select :instance, (select ifnull(max(number), 0) + 1 from inbox where instance = :instance), :now_ms, :kind,
       :request_id, :requester, :step, :decision, :intent_version, :idempotency_key, :fingerprint, :receipt,
       :reason  -- effect: the inbox gains the request, under the next number of the instance
  from instances
 where instance = :instance                                                -- refuse: no-such-instance
   and (:late or status not in ('succeeded', 'failed', 'cancelled'))       -- refuse: finished
   and (:step is null or exists (select 1 from named))                     -- refuse: no-such-step
   and (:kind <> 'approval-decision' or exists (select 1 from gates))      -- refuse: no-such-step
   and (:decision is not 'approved' or not exists (select 1 from passed))  -- refuse: deadline-passed
   and (:kind <> 'operator-decision' or exists (select 1 from asks))       -- refuse: nothing-to-decide
returning instance, number, recorded_at_ms, consumed_by, kind, request_id, requester, step, decision,
          intent_version, idempotency_key, fingerprint, receipt, reason
"""

REQUEST: Final = f"{ABOUT}{_REQUEST}"

# `:unconsumed` asks for those that no commit has consumed.
INBOX: Final = """
select instance, number, recorded_at_ms, consumed_by, kind, request_id, requester, step, decision,
       intent_version, idempotency_key, fingerprint, receipt, reason
  from inbox
 where instance = :instance and (not :unconsumed or consumed_by is null)
 order by number
"""

UNWINDS: Final = """
with unwinds as (select 1 from instances where instance = :instance and unwinding_cause is not null)"""

_CONSUME_EXPLANATION: Final = """
select {verdicts}
  from (select 1) left join inbox on instance = :instance and number = :number
"""

CONSUME_EXPLANATION: Final = f"{UNWINDS}{_CONSUME_EXPLANATION}"

# Part of a commit. What its move and its changes name (`:used`) is consumed before them, a cancel after the
# move, since it is honoured only by an instance that unwinds.
_CONSUME: Final = """
update inbox
   set consumed_by = :state_version  -- effect: the request takes effect in this commit, and in no other
 where instance = :instance and number = :number             -- refuse: no-such-request
   and consumed_by is null                                   -- refuse: no-such-request
   and (kind <> 'cancel') = :used                            -- refuse: no-such-request
   and (kind <> 'cancel' or exists (select 1 from unwinds))  -- refuse: not-unwinding
returning number
"""

CONSUME: Final = f"{UNWINDS}{_CONSUME}"

# With a decision that is consumed, all others about the same step, or the same instance, are over.
OVERTAKE: Final = """
update inbox
   set consumed_by = :state_version  -- effect: what else was decided about it is over, too
 where instance = :instance and step is :step and kind = 'operator-decision' and consumed_by is null
"""

# Notifications (§13).

TOLD: Final = """
with told as (select 1 from notifications where idempotency_key = :idempotency_key
              union all
              select 1 from notifications where (instance, kind, recipient, target_version)
                  = (:instance, :kind, :recipient, :target_version))"""

_VERDICTS: Final = "\nselect {verdicts}"

NOTIFY_EXPLANATION: Final = f"{TOLD}{_VERDICTS}"

_NOTIFY: Final = """
insert into notifications (instance, kind, recipient, target_version, idempotency_key, fingerprint,
                           parameters, state_version)
select :instance, :kind, :recipient, :target_version, :idempotency_key, :fingerprint, :parameters,
       :state_version  -- effect: the intent to tell somebody is stored
 where not exists (select 1 from told)  -- refuse: key-conflict
returning kind
"""

NOTIFY: Final = f"{TOLD}{_NOTIFY}"

# Not part of a commit: what is told after the end of an instance is delivered then. The first receipt stays.
DELIVER_EXPLANATION: Final = """
select {verdicts}
  from (select 1) left join notifications on instance = :instance and idempotency_key = :idempotency_key
"""

DELIVER: Final = """
update notifications
   set receipt = :receipt  -- effect: the receipt of the notification
 where instance = :instance and idempotency_key = :idempotency_key  -- refuse: no-such-notification
   and ifnull(receipt = :receipt, true)                             -- refuse: key-conflict
returning instance, kind, recipient, target_version, idempotency_key, fingerprint, parameters, state_version,
          receipt
"""

NOTIFICATIONS: Final = """
select instance, kind, recipient, target_version, idempotency_key, fingerprint, parameters, state_version,
       receipt
  from notifications
 where instance = :instance
 order by state_version, kind, recipient, target_version
"""

UNDELIVERED: Final = """
select instance, kind, recipient, target_version, idempotency_key, fingerprint, parameters, state_version,
       receipt
  from notifications
 where receipt is null and instance > :after
 order by instance, kind, recipient, target_version
 limit :most
"""

# What there is to do.

PEEK_CLOCK: Final = """
select max(now_ms, :clock_ms) from clock
"""

OPEN_INSTANCES: Final = """
select instance
  from instances
 where status not in ('succeeded', 'failed', 'cancelled') and instance > :after
 order by instance
 limit :most
"""

# Whose lease is not live, and where somebody can do something now: a request to honour, a step to start, to
# settle or to compensate, what a failure has made impossible, a timer or a deadline that is due, or nothing
# left but the end.
_UNLEASED: Final = """
select instance
  from instances as it
 where status not in ('succeeded', 'failed', 'cancelled') and instance > :after
   and (expires_at_ms is null or expires_at_ms <= :now_ms)
   and (exists (select 1 from inbox as asked
                  left join steps as about on about.instance = asked.instance and about.step = asked.step
                 where asked.instance = it.instance and asked.consumed_by is null and"""

# Whether a request can be honoured as things stand. One that cannot stays in the inbox, and is no work: an
# approval of something else, a second one, or a decision that §5 does not have for the step, or that is
# contradicted by a receipt, be that the step's or one that was handed in late.
_HONOURABLE: Final = """
       case kind
           when 'cancel' then manual_cause is null
           when 'approval-decision' then manual_cause is null and about.status = 'waiting_approval'
               and asked.fingerprint = approval_fingerprint
               and asked.intent_version = ifnull(about.intent_version, 0) + 1
           when 'operator-decision' then iif(asked.step is null, manual_cause is not null,
               manual_cause is null and about.status = 'manual_intervention'
               and (from_status = 'compensating') = (decision = 'compensated')
               and case decision
                   when 'running' then unwinding_cause is null
                       and coalesce(about.receipt, about.unwinding) is null
                       and ifnull(:now_ms < about.deadline_at_ms, true)
                       and ifnull(:now_ms < it.deadline_at_ms, true)
                   when 'succeeded' then true
                   when 'compensated' then true
                   else about.receipt is null and not exists (
                       select 1 from inbox as late
                        where late.instance = it.instance and late.kind = 'late-result'
                          and late.consumed_by is null and late.step = about.step
                          and late.idempotency_key = about.idempotency_key
                          and late.fingerprint = about.fingerprint)
                   end)
           else false end"""

_WITH_WORK: Final = """)
     or (manual_cause is null and (
            exists (select 1 from steps where steps.instance = it.instance and (
                       status = 'running'
                    or status = 'failed' and unwinding_cause is null
                    or status = 'succeeded' and unwinding_cause is not null and compensation is not null
                       and not exists (select 1 from steps as other where other.instance = it.instance
                                          and other.status in ('compensating', 'manual_intervention'))
                    or status = 'pending' and (unwinding_cause is not null or not exists (
                           select 1 from dependencies as d join steps as needed
                               on needed.instance = d.instance and needed.step = d.needs
                            where d.instance = it.instance and d.step = steps.step
                              and needed.status not in ('succeeded', 'failed', 'cancelled')))
                    or status = 'waiting_approval' and (unwinding_cause is not null
                        or approval_deadline_at_ms <= :now_ms)
                    or status = 'retry_scheduled' and (unwinding_cause is not null or timer_at_ms <= :now_ms)
                    or status = 'compensating' and ifnull(timer_at_ms <= :now_ms, true)))
         or it.deadline_at_ms <= :now_ms
         or not exists (select 1 from steps where steps.instance = it.instance
                           and status not in ('succeeded', 'failed', 'cancelled', 'compensated')))))
 order by instance
 limit :most
"""

WORKABLE: Final = f"{_UNLEASED}{_HONOURABLE}{_WITH_WORK}"

RUNNABLE_STEPS: Final = """
select step
  from steps
 where instance = :instance and status = 'pending'
   and exists (select 1 from instances where instances.instance = :instance and status = 'running')
   and not exists (select 1 from dependencies as d join steps as needed
                       on needed.instance = d.instance and needed.step = d.needs
                    where d.instance = :instance and d.step = steps.step and needed.status <> 'succeeded')
 order by step
"""

# Timers that can fire: of a retry while its instance runs, of a compensation while it unwinds.
DUE_TIMERS: Final = """
select instance, step, timer_at_ms
  from steps
 where timer_at_ms <= :now_ms
   and status = (select iif(manual_cause is null,
                            iif(unwinding_cause is null, 'retry_scheduled', 'compensating'), null)
                   from instances where instances.instance = steps.instance)
 order by timer_at_ms, instance, step
 limit :most
"""
