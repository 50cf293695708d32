"""What `verify` reports: a verdict per claim, the evidence for it, and how a person reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.subject import core_subject
from fencepost.checker.traces import Trace, TraceStep, table
from fencepost.checker.verdicts import EXIT_OK, EXIT_REFUTED, EXIT_UNDETERMINED, Finding, Report, Verdict
from fencepost.conformance.compare import show_answer
from fencepost.conformance.runs import LOCK_STEP, SavedRun, saved_run
from fencepost.conformance.session import Plan, Step

UNTELLABLE = "untellable"
"""Marks a finding on a claim about which no run of any implementation can say anything."""


@dataclass(frozen=True, slots=True)
class Conformance(Report):
    """The report of `verify`. `declared` are the claims declared not to hold, with the reasons."""

    declared: Mapping[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 if the results equal the declaration, 1 if something else is refuted, 3 if not known.

        A claim about which no run of any implementation can say anything does not count. A claim that is
        declared not to hold must be seen to break; until it is, the declaration is not known to be right.
        """
        if any(f.claim.id not in self.declared for f in self.refuted):
            return EXIT_REFUTED
        known = {Verdict.REFUTED, Verdict.HELD}
        if not self.findings or any(
            f.verdict not in known and UNTELLABLE not in f.details for f in self.findings
        ):
            return EXIT_UNDETERMINED
        unseen = {f.claim.id for f in self.findings} & set(self.declared) - {f.claim.id for f in self.refuted}
        return EXIT_UNDETERMINED if unseen else EXIT_OK

    def lines(self) -> list[str]:
        """The report as a person reads it: a line per claim, then each refutation with its run."""
        made = [
            f"{f.verdict.value:<14} {f.claim.id:<9} {f.claim.name}" + (f"  ({f.why})" if f.why else "")
            for f in self.findings
        ]
        made += [f"{self.subject}: {next((f.bound for f in self.findings), '')}", *self.notes]
        for f in self.findings:
            if f.trace is not None:
                made += ["", *finding_lines(f)]
        return made


def refutation(
    plan: Plan, claim_name: str, steps: Sequence[Step], *, unsteady: str
) -> tuple[Trace, dict[str, Any]]:
    """The trace of a run that broke a claim, and with it the run itself and both sides' answers."""
    run = saved_run(plan, steps, claim_name)
    details: dict[str, Any] = {
        "run": run.as_json(),
        "difference": run.difference,
        "answers": [[s.label, s.now_ms, s.expected, s.answered, show_answer(s.told)] for s in steps],
    }
    lines = [f"first difference: {run.difference}"] if run.difference else []
    if unsteady:
        details["unsteady"] = unsteady
        lines.append(f"the implementation is not deterministic: {unsteady}")
    return _trace(plan, run, steps, lines), details


def _trace(plan: Plan, run: SavedRun, steps: Sequence[Step], lines: Sequence[str]) -> Trace:
    runner = plan.oracle.runner
    codes = initial = runner.codes(runner.initial())
    made = []
    for step in steps:
        if step.transition is not None:
            codes = runner.codes(step.transition.state)
        made.append(TraceStep(step.move.action, step.move.arguments, step.label, step.answered, codes))
    source = {"adapter": run.adapter, "variant": plan.adapter.model_variant, "run": run.token}
    return Trace(
        run.adapter, run.breaks, run.scope, run.fingerprint, initial, tuple(made), tuple(lines), source
    )


def finding_lines(finding: Finding) -> list[str]:
    """A finding with its run: the cells that change, both sides' answers, and how to make the run again."""
    trace = finding.trace
    claim = finding.claim
    declared = f", as declared: {finding.details['declared']}" if "declared" in finding.details else ""
    lines = [
        f"{finding.verdict.value}  {claim.id} {claim.name}{declared}",
        f"         {claim.sentence}",
        f"         {finding.method} · {finding.bound}",
        f"         {finding.why}",
    ]
    if trace is None:
        return lines
    protocol = core_subject(trace.source["variant"]).protocol
    lines += ["", *(f"  {line}".rstrip() for line in table(trace, protocol)), "", *answers_table(finding), ""]
    lines += [f"  {line}" for line in trace.explanation]
    if claim.name != LOCK_STEP.name:
        lines.append(f"  broken in the last step: {claim.id} {claim.name}: {claim.sentence}")
    lines.append(f"  again  replay_run({trace.source['run'] + '.json'!r}, adapter), once the run is saved")
    return lines


def answers_table(finding: Finding) -> list[str]:
    """What the model and what the implementation answered, with a star where they differ."""
    rows = [("step", "call", "at ms", "model", "implementation")]
    for number, (label, now_ms, expected, answered, shown) in enumerate(
        finding.details.get("answers", ()), 1
    ):
        star = "" if expected == answered else " *"
        model, there = ("-", "-") if shown == "-" else (expected, shown)
        rows.append((str(number), label, str(now_ms), model, there + star))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
