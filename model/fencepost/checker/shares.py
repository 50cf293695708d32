"""How long one of several searches may take that have a budget together."""

from __future__ import annotations

KEPT = 0.5
"""Of an even share: what is kept for each search that waits. An even share would starve a long search for
short ones that do not use theirs."""


def share_s(left_s: float, waiting: int) -> float:
    """Of the seconds that are left, those for the next search, if so many others wait for it to end."""
    return left_s * (1 - KEPT * waiting / (waiting + 1))
