"""The benchmarks run, and count as others count."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[2] / "benchmarks" / "run.py"


def test_what_is_counted_is_what_others_count() -> None:
    command = [sys.executable, str(RUN), "--counts-only"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "lease (3,4): 991,060 states, 7,503,211 transitions, depth 34, as others count" in done.stdout


@pytest.mark.slow
def test_everything_that_is_measured_can_be(tmp_path: Path) -> None:
    command = [sys.executable, str(RUN), "--runs", "1", "--instances", "20", "--directory", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no other checker was compared: none was given" in done.stdout
