"""Arguments that no store could make right are errors, which say who, what and what to do."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from fencepost.reference import MAX_TIME_MS, MAX_VERSION, ArgumentError, Commit, Owner, Store, StoreError

from .support import ADA, LEASE_MS, Clock, dump, leased, ok


def commit(**changes: object) -> Commit:
    whole: dict[str, object] = {
        "instance": "order-1",
        "owner": ADA,
        "commit_id": "0-1",
        "expected_state_version": 0,
        "expected_lease_version": 1,
        "event": "charged",
    }
    return Commit(**(whole | changes))  # type: ignore[arg-type]


WRONG_CALLS: dict[str, Callable[[Store], object]] = {
    "create: instance is empty": lambda store: store.create(""),
    "create: instance must be a str, not 7": lambda store: store.create(7),  # type: ignore[arg-type]
    "acquire: owner must be an Owner, not 'ada'": lambda store: store.acquire(
        "order-1",
        "ada",  # type: ignore[arg-type]
        lease_ms=LEASE_MS,
    ),
    "acquire: lease_ms is 0; pass a whole number from 1": lambda store: store.acquire(
        "order-1", ADA, lease_ms=0
    ),
    "acquire: lease_ms is -1": lambda store: store.acquire("order-1", ADA, lease_ms=-1),
    "acquire: lease_ms must be an int, not True": lambda store: store.acquire("order-1", ADA, lease_ms=True),
    "acquire: lease_ms must be an int, not 1.0": lambda store: store.acquire(
        "order-1",
        ADA,
        lease_ms=1.0,  # type: ignore[arg-type]
    ),
    f"acquire: lease_ms is {MAX_TIME_MS + 1}": lambda store: store.acquire(
        "order-1", ADA, lease_ms=MAX_TIME_MS + 1
    ),
    "renew: lease_version is -1": lambda store: store.renew("order-1", ADA, -1, lease_ms=LEASE_MS),
    "renew: lease_ms is 0": lambda store: store.renew("order-1", ADA, 1, lease_ms=0),
    "release: lease_version must be an int, not '1'": lambda store: store.release(
        "order-1",
        ADA,
        "1",  # type: ignore[arg-type]
    ),
    f"release: lease_version is {MAX_VERSION + 1}": lambda store: store.release(
        "order-1", ADA, MAX_VERSION + 1
    ),
    "commit: expected a Commit": lambda store: store.commit("order-1"),  # type: ignore[arg-type]
    "read: instance is empty": lambda store: store.read(""),
    "ask: commit_id is empty": lambda store: store.ask("order-1", ""),
    "log: instance must be a str, not None": lambda store: store.log(None),  # type: ignore[arg-type]
    "Owner: worker is empty": lambda _: Owner("", 0),
    "Owner: incarnation is -1": lambda _: Owner("ada", -1),
    "Owner: incarnation must be an int, not False": lambda _: Owner("ada", False),
    f"Owner: incarnation is {MAX_VERSION + 1}": lambda _: Owner("ada", MAX_VERSION + 1),
    r"Owner: worker '\\ud800' is not valid Unicode": lambda _: Owner("\ud800", 0),
    "Commit: instance is empty": lambda _: commit(instance=""),
    "Commit: owner must be an Owner": lambda _: commit(owner=("ada", 0)),
    "Commit: commit_id is empty": lambda _: commit(commit_id=""),
    "Commit: expected_state_version is -1": lambda _: commit(expected_state_version=-1),
    "Commit: expected_lease_version must be an int, not None": lambda _: commit(expected_lease_version=None),
    "Commit: event is empty": lambda _: commit(event=""),
    "Commit: payload must be a str, not b'{}'": lambda _: commit(payload=b"{}"),
    "Commit: finishes must be True or False, not 1": lambda _: commit(finishes=1),
}


@pytest.mark.parametrize(("message", "call"), WRONG_CALLS.items(), ids=WRONG_CALLS)
def test_a_wrong_argument_is_an_error_that_names_it_and_changes_nothing(
    message: str, call: Callable[[Store], object], store: Store, path: Path
) -> None:
    leased(store)
    before = dump(path)
    with pytest.raises(ArgumentError) as caught:
        call(store)
    assert str(caught.value).startswith(message.replace("\\\\", "\\"))
    assert dump(path) == before


def test_a_wrong_argument_is_a_store_error_and_a_value_error() -> None:
    assert issubclass(ArgumentError, StoreError)
    assert issubclass(ArgumentError, ValueError)


@pytest.mark.parametrize("reading", [-1, MAX_TIME_MS + 1, 1.5, None, True, "12"])
def test_a_clock_that_shows_no_time_is_an_error_and_changes_nothing(
    reading: object, store: Store, path: Path, clock: Clock
) -> None:
    leased(store)
    before = dump(path)
    clock.now_ms = reading  # type: ignore[assignment]
    with pytest.raises(ArgumentError, match="clock_ms: its reading"):
        store.release("order-1", ADA, 1)
    assert dump(path) == before
    clock.now_ms = 1_000
    ok(store.release("order-1", ADA, 1))


def test_values_are_immutable(store: Store) -> None:
    row = leased(store)
    for value, name in ((row, "lease_version"), (ADA, "incarnation"), (commit(), "commit_id")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, 7)
