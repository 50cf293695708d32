"""The whole life of an instance: steps that depend on each other, requests, retries, cancelling, undoing.

Start with `lifecycle`.
"""

from fencepost.model.workflow import (
    approvals,
    calls,
    definition,
    downstream,
    inbox,
    late,
    lifecycle,
    operator,
    scopes,
    unwinding,
    world,
)
from fencepost.model.workflow.state import workflow

__all__ = [
    "approvals",
    "calls",
    "definition",
    "downstream",
    "inbox",
    "late",
    "lifecycle",
    "operator",
    "scopes",
    "unwinding",
    "workflow",
    "world",
]
