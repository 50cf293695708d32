"""A store in a file of its own, and its clock."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    Downstream,
    History,
    MemoryHistory,
    Store,
    open_downstream,
    open_histories,
    open_store,
)

from .support import Clock, ok
from .worlds import Make, World


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(path: Path, clock: Clock) -> Iterator[Store]:
    # Without waiting for the disk: none of these tests cuts the power.
    with open_store(path, clock_ms=clock, synchronous="OFF") as opened:
        yield opened


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def downstream(ledger: Path, clock: Clock) -> Iterator[Downstream]:
    with open_downstream(ledger, clock_ms=clock, synchronous="OFF") as opened:
        yield opened


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Make:
    numbers = count()

    def make_world(**options: Any) -> World:
        number = next(numbers)
        world = World(tmp_path / f"store-{number}.db", tmp_path / f"ledger-{number}.db", clock, options)
        with world.opened() as (store, _):
            ok(store.create("order-1"))
        return world

    return make_world


@pytest.fixture(params=["memory", "file"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[History]:
    if request.param == "memory":
        yield MemoryHistory("order-42")
        return
    with open_histories(tmp_path / "histories.db", synchronous="OFF") as histories:
        yield histories.of("order-42")
