"""`fencepost explain`: all there is to say about one name."""

from __future__ import annotations

import click

from fencepost.cli import options


@click.command("explain", short_help="Explain a claim, refusal, variant, action, scope or switch.")
@click.argument("name", metavar="ID")
@options.SUBJECT
@options.JSON
@options.DEBUG
def command(*, name: str, file: str, variant: str, model: str, as_json: bool) -> int:
    """Explain a claim, refusal, variant, action, scope or switch.

    ID is a claim's id (S1, L3) or name, a refusal code, or the name of anything that `fencepost list` shows.
    """
    from fencepost.checker.subject import load_all
    from fencepost.cli.catalogue import explain
    from fencepost.cli.reports import json_of
    from fencepost.cli.text import columns, echo, wrapped

    found = explain(load_all(file, variant=variant, model=model), name)
    if as_json:
        click.echo(json_of([e.as_json() for e in found]))
        return 0
    for number, explanation in enumerate(found):
        if number:
            click.echo()
        echo([explanation.title])
        for sentence in explanation.sentences:
            echo(wrapped(sentence, "  "))
        if explanation.facts:
            click.echo()
            echo(f"  {line}" for line in columns(_once(explanation.facts)))
        if explanation.source:
            echo(["", f"  {explanation.place}", ""])
            echo(f"    {line}" for line in explanation.source.splitlines())
        if explanation.run:
            click.echo()
            echo(f"  {line}" for line in columns([("run", way) for way in explanation.run]))
    return 0


def _once(facts: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """The facts with each label only where it changes."""
    labels = ["", *(label for label, _ in facts)]
    return [
        (label if label != before else "", text) for before, (label, text) in zip(labels, facts, strict=False)
    ]
