"""What a check may say, and how sure it is: verdicts, findings, reports and exit codes.

A verdict never says more than was done. *Holds* in any form is printed with its bound, counts and seconds;
what ran out, was skipped, or whose premise was never exercised is UNDETERMINED.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from fencepost.checker.traces import Trace
from fencepost.properties import Claim


class Verdict(Enum):
    """One word on a claim. The order is from worst to best."""

    REFUTED = "REFUTED"
    """A concrete run breaks it; the run was replayed before it is shown."""
    UNDETERMINED = "UNDETERMINED"
    """Not known, and why: out of budget, the solver gave up, or the premise was not exercised."""
    NOT_EXERCISED = "NOT EXERCISED"
    """An implementation offers nothing by which the claim could be tested."""
    CAN_FAIL = "CAN FAIL"
    """Of a claim in a sweep: some change of the model breaks it, so that it holds says something."""
    HELD = "HELD"
    """Of an implementation: no run broke it, within the bound that is named."""
    BOUNDED = "BOUNDED"
    """It holds in every state of a scope; the bounds, and whether they were reached, are named."""
    PROVED = "PROVED"
    """By induction, for any number of workers and unbounded versions."""


EXIT_OK, EXIT_REFUTED, EXIT_USAGE, EXIT_UNDETERMINED, EXIT_INTERNAL = 0, 1, 2, 3, 4

_RANK = list(Verdict)


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one claim by one method, with what it rests on."""

    claim: Claim
    verdict: Verdict
    method: str
    bound: str
    why: str = ""
    trace: Trace | None = None
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The finding as plain data."""
        return {
            "id": self.claim.id,
            "claim": self.claim.name,
            "sentence": self.claim.sentence,
            "kind": self.claim.kind.value,
            "verdict": self.verdict.value,
            "method": self.method,
            "bound": self.bound,
            "why": self.why,
            "seconds": round(self.seconds, 3),
            "trace": self.trace.as_json() if self.trace is not None else None,
            **dict(self.details),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What one command found: a finding per claim, and the figures of the run."""

    command: str
    subject: str
    findings: tuple[Finding, ...]
    figures: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    required: Verdict | None = None

    def of(self, claim: str) -> Finding:
        """The worst finding on a claim, by its id or name."""
        found = [f for f in self.findings if claim in (f.claim.id, f.claim.name)]
        if not found:
            raise KeyError(f"no finding on {claim!r} in this report; it has {sorted(self.verdicts())}")
        return min(found, key=lambda f: _RANK.index(f.verdict))

    def verdicts(self) -> dict[str, Verdict]:
        """The verdict by claim id: of several predicates under one id, the worst."""
        found: dict[str, Verdict] = {}
        for f in self.findings:
            found[f.claim.id] = worst((f.verdict, found.get(f.claim.id, f.verdict)))
        return found

    @property
    def refuted(self) -> tuple[Finding, ...]:
        """The findings that refute."""
        return tuple(f for f in self.findings if f.verdict is Verdict.REFUTED)

    @property
    def exit_code(self) -> int:
        """0 if all is as required, 1 if something is refuted, 3 if something is not as sure as required."""
        verdicts = [f.verdict for f in self.findings]
        if Verdict.REFUTED in verdicts:
            return EXIT_REFUTED
        if not verdicts or any(v in (Verdict.UNDETERMINED, Verdict.NOT_EXERCISED) for v in verdicts):
            return EXIT_UNDETERMINED
        if self.required is Verdict.PROVED and any(v is not Verdict.PROVED for v in verdicts):
            return EXIT_UNDETERMINED
        return EXIT_OK

    def as_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "command": self.command,
            "subject": self.subject,
            "exit_code": self.exit_code,
            "verdicts": {k: v.value for k, v in self.verdicts().items()},
            "findings": [f.as_json() for f in self.findings],
            "figures": dict(self.figures),
            "notes": list(self.notes),
        }


def worst_code(codes: Iterable[int]) -> int:
    """The exit code of several reports: refuted, then a mistake of ours, then not known, then all right."""
    order = (EXIT_REFUTED, EXIT_INTERNAL, EXIT_USAGE, EXIT_UNDETERMINED, EXIT_OK)
    return min(codes, key=order.index, default=EXIT_UNDETERMINED)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts."""
    return min(verdicts, key=_RANK.index)
