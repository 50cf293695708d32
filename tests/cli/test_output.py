"""How text is laid out, and what appears on a terminal only."""

from __future__ import annotations

import sys
from io import StringIO

import pytest

from fencepost.cli.live import Live
from fencepost.cli.progress import progress
from fencepost.cli.text import WIDTH, amount, coloured, columns, wrapped

from .support import SMALLEST, fencepost, users_file


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_columns_are_aligned_and_a_long_last_one_wraps_below_itself() -> None:
    lines = columns([("a", "short"), ("long name", "word " * 30)], ("name", "meaning"))

    assert lines[0] == "name       meaning"
    assert lines[1] == "a          short"
    assert [line[:11].strip() for line in lines[2:]] == ["long name", ""]
    assert max(map(len, lines)) <= WIDTH


def test_a_last_column_with_no_room_goes_below_the_others() -> None:
    wide = "x" * 70
    lines = columns([(wide, "word " * 12)])

    assert lines[0] == wide
    assert lines[1].startswith("    word")


def test_columns_of_nothing_are_no_lines() -> None:
    assert columns([]) == []
    assert columns([], ("name",)) == []


def test_long_lines_wrap_and_keep_their_indent() -> None:
    lines = wrapped("word " * 40, "    ", "  ")

    assert lines[0].startswith("  word")
    assert all(line.startswith("    word") for line in lines[1:])
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize(("number", "text"), [(1, "1 step"), (2, "2 steps"), (1200, "1,200 steps")])
def test_amounts_are_counted_as_a_person_does(number: int, text: str) -> None:
    assert amount(number, "step") == text


def test_colour_adds_nothing_but_colour() -> None:
    assert "REFUTED" in coloured("REFUTED  S1")
    assert coloured("a line without a verdict") == "a line without a verdict"


def test_output_that_is_no_terminal_has_no_escape_sequences() -> None:
    done = fencepost("check", "M2", "--with", users_file("false"), "--scope", SMALLEST)

    assert "\x1b" not in done.text


def test_progress_is_told_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", StringIO())
    with progress("checking") as tell:
        assert tell is None

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("checking") as tell:
        assert tell is not None
        tell("7 states")
    assert "checking: 7 states" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_live_table_replaces_itself_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    live = Live()
    live.draw(["first", "table"], at_once=True)
    live.draw(["second", "table"], at_once=True)
    live.clear()

    assert terminal.getvalue() == "first\ntable\n\x1b[2A\x1b[Jsecond\ntable\n\x1b[2A\x1b[J"


def test_a_table_that_does_not_fit_the_terminal_is_not_drawn_live(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    Live().draw([str(n) for n in range(500)], at_once=True)

    assert terminal.getvalue() == ""


def test_a_live_table_is_not_drawn_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", StringIO())

    assert not Live().active
