"""Saved runs of implementations: written with the adapter's name, found, made again, shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fencepost.checker.subject import UsageError
from fencepost.checker.traces import file_of
from fencepost.cli import schedules_of_implementations as schedules

if TYPE_CHECKING:
    from fencepost.checker.verdicts import Report
    from fencepost.conformance.runs import SavedRun
    from fencepost.conformance.verify import Replayed

KIND = "run of an implementation"


def save_runs(report: Report, adapter: str) -> dict[str, str]:
    """Save the runs of a report of `verify`, with how the adapter was named; tokens by claim name."""
    from fencepost.cli.reports import unsaved_is_told
    from fencepost.conformance.saving import save_finding

    tokens = {}
    for finding in report.findings:
        with unsaved_is_told():
            token = save_finding(finding, adapter)
            if token:
                tokens[finding.claim.name] = token
    return tokens


def declared_lines(report: Report) -> Iterator[str]:
    """What the adapter declares not to hold, whether that is what was seen, and what no run could tell."""
    from fencepost.cli.text import wrapped

    declared: Mapping[str, str] = getattr(report, "declared", {})
    broken = {f.claim.id for f in report.refuted}
    for claim, reason in declared.items():
        seen = "refuted, as declared" if claim in broken else "declared not to hold, but nothing broke it"
        yield from wrapped(f"{claim}: {seen} ({reason})", "    ", "  ")
    untellable = [f.claim.id for f in report.findings if "untellable" in f.details]
    if untellable:
        yield f"  {', '.join(dict.fromkeys(untellable))} cannot be told from runs, and does not count"


def is_run_of_an_implementation(token: str) -> Path | None:
    """The file of a token or path that holds a run or schedule of an implementation; None for others."""
    path = file_of(token)
    return path if path is not None and _data(path).get("kind") in (KIND, schedules.KIND) else None


def _data(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def replay(path: Path, adapter: str, form: str) -> int:
    """Make a run again, twice, and print what became of it: 1 if it still breaks what it broke, else 0.

    3 if the implementation did not do the same twice, or if the run is not possible any more.
    """
    from fencepost.checker.verdicts import EXIT_OK, EXIT_REFUTED, EXIT_UNDETERMINED
    from fencepost.cli.adapters import load_adapter
    from fencepost.cli.reports import json_of
    from fencepost.conformance.runs import read_run
    from fencepost.conformance.verify import replay_run

    spec = adapter or str(_data(path).get("made_by", ""))
    if not spec:
        raise UsageError(f"{path} does not say how its adapter was made; give --adapter package.module:make")
    if _data(path).get("kind") == schedules.KIND:
        return schedules.replay(path, spec, form)
    run = read_run(path)
    if form == "pytest":
        click.echo(_as_pytest(run, spec), nl=False)
        return EXIT_OK
    made = replay_run(path, load_adapter(spec))
    short = len(made.steps) < len(run.moves)
    code = EXIT_REFUTED if made.fails else EXIT_UNDETERMINED if made.unsteady or short else EXIT_OK
    if form == "json":
        rows = [{"label": s.label, "expected": s.expected, "answered": s.answered} for s in made.steps]
        data = {
            "command": "replay",
            "claim": run.breaks,
            "still_breaks": made.fails,
            "unsteady": made.unsteady,
        }
        click.echo(json_of({**data, "changed": made.changed, "steps": rows, "exit_code": code}))
    else:
        _print(run, made, spec)
    return code


def _print(run: SavedRun, made: Replayed, spec: str) -> None:
    from fencepost.cli.text import columns, echo, wrapped

    echo([f"{run.breaks}: a run of {run.adapter} ({spec})", ""])
    heading = ("step", "call", "the model says", "answered")
    rows = [(str(n), s.label, s.expected, s.answered) for n, s in enumerate(made.steps, 1)]
    echo(f"  {line}" for line in columns(rows, heading))
    click.echo()
    if made.changed:
        echo(wrapped(made.changed, "         ", "changed: "))
    if made.difference:
        echo(wrapped(f"first difference: {made.difference}"))
    if made.unsteady:
        echo(wrapped(f"the implementation is not deterministic: {made.unsteady}"))
    echo(
        [
            f"{run.breaks} still breaks"
            if made.fails
            else f"{run.breaks} holds along this run; others are not looked at"
        ]
    )


def _as_pytest(run: SavedRun, spec: str) -> str:
    moves = "\n".join(
        f"    Move({json.dumps(m.action)}, {m.arguments!r}, {m.wait_ms}, {m.lease_ms}),  # {label}"
        for m, label in zip(run.moves, run.labels, strict=True)
    )
    return f'''\
"""A run of {run.adapter} that broke {run.breaks}: `fencepost replay {run.token} --as pytest`."""

from fencepost.cli.adapters import load_adapter
from fencepost.conformance.runs import play, until_broken
from fencepost.conformance.moves import Move
from fencepost.conformance.verify import prepare

MOVES = [
{moves}
]


def test_{run.breaks}_along_run_{run.token}() -> None:
    """The run breaks {run.breaks} no more."""
    plan, _ = prepare(load_adapter({json.dumps(spec)}))
    assert until_broken(play(plan, MOVES), {json.dumps(run.breaks)}) == []
'''
