"""Output that nobody reads, or that cannot be written: the exit code is never one that nobody gave."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .support import SMALLEST, fencepost, tokens

PROGRAM = "from fencepost.cli.main import main; main()"

LATE = ("--variant", "commits-after-expiry")

COMMANDS = {
    "list": (("list", "claims"), 0),
    "bounded": (("check", "S5", "--scope", SMALLEST), 0),
    "refuted": (("check", "S27", *LATE, "--scope", SMALLEST), 1),
    "undetermined": (("simulate", "S5", "--runs", "3"), 3),
    "json": (("check", "S27", *LATE, "--scope", SMALLEST, "--json"), 1),
    "usage": (("check", "S999"), 2),
    "help": (("check", "--help"), 0),
}


def code_of(
    arguments: tuple[str, ...], *, stdout: int | None, stderr: int | None = None
) -> tuple[int, bytes]:
    """The exit code, and what went to stderr where that is not given."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE if stderr is None else stderr,
        check=False,
    )
    return done.returncode, done.stderr or b""


def unread_pipe() -> int:
    """The end to write to of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.parametrize("name", COMMANDS)
def test_a_closed_pipe_ends_quietly_with_the_code_of_the_verdict(name: str) -> None:
    arguments, code = COMMANDS[name]
    pipe = unread_pipe()
    said = code_of(arguments, stdout=pipe)
    both, _ = code_of(arguments, stdout=pipe, stderr=pipe)
    os.close(pipe)

    assert said[0] == both == code
    assert (said[1] == b"") == (name != "usage")


@pytest.mark.parametrize("name", ["bounded", "refuted"])
@pytest.mark.skipif(sys.platform == "win32", reason="the shell closes the output")
def test_an_output_closed_from_the_start_has_the_code_of_the_verdict(name: str) -> None:
    arguments, code = COMMANDS[name]
    command = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", sys.executable, "-c", PROGRAM, *arguments]

    assert subprocess.run(command, check=False).returncode == code


@pytest.mark.parametrize("name", ["list", "bounded", "refuted", "json"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_output_that_is_full_is_an_error_and_no_verdict(name: str) -> None:
    with Path("/dev/full").open("wb") as full:
        code, said = code_of(COMMANDS[name][0], stdout=full.fileno())

    assert code == 4
    assert said.startswith(b"fencepost: the output cannot be written")
    assert b"Traceback" not in said
    assert b"Exception ignored" not in said


def test_a_replay_into_a_closed_pipe_has_its_own_code() -> None:
    (token,) = tokens(fencepost(*COMMANDS["refuted"][0]).out)
    pipe = unread_pipe()
    said = code_of(("replay", token), stdout=pipe)
    os.close(pipe)

    assert said == (1, b"")
