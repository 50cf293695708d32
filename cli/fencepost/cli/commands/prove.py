"""`fencepost prove`: induction for all sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fencepost.cli import options
from fencepost.cli.progress import progress, shared

if TYPE_CHECKING:
    from fencepost.checker.verdicts import Report


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
    model: str,
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
    from fencepost.checker.verdicts import Verdict
    from fencepost.cli.reports import Told, finish, subject_line
    from fencepost.cli.selection import selected
    from fencepost.cli.text import wrapped

    chosen = selected(
        file=file, variant=variant, model=model, claims=claims, scope_text=scope_text, on=on, off=off
    )
    told = []
    for one, share_s in shared(chosen, budget_s):
        with progress(f"proving {one.subject.model}") as tell:
            report = prove(
                one.subject,
                claims=one.claims,
                budget_s=share_s or budget_s,
                seed=seed,
                scope=one.scopes[0],
                required=Verdict[require.upper()] if require else None,
                on_progress=tell,
            )
        heading = [subject_line(one.subject), *wrapped(f"for {report.figures['bound']}")]
        told.append(Told(report, one.subject.protocol, heading, _footing(report)))
    return finish(told, as_json=as_json, expect=expect)


def _footing(report: Report) -> list[str]:
    from fencepost.cli.text import wrapped

    figures = report.figures
    cost = (
        f"{figures['obligations']:,} obligations, {figures['solver_obligations']:,} of them for the solver, "
        f"the slowest {figures['slowest_s']:.2f} s; {figures['seconds']:.1f} s in all"
    )
    failed = figures["failed_invariants"]
    notes = wrapped(f"supporting invariants that are not shown: {', '.join(failed)}", "  ") if failed else []
    return [*notes, cost]
