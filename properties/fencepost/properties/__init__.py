"""What fencepost claims, with witnesses, and the registry of refusals. Start with `core`."""

from fencepost.properties import (
    supporting,
    supporting_clocks,
    supporting_effects,
    supporting_recovery,
    supporting_replay,
    supporting_triggers,
    supporting_workflow,
    workflow_requests,
    workflow_witnesses,
)
from fencepost.properties.claims import Claim, ClaimError, Claims, Kind
from fencepost.properties.clocks import CLOCKS
from fencepost.properties.core import CORE
from fencepost.properties.effects import EFFECTS
from fencepost.properties.recovery import RECOVERY
from fencepost.properties.refusals import REFUSALS, REGISTRY, Refusal
from fencepost.properties.replay import REPLAY
from fencepost.properties.triggers import TRIGGERS
from fencepost.properties.workflow import WORKFLOW

__all__ = [
    "CLOCKS",
    "CORE",
    "EFFECTS",
    "RECOVERY",
    "REFUSALS",
    "REGISTRY",
    "REPLAY",
    "TRIGGERS",
    "WORKFLOW",
    "Claim",
    "ClaimError",
    "Claims",
    "Kind",
    "Refusal",
    "supporting",
    "supporting_clocks",
    "supporting_effects",
    "supporting_recovery",
    "supporting_replay",
    "supporting_triggers",
    "supporting_workflow",
    "workflow_requests",
    "workflow_witnesses",
]
