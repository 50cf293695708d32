"""`simulate`: random runs from the action table, drawn and shrunk by Hypothesis.

A sample refutes or says nothing: that no run broke a claim is UNDETERMINED, with the number of runs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.explore import needed_off, run_trace
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Finding, Report, Verdict
from fencepost.model import Scope
from fencepost.model.run import Runner
from fencepost.properties import Claim, Kind

Steps = list[tuple[str, tuple[int, ...]]]
Progress = Callable[[str], None]


class _BrokenError(Exception):
    """A run broke a claim: what Hypothesis shrinks."""


@dataclass(slots=True)
class _Drawn:
    """Runs that were drawn, their steps and how these ended; tries to shorten a run are not among them."""

    runs: int = 0
    steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Sample:
    runner: Runner
    claims: list[Claim]
    steps_at_most: int
    deadline: float | None
    made: _Drawn = field(default_factory=_Drawn)
    """What was drawn so far in this pass."""
    most: _Drawn = field(default_factory=_Drawn)
    """What was drawn in the pass with the most runs: all passes draw the same until one of them shrinks."""
    shrinking: bool = False
    seen: set[str] = field(default_factory=set)
    broken: dict[str, Steps] = field(default_factory=dict)

    def run(self, data: Any, wanted: set[str]) -> None:
        """One run; raises _BrokenError at the first claim of `wanted` that it breaks.

        Once a run is broken, what Hypothesis asks for are tries to shorten it, which do not count.
        """
        outcomes: Counter[str] = Counter()
        counts = not self.shrinking
        try:
            self._run(data, wanted, outcomes)
        except _BrokenError:
            self.shrinking = True
            self._count(outcomes, counts=counts)
            raise
        self._count(outcomes, counts=counts)

    def _count(self, outcomes: Counter[str], *, counts: bool) -> None:
        if counts:
            self.made.runs += 1
            self.made.steps += outcomes.total()
            self.made.outcomes.update(outcomes)
            if self.made.runs >= self.most.runs:
                self.most = self.made

    def next_pass(self) -> None:
        """The runs are drawn anew, for the claims that are not broken yet."""
        self.made, self.shrinking = _Drawn(), False

    def _run(self, data: Any, wanted: set[str], outcomes: Counter[str]) -> None:
        from hypothesis import strategies as st

        state = self.runner.initial()
        steps: Steps = []
        for _ in range(data.draw(st.integers(1, self.steps_at_most), label="steps")):
            if self.deadline is not None and time.monotonic() > self.deadline:
                return
            possible = list(self.runner.transitions(state))
            if not possible:
                return
            made = possible[data.draw(st.integers(0, len(possible) - 1), label="step")]
            steps.append((made.action.name, made.codes))
            outcomes[f"{made.action.name} {made.outcome}"] += 1
            for claim in self.claims:
                over = self.runner.holds_step(claim.predicate, state, made) if claim.over_steps else None
                true = self.runner.holds(claim.predicate, made.state) if over is None else over
                if claim.kind is Kind.SOMETIMES:
                    if true:
                        self.seen.add(claim.name)
                elif not true and claim.name in wanted:
                    self.broken[claim.name] = list(steps)
                    raise _BrokenError(claim.name)
            state = made.state


def simulate(
    subject: Subject,
    *,
    scope: str | Scope = "",
    claims: Iterable[str] = (),
    runs: int = 300,
    steps: int = 40,
    seed: int = 0,
    budget_s: float | None = None,
    on_progress: Progress | None = None,
) -> Report:
    """`runs` random runs of up to `steps` steps each; the same for the same seed. `budget_s` in seconds.

    In the subject's first scope where none is given.
    """
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    started = time.monotonic()
    where = subject.scope(scope) if isinstance(scope, str) else scope
    chosen = subject.chosen(claims)
    witnesses = {w.name: w for c in chosen for w in subject.claims.witnesses_of(c.id)}
    deadline = None if budget_s is None else started + budget_s
    sample = _Sample(Runner(subject.protocol, where), [*chosen, *witnesses.values()], steps, deadline)
    wanted = {c.name for c in chosen}
    while wanted and (deadline is None or time.monotonic() < deadline):
        sample.next_pass()

        @seeded(seed)
        @settings(
            max_examples=runs, database=None, deadline=None, phases=[Phase.generate, Phase.shrink],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            report_multiple_bugs=False,
        )  # fmt: skip
        @given(st.data())
        def one(data: Any) -> None:
            sample.run(data, wanted)
            if on_progress is not None:
                on_progress(f"{sample.made.runs:,} runs, {sample.made.steps:,} steps")

        try:
            one()
        except _BrokenError as broken:
            wanted.discard(str(broken))
        else:
            break
    seconds = time.monotonic() - started
    drawn = sample.most
    number = f"{drawn.runs:,} random run{'s' * (drawn.runs != 1)}"
    bound = f"{number} of at most {steps} steps, seed {seed}; {where.describe()}"
    findings = []
    for claim in chosen:
        if claim.name in sample.broken:
            shortest = _shorter(subject, where, claim, sample.broken[claim.name])
            trace = run_trace(subject, where, claim, shortest)
            why = f"{len(trace.steps)} steps, shrunk; a sample need not find the shortest run"
            findings.append(Finding(claim, Verdict.REFUTED, "sampled", bound, why, trace, seconds))
        else:
            missing = [w for w in claim.witnesses if w not in sample.seen or needed_off(claim, where)]
            why = "no run broke it, and a sample proves nothing"
            why += f"; never exercised: {', '.join(missing)}" if missing else ""
            findings.append(Finding(claim, Verdict.UNDETERMINED, "sampled", bound, why, None, seconds))
    figures = {
        "scope": where.name, "bound": bound, "runs": drawn.runs, "steps": drawn.steps, "seed": seed,
        "outcomes": dict(sorted(drawn.outcomes.items())), "witnesses": sorted(sample.seen),
        "seconds": round(seconds, 3),
    }  # fmt: skip
    return Report("simulate", subject.name, tuple(findings), figures)


def _shorter(subject: Subject, scope: Scope, claim: Claim, steps: Steps) -> Steps:
    """The run without the steps that it can do without, as far as removing them one by one goes."""
    runner = Runner(subject.protocol, scope)

    def breaks(candidate: Steps) -> int:
        """After how many steps the claim is broken; 0 when it is not."""
        state = runner.initial()
        for number, (action, codes) in enumerate(candidate, 1):
            made = runner.step(state, action, codes)
            if isinstance(made, str):
                return 0
            holds = (
                runner.holds_step(claim.predicate, state, made)
                if claim.over_steps
                else runner.holds(claim.predicate, made.state)
            )
            if not holds:
                return number
            state = made.state
        return 0

    i = 0
    while i < len(steps):
        candidate = steps[:i] + steps[i + 1 :]
        length = breaks(candidate)
        if length:
            steps, i = candidate[:length], 0
        else:
            i += 1
    return steps
