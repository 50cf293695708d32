"""Which built-in model and claims a report is about, by the names that adapters and saved runs give."""

from __future__ import annotations

from fencepost.checker.subject import BUILT_IN, DEFAULT, Subject

EFFECTS_SUBJECT = BUILT_IN["effects"].subject()
"""One step with one outside effect, and a downstream (§6, §7)."""


def subject_of(protocol: str = "", variant: str = "") -> Subject:
    """The built-in subject whose protocol, or a variant of it, has this name; for any other name, the core.

    `variant` is what the adapter follows; where it varies another protocol, this one is as it is built in.
    """
    # Variants are many, and are not made before somebody names one.
    found = BUILT_IN.get(protocol)
    if found is None and protocol:
        found = next((b for b in BUILT_IN.values() if protocol in b.variants), None)
    if found is None:
        found = BUILT_IN[DEFAULT]
    if not variant or variant in found.variants:
        return found.subject(variant)
    elsewhere = any(variant in b.variants for b in BUILT_IN.values() if b is not found)
    return found.subject("" if elsewhere else variant)
