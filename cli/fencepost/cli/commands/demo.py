"""`fencepost demo`: workers of the reference that are really killed, and what they leave behind."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fencepost.cli import options
from fencepost.cli.killing.broken import BROKEN
from fencepost.cli.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fencepost.cli.killing.report import KillingReport
    from fencepost.reference.audit import Check

SHOWN = 3
"""As many wrongs of one claim are printed; --json has all."""


def _known(ctx: click.Context, param: click.Parameter, name: str | None) -> str | None:
    """A name that there is; a close one is offered."""
    if name is not None and name not in BROKEN:
        close = difflib.get_close_matches(name, BROKEN, n=1)
        remedy = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(BROKEN)}"
        raise click.BadParameter(f"nothing of that name can be broken: {name!r}; {remedy}", ctx, param)
    return name


@click.command(
    "demo", short_help="Kill workers of the reference, and show that nothing is lost or done twice."
)
@click.option(
    "--instances", type=click.IntRange(1), default=20, show_default=True, help="How many instances to run."
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="How many worker processes run at a time.",
)
@click.option(
    "--kills", type=click.IntRange(0), default=200, show_default=True, help="How often a worker is killed."
)
@options.SEED
@options.budget(60.0, "Seconds for all kills, and for workers to settle what is left")
@click.option(
    "--keyed/--no-keyed", default=True, help="Whether the downstream keeps idempotency keys  [default: keyed]"
)
@click.option(
    "--opaque",
    is_flag=True,
    help="A downstream that has neither keys nor a fence, and cannot be asked: people find out.",
)
@click.option(
    "--broken",
    metavar="NAME",
    callback=_known,
    help=f"With one thing wrong, so that a claim is refuted: {', '.join(BROKEN)}.",
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the databases are kept; without it they are deleted.",
)
@options.JSON
@options.DEBUG
def command(
    *,
    instances: int,
    workers: int,
    kills: int,
    seed: int,
    budget_s: float,
    keyed: bool,
    opaque: bool,
    broken: str | None,
    directory: Path | None,
    as_json: bool,
) -> int:
    """Kill workers of the reference, and show that nothing is lost or done twice.

    Orders are run by worker processes: a chain, a fan-out, a fan-in, retries, a step that waits for an
    approval, a notification, and compensations. Of eight orders two go wrong at the end, one is rejected and
    two are cancelled at a random moment: they unwind. One compensation fails, and a person settles it. People
    are a process, and the downstream is another one, which workers reach over HTTP.

    Workers are killed with SIGKILL where it hurts and at random moments, also while they unwind; some are
    stopped for longer than their lease and go on afterwards; the downstream and the people are killed as
    well. Then both databases are read by the back door, and held against what all had been answered.

    Everything stays on this machine, and no process is left. Needs Linux or macOS.
    """
    from fencepost.cli.killing.supervisor import kill_workers
    from fencepost.cli.text import echo

    with progress("killing") as tell:
        report = kill_workers(
            instances,
            workers,
            kills=kills,
            seed=seed,
            budget_s=budget_s,
            keyed=keyed,
            opaque=opaque,
            broken=broken,
            directory=directory,
            on_progress=tell,
        )
    if as_json:
        click.echo(json.dumps(report.as_json(), indent=1, ensure_ascii=False))
    else:
        echo(_lines(report))
    return report.exit_code


def _lines(report: KillingReport) -> Iterator[str]:
    """What happened, who was killed where, and what was found."""
    from fencepost.cli.text import amount, wrapped

    yield from _story(report)
    yield ""
    yield from _places(report)
    yield ""
    yield from _verdicts(report.checks)
    yield ""
    if report.killed < report.kills:
        yield from wrapped(
            f"only {report.killed:,} of {amount(report.kills, 'kill')}: the time was up, --budget"
        )
    pace = report.killed / report.seconds if report.seconds else 0.0
    yield f"seed {report.seed}; {report.seconds:.1f} s, {pace:.0f} kills/s"


def _story(report: KillingReport) -> Iterator[str]:
    from fencepost.cli.killing.orders import FLOW
    from fencepost.cli.text import amount, wrapped

    can = "a fence and idempotency keys" if report.keyed else "a fence, and without keys"
    if report.opaque:
        can = "no fence and no keys, which cannot be asked"
    yield from wrapped(
        f"{amount(report.instances, 'instance')} of an order: {FLOW}",
        "  ",
        "",
    )
    yield from wrapped(
        f"{amount(report.workers, 'worker')} at a time, people who cancel, approve and decide, and a "
        f"downstream over HTTP with {can}",
        "  ",
        "",
    )
    if report.broken is not None:
        yield from wrapped(f"broken on purpose, {report.broken}: {BROKEN[report.broken].says}", "  ", "")
    yield from wrapped(
        f"{amount(report.started, 'worker')} started, {report.killed:,} killed; {report.continued:,} stopped "
        f"for longer than the lease, and continued; the downstream killed "
        f"{amount(report.downstream_kills, 'time')}, the people {amount(report.people_kills, 'time')}",
        "  ",
        "",
    )
    if report.opaque:
        yield from wrapped(
            f"people ended {amount(report.ended_by_people, 'worker')}, and the downstream each time, before "
            "they said what had happened",
            "  ",
            "",
        )
    if report.directory is not None:
        yield from wrapped(f"the databases are in {report.directory}")


def _places(report: KillingReport) -> list[str]:
    """Each point that workers of this run come to, and how many were killed there."""
    from fencepost.cli.killing.points import ONLY_WITH_KEYS, ONLY_WITHOUT_KEYS, POINTS
    from fencepost.cli.text import columns

    unlikely = [*ONLY_WITHOUT_KEYS] if report.keyed or report.opaque else []
    unlikely += ONLY_WITH_KEYS if report.opaque or not report.keyed else ()
    rows = [
        (point, f"{report.killed_at.get(point, 0):>12,}", f"{report.killed_after.get(point, 0):>10,}", says)
        for point, says in POINTS.items()
        if point not in unlikely or point in report.killed_at or point in report.killed_after
    ]
    return columns(rows, ("point", "killed there", "just after", "what a worker has done there"))


def _verdicts(checks: tuple[Check, ...]) -> Iterator[str]:
    from fencepost.cli.text import columns, wrapped

    yield from columns([(check.verdict.value, check.id, check.name, check.evidence) for check in checks])
    for check in checks:
        if check.wrongs:
            yield ""
            yield from wrapped(f"{check.verdict.value}  {check.name}: {check.says}", "  ", "")
            for wrong in check.wrongs[:SHOWN]:
                yield from wrapped(wrong, " " * 6, " " * 4)
            if len(check.wrongs) > SHOWN:
                yield f"    and {len(check.wrongs) - SHOWN:,} more"
