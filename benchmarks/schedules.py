"""Schedules of single statements per second: the SQLite reference on a disk and on a RAM disk, in one run."""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path

BUDGET_S = 10.0
"""Seconds of one measurement, after the classes of states were found once."""


def schedules(runs: int, directory: str) -> dict[str, float]:
    """Schedules per second by place and number of processes, in turn; medians of `runs`.

    `directory` is on the disk to be measured. The RAM disk is left out where there is none.
    """
    from fencepost.conformance import verify_statements
    from fencepost.reference.adapter import RAM_DISK, make_sqlite

    with tempfile.TemporaryDirectory(prefix="fencepost-", dir=directory) as folder:
        places = {"disk": Path(folder)}
        if RAM_DISK.is_dir():
            places["ram_disk"] = RAM_DISK
        verify_statements(make_sqlite(), claims=["lock-step"], budget_s=1)  # finds what there is to run
        found: dict[str, list[float]] = {}
        for _ in range(runs):
            for name, place in places.items():
                for jobs in sorted({1, min(2, os.cpu_count() or 1)}):
                    report = verify_statements(make_sqlite(directory=place), budget_s=BUDGET_S, jobs=jobs)
                    rate = report.figures["schedules"] / report.figures["schedule_seconds"]
                    found.setdefault(f"{name}_{jobs}", []).append(rate)
    return {name: statistics.median(rates) for name, rates in found.items()}


def lines_of(figures: dict[str, float]) -> list[str]:
    """The figures as a person reads them."""
    made = [
        f"schedules of statements, {name.rsplit('_', 1)[0].replace('_', ' ')}, "
        f"{name.rsplit('_', 1)[1]} process(es): {rate:,.0f}/s"
        for name, rate in figures.items()
    ]
    if "disk_2" in figures:
        made.append(f"  two processes / one: {figures['disk_2'] / figures['disk_1']:.2f}")
    return made
