-- What version 2 of the store made: five instances, and steps of every kind in order-1. Not to be changed.
PRAGMA application_id = 1179668307;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE clock (
        only_row integer primary key check (only_row = 1),
        now_ms integer not null check (now_ms >= 0)
    ) strict
    ;
INSERT INTO "clock" VALUES(1,1100);
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
INSERT INTO "event_log" VALUES('order-1',1,1,'ada',0,'0-1-0','went on','{}',1000);
INSERT INTO "event_log" VALUES('order-1',2,1,'ada',0,'0-1-1','went on','{}',1000);
INSERT INTO "event_log" VALUES('order-1',3,1,'ada',0,'0-1-2','went on','{}',1000);
INSERT INTO "event_log" VALUES('order-1',4,2,'bob',0,'0-2-3','went on','{}',1100);
INSERT INTO "event_log" VALUES('order-2',1,1,'ada',0,'0-1-0','went on','{}',1100);
INSERT INTO "event_log" VALUES('order-3',1,1,'ada',0,'0-1-0','went on','{}',1100);
INSERT INTO "event_log" VALUES('order-3',2,1,'ada',0,'0-1-1','went on','{}',1100);
INSERT INTO "event_log" VALUES('order-4',1,1,'ada',0,'0-1-0','went on','{}',1100);
CREATE TABLE instances (
        instance text not null primary key check (instance <> ''),
        owner_worker text check (owner_worker <> ''),
        owner_incarnation integer check (owner_incarnation >= 0),
        lease_version integer not null check (lease_version >= 0),
        expires_at_ms integer check (expires_at_ms >= 0),
        state_version integer not null check (state_version >= 0),
        status text not null check (status in ('running', 'succeeded', 'failed', 'cancelled')),
        check ((owner_worker is null) = (owner_incarnation is null)),
        check ((owner_worker is null) = (lease_version = 0)),
        check (expires_at_ms is null or lease_version > 0)
    ) strict, without rowid
    ;
INSERT INTO "instances" VALUES('order-1','bob',0,2,1200,4,'running');
INSERT INTO "instances" VALUES('order-2','ada',0,1,1200,1,'succeeded');
INSERT INTO "instances" VALUES('order-3','ada',0,1,1200,2,'failed');
INSERT INTO "instances" VALUES('order-4','ada',0,1,NULL,1,'cancelled');
INSERT INTO "instances" VALUES('order-5',NULL,NULL,0,NULL,0,'running');
CREATE TABLE step_log (
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
    ;
INSERT INTO "step_log" VALUES('order-1',1,'again','running',1,1,'order-1:again:payment-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',1,'asked','running',1,1,'order-1:asked:payment-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',1,'done','running',1,1,'order-1:done:payment-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',1,'failed','running',1,1,'order-1:failed:payment-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',1,'given-up','running',1,1,'order-1:given-up:payment-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',1,'held','running',1,1,'order-1:held:payment-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',1,'plain','running',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',1,'running','running',1,1,'order-1:running:payment-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',2,'done','succeeded',1,1,'order-1:done:payment-v1',NULL,'receipt-1',NULL);
INSERT INTO "step_log" VALUES('order-1',2,'failed','failed',1,1,'order-1:failed:payment-v1',NULL,NULL,'recorded-refusal');
INSERT INTO "step_log" VALUES('order-1',2,'given-up','running',1,1,'order-1:given-up:payment-v1','the order was withdrawn',NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',2,'held','running',1,1,'order-1:held:payment-v1',NULL,'receipt-2',NULL);
INSERT INTO "step_log" VALUES('order-1',2,'never','cancelled',0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',2,'plain','succeeded',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',3,'asked','manual_intervention',1,1,'order-1:asked:payment-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',3,'given-up','cancelled',1,1,'order-1:given-up:payment-v1','the order was withdrawn',NULL,'tombstoned');
INSERT INTO "step_log" VALUES('order-1',4,'again','running',2,2,'order-1:again:payment-v2',NULL,NULL,'fenced-and-not-found');
INSERT INTO "step_log" VALUES('order-3',1,'one','running',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-3',2,'one','failed',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-4',1,'one','cancelled',0,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE steps (
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
    ;
INSERT INTO "steps" VALUES('order-1','again','running',2,2,'order-1:again:payment-v2','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','payment','charge','{"cents":500}',NULL,NULL,2,NULL,NULL,NULL,'fenced-and-not-found',NULL,NULL,4);
INSERT INTO "steps" VALUES('order-1','asked','manual_intervention',1,1,'order-1:asked:payment-v1','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','payment','charge','{"cents":500}',NULL,NULL,1,NULL,NULL,NULL,NULL,'it may have happened','running',3);
INSERT INTO "steps" VALUES('order-1','done','succeeded',1,1,'order-1:done:payment-v1','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','payment','charge','{"cents":500}',3,'refund',1,NULL,'receipt-1',NULL,NULL,NULL,NULL,2);
INSERT INTO "steps" VALUES('order-1','failed','failed',1,1,'order-1:failed:payment-v1','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','payment','charge','{"cents":500}',NULL,NULL,1,NULL,NULL,'recorded-refusal',NULL,'declined',NULL,2);
INSERT INTO "steps" VALUES('order-1','given-up','cancelled',1,1,'order-1:given-up:payment-v1','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','payment','charge','{"cents":500}',NULL,NULL,1,'the order was withdrawn',NULL,'tombstoned',NULL,NULL,NULL,3);
INSERT INTO "steps" VALUES('order-1','held','running',1,1,'order-1:held:payment-v1','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','payment','charge','{"cents":500}',NULL,NULL,1,NULL,'receipt-2',NULL,NULL,NULL,NULL,2);
INSERT INTO "steps" VALUES('order-1','never','cancelled',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'not needed',NULL,2);
INSERT INTO "steps" VALUES('order-1','plain','succeeded',1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,2);
INSERT INTO "steps" VALUES('order-1','running','running',1,1,'order-1:running:payment-v1','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','payment','charge','{"cents":500}',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "steps" VALUES('order-3','one','failed',1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,2);
INSERT INTO "steps" VALUES('order-4','one','cancelled',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1);
CREATE TRIGGER log_is_not_rewritten before update on event_log
    begin select raise(abort, 'the event log is append-only'); end;
CREATE TRIGGER log_is_not_shortened before delete on event_log
    begin select raise(abort, 'the event log is append-only'); end;
CREATE TRIGGER versions_never_fall before update on instances
    when new.lease_version < old.lease_version or new.state_version < old.state_version
    begin select raise(abort, 'a version never falls'); end;
CREATE TRIGGER intents_are_kept before update on steps
    when old.intent_version is not null and (
        new.intent_version is null or new.intent_version not in (old.intent_version, old.intent_version + 1)
        or new.intent_version = old.intent_version and (
            new.idempotency_key is not old.idempotency_key or new.fingerprint is not old.fingerprint
            or new.resource is not old.resource or new.operation is not old.operation
            or new.parameters is not old.parameters or new.expected_revision is not old.expected_revision
            or new.compensation is not old.compensation
            or new.intent_lease_version is not old.intent_lease_version))
    begin select raise(abort, 'a stored intent is not overwritten'); end;
CREATE TRIGGER intents_begin_at_one before update on steps
    when old.intent_version is null and new.intent_version > 1
    begin select raise(abort, 'the first intent has version 1'); end;
CREATE TRIGGER receipts_are_kept before update on steps
    when old.receipt is not null
     and (new.receipt is not old.receipt or new.intent_version is not old.intent_version)
    begin select raise(abort, 'a receipt is not overwritten'); end;
CREATE TRIGGER reasons_for_unwinding_are_kept before update on steps
    when old.unwinding is not null
     and (new.unwinding is not old.unwinding or new.intent_version is not old.intent_version)
    begin select raise(abort, 'what unwinds goes on unwinding'); end;
CREATE TRIGGER terminal_steps_stay before update on steps
    when old.status in ('succeeded', 'failed', 'cancelled') or new.status = 'pending'
    begin select raise(abort, 'no step leaves a terminal status or goes back to pending'); end;
CREATE TRIGGER steps_stay before delete on steps
    begin select raise(abort, 'no step is deleted'); end;
CREATE TRIGGER step_log_is_not_rewritten before update on step_log
    begin select raise(abort, 'the step log is append-only'); end;
CREATE TRIGGER step_log_is_not_shortened before delete on step_log
    begin select raise(abort, 'the step log is append-only'); end;
COMMIT;
