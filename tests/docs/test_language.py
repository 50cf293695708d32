"""The tables of the language page: each line in them is read as the page says."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path
from typing import Any

import pytest

import fencepost.model
from fencepost.checker.smt.obligations import Moves
from fencepost.model import ModelError, NeedsFiniteError, Protocol
from fencepost.model.ground import ground_model
from fencepost.model.run import Runner
from fencepost.model.trace import trace_action

from .pages import EXAMPLES, PROJECT, code, region, row, rows, settle, with_region

PAGE = PROJECT / "docs" / "the-language.md"

NOT_IN_THE_TABLES = {
    # Errors, and what a model is declared with: the text of the page explains them.
    *("FencepostError", "ModelError", "NeedsFiniteError", "PathLimitError", "ScopeError"),
    *("Protocol", "Action", "Variable", "Fresh", "Scope", "State", "Step", "HISTORY", "derived", "can_move"),
    *("Domain", "Boolean", "Element", "Member"),
}

_NUMBERS = itertools.count(1)


def model(line: str, directory: Path) -> Protocol:
    """The state of the tables with one action that has this line; an expression is used as a condition."""
    node = ast.parse(line).body[0]
    if isinstance(node, ast.Expr) and not _is_order(node.value):
        line = f"if ({line}) == ({line}):\n        s.level = 1"
    text = (EXAMPLES / "words.py").read_text(encoding="utf-8")
    whole = (
        f"{text}\nfrom fencepost.model import *\n\n\n"
        '@p.operation("worker", home="store", w=workers, m=p.fresh(letters, unless="sent"))\n'
        f"def act(s, w, m):\n    {line}\n"
    )
    path = directory / f"model_{next(_NUMBERS)}.py"
    path.write_text(whole, encoding="utf-8")
    names: dict[str, Any] = {"__name__": path.stem}
    exec(compile(whole, str(path), "exec"), names)  # noqa: S102
    made: Protocol = names["p"]
    return made


def _is_order(node: ast.expr) -> bool:
    """Whether an expression is a call that does something, rather than a value."""
    called = node.func if isinstance(node, ast.Call) else None
    name = getattr(called, "id", getattr(called, "attr", ""))
    return name in ("when", "refuse_unless", "fill", "update_where")


def read(protocol: Protocol) -> None:
    """Read the action in each finite reading; ModelError if one cannot."""
    scope = protocol.scopes["small"]
    runner = Runner(protocol, scope)
    list(runner.transitions(runner.initial()))
    ground_model(protocol, scope)


def for_all_sizes(protocol: Protocol) -> bool:
    try:
        Moves(protocol)
    except NeedsFiniteError:
        return False
    return True


def error(line: str, directory: Path) -> str:
    """What the language says against a line."""
    protocol = model(line, directory)
    try:
        trace_action(protocol, protocol.actions["act"])
    except ModelError as found:
        return found.what
    raise AssertionError(f"not forbidden: {line}")


def test_every_word_is_read_as_the_table_says(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = region(text, "words")
    new = table.splitlines()[:2]
    for words, says, _ in rows(table):
        protocol = model(code(words), tmp_path)
        read(protocol)
        new.append(row(words, says, "yes" if for_all_sizes(protocol) else "no"))
    settle(PAGE, text, with_region(text, "words", "\n".join(new) + "\n"))


def test_every_forbidden_line_gets_the_message_that_the_table_shows(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = region(text, "values")
    new = table.splitlines()[:2]
    for wrong, _, right in rows(table):
        new.append(row(wrong, error(code(wrong), tmp_path), right))
    settle(PAGE, text, with_region(text, "values", "\n".join(new) + "\n"))


@pytest.mark.parametrize("right", [r[2] for r in rows(region(PAGE.read_text("utf-8"), "values"))])
def test_what_the_page_says_to_write_instead_is_read(right: str, tmp_path: Path) -> None:
    if right.startswith("`"):
        read(model(code(right), tmp_path))


def test_the_tables_have_every_word_of_the_language() -> None:
    text = PAGE.read_text(encoding="utf-8")
    spoken = region(text, "words") + region(text, "domains")
    words = set(fencepost.model.__all__) - NOT_IN_THE_TABLES
    missing = {word for word in words if not re.search(rf"`[^`]*\b{word}\b[^`]*`", spoken)}
    assert sorted(missing) == []
