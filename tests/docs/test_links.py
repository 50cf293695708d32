"""What a page points to is there."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.cli.main import COMMANDS

from .pages import EXAMPLES, NAMES, PAGES, PROJECT, blocks, prose

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")


def headings(page: Path) -> set[str]:
    """The names under which the headings of a page can be linked to."""
    lines = prose(page.read_text(encoding="utf-8")).splitlines()
    return {anchor(line.lstrip("# ")) for line in lines if line.startswith("#")}


def anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.strip().replace(" ", "-")


def words_in_code(name: str) -> Iterator[str]:
    yield from CODE.findall(prose((PROJECT / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    page = PROJECT / name
    for target in LINK.findall(prose(page.read_text(encoding="utf-8"))):
        if target.startswith("https://"):
            continue
        path, _, part = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name}: {target}"
        assert file.is_relative_to(PROJECT), f"{name}: {target}"
        assert not part or part in headings(file), f"{name}: {target}; there are {sorted(headings(file))}"


@pytest.mark.parametrize("name", NAMES)
def test_files_that_a_page_speaks_of_exist(name: str) -> None:
    for word in words_in_code(name):
        if re.fullmatch(r"(model|properties|reference|cli|tests|docs|benchmarks)/[\w./-]*", word):
            assert (PROJECT / word).exists(), f"{name}: {word}"


@pytest.mark.parametrize("name", NAMES)
def test_names_that_a_page_speaks_of_can_be_imported(name: str) -> None:
    for word in words_in_code(name):
        if re.fullmatch(r"fencepost(\.\w+)+", word):
            assert found(word) is not None, f"{name}: {word}"


def found(dotted: str) -> Any:
    try:
        return importlib.import_module(dotted)
    except ModuleNotFoundError:
        home, _, last = dotted.rpartition(".")
        return getattr(importlib.import_module(home), last, None)


@pytest.mark.parametrize("name", NAMES)
def test_commands_that_a_page_speaks_of_exist(name: str) -> None:
    text = (PROJECT / name).read_text(encoding="utf-8")
    spoken = [*words_in_code(name), *(line for b in blocks(text, "sh") for line in b.text.splitlines())]
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    for word in spoken:
        parts = word.removeprefix("$ ").split()
        if parts and parts[0] == "fencepost" and len(parts) > 1 and parts[1].isalpha():
            assert parts[1] in COMMANDS, f"{name}: {word}"
        if parts and parts[0] == "make" and len(parts) > 1:
            assert f"\n{parts[1]}:" in makefile, f"{name}: {word}"


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_one_title_and_no_line_that_is_too_long_to_read(name: str) -> None:
    lines = prose((PROJECT / name).read_text(encoding="utf-8")).splitlines()
    assert sum(line.startswith("# ") for line in lines) == 1
    long = [line for line in lines if len(line) > 120 and not line.startswith(("|", "["))]
    assert long == []


def test_every_example_is_on_a_page() -> None:
    pages = "\n".join((PROJECT / name).read_text(encoding="utf-8") for name in NAMES)
    examples = [str(path.relative_to(PROJECT)) for path in EXAMPLES.rglob("*.py")]
    unused = [name for name in examples if name not in pages and name.removeprefix("docs/") not in pages]
    assert unused == []


def test_the_readme_leads_to_every_page() -> None:
    readme = PROJECT / "README.md"
    targets = LINK.findall(prose(readme.read_text(encoding="utf-8")))
    linked = {(PROJECT / target.partition("#")[0]).resolve() for target in targets}
    pages = [p for p in PAGES if p.is_relative_to(PROJECT / "docs")]
    assert [str(p.relative_to(PROJECT)) for p in pages if p not in linked] == []
