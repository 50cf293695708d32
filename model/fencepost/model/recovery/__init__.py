"""Recovery: checkpoints, pinned definitions, and two recoveries that race (§8, §14). Start with `steps`."""

from fencepost.model.recovery import checkpoints, scopes, steps, world
from fencepost.model.recovery.state import recovery

__all__ = ["checkpoints", "recovery", "scopes", "steps", "world"]
