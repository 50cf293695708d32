"""The tables of the store as versions 1 and 2 made them, for the upgrade of their files. Not to be changed.

What the tables are now is in `sql_schema.py`. A new file becomes version 1 first and is upgraded at once, so
that no upgrade is ever a path that only old files take.
"""

from __future__ import annotations

from typing import Final

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

VERSION_1: Final = (
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

_STEPS: Final = (
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

TO_VERSION_2: Final = (*_OTHER_ENDS, *_STEPS)
"""What makes version 2 of version 1."""
