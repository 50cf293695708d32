"""Runs that a page speaks of: made by running the model, and looked at for what the page says about them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.diagrams import mermaid, plain
from fencepost.checker.traces import Trace, TraceStep, _columns
from fencepost.model import HISTORY, Protocol, Scope
from fencepost.model.run import Rest, Runner, Transition
from fencepost.properties import Claims

from .pages import row


@dataclass(slots=True)
class Run:
    """A run of a model through steps that are given by their labels."""

    protocol: Protocol
    scope: Scope
    states: list[Rest]
    made: list[Transition]
    trace: Trace
    columns: dict[str, Any] = field(default_factory=dict)

    def value(self, step: int, cell: str) -> str:
        """A cell after a step, as a table shows it; step 0 is the first state."""
        states = [self.trace.initial, *(s.state for s in self.trace.steps)]
        return str(self.columns[cell](states[step]))

    def says(self, label: str, outcome: str, *, number: int = 1) -> str:
        """The outcome of a step, which must be this one, as code. `number` tells steps of one label apart."""
        found = [s.outcome for s in self.trace.steps if s.label == label]
        assert len(found) >= number, f"{label} is no step of this run"
        assert found[number - 1] == outcome, f"{label} ends {found[number - 1]}, not {outcome}"
        return f"`{outcome}`"

    def ends_with(self, cell: str, value: str) -> str:
        """What a cell holds at the end, which must be this, as code."""
        found = self.value(len(self.made), cell)
        assert found == value, f"{cell} is {found} at the end, not {value}"
        return f"`{value}`"

    def changes_of(self, name: str) -> list[int]:
        """The steps that change a variable or one of its cells."""
        cells = [c for c in self.columns if c.partition("[")[0] == name]
        numbers = range(1, len(self.made) + 1)
        return [n for n in numbers if any(self.value(n - 1, c) != self.value(n, c) for c in cells)]

    def can(self, label: str) -> bool:
        """Whether a step is possible at the end."""
        runner = Runner(self.protocol, self.scope)
        return any(t.label == label for t in runner.transitions(self.states[-1]))

    def broken(self, claims: Claims) -> list[str]:
        """The names of the promises that the run breaks."""
        runner = Runner(self.protocol, self.scope)
        found = []
        for claim in claims.promises():
            if claim.over_steps:
                steps = zip(self.states, self.made, strict=False)
                holds = all(runner.holds_step(claim.predicate, before, step) for before, step in steps)
            else:
                holds = all(runner.holds(claim.predicate, state) for state in self.states)
            found += [] if holds else [claim.name]
        return found

    def gates_held(self) -> None:
        """Check each accepted acquire and commit of the run: gates 1 and 2 were kept."""
        for number, step in enumerate(self.made, 1):
            if step.outcome != "ok" or step.action.name not in ("acquire", "commit"):
                continue
            live = self.value(number - 1, "live")
            if step.action.name == "acquire":
                assert live == "no", f"step {number}: a live lease was taken"
                continue
            worker = step.label.partition("(")[2].partition(",")[0]
            versions = "/".join(self.value(number - 1, v) for v in ("lease_version", "state_version"))
            assert self.value(number - 1, f"believes[{worker}]") == versions, f"step {number}: stale"
            assert self.value(number - 1, "owner").startswith(f"{worker}/"), f"step {number}: no owner"
            assert live == "yes", f"step {number}: the lease is over"

    # -- how a page shows it

    def mermaid(self, about: Iterable[str]) -> str:
        """A diagram that GitHub draws."""
        return f"```mermaid\n{mermaid(self.trace, self.protocol, about=about)}```\n"

    def plain(self, about: Iterable[str]) -> str:
        """A diagram as text."""
        return "```text\n" + "\n".join(plain(self.trace, self.protocol, about=about, width=130)) + "\n```\n"

    def table(self) -> str:
        """Every cell that each step changes, folded away; without history, which only claims read."""
        variables = self.protocol.variables
        kept = [c for c in self.columns if variables[c.partition("[")[0]].home != HISTORY]
        lines = [row("step", "what is done", "outcome", "what changes"), "|---|---|---|---|"]
        for n, step in enumerate(self.trace.steps, 1):
            cells = ((c, self.value(n - 1, c), self.value(n, c)) for c in kept)
            changes = ", ".join(f"`{c}` {was} → {now}" for c, was, now in cells if was != now)
            lines.append(row(str(n), f"`{step.label}`", step.outcome, changes))
        text = "\n".join(lines)
        return f"<details><summary>All that changes, step by step</summary>\n\n{text}\n\n</details>\n"


def run(protocol: Protocol, scope: Scope, steps: str) -> Run:
    """The run of these steps, one a line; AssertionError at the first that the model cannot take."""
    runner = Runner(protocol, scope)
    state = runner.initial()
    initial, states, made, shown = runner.codes(state), [state], [], []
    for number, wanted in enumerate(filter(None, map(str.strip, steps.splitlines())), 1):
        possible = {t.label: t for t in runner.transitions(state)}
        assert wanted in possible, f"step {number}, {wanted}, is not possible; there are {sorted(possible)}"
        step = possible[wanted]
        state = step.state
        states.append(state)
        made.append(step)
        shown.append(TraceStep(step.action.name, step.codes, step.label, step.outcome, runner.codes(state)))
    trace = Trace(protocol.name, "", scope, "", initial, tuple(shown))
    return Run(protocol, scope, states, made, trace, _columns(protocol, scope, initial))


def flowed(text: str, width: int = 118) -> str:
    """A page with its paragraphs and list items wrapped anew: what a run says has any length."""
    made: list[str] = []
    inside = False
    for line in text.split("\n"):
        fence = line.startswith("```")
        is_prose = bool(line) and not (inside or fence or line.startswith(("#", "|", "<", "- ")))
        is_prose = is_prose and not re.match(r"\d\. ", line)
        inside = inside != fence
        if is_prose and made and made[-1] and re.match(r"[^#|<`]|`[^`]", made[-1]):
            made[-1] += " " + line.strip()
        else:
            made.append(line)
    return "\n".join(_wrapped(made, width))


def _wrapped(lines: list[str], width: int) -> Iterator[str]:
    inside = False
    for line in lines:
        fence = line.startswith("```")
        if inside or fence or line.startswith(("#", "|", "<")):
            yield line
        else:
            indent = re.match(r"(- |\d\. )?", line)
            hang = " " * len(indent[0]) if indent else ""
            yield "\n".join(
                textwrap.wrap(
                    line, width, subsequent_indent=hang, break_on_hyphens=False, break_long_words=False
                )
            )
        inside = inside != fence
