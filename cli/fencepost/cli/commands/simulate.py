"""`fencepost simulate`: random runs."""

from __future__ import annotations

import click

from fencepost.cli import options
from fencepost.cli.progress import progress


@click.command("simulate", short_help="Try random runs of the model.")
@options.CLAIMS
@options.SUBJECT
@options.SCOPE
@click.option("--runs", type=click.IntRange(1), default=300, show_default=True, help="How many runs.")
@click.option(
    "--steps", type=click.IntRange(1), default=40, show_default=True, help="Steps of a run, at most."
)
@options.SEED
@options.budget(None, "Seconds for all runs")
@options.EXPECT
@options.JSON
@options.DEBUG
def command(
    *,
    claims: tuple[str, ...],
    file: str,
    variant: str,
    scope_text: str,
    on: tuple[str, ...],
    off: tuple[str, ...],
    runs: int,
    steps: int,
    seed: int,
    budget_s: float | None,
    expect: str,
    as_json: bool,
) -> int:
    """Try random runs of the model.

    A run that breaks a claim refutes it; runs that break nothing leave it UNDETERMINED, whatever their
    number. The same seed gives the same runs. Useful where a scope is too large to check.
    """
    from fencepost.checker.samples import simulate
    from fencepost.checker.subject import load
    from fencepost.cli.reports import finish, seconds, subject_line
    from fencepost.cli.scopes import chosen_scope, described

    subject = load(file, variant=variant)
    scope = chosen_scope(subject, scope_text, on=on, off=off)
    with progress("simulating") as tell:
        report = simulate(
            subject,
            scope=scope,
            claims=claims,
            runs=runs,
            steps=steps,
            seed=seed,
            budget_s=budget_s,
            on_progress=tell,
        )
    figures = report.figures
    cost = f"{figures['runs']:,} runs, {figures['steps']:,} steps, seed {seed}; {seconds(report)}"
    return finish(
        report,
        subject.protocol,
        heading=[subject_line(subject), *described(scope)],
        footing=[cost],
        as_json=as_json,
        expect=expect,
    )
