"""Two workers hold a lease one after the other, as they should, and both charge, at four downstreams."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from fencepost.reference import (
    EffectRequest,
    Ok,
    Owner,
    canonical_json,
    fingerprint,
    observe_downstream,
    open_downstream,
    open_store,
    step_key,
)

ADA, BOB = Owner("ada", incarnation=0), Owner("bob", incarnation=0)
WANTED = {"cents": 500}


@dataclass
class Clock:
    """The store's time, set by hand."""

    now_ms: int = 0

    def __call__(self) -> int:
        return self.now_ms


def charge(lease_version: int) -> EffectRequest:
    """The one charge of the order, as whoever holds this lease version sends it."""
    return EffectRequest(
        instance="order-42",
        resource="payment",
        operation="charge",
        parameters=canonical_json(WANTED),
        fingerprint=fingerprint("charge", "payment", 1, WANTED),
        key=step_key("order-42", "charge", "payment", 1),
        token=lease_version,
    )


def race(folder: Path, **abilities: bool) -> str:
    """Ada is paused between her look at the lease and her charge; bob takes over in the meantime."""
    clock = Clock()
    folder.mkdir()
    with (
        open_store(folder / "store.db", clock_ms=clock) as store,
        open_downstream(folder / "ledger.db", clock_ms=clock, **abilities) as payments,
    ):
        store.create("order-42")
        hers = store.acquire("order-42", ADA, lease_ms=100).value  # live: she may go on
        clock.now_ms = 100  # … and stands still until it is over
        his = store.acquire("order-42", BOB, lease_ms=100).value
        answers = [payments.apply(charge(row.lease_version)) for row in (his, hers)]
    bob, ada = ("ok" if isinstance(answer, Ok) else answer.code for answer in answers)
    charges = len(observe_downstream(folder / "ledger.db").effects)
    return f"bob is answered {bob}, then ada {ada}; charges: {charges}"


with tempfile.TemporaryDirectory() as name:
    for kept in ((), ("keyed",), ("fenced",), ("fenced", "keyed")):
        everything = dict.fromkeys(("fenced", "keyed", "queryable"), False)
        found = race(Path(name) / "-".join(kept or ("opaque",)), **everything | dict.fromkeys(kept, True))
        print(f"{' and '.join(kept) or 'neither':16}  {found}")
