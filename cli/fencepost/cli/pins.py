"""Pinned verdicts: what `--expect` compares a run with."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fencepost.checker.subject import UsageError
from fencepost.checker.verdicts import Report, Verdict

_WORDS = {v.value for v in Verdict}


def read_pins(file: str) -> dict[str, Any]:
    """The verdicts in a JSON or TOML file, by claim id: a word, or a table with `verdict` and `steps`.

    They stand at the top of the file or under ``verdicts``, so what ``--json`` printed serves as well.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--expect {file}: {error.strerror}; give a JSON or TOML file of verdicts by claim id"
        ) from error
    try:
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except ValueError as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise UsageError(
            f'--expect {file} is not {kind} ({error}); write, for example, {{"S1": "BOUNDED"}}'
        ) from error
    found = data.get("verdicts", data) if isinstance(data, dict) else None
    if not isinstance(found, dict) or not found:
        raise UsageError(f'--expect {file} holds no verdicts; write, for example, {{"S1": "BOUNDED"}}')
    return {str(k): _pin(file, str(k), v) for k, v in found.items()}


def _pin(file: str, claim: str, pin: Any) -> Any:
    for word in _words(pin):
        if word not in _WORDS:
            raise UsageError(
                f"--expect {file}: {claim} has {word!r}, which is no verdict; use {', '.join(sorted(_WORDS))}"
            )
    return pin


def _words(pin: Any) -> list[Any]:
    if isinstance(pin, dict):
        return [pin["verdict"]] if "verdict" in pin else [x for x in pin.values() if x is not None]
    return [pin]


def verdicts_of(reports: Sequence[Report]) -> Iterator[tuple[str, Verdict, Report]]:
    """Each verdict by its claim's id; an id that several protocols have is ``core:S25``, ``effects:S25``."""
    owners = Counter(claim for report in reports for claim in report.verdicts())
    for report in reports:
        for claim, verdict in report.verdicts().items():
            yield named(claim, report.subject, several=owners[claim] > 1), verdict, report


def named(claim: str, subject: str, *, several: bool) -> str:
    """An id as it stands in pins and JSON."""
    return f"{subject}:{claim}" if several else claim


def pin_of(pins: Mapping[str, Any], name: str) -> Any:
    """What is pinned for a claim; one that several protocols have may be pinned once for all. Else None."""
    return pins.get(name, pins.get(name.rpartition(":")[2]))


def differences(reports: Sequence[Report], pins: Mapping[str, Any]) -> list[str]:
    """One line for each claim whose verdict, or length of its run, is not the pinned one."""
    lines = []
    for claim, verdict, report in verdicts_of(reports):
        pin = pin_of(pins, claim)
        if pin is None:
            lines.append(f"{claim}: {verdict.value}, not pinned")
            continue
        word = pin["verdict"] if isinstance(pin, dict) else pin
        if word != verdict.value:
            lines.append(f"{claim}: {verdict.value}, pinned as {word}")
        elif isinstance(pin, dict) and "steps" in pin:
            trace = report.of(claim.rpartition(":")[2]).trace
            steps = len(trace.steps) if trace is not None else None
            if steps != pin["steps"]:
                lines.append(f"{claim}: {verdict.value} in {steps} steps, pinned with {pin['steps']}")
    return lines
