"""`fencepost evidence`: how each claim is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fencepost.cli import options

if TYPE_CHECKING:
    from fencepost.cli.evidence import EvidenceReport


@click.command("evidence", short_help="One table: each claim and how it is known.")
@options.with_file("A Python file with claims of your own.")
@options.MODEL
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
    model: str,
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

    Each claim is proved for all sizes and explored in scopes; single changes of the model show that it can
    fail; and the SQLite reference is run beside the model. A part that does not finish while the
    budget leaves time for the others leaves its claims UNDETERMINED.
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
            model=model,
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
    others = [] if file or model else _others(report)
    different = _differences(report, pins) if pins is not None else []
    code = report.exit_code if pins is None else EXIT_REFUTED if different else EXIT_OK
    if as_json:
        more = {} if pins is None else {"differences": different}
        click.echo(json_of({**report.as_json(), "exit_code": code, **more}))
        return code
    _print(report, others)
    if pins is not None:
        click.echo("\n".join([f"not as {expect} says:", *different]) if different else f"as {expect} says")
    return code


def _others(report: EvidenceReport) -> list[str]:
    """The built-in protocols that have a table of their own."""
    from fencepost.checker.subject import BUILT_IN

    return [name for name in BUILT_IN if name not in report.claims]


def _print(report: EvidenceReport, others: list[str]) -> None:
    from fencepost.checker.subject import BUILT_IN, DEFAULT
    from fencepost.cli.evidence import SQLITE
    from fencepost.cli.evidence_table import conclusion, note_lines, table_lines
    from fencepost.cli.reports import save_traces, violation
    from fencepost.cli.runs_of_implementations import save_runs
    from fencepost.cli.text import echo

    echo(table_lines(report))
    for part in report.parts.values():
        for each in part.reports:
            tokens = save_runs(each, part.name) if part.name == SQLITE else save_traces(each)
            for finding in each.findings:
                if finding.trace is not None:
                    about = finding.trace.source.get("protocol", DEFAULT)
                    protocol = BUILT_IN[about if about in BUILT_IN else DEFAULT].protocol
                    click.echo()
                    echo(violation(finding, protocol, each.subject, tokens.get(finding.claim.name, "")))
    click.echo()
    echo(note_lines(report))
    if others:
        echo([f"with a table of their own, by --model: {', '.join(others)}"])
    echo([conclusion(report)])


def _differences(report: EvidenceReport, pins: dict[str, object]) -> list[str]:
    """One line for each cell that is not as pinned; a word pins every part that says something."""
    from fencepost.cli.pins import pin_of

    lines = []
    for claim, found in report.verdicts().items():
        pin = pin_of(pins, claim)
        for part, word in found.items():
            wanted = pin.get(part) if isinstance(pin, dict) else pin
            if word != wanted:
                lines.append(
                    f"  {claim}, {part}: {word}, " + (f"pinned as {wanted}" if wanted else "not pinned")
                )
    return lines
