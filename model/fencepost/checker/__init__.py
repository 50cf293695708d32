"""Explore, prove, sample and sweep a model; verdicts and traces.

The calls and the result classes can be imported from here; nothing is loaded before it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fencepost.checker.explore import check
    from fencepost.checker.proofs import prove
    from fencepost.checker.samples import simulate
    from fencepost.checker.subject import Subject, UsageError, load, load_all
    from fencepost.checker.sweeps import SweepReport, sweep
    from fencepost.checker.traces import ReplayError, Trace
    from fencepost.checker.verdicts import Finding, Report, Verdict

__all__ = [
    "Finding",
    "ReplayError",
    "Report",
    "Subject",
    "SweepReport",
    "Trace",
    "UsageError",
    "Verdict",
    "check",
    "load",
    "load_all",
    "prove",
    "simulate",
    "sweep",
]

_HOMES = {
    "check": "explore",
    "load": "subject",
    "load_all": "subject",
    "prove": "proofs",
    "simulate": "samples",
    "sweep": "sweeps",
    "SweepReport": "sweeps",
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
