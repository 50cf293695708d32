"""Replay: a workflow runs again over the history of its commands (§15). Start with `replayers`."""

from fencepost.model.replay import replayers, scopes, world
from fencepost.model.replay.state import replay

__all__ = ["replay", "replayers", "scopes", "world"]
