"""The core: leases, commits and the event log (§1–§4, without requests). Start with `leases`."""

from fencepost.model.core import commits, leases, scopes, world
from fencepost.model.core.state import core

__all__ = ["commits", "core", "leases", "scopes", "world"]
