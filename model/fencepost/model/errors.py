"""What can be wrong with a model, as exceptions that name the user's line.

Guards that end a run of an action are not errors; they derive from BaseException (see `language.py`), so that
a model's own ``except Exception`` cannot swallow them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType

_LANGUAGE = str(Path(__file__).resolve().parent / "_").removesuffix("_")
_PROTOCOLS = str(Path(__file__).resolve().parent / "core" / "_").removesuffix("_")
"""The built-in protocol lives below this package too; its lines are model text, not the language."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a model's source: the file, its line (from 1) and the name of the function."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


def caller_site() -> Site:
    """The innermost frame outside the language itself: the line that the author of a model wrote."""
    frame = sys._getframe(1)
    while frame.f_back is not None and not _is_model_text(frame):
        frame = frame.f_back
    return Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def raised_at(traceback: TracebackType | None) -> Site | None:
    """The line of model text from which a guard or an error came, told from its traceback."""
    found = None
    while traceback is not None:
        if _is_model_text(traceback.tb_frame):
            code = traceback.tb_frame.f_code
            found = Site(code.co_filename, traceback.tb_lineno, code.co_name)
        traceback = traceback.tb_next
    return found


def _is_model_text(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return not name.startswith(_LANGUAGE) or name.startswith(_PROTOCOLS)


class FencepostError(Exception):
    """Every error that fencepost raises on purpose."""


class ModelError(FencepostError):
    """A model says something that the language forbids or cannot read; the message names line and remedy."""

    def __init__(self, what: str, *, instead: str = "", site: Site | None = None) -> None:
        self.what = what
        self.instead = instead
        self.site = site if site is not None else caller_site()
        remedy = f"; {instead}" if instead else ""
        super().__init__(f"{self.site}: {what}{remedy}")


class NeedsFiniteError(ModelError):
    """The model iterates over a family: possible only when its size is known, never for all sizes."""


class PathLimitError(ModelError):
    """Tracing forked more often than the cap allows."""


class ScopeError(FencepostError):
    """A scope does not fit the protocol: an unknown size, bound or switch, or one that is missing."""
