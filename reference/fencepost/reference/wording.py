"""What other people's code raised, in words that the store can keep."""

from __future__ import annotations

from typing import Final

LONGEST_CHARACTERS: Final = 2_000
"""How much is kept of what somebody's code says: a screenful."""


def said(error: BaseException) -> str:
    """What was raised, in words that are never empty; an error that cannot say itself is named at least."""
    name = type(error).__name__ or "an error without a name"
    words = words_of(error)
    return storable(f"{name}: {words}" if words else name)


def words_of(error: BaseException) -> str:
    """What an error says of itself, which may be nothing."""
    try:
        return storable(str(error))
    except Exception as broken:  # noqa: BLE001  # whatever its own `__str__` raises
        return f"it cannot say why, since its own words raise {type(broken).__name__}"


def storable(words: str) -> str:
    """At most a screenful, and valid Unicode."""
    return words[:LONGEST_CHARACTERS].encode(errors="replace").decode()
