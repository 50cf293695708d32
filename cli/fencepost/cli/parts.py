"""One part of `evidence` in a process of its own: what to run comes as JSON, results go back as lines.

A process of its own, started anew, keeps solver and compiler apart, uses another core, and can be ended when
its time is over. Nothing here may print to standard output but the lines.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from fencepost.checker.subject import DEFAULT
from fencepost.checker.traces import from_json
from fencepost.checker.verdicts import Finding, Report, Verdict
from fencepost.cli.errors import describe, is_the_users
from fencepost.cli.progress import shared
from fencepost.cli.selection import Selected, selected
from fencepost.properties import Claim

PROTOCOL = "protocol"
"""In the figures of a report about an implementation: the protocol that it is run beside."""

INTERVAL_S = 0.2
"""How often a part says how far it is."""

Tell = Callable[[object], None]
_FIXED = {"id", "claim", "sentence", "kind", "verdict", "method", "bound", "why", "seconds", "trace"}


def in_the_table(settings: Mapping[str, Any]) -> list[Selected]:
    """What `evidence` is about."""
    return selected(
        file=settings["file"],
        model=settings["model"],
        scope_text=settings["scope"],
        on=settings["on"],
        off=settings["off"],
        for_evidence=True,
    )


def run_part(name: str, settings: Mapping[str, Any], tell: Tell | None = None) -> Iterator[Report]:
    """Run one part, protocol after protocol: ``proved``, ``explored``, ``sweep``, or an implementation."""
    chosen = in_the_table(settings)
    if name in _MODEL_PARTS:
        for one, budget_s in shared(chosen, settings["budget_s"]):
            yield _MODEL_PARTS[name](one, {**settings, "budget_s": budget_s}, tell)
    else:
        yield from _implementation(name, chosen, settings, tell)


def _proved(one: Selected, settings: Mapping[str, Any], tell: Tell | None) -> Report:
    from fencepost.checker.proofs import prove

    return prove(
        one.subject,
        budget_s=settings["budget_s"],
        seed=settings["seed"],
        counterexamples=False,
        on_progress=tell,
    )


def _explored(one: Selected, settings: Mapping[str, Any], tell: Tell | None) -> Report:
    from fencepost.checker.explore import check

    report = check(
        one.subject,
        scope=one.scopes,
        budget_s=settings["budget_s"] * SEARCHING,
        memory_mb=settings["memory_mb"],
        on_progress=tell,
    )
    return _with_figures(report, switches=[", ".join(sorted(s.switches)) or "none" for s in one.scopes])


def _swept(one: Selected, settings: Mapping[str, Any], tell: Tell | None) -> Report:
    from fencepost.checker.teeth import teeth

    # Until each claim was broken once, by a change or a variant; `fencepost sweep` looks at all changes.
    return teeth(
        one.subject,
        scopes=one.subject.sweep_scopes[:1],
        kinds=(),
        enough=1,
        budget_s=settings["budget_s"],
        on_progress=tell,
    )


_MODEL_PARTS: Mapping[str, Callable[[Selected, Mapping[str, Any], Tell | None], Report]] = {
    "proved": _proved,
    "explored": _explored,
    "sweep": _swept,
}

SEARCHING = 0.85
"""The rest of a search's budget is for compiling, which nothing can end half-way."""

STATEMENTS_SHARE = 0.5
"""Of the budget of an implementation: the rest is for whole calls, which find more in less time."""


def _implementation(
    name: str, chosen: Iterable[Selected], settings: Mapping[str, Any], tell: Tell | None
) -> Iterator[Report]:
    """Runs of whole calls of each protocol that the implementation has, then its single statements."""
    from fencepost.cli.adapters import load_adapter, subjects_for
    from fencepost.conformance.verify import GRADE, verify

    adapter = load_adapter(name)
    started = time.monotonic()
    budget_s, seed = settings["budget_s"], settings["seed"]
    subjects = subjects_for(adapter, [one.subject for one in chosen])
    statements = _verify_statements()
    for_calls = budget_s * (1 - STATEMENTS_SHARE) if statements is not None else budget_s
    for subject, share_s in shared(subjects, for_calls):
        report = verify(adapter, seed=seed, budget_s=share_s, subject=subject, on_progress=tell)
        figures = {PROTOCOL: subject.model, "declared": sorted(getattr(report, "declared", {}))}
        yield _with_figures(report, grade=GRADE, **figures)
    for subject in subjects:
        if statements is not None and subject.model == DEFAULT:
            left = max(1.0, budget_s - (time.monotonic() - started))
            # All interleavings; `fencepost verify --statements` also has faults at each statement.
            found = statements(
                adapter, budget_s=left, faults=False, seed=seed, subject=subject, on_progress=tell
            )
            grade = found.findings[0].method if found.findings else ""
            figures = {PROTOCOL: subject.model, "declared": sorted(getattr(found, "declared", {}))}
            yield _with_figures(found, grade=grade, **figures)


def _verify_statements() -> Callable[..., Report] | None:
    """The check of single statements, where this version has it."""
    try:
        from fencepost.conformance.statements import verify_statements
    except ImportError:
        return None
    return verify_statements


def _with_figures(report: Report, **more: Any) -> Report:
    figures = {**report.figures, **more}
    return Report(report.command, report.subject, report.findings, figures, report.notes, report.required)


def protocol_of(report: Report) -> str:
    """The protocol that the claims of a report are about; of an implementation's, the subject is itself."""
    return str(report.figures.get(PROTOCOL, report.subject))


def report_from_json(data: Mapping[str, Any], claims: Mapping[str, Iterable[Claim]]) -> Report:
    """A report as a part sent it, with the claims (by protocol) that it speaks of.

    The comparison of steps is one more.
    """
    about = data["figures"].get(PROTOCOL, data["subject"])
    known = {c.name: c for c in claims.get(about, ())}
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
        for report in run_part(sys.argv[1], json.loads(sys.argv[2]), tell):
            send(report=report.as_json())
    except BrokenPipeError:
        return  # the process that asked is gone
    except BaseException as error:  # noqa: BLE001  # told to the process that asked
        send(error=list(describe(error)), users=is_the_users(error))
    else:
        send(done=True)


if __name__ == "__main__":
    main()
