"""The broken and the unusual variants of a workflow: what each claim is shown to fail on."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.model.variants import Variant
from fencepost.model.workflow import (
    variants_of_decisions,
    variants_of_effects,
    variants_of_requests,
    variants_of_steps,
)

VARIANTS: Mapping[str, Variant] = {
    **variants_of_steps.VARIANTS,
    **variants_of_effects.VARIANTS,
    **variants_of_requests.VARIANTS,
    **variants_of_decisions.VARIANTS,
}
