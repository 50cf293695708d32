"""`evidence`: how each claim is known, in one table: proved, explored in a scope, held by SQLite.

Each part runs in a process of its own and has a share of the budget. What is not known by the end of it is
UNDETERMINED, and the exit code says so.
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

from fencepost.checker.subject import Subject, UsageError, load
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
from fencepost.cli.parts import claims_of, report_from_json
from fencepost.model import FencepostError
from fencepost.properties import Claim

PROVED, EXPLORED, SQLITE = "proved", "explored", "sqlite"
PARTS = (PROVED, EXPLORED, SQLITE)
"""The columns, in the order in which their parts are started."""

SHARES = {PROVED: 15, EXPLORED: 15, SQLITE: 25}
"""Of the budget, in proportion; what a part leaves over goes to those that come after it."""

WORKING_SHARE = 0.92
"""The rest is for starting processes and for what the last step takes longer."""

GRACE_S = 3.0
"""A part that is this much over its budget is ended: it is stuck in one step."""


class EvidenceError(FencepostError):
    """A part could not run because of a mistake in the user's file; `lines` are its message."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join(self.lines))


@dataclass(frozen=True, slots=True)
class Part:
    """One column: not started, running, ended with a report, or failed."""

    name: str
    budget_s: float = 0.0
    running: bool = False
    progress: str = ""
    report: Report | None = None
    error: str = ""

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.report is not None or bool(self.error)


@dataclass(frozen=True, slots=True)
class Row:
    """One claim id: its claims and what each part found; a part that says nothing about it is not there."""

    id: str
    claims: tuple[Claim, ...]
    findings: Mapping[str, tuple[Finding, ...]]

    def verdict(self, part: str) -> Verdict | None:
        """The worst verdict of a part, out of those that it can tell; None when it can tell nothing."""
        told = [f.verdict for f in self.findings.get(part, ()) if "untellable" not in f.details]
        return worst(told) if told else None


@dataclass(frozen=True, slots=True)
class EvidenceReport:
    """All that is known so far; complete when every part has ended."""

    parts: Mapping[str, Part]
    claims: tuple[Claim, ...]
    budget_s: float
    seconds: float
    required: Verdict | None = None

    @property
    def rows(self) -> tuple[Row, ...]:
        """A row per claim id, and one for the comparison of an implementation's steps with the model's."""
        by_id: dict[str, list[Claim]] = {}
        for claim in self.claims:
            by_id.setdefault(claim.id, []).append(claim)
        for finding in self._findings():
            if finding.claim.id not in by_id:
                by_id[finding.claim.id] = [finding.claim]
        return tuple(
            Row(i, tuple(claims), {p.name: found for p in self.parts.values() if (found := self._of(p, i))})
            for i, claims in by_id.items()
        )

    def _findings(self) -> list[Finding]:
        return [f for p in self.parts.values() if p.report is not None for f in p.report.findings]

    @staticmethod
    def _of(part: Part, claim_id: str) -> tuple[Finding, ...]:
        return () if part.report is None else tuple(f for f in part.report.findings if f.claim.id == claim_id)

    def verdicts(self) -> dict[str, dict[str, str]]:
        """By claim id and part, the word."""
        return {
            row.id: {p: v.value for p in self.parts if (v := row.verdict(p)) is not None} for row in self.rows
        }

    def declared(self, part: str) -> frozenset[str]:
        """The claims that the implementation of a part declares not to hold."""
        report = self.parts[part].report
        return frozenset(report.figures.get("declared", ()) if report is not None else ())

    @property
    def exit_code(self) -> int:
        """0 when each claim is proved, bounded and held as far as it can be told; else 1, 3 or 4."""
        verdicts = [
            v
            for row in self.rows
            for p in self.parts
            if (v := row.verdict(p)) is not None and not (v is Verdict.REFUTED and row.id in self.declared(p))
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
                p.name: {"error": p.error, "report": p.report.as_json() if p.report is not None else None}
                for p in self.parts.values()
            },
            "budget_seconds": self.budget_s,
            "seconds": round(self.seconds, 3),
        }


Update = Callable[[EvidenceReport], None]


def evidence(
    *,
    file: str = "",
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
    """How each claim is known. `file` adds claims of the user's; `budget_s` (seconds) is for all of it.

    `jobs` parts run at the same time: two unless the machine has one processor. `on_update` is given what is
    known so far, whenever more is. EvidenceError and UsageError speak about the user's file and names.
    """
    settings = {
        "file": file, "scope": scope, "on": list(on), "off": list(off), "seed": seed, "memory_mb": memory_mb,
    }  # fmt: skip
    lanes = jobs if jobs is not None else min(2, os.cpu_count() or 1)
    return _Run(settings, budget_s, lanes, required, on_update).all()


def _subject(settings: Mapping[str, Any]) -> Subject:
    """What the table is about. A name that does not exist is reported from here, not by each part."""
    from fencepost.cli.scopes import chosen_scope
    from fencepost.model.core import core

    subject = load(settings["file"])
    if subject.protocol is not core:
        raise UsageError(
            f"{subject.file} changes the protocol, and evidence is about the core and SQLite; "
            "use check and prove"
        )
    chosen_scope(subject, settings["scope"], on=settings["on"], off=settings["off"])
    return subject


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
    subject: Subject | None = None

    def all(self) -> EvidenceReport:
        """Run every part, some at the same time, each at most until its deadline."""
        try:
            self._start_what_fits()
            self.subject = _subject(self.settings)  # meanwhile the parts start
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
        claims = tuple(self.subject.chosen()) if self.subject is not None else ()
        seconds = time.monotonic() - self.started
        return EvidenceReport(dict(self.parts), claims, self.budget_s, seconds, self.required)

    def _tell(self) -> None:
        if self.on_update is not None:
            self.on_update(self.report())

    def _start_what_fits(self) -> None:
        for name, part in self.parts.items():
            if not part.ended and not part.running and len(self.processes) < self.lanes:
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
        own, whole = time.monotonic() + budget_s, self.started + self.budget_s
        self.deadlines[name] = min(own, whole) + GRACE_S
        self.parts[name] = replace(self.parts[name], running=True, budget_s=budget_s)
        reader = threading.Thread(target=self._read, args=(name, process), daemon=True)
        self.readers.append(reader)
        reader.start()

    def _budget_s(self, name: str) -> float:
        """The share of a part in what is left: of all parts that have to wait for it, in its lane."""
        left = (self.started + self.budget_s - time.monotonic()) * WORKING_SHARE
        waiting = [n for n, p in self.parts.items() if not p.ended and not p.running and n != name]
        free = self.lanes - len(self.processes) - 1
        behind = waiting if free <= 0 else waiting[free:]
        if free <= 0 and self.lanes > 1 and name == EXPLORED and self.processes:
            behind = []  # it has a lane to itself: the others follow one another in the other lane
        return max(1.0, left * SHARES[name] / (SHARES[name] + sum(SHARES[n] for n in behind)))

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
            assert self.subject is not None  # noqa: S101  # loaded before the first line is read
            report = report_from_json(told["report"], claims_of(self.subject))
            self._end(name, replace(self.parts[name], report=report))
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
        assert self.subject is not None  # noqa: S101  # loaded before a part can be late
        part = self.parts[name]
        why = f"it did not end within its {part.budget_s:.0f} s"
        findings = tuple(
            Finding(c, Verdict.UNDETERMINED, name, "", why, None, part.budget_s)
            for c in self.subject.chosen()
        )
        figures = {"bound": "nothing was finished", "seconds": part.budget_s}
        return replace(part, report=Report(name, self.subject.name, findings, figures, (why,)))
