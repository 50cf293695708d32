"""Databases that somebody has tampered with, each as a store or a downstream that is wrong could leave it.

`tampered` copies the databases of a run, and writes past the triggers and checks that would repel it.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from fencepost.reference.audit import Records

from .audited import Troubled


@dataclass(frozen=True, slots=True)
class Tampering:
    """What is written where; the claim that this breaks, and no other; and what the audit says of it."""

    claim: str
    says: str
    store: str = ""
    ledger: str = ""


def tampered(troubled: Troubled, directory: Path, *, store: str = "", ledger: str = "") -> Records:
    """The records of a copy in which these scripts have run."""
    for source, script in ((troubled.store, store), (troubled.ledger, ledger)):
        with (
            closing(sqlite3.connect(source)) as original,
            closing(sqlite3.connect(directory / source.name, isolation_level=None)) as copy,
        ):
            original.backup(copy)
            for (trigger,) in copy.execute(
                "select name from sqlite_schema where type = 'trigger'"
            ).fetchall():
                copy.execute(f"drop trigger {trigger}")
            copy.execute("pragma ignore_check_constraints = on")
            before = copy.total_changes
            copy.executescript(script)
            assert not script or copy.total_changes > before, "the script changed nothing"
    return troubled.records(directory)


def another(instance: str, operation: str, *, key: str = "key", fingerprint: str = "fingerprint") -> str:
    """One more effect like one that happened, under the same key and fingerprint unless they are given.

    The fences rise with it, so that this is not found to be wrong as well.
    """
    return f"""
        insert into effects (instance, resource, operation, parameters, token, applied_at_ms,
                             fingerprint, key)
        select instance, resource, operation, parameters, 9, applied_at_ms, {fingerprint}, {key}
          from effects where instance = '{instance}' and operation = '{operation}';
        update fences set token = 9;
    """


TAMPERINGS = {
    "an instance goes on": Tampering(
        "every_instance_settles",
        "order-1 is still running, and no person is asked for anything",
        store="update instances set status = 'running' where instance = 'order-1'",
    ),
    # Effects.
    "an effect twice": Tampering(
        "one_effect_per_intent",
        "charge on payment of order-1 took effect 2 times: effect",
        ledger=another("order-1", "charge"),
    ),
    "an effect twice, under two keys": Tampering(
        "one_effect_per_intent",
        "charge on payment of order-1 took effect 2 times: effect",
        ledger=another("order-1", "charge", key="'another'"),
    ),
    "a receipt of nothing": Tampering(
        "receipt_is_true",
        "charge of order-1 has receipt-99, which is not in the ledger",
        store="update steps set receipt = 'receipt-99' where instance = 'order-1' and step = 'charge'",
    ),
    "a receipt of another effect": Tampering(
        "receipt_is_true",
        "charge of order-1 has receipt-1, which was given for the key order-1:reserve:stock-v1",
        store="update steps set receipt = 'receipt-1' where instance = 'order-1' and step = 'charge'",
    ),
    "a receipt for other parameters": Tampering(
        "receipt_is_true",
        "which was given for other parameters",
        ledger="update effects set fingerprint = 'other' where key = 'order-1:charge:payment-v1'",
    ),
    "the receipt of a compensation is of nothing": Tampering(
        "receipt_is_true",
        "the compensation of charge of order-2 has receipt-99, which is not in the ledger",
        store="update steps set undo_receipt = 'receipt-99' where instance = 'order-2' and undo_key > ''",
    ),
    "an effect that nobody knows of": Tampering(
        "no_effect_is_lost",
        "charge for order-1, is of no step, compensation or notification that the store knows",
        ledger=another("order-1", "charge", key="'another'", fingerprint="'another'"),
    ),
    "a stale effect": Tampering(
        "fence_only_rises",
        "refund on payment of order-2, came with lease version 0, after effect",
        ledger="update effects set token = 0 where key = 'compensation/order-2:charge-v1'",
    ),
    "a fence that fell": Tampering(
        "fence_only_rises",
        "the fence of parcel for order-1 is below",
        ledger="update fences set token = 0 where instance = 'order-1' and resource = 'parcel'",
    ),
    "a step that was given up has happened": Tampering(
        "unknown_is_never_guessed",
        "ship of order-2 was given up, and took effect all the same: effect",
        ledger="""
            insert into effects (instance, resource, operation, parameters, fingerprint, key, token,
                                 applied_at_ms)
            select 'order-2', resource, operation, parameters, fingerprint, 'order-2:ship:parcel-v1', token,
                   applied_at_ms
              from effects where key = 'order-1:ship:parcel-v1';
            insert into fences values ('order-2', 'parcel', 9);
        """,
    ),
    # Steps.
    "a step runs again": Tampering(
        "recovery_repeats_nothing",
        "reserve of order-1 had succeeded at entry",
        store="""
            insert into step_log
            select instance, 17, step, 'running', attempt + 1, intent_version, idempotency_key, unwinding,
                   receipt, evidence
              from step_log where instance = 'order-1' and step = 'reserve' and status = 'succeeded';
            update steps set attempt = attempt + 1 where instance = 'order-1' and step = 'reserve';
        """,
    ),
    "a step that was undone runs again": Tampering(
        "recovery_repeats_nothing",
        "reserve of order-2 was being compensated and became running at entry",
        store="""
            insert into step_log
            select instance, (select state_version from instances where instance = 'order-2'), step,
                   'running', attempt, intent_version, idempotency_key, unwinding, receipt, evidence
              from step_log where instance = 'order-2' and step = 'reserve' and status = 'compensated';
        """,
    ),
    "a step that began too early": Tampering(
        "order_is_kept",
        "reserve of order-1 began at entry 1, before ship, which it depends on, had succeeded",
        store="insert into dependencies values ('order-1', 'reserve', 'ship')",
    ),
    "a success without one of the steps": Tampering(
        "order_is_kept",
        "order-1 succeeded without wrap",
        store="""
            insert into steps (instance, step, status, attempt, state_version, planned)
            values ('order-1', 'wrap', 'pending', 0, 0, 1)
        """,
    ),
    "an attempt that nobody counted": Tampering(
        "timer_fires_once",
        "charge of order-1 went from attempt 1 to 1 at entry",
        store="""
            update step_log set attempt = 1 where instance = 'order-1' and step = 'charge';
            update steps set attempt = 1 where instance = 'order-1' and step = 'charge';
        """,
    ),
    "an attempt that is in no log": Tampering(
        "timer_fires_once",
        "weigh of order-1 has attempt 3, and its log ends with 1",
        store="update steps set attempt = 3 where instance = 'order-1' and step = 'weigh'",
    ),
    "a step that does not begin with its first attempt": Tampering(
        "timer_fires_once",
        "weigh of order-1 began with attempt 3",
        store="""
            update step_log set attempt = 3 where instance = 'order-1' and step = 'weigh';
            update steps set attempt = 3 where instance = 'order-1' and step = 'weigh';
        """,
    ),
    "more attempts than the budget has": Tampering(
        "timer_fires_once",
        "charge of order-1 was attempted",
        store="update steps set most_attempts = 1 where instance = 'order-1' and step = 'charge'",
    ),
    # Cancels and compensations.
    "a start after a cancel": Tampering(
        "cancel_is_honoured",
        "after the cancel of order-3 by zoe",
        store="update inbox set recorded_at_ms = 1001 where kind = 'cancel'",
    ),
    "a success after a cancel": Tampering(
        "cancel_is_honoured",
        "order-1 succeeded, after the cancel of order-1 by zoe",
        store="""
            insert into inbox (instance, number, request_id, kind, requester, recorded_at_ms)
            select 'order-1', max(number) + 1, 'cancel', 'cancel', 'zoe', 9000
              from inbox where instance = 'order-1'
        """,
    ),
    "a cancel that nobody took note of": Tampering(
        "cancel_is_honoured",
        "order-3 ended without the cancel of order-3 by zoe having been taken note of",
        store="update inbox set consumed_by = null where kind = 'cancel'",
    ),
    "compensations in the wrong order": Tampering(
        "compensation_once_in_order",
        "reserve of order-2 was compensated at entry",
        store="""
            update step_log
               set step = iif(step = 'charge', 'reserve', 'charge'), idempotency_key = null,
                   attempt = iif(step = 'charge', 1, 2)
             where instance = 'order-2' and status in ('compensating', 'compensated')
        """,
    ),
    "effects of compensations in the wrong order": Tampering(
        "compensation_once_in_order",
        "reserve of order-2 was undone by effect 9, before charge, which had succeeded later",
        ledger="""
            update effects set number = -number where instance = 'order-2' and number in (9, 10);
            update effects set number = 19 + number where number < 0;
        """,
        store="""
            update steps set undo_receipt = iif(undo_receipt = 'receipt-9', 'receipt-10', 'receipt-9')
             where instance = 'order-2' and undo_key is not null
        """,
    ),
    "what happened was never undone": Tampering(
        "compensation_once_in_order",
        "order-2 ended as failed, and ship was never undone",
        store="""
            update steps
               set compensation = 'call back', status = 'succeeded', succeeded_at_version = 2, attested = 1,
                   evidence = null
             where instance = 'order-2' and step = 'ship'
        """,
    ),
    "a compensation in an instance that goes well": Tampering(
        "compensation_once_in_order",
        "charge of order-2 was compensated though the instance does not unwind",
        store="update instances set unwinding_cause = null where instance = 'order-2'",
    ),
    # Approvals and decisions.
    "an approval after its deadline": Tampering(
        "approval_spent_once",
        "by eve, of ship of order-1 was given",
        store="update steps set approval_deadline_at_ms = 5 where instance = 'order-1' and step = 'ship'",
    ),
    "an approval of something else": Tampering(
        "approval_spent_once",
        "by eve, of ship of order-1 is for else",
        store="update inbox set fingerprint = 'else' where instance = 'order-1' and requester = 'eve'",
    ),
    "a start without an approval": Tampering(
        "approval_spent_once",
        "ship of order-1 began at entry",
        store="update inbox set consumed_by = null where instance = 'order-1' and requester = 'eve'",
    ),
    "two approvals for one intent": Tampering(
        "approval_spent_once",
        "ship of order-1 used 2 approvals for one intent, version 1",
        store="""
            update inbox
               set consumed_by = (select consumed_by from inbox as other
                                   where other.instance = 'order-1' and requester = 'eve')
             where instance = 'order-1' and requester = 'eli'
        """,
    ),
    "an approval of a step that needs none": Tampering(
        "approval_spent_once",
        "ship of order-1 used an approval, and needs none or never began",
        store="update steps set needs_approval = 0 where instance = 'order-1' and step = 'ship'",
    ),
    "a step goes on without a decision": Tampering(
        "request_consumed_once",
        "charge of order-4 waited for a person and became compensated at entry",
        store="update inbox set consumed_by = null where kind = 'operator-decision'",
    ),
    "a decision about what waits for none": Tampering(
        "request_consumed_once",
        "about charge of order-1 stands in the inbox, and the step waits for none",
        store="""
            insert into inbox (instance, number, request_id, kind, requester, recorded_at_ms, step, decision)
            select 'order-1', max(number) + 1, 'early', 'operator-decision', 'eve', 9000, 'charge', 'failed'
              from inbox where instance = 'order-1'
        """,
    ),
    "a request takes effect before it is made": Tampering(
        "request_consumed_once",
        "to order-1 took effect in entry",
        store="update inbox set recorded_at_ms = 9999 where instance = 'order-1' and requester = 'eve'",
    ),
    "a request takes effect in a commit that is not there": Tampering(
        "request_consumed_once",
        "request 1 to order-3 took effect in entry 99, which is not there",
        store="update inbox set consumed_by = 99 where kind = 'cancel'",
    ),
    "a request that was answered ok is lost": Tampering(
        "request_consumed_once",
        "the request 'c' to order-3 was answered ok as number 1, and is not there as that",
        store="update inbox set request_id = 'other' where kind = 'cancel'",
    ),
    "a request is missing among the others": Tampering(
        "request_consumed_once",
        "the requests to order-4 are numbered 1, 2, 4",
        store="update inbox set number = 4 where instance = 'order-4' and number = 3",
    ),
    # Events and notifications.
    "an event that began nothing": Tampering(
        "one_instance_per_trigger",
        "event order-1 of shop was answered with order-1, and began nothing",
        store="update triggers set event_id = 'other' where instance = 'order-1'",
    ),
    "an event that began what is not there": Tampering(
        "one_instance_per_trigger",
        "event more of shop began order-9, which is not in the store",
        store="""
            insert into triggers
            select source, 'more', fingerprint, 'order-9', input, implicit_inputs, triggered_at_ms
              from triggers where instance = 'order-1'
        """,
    ),
    "the receipt of a notification is of nothing": Tampering(
        "one_notification_per_target",
        "the notification shipped to zoe of order-1 has receipt-99, which is not in the ledger",
        store="update notifications set receipt = 'receipt-99'",
    ),
    "the receipt of a notification is of another": Tampering(
        "one_notification_per_target",
        "the notification shipped to zoe of order-1 has receipt-1, which was given for the key",
        store="update notifications set receipt = 'receipt-1'",
    ),
    # Commits and leases.
    "a gap": Tampering(
        "state_version_counts_commits",
        "order-1 has state version",
        store="update instances set state_version = state_version + 1 where instance = 'order-1'",
    ),
    "a commit that was answered ok is lost": Tampering(
        "no_lost_update",
        "of order-1 was answered ok and is not logged",
        store="update event_log set commit_id = 'x' where instance = 'order-1' and state_version = 3",
    ),
    "a lease version that the row forgot": Tampering(
        "lease_version_only_grows",
        "of order-1 was given, and the row is below it",
        store="update instances set lease_version = 1 where instance = 'order-1'",
    ),
    "a commit of somebody else": Tampering(
        "stale_worker_never_overrides",
        "entry 3 of order-1 by eve/0 has lease version 2, which was given to bob/0",
        store="update event_log set owner_worker = 'eve' where instance = 'order-1' and state_version = 3",
    ),
}
