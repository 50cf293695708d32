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

from fencepost.reference import sql_steps

APPLICATION_ID: Final = 0x46504F53
"""Marks the file as ours ("FPOS"), in the field that SQLite's header has for it."""

SCHEMA_VERSION: Final = 2
"""Rises with each change of the tables below; kept in `pragma user_version`."""

_INSTANCES: Final = """
    create table instances (
        instance text not null primary key check (instance <> ''),
        owner_worker text check (owner_worker <> ''),
        owner_incarnation integer check (owner_incarnation >= 0),
        lease_version integer not null check (lease_version >= 0),
        expires_at_ms integer check (expires_at_ms >= 0),
        state_version integer not null check (state_version >= 0),
        status text not null check (status in ({statuses})),
        check ((owner_worker is null) = (owner_incarnation is null)),
        check ((owner_worker is null) = (lease_version = 0)),
        check (expires_at_ms is null or lease_version > 0)
    ) strict, without rowid
    """

_VERSIONS_NEVER_FALL: Final = """
    create trigger versions_never_fall before update on instances
    when new.lease_version < old.lease_version or new.state_version < old.state_version
    begin select raise(abort, 'a version never falls'); end
    """

SCHEMA: Final = (
    # The high-water mark of the store's now (§1): one row, for ever.
    """
    create table clock (
        only_row integer primary key check (only_row = 1),
        now_ms integer not null check (now_ms >= 0)
    ) strict
    """,
    "insert into clock (only_row, now_ms) values (1, 0)",
    # The durable rows (§1). A null expiry is minus infinity: released, or never leased.
    _INSTANCES.format(statuses="'running', 'succeeded'"),
    _VERSIONS_NEVER_FALL,
    # The event log (§4): one entry for each accepted commit; nobody rewrites it.
    """
    create table event_log (
        instance text not null references instances (instance),
        state_version integer not null check (state_version > 0),
        lease_version integer not null check (lease_version > 0),
        owner_worker text not null check (owner_worker <> ''),
        owner_incarnation integer not null check (owner_incarnation >= 0),
        commit_id text not null check (commit_id <> ''),
        event text not null check (event <> ''),
        payload text not null,
        committed_at_ms integer not null check (committed_at_ms >= 0),
        primary key (instance, state_version),
        unique (instance, commit_id)
    ) strict, without rowid
    """,
    """
    create trigger log_is_not_rewritten before update on event_log
    begin select raise(abort, 'the event log is append-only'); end
    """,
    """
    create trigger log_is_not_shortened before delete on event_log
    begin select raise(abort, 'the event log is append-only'); end
    """,
)

_OTHER_ENDS: Final = (
    # An instance may end otherwise than well. A check cannot be changed, so the table is made anew.
    "pragma defer_foreign_keys = on",
    "create temp table kept as select * from instances",
    "drop table instances",
    _INSTANCES.format(statuses="'running', 'succeeded', 'failed', 'cancelled'"),
    _VERSIONS_NEVER_FALL,
    "insert into instances select * from kept",
    "drop table kept",
)

UPGRADES: Final = {1: (*_OTHER_ENDS, *sql_steps.SCHEMA)}
"""By version, what makes the next version of it. `SCHEMA` is version 1; a new file is upgraded at once."""


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
returning instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status
"""

ACQUIRE: Final = """
update instances
   set owner_worker = :worker                               -- effect: owner_worker becomes the caller
     , owner_incarnation = :incarnation                     -- effect: owner_incarnation becomes the caller's
     , lease_version = lease_version + 1                    -- effect: lease_version rises by one
     , expires_at_ms = :now_ms + :lease_ms                  -- effect: expires_at_ms becomes now + lease
 where instance = :instance                                 -- refuse: no-such-instance
   and status = 'running'                                   -- refuse: finished
   and (expires_at_ms is null or expires_at_ms <= :now_ms)  -- refuse: lease-live
   and lease_version < 9223372036854775807                  -- refuse: lease-version-exhausted
returning instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status
"""

RENEW: Final = """
update instances
   set expires_at_ms = max(expires_at_ms, :now_ms + :lease_ms)      -- effect: expires_at_ms rises or stays
 where instance = :instance                                         -- refuse: no-such-instance
   and lease_version = :lease_version                               -- refuse: stale-lease-version
   and owner_worker = :worker and owner_incarnation = :incarnation  -- refuse: not-the-owner
   and :now_ms < expires_at_ms                                      -- refuse: lease-expired
returning instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status
"""

RELEASE: Final = """
update instances
   set expires_at_ms = null                                         -- effect: expires_at_ms: minus infinity
 where instance = :instance                                         -- refuse: no-such-instance
   and lease_version = :lease_version                               -- refuse: stale-lease-version
   and owner_worker = :worker and owner_incarnation = :incarnation  -- refuse: not-the-owner
returning instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status
"""

COMMIT_STATE: Final = """
update instances
   set state_version = state_version + 1                            -- effect: state_version rises by one
     , status = iif(:finishes, 'succeeded', status)                 -- effect: status succeeded, if finishing
 where instance = :instance                                         -- refuse: no-such-instance
   and lease_version = :expected_lease_version                      -- refuse: stale-lease-version
   and owner_worker = :worker and owner_incarnation = :incarnation  -- refuse: not-the-owner
   and status = 'running'                                           -- refuse: finished
   and :now_ms < expires_at_ms                                      -- refuse: lease-expired
   and state_version = :expected_state_version                      -- refuse: stale-state-version
   and state_version < 9223372036854775807                          -- refuse: state-version-exhausted
returning instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status
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
select instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status
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


STATEMENTS: Final = Statements()
