"""`fencepost list`: what there is, from the registries."""

from __future__ import annotations

import click

from fencepost.cli import options

KINDS = ("claims", "actions", "scopes", "variants", "refusals", "switches")


@click.command(
    "list", short_help="List what there is: claims, actions, scopes, variants, refusals, switches."
)
@click.argument("kind", type=click.Choice(KINDS), required=False, metavar=f"[{'|'.join(KINDS)}]")
@options.SUBJECT
@options.JSON
@options.DEBUG
def command(*, kind: str | None, file: str, variant: str, as_json: bool) -> int:
    """List what there is: claims, actions, scopes, variants, refusals, switches.

    Without a kind, the names of everything. `fencepost explain NAME` tells more about each.
    """
    from fencepost.checker.subject import load
    from fencepost.cli.catalogue import TABLES, names
    from fencepost.cli.reports import json_of
    from fencepost.cli.text import columns, echo

    subject = load(file, variant=variant)
    if kind is None:
        everything = {k: names(subject, k) for k in KINDS}
        if as_json:
            click.echo(json_of(everything))
        else:
            echo(columns((k, ", ".join(v)) for k, v in everything.items()))
        return 0
    heading, rows = TABLES[kind](subject)
    if as_json:
        click.echo(json_of([dict(zip(heading, row, strict=True)) for row in rows]))
    else:
        echo(columns(rows, heading))
    return 0
