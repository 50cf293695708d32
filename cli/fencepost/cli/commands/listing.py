"""`fencepost list`: what there is, from the registries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fencepost.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fencepost.checker.subject import Subject

KINDS = ("claims", "actions", "scopes", "variants", "refusals", "switches")


@click.command(
    "list", short_help="List what there is: claims, actions, scopes, variants, refusals, switches."
)
@click.argument("kind", type=click.Choice(KINDS), required=False, metavar=f"[{'|'.join(KINDS)}]")
@options.SUBJECT
@options.JSON
@options.DEBUG
def command(*, kind: str | None, file: str, variant: str, model: str, as_json: bool) -> int:
    """List what there is: claims, actions, scopes, variants, refusals, switches.

    Without a kind, the names of everything. `fencepost explain NAME` tells more about each.
    """
    from fencepost.checker.subject import load_all
    from fencepost.cli.catalogue import TABLES
    from fencepost.cli.reports import json_of
    from fencepost.cli.text import columns, echo

    subjects = load_all(file, variant=variant, model=model)
    if kind is None:
        _everything(subjects, as_json=as_json)
        return 0
    tables = [(s.protocol.name, *TABLES[kind](s)) for s in subjects]
    if kind == "refusals":  # the same for all
        del tables[1:]
    several = len(tables) > 1
    if as_json:
        rows = [
            {**({"protocol": name} if several else {}), **dict(zip(heading, row, strict=True))}
            for name, heading, found in tables
            for row in found
        ]
        click.echo(json_of(rows))
        return 0
    for number, (name, heading, found) in enumerate(tables):
        echo([*([""] if number else []), *([name] if several else [])])
        echo(columns(found, heading))
    return 0


def _everything(subjects: Sequence[Subject], *, as_json: bool) -> None:
    """The names of all that there is, by protocol; the refusals are common to all."""
    from fencepost.cli.catalogue import names
    from fencepost.cli.reports import json_of
    from fencepost.cli.text import columns, echo

    several = len(subjects) > 1
    kinds = [k for k in KINDS if k != "refusals" or not several]
    found = {s.protocol.name: {k: names(s, k) for k in kinds} for s in subjects}
    refusals = {"refusals": names(subjects[0], "refusals")}
    if as_json:
        click.echo(json_of({**found, **refusals} if several else next(iter(found.values()))))
        return
    for name, own in found.items():
        echo([name] if several else [])
        echo(columns([(k, ", ".join(v)) for k, v in own.items() if v]))
        echo([""] if several else [])
    if several:
        echo(columns([(k, ", ".join(v)) for k, v in refusals.items()]))
