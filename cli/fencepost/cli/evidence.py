"""`evidence`: how each claim is known, in one table: proved, explored, seen to fail, held by SQLite.

Each part runs in a process of its own, as long as the budget leaves time for the others. What is not known
by the end of it is UNDETERMINED, and the exit code says so.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.checker.subject import DEFAULT, Subject, UsageError
from fencepost.checker.verdicts import (
    EXIT_INTERNAL,
    EXIT_OK,
    EXIT_REFUTED,
    EXIT_UNDETERMINED,
    Finding,
    Report,
    Verdict,
    worst,
)
from fencepost.cli.parts import in_the_table, protocol_of, report_from_json
from fencepost.cli.pins import named
from fencepost.model import FencepostError
from fencepost.properties import Claim

PROVED, EXPLORED, SWEEP, SQLITE = "proved", "explored", "sweep", "sqlite"
PARTS = (PROVED, EXPLORED, SWEEP, SQLITE)
"""The columns, in order."""

STARTED = (PROVED, EXPLORED, SQLITE, SWEEP)
"""The order in which parts are started: first what says something soon, last what uses all that is left."""

KEPT = {PROVED: 0.2, EXPLORED: 0.2, SQLITE: 0.16, SWEEP: 0.08}
"""Of the budget, what is kept for a part until it starts. All else is for the part that starts before it,
which seldom uses it: on a busy machine a proof takes long, and half of one is worth nothing."""

WORKING_SHARE = 0.92
"""The rest is for starting processes and for what the last step takes longer."""

GRACE_S = 3.0
"""All parts are ended when the whole budget is over by this much."""

OVERRUN = 1.3
"""A part may take so many times its share, if the whole budget allows it: what is begun is finished."""


class EvidenceError(FencepostError):
    """A part could not run because of a mistake in the user's file; `lines` are its message."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join(self.lines))


@dataclass(frozen=True, slots=True)
class Part:
    """One column: not started, running, or ended; the reports that it has sent so far, or why it failed."""

    name: str
    budget_s: float = 0.0
    running: bool = False
    progress: str = ""
    reports: tuple[Report, ...] = ()
    done: bool = False
    error: str = ""

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.done or bool(self.error)

    def findings(self) -> list[Finding]:
        """The findings of all its reports."""
        return [f for r in self.reports for f in r.findings]

    def report_of(self, finding: Finding) -> Report:
        """The report that a finding stands in."""
        return next(r for r in self.reports if any(f is finding for f in r.findings))


@dataclass(frozen=True, slots=True)
class Row:
    """One claim id of one protocol: its claims and what each part found; a silent part is not there."""

    model: str
    id: str
    claims: tuple[Claim, ...]
    findings: Mapping[str, tuple[Finding, ...]]

    def verdict(self, part: str) -> Verdict | None:
        """The worst verdict of a part on a claim, out of those that it can tell; None when it can tell none.

        An implementation that is looked at in two ways holds a claim if one of them says so and none refutes.
        """
        told = [settled(found) for found in self._by_claim(part)]
        return worst(told) if told else None

    def held_by(self, part: str) -> set[str]:
        """The methods by which each of the claims is held."""
        found = [{f.method for f in x if f.verdict is Verdict.HELD} for x in self._by_claim(part)]
        return set.intersection(*found) if found else set()

    def _by_claim(self, part: str) -> list[list[Finding]]:
        by_claim: dict[str, list[Finding]] = {}
        for finding in self.findings.get(part, ()):
            if "untellable" not in finding.details:
                by_claim.setdefault(finding.claim.name, []).append(finding)
        return list(by_claim.values())


def settled(findings: Iterable[Finding]) -> Verdict:
    """The verdict on one claim by a part that has looked at it in one way or two."""
    verdicts = [f.verdict for f in findings]
    if Verdict.HELD in verdicts and Verdict.REFUTED not in verdicts:
        return Verdict.HELD
    return worst(verdicts)


@dataclass(frozen=True, slots=True)
class EvidenceReport:
    """All that is known so far; complete when every part has ended."""

    parts: Mapping[str, Part]
    claims: Mapping[str, tuple[Claim, ...]]
    """By protocol."""
    budget_s: float
    seconds: float
    required: Verdict | None = None

    @property
    def rows(self) -> tuple[Row, ...]:
        """A row per claim id, and one per protocol that an implementation's steps are compared with."""
        by_id: dict[str, dict[str, list[Claim]]] = {}
        for model, claims in self.claims.items():
            for claim in claims:
                by_id.setdefault(model, {}).setdefault(claim.id, []).append(claim)
        for report in (r for p in self.parts.values() for r in p.reports):
            about = by_id.setdefault(protocol_of(report), {})
            known = {c.name for claims in about.values() for c in claims}
            about.update((f.claim.id, [f.claim]) for f in report.findings if f.claim.name not in known)
        return tuple(
            self._row(model, claim_id, claims)
            for model, found in by_id.items()
            for claim_id, claims in found.items()
        )

    def _row(self, model: str, claim_id: str, claims: list[Claim]) -> Row:
        """What the parts found about these claims of one protocol; another may have claims of these names."""
        names = {c.name for c in claims}
        found = {
            p.name: tuple(
                f for r in p.reports if protocol_of(r) == model for f in r.findings if f.claim.name in names
            )
            for p in self.parts.values()
        }
        return Row(model, claim_id, tuple(claims), {k: v for k, v in found.items() if v})

    def name_of(self, row: Row) -> str:
        """The id of a row; one that several protocols have is ``core:S25``, ``effects:S25``."""
        owners = {other.model for other in self.rows if other.id == row.id}
        return named(row.id, row.model, several=len(owners) > 1)

    def verdicts(self) -> dict[str, dict[str, str]]:
        """By claim id and part, the word."""
        return {
            self.name_of(row): {p: v.value for p in self.parts if (v := row.verdict(p)) is not None}
            for row in self.rows
        }

    def declared(self, part: str, row: Row) -> bool:
        """Whether the implementation of a part declares that the claims of a row do not hold."""
        reports = (r for r in self.parts[part].reports if protocol_of(r) == row.model)
        return any(row.id in r.figures.get("declared", ()) for r in reports)

    @property
    def exit_code(self) -> int:
        """0 when each claim is proved, bounded and held as far as it can be told; else 1, 3 or 4."""
        verdicts = [
            v
            for row in self.rows
            for p in self.parts
            if (v := row.verdict(p)) is not None and not (v is Verdict.REFUTED and self.declared(p, row))
        ]
        if Verdict.REFUTED in verdicts:
            return EXIT_REFUTED
        if any(p.error for p in self.parts.values()):
            return EXIT_INTERNAL
        unknown = not verdicts or not all(p.ended for p in self.parts.values())
        unknown = unknown or any(v in (Verdict.UNDETERMINED, Verdict.NOT_EXERCISED) for v in verdicts)
        if self.required is Verdict.PROVED:
            unknown = unknown or any(
                row.verdict(PROVED) is not Verdict.PROVED for row in self.rows if PROVED in row.findings
            )
        return EXIT_UNDETERMINED if unknown else EXIT_OK

    def as_json(self) -> dict[str, Any]:
        """The table as plain data, with the reports of all parts."""
        return {
            "command": "evidence",
            "exit_code": self.exit_code,
            "verdicts": self.verdicts(),
            "parts": {
                p.name: {"error": p.error, "reports": [r.as_json() for r in p.reports]}
                for p in self.parts.values()
            },
            "budget_seconds": self.budget_s,
            "seconds": round(self.seconds, 3),
        }


Update = Callable[[EvidenceReport], None]


def evidence(
    *,
    file: str = "",
    model: str = "",
    scope: str = "",
    on: Iterable[str] = (),
    off: Iterable[str] = (),
    seed: int = 0,
    budget_s: float = 60.0,
    memory_mb: int | None = None,
    jobs: int | None = None,
    required: Verdict | None = None,
    on_update: Update | None = None,
) -> EvidenceReport:
    """How each claim of the protocols with a place in the table is known, or of `model` alone.

    `file` adds claims of the user's; `budget_s` (seconds) is for all of it.

    `jobs` parts run at the same time: two unless the machine has one processor. `on_update` is given what is
    known so far, whenever more is. EvidenceError and UsageError speak about the user's file and names.
    """
    settings = {
        "file": file, "model": model, "scope": scope, "on": list(on), "off": list(off), "seed": seed,
        "memory_mb": memory_mb,
    }  # fmt: skip
    lanes = jobs if jobs is not None else min(2, os.cpu_count() or 1)
    return _Run(settings, budget_s, lanes, required, on_update).all()


def _subjects(settings: Mapping[str, Any]) -> list[Subject]:
    """What the table is about. A name that does not exist is reported from here, not by each part."""
    subjects = [one.subject for one in in_the_table(settings)]
    for subject in subjects:
        if subject.built_in is None or subject.protocol is not subject.built_in.protocol:
            raise UsageError(
                f"{subject.file} changes the protocol, and evidence is about the built-in ones and SQLite; "
                "use check and prove"
            )
    return subjects


@dataclass(slots=True)
class _Run:
    """The processes of one call of `evidence`."""

    settings: Mapping[str, Any]
    budget_s: float
    lanes: int
    required: Verdict | None
    on_update: Update | None
    started: float = field(default_factory=time.monotonic)
    parts: dict[str, Part] = field(default_factory=lambda: {name: Part(name) for name in PARTS})
    processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    deadlines: dict[str, float] = field(default_factory=dict)
    lines: queue.Queue[tuple[str, str]] = field(default_factory=queue.Queue)
    readers: list[threading.Thread] = field(default_factory=list)
    subjects: list[Subject] = field(default_factory=list)

    def all(self) -> EvidenceReport:
        """Run every part, some at the same time, each at most until its deadline."""
        try:
            self._start_what_fits()
            self.subjects = _subjects(self.settings)  # meanwhile the parts start
            while not all(p.ended for p in self.parts.values()):
                self._start_what_fits()
                self._wait()
                self._tell()
        finally:
            for process in self.processes.values():
                process.kill()
            for reader in self.readers:
                reader.join()
        return self.report()

    def report(self) -> EvidenceReport:
        """What is known by now."""
        claims = {s.model: tuple(s.chosen()) for s in self.subjects}
        seconds = time.monotonic() - self.started
        return EvidenceReport(dict(self.parts), claims, self.budget_s, seconds, self.required)

    def _tell(self) -> None:
        if self.on_update is not None:
            self.on_update(self.report())

    def _start_what_fits(self) -> None:
        for name in STARTED:
            part = self.parts.get(name)
            if part is not None and not part.ended and not part.running and len(self.processes) < self.lanes:
                self._start(name)

    def _start(self, name: str) -> None:
        budget_s = self._budget_s(name)
        settings = json.dumps({**self.settings, "budget_s": budget_s})
        # -P: nothing in the working directory may hide a module. What can be imported here can be there too.
        command = [sys.executable, "-P", "-m", "fencepost.cli.parts", name, settings]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        process = subprocess.Popen(  # noqa: S603  # our own interpreter and module
            command, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=environment
        )
        self.processes[name] = process
        own, whole = time.monotonic() + budget_s * OVERRUN, self.started + self.budget_s
        self.deadlines[name] = min(own, whole) + GRACE_S
        self.parts[name] = replace(self.parts[name], running=True, budget_s=budget_s)
        reader = threading.Thread(target=self._read, args=(name, process), daemon=True)
        self.readers.append(reader)
        reader.start()

    def _budget_s(self, name: str) -> float:
        """All that is left but for what is kept for later ones, which is spread over the lanes."""
        left = (self.started + self.budget_s - time.monotonic()) * WORKING_SHARE
        waiting = [n for n in STARTED if (p := self.parts.get(n)) and not (p.ended or p.running or n == name)]
        at_once = max(0, self.lanes - len(self.processes) - 1)
        behind = sum(KEPT[n] for n in waiting[at_once:]) / self.lanes
        return max(1.0, left - behind * self.budget_s * WORKING_SHARE)

    def _read(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None  # noqa: S101  # it was asked for
        with process.stdout as lines:
            for line in lines:
                self.lines.put((name, line))
        process.wait()
        self.lines.put((name, ""))

    def _wait(self) -> None:
        """Take in one line, or end a part whose time is over."""
        try:
            name, line = self.lines.get(timeout=0.1)
        except queue.Empty:
            for late in [n for n in self.processes if time.monotonic() > self.deadlines[n]]:
                self._end(late, self._unfinished(late), late=True)
            return
        if self.parts[name].ended:
            return  # the end of a process that has said all
        if not line:
            code = self.processes[name].returncode
            self._end(name, replace(self.parts[name], error=f"its process ended with code {code}"))
            return
        told = json.loads(line)
        if "progress" in told:
            self.parts[name] = replace(self.parts[name], progress=told["progress"])
        elif "report" in told:
            known = {s.model: s.claims.claims.values() for s in self.subjects}
            report = report_from_json(told["report"], known)
            self.parts[name] = replace(self.parts[name], reports=(*self.parts[name].reports, report))
        elif "done" in told:
            self._end(name, replace(self.parts[name], done=True))
        elif told["users"]:
            raise EvidenceError(told["error"])
        else:
            self._end(name, replace(self.parts[name], error=" ".join(told["error"])))

    def _end(self, name: str, part: Part, *, late: bool = False) -> None:
        process = self.processes.pop(name)
        if late:
            process.kill()
        self.parts[name] = replace(part, running=False)

    def _unfinished(self, name: str) -> Part:
        """A part that was ended: what it has not said is not known."""
        part = self.parts[name]
        why = f"it did not end within its {part.budget_s:.0f} s"
        said = {(protocol_of(r), f.claim.name) for r in part.reports for f in r.findings}
        # What an implementation does not have is for itself to say.
        about = [s for s in self.subjects if name != SQLITE or s.model == DEFAULT]
        reports = list(part.reports)
        for subject in about:
            findings = tuple(
                Finding(c, Verdict.UNDETERMINED, name, "", why, None, part.budget_s)
                for c in subject.chosen()
                if (subject.model, c.name) not in said
            )
            if findings:
                figures = {"bound": "not finished", "seconds": part.budget_s}
                reports.append(Report(name, subject.name, findings, figures, (why,)))
        return replace(part, reports=tuple(reports), done=True)
