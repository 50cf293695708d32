"""Two real processes race on one step (§6, §7, §8); afterwards the ledger says what happened.

A worker that holds its request back until another has settled the step is what a fence or a key is for. The
same race at a downstream without either shows that the comparison can fail.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import StepStatus, observe, observe_downstream, open_downstream, open_store

from .racing import raced

INSTANCES = 12


def race(path: Path, ledger: Path, **options: Any) -> list[dict[str, Any]]:
    """Run both processes to their end; what held-back requests were answered."""
    plain = {name: value for name, value in options.items() if name != "broken"}
    with (
        open_store(path, clock_ms=lambda: 0) as store,
        open_downstream(ledger, clock_ms=lambda: 0, **plain),
    ):
        for number in range(INSTANCES):
            store.create(f"order-{number}")
    journals = raced(
        [
            ["effect_racer.py", str(path), str(ledger), str(number), str(INSTANCES), json.dumps(options)]
            for number in (0, 1)
        ]
    )
    return [note for journal in journals for note in journal]


def effects(ledger: Path) -> dict[str, int]:
    """How many effects each instance had."""
    seen = observe_downstream(ledger).effects
    return {
        f"order-{number}": sum(effect.instance == f"order-{number}" for effect in seen)
        for number in range(INSTANCES)
    }


def receipts(path: Path) -> dict[str, str | None]:
    return {row.instance: row.steps[0].receipt for row in observe(path).rows}


@pytest.mark.parametrize(
    "options",
    [{}, {"fenced": False}, {"keyed": False}],
    ids=["keyed and fenced", "keyed", "fenced and queryable"],
)
def test_of_two_processes_that_race_on_a_step_one_has_the_effect(
    options: dict[str, Any], path: Path, ledger: Path
) -> None:
    late = race(path, ledger, **options)
    assert effects(ledger) == {f"order-{number}": 1 for number in range(INSTANCES)}
    assert {row.steps[0].status for row in observe(path).rows} == {StepStatus.SUCCEEDED}
    # Each held-back request really was sent, by an owner that had been overtaken.
    assert len(late) == INSTANCES
    if options == {"fenced": False}:
        assert {note["instance"]: note["answer"] for note in late} == receipts(path)
    else:
        assert {note["answer"] for note in late} == {"stale-token"}
    for row in observe(path).rows:
        assert row.lease_version > 1
        succeeded = [entry for entry in observe(path).step_log(row.instance) if entry.receipt]
        assert [entry.status for entry in succeeded] == [StepStatus.SUCCEEDED]


def test_the_same_race_where_records_are_in_memory_has_effects_twice(path: Path, ledger: Path) -> None:
    race(path, ledger, fenced=False, broken="record-in-memory")
    assert set(effects(ledger).values()) == {2}


def test_the_same_race_at_an_opaque_downstream_leaves_each_step_to_a_person(path: Path, ledger: Path) -> None:
    late = race(path, ledger, fenced=False, keyed=False, queryable=False)
    assert {row.steps[0].status for row in observe(path).rows} == {StepStatus.MANUAL_INTERVENTION}
    # The heir sent nothing, and the held-back request landed after all.
    assert len(late) == INSTANCES
    assert set(effects(ledger).values()) == {1}
