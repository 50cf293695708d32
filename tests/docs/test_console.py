"""Every command on a page prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from .console import Console, normal, run_page, same
from .pages import NAMES, PROJECT, REWRITE, blocks

WITH_CONSOLES = [name for name in NAMES if any(blocks((PROJECT / name).read_text("utf-8"), "console"))]


LONG = "docs/your-own-implementation.md"
"""It runs all checks of a store twice; the short run does so once, without the page."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n == LONG else ()) for n in WITH_CONSOLES]
)
def test_the_commands_of_a_page_print_what_it_says(name: str, console: Console) -> None:
    page = PROJECT / name
    text, wrong = run_page(page.read_text(encoding="utf-8"), console)
    if REWRITE:
        page.write_text(text, encoding="utf-8")
        return
    assert not wrong, f"{name}, REWRITE_DOCS=1 writes it anew\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("documented", "printed"),
    [
        ("0.7 s to search; 53 MB at most", "12.3 s to search; 1,024 MB at most"),
        ("again  fencepost replay fv437v", "again  fencepost replay rwt5yz"),
        ("claim: fencepost/properties/core.py:38", "claim: fencepost/properties/core.py:45"),
        ("932 obligations, 185 of them for the solver", "1,502 obligations, 191 of them for the solver"),
        ("204 workers started, 200 killed", "1,203 workers started, 200 killed"),
        ("the downstream\n  killed 5 times", "the downstream killed 13 times"),
        ("sending   4   2  it is about", "sending  31  12  it is about"),
        ("19 effects of 18 intents", "24 effects of 18 intents"),
        ("60 effects of 60 intents", "72 effects of 72 intents"),
        ("of 8 instances 2 cancelled, 6 succeeded", "of 8 instances 3 cancelled, 5 succeeded"),
        ("30 compensations begun, 30 done", "28 compensations begun, 28 done"),
        ("a\n…\nd", "a\nb\nc\nd"),
        ("a\n…\nd", "a\nd"),
        ("…\nd", "a\nd"),
        ("12 states,\n  7 transitions", "12 states, 7\n  transitions"),
        ("…\n1 sent again, 0 too late\n…\nd", "a\n12 sent again, 0 too\n  late\nb\n  c\nd"),
        ("…\n12 sent again, 0 too\n  late\n…\nc", "a\n1 sent again, 3 too late\nb\nc"),
    ],
)
def test_what_differs_from_machine_to_machine_is_not_compared(documented: str, printed: str) -> None:
    assert same(documented, printed)


@pytest.mark.parametrize(
    ("documented", "printed"),
    [
        ("BOUNDED", "REFUTED"),
        ("1,586,728 states", "1,586,729 states"),
        ("204 workers started, 200 killed", "204 workers started, 199 killed"),
        ("60 effects of 60 intents", "61 effects of 60 intents"),
        ("30 compensations begun, 30 done", "30 compensations begun, 29 done"),
        ("of 8 instances 2 cancelled, 6 succeeded", "of 8 instances 2 cancelled, 5 succeeded, 1 waiting"),
        ("shortest run: 5 steps", "shortest run: 6 steps"),
        ("claim: docs/examples/one_believer.py:10", "claim: docs/examples/one_believer.py:11"),
        ("a\n…\nd", "a\nb\nc"),
        ("a\n…\nd", "b\nd"),
        ("…\n2 instances of it\n  held\n…", "a\n3 instances of it held\nb"),
        ("a\nb", "a b"),
    ],
)
def test_everything_else_is(documented: str, printed: str) -> None:
    assert not same(documented, printed)


def test_examples_are_run_where_no_page_can_change_them(console: Console) -> None:
    assert not console.directory.resolve().is_relative_to(PROJECT)
    assert Path("docs/examples").name in {p.name for p in (console.directory / "docs").iterdir()}


def test_a_number_in_another_column_is_no_difference() -> None:
    assert normal("PROVED   S1   0.01 s") == normal("PROVED  S1  12.50 s")
