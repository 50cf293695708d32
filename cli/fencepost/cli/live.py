"""A region of a terminal that is drawn anew as more is known."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence

INTERVAL_S = 0.1


class Live:
    """Lines at the end of standard output; used only where that is a terminal, and only if they fit it."""

    def __init__(self) -> None:
        self.active = sys.stdout.isatty()
        self._drawn = 0
        self._last = 0.0

    def draw(self, lines: Sequence[str], *, at_once: bool = False) -> None:
        """Replace what was drawn before."""
        size = shutil.get_terminal_size()
        now = time.monotonic()
        if not self.active or len(lines) >= size.lines or (now - self._last < INTERVAL_S and not at_once):
            return
        self._last = now
        self.clear()
        for line in lines:
            sys.stdout.write(line[: size.columns - 1] + "\n")
        sys.stdout.flush()
        self._drawn = len(lines)

    def clear(self) -> None:
        """Take away what was drawn."""
        if self._drawn:
            sys.stdout.write(f"\x1b[{self._drawn}A\x1b[J")
            sys.stdout.flush()
            self._drawn = 0
