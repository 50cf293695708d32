"""The memory of a search: the table, the states, their parent links, and the job that says where they are."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from fencepost.checker.native.job import JobLayout
from fencepost.checker.native.memory import Block, whole_pages
from fencepost.checker.native.skeleton import BLOCK_STATES
from fencepost.checker.native.table import BUCKET_BYTES, BUCKET_SLOTS

INDEX_LIMIT = (1 << 32) - 2
"""Parent links and table slots hold 32 bits: more states than this are refused."""

FULLEST = 0.8
"""Share of slots in use at which the table grows: with buckets of eight, few overflow below it."""

LEAST_GROWTH, MOST_GROWTH = 1.2, 2.0
PARENT_BYTES = 4

LATE_SLOTS = 1 << 16
"""Slots that may wait until the end when a table is spread out; a table with more is filled anew."""

Rehash = Callable[[int, int, int, int, int], int]
Enter = Callable[[int, int, int], None]


class Store:
    """Arrays that grow together. `most` is how many successors one state can have."""

    def __init__(
        self,
        places: JobLayout,
        *,
        words: int,
        entry_bytes: int,
        most: int,
        initial_slots: int,
        max_states: int | None,
    ) -> None:
        self.places = places
        self.state_bytes = 8 * words
        self.max_states = max_states
        self.reserve = BLOCK_STATES * most  # states that one block can add
        self.job = (ctypes.c_int64 * places.size)()
        for i in range(places.found, places.size):
            self.job[i] = -1
        self.buffer = Block(
            (self.reserve + 1) * entry_bytes
        )  # one more: written before it is known to be one
        self.buckets = max(initial_slots // BUCKET_SLOTS, _buckets_for(self.reserve + 1))
        self.table = Block(self.buckets * BUCKET_BYTES)
        capacity = self.limit(self.buckets) + 1
        self.states = Block(capacity * self.state_bytes)
        self.parents = Block(capacity * PARENT_BYTES)
        self.peak_bytes = 0
        self.point(self.buckets)

    @property
    def address(self) -> int:
        """Where the job lies."""
        return ctypes.addressof(self.job)

    @property
    def count(self) -> int:
        """How many states there are."""
        return self.job[self.places.COUNT]

    def limit(self, buckets: int) -> int:
        """How many states a table of so many buckets may hold."""
        return min(int(buckets * BUCKET_SLOTS * FULLEST), INDEX_LIMIT)

    def point(self, buckets: int) -> None:
        """Tell the native code where everything is, and how many buckets the table has."""
        job, places = self.job, self.places
        job[places.STATES], job[places.PARENTS] = self.states.address, self.parents.address
        job[places.TABLE], job[places.BUCKETS] = self.table.address, buckets
        job[places.BUFFER], job[places.LIMIT] = self.buffer.address, self.limit(buckets)
        if self.max_states is not None:  # native code goes on as long as there is room for one more block
            job[places.LIMIT] = min(job[places.LIMIT], self.max_states + self.reserve)

    def used_bytes(self, states: int, table_bytes: int) -> int:
        """Memory in use for so many states beside such a table; pages of arrays not yet reached are not."""
        return table_bytes + states * (self.state_bytes + PARENT_BYTES) + self.buffer.size_bytes

    def bytes_now(self) -> int:
        """Memory in use."""
        used = self.used_bytes(self.count, self.table.size_bytes)
        self.peak_bytes = max(self.peak_bytes, used)
        return used

    def grow(self, rehash: Rehash, enter: Enter, *, expanded: int, memory_bytes: int) -> str | None:
        """Make room for the next block; or say why not: ``index`` or ``memory``.

        The table grows by more while the search still widens: by two and a half times the share of states
        that are not expanded yet.
        """
        count = self.count
        if count + self.reserve > INDEX_LIMIT:
            return "index"
        least = max(_buckets_for(count + self.reserve), self.buckets)
        wanted = 1 + 2.5 * (count - expanded) / count
        factor = min(max(wanted, LEAST_GROWTH), MOST_GROWTH)
        while True:
            buckets = max(least, int(self.buckets * factor))
            if self._resize(buckets, memory_bytes):
                break
            if buckets == least:
                return "memory"
            factor = 1 + (factor - 1) / 2 if factor > 1.05 else 1
        fills = Block(buckets)
        self.peak_bytes = max(self.peak_bytes, self.bytes_now() + fills.size_bytes)
        room = min(self.buffer.size_bytes // 8, LATE_SLOTS)
        late = rehash(self.address, self.buckets, fills.address, self.buffer.address, room)
        fills.free()
        self.buckets = buckets
        if late < 0:
            ctypes.memset(self.table.address, 0, self.table.size_bytes)
            enter(self.address, 0, count)
        return None

    def _resize(self, buckets: int, memory_bytes: int) -> bool:
        """Enlarge table and arrays, if that much memory is allowed and there."""
        capacity, table_bytes = self.limit(buckets) + 1, buckets * BUCKET_BYTES
        if self.used_bytes(capacity, whole_pages(table_bytes) + whole_pages(buckets)) > memory_bytes:
            return False
        try:
            self.states.grow(capacity * self.state_bytes)
            self.parents.grow(capacity * PARENT_BYTES)
            self.table.grow(table_bytes)
        except (MemoryError, OSError):
            return False
        finally:
            self.point(buckets)  # an array may have moved
        return True


def _buckets_for(states: int) -> int:
    return int(states / FULLEST / BUCKET_SLOTS) + 2
