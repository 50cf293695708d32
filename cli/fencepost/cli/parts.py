"""One part of `evidence` in a process of its own: what to run comes as JSON, results go back as lines.

A process of its own, started anew, keeps solver and compiler apart, uses another core, and can be ended when
its time is over. Nothing here may print to standard output but the lines.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fencepost.checker.subject import Subject, load
from fencepost.checker.traces import from_json
from fencepost.checker.verdicts import Finding, Report, Verdict
from fencepost.cli.errors import describe, is_the_users
from fencepost.properties import Claim

INTERVAL_S = 0.2
"""How often a part says how far it is."""

Tell = Callable[[object], None]
_FIXED = {"id", "claim", "sentence", "kind", "verdict", "method", "bound", "why", "seconds", "trace"}


def run_part(name: str, settings: Mapping[str, Any], tell: Tell | None = None) -> Report:
    """Run one part: ``proved``, ``explored`` or ``sqlite``."""
    subject = load(settings["file"])
    budget_s = settings["budget_s"]
    if name == "proved":
        from fencepost.checker.proofs import prove

        return prove(
            subject, budget_s=budget_s, seed=settings["seed"], counterexamples=False, on_progress=tell
        )
    if name == "explored":
        from fencepost.checker.explore import check
        from fencepost.cli.scopes import chosen_scope

        scope = chosen_scope(subject, settings["scope"], on=settings["on"], off=settings["off"])
        report = check(
            subject, scope=scope, budget_s=budget_s, memory_mb=settings["memory_mb"], on_progress=tell
        )
        switches = ", ".join(sorted(scope.switches)) or "none"
        return _with_figures(report, switches=switches)
    from fencepost.cli.adapters import load_adapter
    from fencepost.conformance.verify import GRADE, verify

    adapter = load_adapter(name)
    subject = load(settings["file"], variant=adapter.model_variant)
    report = verify(adapter, seed=settings["seed"], budget_s=budget_s, subject=subject, on_progress=tell)
    return _with_figures(report, grade=GRADE, declared=sorted(getattr(report, "declared", {})))


def _with_figures(report: Report, **more: Any) -> Report:
    figures = {**report.figures, **more}
    return Report(report.command, report.subject, report.findings, figures, report.notes, report.required)


def report_from_json(data: Mapping[str, Any], claims: Iterable[Claim]) -> Report:
    """A report as a part sent it, with the claims that it speaks of; the comparison of steps is one more."""
    known = {c.name: c for c in claims}
    findings = tuple(_finding(f, known) for f in data["findings"])
    return Report(data["command"], data["subject"], findings, data["figures"], tuple(data["notes"]))


def _finding(data: Mapping[str, Any], known: Mapping[str, Claim]) -> Finding:
    claim = known.get(data["claim"])
    if claim is None:
        from fencepost.conformance import LOCK_STEP

        claim = LOCK_STEP
    trace = from_json(data["trace"], "a part of evidence") if data["trace"] else None
    details = {k: v for k, v in data.items() if k not in _FIXED}
    return Finding(
        claim,
        Verdict(data["verdict"]),
        data["method"],
        data["bound"],
        data["why"],
        trace,
        data["seconds"],
        details,
    )


def claims_of(subject: Subject) -> list[Claim]:
    """The claims that a report about the subject may speak of."""
    return list(subject.claims.claims.values())


def main() -> None:
    """Read what to do from the arguments, do it, and write what came of it."""
    lines = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a user's own print must not get between the lines
    last = 0.0

    def send(**line: Any) -> None:
        lines.write(json.dumps(line) + "\n")
        lines.flush()

    def tell(what: object) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= INTERVAL_S:
            last = now
            send(progress=str(what))

    try:
        made = run_part(sys.argv[1], json.loads(sys.argv[2]), tell).as_json()
    except BrokenPipeError:
        return  # the process that asked is gone
    except BaseException as error:  # noqa: BLE001  # told to the process that asked
        send(error=list(describe(error)), users=is_the_users(error))
    else:
        send(report=made)


if __name__ == "__main__":
    main()
