"""`fencepost prove`: induction for all sizes."""

from __future__ import annotations

import click

from fencepost.cli import options
from fencepost.cli.progress import progress


@click.command("prove", short_help="Prove claims for all sizes, by induction.")
@options.CLAIMS
@options.SUBJECT
@options.SCOPE
@options.SEED
@options.budget(60.0, "Seconds for all proofs together")
@options.REQUIRE
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
    seed: int,
    budget_s: float,
    require: str | None,
    expect: str,
    as_json: bool,
) -> int:
    """Prove claims for all sizes, by induction.

    PROVED is for any number of workers and without a bound on versions. Where a proof fails, the scope is
    searched for a run that breaks the claim; --scope, --on and --off choose that scope and restrict no proof.
    """
    from fencepost.checker.proofs import prove
    from fencepost.checker.subject import load
    from fencepost.checker.verdicts import Verdict
    from fencepost.cli.reports import finish, subject_line
    from fencepost.cli.scopes import chosen_scope
    from fencepost.cli.text import wrapped

    subject = load(file, variant=variant)
    scope = chosen_scope(subject, scope_text, on=on, off=off)
    with progress("proving") as tell:
        report = prove(
            subject,
            claims=claims,
            budget_s=budget_s,
            seed=seed,
            scope=scope,
            required=Verdict[require.upper()] if require else None,
            on_progress=tell,
        )
    figures = report.figures
    cost = (
        f"{figures['obligations']:,} obligations, {figures['solver_obligations']:,} of them for the solver, "
        f"the slowest {figures['slowest_s']:.2f} s; {figures['seconds']:.1f} s in all"
    )
    failed = figures["failed_invariants"]
    notes = wrapped(f"supporting invariants that are not shown: {', '.join(failed)}", "  ") if failed else []
    return finish(
        report,
        subject.protocol,
        heading=[subject_line(subject), *wrapped(f"for {figures['bound']}")],
        footing=[*notes, cost],
        as_json=as_json,
        expect=expect,
    )
