"""The pages of documentation: their blocks of code, regions that are generated, tables and links.

With REWRITE_DOCS=1 in the environment the tests write what they found into the pages instead of comparing:
``REWRITE_DOCS=1 python -m pytest tests/docs``. Look at the difference before you commit it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
EXAMPLES = PROJECT / "docs" / "examples"

REWRITE = os.environ.get("REWRITE_DOCS", "") not in ("", "0")

PAGES = sorted(
    [*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")]
    + [path for root in ("model", "properties", "reference", "cli") for path in (PROJECT / root).glob("*.md")]
)
NAMES = [str(page.relative_to(PROJECT)) for page in PAGES]


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, the line of its fence, and the comment right above it."""

    language: str
    text: str
    line: int
    note: str


def blocks(text: str, *languages: str) -> Iterator[Block]:
    """The fenced blocks of a page in these languages, in order."""
    lines = text.splitlines()
    start, language = -1, ""
    for number, line in enumerate(lines):
        if start < 0 and line.startswith("```"):
            start, language = number, line[3:].strip()
        elif start >= 0 and line == "```":
            if language in languages or not languages:
                above = lines[start - 1] if start else ""
                note = re.fullmatch(r"<!-- (.*) -->", above)
                body = "\n".join(lines[start + 1 : number])
                yield Block(language, body, start + 1, note[1] if note else "")
            start = -1
    assert start < 0, f"a block that begins in line {start + 1} has no end"


def with_block(text: str, block: Block, new: str) -> str:
    """The page with the text of one block replaced."""
    lines = text.splitlines()
    end = block.line + len(block.text.splitlines())
    return "\n".join([*lines[: block.line], *new.splitlines(), *lines[end:]]) + "\n"


def region(text: str, name: str) -> str:
    """The lines between ``<!-- begin: name -->`` and ``<!-- end: name -->``."""
    found = re.search(_region(name), text, re.DOTALL)
    assert found is not None, f"the page has no region {name!r}"
    return found[2]


def with_region(text: str, name: str, new: str) -> str:
    """The page with a region replaced."""
    return re.sub(_region(name), lambda found: found[1] + new + found[3], text, flags=re.DOTALL)


def _region(name: str) -> str:
    return rf"(<!-- begin: {name} -->\n)(.*?)(<!-- end: {name} -->)"


def rows(table: str) -> list[list[str]]:
    """The cells of the rows of a table, without its heading."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [cells(line) for line in lines[2:]]


def cells(line: str) -> list[str]:
    """The cells of one row; ``\\|`` is a bar inside a cell."""
    parts = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [part.strip().replace("\\|", "|") for part in parts]


def row(*values: str) -> str:
    """A row of a table."""
    return "| " + " | ".join(value.replace("|", "\\|") for value in values) + " |"


def code(cell: str) -> str:
    """The code in a cell: what stands between the first pair of backticks."""
    found = re.match(r"(`+)(.*?)\1", cell)
    assert found is not None, f"no code in {cell!r}"
    return found[2].strip()


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    kept, inside = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = not inside
            kept.append("")
        else:
            kept.append("" if inside else line)
    return "\n".join(kept)


def settle(page: Path, expected: str, actual: str) -> None:
    """Compare a page as it is with the page as it should be, or write the latter."""
    if REWRITE and actual != expected:
        page.write_text(actual, encoding="utf-8")
        return
    assert expected == actual, f"{page.name} is out of date; REWRITE_DOCS=1 writes it anew"
