"""Runs of a model, as evidence: each step with what was done, how it ended and the state it led to.

A trace is concrete. It is replayed with the run reading before it is shown, saved as a file that is its
portable form, and shown as a table of the cells that change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from fencepost.model import FencepostError, Protocol, Scope
from fencepost.model.domains import Domain, Optional, Record
from fencepost.model.ground import show_code
from fencepost.model.protocol import HISTORY
from fencepost.model.run import Runner, Transition

FORMAT = 1
STORE = Path(".fencepost")


class ReplayError(FencepostError):
    """A trace does not replay: the model has changed, or the file is damaged."""


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One step: its action, the codes of its arguments, its label and outcome, and the state after it."""

    action: str
    arguments: tuple[int, ...]
    label: str
    outcome: str
    state: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Trace:
    """A run from the first state, with what it shows."""

    subject: str
    claim: str
    scope: Scope
    fingerprint: str
    initial: Mapping[str, int]
    steps: tuple[TraceStep, ...]
    explanation: tuple[str, ...] = ()
    source: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    """The variables that the claim reads: shown first."""

    def as_json(self) -> dict[str, Any]:
        """The trace as plain data: its portable form."""
        return {
            "format": FORMAT,
            "subject": self.subject,
            "source": dict(self.source),
            "claim": self.claim,
            "fingerprint": self.fingerprint,
            "scope": {
                "name": self.scope.name,
                "sizes": dict(self.scope.sizes),
                "bounds": dict(self.scope.bounds),
                "switches": sorted(self.scope.switches),
            },
            "initial": dict(self.initial),
            "steps": [
                {
                    "action": s.action,
                    "arguments": list(s.arguments),
                    "label": s.label,
                    "outcome": s.outcome,
                    "changes": changes,
                }
                for s, changes in zip(self.steps, self._changes(), strict=True)
            ],
            "explanation": list(self.explanation),
            "reads": list(self.reads),
        }

    def _changes(self) -> list[dict[str, int]]:
        states = [self.initial, *(s.state for s in self.steps)]
        return [
            {k: v for k, v in after.items() if before.get(k) != v}
            for before, after in pairwise(states)
        ]

    @property
    def token(self) -> str:
        """A short name made of the content."""
        text = json.dumps(self.as_json(), sort_keys=True)
        number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:5], "big")
        letters = "23456789abcdefghjkmnpqrstuvwxyz"
        return "".join(letters[number // len(letters) ** i % len(letters)] for i in range(6))

    def save(self, folder: Path = STORE) -> Path:
        """Write the trace to a file in `folder` and give its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.token}.json"
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.as_json(), indent=1) + "\n", encoding="utf-8")
        temporary.replace(path)
        return path


def from_json(data: Mapping[str, Any], origin: str) -> Trace:
    """A trace from plain data; ReplayError when it is none."""
    try:
        if data["format"] != FORMAT:
            raise ReplayError(
                f"{origin}: written by another version (format {data['format']}, this one reads {FORMAT})"
            )
        sizes = data["scope"]
        scope = Scope(sizes["name"], sizes["sizes"], sizes["bounds"], frozenset(sizes["switches"]))
        state = dict(data["initial"])
        steps = []
        for step in data["steps"]:
            state = {**state, **step["changes"]}
            steps.append(
                TraceStep(
                    step["action"], tuple(step["arguments"]), step["label"], step["outcome"], dict(state)
                )
            )
        return Trace(
            data["subject"],
            data["claim"],
            scope,
            data["fingerprint"],
            dict(data["initial"]),
            tuple(steps),
            tuple(data["explanation"]),
            dict(data["source"]),
            tuple(data["reads"]),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ReplayError(
            f"{origin} is no trace of a run ({type(error).__name__}: {error}); save it anew"
        ) from error


def read(token: str, folder: Path = STORE) -> Trace:
    """The trace of a token in `folder`, or in the file at that path."""
    candidates = [Path(token), folder / f"{token}.json"]
    for path in candidates:
        if path.is_file():
            try:
                return from_json(json.loads(path.read_text(encoding="utf-8")), str(path))
            except json.JSONDecodeError as error:
                raise ReplayError(f"{path} is not JSON ({error}); the file is damaged") from error
    known = sorted(p.stem for p in folder.glob("*.json")) if folder.is_dir() else []
    have = f"{folder} has: {', '.join(known[:12])}" if known else f"{folder} has none"
    raise ReplayError(f"no trace {token!r}; {have}. Give a token, or the path of a saved trace")


def replay(trace: Trace, protocol: Protocol) -> Iterable[tuple[Any, Transition]]:
    """Run a trace with the run reading: (state before, transition) by step; ReplayError at a difference."""
    runner = Runner(protocol, trace.scope)
    state = runner.initial()
    _compare(trace.initial, runner.codes(state), 0, "start")
    for number, step in enumerate(trace.steps, 1):
        made = runner.step(state, step.action, step.arguments)
        if isinstance(made, str):
            raise ReplayError(
                f"step {number}, {step.label}: the model says {made} here; the model has changed"
            )
        if made.outcome != step.outcome:
            raise ReplayError(
                f"step {number}, {step.label}: ends {made.outcome} now, {step.outcome} when it was saved; "
                "the model has changed"
            )
        _compare(step.state, runner.codes(made.state), number, step.label)
        yield state, made
        state = made.state


def _compare(saved: Mapping[str, int], found: Mapping[str, int], number: int, label: str) -> None:
    different = sorted(k for k, v in saved.items() if found.get(k) != v)
    if different:
        raise ReplayError(
            f"step {number}, {label}: {', '.join(different[:4])} differ from what was saved; "
            "the model has changed"
        )


def table(trace: Trace, protocol: Protocol, *, width: int = 110, also: Iterable[str] = ()) -> list[str]:
    """The trace as a table: a column per cell that changes, those the claim reads first; changes have a star.

    Variables in `also` are shown like those that the claim reads; history that it does not read is left out.
    """
    states = [trace.initial, *(s.state for s in trace.steps)]
    columns = _columns(protocol, trace.scope, trace.initial)
    rows = [{name: show(state) for name, show in columns.items()} for state in states]
    changing = [n for n in columns if any(r[n] != rows[0][n] for r in rows)]
    wanted = {*trace.reads, *also}
    read = [n for n in columns if _variable(n) in wanted and (n in changing or "[" not in n)]
    kept = read + [n for n in changing if n not in read and not _is_history(protocol, n)]
    labels = ["start", *(_step_label(s) for s in trace.steps)]
    number_width = len(str(len(labels)))
    first = [f"{i:>{number_width}}  {label}" for i, label in enumerate(labels)]
    left = max(len(x) for x in [*first, "step"])
    lines: list[str] = []
    for block in _blocks(kept, rows, width - left - 2):
        if lines:
            lines.append("")
        widths = {n: max(len(n), *(len(r[n]) for r in rows)) for n in block}
        lines.append(" ".join(["step".ljust(left + 1), *(n.rjust(widths[n]) + " " for n in block)]).rstrip())
        for i, row in enumerate(rows):
            cells = []
            for n in block:
                star = "*" if i and row[n] != rows[i - 1][n] else " "
                cells.append(row[n].rjust(widths[n]) + star)
            lines.append(" ".join([first[i].ljust(left + 1), *cells]).rstrip())
    return lines


def _is_history(protocol: Protocol, column: str) -> bool:
    return protocol.variables[_variable(column)].home == HISTORY


def _variable(column: str) -> str:
    return column.partition("[")[0]


def _step_label(step: TraceStep) -> str:
    return step.label if step.outcome in ("done", "ok") else f"{step.label} refused: {step.outcome}"


def _blocks(names: Sequence[str], rows: Sequence[Mapping[str, str]], width: int) -> list[list[str]]:
    blocks: list[list[str]] = [[]]
    used = 0
    for name in names:
        needed = max(len(name), *(len(r[name]) for r in rows)) + 2
        if used + needed > width and blocks[-1]:
            blocks.append([])
            used = 0
        blocks[-1].append(name)
        used += needed
    return blocks


def _columns(protocol: Protocol, scope: Scope, codes: Mapping[str, int]) -> dict[str, Any]:
    """For each variable, or each cell of a family, how to show it in a state of codes."""
    columns: dict[str, Any] = {}
    for variable in protocol.variables.values():
        suffixes = [s for s, _ in variable.domain.leaves()]
        names = [variable.name]
        if variable.index:
            end = suffixes[0]
            found = [k for k in codes if k.startswith(f"{variable.name}[") and k.endswith("]" + end)]
            names = [k.removesuffix(end) if end else k for k in found]
        for name in names:
            if all(f"{name}{s}" in codes for s in suffixes):
                columns[name] = _shower(variable.domain, name, "")
    del scope
    return columns


def _shower(domain: Domain, name: str, suffix: str) -> Any:
    def show(state: Mapping[str, int]) -> str:
        return show_value(domain, name, suffix, state)

    return show


def show_value(domain: Domain, name: str, suffix: str, state: Mapping[str, int]) -> str:
    """A cell as a person reads it: records as ``1/0``, absent as ``-``."""
    if isinstance(domain, Optional):
        return show_value(domain.of, name, suffix, state) if state[f"{name}{suffix}.present"] else "-"
    if isinstance(domain, Record):
        return "/".join(show_value(d, name, f"{suffix}.{f}", state) for f, d in domain.fields.items())
    return show_code(domain, state[f"{name}{suffix}"])  # type: ignore[arg-type]
