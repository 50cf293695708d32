"""The SQL of the store, as text: schema, and one statement for each action of §3 and §4; see `sql_steps.py`.

How to read a statement, and how programs read it (`guards.py`): each line of a `where` is one guard and ends
in the code of its refusal; each line of a `set` is one effect and ends in words for it. The guards stand in
the order of their precedence. They are the compare-and-set itself: the database evaluates them together with
the write, under its write lock, and nothing in Python decides in its place.

The schema repeats what a database can hold by itself, so that a writer that goes past this module is
repelled too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fencepost.reference import (
    sql_checkpoints,
    sql_history,
    sql_inbox,
    sql_schema,
    sql_steps,
    sql_undo,
    sql_waiting,
)

APPLICATION_ID: Final = 0x46504F53
"""Marks the file as ours ("FPOS"), in the field that SQLite's header has for it."""

SCHEMA_VERSION: Final = 5
"""Rises with each change of the tables; kept in `pragma user_version`."""

SCHEMA: Final = sql_history.VERSION_1
"""What makes version 1 in an empty file."""

UPGRADES: Final = {
    1: sql_history.TO_VERSION_2,
    2: sql_schema.TO_VERSION_3,
    3: sql_checkpoints.TO_VERSION_4,
    4: sql_waiting.TO_VERSION_5,
}
"""By version, what makes the next version of it. A new file is upgraded at once."""


ADVANCE_CLOCK: Final = """
update clock
   set now_ms = max(now_ms, :clock_ms)  -- effect: now becomes the clock's reading unless that is earlier
 where only_row = 1
returning now_ms
"""

CREATE: Final = """
insert into instances (instance, lease_version, state_version, status)
select :instance, 0, 0, 'running'  -- effect: a row begins, running, with both versions 0 and no owner
 where not exists (select 1 from instances where instance = :instance)  -- refuse: instance-exists
returning instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status,
          unwinding_cause, manual_cause, definition, definition_fingerprint, deadline_at_ms
"""

ACQUIRE: Final = """
update instances
   set owner_worker = :worker                               -- effect: owner_worker becomes the caller
     , owner_incarnation = :incarnation                     -- effect: owner_incarnation becomes the caller's
     , lease_version = lease_version + 1                    -- effect: lease_version rises by one
     , expires_at_ms = :now_ms + :lease_ms                  -- effect: expires_at_ms becomes now + lease
 where instance = :instance                                 -- refuse: no-such-instance
   and status not in ('succeeded', 'failed', 'cancelled')    -- refuse: finished
   and (expires_at_ms is null or expires_at_ms <= :now_ms)  -- refuse: lease-live
   and lease_version < 9223372036854775807                  -- refuse: lease-version-exhausted
returning instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status,
          unwinding_cause, manual_cause, definition, definition_fingerprint, deadline_at_ms
"""

RENEW: Final = """
update instances
   set expires_at_ms = max(expires_at_ms, :now_ms + :lease_ms)      -- effect: expires_at_ms rises or stays
 where instance = :instance                                         -- refuse: no-such-instance
   and lease_version = :lease_version                               -- refuse: stale-lease-version
   and owner_worker = :worker and owner_incarnation = :incarnation  -- refuse: not-the-owner
   and :now_ms < expires_at_ms                                      -- refuse: lease-expired
returning instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status,
          unwinding_cause, manual_cause, definition, definition_fingerprint, deadline_at_ms
"""

RELEASE: Final = """
update instances
   set expires_at_ms = null                                         -- effect: expires_at_ms: minus infinity
 where instance = :instance                                         -- refuse: no-such-instance
   and lease_version = :lease_version                               -- refuse: stale-lease-version
   and owner_worker = :worker and owner_incarnation = :incarnation  -- refuse: not-the-owner
returning instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status,
          unwinding_cause, manual_cause, definition, definition_fingerprint, deadline_at_ms
"""

COMMIT_STATE: Final = """
update instances
   set state_version = state_version + 1                            -- effect: state_version rises by one
     , status = iif(:finishes and status = 'running', 'succeeded', status)  -- effect: succeeded, if finishing
 where instance = :instance                                         -- refuse: no-such-instance
   and lease_version = :expected_lease_version                      -- refuse: stale-lease-version
   and owner_worker = :worker and owner_incarnation = :incarnation  -- refuse: not-the-owner
   and status not in ('succeeded', 'failed', 'cancelled')           -- refuse: finished
   and :now_ms < expires_at_ms                                      -- refuse: lease-expired
   and state_version = :expected_state_version                      -- refuse: stale-state-version
   and state_version < 9223372036854775807                          -- refuse: state-version-exhausted
returning instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status,
          unwinding_cause, manual_cause, definition, definition_fingerprint, deadline_at_ms
"""

# Runs after an accepted COMMIT_STATE in the same transaction. It records the lease version and owner that the
# committer *named*, not those of the row: were the guard above ever too weak, the log would show it.
APPEND: Final = """
insert into event_log (instance, state_version, lease_version, owner_worker, owner_incarnation,
                       commit_id, event, payload, committed_at_ms)
values (:instance, :state_version, :expected_lease_version, :worker, :incarnation,
        :commit_id, :event, :payload, :now_ms)  -- effect: the event log gains this commit
returning instance, state_version, lease_version, owner_worker, owner_incarnation,
          commit_id, event, payload, committed_at_ms
"""

READ: Final = """
select instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status,
       unwinding_cause, manual_cause, definition, definition_fingerprint, deadline_at_ms
  from instances
 where instance = :instance  -- refuse: no-such-instance
"""

FIND_COMMIT: Final = """
select instance, state_version, lease_version, owner_worker, owner_incarnation,
       commit_id, event, payload, committed_at_ms
  from event_log
 where instance = :instance and commit_id = :commit_id
"""

LOG: Final = """
select instance, state_version, lease_version, owner_worker, owner_incarnation,
       commit_id, event, payload, committed_at_ms
  from event_log
 where instance = :instance
 order by state_version
"""


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements of one store. Another text for one may name the same parameters, and no others.

    To see what a guard is for, open a store with `replace(STATEMENTS, commit=...)`. The refusals that it
    gives follow from the text.
    """

    advance_clock: str = ADVANCE_CLOCK
    create: str = CREATE
    acquire: str = ACQUIRE
    renew: str = RENEW
    release: str = RELEASE
    commit: str = COMMIT_STATE
    append: str = APPEND
    read: str = READ
    find_commit: str = FIND_COMMIT
    log: str = LOG
    begin_step: str = sql_steps.BEGIN_STEP
    change_step: str = sql_steps.CHANGE_STEP
    append_step: str = sql_steps.APPEND_STEP
    finish: str = sql_steps.FINISH
    read_steps: str = sql_steps.READ_STEPS
    step_log: str = sql_steps.STEP_LOG
    unfinished: str = sql_steps.UNFINISHED
    compensate_step: str = sql_undo.COMPENSATE_STEP
    settle_step: str = sql_undo.SETTLE_STEP
    move: str = sql_undo.MOVE
    consume: str = sql_inbox.CONSUME
    overtake: str = sql_inbox.OVERTAKE
    find_trigger: str = sql_inbox.FIND_TRIGGER
    redeliver: str = sql_inbox.REDELIVER
    begin: str = sql_inbox.BEGIN
    record_trigger: str = sql_inbox.RECORD_TRIGGER
    plan_step: str = sql_inbox.PLAN_STEP
    plan_dependency: str = sql_inbox.PLAN_DEPENDENCY
    origin: str = sql_inbox.ORIGIN
    find_migration: str = sql_inbox.FIND_MIGRATION
    register_migration: str = sql_inbox.REGISTER_MIGRATION
    find_request: str = sql_inbox.FIND_REQUEST
    request: str = sql_inbox.REQUEST
    inbox: str = sql_inbox.INBOX
    notify: str = sql_inbox.NOTIFY
    deliver: str = sql_inbox.DELIVER
    notifications: str = sql_inbox.NOTIFICATIONS
    undelivered: str = sql_inbox.UNDELIVERED
    peek_clock: str = sql_inbox.PEEK_CLOCK
    open_instances: str = sql_inbox.OPEN_INSTANCES
    workable: str = sql_inbox.WORKABLE
    runnable_steps: str = sql_inbox.RUNNABLE_STEPS
    due_timers: str = sql_inbox.DUE_TIMERS
    write_checkpoint: str = sql_checkpoints.WRITE_CHECKPOINT
    read_checkpoint: str = sql_checkpoints.READ_CHECKPOINT
    vouch: str = sql_checkpoints.VOUCH


STATEMENTS: Final = Statements()
