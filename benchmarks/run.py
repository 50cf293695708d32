"""Speed, side by side and as ratios, in one run: ``make bench``, or ``python benchmarks/run.py --help``.

Figures depend on the machine and on what else it does; only ratios of one run say something elsewhere. State
counts do not depend on anything: they are compared with what other tools give for the same models, and a
difference is an error.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from models import lease as lease_model
from models import two_phase as two_phase_model
from schedules import lines_of, schedules
from workflows import lines_of_reference, reference

TWO_PHASE = {2: 56, 3: 288, 5: 8_832, 7: 296_448}
"""Distinct states by number of resource managers, as other tools count them."""
LEASE = {(2, 3): (18_092, 95_016, 26), (3, 4): (991_060, 7_503_211, 34), (3, 5): (7_825_092, 66_979_867, 42)}
"""(workers, versions): distinct states, transitions, levels, as other tools count them."""


def search(model: Any, claims: tuple[Callable[..., Any], ...]) -> Any:
    """One compiled search with all claims checked."""
    from fencepost.checker.native import StateClaim, explore

    return explore(model, claims=[StateClaim(c.__name__, model.state_claim(c)) for c in claims])


def counts() -> list[str]:
    """Search every counted model; SystemExit at the first count that differs."""
    from fencepost.model.ground import ground_model

    lines = []
    for managers, wanted in TWO_PHASE.items():
        found = search(ground_model(*two_phase_model.two_phase(managers)), two_phase_model.CLAIMS)
        if found.states != wanted or found.hits:
            sys.exit(
                f"two-phase commit, {managers} managers: {found.states:,} states, others count {wanted:,}"
            )
        lines.append(f"two-phase commit, {managers} managers: {found.states:,} states, as others count")
    for (workers, versions), expected in LEASE.items():
        found = search(ground_model(*lease_model.lease(workers, versions)), lease_model.CLAIMS)
        if (found.states, found.transitions, found.depth) != expected or found.hits:
            sys.exit(f"lease ({workers},{versions}): {found.states:,} states, others count {expected[0]:,}")
        lines.append(
            f"lease ({workers},{versions}): {found.states:,} states, {found.transitions:,} transitions, "
            f"depth {found.depth}, as others count"
        )
    return lines


def rates(runs: int) -> dict[str, float]:
    """Distinct states per second: compiled at (3,4), plain reading at (2,3), in turn; medians of `runs`."""
    from fencepost.checker.plain import search as plain
    from fencepost.model.ground import ground_model
    from fencepost.properties import Claims

    big, small = ground_model(*lease_model.lease(3, 4)), lease_model.lease(2, 3)
    claims = Claims("benchmark")
    for predicate in lease_model.CLAIMS:
        claims.always()(predicate)
    compiled, interpreted, compiling, per_state = [], [], [], []
    for _ in range(runs):
        found = search(big, lease_model.CLAIMS)
        compiled.append(found.states / found.seconds)
        compiling.append(found.compile_seconds)
        per_state.append(found.bytes_per_state)
        slow = plain(*small, claims.promises())
        interpreted.append(slow.states / slow.seconds)
    return {
        "compiled_states_per_s": statistics.median(compiled),
        "plain_states_per_s": statistics.median(interpreted),
        "ratio": statistics.median(c / p for c, p in zip(compiled, interpreted, strict=True)),
        "compile_s": statistics.median(compiling),
        "bytes_per_state": statistics.median(per_state),
    }


def proofs(runs: int) -> dict[str, float]:
    """Seconds to prove S1, and all claims of the core, for all sizes."""
    from fencepost.checker.proofs import prove
    from fencepost.checker.subject import core_subject

    subject = core_subject()
    one = [prove(subject, claims=["S1"]).figures["seconds"] for _ in range(runs)]
    every = prove(subject)
    if any(v.value != "PROVED" for v in every.verdicts().values()):
        sys.exit(f"not everything is proved: {every.verdicts()}")
    return {"S1_s": statistics.median(one), "all_s": every.figures["seconds"]}


def processes(runs: int, baselines: list[str]) -> list[str]:
    """Whole-process seconds of the command line's help, and of every baseline given, in turn."""
    commands = {"fencepost --help": [sys.executable, "-m", "fencepost.cli", "--help"]}
    for given in baselines:
        name, _, command = given.partition("=")
        if not command:
            sys.exit(f"--baseline {given!r}: write NAME=COMMAND, for example spin='./pan -b'")
        commands[name] = shlex.split(command)
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            seconds[name].append(time.perf_counter() - started)
    return [
        f"{name}: {statistics.median(s):.3f} s (whole process, median of {runs})"
        for name, s in seconds.items()
    ]


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3, help="repetitions; medians are printed (default: 3)")
    parser.add_argument(
        "--counts-only", action="store_true", help="compare the state counts and measure nothing"
    )
    parser.add_argument(
        "--baseline", action="append", default=[], metavar="NAME=COMMAND",
        help="another checker's command on the same model, timed as a whole process in the same run",
    )  # fmt: skip
    parser.add_argument("--directory", default=".", help="where the disk is that schedules use (default: .)")
    parser.add_argument(
        "--instances", type=int, default=10_000, help="unfinished instances to recover (default: 10000)"
    )
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    chosen = parser.parse_args()
    lines = counts()
    figures: dict[str, Any] = {}
    if not chosen.counts_only:
        figures = {
            "search": rates(chosen.runs),
            "proof": proofs(chosen.runs),
            "schedules": schedules(chosen.runs, chosen.directory),
            "reference": reference(chosen.runs, chosen.directory, chosen.instances),
        }
        s, p = figures["search"], figures["proof"]
        million = s["compiled_states_per_s"] / 1e6
        lines += [
            f"compiled search, lease (3,4), one core: {million:.2f} million distinct states/s",
            f"  {s['bytes_per_state']:.1f} bytes a state, compiled in {s['compile_s']:.2f} s",
            f"plain reading, lease (2,3): {s['plain_states_per_s']:,.0f} distinct states/s",
            f"compiled / plain: {s['ratio']:.0f}",
            f"S1 proved for all sizes in {p['S1_s']:.2f} s, all claims of the core in {p['all_s']:.2f} s",
            *lines_of(figures["schedules"]),
            *lines_of_reference(figures["reference"]),
            *processes(chosen.runs, chosen.baseline),
        ]
        if not chosen.baseline:
            lines.append("no other checker was compared: none was given (--baseline NAME=COMMAND)")
    if chosen.json:
        print(
            json.dumps(
                {"machine": platform.processor() or platform.machine(), "lines": lines, **figures}, indent=1
            )
        )
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
