"""Looks at a downstream through a back door, as `observe.py` does at a store: other connection, other SQL."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.reference.values import StoreError

EFFECTS: Final = """
SELECT number, instance, resource, operation, parameters, fingerprint, key, token, revision
FROM effects ORDER BY number
"""
RECORDS: Final = "SELECT key, kind, fingerprint, effect, refusal, why FROM records ORDER BY key"
FENCES: Final = "SELECT instance, resource, token FROM fences ORDER BY instance, resource"
REVISIONS: Final = "SELECT resource, revision FROM revisions ORDER BY resource"


@dataclass(frozen=True, slots=True)
class AppliedEffect:
    """One effect that happened, in the order of `number`: the truth, whatever any record says."""

    number: int
    instance: str
    resource: str
    operation: str
    parameters: str
    fingerprint: str
    key: str
    token: int
    revision: int | None


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What one key holds: kind is `receipt`, `refusal`, `tombstone` or `expired`.

    `effect` is the number of the effect that a receipt is for.
    """

    key: str
    kind: str
    fingerprint: str
    effect: int | None
    refusal: str | None
    why: str | None


@dataclass(frozen=True, slots=True)
class DownstreamObservation:
    """Everything that the tables of a downstream hold at one moment.

    `fences` are triples of instance, resource and token, `revisions` pairs of resource and revision.
    """

    effects: tuple[AppliedEffect, ...]
    records: tuple[KeyRecord, ...]
    fences: tuple[tuple[str, str, int], ...]
    revisions: tuple[tuple[str, int], ...]

    def effects_of(self, key: str) -> tuple[AppliedEffect, ...]:
        """The effects that happened under one key; a keyed downstream that keeps §6 has at most one."""
        return tuple(effect for effect in self.effects if effect.key == key)

    def record(self, key: str) -> KeyRecord | None:
        """What one key holds, if anything."""
        return next((record for record in self.records if record.key == key), None)

    def fence(self, instance: str, resource: str) -> int | None:
        """The token recorded for an instance and resource, if any."""
        return next((token for *whose, token in self.fences if whose == [instance, resource]), None)


class DownstreamObserver:
    """A lasting connection for who looks often; to be closed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._name: Final = os.fspath(path)
        address = f"{Path(path).absolute().as_uri()}?mode=ro"
        try:
            self._connection: Final = sqlite3.connect(
                address, uri=True, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def observe(self) -> DownstreamObservation:
        """What the tables hold now. Raises `StoreError` if they cannot be read."""
        read = self._connection.execute
        try:
            read("BEGIN")
            try:
                return DownstreamObservation(
                    effects=tuple(AppliedEffect(*record) for record in read(EFFECTS)),
                    records=tuple(KeyRecord(*record) for record in read(RECORDS)),
                    fences=tuple(read(FENCES)),
                    revisions=tuple(read(REVISIONS)),
                )
            finally:
                read("ROLLBACK")
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def close(self) -> None:
        """Give up the connection."""
        self._connection.close()

    def _unreadable(self, error: sqlite3.Error) -> StoreError:
        return StoreError(f"observe_downstream: cannot read {self._name!r}: {error}; is it a downstream?")


def observe_downstream(path: str | os.PathLike[str]) -> DownstreamObservation:
    """What the tables of the downstream at `path` hold now. Raises `StoreError` if they cannot be read."""
    with closing(DownstreamObserver(path)) as observer:
        return observer.observe()
