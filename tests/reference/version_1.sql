-- What version 1 of the store made: one instance, leased, with one commit. Not to be changed.
PRAGMA application_id = 1179668307;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE clock (
        only_row integer primary key check (only_row = 1),
        now_ms integer not null check (now_ms >= 0)
    ) strict
    ;
INSERT INTO "clock" VALUES(1,1000);
CREATE TABLE event_log (
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
    ;
INSERT INTO "event_log" VALUES('order-1',1,1,'ada',0,'0-1','charged','{}',1000);
CREATE TABLE instances (
        instance text not null primary key check (instance <> ''),
        owner_worker text check (owner_worker <> ''),
        owner_incarnation integer check (owner_incarnation >= 0),
        lease_version integer not null check (lease_version >= 0),
        expires_at_ms integer check (expires_at_ms >= 0),
        state_version integer not null check (state_version >= 0),
        status text not null check (status in ('running', 'succeeded')),
        check ((owner_worker is null) = (owner_incarnation is null)),
        check ((owner_worker is null) = (lease_version = 0)),
        check (expires_at_ms is null or lease_version > 0)
    ) strict, without rowid
    ;
INSERT INTO "instances" VALUES('order-1','ada',0,1,1100,1,'running');
CREATE TRIGGER versions_never_fall before update on instances
    when new.lease_version < old.lease_version or new.state_version < old.state_version
    begin select raise(abort, 'a version never falls'); end;
CREATE TRIGGER log_is_not_rewritten before update on event_log
    begin select raise(abort, 'the event log is append-only'); end;
CREATE TRIGGER log_is_not_shortened before delete on event_log
    begin select raise(abort, 'the event log is append-only'); end;
COMMIT;
