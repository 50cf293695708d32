"""The audit (§17): what two databases and a journal hold, and each thing in them that would be wrong.

The databases are real ones, left by a run with every kind of trouble, and tampered with as a store that is
wrong could have left them: what their triggers and checks would repel is switched off before.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference.audit import (
    CHECKS,
    OK,
    UNKNOWN,
    Acquired,
    Asked,
    Check,
    Committed,
    Journal,
    Records,
    Sent,
    Triggered,
    Verdict,
    audit,
)

from .audited import BY_HAND, CANCELLED, FAILS, WELL, Troubled
from .support import BOB
from .tamperings import TAMPERINGS, another, tampered


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Troubled:
    made = Troubled(tmp_path_factory.mktemp("troubled"))
    made.run()
    return made


@pytest.fixture
def records(troubled: Troubled) -> Records:
    return troubled.records()


def found(records: Records, *, ended: bool = True) -> dict[str, Check]:
    return {check.name: check for check in audit(records, ended=ended)}


def refuted(records: Records) -> dict[str, tuple[str, ...]]:
    return {name: each.wrongs for name, each in found(records).items() if each.verdict is Verdict.REFUTED}


def test_all_claims_hold_of_what_the_reference_leaves(records: Records) -> None:
    checks = audit(records, ended=True)
    assert {check.name: (check.evidence, check.wrongs) for check in checks if check.wrongs} == {}
    assert {check.verdict for check in checks} == {Verdict.HELD}
    assert found(records)["every_instance_settles"].evidence == (
        "of 4 instances 1 cancelled, 2 failed, 1 succeeded"
    )


@pytest.mark.parametrize("what", TAMPERINGS)
def test_a_database_that_was_tampered_with_refutes_exactly_the_claim_that_speaks_of_it(
    what: str, troubled: Troubled, tmp_path: Path
) -> None:
    each = TAMPERINGS[what]
    wrongs = refuted(tampered(troubled, tmp_path, store=each.store, ledger=each.ledger))
    assert set(wrongs) == {each.claim}, wrongs
    assert any(each.says in wrong for wrong in wrongs[each.claim]), wrongs


def test_for_each_claim_there_is_a_database_that_refutes_nothing_else() -> None:
    assert {each.claim for each in TAMPERINGS.values()} == {check.__name__ for _, check in CHECKS}


def test_what_happens_twice_refutes_each_claim_that_speaks_of_it(troubled: Troubled, tmp_path: Path) -> None:
    refunded = tampered(troubled, tmp_path, ledger=another(FAILS, "refund"))
    assert refuted(refunded).keys() == {"one_effect_per_intent", "compensation_once_in_order"}
    told = tampered(troubled, tmp_path, ledger=another(WELL, "shipped"))
    (wrong,) = refuted(told)["one_notification_per_target"]
    assert wrong.startswith(
        "the notification shipped to zoe, version 1, of order-1, was told 2 times: effect"
    )


def test_a_compensation_that_happened_before_its_effect_is_wrong(troubled: Troubled, tmp_path: Path) -> None:
    key = "compensation/order-3:reserve-v1"
    early = tampered(
        troubled,
        tmp_path,
        ledger=f"update effects set number = 0, token = 0 where key = '{key}'",
        store=f"update steps set undo_receipt = 'receipt-0' where undo_key = '{key}'",
    )
    assert refuted(early)["compensation_once_in_order"] == (
        "reserve of order-3 was compensated by effect 0, and had not happened before",
    )


def test_a_start_in_the_millisecond_of_a_cancel_is_late_if_the_requester_saw_an_earlier_row(
    troubled: Troubled, tmp_path: Path
) -> None:
    """The times alone leave open which came first; a row that was read after the answer does not."""
    script = "update inbox set recorded_at_ms = (select max(committed_at_ms) from event_log)"
    same = tampered(troubled, tmp_path, store=f"{script} where kind = 'cancel'")
    assert "cancel_is_honoured" not in refuted(same)
    asked = [replace(each, seen_version=2) if each.kind == "cancel" else each for each in same.journal.asked]
    late = replace(same, journal=replace(same.journal, asked=asked))
    assert (
        "charge began at entry 3, after the cancel of order-3 by zoe" in (refuted(late)["cancel_is_honoured"])
    )


# The journal.


def with_journal(records: Records, **more: list[Any]) -> Records:
    journal = {name: [*getattr(records.journal, name), *items] for name, items in more.items()}
    return replace(records, journal=replace(records.journal, **journal))


ANSWERED: dict[str, tuple[Callable[[Records], dict[str, list[Any]]], str, str]] = {
    "a commit that was answered ok is lost": (
        lambda _: {"committed": [Committed(WELL, "0-9-9", OK)]},
        "no_lost_update",
        "commit 0-9-9 of order-1 was answered ok and is not logged",
    ),
    "a commit that was refused is there": (
        lambda r: {"committed": [Committed(WELL, r.store.log(WELL)[0].commit_id, "finished")]},
        "no_lost_update",
        "commit 0-1-1 of order-1 was refused (finished) and is logged",
    ),
    "a lease version twice": (
        lambda _: {"acquired": [Acquired(WELL, BOB, 1, 0)]},
        "lease_version_only_grows",
        "lease version 1 of order-1 was given 2 times: to ada/0, bob/0",
    ),
    "a commit under a lost lease": (
        lambda _: {"acquired": [Acquired(WELL, BOB, 99, 0)]},
        "stale_worker_never_overrides",
        "by ada/0 has lease version 1, and bob/0 had taken over with 99 at state version 0",
    ),
    "an answer that was forgotten": (
        lambda _: {"sent": [Sent(WELL, "key", OK, "receipt-77")]},
        "no_effect_is_lost",
        "receipt-77 was answered ok and is not in the ledger",
    ),
    "a request that was refused is there": (
        lambda _: {"asked": [Asked(CANCELLED, "c2", "cancel", OK, 2)]},
        "request_consumed_once",
        "the request 'c2' to order-3 was answered ok as number 2, and is not there as that",
    ),
    "one event for two instances": (
        lambda _: {"triggered": [Triggered("shop", WELL, OK, "order-1-again")]},
        "one_instance_per_trigger",
        "event order-1 of shop was answered with order-1-again, and began order-1",
    ),
}


@pytest.mark.parametrize("what", ANSWERED)
def test_an_answer_that_is_not_what_the_databases_hold_refutes_a_claim(what: str, records: Records) -> None:
    more, claim, says = ANSWERED[what]
    wrongs = refuted(with_journal(records, **more(records)))
    assert claim in wrongs
    assert any(says in wrong for wrong in wrongs[claim]), wrongs


def test_a_request_that_was_refused_and_is_there_refutes_a_claim(records: Records) -> None:
    asked = [replace(each, answer="finished", number=None) for each in records.journal.asked]
    wrongs = refuted(replace(records, journal=replace(records.journal, asked=asked)))
    assert set(wrongs) == {"request_consumed_once"}
    assert (
        "the request 'c' to order-3 was refused (finished), and is there as number 1"
        in (wrongs["request_consumed_once"])
    )


def test_a_commit_under_a_lease_that_nobody_was_given_refutes_a_claim(records: Records) -> None:
    journal = replace(records.journal, acquired=records.journal.acquired[1:])
    wrongs = refuted(replace(records, journal=journal))["stale_worker_never_overrides"]
    assert "entry 1 of order-1 by ada/0 has lease version 1, which was given to nobody" in wrongs


def test_an_instance_that_is_not_there_is_lost(records: Records) -> None:
    lost = replace(records, instances=(*records.instances, "order-9"))
    assert refuted(lost) == {"every_instance_settles": ("order-9 is not in the store",)}


def test_a_call_without_an_answer_may_or_may_not_have_been_accepted(records: Records) -> None:
    unknown = [
        Committed(WELL, "0-9-9", UNKNOWN),
        Committed(WELL, records.store.log(WELL)[0].commit_id, UNKNOWN),
    ]
    asked = [Asked(WELL, "lost", "cancel", UNKNOWN), Asked(CANCELLED, "c", "cancel", UNKNOWN)]
    assert refuted(with_journal(records, committed=unknown, asked=asked)) == {}


# What is not settled.

WAITING: dict[str, tuple[str, str]] = {
    "for an approval": (
        f"""
        update instances set status = 'running' where instance = '{WELL}';
        update steps set status = 'waiting_approval' where instance = '{WELL}' and step = 'ship';
        update steps set status = 'pending' where instance = '{WELL}' and step = 'close';
        delete from inbox where instance = '{WELL}'""",
        "1 waiting for a person (order-1 for the approval of ship)",
    ),
    "for a decision on a step": (
        f"""
        update instances set status = 'unwinding' where instance = '{BY_HAND}';
        update steps set status = 'manual_intervention', reason = 'nobody knows'
         where instance = '{BY_HAND}' and step = 'charge'""",
        "1 waiting for a person (order-4 for a decision on charge: nobody knows)",
    ),
    "for a decision on the instance": (
        f"""
        update instances set status = 'manual_intervention', manual_cause = 'other code'
         where instance = '{WELL}'""",
        "1 waiting for a person (order-1 for a decision: other code)",
    ),
}


@pytest.mark.parametrize("what", WAITING)
def test_who_waits_for_a_person_is_settled_and_it_is_said_for_what(
    what: str, troubled: Troubled, tmp_path: Path
) -> None:
    script, says = WAITING[what]
    settles = found(tampered(troubled, tmp_path, store=script))["every_instance_settles"]
    assert settles.verdict is Verdict.HELD
    assert says in settles.evidence


@pytest.mark.parametrize(
    "more",
    [
        f"update steps set status = 'retry_scheduled' where instance = '{WELL}' and step = 'weigh'",
        f"update steps set approval_deadline_at_ms = 1 where instance = '{WELL}' and step = 'ship'",
        f"update steps set status = 'pending' where instance = '{WELL}' and step = 'weigh'",
        f"update instances set deadline_at_ms = 1 where instance = '{WELL}'",
        f"update instances set unwinding_cause = 'why' where instance = '{WELL}'",
        (
            "insert into inbox (instance, number, request_id, kind, requester, recorded_at_ms)"
            f" values ('{WELL}', 1, 'cancel', 'cancel', 'zoe', 9000)"
        ),
    ],
    ids=["a retry", "its deadline", "a step to start", "the end of its time", "unwinding", "a cancel"],
)
def test_who_waits_for_a_person_and_could_go_on_is_not_settled(
    more: str, troubled: Troubled, tmp_path: Path
) -> None:
    waiting = WAITING["for an approval"][0]
    records = tampered(troubled, tmp_path, store=f"{waiting}; {more}")
    assert (
        "order-1 is still running, and no person is asked for anything"
        in (refuted(records)["every_instance_settles"])
    )


def test_what_did_not_settle_in_time_is_not_known(troubled: Troubled, tmp_path: Path) -> None:
    late = tampered(
        troubled,
        tmp_path,
        store=f"update instances set status = 'running' where instance = '{WELL}'",
        ledger=another(WELL, "charge"),
    )
    checks = found(late, ended=False)
    assert checks["every_instance_settles"].verdict is Verdict.UNDETERMINED
    assert checks["one_effect_per_intent"].verdict is Verdict.REFUTED


def test_an_instance_that_is_not_finished_may_not_know_its_effect_yet(
    troubled: Troubled, tmp_path: Path
) -> None:
    early = tampered(
        troubled,
        tmp_path,
        store=f"update instances set status = 'running' where instance = '{WELL}'",
        ledger=another(WELL, "charge", key="'new'", fingerprint="'new'"),
    )
    assert found(early)["no_effect_is_lost"].verdict is Verdict.HELD


# What did not happen.


@pytest.mark.parametrize(
    ("without", "claims"),
    [
        (lambda j: replace(j, sent=[]), {"one_effect_per_intent", "fence_only_rises"}),
        (lambda j: replace(j, committed=[]), {"no_lost_update", "stale_worker_never_overrides"}),
        (lambda j: replace(j, triggered=[]), {"one_instance_per_trigger"}),
    ],
    ids=["nothing was sent again", "no commit told of", "no event was delivered again"],
)
def test_a_claim_whose_premise_never_happened_is_not_exercised(
    without: Callable[[Journal], Journal], claims: set[str], records: Records
) -> None:
    checks = found(replace(records, journal=without(records.journal)))
    assert {name for name, check in checks.items() if check.verdict is Verdict.NOT_EXERCISED} == claims


def test_what_no_instance_did_is_not_exercised(records: Records) -> None:
    """Of an order that goes well nothing is learnt about the ways back, nor about cancels."""
    store = replace(
        records.store,
        **{
            name: tuple(each for each in getattr(records.store, name) if each.instance == WELL)
            for name in ("rows", "entries", "step_entries", "requests", "origins", "notifications")
        },
    )
    effects = tuple(each for each in records.downstream.effects if each.instance == WELL)
    journal = Journal(
        **{
            name: [each for each in getattr(records.journal, name) if getattr(each, "instance", WELL) == WELL]
            for name in Journal.__slots__
        }
    )
    checks = found(Records((WELL,), store, replace(records.downstream, effects=effects), journal))
    assert {name for name, check in checks.items() if check.verdict is Verdict.NOT_EXERCISED} >= {
        "unknown_is_never_guessed",
        "cancel_is_honoured",
        "compensation_once_in_order",
    }
    assert {check.name: check.wrongs for check in checks.values() if check.wrongs} == {}
