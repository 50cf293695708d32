"""Plain text: aligned columns, wrapped lines, and colour that carries no meaning of its own."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence

import click

WIDTH = 100
"""Lines wrap here: what fits a terminal beside another window, and a page."""

_NARROW = 45
"""A column of sentences that would be narrower than this is hard to read."""

_COLOURS = {
    "REFUTED": "red",
    "UNDETERMINED": "yellow",
    "NOT EXERCISED": "yellow",
    "HELD": "green",
    "BOUNDED": "green",
    "PROVED": "green",
}


def wrapped(text: str, indent: str = "", first: str | None = None) -> list[str]:
    """Lines of at most `WIDTH` characters, each after `indent`, the first after `first`."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def columns(rows: Iterable[Sequence[str]], heading: Sequence[str] = (), *, wrap: bool = True) -> list[str]:
    """Rows as aligned columns; a last column that does not fit is wrapped below itself.

    Without `wrap` each row is one line, however long.
    """
    table = [list(r) for r in rows]
    if not table:
        return []
    full = [list(heading), *table] if heading else table
    widths = [max(len(r[i]) for r in full) for i in range(len(full[0]))]
    left = sum(w + 2 for w in widths[:-1])
    lines = []
    if not wrap:
        return ["".join(f"{c:<{w + 2}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in full]
    narrow = left > WIDTH - _NARROW and left + widths[-1] > WIDTH
    for row in full:
        start = "".join(f"{cell:<{widths[i] + 2}}" for i, cell in enumerate(row[:-1]))
        if narrow:  # the last column goes below the others
            lines.append(start.rstrip())
            lines += wrapped(row[-1], " " * 4) if row[-1] else []
        else:
            lines += wrapped(row[-1], " " * left, start) if row[-1] else [start.rstrip()]
    return lines


def coloured(line: str) -> str:
    """A line with a leading verdict in colour; `click.echo` takes it out where there is no terminal."""
    for word, colour in _COLOURS.items():
        if line.startswith(word):
            return click.style(word, fg=colour, bold=word == "REFUTED") + line[len(word) :]
    return line


def echo(lines: Iterable[str]) -> None:
    """Print lines to standard output."""
    for line in lines:
        click.echo(coloured(line.rstrip()))


def amount(number: int, noun: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def table_width() -> int:
    """The width for tables of runs: that of the terminal if it is wider than `WIDTH`."""
    return max(WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else WIDTH
