"""What the driver and the native code say to each other: what is looked for, and where which number lies."""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.model import terms as t


@dataclass(frozen=True, slots=True)
class Watch:
    """What is looked for: the `slot` of its hit in the job, the value that is a hit, and the term(s)."""

    name: str
    slot: int
    hit_when: bool
    state: t.Term | None
    steps: tuple[t.Term, ...] | None


@dataclass(frozen=True, slots=True)
class JobLayout:
    """Where what lies in the job, in 64-bit numbers from its start."""

    commands: int
    hits: int

    STATES, PARENTS, TABLE, BUCKETS, COUNT, LIMIT, BUFFER, BLOCKED = range(8)
    DEAD, FIRST_DEAD, BOUNDARY, FIRST_BOUNDARY = range(8, 12)
    HEADER = 16

    @property
    def taken(self) -> int:
        """Start of the number of transitions taken, per command."""
        return self.HEADER

    @property
    def cut(self) -> int:
        """Start of the number of transitions cut, per command."""
        return self.HEADER + self.commands

    @property
    def found(self) -> int:
        """Start of the hits: two numbers each, state (-1: none yet) and command."""
        return self.HEADER + 2 * self.commands

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.found + 2 * self.hits
