"""Implicit inputs (§15): what a run depends on without having been given it.

The time zone, the default ordering, the model that an alias stands for, configuration that nobody pinned:
each is recorded by name when a run starts, and whoever recovers the run uses what was recorded. That its own
surroundings differ is no error, but it is told, by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from fencepost.reference.keys import canonical_json, fingerprint
from fencepost.reference.values import ArgumentError, text


@dataclass(frozen=True, slots=True)
class ImplicitDifference:
    """One implicit input that is not as it was recorded; None stands for one that is not there."""

    name: str
    recorded: str | None
    now: str | None

    def __str__(self) -> str:
        if self.recorded is None:
            return f"{self.name} was not recorded, and is {self.now!r} here; the run does not see it"
        here = "is not given" if self.now is None else f"is {self.now!r}"
        return (
            f"{self.name} was recorded as {self.recorded!r}, and {here} here; the run uses the recorded one"
        )


@dataclass(frozen=True, slots=True)
class ImplicitInputs:
    """Names and texts, as in `ImplicitInputs({"time_zone": "Asia/Tokyo", "model": "m-2026-01-01"})`.

    The order of the names and the normal form of Unicode do not matter. Raises `ArgumentError` for names and
    values that are no text, and for names that become the same once normalised.
    """

    values: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping):
            raise ArgumentError(f"ImplicitInputs: values must be a mapping, not {self.values!r}")
        for name, value in self.values.items():
            text("ImplicitInputs", "a name", name)
            text("ImplicitInputs", name, value, may_be_empty=True)
        normal = json.loads(canonical_json(dict(self.values)))
        object.__setattr__(self, "values", MappingProxyType(normal))

    def __hash__(self) -> int:
        return hash(self.canonical())

    def __getitem__(self, name: str) -> str:
        if name not in self.values:
            known = ", ".join(sorted(self.values)) or "nothing"
            raise ArgumentError(
                f"the implicit input {name!r} was not recorded when the run started, only {known}; "
                "give it to the runs that start from now on"
            )
        return self.values[name]

    def canonical(self) -> str:
        """The canonical JSON text, from which `from_canonical` makes the same value again."""
        return canonical_json(dict(self.values))

    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, over all names and values."""
        return fingerprint("implicit", "inputs", 1, dict(self.values))

    @classmethod
    def from_canonical(cls, canonical: str) -> ImplicitInputs:
        """The value that has this canonical JSON text."""
        return cls(json.loads(canonical))

    def differences(self, now: ImplicitInputs) -> tuple[ImplicitDifference, ...]:
        """What is not now as it is recorded here, in the order of the names."""
        return tuple(
            ImplicitDifference(name, self.values.get(name), now.values.get(name))
            for name in sorted(self.values.keys() | now.values.keys())
            if self.values.get(name) != now.values.get(name)
        )


NO_IMPLICIT_INPUTS: Final = ImplicitInputs()
"""Of a run that depends on nothing but what it is given."""
