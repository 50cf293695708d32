"""The pages of runs in which a claim is broken by a fault that it needs off, and the searches behind them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from fencepost.checker.explore import check
from fencepost.checker.subject import BUILT_IN, BuiltIn, Subject
from fencepost.checker.traces import Trace
from fencepost.checker.traces import table as steps_of
from fencepost.checker.verdicts import Report
from fencepost.model import Scope
from fencepost.model.clocks import scopes as clocks_scopes
from fencepost.model.effects import scopes as effects_scopes
from fencepost.model.recovery import scopes as recovery_scopes
from fencepost.model.triggers import scopes as triggers_scopes
from fencepost.model.workflow import scopes as workflow_scopes
from fencepost.properties import Claim
from fencepost.properties.needs_off import WHY, WHY_CLOCKS, WHY_RECOVERY, WHY_TRIGGERS, WHY_WORKFLOW

from .generated import _EDITED_BY as EDITED_BY
from .generated import table

WIDTH = 108


@dataclass(frozen=True, slots=True)
class Part:
    """What is tried with one protocol: why each claim breaks, in which scopes, and what the tables show.

    What is sent stands in the steps; of history, only what the claim reads is shown. `excepted` has, by
    fault, the claims whose own sentence excepts it, so that nothing can break or exercise them with it.
    """

    name: str
    why: Mapping[tuple[str, str], str]
    what_if: Mapping[str, tuple[Scope, ...]]
    shown: Collection[str]
    about: str
    reads: str
    excepted: Mapping[str, tuple[str, ...]]

    @property
    def built_in(self) -> BuiltIn:
        return BUILT_IN[self.name]

    @property
    def claims(self) -> list[Claim]:
        return self.built_in.claims.promises()

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults that some claim needs off."""
        return tuple(dict.fromkeys(s for c in self.claims for s in c.needs_off))


PARTS: Mapping[str, Part] = {
    p.name: p
    for p in (
        Part(
            "effects",
            WHY,
            effects_scopes.WHAT_IF,
            {
                "lease_version",
                "log",
                "knows",
                "fence",
                "record",
                "reply",
                "happened",
                "receipt",
                "contacted",
                "landed_as",
                "buried",
            },
            "A claim about outside effects says nothing against some faults of the downstream, or of "
            "who makes the keys.",
            "`send_effect(w1, c2, 1, f1)` sends request `c2` with key 1 and fingerprint `f1`; "
            "`decide_call` is its arrival at the downstream, and `effect-only` or `record-only` what "
            "is left of that when the downstream dies between two transactions. `log` is the step's "
            "status and intent by state version; `happened` and `record` are by intent and by key.",
            {"intent_rederived": ("effects_land_as_stored",)},
        ),
        Part(
            "workflow",
            WHY_WORKFLOW,
            workflow_scopes.WHAT_IF,
            {
                "lease_version",
                "status",
                "intent",
                "knows",
                "fence",
                "record",
                "reply",
                "happened",
                "buried",
                "contacted",
            },
            "What several steps claim of their effects rests on the same downstream as one step does. "
            "Effects in two transactions and minted keys are not in this model: `effects` has them.",
            "`send_effect(w1, c1, s1)` sends the effect of step `s1` as call `c1`; `decide_call` is "
            "its arrival at the downstream, with `again` if another copy is on its way. `record` and "
            "`happened` are by step, by what is done (`act`, or `undo` for its compensation), and by "
            "intent.",
            {},
        ),
        Part(
            "triggers",
            WHY_TRIGGERS,
            triggers_scopes.WHAT_IF,
            {"row", "record", "answered", "told", "target", "kept", "settled", "received", "landings"},
            "What is claimed of triggers rests on a dedup record at the store, and what is claimed of "
            "notifications on one at the recipient.",
            "`send_trigger(a1, e1, r1, e1, f1)` delivers event `e1` of source `a1` as request `r1`, "
            "with the key of `e1` and payload `f1`; `decide_trigger(r1, i1, …)` is its arrival at the "
            "store, which may begin instance `i1`. `intend_notice(i1, k1)` commits that a notification of "
            "kind `k1` is to be sent to the target as it stands; `send_notice(i1, k1, 0, n1, 0)` sends that "
            "to target version 0 as notice `n1`, with the key of target version 0.",
            {},
        ),
        Part(
            "recovery",
            WHY_RECOVERY,
            recovery_scopes.WHAT_IF,
            {"lease_version", "state_version", "log", "checkpoint", "phase", "view", "fate", "made"},
            "What is claimed of checkpoints that somebody tampers with rests on a key that this "
            "somebody does not have.",
            "`change_content(knowingly, …)` writes other steps into the checkpoint, and its hash "
            "anew. `log` is, by state version: how many steps are done, what the next one does, the "
            "definition, the lease version of the commit, and whether a person has it.",
            {},
        ),
        Part(
            "clocks",
            WHY_CLOCKS,
            clocks_scopes.WHAT_IF,
            {"lease_version", "expires_at", "clock", "mark", "believes", "left", "granted", "asks"},
            "What is claimed of a worker's own clock rests on clocks that run alike.",
            "`left` is how much of its lease a worker counts by its own clock, and `clock` what the store's "
            "shows.",
            {},
        ),
    )
}
"""By name, in the order in which they are read."""


@cache
def searched(name: str, switch: str) -> tuple[Report, ...]:
    """What is found with the switch on, in each scope for it."""
    part = PARTS[name]
    subject = Subject(part.built_in.protocol, part.built_in.claims)
    return tuple(check(subject, scope=scope) for scope in part.what_if[switch])


@cache
def broken_by(name: str, switch: str) -> dict[str, Trace]:
    """By claim: a shortest run that breaks it with the switch on, in the first scope that has one."""
    found: dict[str, Trace] = {}
    for report in searched(name, switch):
        assert report.figures["complete"], report.figures["scope"]
        for finding in report.refuted:
            trace, claim = finding.trace, finding.claim.name
            assert trace is not None
            if claim not in found or len(trace.steps) < len(found[claim].steps):
                found[claim] = trace
    return found


def exercised(name: str, switch: str) -> set[str]:
    """The witnesses that are reached with the switch on, in some scope."""
    return {w for report in searched(name, switch) for w in report.figures["witnesses"]}


# -- the pages


def index() -> str:
    """``docs/needs-off.md``."""
    parts = "\n".join(_matrix(part) for part in PARTS.values())
    others = " and ".join(f"`{name}`" for name in BUILT_IN if name not in PARTS)
    return f"""{EDITED_BY}

# What the claims need off

Some faults are beyond what a protocol can mend: they belong to somebody else. With each of them some claims
are broken, and say so: they *need* the switch of that fault *off*. Here is which claim breaks with which
fault; the number is the length of the shortest run, and leads to it. `-` says that no run breaks the claim
in the scopes that are searched. Claims that no fault breaks are left out; so are {others}, which
need nothing off.

[The world](protocol/world.md) says what each fault is.

{parts}"""


def _matrix(part: Part) -> str:
    heading = ("claim", *(f"`{s}`" for s in part.faults))
    needy = [c for c in part.claims if c.needs_off]
    matrix = table(heading, ([f"{c.id} `{c.name}`", *_cells(part, c)] for c in needy))
    return f"""## {part.name}

{textwrap.fill(part.about, WIDTH)}

{matrix}"""


def page(name: str) -> str:
    """``docs/needs-off/….md``: the runs of one protocol."""
    part = PARTS[name]
    sections = "\n".join(section(name, s) for s in part.faults)
    return f"{_head(part)}\n{sections}"


def _head(part: Part) -> str:
    harmless = ", ".join(f"`{s}`" for s in part.what_if if s not in part.faults)
    others = ", ".join(f"`{s}`" for s in _others(part))
    said = [
        f"Nothing breaks with {harmless}." if harmless else "",
        *(
            f"{_quoted(names)} promises nothing with `{s}` on, as its sentence says."
            for s, names in part.excepted.items()
        ),
        f"With all other faults ({others}) every claim is proved.",
    ]
    about = (
        f"{part.about} This page shows the shortest run for each; [all](../needs-off.md) are listed together."
    )
    reads = f"In a table of steps, a star marks what has just changed. {part.reads}"
    return f"""{EDITED_BY}

# What the claims of {part.name} need off

{textwrap.fill(about, WIDTH)}

{textwrap.fill(" ".join(filter(None, said)), WIDTH)}

{textwrap.fill(reads, WIDTH)}
"""


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def section(name: str, switch: str) -> str:
    """The runs with one fault."""
    part, found = PARTS[name], broken_by(name, switch)
    runs = "\n".join(_run(part, c, switch, found[c.name]) for c in part.claims if c.name in found)
    return f"## {switch}\n\nThe fault: {part.built_in.protocol.switches[switch]}.\n\n{runs}"


def _cells(part: Part, claim: Claim) -> Iterator[str]:
    for switch in part.faults:
        trace = broken_by(part.name, switch).get(claim.name)
        link = f"needs-off/{part.name}.md#{_anchor(claim, switch)}"
        yield "-" if trace is None else f"[{len(trace.steps)}]({link})"


def _anchor(claim: Claim, switch: str) -> str:
    return f"{claim.name}-with-{switch}".lower()


def _run(part: Part, claim: Claim, switch: str, trace: Trace) -> str:
    steps = "\n".join(steps_of(_shown(part, trace), part.built_in.protocol, width=120))
    result = f"REFUTED in {len(trace.steps)} steps, {claim.id}: {claim.sentence}"
    return f"""### {claim.name} with {switch}

{textwrap.fill(result, WIDTH)}

{textwrap.fill(part.why[claim.name, switch], WIDTH)}

```
{steps}
```
"""


def _shown(part: Part, trace: Trace) -> Trace:
    """The run with the columns that are shown."""

    unknown = set(part.shown) - set(part.built_in.protocol.variables)
    assert not unknown, f"{part.name} has no {unknown}"

    def kept(state: Mapping[str, int]) -> dict[str, int]:
        return {k: v for k, v in state.items() if re.split(r"[\[.]", k)[0] in part.shown}

    steps = tuple(replace(step, state=kept(step.state)) for step in trace.steps)
    return replace(trace, initial=kept(trace.initial), steps=steps)


NO_FAULTS = {
    *("fenced", "keyed", "queryable", "revisioned", "declining"),
    *("chained", "gates", "irreversible", "retries", "intent_renewed", "cancels", "operator"),
    "migration_registered",
}
"""Switches of what a downstream can do, and of what a workflow has."""


def _others(part: Part) -> list[str]:
    switches = part.built_in.protocol.switches
    return [s for s in switches if s not in part.what_if and s not in NO_FAULTS]
