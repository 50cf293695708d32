"""One request, sent twice: what *once* is worth where the record is kept with the effect, or in memory."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from fencepost.reference import (
    BROKEN_DOWNSTREAMS,
    DOWNSTREAM_STATEMENTS,
    Downstream,
    DownstreamStatements,
    EffectRequest,
    canonical_json,
    fingerprint,
    observe_downstream,
    open_downstream,
    step_key,
)

WANTED = {"cents": 500}
CHARGE = EffectRequest(
    instance="order-42",
    resource="payment",
    operation="charge",
    parameters=canonical_json(WANTED),
    fingerprint=fingerprint("charge", "payment", 1, WANTED),
    key=step_key("order-42", "charge", "payment", 1),
    token=1,
)


def ledger(folder: Path, statements: DownstreamStatements) -> Downstream:
    """The payment service, started anew on its file."""
    return open_downstream(folder / "ledger.db", clock_ms=lambda: 0, statements=statements)


def same_process(folder: Path, statements: DownstreamStatements) -> None:
    """The answer to the first request is lost; it is sent again."""
    with ledger(folder, statements) as payments:
        payments.apply(CHARGE)
        payments.apply(CHARGE)


def after_a_restart(folder: Path, statements: DownstreamStatements) -> None:
    """The payment service restarts between the two."""
    for _ in range(2):
        with ledger(folder, statements) as payments:
            payments.apply(CHARGE)


def charges(name: str, run: Callable[[Path, DownstreamStatements], None]) -> int:
    """How many charges took place, which only the ledger can say."""
    statements = BROKEN_DOWNSTREAMS.get(name, DOWNSTREAM_STATEMENTS)
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), statements)
        return len(observe_downstream(Path(folder) / "ledger.db").effects)


for name in ("record with the effect", "record-in-memory"):
    found = {run.__name__: charges(name, run) for run in (same_process, after_a_restart)}
    print(f"{name:24}", *(f"{how}: {number}" for how, number in found.items()), sep="  ")
