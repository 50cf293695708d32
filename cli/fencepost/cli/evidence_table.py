"""The table of `evidence` as text, while it fills and when it is complete."""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.checker.verdicts import Finding, Report, Verdict
from fencepost.cli.evidence import EXPLORED, PARTS, SQLITE, SWEEP, EvidenceReport, Part, Row
from fencepost.cli.parts import protocol_of
from fencepost.cli.text import columns, wrapped

_GOOD = (Verdict.PROVED, Verdict.BOUNDED, Verdict.CAN_FAIL, Verdict.HELD)


def table_lines(report: EvidenceReport) -> list[str]:
    """The table: a row per claim id, a column per part, each protocol under its name."""
    heading = ("id", "claim", *PARTS)
    rows = report.rows
    table = columns(
        [(_id(r), _name(r), *(_cell(r, report.parts[p]) for p in PARTS)) for r in rows], heading, wrap=False
    )
    if len(report.claims) < 2:
        return table
    lines, before = table[:1], None
    for row, line in zip(rows, table[1:], strict=True):
        if row.model != before:
            lines += ["", row.model]
            before = row.model
        lines.append(line)
    return lines


def _id(row: Row) -> str:
    return row.id if row.id != row.claims[0].name else ""


def _name(row: Row) -> str:
    more = len(row.claims) - 1
    return row.claims[0].name + (f" and {more} more" if more else "")


def _cell(row: Row, part: Part) -> str:
    if part.error:
        return "failed"
    verdict = row.verdict(part.name)
    if verdict is None:
        said = part.done or (row.findings.get(part.name) and not part.running)
        return "-" if said else "…"
    found = row.findings[part.name]
    if verdict is Verdict.PROVED:
        return "PROVED, some faults off" if any(c.needs_off for c in row.claims) else "PROVED, all sizes"
    if verdict is Verdict.BOUNDED:
        return f"BOUNDED, {_scopes(part, found)}"
    if verdict is Verdict.CAN_FAIL:
        return _broken(found)
    if verdict is Verdict.HELD:
        return f"HELD, grade {_grade(row, part.name)}"
    return str(verdict.value)


def _scopes(part: Part, found: tuple[Finding, ...]) -> str:
    """The scopes in which claims were exercised; where there are many, how many."""
    names = dict.fromkeys(
        n for f in found for n in f.details.get("exercised_in", [part.report_of(f).figures.get("scope", "")])
    )
    return next(iter(names)) if len(names) == 1 else f"{len(names)} scopes"


def _broken(found: tuple[Finding, ...]) -> str:
    """By how many of the changes that were tried; of several claims, the one that fewest broke."""
    told = [f for f in found if "untellable" not in f.details]
    least = min(told, key=lambda f: len(f.details["broken_by"]))
    if not least.details["broken_by"]:
        return "by a variant"
    return f"by {len(least.details['broken_by'])} of {least.details['tried']}"


def _grade(row: Row, part: str) -> str:
    """S where each claim was held statement by statement, O where it was for whole calls."""
    return "S" if any("grade S" in method for method in row.held_by(part)) else "O"


def progress_line(report: EvidenceReport) -> str:
    """What is being done now."""
    running = [p for p in report.parts.values() if p.running]
    return "  ".join(f"{p.name}: {p.progress or 'starting'}" for p in running)


def note_lines(report: EvidenceReport) -> Iterator[str]:
    """The bounds, each written out once, and why what is not known is not."""
    several = len(report.claims) > 1
    labelled = []
    for name in PARTS:
        part = report.parts[name]
        texts = (
            [(part.error, "")] if part.error else [(_grounds(name, r), protocol_of(r)) for r in part.reports]
        )
        for text, subject in texts:
            about = f"{subject}: " if several and subject in report.claims else ""
            labelled.append((name if text is texts[0][0] else "", about + text))
    yield from columns(labelled)
    reasons: dict[tuple[str, str], list[str]] = {}
    for name in PARTS:
        for row in report.rows:
            for label, reason in _reasons(row, name, declared=report.declared(name, row)):
                labels = reasons.setdefault((name, reason), [])
                labels += [label] * (label not in labels)
    for (name, reason), labels in reasons.items():
        yield from wrapped(f"{name}: {', '.join(labels)}: {reason}", "  ")


def _grounds(name: str, report: Report) -> str:
    figures = report.figures
    took = f"{figures.get('seconds', 0.0):.1f} s"
    if "obligations" in figures:
        return f"for {figures['bound']}: {figures['obligations']:,} obligations by induction; {took}"
    if name == EXPLORED and "states" in figures:
        scopes = figures.get("scopes", [figures])
        each = [_scope_grounds(f, on) for f, on in zip(scopes, figures["switches"], strict=False)]
        return f"{'; '.join(each)}; {took}"
    if name == SWEEP and "changes" in figures:
        broke = "one has" if figures["enough"] == 1 else f"{figures['enough']} have"
        return (
            f"{figures['tried']} of {figures['changes']} single changes tried, and variants, on each claim "
            f"until {broke} broken it; {took}"
        )
    if name == SQLITE and "grade" in figures:
        return f"{figures['grade']}: {figures['bound']}; seed {figures['seed']}; {took}"
    return f"{figures['bound']}; {took}"


def _scope_grounds(figures: dict[str, object], on: str) -> str:
    cut = f"{figures['cut']:,} transitions cut at the bounds" if figures["cut"] else "closed below all bounds"
    counts = f"{figures['states']:,} states, {figures['transitions']:,} transitions, depth {figures['depth']}"
    return f"scope {figures['scope']}: {figures['bound']}; on: {on}; {counts}, {cut}"


def _reasons(row: Row, part: str, *, declared: bool) -> Iterator[tuple[str, str]]:
    """What is not known about the claims of a row, or only with faults off: the claim, and the reason."""
    for finding in row.findings.get(part, ()):
        label = f"{_id(row)} {finding.claim.name}".strip()
        if finding.verdict is Verdict.PROVED and (off := finding.claim.needs_off):
            yield label, f"PROVED with {', '.join(off)} off"
        if finding.verdict in _GOOD:
            continue
        word = "-" if "untellable" in finding.details else finding.verdict.value
        also = " (declared not to hold)" if declared else ""
        held = part == SQLITE and row.verdict(part) is Verdict.HELD
        yield label, (f"{finding.method}: " if held else "") + f"{word}: {finding.why}{also}"


def conclusion(report: EvidenceReport) -> str:
    """The last line."""
    words = {
        0: "every claim is as required, within these bounds",
        1: "a claim is refuted",
        3: "not every claim is known",
        4: "a part failed by a mistake in fencepost; please report it",
    }
    return f"{words[report.exit_code]}; {report.seconds:.1f} s"
