"""What fencepost claims, with witnesses, and the registry of refusals. Start with `core`, then `effects`."""

from fencepost.properties import supporting, supporting_effects
from fencepost.properties.claims import Claim, ClaimError, Claims, Kind
from fencepost.properties.core import CORE
from fencepost.properties.effects import EFFECTS
from fencepost.properties.refusals import REFUSALS, REGISTRY, Refusal

__all__ = [
    "CORE",
    "EFFECTS",
    "REFUSALS",
    "REGISTRY",
    "Claim",
    "ClaimError",
    "Claims",
    "Kind",
    "Refusal",
    "supporting",
    "supporting_effects",
]
