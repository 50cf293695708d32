"""Where a worker waits for leave: the points of its work under names that say what is true there.

A worker of workflows tells of more points than it is worth waiting at, and the same one, "sending", on the
way forward, on the way back, and when it tells somebody something. `Points` tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

POINTS: Final = {
    "started": "the process has begun, and opens the store",
    "acquired": "it has the lease",
    "derived": "it has derived key and fingerprint",
    "approval-asked": "its question for an approval is in the store",
    "intent-committed": "its intent is in the store",
    "sending": "it is about to send the effect",
    "answered": "the downstream has answered",
    "outcome-committed": "the receipt, or the result, is in the store",
    "retry-committed": "when to try again is in the store",
    "fence-raised": "it has fenced off who had the lease before",
    "query-answered": "it knows whether the effect happened",
    "giving-up-committed": "why an effect is given up is in the store",
    "tombstone-answered": "it knows what the key holds for good",
    "unwinding-committed": "that the instance unwinds is in the store",
    "undo-committed": "the intent of a compensation is in the store",
    "undo-sending": "it is about to send the compensation",
    "undo-answered": "the downstream has answered to that",
    "undone-committed": "the receipt of the compensation is in the store",
    "handed-over": "that a person has to decide is in the store",
    "decision-committed": "it has honoured what a person decided",
    "telling": "it is about to tell somebody something",
    "telling-answered": "the downstream has answered to that",
    "telling-recorded": "that somebody was told is in the store",
    "finished": "the end of the instance is in the store",
}
"""By name, what is true there, in the order in which one may come to it."""

ONLY_WITH_KEYS: Final = ("tombstone-answered",)
ONLY_WITHOUT_KEYS: Final = ("fence-raised", "query-answered")
"""What no worker comes to, as a rule, where the downstream has keys, or where it has none."""

_COMMITS: Final = {
    "started": "intent-committed",
    "started again": "intent-committed",
    "sent again": "intent-committed",
    "asks for approval": "approval-asked",
    "succeeded": "outcome-committed",
    "will be retried": "retry-committed",
    "compensation will be retried": "retry-committed",
    "to be given up": "giving-up-committed",
    "compensating": "undo-committed",
    "compensating again": "undo-committed",
    "compensated": "undone-committed",
    "handed over": "handed-over",
    "no compensation": "handed-over",
    "finished": "finished",
}
"""By what a commit says of itself, behind the name of its step; any other one unwinds the instance."""

_OTHERS: Final = {
    "acquired": "acquired",
    "derived": "derived",
    "fence raised": "fence-raised",
    "query answered": "query-answered",
    "tombstone answered": "tombstone-answered",
    "receipt of telling recorded": "telling-recorded",
}

_SENDS: Final = {
    "intent-committed": ("sending", "answered"),
    "decision-committed": ("sending", "answered"),
    "undo-committed": ("undo-sending", "undo-answered"),
}
"""By the last commit, what a request is that is sent after it; any other one tells somebody something."""


class Points:
    """Told of each point of the work, tells of those of `POINTS`, by these names."""

    def __init__(self, at: Callable[[str], None]) -> None:
        self._at: Final = at
        self._committed = ""

    def __call__(self, point: str) -> None:
        """Tell of a point, if it is one of `POINTS`."""
        name = self._name(point)
        if name:
            self._at(name)

    def _name(self, point: str) -> str:
        if point.startswith("after: "):
            self._committed = _commit(point.removeprefix("after: "))
            return self._committed
        if point == "acquired":
            self._committed = ""
        sends, answered = _SENDS.get(self._committed, ("telling", "telling-answered"))
        return {"sending": sends, "answered": answered}.get(point) or _OTHERS.get(point, "")


def _commit(event: str) -> str:
    what = event.partition(": ")[2] or event
    if what.startswith("decided: "):
        return "decision-committed"
    return _COMMITS.get(what, "unwinding-committed")
