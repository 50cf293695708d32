"""What can be wrong on purpose, so that the audit can be seen to fail: one thing each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fencepost.cli.killing.work import Settings


@dataclass(frozen=True, slots=True)
class Broken:
    """One thing that is wrong: in words, where, and the name of the claim that it breaks.

    `keyed` says which downstream shows it: with keys, a fence that is not looked at does no harm.
    """

    says: str
    where: str
    breaks: str
    keyed: bool = True


BROKEN: Final[Mapping[str, Broken]] = MappingProxyType(
    {
        "record-in-memory": Broken(
            "the downstream keeps what it did under a key in its memory",
            "downstream",
            "one_effect_per_intent",
        ),
        "fence-not-compared": Broken(
            "a downstream without keys does not look at its fence",
            "downstream",
            "one_effect_per_intent",
            keyed=False,
        ),
        "status-only-guard": Broken(
            "the store accepts a commit whatever its versions say", "store", "stale_worker_never_overrides"
        ),
        "lease-version-not-raised": Broken(
            "the store gives every owner the same lease version", "store", "lease_version_only_grows"
        ),
        "key-per-retry": Broken(
            "a worker sends each attempt under a key of its own", "worker", "one_effect_per_intent"
        ),
        "silence-is-success": Broken("a worker takes no answer for success", "worker", "receipt_is_true"),
    }
)
"""By name, in the order of what is wrong: the downstream, the store, the worker."""


def broken(settings: Settings, name: str) -> Settings:
    """The settings with one thing wrong."""
    from fencepost.reference.broken_stores import BROKEN as BROKEN_STORES
    from fencepost.reference.sql import STATEMENTS

    what = BROKEN[name]
    settings = replace(settings, keyed=what.keyed and settings.keyed)
    if what.where == "downstream":
        return replace(settings, broken_downstream=name)
    if what.where == "worker":
        return replace(settings, broken_worker=name)
    statements = BROKEN_STORES[name]
    changed = {
        field: text
        for field in type(statements).__slots__
        if (text := getattr(statements, field)) != getattr(STATEMENTS, field)
    }
    return replace(settings, statements=changed)
