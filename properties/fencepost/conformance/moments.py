"""What a schedule is told in: the moments between changes, the calls on their way, and what happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fencepost.conformance.mapping import Performance
from fencepost.conformance.oracle import Oracle, Rest, Transition
from fencepost.conformance.vocabulary import Seen
from fencepost.model.concrete import RunningState
from fencepost.model.ground import label_of

Codes = tuple[int, ...]
MOST_READERS = 20_000
"""States that are kept ready to be read."""

Judged = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Moment:
    """The state of the model between two changes, and what is stored then."""

    state: Rest
    seen: Seen
    by_clock: bool = False
    """Whether only the clock has moved since the moment before."""


@dataclass(slots=True, eq=False)
class Operation:
    """A call on its way."""

    who: str
    number: int
    """The place of its worker among the workers of the schedule."""
    how: Performance
    expected: Transition
    """What the model did with the call when it began."""
    codes: Codes
    label: str
    began: int
    """The moment at which it began."""
    asked_for: str | None
    sent: str | None
    """The id of the commit that it makes."""
    asked_until_ms: int
    lease_ms: int
    statements: int = 0
    changed: Change | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What one statement changed: from which state, by what the model takes it for, and the moment after."""

    before: Moment
    made: Transition
    after: int
    placed: bool = True
    """Whether the model does the same."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a schedule's table: who, what, and the moments before and after."""

    who: str
    operation: str
    number: int
    """Which statement of its operation it is, from 1; 0 for what is no statement."""
    text: str
    before: int
    after: int
    note: str = ""
    changes: bool = False
    call: tuple[int, int] = (-1, -1)
    """Of which call it is: the worker's place, and the moment at which the call began."""


@dataclass(frozen=True, slots=True)
class StepMade:
    """A step of the model that the schedule made: for the trace, and where in the events it stands."""

    label: str
    before: Rest
    made: Transition
    event: int


@dataclass(slots=True)
class Memory:
    """What was judged before, kept from schedule to schedule."""

    stored: dict[Any, dict[str, Any]] = field(default_factory=dict)
    judged: dict[Any, Judged] = field(default_factory=dict)
    readers: dict[Rest, RunningState] = field(default_factory=dict)
    labels: dict[Any, str] = field(default_factory=dict)

    def reader(self, oracle: Oracle, state: Rest) -> RunningState:
        """A state, to be read."""
        found = self.readers.get(state)
        if found is None:
            if len(self.readers) >= MOST_READERS:
                self.readers.clear()
            found = self.readers[state] = oracle.reader(state)
        return found

    def label(self, made: Transition, codes: Codes) -> str:
        """A step, as a person writes it."""
        key = (made.action.name, codes)
        found = self.labels.get(key)
        if found is None:
            found = self.labels[key] = label_of(made.action, codes)
        return found
