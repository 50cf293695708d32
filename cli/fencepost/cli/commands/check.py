"""`fencepost check`: every state of a scope."""

from __future__ import annotations

import click

from fencepost.cli import options
from fencepost.cli.progress import progress


@click.command(
    "check",
    short_help="Look at every state of a scope: a verdict for each claim, a shortest run where it breaks.",
)
@options.CLAIMS
@options.SUBJECT
@options.SCOPE
@options.budget(None, "Seconds for the search")
@options.MEMORY
@options.STOP
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
    budget_s: float | None,
    memory_mb: int | None,
    stop: str,
    require: str | None,
    expect: str,
    as_json: bool,
) -> int:
    """Look at every state of a scope: a verdict for each claim, a shortest run where it breaks.

    CLAIM is an id (S1) or a name; without one, all claims are checked. BOUNDED says that a claim is true in
    every state of the scope and that what it speaks of really happened there; it says nothing about larger
    sizes.
    """
    from fencepost.checker.explore import check
    from fencepost.checker.subject import load
    from fencepost.checker.verdicts import Verdict
    from fencepost.cli.reports import finish, subject_line
    from fencepost.cli.scopes import chosen_scope, described

    subject = load(file, variant=variant)
    scope = chosen_scope(subject, scope_text, on=on, off=off)
    with progress("checking") as tell:
        report = check(
            subject,
            scope=scope,
            claims=claims,
            budget_s=budget_s,
            memory_mb=memory_mb,
            stop=stop,
            required=Verdict[require.upper()] if require else None,
            on_progress=tell,
        )
    figures = report.figures
    took = f"{figures['seconds']:.1f} s to search, {figures['compile_seconds']:.1f} s to compile"
    cost = f"{took}; {figures['peak_bytes'] / 2**20:,.0f} MB at most"
    return finish(
        report,
        subject.protocol,
        heading=[subject_line(subject), *described(scope)],
        footing=[cost],
        as_json=as_json,
        expect=expect,
    )
