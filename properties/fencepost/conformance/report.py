"""What `verify` reports: a verdict per claim, the evidence for it, and how a person reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import TextWrapper
from typing import Any

from fencepost.checker.traces import Trace, TraceStep, table
from fencepost.checker.verdicts import EXIT_OK, EXIT_REFUTED, EXIT_UNDETERMINED, Finding, Report, Verdict
from fencepost.conformance.compare import show_answer
from fencepost.conformance.moves import Step
from fencepost.conformance.plans import Plan
from fencepost.conformance.runs import LOCK_STEP, SavedRun, saved_run
from fencepost.conformance.subjects import subject_of

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


SUMMED = ("runs", "steps", "goals", "seconds", "at_the_very_end", "cut_short")
"""The figures that several reports have together."""


def joined(reports: Sequence[Conformance]) -> Conformance:
    """Several reports on one adapter as one."""
    if len(reports) == 1:
        return reports[0]
    figures: dict[str, Any] = {name: sum(r.figures.get(name, 0) for r in reports) for name in SUMMED}
    figures["parts"] = [dict(r.figures) for r in reports]
    notes = tuple(dict.fromkeys(note for r in reports for note in r.notes))
    first = reports[0]
    findings = tuple(f for r in reports for f in r.findings)
    return Conformance(first.command, first.subject, findings, figures, notes, None, first.declared)


def completed(report: Conformance, second: Conformance) -> Conformance:
    """A report with the findings of a second one, on some of its claims, in the place of its own."""
    later = {finding.claim.name: finding for finding in second.findings}
    findings = tuple(later.get(f.claim.name, f) for f in report.findings)
    sums = {name: report.figures[name] + second.figures[name] for name in SUMMED}
    where = f"{', '.join(later)}: {second.figures['bound']}"
    notes = tuple(dict.fromkeys((*report.notes, *second.notes, where)))
    return replace(report, findings=findings, figures={**report.figures, **sums}, notes=notes)


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
    source["protocol"] = run.protocol
    return Trace(
        run.adapter, run.breaks, run.scope, run.fingerprint, initial, tuple(made), tuple(lines), source
    )


WIDTH = 110
"""Sentences in a report that is saved, as in a test's failure, are not wider."""


def finding_lines(finding: Finding, *, again: Sequence[str] = ()) -> list[str]:
    """A finding with its run: the cells that change, both sides' answers, and how to make the run again.

    `again` are the lines that say so, for a run that has been saved; then long sentences are wrapped.
    """
    trace = finding.trace
    claim = finding.claim
    declared = f", as declared: {finding.details['declared']}" if "declared" in finding.details else ""
    facts = (claim.sentence, f"{finding.method} · {finding.bound}", finding.why)
    lines = [f"{finding.verdict.value}  {claim.id} {claim.name}{declared}"]
    lines += [line for fact in facts for line in _wrapped(fact, " " * 9, wraps=bool(again))]
    if trace is None:
        return lines
    protocol = subject_of(trace.source.get("protocol", ""), trace.source["variant"]).protocol
    lines += ["", *(f"  {line}".rstrip() for line in table(trace, protocol)), ""]
    lines += [*(statements_table(finding) if "tape" in finding.details else answers_table(finding)), ""]
    sentences = list(trace.explanation)
    if claim.name != LOCK_STEP.name:
        sentences.append(f"broken in the last step: {claim.id} {claim.name}: {claim.sentence}")
    lines += [line for sentence in sentences for line in _wrapped(sentence, "  ", wraps=bool(again))]
    if again:
        return [*lines, "", *(f"  {line}" for line in again)]
    kind, call = ("tape", "replay_tape") if "tape" in finding.details else ("run", "replay_run")
    saved = "it" if kind == "tape" else "the run"
    return [*lines, f"  again  {call}({trace.source[kind] + '.json'!r}, adapter), once {saved} is saved"]


def _wrapped(text: str, indent: str, *, wraps: bool) -> list[str]:
    if not wraps:
        return [indent + text]
    made = TextWrapper(WIDTH, indent, f"{indent}  ", break_long_words=False, break_on_hyphens=False)
    return made.wrap(text) or [indent]


def statements_table(finding: Finding) -> list[str]:
    """The statements in the order in which they were run, and what each changed."""
    rows = finding.details.get("statements", ())
    return in_columns(rows) if rows else []


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def answers_table(finding: Finding) -> list[str]:
    """What the model and what the implementation answered, with a star where they differ."""
    rows = [("step", "call", "at ms", "model", "implementation")]
    for number, (label, now_ms, expected, answered, shown) in enumerate(
        finding.details.get("answers", ()), 1
    ):
        star = "" if expected == answered else " *"
        model, there = ("-", "-") if shown == "-" else (expected, shown)
        rows.append((str(number), label, str(now_ms), model, there + star))
    return in_columns(rows)
