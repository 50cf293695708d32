"""Reads the guards and effects out of a statement's text, so that no guard is written down twice.

When a guarded statement touches no row, the store must say which guard refused (§2). It asks the database,
in the same transaction, by a second statement put together from the very predicates of the first: see
`explanation_of`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from fencepost.reference.values import ArgumentError

_WHERE: Final = re.compile(r"^where\b", re.IGNORECASE)
_GUARD: Final = re.compile(
    r"^(?:where|and)\s+(?P<predicate>.+?)\s+--\s*refuse:\s*(?P<code>[a-z][a-z-]*)$", re.IGNORECASE
)
_EFFECT: Final = re.compile(r"^(?:set\s+|,\s*)?(?P<sql>.+?)\s+--\s*effect:\s*(?P<words>.+)$")
_END_OF_WHERE: Final = re.compile(r"^(?:returning|order\s+by)\b", re.IGNORECASE)

EXPLANATION: Final = """
select instance, owner_worker, owner_incarnation, lease_version, expires_at_ms, state_version, status,
       unwinding_cause, manual_cause, definition, definition_fingerprint, deadline_at_ms
     , {verdicts}
  from (select 1) left join instances on instance = :instance
"""


@dataclass(frozen=True, slots=True)
class Guard:
    """One line of a `where`: the code of its refusal, and the predicate that must be true lest it refuse."""

    code: str
    predicate: str


@dataclass(frozen=True, slots=True)
class Effect:
    """One line that writes: its SQL, without the leading `set` or comma, and what it does in words."""

    sql: str
    words: str


@cache
def guards_of(statement: str) -> tuple[Guard, ...]:
    """The guards of a statement in the order of their precedence.

    Raises `ArgumentError` for a line of the `where` that names no code: its refusal could not be explained.
    """
    guards: list[Guard] = []
    inside = False
    for line in _lines(statement):
        if _END_OF_WHERE.match(line):
            inside = False
        inside = inside or _WHERE.match(line) is not None
        if not inside:
            continue
        found = _GUARD.match(line)
        if found is None:
            raise ArgumentError(
                f"the line {line!r} of a where names no refusal; end it in '-- refuse: some-code'"
            )
        guards.append(Guard(found["code"], found["predicate"]))
    return tuple(guards)


def effects_of(statement: str) -> tuple[Effect, ...]:
    """The effects of a statement, in the order of its lines."""
    found = (_EFFECT.match(line) for line in _lines(statement))
    return tuple(Effect(effect["sql"], effect["words"]) for effect in found if effect)


@cache
def explanation_of(statement: str, template: str = EXPLANATION) -> str:
    """A query for the row as it stands, followed by one column for each guard: 1 where it holds, else 0.

    It takes the statement's own parameters and always gives one row; the row's columns are null when there
    is no such instance. `template` is the store's by default; another names its own columns and tables.
    """
    verdicts = "\n     , ".join(f"({guard.predicate}) is true" for guard in guards_of(statement))
    return template.format(verdicts=verdicts)


def _lines(statement: str) -> list[str]:
    return [line.strip() for line in statement.splitlines() if line.strip()]
