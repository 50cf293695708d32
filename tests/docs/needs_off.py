"""The page of runs in which a claim is broken by a fault that it needs off, and the searches behind it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from fencepost.checker.explore import check
from fencepost.checker.subject import Subject
from fencepost.checker.traces import Trace
from fencepost.checker.traces import table as steps_of
from fencepost.checker.verdicts import Report
from fencepost.model.effects import effects
from fencepost.model.effects.scopes import WHAT_IF
from fencepost.properties import EFFECTS, Claim
from fencepost.properties.needs_off import WHY

from .generated import _EDITED_BY as EDITED_BY
from .generated import table

WIDTH = 108

SHOWN = {
    "lease_version", "log", "knows", "fence", "record", "reply", "happened", "receipt",
    "contacted", "landed_as", "buried",
}  # fmt: skip
"""Columns of the tables. What is sent stands in the steps; of history, only what the claim reads is shown."""

EXCEPTED: Mapping[str, tuple[str, ...]] = {"intent_rederived": ("effects_land_as_stored",)}
"""By fault: the claims whose own sentence excepts it, so that nothing can break or exercise them with it."""

FAULTS = tuple(dict.fromkeys(s for c in EFFECTS.promises() for s in c.needs_off))
"""The faults that some claim needs off."""


@cache
def searched(switch: str) -> tuple[Report, ...]:
    """What is found with the switch on, in each scope for it."""
    return tuple(check(Subject(effects, EFFECTS), scope=scope) for scope in WHAT_IF[switch])


@cache
def broken_by(switch: str) -> dict[str, Trace]:
    """By claim: a shortest run that breaks it with the switch on, in the first scope that has one."""
    found: dict[str, Trace] = {}
    for report in searched(switch):
        assert report.figures["complete"], report.figures["scope"]
        for finding in report.refuted:
            trace, name = finding.trace, finding.claim.name
            assert trace is not None
            if name not in found or len(trace.steps) < len(found[name].steps):
                found[name] = trace
    return found


def exercised(switch: str) -> set[str]:
    """The witnesses that are reached with the switch on, in some scope."""
    return {w for report in searched(switch) for w in report.figures["witnesses"]}


def page() -> str:
    """``docs/needs-off.md``."""
    heading = ("claim", *(f"`{s}`" for s in FAULTS))
    matrix = table(heading, ([f"{c.id} `{c.name}`", *_cells(c)] for c in EFFECTS.promises()))
    sections = "\n".join(section(s) for s in FAULTS)
    harmless = ", ".join(f"`{s}`" for s in WHAT_IF if s not in FAULTS)
    always = ", ".join(f"`{s}`" for s in _always_on())
    return f"""{EDITED_BY}

# What the claims need off

A claim about outside effects says nothing against some faults of the downstream, or of who makes the keys.
With each of them the claim is broken, and this page shows by which run. The number is the length of the
shortest run; `-` says that no run breaks the claim in the scopes that are searched.

{matrix}
Nothing breaks with {harmless}.
{_excepted()}
The remaining faults ({always})
are on in the scopes in which every claim holds. `fencepost list switches` says what each fault is.

In a table of steps, a star marks what has just changed. `send_effect(w1, c2, 1, f1)` sends request `c2` with
key 1 and fingerprint `f1`; `decide_call` is its arrival at the downstream, and `effect-only` or `record-only`
what is left of that when the downstream dies between two transactions. `log` is the step's status and
intent by state version; `happened` and `record` are by intent and by key.

{sections}"""


def _excepted() -> str:
    """Which claims say nothing of a fault, by their own sentence."""
    return "\n".join(f"{_quoted(claims)} promises nothing with `{s}` on, as its sentence says."
                     for s, claims in EXCEPTED.items())  # fmt: skip


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def section(switch: str) -> str:
    """The runs with one fault."""
    found = broken_by(switch)
    runs = "\n".join(_run(c, switch, found[c.name]) for c in EFFECTS.promises() if c.name in found)
    return f"## {switch}\n\nThe fault: {effects.switches[switch]}.\n\n{runs}"


def _cells(claim: Claim) -> Iterator[str]:
    for switch in FAULTS:
        trace = broken_by(switch).get(claim.name)
        yield "-" if trace is None else f"[{len(trace.steps)}](#{_anchor(claim, switch)})"


def _anchor(claim: Claim, switch: str) -> str:
    return f"{claim.name}-with-{switch}".lower()


def _run(claim: Claim, switch: str, trace: Trace) -> str:
    steps = "\n".join(steps_of(_shown(trace), effects, width=120))
    result = f"REFUTED in {len(trace.steps)} steps, {claim.id}: {claim.sentence}"
    return f"""### {claim.name} with {switch}

{textwrap.fill(result, WIDTH)}

{textwrap.fill(WHY[claim.name, switch], WIDTH)}

```
{steps}
```
"""


def _shown(trace: Trace) -> Trace:
    """The run with the columns that are shown."""

    def kept(state: Mapping[str, int]) -> dict[str, int]:
        return {k: v for k, v in state.items() if re.split(r"[\[.]", k)[0] in SHOWN}

    steps = tuple(replace(step, state=kept(step.state)) for step in trace.steps)
    return replace(trace, initial=kept(trace.initial), steps=steps)


def _always_on() -> list[str]:
    classes = {"fenced", "keyed", "queryable", "revisioned"}
    return [s for s in effects.switches if s not in WHAT_IF and s not in classes]
