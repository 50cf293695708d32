"""An order waits for approval while its code is replaced: without a migration, and then with one."""

import tempfile
from pathlib import Path
from typing import Any

from fencepost.reference import (
    Approval,
    Context,
    Effect,
    Owner,
    Workflow,
    approve,
    events,
    open_downstream,
    open_store,
    recover,
    start,
    status,
    work,
)


def order(version: str) -> Workflow:
    """The workflow, as one version of the code has it."""
    made = Workflow("order", version=version)

    @made.step()
    def charge(ctx: Context) -> Effect:
        return Effect("payment", "charge", {"cents": ctx.input["cents"]})

    @made.step(after=("charge",), approval=Approval())
    def ship(ctx: Context) -> Effect:
        return Effect("parcel", "ship", {"to": ctx.input["to"]})

    return made


former, later, migrating = order("1"), order("2"), order("2")
migrating.migrates(former.definition, name="from 1 to 2")

with tempfile.TemporaryDirectory() as folder:
    clock = {"clock_ms": lambda: 0}
    with (
        open_store(Path(folder) / "orders.db", **clock) as store,
        open_downstream(Path(folder) / "ledger.db", **clock) as downstream,
    ):

        def me(who: str) -> dict[str, Any]:
            return {"owner": Owner(who, incarnation=0), "lease_ms": 100, "monotonic_ms": lambda: 0}

        def say(what: str) -> None:
            print(what, *status(store, "order-42").value.lines, sep="\n  ")

        wanted = {"cents": 500, "to": "Zoë"}
        start(store, former, source="shop", event_id="42", input=wanted, instance="order-42")
        work(store, downstream, workflows=[former], **me("worker-a"))
        say("worker-a, with version 1")
        approve(store, "order-42", step="ship", requester="eve")
        work(store, downstream, workflows=[later], **me("worker-b"))
        say("worker-b, with version 2")
        recover(store, downstream, instance="order-42", workflows=[migrating], **me("worker-c"))
        work(store, downstream, workflows=[migrating], **me("worker-c"))
        say("worker-c, with version 2 and the migration")
        print(*events(store, "order-42"), sep="\n")
