"""A store in a file of its own, and its clock."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.reference import Store, open_store

from .support import Clock


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
