"""The reference: commits beside bare SQLite, workers by number of processes, recovery of many instances."""

from __future__ import annotations

import multiprocessing
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

COMMITS = 2_000
"""Commits of one measurement."""

INSTANCES = 240
"""Instances of three steps that the workers share."""

MOST_PROCESSES = 4
LEASE_MS = 600_000


def clock_ms() -> int:
    """Milliseconds of the machine's clock."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Milliseconds that never step back."""
    return time.monotonic_ns() // 1_000_000


def orders() -> Any:
    """A workflow of three steps in a row, each with an effect."""
    from fencepost.reference import Effect, Workflow

    order = Workflow("order", version="1")

    @order.step()
    def charge(ctx: Any) -> Any:
        return Effect("payment", "charge", {"cents": ctx.input["cents"]})

    @order.step(after=("charge",))
    def reserve(_: Any) -> Any:
        return Effect("stock", "reserve", {})

    @order.step(after=("reserve",))
    def ship(_: Any) -> Any:
        return Effect("parcel", "ship", {})

    del charge, reserve, ship
    return order


def commits(file: Path, synchronous: str) -> float:
    """Commits per second of one owner, each with an entry in the event log."""
    from fencepost.reference import Commit, Ok, Owner, open_store

    owner = Owner("worker", 1)
    with open_store(file, clock_ms=clock_ms, synchronous=synchronous) as store:
        store.create("instance")
        store.acquire("instance", owner, lease_ms=LEASE_MS)
        started = time.perf_counter()
        for n in range(COMMITS):
            made = store.commit(Commit("instance", owner, f"commit-{n}", n, 1, "event"))
            assert isinstance(made, Ok)
        return COMMITS / (time.perf_counter() - started)


def bare(file: Path, synchronous: str) -> float:
    """The same writes by plain statements on the same tables, with the same settings; no answer is made."""
    from fencepost.reference import Owner, open_store

    with open_store(file, clock_ms=clock_ms, synchronous=synchronous) as store:
        store.create("instance")
        store.acquire("instance", Owner("worker", 1), lease_ms=LEASE_MS)
    connection = sqlite3.connect(file, isolation_level=None)
    for pragma in (f"synchronous = {synchronous}", "foreign_keys = on", "temp_store = memory"):
        connection.execute(f"pragma {pragma}")
    started = time.perf_counter()
    for n in range(COMMITS):
        now_ms = clock_ms()
        connection.execute("begin immediate")
        connection.execute("update clock set now_ms = max(now_ms, ?)", (now_ms,))
        connection.execute(
            "update instances set state_version = ? where instance = 'instance' and state_version = ?",
            (n + 1, n),
        )
        connection.execute(
            "insert into event_log values ('instance', ?, 1, 'worker', 1, ?, 'event', '', ?)",
            (n + 1, f"commit-{n}", now_ms),
        )
        connection.execute("commit")
    rate = COMMITS / (time.perf_counter() - started)
    connection.close()
    return rate


def run_worker_process(folder: str, number: int, begin: Any) -> None:
    """One worker process: waits for the others, then works until nothing is left."""
    from fencepost.reference import Owner, open_downstream, open_store, work

    with (
        open_store(f"{folder}/store.db", clock_ms=clock_ms, synchronous="NORMAL") as store,
        open_downstream(f"{folder}/ledger.db", clock_ms=clock_ms, synchronous="NORMAL") as downstream,
    ):
        begin.wait()
        work(
            store,
            downstream,
            owner=Owner(f"worker-{number}", 1),
            workflows=[orders()],
            lease_ms=LEASE_MS,
            monotonic_ms=monotonic_ms,
        )


def workers(folder: Path, processes: int) -> float:
    """Instances of three steps per second, by so many worker processes on one store and one ledger."""
    from fencepost.reference import open_downstream, open_store, start

    with open_store(folder / "store.db", clock_ms=clock_ms, synchronous="NORMAL") as store:
        for n in range(INSTANCES):
            start(store, orders(), source="shop", event_id=str(n), input={"cents": n})
        open_downstream(folder / "ledger.db", clock_ms=clock_ms).close()
        spawn = multiprocessing.get_context("spawn")
        begin = spawn.Barrier(processes + 1)
        made = [
            spawn.Process(target=run_worker_process, args=(str(folder), n, begin)) for n in range(processes)
        ]
        for process in made:
            process.start()
        begin.wait()
        started = time.perf_counter()
        for process in made:
            process.join()
        seconds = time.perf_counter() - started
        assert store.open_instances() == ()
    return INSTANCES / seconds


class Died(BaseException):
    """The worker dies at a point."""


def recovery(folder: Path, instances: int) -> dict[str, float]:
    """Seconds in which one worker settles and finishes instances whose former owner died before it sent."""
    from fencepost.reference import Owner, open_downstream, open_store, run_instance, start, work

    now = [0]
    order = orders()

    def dies(point: str) -> None:
        if point == "sending":
            raise Died

    with (
        open_store(folder / "store.db", clock_ms=lambda: now[0], synchronous="NORMAL") as store,
        open_downstream(folder / "ledger.db", clock_ms=clock_ms, synchronous="NORMAL") as downstream,
    ):
        for n in range(instances):
            name = f"order-{n:06}"
            start(store, order, source="shop", event_id=str(n), input={"cents": n}, instance=name)
            how: dict[str, Any] = {"workflows": [order], "lease_ms": 1_000, "monotonic_ms": lambda: 0}
            try:
                run_instance(store, downstream, owner=Owner("first", 1), instance=name, at=dies, **how)
            except Died:
                continue
            raise AssertionError("the worker did not come to the point at which it dies")
        now[0] += 1_000  # the leases are over
        started = time.perf_counter()
        store.workable()
        found = time.perf_counter() - started
        work(store, downstream, owner=Owner("second", 1), **how)
        seconds = time.perf_counter() - started
        assert store.open_instances() == ()
    return {"instances": instances, "first_page_s": found, "all_s": seconds}


def reference(runs: int, directory: str, instances: int) -> dict[str, Any]:
    """All figures; medians of `runs`, the two kinds of commits in turn. `directory` is on the disk."""
    figures: dict[str, Any] = {"workers": {}}
    with tempfile.TemporaryDirectory(prefix="fencepost-", dir=directory) as name:
        folder = Path(name)
        for synchronous in ("FULL", "OFF"):
            ours, plain = [], []
            for n in range(runs):
                ours.append(commits(folder / f"ours-{synchronous}-{n}.db", synchronous))
                plain.append(bare(folder / f"bare-{synchronous}-{n}.db", synchronous))
            figures[f"commits_{synchronous}"] = statistics.median(ours)
            figures[f"bare_{synchronous}"] = statistics.median(plain)
            ratios = [a / b for a, b in zip(ours, plain, strict=True)]
            figures[f"ratio_{synchronous}"] = statistics.median(ratios)
        for processes in (1, 2, MOST_PROCESSES):
            rates = []
            for n in range(runs):
                place = folder / f"workers-{processes}-{n}"
                place.mkdir()
                rates.append(workers(place, processes))
            figures["workers"][processes] = statistics.median(rates)
        place = folder / "recovery"
        place.mkdir()
        figures["recovery"] = recovery(place, instances)
    return figures


def lines_of_reference(figures: dict[str, Any]) -> list[str]:
    """The figures as a person reads them."""
    lines = [
        f"commits, synchronous {s}: {figures[f'commits_{s}']:,.0f}/s; "
        f"bare SQLite / reference: {1 / figures[f'ratio_{s}']:.2f}"
        for s in ("FULL", "OFF")
    ]
    lines += [
        f"instances of three steps, {n} worker process(es): {rate:,.1f}/s"
        for n, rate in figures["workers"].items()
    ]
    found = figures["recovery"]
    lines.append(
        f"recovery of {found['instances']:,} unfinished instances by one worker: {found['all_s']:.1f} s, "
        f"the first page of them in {1000 * found['first_page_s']:.1f} ms"
    )
    return lines


if __name__ == "__main__":
    print("\n".join(lines_of_reference(reference(3, ".", 10_000))))
