"""Runs the commands of console blocks and compares what they print with what the page says.

A block holds lines ``$ command``, each followed by its output. Commands are `fencepost`, `pytest`, `python`
with a file, and ``echo $?``. A line ``…`` in the output of a page stands for any number of lines. A comment
``<!-- run with: … -->`` above a block adds arguments that the page does not show, such as more time for a
busy machine.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from fencepost.cli.main import run

from .pages import EXAMPLES, REWRITE, Block, blocks, with_block

PATTERNS = (
    # What a clock, a processor or a memory says.
    (r"\b\d+\.\d+ ?s\b", "N s"),
    (r"\b[\d,]+ MB at most", "N MB at most"),
    # Names made of the content of a run, which a change of the model changes.
    (r"(?<=replay )[0-9a-z]{6,8}\b", "TOKEN"),
    (r"(?<=along_run_)[0-9a-z]{6}\b", "TOKEN"),
    # Places in our own sources. Those in the examples are compared.
    (r"(fencepost/[\w/]+\.py):\d+", r"\1:LINE"),
    # How many questions the solver needs, and which runs chance gives, differs between versions of both.
    (r"\b[\d,]+ obligations", "N obligations"),
    (r"\b[\d,]+ of them for the solver", "N of them for the solver"),
    (r"\b[\d,]+ (random )?runs\b", r"N \1runs"),
    (r"\b[\d,]+ steps(?=[;,] (seed|2 workers))", "N steps"),
    (r"\b[\d,]+ kinds of steps", "N kinds of steps"),
    (r"× \d+", "× N"),
    # How many changes of the model there was time for.
    (r"\bby \d+ of \d+\b", "by N of M"),
    (r"\b\d+ of \d+ single changes", "N of M single changes"),
    # Where processes were when they were killed, and how often something else happened to them meanwhile.
    (r"(?m)^([a-z-]+) +\d+ +\d+(?= +(it|its|the|that|when|why) )", r"\1 N N"),
    (
        r"\b[\d,]+ (workers? started|leases told of|takeovers|given|answers with a receipt|sent again)",
        r"N \1",
    ),
    (r"\b[\d,]+ (stopped\s+for\s+longer|too late|stale ones refused|kills/s)", r"N \1"),
    (r"\b[\d,]+ (entries in|commits accepted|times a step was begun)", r"N \1"),
    (r"\b[\d,]+ (fences|requests refused by them|effects known not|effects, )", r"N \1"),
    (r"\b[\d,]+ (attested instead|(said\s+not\s+to\s+have\s+by|effects\s+in\s+the\s+ledger))", r"N \1"),
    (r"\bended [\d,]+ workers?", "ended N workers"),
    (r"\b[\d,]+ (successes|cancels|approvals|retries|times delivered|receipts in|notifications)", r"N \1"),
    (r"(?m)\b[\d,]+ (cancelled|failed|succeeded)(?=,|$)", r"N \1"),
    (r"\bkilled\s+[\d,]+\s+times?", "killed N times"),
    (r"\b[\d,]+ commits answered ok, [\d,]+ refused", "N commits answered ok, N refused"),
    (r"\b[\d,]+ requests, [\d,]+ took effect", "N requests, N took effect"),
    (r"\b([\d,]+) compensations begun, \1 done", "N compensations begun, N done"),
    (r"(?<=notifications, )[\d,]+ delivered", "N delivered"),
    (r"\b([\d,]+) effects of \1 intents", "N effects of N intents"),
    (r"\b[\d,]+ effects of [\d,]+ intents", "N effects of M intents"),
    (r"[\w-]+ on \w+ of order-\d+ took effect \d+ times: .*", "a step took effect N times"),
)
"""What is not compared: a pattern, and what stands for it."""

ELISION = "…"

COLUMNS = "100"
"""How wide the output of commands is."""

ONLY_LOOKS = ("check", "list", "explain")
"""The commands of `fencepost` that start no process and leave nothing in this one."""


def normal(text: str, *, strict: bool = False) -> str:
    """The text without what differs from machine to machine."""
    for pattern, instead in PATTERNS:
        text = re.sub(pattern, instead, text)
    if strict:
        return text
    # Columns and line ends move with the length of a number.
    return "\n".join(re.sub(r" {2,}", "  ", line).rstrip() for line in text.splitlines())


def same(documented: str, printed: str, *, strict: bool = False) -> bool:
    """Whether what a page says is what was printed; `strict` looks at spaces and line ends too."""
    parts = [normal(part, strict=strict) for part in re.split(rf"(?m)^{ELISION}$\n?", documented)]
    now = normal(printed, strict=strict)
    if len(parts) == 1:
        return parts[0] == now if strict else _flowed(parts[0]) == _flowed(now)
    if _has_parts(parts, now):
        return True
    one_line_each = ["\n".join(_flowed(text)) for text in (*parts, now)]
    *parts, now = map(normal, one_line_each)
    return not strict and _has_parts(parts, now)


def _has_parts(parts: list[str], now: str) -> bool:
    """Whether a text consists of these parts, in order, and of any lines in between."""
    pattern = r"(.*\n)*?".join(re.escape(part.rstrip("\n")) + ("\n" if part else "") for part in parts)
    return re.fullmatch(pattern, now + "\n") is not None


def _flowed(text: str) -> list[str]:
    """The lines, wrapped ones made one: where a line ends depends on the length of numbers."""
    return re.sub(r"\n +(?=\S)", " ", text).split("\n")


@dataclass(slots=True)
class Console:
    """A directory with the examples, in which commands run; each different command runs once."""

    directory: Path
    known: dict[tuple[str, ...], tuple[str, int]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    code: int = 0

    def __post_init__(self) -> None:
        """Put the examples where the commands of the pages look for them."""
        here = self.directory / "docs" / "examples"
        shutil.copytree(EXAMPLES, here, ignore=shutil.ignore_patterns("__pycache__"))

    def run(self, command: str, more: str = "") -> str:
        """What a command prints, on both of its outputs."""
        if command == "echo $?":
            return f"{self.code}\n"
        words = [self.tokens.get(word, word) for word in shlex.split(f"{command} {more}")]
        arguments = tuple(words)
        if arguments not in self.known:
            self.known[arguments] = self.process(words)
        text, self.code = self.known[arguments]
        return text

    def process(self, words: list[str]) -> tuple[str, int]:
        programs = {
            "fencepost": ("-m", "fencepost.cli.main"), "pytest": ("-m", "pytest"), "python": (),
        }  # fmt: skip
        assert words[0] in programs, f"no program {words[0]!r} in pages: {', '.join(programs)} and echo $?"
        if words[0] == "fencepost" and words[1] in ONLY_LOOKS and "--with" not in words:
            return self.here(words[1:])
        # Where CI is set, pytest prints more.
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_")) and k != "CI"}
        done = subprocess.run(
            [sys.executable, *programs[words[0]], *words[1:]],
            cwd=self.directory,
            env={**kept, "COLUMNS": COLUMNS, "PYTHONIOENCODING": "utf-8"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        # What lies in this directory is named as from here.
        return done.stdout.replace(f"{self.directory}{os.sep}", ""), done.returncode

    def here(self, arguments: list[str]) -> tuple[str, int]:
        """The same in this process, where the models are there already: to load them is most of the work."""
        text = StringIO()
        before = os.environ.get("COLUMNS")
        os.environ["COLUMNS"] = COLUMNS
        try:
            with chdir(self.directory), redirect_stdout(text), redirect_stderr(text):
                code = run(arguments)
        finally:
            os.environ.pop("COLUMNS")
            os.environ.update({} if before is None else {"COLUMNS": before})
        return text.getvalue(), code

    def learn_tokens(self, documented: str, printed: str) -> None:
        """Which run the page means by a name: names follow from content, so they change with the model."""
        pattern = r"(?<=replay )[0-9a-z]{6,8}\b"
        for old, new in zip(re.findall(pattern, documented), re.findall(pattern, printed), strict=False):
            self.tokens[old] = new


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a block, each with the output that follows it."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            assert found, f"output before the first command: {line!r}"
            found[-1] = (found[-1][0], found[-1][1] + line + "\n")
    return found


def run_page(text: str, console: Console) -> tuple[str, list[str]]:
    """The page with outputs as they are, and how each block that is out of date differs."""
    wrong = []
    for number in range(len(list(blocks(text, "console")))):
        block = list(blocks(text, "console"))[number]
        new, different = run_block(block, console)
        if different:
            wrong.append(f"line {block.line}:\n{different}")
            text = with_block(text, block, new)
    return text, wrong


def run_block(block: Block, console: Console) -> tuple[str, str]:
    """The block with outputs as they are, and the difference where there is one."""
    more = block.note.removeprefix("run with: ") if block.note.startswith("run with: ") else ""
    kept, different = [], ""
    for command, documented in commands(block.text):
        printed = console.run(command, more)
        assert "internal error" not in printed, printed
        ours = " ".join(console.tokens.get(word, word) for word in command.split(" "))
        console.learn_tokens(documented, printed)
        right = same(documented.rstrip("\n"), printed.rstrip("\n"), strict=REWRITE)
        output = documented if right else printed
        kept.append(f"$ {ours}\n{output.rstrip()}".rstrip())
        if not right:
            lines = (normal(documented).splitlines(), normal(printed).splitlines())
            changes = difflib.unified_diff(*lines, "page", "now", lineterm="")
            different += "\n".join([f"$ {command}", *changes, ""])
        elif REWRITE and ours != command:
            different += f"$ {command}\n+ $ {ours}\n"
    return "\n".join(kept), different
