"""Gate 3: outside effects, and what a downstream does about them (§6, §7). Start with `steps`."""

from fencepost.model.effects import downstream, scopes, steps, world
from fencepost.model.effects.state import effects

__all__ = ["downstream", "effects", "scopes", "steps", "world"]
