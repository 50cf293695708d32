"""The audit (§17): what two databases and a journal hold, and each thing in them that would be wrong."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fencepost.reference import StepStatus, observe, observe_downstream
from fencepost.reference.audit import (
    CHECKS,
    OK,
    UNKNOWN,
    Acquired,
    Check,
    Committed,
    Journal,
    Records,
    Sent,
    Verdict,
    audit,
)

from .support import ADA, BOB
from .worlds import STEPS, DeathError, Make, die_at

BETWEEN = 1
"""The state version at which one worker died and the other took over: the intent had been committed."""


@pytest.fixture
def records(make: Make) -> Records:
    """What is left after one worker has died before it knew the answer, and another has finished."""
    world = make()
    with pytest.raises(DeathError):
        world.run(ADA, at=die_at("answered"))
    world.expire()
    world.run(BOB)
    store, downstream = observe(world.path), observe_downstream(world.ledger)
    effects = downstream.effects
    return Records(
        instances=("order-1",),
        steps=tuple(step.name for step in STEPS),
        store=store,
        downstream=downstream,
        journal=Journal(
            acquired=[Acquired("order-1", ADA, 1, 0), Acquired("order-1", BOB, 2, BETWEEN)],
            committed=[
                *(Committed("order-1", entry.commit_id, OK) for entry in store.entries),
                Committed("order-1", "0-1-2", "stale-lease-version"),
            ],
            sent=[
                Sent("order-1", effect.key, OK, f"receipt-{effect.number}")
                for effect in (effects[0], *effects)
            ],
        ),
    )


def found(records: Records, *, ended: bool = True) -> dict[str, Check]:
    return {check.name: check for check in audit(records, ended=ended)}


def refuted(records: Records) -> dict[str, tuple[str, ...]]:
    return {name: each.wrongs for name, each in found(records).items() if each.verdict is Verdict.REFUTED}


def test_all_claims_hold_of_what_the_reference_leaves(records: Records) -> None:
    assert {check.verdict for check in audit(records, ended=True)} == {Verdict.HELD}
    assert found(records)["one_effect_per_intent"].evidence.startswith("2 effects of 2 intents; 1 sent again")


def with_row(records: Records, **changes: Any) -> Records:
    (row,) = records.store.rows
    return replace(records, store=replace(records.store, rows=(replace(row, **changes),)))


def with_step(records: Records, name: str, **changes: Any) -> Records:
    (row,) = records.store.rows
    steps = tuple(replace(step, **changes) if step.step == name else step for step in row.steps)
    return with_row(records, steps=steps)


def with_entry(records: Records, number: int, **changes: Any) -> Records:
    entries = tuple(
        replace(entry, **changes) if entry.state_version == number else entry
        for entry in records.store.entries
    )
    return replace(records, store=replace(records.store, entries=entries))


def with_effect(records: Records, number: int, **changes: Any) -> Records:
    """One more effect: the first one with something else."""
    effects = records.downstream.effects
    more = replace(effects[0], number=number, **changes)
    return replace(records, downstream=replace(records.downstream, effects=(*effects, more)))


def without_effect(records: Records) -> Records:
    return replace(records, downstream=replace(records.downstream, effects=records.downstream.effects[1:]))


def with_journal(records: Records, **more: list[Any]) -> Records:
    journal = {name: [*getattr(records.journal, name), *items] for name, items in more.items()}
    return replace(records, journal=replace(records.journal, **journal))


def stepped_back(records: Records) -> Records:
    """A step that runs again after its success."""
    last = records.store.step_entries[-1]
    again = replace(last, step="charge", status=StepStatus.RUNNING)
    entries = (*records.store.step_entries, again)
    return replace(records, store=replace(records.store, step_entries=entries))


def skipped(records: Records) -> Records:
    """The log of an instance whose first step never ran."""
    entries = tuple(entry for entry in records.store.step_entries if entry.step != "charge")
    return replace(records, store=replace(records.store, step_entries=entries))


WRONG: dict[str, tuple[Callable[[Records], Records], str, str]] = {
    "an instance is lost": (
        lambda r: replace(r, instances=("order-1", "order-2")),
        "every_instance_settles",
        "order-2 is not in the store",
    ),
    "an instance goes on": (
        lambda r: with_row(r, status="running"),
        "every_instance_settles",
        "order-1 is still running",
    ),
    "an effect twice": (
        lambda r: with_effect(r, 3),
        "one_effect_per_intent",
        "charge on payment of order-1 took effect 2 times: effect 1, effect 3",
    ),
    "an effect twice under two keys": (
        lambda r: with_effect(r, 3, key="another"),
        "one_effect_per_intent",
        "charge on payment of order-1 took effect 2 times",
    ),
    "one key for two effects": (
        lambda r: with_effect(r, 3, instance="order-9"),
        "one_effect_per_intent",
        "the key order-1:charge:payment-v1 stands for several effects",
    ),
    "a receipt of nothing": (
        without_effect,
        "receipt_is_true",
        "charge of order-1 has receipt-1, which is not",
    ),
    "a receipt of another effect": (
        lambda r: with_step(r, "charge", receipt="receipt-2"),
        "receipt_is_true",
        "charge of order-1 has receipt-2, which was given for the key order-1:ship:parcel-v1",
    ),
    "a receipt for other parameters": (
        lambda r: with_step(r, "charge", intent=replace(_intent(r), fingerprint="f" * 64)),
        "receipt_is_true",
        "charge of order-1 has receipt-1, which was given for other parameters",
    ),
    "a success without a receipt": (
        lambda r: with_step(r, "charge", receipt=None),
        "receipt_is_true",
        "charge of order-1 succeeded without a receipt",
    ),
    "an effect that nobody knows of": (
        lambda r: with_effect(r, 3, resource="stock"),
        "no_effect_is_lost",
        "effect 3, charge for order-1, is the receipt of no step",
    ),
    "an answer that was forgotten": (
        lambda r: with_journal(r, sent=[Sent("order-1", "key", OK, "receipt-7")]),
        "no_effect_is_lost",
        "receipt-7 was answered ok and is not in the ledger",
    ),
    "a step runs again": (stepped_back, "recovery_repeats_nothing", "charge of order-1 had succeeded before"),
    "a step is left out": (skipped, "order_is_kept", "ship of order-1 ran when none had succeeded"),
    "a gap": (
        lambda r: with_row(r, state_version=r.store.rows[0].state_version + 1),
        "state_version_counts_commits",
        "order-1 has state version 8 and 7 entries, without 8",
    ),
    "a commit id twice": (
        lambda r: with_entry(r, 3, commit_id=r.store.entries[3].commit_id),
        "state_version_counts_commits",
        "order-1 has commit 0-2-3 2 times",
    ),
    "a commit that was answered ok is lost": (
        lambda r: with_journal(r, committed=[Committed("order-1", "0-9-9", OK)]),
        "no_lost_update",
        "commit 0-9-9 of order-1 was answered ok and is not logged",
    ),
    "a commit that was refused is there": (
        lambda r: with_journal(r, committed=[Committed("order-1", r.store.entries[0].commit_id, "finished")]),
        "no_lost_update",
        "commit 0-1-1 of order-1 was refused (finished) and is logged",
    ),
    "a lease version twice": (
        lambda r: with_journal(r, acquired=[Acquired("order-1", BOB, 1, 0)]),
        "lease_version_only_grows",
        "lease version 1 of order-1 was given 2 times: to ada/0, bob/0",
    ),
    "a lease version that the row forgot": (
        lambda r: with_row(r, lease_version=1),
        "lease_version_only_grows",
        "lease version 2 of order-1 was given, and the row is below it",
    ),
    "a lease version that falls": (
        lambda r: with_entry(r, 3, lease_version=1, owner=ADA),
        "lease_version_only_grows",
        "entry 3 of order-1 has lease version 1, after 2",
    ),
    "a commit under a lost lease": (
        lambda r: with_entry(r, 2, lease_version=1, owner=ADA),
        "stale_worker_never_overrides",
        "entry 2 of order-1 by ada/0 has lease version 1, and bob/0 had taken over with 2 at state version 1",
    ),
    "a commit of somebody else": (
        lambda r: with_entry(r, 3, owner=ADA),
        "stale_worker_never_overrides",
        "entry 3 of order-1 by ada/0 has lease version 2, which was given to bob/0",
    ),
    "a commit under a lease that nobody was given": (
        lambda r: replace(r, journal=replace(r.journal, acquired=r.journal.acquired[1:])),
        "stale_worker_never_overrides",
        "entry 1 of order-1 by ada/0 has lease version 1, which was given to nobody",
    ),
}


def _intent(records: Records) -> Any:
    step = records.store.step("order-1", "charge")
    assert step is not None
    return step.intent


@pytest.mark.parametrize("what", WRONG)
def test_one_thing_that_is_wrong_refutes_the_claim_that_speaks_of_it(what: str, records: Records) -> None:
    change, claim, says = WRONG[what]
    assert any(wrong.startswith(says) for wrong in refuted(change(records))[claim]), refuted(change(records))


def test_each_claim_can_be_refuted() -> None:
    assert {claim for _, claim, _ in WRONG.values()} == {check.__name__.strip("_") for _, check in CHECKS}


def test_what_did_not_settle_in_time_is_not_known(records: Records) -> None:
    late = with_row(records, status="running")
    assert found(late, ended=False)["every_instance_settles"].verdict is Verdict.UNDETERMINED
    assert found(with_effect(late, 3), ended=False)["one_effect_per_intent"].verdict is Verdict.REFUTED


def test_an_instance_that_is_not_finished_may_not_know_its_effect_yet(records: Records) -> None:
    early = with_effect(with_row(records, status="running"), 3, resource="stock")
    assert found(early)["no_effect_is_lost"].verdict is Verdict.HELD


def test_a_call_without_an_answer_may_or_may_not_have_been_accepted(records: Records) -> None:
    unknown = [
        Committed("order-1", "0-9-9", UNKNOWN),
        Committed("order-1", records.store.entries[0].commit_id, UNKNOWN),
    ]
    assert refuted(with_journal(records, committed=unknown)) == {}


@pytest.mark.parametrize(
    ("without", "claims"),
    [
        (lambda j: replace(j, sent=j.sent[1:]), {"one_effect_per_intent"}),
        (lambda j: replace(j, committed=j.committed[:-1]), {"stale_worker_never_overrides"}),
        (lambda j: replace(j, committed=[]), {"no_lost_update", "stale_worker_never_overrides"}),
    ],
    ids=["nothing was sent again", "no stale commit", "no commit told of"],
)
def test_a_claim_whose_premise_never_happened_is_not_exercised(
    without: Callable[[Journal], Journal], claims: set[str], records: Records
) -> None:
    checks = found(replace(records, journal=without(records.journal)))
    assert {name for name, check in checks.items() if check.verdict is Verdict.NOT_EXERCISED} == claims
