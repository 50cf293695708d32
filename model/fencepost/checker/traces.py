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

from fencepost.checker.subject import UsageError, refuse_beyond_limits
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
        """The trace as plain data: its portable form, with a digest that tells whether it was altered."""
        content = self._content()
        return {**content, "digest": _digest(content)}

    def _content(self) -> dict[str, Any]:
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
        return [{k: v for k, v in after.items() if before.get(k) != v} for before, after in pairwise(states)]

    @property
    def token(self) -> str:
        """A short name made of the content."""
        text = json.dumps(self._content(), sort_keys=True)
        number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:5], "big")
        letters = "23456789abcdefghjkmnpqrstuvwxyz"
        return "".join(letters[number // len(letters) ** i % len(letters)] for i in range(6))

    def save(self, folder: Path = STORE) -> Path:
        """Write the trace to a file in `folder` and give its path."""
        return save_data(folder, self.token, self.as_json())


def save_data(folder: Path, token: str, data: Any) -> Path:
    """Write plain data to the file of that name in `folder`, whole or not at all, and give its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{token}.json"
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)
    return path


def load_data(path: Path, what: str) -> Any:
    """The plain data in a file. ReplayError when there is none, or when the file is no JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ReplayError(f"{path}: no such file; give the path of a saved {what}") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ReplayError(f"{path} is not JSON ({error}); the file is damaged") from error


def from_json(data: Any, origin: str) -> Trace:
    """A trace from plain data; ReplayError, which says what is wrong, when it is none or was altered."""
    try:
        return _read(_Reader(data, "it"))
    except _NoTraceError as error:
        raise ReplayError(f"{origin} {error}") from error
    except UsageError as error:
        raise ReplayError(f"{origin} is no trace of a run: {error}") from error


class _NoTraceError(Exception):
    """What is wrong with the data, to go after its origin."""


def _none(where: str, what: str) -> _NoTraceError:
    return _NoTraceError(f"is no trace of a run: {where} {what}; save it anew")


class _Reader:
    """Plain data that must be an object, with values of the types that are asked for. `where` names it."""

    def __init__(self, data: Any, where: str) -> None:
        if not isinstance(data, dict):
            raise _none(where, f"is {_shown(data)}, not an object")
        self.data, self.where = data, where

    def get(self, key: str, kind: type) -> Any:
        """The value of a key; a number is an integer, and a boolean is no number."""
        if key not in self.data:
            raise _none(self.where, f"has no {key!r}")
        return _of_kind(self.data[key], kind, self.inside(key))

    def inside(self, key: str) -> str:
        return key if self.where == "it" else f"{self.where}, {key}"

    def text(self, key: str) -> str:
        """Text on one line."""
        found: str = self.get(key, str)
        if not found.isprintable():
            raise _none(self.inside(key), f"is {_shown(found)}, not text on one line")
        return found

    def table(self, key: str, kind: type) -> dict[str, Any]:
        """An object whose values are all of a type."""
        found = self.get(key, dict)
        return {k: _of_kind(v, kind, f"{self.inside(key)}, {k}") for k, v in found.items()}

    def row(self, key: str, kind: type) -> tuple[Any, ...]:
        """A list whose values are all of a type."""
        return tuple(
            _of_kind(v, kind, f"{self.inside(key)}, number {n}") for n, v in enumerate(self.get(key, list), 1)
        )


_WORDS = {str: "text", int: "a whole number", dict: "an object", list: "a list"}


def _of_kind(value: Any, kind: type, where: str) -> Any:
    if type(value) is not kind:
        raise _none(where, f"is {_shown(value)}, not {_WORDS[kind]}")
    return value


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


_SHOWN = 40
"""So many characters of a value that should not be there are enough to find it."""


def _read(data: _Reader) -> Trace:
    found = data.get("format", int)
    if found != FORMAT:
        raise _NoTraceError(f"was written by another version (format {found}, this one reads {FORMAT})")
    sizes = _Reader(data.get("scope", dict), "scope")
    scope = Scope(
        sizes.text("name"),
        sizes.table("sizes", int),
        sizes.table("bounds", int),
        frozenset(sizes.row("switches", str)),
    )
    refuse_beyond_limits(scope)
    initial = data.table("initial", int)
    state, steps = initial, []
    for number, each in enumerate(data.get("steps", list), 1):
        step = _Reader(each, f"step {number}")
        changes = step.table("changes", int)
        for cell in changes:
            if cell not in initial:
                raise _none(f"step {number}", f"changes {_shown(cell)}, which the first state does not have")
        state = {**state, **changes}
        arguments = step.row("arguments", int)
        steps.append(
            TraceStep(step.text("action"), arguments, step.text("label"), step.text("outcome"), state)
        )
    trace = Trace(
        data.text("subject"),
        data.text("claim"),
        scope,
        data.text("fingerprint"),
        initial,
        tuple(steps),
        data.row("explanation", str),
        data.table("source", str),
        data.row("reads", str),
    )
    if data.text("digest") != _digest({k: v for k, v in data.data.items() if k != "digest"}):
        raise _NoTraceError(
            "is damaged: its steps or values are not those that were saved; save the run anew, with `check`"
        )
    return trace


def _digest(content: Mapping[str, Any]) -> str:
    """Tells content that was altered, by accident or by hand; it is no signature."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def file_of(token: str, folder: Path = STORE) -> Path | None:
    """The file at the path `token`, or of the token in `folder`; None where there is none."""
    for path in (Path(token), folder / f"{token}.json"):
        try:
            if path.is_file():
                return path
        except (OSError, ValueError):  # a name that is too long, or has a zero in it
            continue
    return None


def read(token: str, folder: Path = STORE) -> Trace:
    """The trace of a token in `folder`, or in the file at that path."""
    path = file_of(token, folder)
    if path is not None:
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ReplayError(f"{path} cannot be read ({error.strerror}); look at its permissions") from error
        except (ValueError, RecursionError) as error:
            raise ReplayError(f"{path} is not JSON ({error}); the file is damaged") from error
        return from_json(data, str(path))
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
