"""`fencepost simulate`: random runs."""

from __future__ import annotations

import click

from fencepost.cli import options
from fencepost.cli.progress import progress, shared


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
    model: str,
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
    from fencepost.cli.reports import Told, finish, seconds, subject_line
    from fencepost.cli.scopes import described
    from fencepost.cli.selection import selected

    chosen = selected(
        file=file, variant=variant, model=model, claims=claims, scope_text=scope_text, on=on, off=off
    )
    told = []
    for one, share_s in shared(chosen, budget_s):
        scope = one.scopes[0]
        with progress(f"simulating {one.subject.model}") as tell:
            report = simulate(
                one.subject,
                scope=scope,
                claims=one.claims,
                runs=runs,
                steps=steps,
                seed=seed,
                budget_s=share_s,
                on_progress=tell,
            )
        figures = report.figures
        cost = f"{figures['runs']:,} runs, {figures['steps']:,} steps, seed {seed}; {seconds(report)}"
        heading = [subject_line(one.subject), *described(scope)]
        told.append(Told(report, one.subject.protocol, heading, [cost]))
    return finish(told, as_json=as_json, expect=expect)
