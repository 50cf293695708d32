"""From an implementation's words to the model's: what is observed, as the stored variables of a model state.

One line per stored variable says where in an observation it is. A variable of the protocol that is not listed
is an error that says what to write; one that the implementation does not show is *not observed*, and claims
that read it are not exercised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.conformance.adapter import Capability, Entry, Observation, Owner, Row
from fencepost.model import FencepostError, Protocol, Scope, absent
from fencepost.model.concrete import in_bounds, values_of
from fencepost.model.core.state import STORE, commits, state_versions, workers
from fencepost.model.domains import Element


class MappingError(FencepostError):
    """The protocol has something that is not mapped to implementations; the message says what to write."""


class CannotEmbedError(FencepostError):
    """What is stored has no counterpart in the model; the message says what it is."""


@dataclass(slots=True)
class Names:
    """The names that one run uses in the implementation, and what they stand for in the model."""

    scope: Scope
    commit_ids: dict[str, Element] = field(default_factory=dict)

    def commit_id(self, sender: Owner, c: Element) -> str:
        """The id of a commit: who sends it, in which incarnation, and which one it is."""
        made = f"{sender.worker}.{sender.incarnation}.{c.label}"
        self.commit_ids[made] = c
        return made

    def owner(self, raw: tuple[Element, int]) -> Owner:
        """An owner of the model, as the implementation names it."""
        return Owner(raw[0].label, raw[1])

    def raw_owner(self, owner: Owner | None) -> Any:
        """An owner that is stored, as a value of the model."""
        if owner is None:
            return absent
        for element in values_of(workers, self.scope):
            if element.label == owner.worker:
                return (element, owner.incarnation)
        raise CannotEmbedError(f"an owner named {owner.worker!r} is stored, and no worker has that name")


@dataclass(frozen=True, slots=True)
class Seen:
    """An observation with all that it takes to read it: the moment, and the run's names."""

    observation: Observation
    now_ms: int
    names: Names

    @property
    def row(self) -> Row:
        """The row."""
        return self.observation.row

    def told(self, row: Row | None, entry: Entry | None, asked_for: str | None) -> Seen:
        """The same as an answer tells it: its row, and whether the commit asked for is in the log."""
        log = self.observation.log
        if log is not None and asked_for is not None:
            log = tuple(e for e in log if e.commit_id != asked_for) + (() if entry is None else (entry,))
        return replace(self, observation=Observation(row or self.row, log))


def _log(seen: Seen) -> tuple[Any, ...]:
    cells: list[Any] = [absent] * seen.names.scope.size(state_versions)
    for entry in seen.observation.log or ():
        if not 0 <= entry.state_version < len(cells):
            raise CannotEmbedError(f"the log has an entry for state version {entry.state_version}")
        if cells[entry.state_version] is not absent:
            raise CannotEmbedError(f"the log has two entries for state version {entry.state_version}")
        if entry.commit_id not in seen.names.commit_ids:
            raise CannotEmbedError(f"the log has a commit {entry.commit_id!r}, which nobody sent")
        cells[entry.state_version] = seen.names.commit_ids[entry.commit_id]
    return tuple(cells)


STORED: Mapping[str, tuple[Callable[[Seen], Any], Capability | None]] = {
    "owner": (lambda seen: seen.names.raw_owner(seen.row.owner), None),
    "lease_version": (lambda seen: seen.row.lease_version, None),
    "live": (lambda seen: seen.row.live(seen.now_ms), None),
    "state_version": (lambda seen: seen.row.state_version, None),
    "finished": (lambda seen: seen.row.finished, None),
    "log": (_log, Capability.LOG),
}
"""For each stored variable: its value in rest, and the capability without which it is not observed."""

assert commits  # the elements of `log` are commits  # noqa: S101


def stored_variables(protocol: Protocol) -> list[str]:
    """The variables that a store keeps. MappingError when one of them is not in `STORED`."""
    found = [name for name, variable in protocol.variables.items() if variable.home == STORE]
    for name in found:
        if name not in STORED:
            raise MappingError(
                f"{protocol.name} stores {name!r}, which no observation is mapped to; add to `Observation` "
                f"what it is read from, and to STORED in {__name__} a line\n"
                f"    {name!r}: (lambda seen: …, Capability.… or None)"
            )
    return found


def observed_variables(protocol: Protocol, capabilities: frozenset[Capability]) -> list[str]:
    """The stored variables that an implementation with these capabilities shows."""
    return [n for n in stored_variables(protocol) if STORED[n][1] is None or STORED[n][1] in capabilities]


def embedded(protocol: Protocol, names: list[str], seen: Seen) -> dict[str, Any]:
    """The values of some stored variables. CannotEmbedError where the model has no such value."""
    found = {}
    for name in names:
        variable = protocol.variables[name]
        value = STORED[name][0](seen)
        if not variable.index and not in_bounds(variable.domain, value, seen.names.scope):
            raise CannotEmbedError(f"{name} is {value!r}, which is beyond the scope")
        found[name] = value
    return found
