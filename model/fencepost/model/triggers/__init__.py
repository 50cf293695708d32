"""Triggers and notifications: what comes in once, what goes out once (§13). Start with `arrivals`."""

from fencepost.model.triggers import arrivals, instances, notices, scopes, world
from fencepost.model.triggers.state import triggers

__all__ = ["arrivals", "instances", "notices", "scopes", "triggers", "world"]
