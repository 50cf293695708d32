"""`fencepost replay`: a saved run, once more."""

from __future__ import annotations

import click

from fencepost.cli import options


@click.command("replay", short_help="Replay a saved run that broke a claim.")
@click.argument("token", metavar="TOKEN|PATH")
@options.SUBJECT
@click.option(
    "--adapter", metavar="ADAPTER", default="", help="For a run of an implementation: the adapter to use."
)
@click.option(
    "--as",
    "form",
    type=click.Choice(["text", "pytest", "json"]),
    default="text",
    show_default=True,
    help="What to print: the run, a pytest test to paste, or JSON.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --as json.")
@options.DEBUG
def command(
    *, token: str, file: str, variant: str, model: str, adapter: str, form: str, as_json: bool
) -> int:
    """Replay a saved run that broke a claim.

    TOKEN is the short name of a run in .fencepost/, PATH the file of a run. The model, and the file of your
    own that the run was found with, are found by themselves; --with and --variant say where they are now.

    Exit codes: 1 if the claim still breaks, 0 if it holds along the run, 3 if the run is not possible any
    more before its last step, 2 if there is no such run. A model that has changed is reported, step by step.
    With --as pytest the code is 0: a test was asked for, and is what you got.
    """
    from fencepost.cli.runs_of_implementations import is_run_of_an_implementation, replay

    form = "json" if as_json else form
    path = is_run_of_an_implementation(token)
    if path is not None:
        return replay(path, adapter, form)
    return _replay_trace(token, file, variant, model, form)


def _replay_trace(token: str, file: str, variant: str, model: str, form: str) -> int:
    from fencepost.checker.traces import table
    from fencepost.cli.pasted import as_pytest
    from fencepost.cli.replaying import read, replay_trace, subject_of
    from fencepost.cli.reports import json_of, violation
    from fencepost.cli.text import echo, table_width, wrapped

    trace = read(token)
    subject = subject_of(trace, file=file, variant=variant, model=model)
    replayed = replay_trace(trace, subject)
    if form == "pytest":
        click.echo(as_pytest(trace, subject, replayed.claim, trace.token), nl=False)
        return 0
    if form == "json":
        click.echo(json_of(replayed.as_json()))
        return replayed.exit_code
    if replayed.broken_at is not None:
        echo(violation(replayed.finding(), subject.protocol, subject.name, ""))
    else:
        echo([f"{subject.name}, {trace.scope.describe()}", ""])
        echo(f"  {line}" for line in table(replayed.now, subject.protocol, width=table_width() - 2))
    click.echo()
    for change in replayed.changes:
        echo(wrapped(change, "         ", "changed: "))
    echo(wrapped(replayed.conclusion))
    return replayed.exit_code
