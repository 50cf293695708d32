"""A worker sends 500 under a key, and a later one 400 under the same: with a fingerprint, and without."""

import tempfile
from dataclasses import replace
from pathlib import Path

from fencepost.reference import (
    BROKEN_DOWNSTREAMS,
    DOWNSTREAM_STATEMENTS,
    EffectRequest,
    Ok,
    canonical_json,
    fingerprint,
    observe_downstream,
    open_downstream,
    step_key,
)


def charge(cents: float) -> EffectRequest:
    """A charge of the order. The key says which intent is meant; the fingerprint, what it is."""
    return EffectRequest(
        instance="order-42",
        resource="payment",
        operation="charge",
        parameters=canonical_json({"cents": cents}),
        fingerprint=fingerprint("charge", "payment", 1, {"cents": cents}),
        key=step_key("order-42", "charge", "payment", 1),
        token=1,
    )


KINDS = {"compares": DOWNSTREAM_STATEMENTS, "does not": BROKEN_DOWNSTREAMS["fingerprint-not-compared"]}

for name, statements in KINDS.items():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        with open_downstream(path, clock_ms=lambda: 0, statements=statements) as payments:
            first = payments.apply(charge(500)).value
            again = payments.apply(charge(500.0))  # the same amount, written otherwise
            other = payments.apply(replace(charge(400), token=2))
        charged = [effect.parameters for effect in observe_downstream(path).effects]
    said = f"ok, {other.value.receipt}" if isinstance(other, Ok) else other.code
    print(f"{name:8}  500.0 has the receipt of 500: {again.value == first}  400: {said}  charged: {charged}")
