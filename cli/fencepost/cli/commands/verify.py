"""`fencepost verify`: an implementation beside the model."""

from __future__ import annotations

import click

from fencepost.cli import options
from fencepost.cli.progress import progress


@click.command("verify", short_help="Run an implementation beside the model.")
@click.argument("adapter", metavar="ADAPTER")
@options.CLAIMS
@options.with_file("A Python file with claims of your own.")
@click.option(
    "--examples", type=click.IntRange(1), default=100, show_default=True, help="How many random runs."
)
@click.option(
    "--steps", type=click.IntRange(1), default=25, show_default=True, help="Moves of a run, at most."
)
@options.SEED
@options.budget(None, "Seconds for all runs")
@options.EXPECT
@options.JSON
@options.DEBUG
def command(
    *,
    adapter: str,
    claims: tuple[str, ...],
    file: str,
    examples: int,
    steps: int,
    seed: int,
    budget_s: float | None,
    expect: str,
    as_json: bool,
) -> int:
    """Run an implementation beside the model.

    ADAPTER is package.module:make or path/to/file.py:make, where `make` makes an adapter, or sqlite for the
    reference. Every answer and everything stored is compared with the model, and the claims are asked of what
    the implementation did. HELD says that no run broke a claim and that what it speaks of happened; it is no
    proof.
    """
    from fencepost.checker.subject import load
    from fencepost.cli.adapters import load_adapter
    from fencepost.cli.reports import finish, seconds, subject_line
    from fencepost.cli.runs_of_implementations import declared_lines, save_runs
    from fencepost.cli.text import wrapped
    from fencepost.conformance.verify import GRADE, verify

    made = load_adapter(adapter)
    subject = load(file, variant=made.model_variant)
    with progress("verifying") as tell:
        report = verify(
            made,
            examples=examples,
            steps=steps,
            seed=seed,
            budget_s=budget_s,
            claims=claims,
            subject=subject,
            on_progress=tell,
        )
    figures = report.figures
    return finish(
        report,
        subject.protocol,
        heading=[f"{made.name} beside {subject_line(subject)}", *wrapped(f"{GRADE}; {figures['bound']}")],
        footing=[*declared_lines(report), f"seed {seed}; {seconds(report)}"],
        as_json=as_json,
        expect=expect,
        saved=save_runs(report, adapter),
    )
