"""What the pages say of claims, refusals and forbidden statements is what the registries say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fencepost.model import lint

from . import generated
from .pages import PROJECT, region, settle, with_region


@pytest.mark.parametrize(
    ("name", "text"),
    [("claims", generated.claims_page()), ("refusals", generated.refusals_page())],
    ids=["claims", "refusals"],
)
def test_a_page_that_is_made_from_a_registry_is_up_to_date(name: str, text: str) -> None:
    page = PROJECT / "docs" / f"{name}.md"
    settle(page, page.read_text(encoding="utf-8") if page.exists() else "", text)


def test_the_readme_has_the_claims_of_the_registry() -> None:
    page = PROJECT / "README.md"
    text = page.read_text(encoding="utf-8")
    settle(page, text, with_region(text, "claims", generated.promises_in_short()))


def test_the_page_of_implementations_lists_the_stores_that_are_refuted() -> None:
    page = PROJECT / "docs" / "your-own-implementation.md"
    text = page.read_text(encoding="utf-8")
    settle(page, text, with_region(text, "broken-stores", generated.broken_stores()))


def test_the_page_of_workflows_lists_how_a_pass_may_end() -> None:
    page = PROJECT / "docs" / "your-own-workflow.md"
    text = page.read_text(encoding="utf-8")
    settle(page, text, with_region(text, "ended", generated.ways_to_end()))


@pytest.mark.parametrize("name", ["statements", "builtins", "modules"])
def test_the_page_of_the_language_lists_what_it_forbids(name: str, tmp_path: Path) -> None:
    made = {
        "statements": lambda: generated.statements(tmp_path),
        "builtins": generated.builtins,
        "modules": generated.modules,
    }
    page = PROJECT / "docs" / "the-language.md"
    text = page.read_text(encoding="utf-8")
    settle(page, text, with_region(text, name, made[name]()))


def test_every_statement_that_the_language_forbids_is_an_example() -> None:
    shown = {type(node) for text in generated.STATEMENTS.values() for node in ast.walk(ast.parse(text))}
    forbidden = {ast.Try, ast.Slice, *lint._STATEMENTS} - set(generated.SAME_AS_YIELD)
    assert sorted(node.__name__ for node in forbidden - shown) == []


def test_a_region_that_is_not_there_is_noticed() -> None:
    with pytest.raises(AssertionError, match="no region 'claims'"):
        region("# A page\n", "claims")
