"""Explore, prove, simulate and sweep a model; verdicts and traces.

`check`, `load` and the result classes can be imported from here; nothing is loaded before it is asked for.
`prove`, `simulate` and `sweep` are imported from the modules of the same names.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fencepost.checker.explore import check
    from fencepost.checker.subject import Subject, UsageError, load
    from fencepost.checker.traces import ReplayError, Trace
    from fencepost.checker.verdicts import Finding, Report, Verdict

__all__ = ["Finding", "ReplayError", "Report", "Subject", "Trace", "UsageError", "Verdict", "check", "load"]

_HOMES = {
    "check": "explore",
    "load": "subject",
    "Finding": "verdicts",
    "ReplayError": "traces",
    "Report": "verdicts",
    "Subject": "subject",
    "Trace": "traces",
    "UsageError": "subject",
    "Verdict": "verdicts",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """The names that can be imported from here, and the modules that are loaded."""
    return sorted({*globals(), *__all__})
