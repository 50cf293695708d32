"""Scopes as the command line names them: ``small``, ``small:worker=3,lease_version=4``, and switches."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.checker.subject import Subject, UsageError
from fencepost.cli.text import wrapped
from fencepost.model import Scope
from fencepost.model.protocol import did_you_mean

_DIGITS = 12
"""More digits are not read: beyond the limits of scopes it does not matter by how much."""


def chosen_scope(
    subject: Subject,
    text: str = "",
    *,
    on: Iterable[str] = (),
    off: Iterable[str] = (),
) -> Scope:
    """The scope that `text` names, with what it and the switches change; UsageError for an unknown name.

    Without a name it is the first that the subject has for checks.
    """
    base = scope = subject.scope(text.partition(":")[0])
    for change in _changes(text):
        scope = _changed(scope, change)
    switches = set(scope.switches)
    for switch in (*on, *off):
        if switch not in subject.protocol.switches:
            known = did_you_mean(switch, subject.protocol.switches, empty="it has none")
            raise UsageError(f"{subject.protocol.name} has no switch {switch!r}; {known}")
    switches = (switches | set(on)) - set(off)
    if switches != scope.switches:
        scope = scope.but(switches=frozenset(switches))
    subject.refuse_beyond_limits(scope)
    if scope == base:
        return scope
    return scope.but(name=f"{base.name}, changed", why="as given on the command line")


def _changes(text: str) -> list[str]:
    return [c for c in (part.strip() for part in text.partition(":")[2].split(",")) if c]


def changes_in(text: str) -> list[str]:
    """The names of the sizes and bounds that a scope's text changes."""
    return [change.partition("=")[0].strip() for change in _changes(text)]


def _changed(scope: Scope, change: str) -> Scope:
    name, equals, number = (part.strip() for part in change.partition("="))
    if not equals or not (number.isascii() and number.isdigit()):
        raise UsageError(f"--scope: {change!r} is no size or bound; write NAME=NUMBER, as in worker=3")
    value = int(number[-_DIGITS:]) if not number[:-_DIGITS].strip("0") else 10**_DIGITS
    if name in scope.sizes:
        if value == 0:
            raise UsageError(f"--scope: {name}=0 leaves nobody to act; a size is at least 1")
        return scope.but(sizes={**scope.sizes, name: value})
    if name in scope.bounds:
        return scope.but(bounds={**scope.bounds, name: value})
    known = did_you_mean(name, [*scope.sizes, *scope.bounds], empty="it has none")
    raise UsageError(f"--scope: scope {scope.name!r} has no size or bound {name!r}; {known}")


def described(scope: Scope) -> list[str]:
    """A scope as the lines above a table of verdicts: its bounds and its switches."""
    switches = ", ".join(sorted(scope.switches)) or "none"
    return [*wrapped(f"scope {scope.name}: {scope.describe()}"), *wrapped(f"switches on: {switches}")]
