"""`fencepost verify`: an implementation beside the model."""

from __future__ import annotations

import os
from typing import Any

import click

from fencepost.cli import options
from fencepost.cli.progress import progress, shared


@click.command("verify", short_help="Run an implementation beside the model.")
@click.argument("adapter", metavar="ADAPTER")
@options.CLAIMS
@options.with_file("A Python file with claims of your own.")
@options.MODEL
@click.option(
    "--examples", type=click.IntRange(1), default=100, show_default=True, help="How many random runs."
)
@click.option(
    "--steps", type=click.IntRange(1), default=25, show_default=True, help="Moves of a run, at most."
)
@click.option(
    "--statements",
    is_flag=True,
    help="Statement by statement: two calls at once, deaths, pauses, lost replies. Grade S.",
)
@options.SEED
@options.budget(None, "Seconds for all runs")
@options.jobs(None, "Processes for --statements, where the system can fork  [default: processors, at most 2]")
@options.EXPECT
@options.JSON
@options.DEBUG
def command(
    *,
    adapter: str,
    claims: tuple[str, ...],
    file: str,
    model: str,
    examples: int,
    steps: int,
    statements: bool,
    seed: int,
    budget_s: float | None,
    jobs: int | None,
    expect: str,
    as_json: bool,
) -> int:
    """Run an implementation beside the model.

    ADAPTER is package.module:make or path/to/file.py:make, where `make` makes an adapter, or sqlite for the
    reference. Every answer and everything stored is compared with the model, and the claims are asked of what
    the implementation did. HELD says that no run broke a claim and that what it speaks of happened; it is no
    proof.

    With --statements all ways to mix the statements of two calls are run instead, and then faults at each
    statement. There --examples and --steps do not matter, and --seed only to a budget.
    """
    from fencepost.checker.subject import UsageError, load_all, refuse_unknown
    from fencepost.cli.adapters import load_adapter, subjects_for, why_not
    from fencepost.cli.reports import Told, finish, seconds, subject_line
    from fencepost.cli.runs_of_implementations import declared_lines, save_runs
    from fencepost.cli.text import wrapped
    from fencepost.conformance import LOCK_STEP
    from fencepost.conformance.counterparts import reach_of
    from fencepost.conformance.statements import GRADE as STATEMENTS_GRADE
    from fencepost.conformance.statements import verify_statements
    from fencepost.conformance.verify import GRADE, verify

    made = load_adapter(adapter)
    among = load_all(file, variant=made.model_variant, model=model)
    subjects = subjects_for(made, among, claims)
    if model and not subjects:
        raise UsageError(why_not(model, made))
    compared = (LOCK_STEP.id, LOCK_STEP.name)
    refuse_unknown([c for c in claims if c not in compared], subjects)
    own = {s.model: [c for c in claims if s.has(c) or c in compared] for s in subjects}
    chosen = [s for s in subjects if own[s.model] or not claims]
    if statements and not claims:
        chosen = [s for s in chosen if reach_of(made, s.protocol).starts is not None]
    told, saved = [], {}
    for subject, share_s in shared(chosen, budget_s):
        with progress(f"verifying {subject.model}") as tell:
            common: dict[str, Any] = {
                "seed": seed,
                "budget_s": share_s,
                "claims": own[subject.model],
                "subject": subject,
                "on_progress": tell,
            }
            report = (
                verify_statements(made, jobs=jobs or min(2, os.cpu_count() or 1), **common)
                if statements
                else verify(made, examples=examples, steps=steps, **common)
            )
        grade, bound = STATEMENTS_GRADE if statements else GRADE, report.figures["bound"]
        heading = [f"{made.name} beside {subject_line(subject)}", *wrapped(f"{grade}; {bound}")]
        footing = [*declared_lines(report), f"seed {seed}; {seconds(report)}"]
        told.append(Told(report, subject.protocol, heading, footing))
        saved.update(save_runs(report, adapter))
    return finish(told, as_json=as_json, expect=expect, saved=saved)
