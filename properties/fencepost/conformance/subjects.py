"""Which built-in model and claims a report is about, by the names that adapters and saved runs give."""

from __future__ import annotations

from fencepost.checker.subject import BUILT_IN, DEFAULT, Subject

EFFECTS_SUBJECT = BUILT_IN["effects"].subject()
"""One step with one outside effect, and a downstream (§6, §7)."""


def subject_of(protocol: str = "", variant: str = "") -> Subject:
    """The built-in subject whose protocol, or a variant of it, has this name; for any other name, the core.

    `variant` is what the adapter follows; where it varies another protocol, this one is as it is built in.
    """
    by_variant = [b for b in BUILT_IN.values() if protocol and protocol in b.variants]
    found = BUILT_IN.get(protocol) or (by_variant[0] if by_variant else BUILT_IN[DEFAULT])
    elsewhere = any(variant in b.variants for b in BUILT_IN.values() if b is not found)
    return found.subject("" if variant not in found.variants and elsewhere else variant)
