"""`fencepost check`: every state of a scope."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from fencepost.cli import options
from fencepost.cli.progress import progress

if TYPE_CHECKING:
    from fencepost.checker.verdicts import Report


@click.command(
    "check",
    short_help="Look at every state of a scope: a verdict for each claim, a shortest run where it breaks.",
)
@options.CLAIMS
@options.SUBJECT
@options.SCOPE
@options.budget(None, "Seconds for the search")
@options.MEMORY
@options.jobs(None, "Scopes searched at the same time  [default: processors, at most 2]")
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
    model: str,
    scope_text: str,
    on: tuple[str, ...],
    off: tuple[str, ...],
    budget_s: float | None,
    memory_mb: int | None,
    jobs: int | None,
    stop: str,
    require: str | None,
    expect: str,
    as_json: bool,
) -> int:
    """Look at every state of a scope: a verdict for each claim, a shortest run where it breaks.

    CLAIM is an id (S1) or a name, and chooses the protocols that have it; without one, all claims of all
    built-in protocols are checked, each in the scopes that it has for this. BOUNDED says that a claim is true
    in every state of these scopes and that what it speaks of really happened in one; it says nothing about
    larger sizes.
    """
    from fencepost.checker.together import Asked, check_all
    from fencepost.checker.verdicts import Verdict
    from fencepost.cli.reports import Told, finish, subject_line
    from fencepost.cli.scopes import described
    from fencepost.cli.selection import selected

    chosen = selected(
        file=file, variant=variant, model=model, claims=claims, scope_text=scope_text, on=on, off=off
    )
    with progress("checking") as tell:
        reports = check_all(
            [Asked(one.subject, one.scopes, one.claims) for one in chosen],
            budget_s=budget_s,
            memory_mb=memory_mb,
            jobs=jobs or min(2, os.cpu_count() or 1),
            stop=stop,
            required=Verdict[require.upper()] if require else None,
            on_progress=tell,
        )
    told = [
        Told(
            report,
            one.subject.protocol,
            [subject_line(one.subject), *(line for s in one.scopes for line in described(s))],
            [*_counts(report), _cost(report)],
        )
        for one, report in zip(chosen, reports, strict=False)
    ]
    skipped = [one.subject.model for one in chosen[len(told) :]]
    if skipped:
        told[-1].footing.append(f"not looked at, since --stop first found a violation: {', '.join(skipped)}")
    return finish(told, as_json=as_json, expect=expect)


def _counts(report: Report) -> list[str]:
    """What was seen in each of several scopes; of one, the lines of its claims say it."""
    from fencepost.cli.text import wrapped

    lines = []
    for f in report.figures.get("scopes", ()):
        cut = f"{f['cut']:,} transitions cut at the bounds" if f["cut"] else "no transition cut"
        ended = "" if f["complete"] else ", not finished"
        counts = f"{f['states']:,} states, {f['transitions']:,} transitions, depth {f['depth']}; {cut}{ended}"
        lines += wrapped(f"scope {f['scope']}: {counts}", "    ", "  ")
    return lines


def _cost(report: Report) -> str:
    figures = report.figures
    took = f"{figures['seconds']:.1f} s to search, {figures['compile_seconds']:.1f} s to compile"
    return f"{took}; {figures['peak_bytes'] / 2**20:,.0f} MB at most"
