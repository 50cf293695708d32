"""Progress: one line on stderr that updates, on a terminal only."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

INTERVAL_S = 0.1
"""Fast enough to look alive, seldom enough to cost nothing."""

Tell = Callable[[object], None]
One = TypeVar("One")


def shared(things: Sequence[One], budget_s: float | None) -> Iterator[tuple[One, float | None]]:
    """Each thing with its share of a budget in seconds; what one leaves over goes to those after it."""
    from fencepost.checker.shares import share_s

    started = time.monotonic()
    for number, one in enumerate(things):
        left = None if budget_s is None else max(0.0, budget_s - (time.monotonic() - started))
        yield one, None if left is None else share_s(left, len(things) - number - 1)


@contextmanager
def progress(label: str) -> Iterator[Tell | None]:
    """Something to tell progress to, as a line that begins with `label`; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    last = 0.0

    def tell(what: object) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < INTERVAL_S:
            return
        last = now
        text = f"{label}: {what}"[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    try:
        yield tell
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
