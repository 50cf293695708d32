"""`verify`: an implementation is run beside the model, and each claim gets its verdict, with grade O.

First straight to each goal, then at random. A claim that breaks is REFUTED with the shortest run that was
found, made twice before it is shown. One that never broke is HELD, if its witnesses were reached on the
implementation itself.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost.checker.subject import Subject, UsageError
from fencepost.checker.verdicts import Finding, Verdict
from fencepost.conformance.adapter import Adapter
from fencepost.conformance.chosen_goals import beyond_reach, goals_of
from fencepost.conformance.counterparts import counterpart_of, counterparts, reach_of, subjects_had
from fencepost.conformance.goals import Goal
from fencepost.conformance.lockstep import MOST_TRIES, Watch, machine, run_machine, runs_out
from fencepost.conformance.mapping import Lease
from fencepost.conformance.moves import LAST_MOMENT_MS, LEASE_MS, RESTART, Move, Step
from fencepost.conformance.oracle import Oracle
from fencepost.conformance.plans import Plan
from fencepost.conformance.report import UNTELLABLE, Conformance, completed, joined, refutation
from fencepost.conformance.runs import (
    LOCK_STEP,
    again,
    first_difference,
    read_run,
    shortened,
    until_broken,
)
from fencepost.conformance.session import Session
from fencepost.conformance.silence import FAULTS, reading_unseen, saying_nothing
from fencepost.conformance.subjects import subject_of
from fencepost.model import Scope
from fencepost.model.protocol import listed
from fencepost.properties import Claim

Progress = Callable[[str], None]

GRADE = "lock-step, grade O"

BATCH = 40
"""Random runs between two looks at what has broken so far."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """The plan of the runs, the claims that were chosen, and why some of them cannot be asked about."""

    plan: Plan
    chosen: tuple[Claim, ...]
    untellable: Mapping[str, str]
    unseen: Mapping[str, str]

    @property
    def declared(self) -> set[str]:
        """The names of the claims that the adapter declares not to hold."""
        return {c.name for c in self.chosen if c.id in self.plan.adapter.deviations}

    @property
    def wanted(self) -> set[str]:
        """The names of the claims that are to hold."""
        asked = {c.name for c in self.plan.claims} | {LOCK_STEP.name} & {c.name for c in self.chosen}
        return asked - self.declared


def prepare(
    adapter: Adapter,
    *,
    scope: Scope | None = None,
    claims: Iterable[str] = (),
    subject: Subject | None = None,
) -> tuple[Plan, Preparation]:
    """The plan of an adapter's runs, and which claims they are about. Raises MappingError and UsageError."""
    about = subject if subject is not None else subject_of(variant=adapter.model_variant)
    ids = list(claims)
    of_model = [i for i in ids if i not in (LOCK_STEP.id, LOCK_STEP.name)]
    chosen = about.chosen(of_model) if of_model or not ids else []
    known = {LOCK_STEP.id, *(c.id for c in about.claims.promises())}
    known |= {c.id for name in counterparts() for c in subject_of(name).claims.promises()}
    for declared in adapter.deviations:
        if declared not in known:
            raise UsageError(
                f"{adapter.name} declares that it does not hold {declared!r}, which is no claim's id"
            )
    oracle = Oracle(about.protocol, scope or reach_of(adapter, about.protocol).runs)
    faulty = reach_of(adapter, about.protocol).without is not None
    untellable = {**oracle.untellable(chosen), **saying_nothing(oracle, chosen, faulty=faulty)}
    unseen = reading_unseen(Plan(adapter, oracle), [c for c in chosen if c.name not in untellable])
    asked = tuple(c for c in chosen if c.name not in untellable and c.name not in unseen)
    witnesses = {w.name: w for c in asked for w in about.claims.witnesses_of(c.id) if w.name in c.witnesses}
    plan = Plan(adapter, oracle, asked, tuple(witnesses.values()))
    compared = (LOCK_STEP,) if len(of_model) < len(ids) or not ids else ()
    return plan, Preparation(plan, (*compared, *chosen), untellable, unseen)


@dataclass(slots=True)
class Tally:
    """What was done and seen in all runs."""

    plan: Plan
    runs: int = 0
    steps: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    witnessed: Counter[str] = field(default_factory=Counter)
    at_the_very_end: int = 0
    """Leases that ran out while the clock stood at exactly their end."""
    cut_short: Counter[str] = field(default_factory=Counter)

    def step(self, step: Step) -> None:
        """Count a step."""
        self.steps += 1
        self.kinds[f"{step.move.action}: {step.answered}"] += 1
        self.witnessed.update(step.witnessed)
        action, wait_ms = step.move.action, step.move.wait_ms
        if action in self.plan.performances and runs_out(self.plan, action) and wait_ms == 0:
            self.at_the_very_end += 1

    def end(self, session: Session) -> None:
        """Count a run."""
        self.runs += 1
        if session.over:
            self.cut_short[session.over] += 1


@dataclass(slots=True)
class Search:
    """Runs of one adapter, and the shortest run found for each claim that broke."""

    prepared: Preparation
    deadline: float | None = None
    on_progress: Progress | None = None
    tally: Tally = field(init=False)
    broken: dict[str, tuple[Plan, list[Step]]] = field(default_factory=dict)
    beyond: frozenset[str] = frozenset()
    """Witnesses that with such an adapter the model itself does not come to."""

    def __post_init__(self) -> None:
        """Begin to count."""
        self.tally = Tally(self.prepared.plan)

    def expired(self) -> bool:
        """Whether the budget is used up."""
        return self.deadline is not None and time.perf_counter() >= self.deadline

    def note(self, plan: Plan, steps: Sequence[Step], names: Iterable[str]) -> None:
        """Keep the part of a run that breaks each of the names, where it is the shortest so far."""
        for name in names:
            found = until_broken(steps, name)
            if found and (name not in self.broken or len(found) < len(self.broken[name][1])):
                self.broken[name] = plan, found

    def to_goals(self, chosen: Sequence[Goal]) -> None:
        """Straight to each goal: at once, and again with each move in the last millisecond of a lease.

        The first time renewals ask for less than what is left. A downstream that can be restarted is, before
        each move, in a third run to each goal.
        """
        performances = self.prepared.plan.performances.values()
        has_leases = any(how.lease is not Lease.STAYS for how in performances)
        ways = [(0, 1, False), *([(LAST_MOMENT_MS, LEASE_MS, False)] if has_leases else ())]
        if RESTART in self.prepared.plan.others:
            ways.append((0, LEASE_MS, True))
        for way, (wait_ms, renewal_ms, restarts) in enumerate(ways):
            for number, goal in enumerate(chosen, 1):
                if way and self.prepared.plan.reach.sparing and not self._is_witness(goal):
                    continue
                if self.expired():
                    return
                if self.on_progress is not None:
                    self.on_progress(f"goal {number} of {len(chosen)}: {goal.name}")
                self._to_goal(goal, wait_ms, renewal_ms, restarts=restarts)

    def _is_witness(self, goal: Goal) -> bool:
        return any(w.name in (goal.name, *goal.also) for w in self.prepared.plan.witnesses)

    def _to_goal(self, goal: Goal, wait_ms: int, renewal_ms: int, *, restarts: bool) -> None:
        performances = self.prepared.plan.performances
        with Session(self.prepared.plan.within(goal.scope)) as session:
            for action, arguments in goal.steps:
                lease = performances[action].lease
                waits_ms = 0 if lease is Lease.RUNS_OUT else wait_ms
                lease_ms = renewal_ms if lease is Lease.EXTENDS else LEASE_MS
                moves = [Move(action, arguments, waits_ms, lease_ms)]
                for move in [Move(RESTART), *moves] if restarts else moves:
                    step = session.play(move)
                    if step is not None:
                        self.tally.step(step)
            self.tally.end(session)
            self.note(session.plan, session.steps, self.prepared.wanted | self.prepared.declared)

    def at_random(self, chosen: Sequence[Goal], *, examples: int, steps: int, seed: int) -> None:
        """Random runs, in batches; what has broken already is no reason to end a run any more."""

        def end(session: Session) -> None:
            self.tally.end(session)
            self.note(plan, session.steps, self.prepared.declared)

        plan, left, batch = self.prepared.plan, examples, 0
        near = [goal for goal in chosen if goal.scope is None or goal.scope.sizes == plan.oracle.scope.sizes]
        while left > 0 and not self.expired():
            watch = Watch(
                self.prepared.wanted - set(self.broken),
                self.tally.step,
                end,
                self.expired,
                most_tries=MOST_TRIES,
            )
            made = machine(plan, lambda: near, watch)
            run_machine(made, examples=min(left, BATCH), steps=steps, seed=seed * 1_000_003 + batch)
            if watch.broken is not None:
                self.note(plan, watch.broken.steps, watch.broken.names)
            left, batch = left - BATCH, batch + 1
            if self.on_progress is not None:
                tally = self.tally
                self.on_progress(f"{tally.runs} runs, {tally.steps} steps, {len(self.broken)} claims broken")


def silent(claim: Claim, beyond: Collection[str], because: str) -> str:
    """Why nothing is said about a claim in such runs, if none of its witnesses can come about in them."""
    if claim.witnesses and all(w in beyond for w in claim.witnesses):
        return f"{because} the model comes to no {' and no '.join(claim.witnesses)}"
    return ""


def verify(
    adapter: Adapter,
    *,
    scope: Scope | None = None,
    examples: int = 100,
    steps: int = 25,
    seed: int = 0,
    budget_s: float | None = None,
    claims: Iterable[str] = (),
    subject: Subject | None = None,
    on_progress: Progress | None = None,
) -> Conformance:
    """Run an implementation beside the model, and give a verdict on each claim.

    `examples` random runs of up to `steps` moves, or the protocol's share of them, follow two runs to each
    goal, or one where no lease is taken. The same `seed` gives the same runs. With `budget_s` no run goes on
    longer than that; claims are then held for as many runs as there were. `claims` are ids or names, none
    means all. `subject` takes the place of the built-in model and claims. Claims that say nothing with all
    the faults of the protocol's scope are asked of more runs without some, unless `scope` is given. Raises
    MappingError when the model has something that is not mapped to implementations, UsageError for a claim
    that does not exist.
    """
    started = time.perf_counter()
    _, prepared = prepare(adapter, scope=scope, claims=claims, subject=subject)
    search = Search(prepared, None if budget_s is None else started + budget_s, on_progress)
    chosen = goals_of(prepared.plan)
    search.beyond = beyond_reach(prepared.plan)
    search.to_goals(chosen)
    runs = math.ceil(examples * prepared.plan.reach.share)
    search.at_random(chosen, examples=runs, steps=steps, seed=seed)
    report = _report(search, started, {"goals": len(chosen), "seed": seed})
    without = None if scope is not None else prepared.plan.reach.without
    silent = [f.claim.name for f in report.findings if f.why.endswith(FAULTS)]
    if without is None or not silent:
        return report
    left = None if budget_s is None else max(0.0, budget_s - (time.perf_counter() - started))
    second = verify(
        adapter, scope=without, examples=examples, steps=steps, seed=seed, budget_s=left, claims=silent,
        subject=subject, on_progress=on_progress,
    )  # fmt: skip
    return completed(report, second)


def verify_all(
    adapter: Adapter,
    *,
    examples: int = 100,
    steps: int = 25,
    seed: int = 0,
    budget_s: float | None = None,
    claims: Iterable[str] = (),
    on_progress: Progress | None = None,
) -> Conformance:
    """`verify` for the core and each other protocol that the adapter has what it takes for, in one report.

    The findings of all are in it; of several on one id, `of` and `verdicts` give the worst. `budget_s` is for
    all together: each gets what those before it have left. `claims` are ids or names of any.
    """
    started, wanted = time.perf_counter(), list(claims)
    subjects = subjects_had(adapter)
    names = [
        {LOCK_STEP.id, LOCK_STEP.name, *(x for c in s.claims.claims.values() for x in (c.id, c.name))}
        for s in subjects
    ]
    strange = [one for one in wanted if not any(one in known for known in names)]
    reports = []
    for subject, known in zip(subjects, names, strict=True):
        asked = [one for one in wanted if one in known] + strange  # which `verify` refuses, by name
        if wanted and not asked:
            continue
        left = None if budget_s is None else max(0.0, budget_s - (time.perf_counter() - started))
        reports.append(
            verify(
                adapter, examples=examples, steps=steps, seed=seed, budget_s=left, claims=asked,
                subject=subject, on_progress=on_progress,
            )
        )  # fmt: skip
    return joined(reports)


def _report(search: Search, started: float, figures: Mapping[str, Any]) -> Conformance:
    prepared, tally = search.prepared, search.tally
    plan = prepared.plan
    assumes = counterpart_of(plan.oracle.protocol).assumes
    bound = f"{tally.runs} runs, {tally.steps} steps; {plan.oracle.scope.describe()}; {assumes}{_but(plan)}"
    findings = []
    for claim in prepared.chosen:
        verdict, why, trace, details = _verdict(search, claim)
        if claim.id in plan.adapter.deviations:
            details["declared"] = plan.adapter.deviations[claim.id]
        seconds = time.perf_counter() - started
        findings.append(Finding(claim, verdict, GRADE, bound, why, trace, seconds, details))
    notes = [f"{n} runs ended early: {why}" for why, n in tally.cut_short.most_common(3)]
    if search.expired():
        notes.append("the search ended with its budget")
    return Conformance(
        "verify",
        plan.adapter.name,
        tuple(findings),
        {
            "runs": tally.runs,
            "steps": tally.steps,
            **figures,
            "scope": plan.oracle.scope.name,
            "bound": bound,
            "seconds": round(time.perf_counter() - started, 3),
            "at_the_very_end": tally.at_the_very_end,
            "cut_short": sum(tally.cut_short.values()),
            "witnesses": dict(sorted(tally.witnessed.items())),
            "kinds": dict(sorted(tally.kinds.items())),
        },
        tuple(notes),
        None,
        dict(plan.adapter.deviations),
    )


def _but(plan: Plan) -> str:
    """Which actions are tried only where somebody would do them; with `Performance.sensible`, why."""
    narrow = [name for name, how in plan.performances.items() if how.sensible is not None]
    return f"; {listed(narrow)} only where somebody would do so" if narrow else ""


def _verdict(search: Search, claim: Claim) -> tuple[Verdict, str, Any, dict[str, Any]]:
    prepared, tally = search.prepared, search.tally
    if claim.name in prepared.untellable:
        return Verdict.NOT_EXERCISED, prepared.untellable[claim.name], None, {UNTELLABLE: True}
    if claim.name in prepared.unseen:
        return Verdict.NOT_EXERCISED, prepared.unseen[claim.name], None, {}
    if claim.name in search.broken:
        return _broken(search, claim)
    if nothing := silent(claim, search.beyond, counterpart_of(prepared.plan.oracle.protocol).narrow):
        return Verdict.NOT_EXERCISED, nothing, None, {UNTELLABLE: True}
    witnesses = [w for w in claim.witnesses if w not in search.beyond]
    missing = [w for w in witnesses if not tally.witnessed[w]]
    if missing or not tally.steps:
        never = f"no {' and no '.join(missing)} came about" if missing else "no step was made"
        if search.expired():
            return Verdict.UNDETERMINED, f"the budget ended the search: {never}", None, {}
        return Verdict.NOT_EXERCISED, f"never exercised: {never}", None, {}
    counts = [f"{w} × {tally.witnessed[w]}" for w in witnesses]
    return Verdict.HELD, ", ".join(counts) or f"{len(tally.kinds)} kinds of steps", None, {}


def _broken(search: Search, claim: Claim) -> tuple[Verdict, str, Any, dict[str, Any]]:
    """REFUTED, if the run breaks the claim twice more; otherwise the implementation is not deterministic."""
    plan, original = search.broken[claim.name]
    steps = shortened(plan, [s.move for s in original], claim.name)
    twice = again(plan, [s.move for s in steps or original], claim.name)
    unsteady = twice.unsteady
    if not steps:
        steps, unsteady = original, first_difference(original, twice.steps) or unsteady
    trace, details = refutation(plan, claim.name, steps, unsteady=unsteady)
    if twice.fails:
        return Verdict.REFUTED, f"shortest run found: {len(steps)} steps", trace, details
    why = f"non-deterministic implementation: {unsteady or 'the run broke it once, and not again'}"
    return Verdict.UNDETERMINED, why, trace, details


@dataclass(frozen=True, slots=True)
class Replayed:
    """A saved run made again, twice: whether it still fails, what is different now, and the steps."""

    fails: bool
    breaks: str
    difference: str
    unsteady: str
    changed: str
    """What is not as it was when the run was saved: the model, or the name of the adapter; else empty."""
    steps: tuple[Step, ...]


def replay_run(path: Path | str, adapter: Adapter) -> Replayed:
    """Make a saved run again, twice, and say whether it still breaks what it broke. Raises ReplayError."""
    run = read_run(path)
    plan, _ = prepare(adapter, scope=run.scope, subject=subject_of(run.protocol, adapter.model_variant))
    twice = again(plan, run.moves, run.breaks)
    protocol = plan.oracle.protocol
    changes = []
    if run.adapter != adapter.name:
        changes.append(f"the run was made with {run.adapter}")
    if run.protocol != protocol.name:
        changes.append(f"its model was {run.protocol}, and now is {protocol.name}")
    elif run.fingerprint != plan.oracle.fingerprint:
        changes.append("the model has changed since")
    if len(twice.steps) < len(run.moves) and not twice.fails:
        changes.append(f"only {len(twice.steps)} of its {len(run.moves)} moves are possible now")
    difference = next((s.difference for s in twice.steps if s.difference), "")
    return Replayed(twice.fails, run.breaks, difference, twice.unsteady, "; ".join(changes), twice.steps)
