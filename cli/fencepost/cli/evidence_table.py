"""The table of `evidence` as text, while it fills and when it is complete."""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.checker.verdicts import Verdict
from fencepost.cli.evidence import EXPLORED, PARTS, PROVED, EvidenceReport, Part, Row
from fencepost.cli.text import columns, wrapped

_COLUMNS = {PROVED: "model: proved", EXPLORED: "model: explored"}
_GOOD = (Verdict.PROVED, Verdict.BOUNDED, Verdict.HELD)


def table_lines(report: EvidenceReport) -> list[str]:
    """The table: a row per claim id, a column per part."""
    heading = ("id", "claim", *(_COLUMNS.get(p, p) for p in PARTS))
    rows = [(_id(r), _name(r), *(_cell(r, report.parts[p]) for p in PARTS)) for r in report.rows]
    return columns(rows, heading)


def _id(row: Row) -> str:
    return row.id if row.id != row.claims[0].name else ""


def _name(row: Row) -> str:
    more = len(row.claims) - 1
    return row.claims[0].name + (f" and {more} more" if more else "")


def _cell(row: Row, part: Part) -> str:
    if part.error:
        return "failed"
    if part.report is None:
        return "…"
    verdict = row.verdict(part.name)
    if verdict is None:
        return "-"
    if verdict is Verdict.PROVED:
        return "PROVED, all sizes"
    if verdict is Verdict.BOUNDED:
        return f"BOUNDED, {part.report.figures['scope']}"
    if verdict is Verdict.HELD:
        return "HELD, grade O"
    return str(verdict.value)


def progress_line(report: EvidenceReport) -> str:
    """What is being done now."""
    running = [p for p in report.parts.values() if p.running]
    return "  ".join(f"{p.name}: {p.progress or 'starting'}" for p in running)


def note_lines(report: EvidenceReport) -> Iterator[str]:
    """The bounds, each written out once, and why what is not known is not."""
    labelled = [(name, text) for name in PARTS if (text := _grounds(report.parts[name]))]
    yield from columns(labelled)
    for row in report.rows:
        for name in PARTS:
            yield from _reasons(row, report.parts[name], row.id in report.declared(name))


def _grounds(part: Part) -> str:
    if part.error:
        return part.error
    if part.report is None:
        return ""
    figures = part.report.figures
    took = f"{figures.get('seconds', 0.0):.1f} s"
    if "obligations" in figures:
        return f"for {figures['bound']}: {figures['obligations']:,} obligations by induction; {took}"
    if "states" in figures:
        cut = (
            f"{figures['cut']:,} transitions cut at the bounds"
            if figures["cut"]
            else "closed below all bounds"
        )
        counts = (
            f"{figures['states']:,} states, {figures['transitions']:,} transitions, depth {figures['depth']}"
        )
        bound = f"scope {figures['scope']}: {figures['bound']}; on: {figures['switches']}"
        return f"{bound}; {counts}, {cut}; {took}"
    if "runs" in figures:
        return f"{figures['grade']}: {figures['bound']}; seed {figures['seed']}; {took}"
    return f"{figures['bound']}; {took}"


def _reasons(row: Row, part: Part, declared: bool) -> Iterator[str]:  # noqa: FBT001  # one call, just above
    for finding in row.findings.get(part.name, ()):
        if finding.verdict in _GOOD:
            continue
        label = f"{_id(row)} {finding.claim.name}".strip()
        word = "-" if "untellable" in finding.details else finding.verdict.value
        also = " (declared not to hold)" if declared else ""
        yield from wrapped(f"{part.name}: {label}: {word}: {finding.why}{also}", "  ")


def conclusion(report: EvidenceReport) -> str:
    """The last line."""
    words = {
        0: "every claim is as required, within these bounds",
        1: "a claim is refuted",
        3: "not every claim is known",
        4: "a part failed by a mistake in fencepost; please report it",
    }
    return f"{words[report.exit_code]}; {report.seconds:.1f} s"
