-- What version 3 of the store made: four orders, one finished, one undone, one at its gate, one left half-done. Not to be changed.
PRAGMA application_id = 1179668307;
PRAGMA user_version = 3;
BEGIN TRANSACTION;
CREATE TABLE clock (
        only_row integer primary key check (only_row = 1),
        now_ms integer not null check (now_ms >= 0)
    ) strict
    ;
INSERT INTO "clock" VALUES(1,2400);
CREATE TABLE dependencies (
        instance text not null,
        step text not null,
        needs text not null check (needs <> step),
        primary key (instance, step, needs),
        foreign key (instance, step) references steps (instance, step),
        foreign key (instance, needs) references steps (instance, step)
    ) strict, without rowid
    ;
INSERT INTO "dependencies" VALUES('order-1','charge','reserve');
INSERT INTO "dependencies" VALUES('order-1','close','ship');
INSERT INTO "dependencies" VALUES('order-1','ship','charge');
INSERT INTO "dependencies" VALUES('order-1','ship','weigh');
INSERT INTO "dependencies" VALUES('order-1','weigh','reserve');
INSERT INTO "dependencies" VALUES('order-2','charge','reserve');
INSERT INTO "dependencies" VALUES('order-2','close','ship');
INSERT INTO "dependencies" VALUES('order-2','ship','charge');
INSERT INTO "dependencies" VALUES('order-2','ship','weigh');
INSERT INTO "dependencies" VALUES('order-2','weigh','reserve');
INSERT INTO "dependencies" VALUES('order-3','charge','reserve');
INSERT INTO "dependencies" VALUES('order-3','close','ship');
INSERT INTO "dependencies" VALUES('order-3','ship','charge');
INSERT INTO "dependencies" VALUES('order-3','ship','weigh');
INSERT INTO "dependencies" VALUES('order-3','weigh','reserve');
INSERT INTO "dependencies" VALUES('order-4','charge','reserve');
INSERT INTO "dependencies" VALUES('order-4','close','ship');
INSERT INTO "dependencies" VALUES('order-4','ship','charge');
INSERT INTO "dependencies" VALUES('order-4','ship','weigh');
INSERT INTO "dependencies" VALUES('order-4','weigh','reserve');
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
INSERT INTO "event_log" VALUES('order-1',1,1,'ada',0,'0-1-1','reserve: started','',1000);
INSERT INTO "event_log" VALUES('order-1',2,1,'ada',0,'0-1-2','reserve: succeeded','',1000);
INSERT INTO "event_log" VALUES('order-1',3,1,'ada',0,'0-1-3','charge: started','',1000);
INSERT INTO "event_log" VALUES('order-1',4,1,'ada',0,'0-1-4','charge: will be retried','',1000);
INSERT INTO "event_log" VALUES('order-1',5,1,'ada',0,'0-1-5','weigh: started','',1000);
INSERT INTO "event_log" VALUES('order-1',6,1,'ada',0,'0-1-6','weigh: succeeded','',1000);
INSERT INTO "event_log" VALUES('order-1',7,2,'ada',0,'0-2-1','charge: started','',1100);
INSERT INTO "event_log" VALUES('order-1',8,2,'ada',0,'0-2-2','charge: succeeded','',1100);
INSERT INTO "event_log" VALUES('order-1',9,2,'ada',0,'0-2-3','ship: asks for approval','',1100);
INSERT INTO "event_log" VALUES('order-1',10,3,'ada',0,'0-3-1','ship: started','',1200);
INSERT INTO "event_log" VALUES('order-1',11,3,'ada',0,'0-3-2','ship: succeeded','',1200);
INSERT INTO "event_log" VALUES('order-1',12,3,'ada',0,'0-3-3','close: started','',1200);
INSERT INTO "event_log" VALUES('order-1',13,3,'ada',0,'0-3-4','close: succeeded','',1200);
INSERT INTO "event_log" VALUES('order-1',14,3,'ada',0,'0-3-5','finished','',1200);
INSERT INTO "event_log" VALUES('order-2',1,1,'ada',0,'0-1-1','reserve: started','',1600);
INSERT INTO "event_log" VALUES('order-2',2,1,'ada',0,'0-1-2','reserve: succeeded','',1600);
INSERT INTO "event_log" VALUES('order-2',3,1,'ada',0,'0-1-3','charge: started','',1600);
INSERT INTO "event_log" VALUES('order-2',4,1,'ada',0,'0-1-4','charge: will be retried','',1600);
INSERT INTO "event_log" VALUES('order-2',5,1,'ada',0,'0-1-5','weigh: started','',1600);
INSERT INTO "event_log" VALUES('order-2',6,1,'ada',0,'0-1-6','weigh: succeeded','',1600);
INSERT INTO "event_log" VALUES('order-2',7,2,'ada',0,'0-2-1','charge: started','',1700);
INSERT INTO "event_log" VALUES('order-2',8,2,'ada',0,'0-2-2','charge: succeeded','',1700);
INSERT INTO "event_log" VALUES('order-2',9,2,'ada',0,'0-2-3','ship: asks for approval','',1700);
INSERT INTO "event_log" VALUES('order-2',10,3,'bob',0,'0-3-1','unwinds','',1900);
INSERT INTO "event_log" VALUES('order-2',11,3,'bob',0,'0-3-2','charge: compensating','',1900);
INSERT INTO "event_log" VALUES('order-2',12,3,'bob',0,'0-3-3','charge: compensated','',1900);
INSERT INTO "event_log" VALUES('order-2',13,3,'bob',0,'0-3-4','reserve: compensating','',1900);
INSERT INTO "event_log" VALUES('order-2',14,3,'bob',0,'0-3-5','reserve: compensated','',1900);
INSERT INTO "event_log" VALUES('order-2',15,3,'bob',0,'0-3-6','finished','',1900);
INSERT INTO "event_log" VALUES('order-3',1,1,'ada',0,'0-1-1','reserve: started','',2200);
INSERT INTO "event_log" VALUES('order-3',2,1,'ada',0,'0-1-2','reserve: succeeded','',2200);
INSERT INTO "event_log" VALUES('order-3',3,1,'ada',0,'0-1-3','charge: started','',2200);
INSERT INTO "event_log" VALUES('order-3',4,1,'ada',0,'0-1-4','charge: will be retried','',2200);
INSERT INTO "event_log" VALUES('order-3',5,1,'ada',0,'0-1-5','weigh: started','',2200);
INSERT INTO "event_log" VALUES('order-3',6,1,'ada',0,'0-1-6','weigh: succeeded','',2200);
INSERT INTO "event_log" VALUES('order-3',7,2,'ada',0,'0-2-1','charge: started','',2300);
INSERT INTO "event_log" VALUES('order-3',8,2,'ada',0,'0-2-2','charge: succeeded','',2300);
INSERT INTO "event_log" VALUES('order-3',9,2,'ada',0,'0-2-3','ship: asks for approval','',2300);
INSERT INTO "event_log" VALUES('order-4',1,1,'ada',0,'0-1-1','reserve: started','',2400);
CREATE TABLE inbox (
        instance text not null references instances (instance),
        number integer not null check (number > 0),
        request_id text not null check (request_id <> ''),
        kind text not null check (
            kind in ('cancel', 'approval-decision', 'operator-decision', 'late-result')),
        requester text not null check (requester <> ''),
        step text check (step <> ''),
        decision text check (decision <> ''),
        intent_version integer check (intent_version > 0),
        idempotency_key text check (idempotency_key <> ''),
        fingerprint text check (fingerprint <> ''),
        receipt text check (receipt <> ''),
        reason text check (reason <> ''),
        recorded_at_ms integer not null check (recorded_at_ms >= 0),
        consumed_by integer check (consumed_by > 0),
        primary key (instance, number),
        unique (instance, request_id),
        foreign key (instance, step) references steps (instance, step),
        foreign key (instance, consumed_by) references event_log (instance, state_version),
        check (kind <> 'cancel' or coalesce(step, decision) is null),
        check (kind <> 'approval-decision' or ifnull(
            decision in ('approved', 'rejected') and step <> '' and intent_version > 0 and fingerprint <> '',
            false)),
        check (kind <> 'operator-decision' or ifnull(iif(step is null, decision = 'resumed',
            decision in ('running', 'succeeded', 'failed', 'cancelled', 'compensated')), false)),
        check (kind <> 'late-result' or ifnull(
            step <> '' and idempotency_key <> '' and fingerprint <> '' and receipt <> '', false))
    ) strict, without rowid
    ;
INSERT INTO "inbox" VALUES('order-1',1,'approve ship by eve','approval-decision','eve','ship','approved',1,NULL,'d1ba7180277a809fdb124010239d0d0af315d01680dcaf14ef354b3c5cd52b77',NULL,NULL,1200,10);
INSERT INTO "inbox" VALUES('order-2',1,'cancel by eve: withdrawn','cancel','eve',NULL,NULL,NULL,NULL,NULL,NULL,'withdrawn',1900,10);
CREATE TABLE instances (
        instance text not null primary key check (instance <> ''),
        owner_worker text check (owner_worker <> ''),
        owner_incarnation integer check (owner_incarnation >= 0),
        lease_version integer not null check (lease_version >= 0),
        expires_at_ms integer check (expires_at_ms >= 0),
        state_version integer not null check (state_version >= 0),
        status text not null check (
            status in ('running', 'unwinding', 'succeeded', 'failed', 'cancelled', 'manual_intervention')),
        unwinding_cause text check (unwinding_cause <> ''),
        manual_cause text check (manual_cause <> ''),
        definition text check (definition <> ''),
        definition_fingerprint text check (definition_fingerprint <> ''),
        deadline_at_ms integer check (deadline_at_ms >= 0),
        check ((owner_worker is null) = (owner_incarnation is null)),
        check ((owner_worker is null) = (lease_version = 0)),
        check (expires_at_ms is null or lease_version > 0),
        check (status not in ('running', 'succeeded') or unwinding_cause is null),
        check (status <> 'unwinding' or unwinding_cause is not null),
        check ((status = 'manual_intervention') = (manual_cause is not null)),
        check ((definition is null) = (definition_fingerprint is null))
    ) strict, without rowid
    ;
INSERT INTO "instances" VALUES('order-1','ada',0,3,NULL,14,'succeeded',NULL,NULL,'order','6a27303b980c1d16f6a4f9cadb342bedf4e1d49c26a1dcc77158eff4bed3d05a',NULL);
INSERT INTO "instances" VALUES('order-2','bob',0,3,NULL,15,'cancelled','cancelled by eve: withdrawn',NULL,'order','6a27303b980c1d16f6a4f9cadb342bedf4e1d49c26a1dcc77158eff4bed3d05a',NULL);
INSERT INTO "instances" VALUES('order-3','ada',0,2,NULL,9,'running',NULL,NULL,'order','6a27303b980c1d16f6a4f9cadb342bedf4e1d49c26a1dcc77158eff4bed3d05a',NULL);
INSERT INTO "instances" VALUES('order-4','ada',0,1,2500,1,'running',NULL,NULL,'order','6a27303b980c1d16f6a4f9cadb342bedf4e1d49c26a1dcc77158eff4bed3d05a',NULL);
CREATE TABLE migrations (
        migration text not null primary key check (migration <> ''),
        from_definition text not null check (from_definition <> ''),
        from_fingerprint text not null check (from_fingerprint <> ''),
        to_definition text not null check (to_definition <> ''),
        to_fingerprint text not null check (to_fingerprint <> '')
    ) strict, without rowid
    ;
INSERT INTO "migrations" VALUES('order 1 to 2','order','6a27303b980c1d16f6a4f9cadb342bedf4e1d49c26a1dcc77158eff4bed3d05a','order','7032825ea42129533641a11199ac6d8c1649f0f3046bbdebd3fd604d70bc997c');
CREATE TABLE notifications (
        instance text not null,
        kind text not null check (kind <> ''),
        recipient text not null check (recipient <> ''),
        target_version integer not null check (target_version >= 0),
        idempotency_key text not null unique check (idempotency_key <> ''),
        fingerprint text not null check (fingerprint <> ''),
        parameters text not null check (parameters <> ''),
        state_version integer not null,
        receipt text check (receipt <> ''),
        primary key (instance, kind, recipient, target_version),
        foreign key (instance, state_version) references event_log (instance, state_version)
    ) strict, without rowid
    ;
INSERT INTO "notifications" VALUES('order-1','shipped','zoe',1,'notification/order-1:shipped:zoe-v1','36b3575306f150d447c763143dc193a385b3461a086492483a04b7dbecbe113e','{"message":{"parcel":"receipt-3"},"recipient":"zoe","target_version":1}',11,'receipt-4');
CREATE TABLE step_log (
        instance text not null,
        state_version integer not null,
        step text not null,
        status text not null check (
            status in ('running', 'succeeded', 'waiting_approval', 'retry_scheduled', 'failed',
                       'compensating', 'compensated', 'cancelled', 'manual_intervention')),
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
INSERT INTO "step_log" VALUES('order-1',1,'reserve','running',1,1,'order-1:reserve:stock-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',2,'reserve','succeeded',1,1,'order-1:reserve:stock-v1',NULL,'receipt-1',NULL);
INSERT INTO "step_log" VALUES('order-1',3,'charge','running',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',4,'charge','retry_scheduled',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',5,'weigh','running',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',6,'weigh','succeeded',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',7,'charge','running',2,1,'order-1:charge:payment-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',8,'charge','succeeded',2,1,'order-1:charge:payment-v1',NULL,'receipt-2',NULL);
INSERT INTO "step_log" VALUES('order-1',9,'ship','waiting_approval',0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',10,'ship','running',1,1,'order-1:ship:parcel-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',11,'ship','succeeded',1,1,'order-1:ship:parcel-v1',NULL,'receipt-3',NULL);
INSERT INTO "step_log" VALUES('order-1',12,'close','running',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-1',13,'close','succeeded',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-2',1,'reserve','running',1,1,'order-2:reserve:stock-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-2',2,'reserve','succeeded',1,1,'order-2:reserve:stock-v1',NULL,'receipt-5',NULL);
INSERT INTO "step_log" VALUES('order-2',3,'charge','running',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-2',4,'charge','retry_scheduled',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-2',5,'weigh','running',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-2',6,'weigh','succeeded',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-2',7,'charge','running',2,1,'order-2:charge:payment-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-2',8,'charge','succeeded',2,1,'order-2:charge:payment-v1',NULL,'receipt-6',NULL);
INSERT INTO "step_log" VALUES('order-2',9,'ship','waiting_approval',0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-2',10,'close','cancelled',0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-2',10,'ship','cancelled',0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-2',11,'charge','compensating',2,1,'order-2:charge:payment-v1',NULL,'receipt-6',NULL);
INSERT INTO "step_log" VALUES('order-2',12,'charge','compensated',2,1,'order-2:charge:payment-v1',NULL,'receipt-6',NULL);
INSERT INTO "step_log" VALUES('order-2',13,'reserve','compensating',1,1,'order-2:reserve:stock-v1',NULL,'receipt-5',NULL);
INSERT INTO "step_log" VALUES('order-2',14,'reserve','compensated',1,1,'order-2:reserve:stock-v1',NULL,'receipt-5',NULL);
INSERT INTO "step_log" VALUES('order-3',1,'reserve','running',1,1,'order-3:reserve:stock-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-3',2,'reserve','succeeded',1,1,'order-3:reserve:stock-v1',NULL,'receipt-9',NULL);
INSERT INTO "step_log" VALUES('order-3',3,'charge','running',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-3',4,'charge','retry_scheduled',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-3',5,'weigh','running',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-3',6,'weigh','succeeded',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-3',7,'charge','running',2,1,'order-3:charge:payment-v1',NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-3',8,'charge','succeeded',2,1,'order-3:charge:payment-v1',NULL,'receipt-10',NULL);
INSERT INTO "step_log" VALUES('order-3',9,'ship','waiting_approval',0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "step_log" VALUES('order-4',1,'reserve','running',1,1,'order-4:reserve:stock-v1',NULL,NULL,NULL);
CREATE TABLE steps (
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
        check (status not in ('pending', 'waiting_approval') or intent_version is null),
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
        check (evidence is null or status in ('failed', 'cancelled')),
        check (status not in ('failed', 'cancelled') or intent_version is null or attested
               or evidence is not null),
        check (evidence <> 'tombstoned' or unwinding is not null),
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
    ;
INSERT INTO "steps" VALUES('order-1','charge','succeeded',2,1,'order-1:charge:payment-v1','010de0cf8991dac0da64220e499689a0bd4b0d163493a352cb30b0996214ea3b','payment','charge','{"cents":500,"stock":"receipt-1"}',NULL,'refund',2,NULL,'receipt-2',NULL,NULL,NULL,NULL,8,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,8,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-1','close','succeeded',1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,13,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,'"closed with receipt-3"',13,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-1','reserve','succeeded',1,1,'order-1:reserve:stock-v1','749f177ccef1e0ab09f2071fbbcb2e1df498199bf86319a937cbeca058ce0ef5','stock','reserve','{"item":"lamp"}',NULL,'put_back',1,NULL,'receipt-1',NULL,NULL,NULL,NULL,2,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,2,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-1','ship','succeeded',1,1,'order-1:ship:parcel-v1','d1ba7180277a809fdb124010239d0d0af315d01680dcaf14ef354b3c5cd52b77','parcel','ship','{"grams":300}',NULL,NULL,3,NULL,'receipt-3',NULL,NULL,NULL,NULL,11,1,1,'d1ba7180277a809fdb124010239d0d0af315d01680dcaf14ef354b3c5cd52b77',NULL,1,NULL,5,NULL,NULL,NULL,11,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-1','weigh','succeeded',1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,6,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,'{"grams":300}',6,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-2','charge','compensated',2,1,'order-2:charge:payment-v1','380ce0e70a3f33972f389784b9477ea9553cff157ac4477d530a4c1ceef15c7d','payment','charge','{"cents":500,"stock":"receipt-5"}',NULL,'refund',2,NULL,'receipt-6',NULL,NULL,NULL,NULL,12,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,8,0,1,'compensation/order-2:charge-v1','9b899240f095699cfdb99de74f4588efbbd0b8364d16d035a2d6353bcad6f934','payment','refund','{"receipt":"receipt-6"}',NULL,3,'receipt-7',1);
INSERT INTO "steps" VALUES('order-2','close','cancelled',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'cancelled by eve: withdrawn',NULL,10,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-2','reserve','compensated',1,1,'order-2:reserve:stock-v1','749f177ccef1e0ab09f2071fbbcb2e1df498199bf86319a937cbeca058ce0ef5','stock','reserve','{"item":"lamp"}',NULL,'put_back',1,NULL,'receipt-5',NULL,NULL,NULL,NULL,14,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,2,0,1,'compensation/order-2:reserve-v1','4c2c39beb7fafedb2442569d601ac83366cebd9737ab3ee9c5d54ce299c355c2','stock','put back','{"receipt":"receipt-5"}',NULL,3,'receipt-8',1);
INSERT INTO "steps" VALUES('order-2','ship','cancelled',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'cancelled by eve: withdrawn',NULL,10,1,1,'d1ba7180277a809fdb124010239d0d0af315d01680dcaf14ef354b3c5cd52b77',NULL,NULL,NULL,5,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-2','weigh','succeeded',1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,6,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,'{"grams":300}',6,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-3','charge','succeeded',2,1,'order-3:charge:payment-v1','bd2cf5463408ccb9dcffd2c69c461d7d0fa61d874a6a760c0f14b4070510023a','payment','charge','{"cents":500,"stock":"receipt-9"}',NULL,'refund',2,NULL,'receipt-10',NULL,NULL,NULL,NULL,8,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,8,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-3','close','pending',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-3','reserve','succeeded',1,1,'order-3:reserve:stock-v1','749f177ccef1e0ab09f2071fbbcb2e1df498199bf86319a937cbeca058ce0ef5','stock','reserve','{"item":"lamp"}',NULL,'put_back',1,NULL,'receipt-9',NULL,NULL,NULL,NULL,2,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,2,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-3','ship','waiting_approval',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,9,1,1,'d1ba7180277a809fdb124010239d0d0af315d01680dcaf14ef354b3c5cd52b77',NULL,NULL,NULL,5,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-3','weigh','succeeded',1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,6,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,'{"grams":300}',6,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-4','charge','pending',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-4','close','pending',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-4','reserve','running',1,1,'order-4:reserve:stock-v1','749f177ccef1e0ab09f2071fbbcb2e1df498199bf86319a937cbeca058ce0ef5','stock','reserve','{"item":"lamp"}',NULL,'put_back',1,NULL,NULL,NULL,NULL,NULL,NULL,1,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-4','ship','pending',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,1,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "steps" VALUES('order-4','weigh','pending',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL,NULL,NULL,NULL,5,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
CREATE TABLE triggers (
        source text not null check (source <> ''),
        event_id text not null check (event_id <> ''),
        fingerprint text not null check (fingerprint <> ''),
        instance text not null unique references instances (instance),
        input text not null,
        implicit_inputs text not null,
        triggered_at_ms integer not null check (triggered_at_ms >= 0),
        primary key (source, event_id)
    ) strict, without rowid
    ;
INSERT INTO "triggers" VALUES('shop','order-1','2197093ca778c1635b5a58ae0aa7994ff655efde722aa28d824cb0defc88b733','order-1','{"cents":500,"item":"lamp","mail":"zoe"}','{"scale":3}',1000);
INSERT INTO "triggers" VALUES('shop','order-2','2197093ca778c1635b5a58ae0aa7994ff655efde722aa28d824cb0defc88b733','order-2','{"cents":500,"item":"lamp","mail":"zoe"}','{"scale":3}',1000);
INSERT INTO "triggers" VALUES('shop','order-3','2197093ca778c1635b5a58ae0aa7994ff655efde722aa28d824cb0defc88b733','order-3','{"cents":500,"item":"lamp","mail":"zoe"}','{"scale":3}',1000);
INSERT INTO "triggers" VALUES('shop','order-4','2197093ca778c1635b5a58ae0aa7994ff655efde722aa28d824cb0defc88b733','order-4','{"cents":500,"item":"lamp","mail":"zoe"}','{"scale":3}',2400);
CREATE TRIGGER log_is_not_rewritten before update on event_log
    begin select raise(abort, 'the event log is append-only'); end;
CREATE TRIGGER log_is_not_shortened before delete on event_log
    begin select raise(abort, 'the event log is append-only'); end;
CREATE TRIGGER versions_never_fall before update on instances
    when new.lease_version < old.lease_version or new.state_version < old.state_version
    begin select raise(abort, 'a version never falls'); end;
CREATE TRIGGER causes_for_unwinding_are_kept before update on instances
    when old.unwinding_cause is not null and new.unwinding_cause is not old.unwinding_cause
    begin select raise(abort, 'an instance that unwinds goes on unwinding'); end;
CREATE TRIGGER migrations_stay before update on migrations
    begin select raise(abort, 'a registered migration stays as it is'); end;
CREATE TRIGGER migrations_are_not_deleted before delete on migrations
    begin select raise(abort, 'a registered migration stays as it is'); end;
CREATE TRIGGER definitions_are_pinned before update on instances
    when (new.definition, new.definition_fingerprint) is not (old.definition, old.definition_fingerprint)
     and not exists (select 1 from migrations
                      where from_definition = old.definition and from_fingerprint = old.definition_fingerprint
                        and to_definition = new.definition and to_fingerprint = new.definition_fingerprint)
    begin select raise(abort, 'an instance is pinned to its definition'); end;
CREATE INDEX open_instances on instances (instance)
     where status not in ('succeeded', 'failed', 'cancelled')
    ;
CREATE INDEX instances_by_status on instances (status, instance);
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
    when old.status in ('failed', 'cancelled', 'compensated') or new.status = 'pending'
      or (old.status = 'succeeded' and new.status <> 'compensating')
    begin select raise(abort, 'no step leaves a terminal status or goes back to pending'); end;
CREATE TRIGGER steps_change_as_listed after update on steps
    when old.status not in ('succeeded', 'failed', 'cancelled', 'compensated')
     and new.status not in (old.status, 'pending') and (old.status, new.status) not in (values
        ('pending', 'running'), ('pending', 'waiting_approval'), ('pending', 'cancelled'),
        ('waiting_approval', 'running'), ('waiting_approval', 'cancelled'), ('waiting_approval', 'failed'),
        ('running', 'succeeded'), ('running', 'failed'), ('running', 'cancelled'),
        ('running', 'retry_scheduled'), ('running', 'manual_intervention'),
        ('retry_scheduled', 'running'), ('retry_scheduled', 'succeeded'), ('retry_scheduled', 'failed'),
        ('retry_scheduled', 'cancelled'), ('retry_scheduled', 'manual_intervention'),
        ('compensating', 'compensated'), ('compensating', 'manual_intervention'),
        ('manual_intervention', 'running'), ('manual_intervention', 'succeeded'),
        ('manual_intervention', 'failed'), ('manual_intervention', 'cancelled'),
        ('manual_intervention', 'compensated'))
    begin select raise(abort, 'a step changes its status only as listed'); end;
CREATE TRIGGER steps_start_in_order before update on steps
    when new.status = 'running'
     and old.status in ('pending', 'waiting_approval', 'retry_scheduled', 'manual_intervention')
     and (exists (select 1 from instances where instances.instance = new.instance
                     and coalesce(unwinding_cause, manual_cause) is not null)
       or exists (select 1 from dependencies
                     join steps as needed on needed.instance = dependencies.instance
                      and needed.step = dependencies.needs
                   where dependencies.instance = new.instance and dependencies.step = new.step
                     and needed.status <> 'succeeded')
       or exists (select 1 from inbox
                   where inbox.instance = new.instance and kind = 'cancel' and consumed_by is null))
    begin select raise(abort, 'no step starts before what it depends on, or in an instance that ends'); end;
CREATE TRIGGER people_decide before update on steps
    when old.status = 'manual_intervention' and new.status <> old.status
     and not exists (select 1 from inbox
                      where inbox.instance = new.instance and inbox.step = new.step
                        and kind = 'operator-decision' and decision = new.status
                        and consumed_by = new.state_version)
    begin select raise(abort, 'a person decides, and the decision is consumed'); end;
CREATE TRIGGER approvals_are_consumed before update on steps
    when new.approved_by is not old.approved_by
     and not exists (select 1 from inbox
                      where inbox.instance = new.instance and inbox.step = new.step
                        and number = new.approved_by and kind = 'approval-decision' and decision = 'approved'
                        and consumed_by = new.state_version)
    begin select raise(abort, 'an approval is consumed by the commit that uses it'); end;
CREATE TRIGGER compensations_go_backwards before update on steps
    when old.status = 'succeeded' and new.status = 'compensating'
     and (not exists (select 1 from instances where instances.instance = new.instance
                         and unwinding_cause is not null and manual_cause is null)
       or exists (select 1 from steps as later where later.instance = new.instance
                     and later.succeeded_at_version > old.succeeded_at_version
                     and later.compensation is not null and later.status <> 'compensated'))
    begin select raise(abort, 'what succeeded last is compensated first, while the instance unwinds'); end;
CREATE TRIGGER compensations_are_kept before update on steps
    when old.undo_version is not null and (
        new.undo_version is not old.undo_version or new.undo_key is not old.undo_key
        or new.undo_fingerprint is not old.undo_fingerprint or new.undo_resource is not old.undo_resource
        or new.undo_operation is not old.undo_operation or new.undo_parameters is not old.undo_parameters
        or new.undo_expected_revision is not old.undo_expected_revision
        or new.undo_lease_version is not old.undo_lease_version
        or (old.undo_receipt is not null and new.undo_receipt is not old.undo_receipt))
    begin select raise(abort, 'a stored compensation is not overwritten'); end;
CREATE TRIGGER steps_stay before delete on steps
    begin select raise(abort, 'no step is deleted'); end;
CREATE INDEX timers on steps (timer_at_ms, instance, step) where timer_at_ms is not null;
CREATE TRIGGER dependencies_stay before update on dependencies
    begin select raise(abort, 'what a step depends on stays'); end;
CREATE TRIGGER dependencies_are_not_deleted before delete on dependencies
    begin select raise(abort, 'what a step depends on stays'); end;
CREATE TRIGGER step_log_is_not_rewritten before update on step_log
    begin select raise(abort, 'the step log is append-only'); end;
CREATE TRIGGER step_log_is_not_shortened before delete on step_log
    begin select raise(abort, 'the step log is append-only'); end;
CREATE TRIGGER requests_are_numbered before insert on inbox
    when new.consumed_by is not null or new.number <> 1 + ifnull(
        (select max(number) from inbox where inbox.instance = new.instance), 0)
    begin select raise(abort, 'requests are numbered one after the other, and begin unconsumed'); end;
CREATE TRIGGER requests_are_consumed_once before update on inbox
    when old.consumed_by is not null or new.instance <> old.instance or new.number <> old.number
      or new.request_id <> old.request_id or new.kind <> old.kind or new.requester <> old.requester
      or new.step is not old.step or new.decision is not old.decision
      or new.intent_version is not old.intent_version or new.idempotency_key is not old.idempotency_key
      or new.fingerprint is not old.fingerprint or new.receipt is not old.receipt
      or new.reason is not old.reason or new.recorded_at_ms <> old.recorded_at_ms
      or new.consumed_by is not (select state_version from instances
                                  where instances.instance = old.instance)
    begin select raise(abort, 'a request is consumed once, by the commit being made, and never changed'); end;
CREATE TRIGGER requests_stay before delete on inbox
    begin select raise(abort, 'no request is deleted'); end;
CREATE INDEX unconsumed_requests on inbox (instance, number) where consumed_by is null;
CREATE TRIGGER triggers_stay before update on triggers
    begin select raise(abort, 'what an instance began with stays'); end;
CREATE TRIGGER triggers_are_not_deleted before delete on triggers
    begin select raise(abort, 'what an instance began with stays'); end;
CREATE TRIGGER notifications_are_kept before update on notifications
    when (old.receipt is not null and new.receipt is not old.receipt)
      or new.instance <> old.instance or new.kind <> old.kind
      or new.recipient <> old.recipient or new.target_version <> old.target_version
      or new.idempotency_key <> old.idempotency_key or new.fingerprint <> old.fingerprint
      or new.parameters <> old.parameters or new.state_version <> old.state_version
    begin select raise(abort, 'of a notification only the receipt is added, once'); end;
CREATE TRIGGER notifications_stay before delete on notifications
    begin select raise(abort, 'no notification is deleted'); end;
CREATE INDEX undelivered on notifications (instance, kind, recipient, target_version)
     where receipt is null
    ;
COMMIT;
