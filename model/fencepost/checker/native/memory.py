"""Arrays that grow: anonymous memory of the operating system, in large pages where it offers them."""

from __future__ import annotations

import ctypes
import mmap
import os
from contextlib import suppress

PAGE_BYTES = mmap.PAGESIZE
LARGE_PAGE_BYTES = 2 << 20
"""From this size on a block is a whole number of large pages, and asks to lie in them."""


class Block:
    """Zeroed memory that starts at a page; growing keeps what is in it and may move it."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = whole_pages(size_bytes)
        self._map = _anonymous(self.size_bytes)

    @property
    def address(self) -> int:
        """Where it starts, until it grows or is freed."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def grow(self, size_bytes: int) -> None:
        """Enlarge to at least `size_bytes`. Raises MemoryError or OSError, and then nothing has changed."""
        size_bytes = whole_pages(size_bytes)
        if size_bytes <= self.size_bytes:
            return
        try:
            _resize(self._map, size_bytes)
        except (SystemError, ValueError, OSError):  # not on this system
            larger = _anonymous(size_bytes)
            larger[: self.size_bytes] = self._map[:]
            self._map.close()
            self._map = larger
        self.size_bytes = size_bytes

    def view(self, used_bytes: int) -> memoryview:
        """The first `used_bytes`; while it is in use the block cannot grow."""
        return memoryview(self._map)[:used_bytes]

    def free(self) -> None:
        """Give the memory back."""
        with suppress(BufferError):
            self._map.close()


def whole_pages(size_bytes: int) -> int:
    """The size of a block for so many bytes."""
    unit = LARGE_PAGE_BYTES if size_bytes >= LARGE_PAGE_BYTES else PAGE_BYTES
    return max(1, -(-size_bytes // unit)) * unit


def _anonymous(size_bytes: int) -> mmap.mmap:
    if os.name == "posix":
        made = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    else:
        made = mmap.mmap(-1, size_bytes)
    _advise(made, size_bytes)
    return made


def _resize(made: mmap.mmap, size_bytes: int) -> None:
    made.resize(size_bytes)
    _advise(made, size_bytes)


def _advise(made: mmap.mmap, size_bytes: int) -> None:
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is not None and size_bytes >= LARGE_PAGE_BYTES:
        with suppress(OSError):  # a kernel without large pages
            made.madvise(advice)


def physical_bytes() -> int | None:
    """How much memory the machine has, if the system says."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
