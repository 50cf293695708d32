"""Run mypy and pyright, and fail also when either has read fewer files than there are.

A type checker that takes a namespace package for something else reads a part of it and reports success.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
ROOTS = ("model", "properties", "reference", "cli")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)


def mypy() -> tuple[int, int]:
    """Exit code and number of files checked."""
    done = run("mypy")
    print(done.stdout + done.stderr, end="")
    # "Success: no issues found in 12 source files", "Found 1 error in 1 file (checked 12 source files)"
    counted = re.search(r"(?:found in|checked) (\d+) source files?", done.stdout)
    return done.returncode, int(counted[1]) if counted else 0


def pyright() -> tuple[int, int]:
    """Exit code and number of files checked."""
    done = run("pyright", "--outputjson")
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        print(done.stdout + done.stderr, end="")
        return done.returncode or 1, 0
    for item in report["generalDiagnostics"]:
        line = item["range"]["start"]["line"] + 1 if "range" in item else 1
        path = Path(item["file"])
        place = path.relative_to(PROJECT) if path.is_relative_to(PROJECT) else path
        print(f"{place}:{line}: {item['severity']}: {item['message']}  [{item.get('rule', 'pyright')}]")
    summary = report["summary"]
    print(f"pyright: {summary['errorCount']} errors in {summary['filesAnalyzed']} source files")
    return done.returncode, summary["filesAnalyzed"]


def main() -> int:
    expected = sum(1 for root in ROOTS for _ in (PROJECT / root).rglob("*.py"))
    failed = False
    for name, check in (("mypy", mypy), ("pyright", pyright)):
        code, checked = check()
        failed = failed or code != 0
        if checked != expected:
            print(f"{name} checked {checked} files, but {', '.join(ROOTS)} hold {expected}")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
