"""The claims that fencepost checks, their witnesses, and the registry of refusal codes. Start with `core`."""

from fencepost.properties import supporting
from fencepost.properties.claims import Claim, ClaimError, Claims, Kind
from fencepost.properties.core import CORE
from fencepost.properties.refusals import REFUSALS, REGISTRY, Refusal

__all__ = ["CORE", "REFUSALS", "REGISTRY", "Claim", "ClaimError", "Claims", "Kind", "Refusal", "supporting"]
