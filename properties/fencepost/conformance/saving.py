"""Runs and schedules that broke something, in files that the command line replays."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fencepost.checker.traces import STORE
from fencepost.checker.verdicts import Finding
from fencepost.conformance.runs import run_from_json
from fencepost.conformance.tapes import tape_from_json


def save_finding(finding: Finding, made_by: str, *, folder: Path = STORE) -> str:
    """Save the run or the schedule of a finding, with how its adapter is named; its token, "" if it has none.

    `made_by` is ``package.module:make`` or ``path/to/file.py:make``. Raises OSError.
    """
    for key, read in (("run", run_from_json), ("tape", tape_from_json)):
        data = finding.details.get(key)
        if data is not None:
            path = read(data).save(folder)
            path.write_text(json.dumps({**data, "made_by": made_by}, indent=1) + "\n", encoding="utf-8")
            return path.stem
    return ""


def name_of(make: Callable[..., Any]) -> str:
    """How a function or class that makes an adapter is named on the command line; "" if it cannot be."""
    name, module = getattr(make, "__qualname__", ""), sys.modules.get(getattr(make, "__module__", ""))
    if module is None or not name.isidentifier() or getattr(module, name, None) is not make:
        return ""
    file = Path(inspect.getsourcefile(make) or "")
    if not file.is_file():
        return ""
    here = file.resolve()
    if not here.is_relative_to(Path.cwd()) or (here.parent / "__init__.py").is_file():
        return f"{module.__name__}:{name}"
    return f"{here.relative_to(Path.cwd()).as_posix()}:{name}"
