"""Clocks: one lease by the store's now and by its owner's own count (§1, §3, §16). Start with `leases`."""

from fencepost.model.clocks import leases, scopes, world
from fencepost.model.clocks.state import clocks

__all__ = ["clocks", "leases", "scopes", "world"]
