"""Golden dialogues: what commands print, word for word.

Each file in `dialogues/` holds commands, each followed by dashes, what it prints, and its exit code. What
differs from run to run is normalised (`support.normalised`); TOKEN in a command is the latest token printed.
`FENCEPOST_REWRITE=1` rewrites all files to what is printed now.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from .support import FILES, Result, fencepost, normalised, tokens, users_file

DIALOGUES = Path(__file__).resolve().parent / "dialogues"
DASHES = "----"


def said_in(path: Path) -> Iterator[tuple[str, str]]:
    """Commands and what they are expected to print, the exit code last."""
    command, lines = "", list[str]()
    for line in [*path.read_text(encoding="utf-8").splitlines(), "$ "]:
        if line.startswith("$ "):
            if command:
                yield command, "\n".join(lines).strip("\n")
            command, lines = line.removeprefix("$ "), []
        elif line != DASHES:
            lines.append(line)


def answer_to(command: str, latest: list[str]) -> Result:
    name, *arguments = shlex.split(command)
    assert name == "fencepost"
    for argument in arguments:
        if argument.endswith(".py") and (FILES / f"{argument}.txt").is_file():
            users_file(argument.removesuffix(".py"))
    done = fencepost(*(latest[-1] if a == "TOKEN" else a for a in arguments))
    latest += tokens(done.out)
    return done


@pytest.mark.parametrize("path", sorted(DIALOGUES.glob("*.txt")), ids=lambda p: p.stem)
def test_a_dialogue_goes_as_written(path: Path) -> None:
    latest: list[str] = []
    expected, actual = [], []
    for command, wanted in said_in(path):
        done = answer_to(command, latest)
        printed = normalised(done.text).strip("\n")
        expected.append(f"$ {command}\n{DASHES}\n{wanted}\n")
        actual.append(f"$ {command}\n{DASHES}\n{printed}\nexit {done.code}\n")

    if os.environ.get("FENCEPOST_REWRITE"):
        path.write_text("\n".join(actual), encoding="utf-8")
    else:
        assert "\n".join(expected) == "\n".join(actual)
