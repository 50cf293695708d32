"""`fencepost sweep`: what notices when something is missing from the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fencepost.cli import options
from fencepost.cli.progress import progress, shared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fencepost.checker.subject import Subject
    from fencepost.checker.sweeps import SweepReport, SweepRow


@click.command(
    "sweep", short_help="Take one thing away from the model at a time and see which claim notices."
)
@options.SUBJECT
@options.SCOPE
@click.option(
    "--kinds",
    metavar="KIND,...",
    default="",
    help="Only these kinds of change: when, refuse_unless, answered-only, effect, branch, action.",
)
@click.option(
    "--pairs", is_flag=True, help="Also remove two guards at once, out of those that nothing needs alone."
)
@options.budget(None, "Seconds for the whole sweep")
@options.MEMORY
@options.jobs(1, "How many processes share the work.")
@options.JSON
@options.DEBUG
def command(
    *,
    file: str,
    variant: str,
    model: str,
    scope_text: str,
    on: tuple[str, ...],
    off: tuple[str, ...],
    kinds: str,
    budget_s: float | None,
    memory_mb: int | None,
    jobs: int,
    pairs: bool,
    as_json: bool,
) -> int:
    """Take one thing away from the model at a time and see which claim notices.

    Each guard, refusal, effect, branch and action is removed in turn, and the changed model is searched for a
    violation of any claim. A line that nothing needs, and a claim that nothing breaks, are findings (exit
    code 3).
    """
    from fencepost.checker.sweeps import sweep
    from fencepost.checker.verdicts import worst_code
    from fencepost.cli.reports import json_of, subject_line
    from fencepost.cli.scopes import described
    from fencepost.cli.selection import selected
    from fencepost.cli.text import echo

    kinds_chosen = _kinds(kinds)
    chosen = selected(
        file=file, variant=variant, model=model, scope_text=scope_text, on=on, off=off, sweeps=True
    )
    reports = []
    for number, (one, share_s) in enumerate(shared(chosen, budget_s)):
        with progress(f"sweeping {one.subject.model}") as tell:
            report = sweep(
                one.subject,
                scope=one.scopes,
                kinds=kinds_chosen,
                with_pairs=pairs,
                budget_s=share_s,
                memory_mb=memory_mb,
                jobs=jobs,
                on_progress=tell,
            )
        reports.append(report)
        if not as_json:
            scopes = [line for s in one.scopes for line in described(s)]
            echo([*([""] if number else []), subject_line(one.subject), *scopes, ""])
            echo(_lines(report, one.subject))
    code = worst_code(r.exit_code for r in reports)
    if as_json:
        data = [r.as_json() for r in reports]
        several = {"command": "sweep", "exit_code": code, "reports": data}
        click.echo(json_of(data[0] if len(data) == 1 else several))
    return code


def _kinds(text: str) -> tuple[str, ...]:
    from fencepost.checker.subject import UsageError
    from fencepost.model.mutate import KINDS
    from fencepost.model.protocol import did_you_mean

    by_name = {k.replace(" ", "-"): k for k in KINDS}
    found = []
    for name in filter(None, (k.strip().replace(" ", "-") for k in text.split(","))):
        if name not in by_name:
            raise UsageError(
                f"--kinds: no kind of change {name!r}; {did_you_mean(name, by_name, empty='there are none')}"
            )
        found.append(by_name[name])
    return tuple(found) or KINDS


def _lines(report: SweepReport, subject: Subject) -> Iterator[str]:
    from fencepost.checker.sweeps import summary
    from fencepost.cli.text import amount, columns, wrapped

    heading = ("outcome", "by claim (steps)", "place", "change")
    yield from columns((_row(r, subject) for r in report.rows), heading)
    yield ""
    for row in report.unaccounted:
        yield from wrapped(f"{row.outcome} at {_place(row)}, {row.name}", "         ", "finding: ")
    names = {c.name: c.name if c.id == c.name else f"{c.id} {c.name}" for c in subject.chosen()}
    if report.unbroken:
        unbroken = ", ".join(names[n] for n in report.unbroken)
        yield from wrapped(f"none of these changes breaks {unbroken}", "         ", "finding: ")
    for name, why in report.by_shape.items():
        yield from wrapped(f"nothing can break {names[name]}: {why}", "         ", "by shape: ")
    for note in report.notes:
        yield from wrapped(f"note: {note}")
    yield from wrapped(
        f"{summary(report)}; {amount(len(report.unbroken), 'claim')} that nothing breaks; "
        f"{report.seconds:.1f} s"
    )


def _row(row: SweepRow, subject: Subject) -> tuple[str, str, str, str]:
    claims = subject.claims.claims
    by = ", ".join(f"{claims[n].id} ({steps})" for n, steps in row.broken.items())
    change = f"{row.name} ({row.reason})" if row.reason else row.name
    return row.outcome, by, _place(row), change


def _place(row: SweepRow) -> str:
    """File and line, the file by its last name: the table is about one model."""
    return row.place.replace("\\", "/").rsplit("/", 1)[-1]
