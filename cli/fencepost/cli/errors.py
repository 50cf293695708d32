"""Errors as a person reads them: who, what, what to do; in a user's file, at the user's line.

The exit codes here repeat those of `fencepost.checker.verdicts`, which would load half of the checker for
help.
"""

from __future__ import annotations

import linecache
import re
import sys
import sysconfig
import textwrap
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

EXIT_OK, EXIT_REFUTED, EXIT_USAGE, EXIT_UNDETERMINED, EXIT_INTERNAL = 0, 1, 2, 3, 4

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file and the part that is meant: columns from 0, `end` exclusive; -1 for not known."""

    file: str
    line: int
    column: int = -1
    end: int = -1


def explain_error(error: BaseException, *, debug: bool = False) -> int:
    """Print what went wrong to stderr, and give the exit code: 2 for the user's mistakes, 4 for ours."""
    if debug:
        traceback.print_exception(error)
    for line in describe(error):
        click.echo(line, err=True)
    return EXIT_USAGE if is_the_users(error) else EXIT_INTERNAL


def is_the_users(error: BaseException) -> bool:
    """Whether an error is one that fencepost raises on purpose, or comes from a line of the user's own."""
    if "fencepost.checker.explore" in sys.modules:
        from fencepost.checker.explore import InternalError

        if isinstance(error, InternalError):
            return False
    return _on_purpose(error) or _innermost_is_the_users(error)


def _on_purpose(error: BaseException) -> bool:
    return any(c.__name__ == "FencepostError" for c in type(error).__mro__)


def describe(error: BaseException) -> Iterator[str]:
    """The lines of a message about an error."""
    if not is_the_users(error):
        last = traceback.extract_tb(error.__traceback__)[-1:]
        where = f" at {shown(last[0].filename)}:{last[0].lineno}" if last else ""
        yield from _wrapped(f"fencepost: internal error: {type(error).__name__}: {error}{where}")
        yield from _wrapped(
            "This is a mistake in fencepost. Please report it with the command, your file if there is one, "
            "and what the same command prints with --debug."
        )
        return
    if (lines := getattr(error, "lines", None)) is not None:  # told by another process, as it is to be shown
        yield from lines
        return
    place = place_of(error)
    if place is None:
        yield from _wrapped(f"fencepost: {error}")
        return
    what, instead = _message(error)
    yield from _wrapped(f"{shown(place.file)}:{place.line}: {what}")
    yield from _source(place, what)
    if instead:
        yield from _wrapped(f"    = {instead}", indent="      ")


def _message(error: BaseException) -> tuple[str, str]:
    """What is wrong, and what to do, without the place."""
    site = getattr(error, "site", None)
    if site is not None:
        function = "" if site.function in ("<module>", "<lambda>") else f"in {site.function}: "
        return function + str(getattr(error, "what", error)), str(getattr(error, "instead", ""))
    cause = error.__cause__
    if isinstance(cause, SyntaxError):
        return f"syntax error: {cause.msg}", "the file cannot be read as Python"
    ended = next((e for e in (error, cause) if isinstance(e, SystemExit)), None)
    if ended is not None:
        return f"this ends the program (SystemExit: {ended.code})", "take it out: the file is only loaded"
    if cause is not None and _on_purpose(error) and _users_frame(cause) is not None:
        return f"{type(cause).__name__}: {cause}", ""
    if not _on_purpose(error):
        return f"{type(error).__name__}: {error}", ""
    what, _, instead = str(error).rpartition("; ")
    return (what, instead) if what else (str(error), "")


def place_of(error: BaseException) -> Place | None:
    """The line of the user's file that an error is about, if it is about one."""
    cause = error.__cause__
    if isinstance(cause, SyntaxError) and cause.filename and cause.lineno:
        begin = (cause.offset or 0) - 1
        end = (cause.end_offset or 0) - 1 if cause.end_lineno == cause.lineno else -1
        return Place(cause.filename, cause.lineno, begin, end if end > begin else begin + 1)
    site = getattr(error, "site", None)
    if site is not None:
        exact = (f for f in _frames(error) if f.filename == site.file and f.lineno == site.line)
        at_site = next(exact, None)
        return Place(site.file, site.line) if at_site is None else _place(at_site)
    frame = _users_frame(error) or (_users_frame(cause) if cause is not None else None)
    return None if frame is None else _place(frame)


def _place(frame: traceback.FrameSummary) -> Place:
    end = frame.end_colno if frame.end_lineno == frame.lineno else None
    column = -1 if frame.colno is None else frame.colno
    return Place(frame.filename, frame.lineno or 1, column, -1 if end is None else end)


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))[::-1]


def _users_frame(error: BaseException) -> traceback.FrameSummary | None:
    return next((f for f in _frames(error) if _is_the_users_file(f.filename)), None)


def _innermost_is_the_users(error: BaseException) -> bool:
    """Whether the innermost frame that is not the standard library's or another package's is the user's."""
    for frame in _frames(error):
        if _is_the_users_file(frame.filename):
            return True
        if _is_ours(frame.filename):
            return False
    return False


def _is_the_users_file(name: str) -> bool:
    if name.startswith("<") or _is_ours(name):
        return False
    path = Path(name).resolve()
    known = [Path(sysconfig.get_path(k)).resolve() for k in ("stdlib", "platstdlib", "purelib", "platlib")]
    script = Path(sys.argv[0]).resolve()
    return path != script and not any(path.is_relative_to(k) for k in known)


def _is_ours(name: str) -> bool:
    roots = {Path(p).resolve() for p in sys.modules["fencepost"].__path__}
    return any(Path(name).resolve().is_relative_to(r) for r in roots)


def _source(place: Place, what: str) -> Iterator[str]:
    """The line itself with its number, and a marker under the part that is meant."""
    text = linecache.getline(place.file, place.line).rstrip("\n")
    if not text.strip():
        return
    number = str(place.line)
    gap = " " * max(len(number), 3)
    begin, end = _marked(place, text, what)
    yield f"{gap} |"
    yield f"{number:>{len(gap)}} | {text.expandtabs(1)}"
    yield f"{gap} | {' ' * begin}{'^' * max(1, end - begin)}"


def _marked(place: Place, text: str, what: str) -> tuple[int, int]:
    """The columns to mark: a quoted piece of the message that is in the line; else what is known; or all."""
    stripped = len(text) - len(text.lstrip())
    for piece in re.findall(r"`([^`]+)`|'([^']+)'", what):
        found = text.find(piece[0] or piece[1])
        if found >= 0:
            return found, found + len(piece[0] or piece[1])
    if 0 <= place.column < len(text):
        end = place.end if place.end > place.column else len(text)
        return place.column, min(end, len(text))
    return stripped, len(text)


def shown(file: str) -> str:
    """A path as a person reads it: relative to here if it lies below, from the package on if it is ours."""
    path = Path(file)
    try:
        resolved = path.resolve()
        if _is_ours(file):
            parts = resolved.parts
            return str(Path(*parts[len(parts) - 1 - parts[::-1].index("fencepost") :]))
        return str(resolved.relative_to(Path.cwd())) if resolved.is_relative_to(Path.cwd()) else file
    except (OSError, ValueError):
        return file


def shown_place(place: str) -> str:
    """``file:line`` with the file as a person reads it."""
    file, _, line = place.rpartition(":")
    return f"{shown(file)}:{line}"


def _wrapped(text: str, indent: str = "    ") -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [text]
