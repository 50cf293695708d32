"""`fencepost evidence`: how each claim is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fencepost.cli import options

if TYPE_CHECKING:
    from fencepost.cli.evidence import EvidenceReport


@click.command("evidence", short_help="One table: each claim and how it is known.")
@options.with_file("A Python file with claims of your own.")
@options.SCOPE
@options.SEED
@options.budget(60.0, "Seconds for all parts together")
@options.MEMORY
@options.jobs(None, "How many parts run at the same time: two, or one where there is one processor.")
@options.REQUIRE
@options.EXPECT
@options.JSON
@options.DEBUG
def command(
    *,
    file: str,
    scope_text: str,
    on: tuple[str, ...],
    off: tuple[str, ...],
    seed: int,
    budget_s: float,
    memory_mb: int | None,
    jobs: int | None,
    require: str | None,
    expect: str,
    as_json: bool,
) -> int:
    """One table: each claim and how it is known.

    The model's claims are proved for all sizes and explored in a scope, and the SQLite reference is run
    beside the model. A part that does not finish within its share of the budget leaves its claims
    UNDETERMINED.
    """
    from fencepost.checker.verdicts import EXIT_OK, EXIT_REFUTED, Verdict
    from fencepost.cli.evidence import evidence
    from fencepost.cli.evidence_table import progress_line, table_lines
    from fencepost.cli.live import Live
    from fencepost.cli.pins import read_pins
    from fencepost.cli.reports import json_of

    pins = read_pins(expect) if expect else None
    live = Live()
    known = 0

    def update(report: EvidenceReport) -> None:
        nonlocal known
        ended = sum(p.ended for p in report.parts.values())
        live.draw([*table_lines(report), "", progress_line(report)], at_once=ended > known)
        known = ended

    try:
        report = evidence(
            file=file,
            scope=scope_text,
            on=on,
            off=off,
            seed=seed,
            budget_s=budget_s,
            memory_mb=memory_mb,
            jobs=jobs,
            required=Verdict[require.upper()] if require else None,
            on_update=update if live.active and not as_json else None,
        )
    finally:
        live.clear()
    different = _differences(report, pins) if pins is not None else []
    code = report.exit_code if pins is None else EXIT_REFUTED if different else EXIT_OK
    if as_json:
        more = {} if pins is None else {"differences": different}
        click.echo(json_of({**report.as_json(), "exit_code": code, **more}))
        return code
    _print(report)
    if pins is not None:
        click.echo("\n".join([f"not as {expect} says:", *different]) if different else f"as {expect} says")
    return code


def _print(report: EvidenceReport) -> None:
    from fencepost.cli.evidence_table import conclusion, note_lines, table_lines
    from fencepost.cli.reports import save_traces, violation
    from fencepost.cli.runs_of_implementations import save_runs
    from fencepost.cli.text import echo
    from fencepost.model.core import core

    echo(table_lines(report))
    for part in report.parts.values():
        if part.report is None:
            continue
        implementation = "runs" in part.report.figures
        tokens = save_runs(part.report, part.name) if implementation else save_traces(part.report)
        for finding in part.report.findings:
            if finding.trace is not None:
                click.echo()
                echo(violation(finding, core, part.report.subject, tokens.get(finding.claim.name, "")))
    click.echo()
    echo(note_lines(report))
    echo([conclusion(report)])


def _differences(report: EvidenceReport, pins: dict[str, object]) -> list[str]:
    """One line for each cell that is not as pinned; a word pins every part that says something."""
    lines = []
    for claim, found in report.verdicts().items():
        pin = pins.get(claim)
        for part, word in found.items():
            wanted = pin.get(part) if isinstance(pin, dict) else pin
            if word != wanted:
                lines.append(
                    f"  {claim}, {part}: {word}, " + (f"pinned as {wanted}" if wanted else "not pinned")
                )
    return lines
