"""Every piece of Python on a page is run, or is a piece of a file that is."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from .console import Console, normal
from .pages import NAMES, PROJECT, REWRITE, Block, blocks, with_block

WITH_PYTHON = [name for name in NAMES if any(blocks((PROJECT / name).read_text("utf-8"), "python"))]

SOURCES = ("docs/examples", "model", "properties", "reference", "cli")


def is_program(text: str) -> bool:
    """Whether a block is a whole file: it begins with a docstring or with what it imports."""
    try:
        body = ast.parse(text).body
    except SyntaxError:  # the head of a function, say
        return False
    first = body[0] if body else None
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return is_docstring or isinstance(first, (ast.Import, ast.ImportFrom))


def file_of(block: Block) -> Path | None:
    """The file whose text a block shows: ``<!-- file: docs/examples/… -->``."""
    return PROJECT / block.note.removeprefix("file: ") if block.note.startswith("file: ") else None


@pytest.mark.parametrize("name", WITH_PYTHON)
def test_a_file_on_a_page_is_the_file_that_it_names(name: str) -> None:
    page = PROJECT / name
    text = page.read_text(encoding="utf-8")
    for number in range(len(list(blocks(text, "python")))):
        block = list(blocks(text, "python"))[number]
        path = file_of(block)
        if path is not None:
            source = path.read_text(encoding="utf-8").rstrip("\n")
            if REWRITE:
                text = with_block(text, block, source)
            else:
                assert block.text == source, f"{name}:{block.line} is not {block.note}"
    if REWRITE:
        page.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", WITH_PYTHON)
def test_a_program_on_a_page_runs_and_prints_what_the_page_says(name: str, console: Console) -> None:
    everything = list(blocks((PROJECT / name).read_text(encoding="utf-8")))
    for block, following in zip(everything, [*everything[1:], None], strict=True):
        if block.language != "python" or file_of(block) is not None or not is_program(block.text):
            continue
        done = subprocess.run(
            [sys.executable, "-"],
            input=block.text,
            cwd=console.directory,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, f"{name}:{block.line}\n{done.stderr}"
        is_output = following is not None and following.note == "output"
        expected = following.text if following is not None and is_output else ""
        assert normal(done.stdout) == normal(expected), f"{name}:{block.line} prints {done.stdout!r}"


@pytest.mark.parametrize("name", WITH_PYTHON)
def test_a_piece_on_a_page_is_a_piece_of_a_file(name: str) -> None:
    sources = [
        textwrap.dedent(line_by_line(path.read_text(encoding="utf-8")))
        for root in SOURCES
        for path in sorted((PROJECT / root).rglob("*.py"))
    ]
    for block in blocks((PROJECT / name).read_text(encoding="utf-8"), "python"):
        if file_of(block) is None and not is_program(block.text):
            assert any(line_by_line(block.text) in source for source in sources), (
                f"{name}:{block.line} is in no file of {', '.join(SOURCES)}: {block.text}"
            )


def line_by_line(text: str) -> str:
    """The lines without indentation."""
    return "\n".join(line.strip() for line in text.splitlines())
