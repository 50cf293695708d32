"""Runs real processes against each other: all are ready before the first one goes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .serving import ENVIRONMENT

TIMEOUT_SECONDS = 180


def raced(programs: Sequence[Sequence[str]]) -> list[list[dict[str, Any]]]:
    """Run programs of this directory, with their arguments, to their end; the journal of each."""
    here = Path(__file__).parent
    racers = [
        subprocess.Popen(
            [sys.executable, str(here / program), *arguments],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for program, *arguments in programs
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        journals = [racer.communicate(timeout=TIMEOUT_SECONDS)[0] for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
    assert [racer.returncode for racer in racers] == [0] * len(racers)
    return [[json.loads(line) for line in journal.splitlines()] for journal in journals]
