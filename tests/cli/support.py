"""The command line run in this process, in a directory of its own."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from fencepost.cli.main import run

FILES = Path(__file__).resolve().parent / "files"

SMALLEST = "quick:commit=1,state_version=1"
"""One commit and one state version: enough for most claims, and searched in a moment."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


def fencepost(*arguments: str) -> Result:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
    return Result(code, out.getvalue(), err.getvalue())


def users_file(name: str) -> str:
    """A copy, in the current directory, of a file that is kept here under a name that linters leave alone."""
    target = Path(f"{name}.py")
    shutil.copy(FILES / f"{name}.py.txt", target)
    return str(target)


def tokens(text: str) -> list[str]:
    """The tokens of the runs that a command saved."""
    return re.findall(r"again +fencepost replay (\w+)", text)


def normalised(text: str) -> str:
    """Output without what differs from run to run, or moves whenever a line is added somewhere."""
    for pattern, replacement in _NORMAL:
        text = re.sub(pattern, replacement, text)
    return text


_NORMAL = [
    (r"\b\d+\.\d+ s\b", "0.0 s"),
    (r"\b[\d,]+ MB\b", "0 MB"),
    (r"(fencepost replay |test_\w+_along_run_)[2-9a-z]{6}\b", r"\1TOKEN"),
    (r"(fencepost/[\w/]+\.py|\b[a-z]+\.py):\d+", r"\1:0"),
    (r"\b[\d,]+ obligations\b", "0 obligations"),
    (r"\b[\d,]+ of them for the solver", "0 of them for the solver"),
    (r"\b[\d,]+ runs, [\d,]+ steps", "0 runs, 0 steps"),
]


def lines_between(text: str, first: str, last: str) -> Iterator[str]:
    """The lines from the one that starts with `first` to before the one that starts with `last`."""
    inside = False
    for line in text.splitlines():
        inside = (inside or line.startswith(first)) and not line.startswith(last)
        if inside:
            yield line
