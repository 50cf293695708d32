"""Saved schedules of implementations: run again statement by statement, and shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fencepost.conformance.tapes import ReplayedTape, SavedTape

KIND = "schedule of an implementation"


def replay(path: Path, spec: str, form: str) -> int:
    """Run a schedule again, twice, and print what became of it: 1 if it still breaks what it broke, else 0.

    3 if the implementation did not do the same twice, or if the schedule is not possible any more.
    """
    from fencepost.checker.verdicts import EXIT_OK, EXIT_REFUTED, EXIT_UNDETERMINED
    from fencepost.cli.adapters import load_adapter
    from fencepost.cli.reports import json_of
    from fencepost.conformance.tapes import read_tape, replay_tape

    saved = read_tape(path)
    if form == "pytest":
        click.echo(_as_pytest(saved, spec), nl=False)
        return EXIT_OK
    made = replay_tape(path, load_adapter(spec))
    strayed = "not possible" in made.changed
    code = EXIT_REFUTED if made.fails else EXIT_UNDETERMINED if made.unsteady or strayed else EXIT_OK
    if form == "json":
        data = {"command": "replay", "claim": made.breaks, "still_breaks": made.fails}
        more = {"unsteady": made.unsteady, "changed": made.changed, "difference": made.difference}
        click.echo(json_of({**data, **more, "statements": _rows(made)[1:], "exit_code": code}))
    else:
        _print(saved, made, spec)
    return code


def _rows(made: ReplayedTape) -> list[tuple[str, ...]]:
    from fencepost.conformance.causes import statement_rows

    outcome = made.played.outcome
    return [] if outcome is None else statement_rows(outcome.account)


def _print(saved: SavedTape, made: ReplayedTape, spec: str) -> None:
    from fencepost.cli.text import columns, echo, wrapped
    from fencepost.conformance.causes import cause
    from fencepost.conformance.report import in_columns

    echo([f"{made.breaks}: a schedule of {saved.adapter} ({spec})", ""])
    steps = [(str(n), s.label, s.answered) for n, s in enumerate(made.played.ready.steps, 1)]
    if steps:
        echo(f"  {line}" for line in columns(steps, ("step", "to the start", "answered")))
        click.echo()
    rows = _rows(made)
    if rows:
        echo(in_columns(rows))
        click.echo()
    outcome = made.played.outcome
    if made.changed:
        echo(wrapped(made.changed, "         ", "changed: "))
    why = "" if outcome is None else cause(outcome.account)
    for sentence in (why, made.difference and f"first difference: {made.difference}"):
        if sentence:
            echo(wrapped(sentence))
    if made.unsteady:
        echo(wrapped(f"the implementation is not deterministic: {made.unsteady}"))
    echo(
        [
            f"{made.breaks} still breaks"
            if made.fails
            else f"{made.breaks} holds along this schedule; others are not looked at"
        ]
    )


def _as_pytest(saved: SavedTape, spec: str) -> str:
    data = json.dumps(saved.as_json(), indent=1)
    return f'''\
"""A schedule of {saved.adapter}: `fencepost replay {saved.token} --as pytest`."""

import json

from fencepost.cli.adapters import load_adapter
from fencepost.conformance.stage import Stage
from fencepost.conformance.subjects import subject_of
from fencepost.conformance.tapes import play_tape, tape_from_json
from fencepost.conformance.verify import prepare

SCHEDULE = r"""
{data}
"""


def test_{saved.tape.breaks}_along_schedule_{saved.token}() -> None:
    """The schedule breaks {saved.tape.breaks} no more."""
    saved, adapter = tape_from_json(json.loads(SCHEDULE)), load_adapter({json.dumps(spec)})
    subject = subject_of(saved.protocol, adapter.model_variant)
    plan, _ = prepare(adapter, scope=saved.scope, subject=subject)
    with Stage(plan) as stage:
        assert saved.tape.breaks not in play_tape(stage, saved.tape).breaks
'''
