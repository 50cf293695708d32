"""`verify_statements`: an implementation is checked statement by statement, with grade S.

From a state of each class, each two calls are run against each other in all interleavings of their
statements; then with faults at each statement: a death, a lost reply, and a pause in which the lease runs out
and another worker takes over and commits. After every statement what is stored must be what the model has
before or after the call.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.subject import Subject, core_subject
from fencepost.checker.traces import Trace, TraceStep
from fencepost.checker.verdicts import Finding, Verdict
from fencepost.conformance import causes
from fencepost.conformance.adapter import Adapter
from fencepost.conformance.chosen_goals import beyond_reach
from fencepost.conformance.classes import Call, Pair, Start, named_arguments
from fencepost.conformance.counterparts import counterpart_of, reach_of
from fencepost.conformance.gate import Policy
from fencepost.conformance.oracle import Oracle
from fencepost.conformance.refinement import Memory
from fencepost.conformance.report import UNTELLABLE, Conformance
from fencepost.conformance.schedules import (
    Dies,
    Follow,
    Item,
    Outcome,
    Pauses,
    Schedule,
    Script,
    interleavings,
)
from fencepost.conformance.shares import in_processes
from fencepost.conformance.stage import Ready, Stage
from fencepost.conformance.tapes import Played, Tape, play_twice, saved_tape, shrunk
from fencepost.conformance.verify import Preparation, Progress, prepare, silent
from fencepost.conformance.vocabulary import message
from fencepost.conformance.work import Work, starts_in_words, to_witnesses, work_of
from fencepost.properties import Claim

GRADE = "statements, grade S"

PROGRESS_EVERY = 500

_TAKES_OVER = (
    "restart", "expire", "renew", "acquire", "send_commit", "decide_commit",
    "send_effect", "decide_call", "receive_reply", "commit",
)  # fmt: skip
"""What another worker does, as far as the protocol has it: of the core, and of effects."""


@dataclass(slots=True)
class Tally:
    """What was run and seen."""

    classes: int = 0
    pairs: int = 0
    interleavings: int = 0
    schedules: int = 0
    statements: int = 0
    deaths: int = 0
    returns: int = 0
    """Deaths after which the same worker was started again."""
    pauses: int = 0
    lost: int = 0
    strayed: int = 0
    """Starts that the implementation does not come to as the model does."""
    pairs_with_faults: int = 0
    left_out: int = 0
    """Pairs that the budget left no time for, with or without faults."""
    witnessed: Counter[str] = field(default_factory=Counter)
    starts: str = ""
    """Where all that begins, in words."""

    def add(self, other: Tally) -> None:
        """Count what another has counted as well."""
        for name in self.__slots__:
            mine = getattr(self, name)
            if isinstance(mine, Counter):
                mine.update(getattr(other, name))
            elif name != "starts":
                setattr(self, name, mine + getattr(other, name))

    @property
    def bound(self) -> str:
        """What was done, in words."""
        faults = (
            "no faults"
            if not self.deaths + self.pauses + self.lost
            else f"{self.deaths} deaths ({self.returns} with a return), {self.pauses} pauses with takeover, "
            f"{self.lost} lost replies"
        )
        return (
            f"{self.classes} classes of states, {self.pairs} pairs of calls, all {self.interleavings} "
            f"interleavings of 2 but for reads that commute; {faults}; {self.starts}"
        )


@dataclass(frozen=True, slots=True)
class Progressed:
    """What a search has found: the counts, the smallest tape of each claim that broke, and when it did."""

    tally: Tally
    broken: dict[str, Tape]
    first_s: dict[str, float]
    expired: bool


class _EnoughError(Exception):
    """The budget is used up, or all that was asked for is refuted."""


@dataclass(slots=True)
class Search:
    """The schedules of one adapter, and the smallest tape found for each claim that broke."""

    prepared: Preparation
    stage: Stage
    deadline: float | None
    on_progress: Progress | None
    memory: Memory = field(default_factory=Memory)
    tally: Tally = field(default_factory=Tally)
    broken: dict[str, Tape] = field(default_factory=dict)
    beyond: frozenset[str] = frozenset()
    """Witnesses that with such an adapter the model itself does not come to."""
    first_s: dict[str, float] = field(default_factory=dict)
    """After how many seconds each claim broke for the first time."""
    began: float = field(default_factory=time.perf_counter)
    expired: bool = False
    _said: int = 0

    def __post_init__(self) -> None:
        """Begin to count."""
        self.tally.starts = starts_in_words(self.prepared.plan)

    def take_in(self, other: Progressed) -> None:
        """Add what was found with a share of the work."""
        self.tally.add(other.tally)
        self.expired = self.expired or other.expired
        for name, seconds in other.first_s.items():
            self.first_s[name] = min(seconds, self.first_s.get(name, seconds))
        for name, tape in other.broken.items():
            if name not in self.broken or tape.cost < self.broken[name].cost:
                self.broken[name] = tape

    # -- one start

    def run_start(self, start: Start, pairs: Iterable[Pair], alone: Iterable[Call], *, faults: bool) -> None:
        """What begins at a start: interleavings and faults of single calls; with `faults`, those of pairs."""
        self.memory.stored.clear()  # the names of commits are those of one start
        ready = self.stage.ready(start.moves)
        for step in ready.steps:
            self.tally.witnessed.update(step.witnessed)
        for name in ready.strays:
            self._note(name, Tape(ready.moves, breaks=name))
        if self.prepared.wanted & {*ready.strays} or ready.state != self._as_model(start):
            self.tally.strayed += not faults
            return
        if not faults:
            self.tally.classes += bool(pairs or alone)
            for pair in pairs:
                self._interleave(ready, pair)
            for call in alone:
                self._faults(ready, call, None)
                self._lost(ready, call)
            return
        for pair in pairs:
            self._faults(ready, pair.first, pair.second)
            if pair.first != pair.second:
                self._faults(ready, pair.second, pair.first)
            self.tally.pairs_with_faults += 1

    def _as_model(self, start: Start) -> Any:
        """The state that the model comes to by the moves of a start, in the scope of the runs."""
        oracle = self.stage.plan.oracle
        state = oracle.runner.initial()
        for move in start.moves:
            state = oracle.moves(state)[move.action][move.arguments].state
        return state

    def _interleave(self, ready: Ready, pair: Pair) -> None:
        scripts = ((_item(pair.first),), (_item(pair.second),))
        for _ in interleavings(lambda policy: self._run(ready, scripts, policy)):
            self.tally.interleavings += 1
        self.tally.pairs += 1

    def _faults(self, ready: Ready, call: Call, other: Call | None) -> None:
        """A death, and a pause, after each statement of a call; meanwhile another call, then a takeover."""
        scripts = (
            self._goes_on(ready, call),
            (() if other is None else (_item(other),)) + self._survivor(ready, call),
        )
        statements = self._run(ready, scripts, Follow()).statements[0]
        back = self._comes_back(ready, call) if other is None else ()
        for number in range(1, statements + 1):
            for others in (scripts[1], back + scripts[1], scripts[1] + back) if back else scripts[1:]:
                self._run(ready, (scripts[0], others), Dies(number))
                self.tally.deaths += 1
                self.tally.returns += others != scripts[1]
        for number in range(statements):
            self._run(ready, scripts, Pauses(number))
            self.tally.pauses += 1

    def _goes_on(self, ready: Ready, call: Call) -> Script:
        """The call; after it, a worker that only looked commits on what it saw."""
        made = self.stage.plan.oracle.moves(ready.state)[call.action][call.codes]
        named = named_arguments(made)
        if made.action.is_operation or "w" not in named:
            return (_item(call),)
        learned = ("send_commit", "decide_commit", "commit")
        return _item(call), *(Item(a, None, named["w"].label) for a in learned)

    def _lost(self, ready: Ready, call: Call) -> None:
        """The reply is lost: the worker re-reads or asks, and another one takes over meanwhile or later."""
        script = self._without_reply(ready, call)
        if not script:
            return
        scripts = (script, self._survivor(ready, call))
        statements = self._run(ready, scripts, Follow()).statements[0]
        for number in range(statements):
            self._run(ready, scripts, Pauses(number))
            self.tally.lost += 1

    def _without_reply(self, ready: Ready, call: Call) -> Script:
        moves = self.stage.plan.oracle.moves(ready.state)
        made = moves[call.action][call.codes]
        named = named_arguments(made)
        if "lost" in named:
            wanted = {**named, "lost": True}
            for codes, other in moves[call.action].items():
                if named_arguments(other) == wanted:
                    learns = ("reread", "send_commit", "decide_commit", "commit")
                    return Item(call.action, codes), *(Item(a, None, named["w"].label) for a in learns)
        if made.action.is_operation and "c" in named and "lose_answer" in self.stage.plan.performances:
            reader = self.memory.reader(self.stage.plan.oracle, ready.state)
            sender = message(reader, named["c"]).by.worker.label
            asks = ("lose_answer", "ask", "decide_commit")
            return _item(call), *(Item(a, None, sender) for a in asks)
        return ()

    def _survivor(self, ready: Ready, call: Call) -> Script:
        """What another worker does when the one of a call is gone or stands still: take over and commit."""
        absent_one = self._worker_of(ready, call)
        names = [label for label in _workers(self.stage.plan.oracle) if label != absent_one]
        return tuple(
            Item(action, None, names[0]) for action in _TAKES_OVER if action in self.stage.plan.performances
        )

    def _comes_back(self, ready: Ready, call: Call) -> Script:
        """The worker of a call is dead, with all of its connections, and a process of that name begins."""
        who, possible = self._worker_of(ready, call), self.stage.plan.performances
        return tuple(Item(action, None, who) for action in ("crash", "restart") if action in possible)

    def _worker_of(self, ready: Ready, call: Call) -> str:
        """Who makes a call, or sent the message that arrives with it."""
        oracle = self.stage.plan.oracle
        named = named_arguments(oracle.moves(ready.state)[call.action][call.codes])
        reader = self.memory.reader(oracle, ready.state)
        found = named["w"] if "w" in named else message(reader, named["c"]).by.worker
        return str(found.label)

    # -- one schedule

    def _run(self, ready: Ready, scripts: tuple[Script, ...], policy: Policy) -> Outcome:
        if self.deadline is not None and time.perf_counter() >= self.deadline:
            self.expired = True
            raise _EnoughError
        outcome = Schedule(self.stage, self.memory, scripts).run(ready, policy)
        tally = self.tally
        tally.schedules += 1
        tally.statements += sum(outcome.statements)
        tally.witnessed.update(outcome.account.witnessed)
        for name in outcome.breaks:
            self._note(name, Tape(ready.moves, scripts, outcome.choices, name))
        if self.on_progress is not None and tally.schedules - self._said >= PROGRESS_EVERY:
            self._said = tally.schedules
            self.on_progress(
                f"{tally.schedules} schedules, {tally.pairs} pairs, {len(self.broken)} claims broken"
            )
        return outcome

    def _note(self, name: str, tape: Tape) -> None:
        if name not in self.prepared.wanted | self.prepared.declared:
            return
        self.first_s.setdefault(name, round(time.perf_counter() - self.began, 3))
        if name not in self.broken or tape.cost < self.broken[name].cost:
            self.broken[name] = tape
        if set(self.broken) >= self.prepared.wanted | self.prepared.declared:
            raise _EnoughError


def _item(call: Call) -> Item:
    return Item(call.action, call.codes)


def _workers(oracle: Oracle) -> list[str]:
    from fencepost.model.concrete import values_of
    from fencepost.model.core.state import workers

    return [w.label for w in values_of(workers, oracle.scope)]


# -- the entry point


def verify_statements(
    adapter: Adapter,
    *,
    budget_s: float | None = None,
    claims: Iterable[str] = (),
    faults: bool = True,
    every_pair: bool = False,
    seed: int = 0,
    jobs: int = 1,
    subject: Subject | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Conformance:
    """Check an implementation statement by statement, and give a verdict on each claim, with grade S.

    All interleavings of two calls are run, and with `faults` also deaths, pauses with a takeover, and lost
    replies at each statement. What `budget_s` seconds leave out is left out, and claims that did not break
    are UNDETERMINED then. `every_pair` runs each pair from each class, not only those that do something else.
    `claims` are ids or names, none means all. A `seed` other than 0 is another order of the starts. `jobs`
    processes share the starts, where the system can fork: call it so from a process without threads.
    `subject` takes the place of the built-in model and claims. Raises MappingError and UsageError as `verify`
    does, TypeError where `Surroundings.watched` is given what cannot be watched.
    """
    started = time.perf_counter()
    about = core_subject(adapter.model_variant) if subject is None else subject
    plan, prepared = prepare(
        adapter, scope=reach_of(adapter, about.protocol).statements, claims=claims, subject=about
    )
    work = [*work_of(plan, every_pair=every_pair), *to_witnesses(plan)]
    if seed:
        random.Random(seed).shuffle(work)
    deadline = None if budget_s is None else started + budget_s
    beyond = beyond_reach(plan)
    began = time.perf_counter()

    def search_share(share: Sequence[Work], number: int) -> Progressed:
        with Stage(plan, processor=number) as stage:
            told = on_progress if number == 0 else None
            return _searched(Search(prepared, stage, deadline, told, beyond=beyond), share, faults=faults)

    found = in_processes(work, jobs, search_share)
    searched = time.perf_counter() - started
    with Stage(plan) as stage:
        search = Search(prepared, stage, deadline, on_progress, beyond=beyond)
        for progressed in found:
            search.take_in(progressed)
        findings = []
        for claim in prepared.chosen:
            verdict, why, trace, details = _verdict(search, claim)
            if claim.id in adapter.deviations:
                details["declared"] = adapter.deviations[claim.id]
            seconds = time.perf_counter() - started
            findings.append(Finding(claim, verdict, GRADE, search.tally.bound, why, trace, seconds, details))
    figures = {"seed": seed, "faults": faults, "schedule_seconds": round(started + searched - began, 3)}
    return _report(search, findings, started, searched, figures)


def _searched(search: Search, work: Sequence[Work], *, faults: bool) -> Progressed:
    """Run what there is to run, as far as the budget goes or until all that was asked for is refuted."""
    tally = search.tally
    try:
        for with_faults in (False, True) if faults else (False,):
            for each in work:
                alone = each.alone if faults else ()
                search.run_start(each.start, each.pairs, alone, faults=with_faults)
    except _EnoughError:
        tally.left_out = sum(len(w.pairs) for w in work) - (
            tally.pairs_with_faults if faults else tally.pairs
        )
    return Progressed(tally, search.broken, search.first_s, expired=search.expired)


def _report(
    search: Search, findings: list[Finding], started: float, searched: float, figures: Mapping[str, Any]
) -> Conformance:
    tally, adapter = search.tally, search.stage.plan.adapter
    notes = []
    if tally.strayed:
        notes.append(
            f"{tally.strayed} starts were left out: the implementation does not come there as the model does"
        )
    if search.expired:
        notes.append(f"the search ended with its budget; {tally.left_out} pairs were not run")
    return Conformance(
        "verify_statements",
        adapter.name,
        tuple(findings),
        {
            "classes": tally.classes,
            "pairs": tally.pairs,
            "interleavings": tally.interleavings,
            "schedules": tally.schedules,
            "statements": tally.statements,
            "deaths": tally.deaths,
            "pauses": tally.pauses,
            "lost_replies": tally.lost,
            "left_out": tally.left_out,
            "strayed": tally.strayed,
            **figures,
            "scope": search.stage.plan.oracle.scope.name,
            "bound": tally.bound,
            "broken_after_seconds": dict(search.first_s),
            "search_seconds": round(searched, 3),
            "seconds": round(time.perf_counter() - started, 3),
            "witnesses": dict(sorted(tally.witnessed.items())),
        },
        tuple(notes),
        None,
        dict(adapter.deviations),
    )


def _verdict(search: Search, claim: Claim) -> tuple[Verdict, str, Any, dict[str, Any]]:
    prepared, tally = search.prepared, search.tally
    if claim.name in prepared.untellable:
        return Verdict.NOT_EXERCISED, prepared.untellable[claim.name], None, {UNTELLABLE: True}
    if claim.name in prepared.unseen:
        return Verdict.NOT_EXERCISED, prepared.unseen[claim.name], None, {}
    if claim.name in search.broken:
        return _broken(search, claim)
    if search.expired:
        return Verdict.UNDETERMINED, f"the budget left out {tally.left_out} pairs of calls", None, {}
    if tally.strayed:
        return Verdict.UNDETERMINED, f"{tally.strayed} starts could not be come to as in the model", None, {}
    if nothing := silent(claim, search.beyond, counterpart_of(prepared.plan.oracle.protocol).narrow):
        return Verdict.NOT_EXERCISED, nothing, None, {UNTELLABLE: True}
    witnesses = [w for w in claim.witnesses if w not in search.beyond]
    missing = [w for w in witnesses if not tally.witnessed[w]]
    if missing or not tally.schedules:
        never = f"no {' and no '.join(missing)} came about" if missing else "no schedule was run"
        return Verdict.NOT_EXERCISED, f"never exercised: {never}", None, {}
    counts = [f"{w} × {tally.witnessed[w]}" for w in witnesses]
    return Verdict.HELD, ", ".join(counts) or f"{tally.statements} statements", None, {}


def _broken(search: Search, claim: Claim) -> tuple[Verdict, str, Any, dict[str, Any]]:
    """REFUTED, if the tape breaks the claim twice more; otherwise the implementation is not deterministic."""
    stage, original = search.stage, search.broken[claim.name]
    first = play_twice(stage, original)
    if not first.fails or first.unsteady:
        unsteady = first.unsteady or "the schedule broke it once, and not again"
        why = f"non-deterministic implementation: {unsteady}"
        trace, details = refutation(stage, original, first.played, unsteady=unsteady)
        return Verdict.UNDETERMINED, why, trace, details
    tape = shrunk(stage, original)
    twice = play_twice(stage, tape)
    trace, details = refutation(stage, tape, twice.played, unsteady=twice.unsteady)
    _, deaths, changes, moves, _ = tape.cost
    return Verdict.REFUTED, f"{moves} moves and calls, {changes} switches, {deaths} deaths", trace, details


def refutation(stage: Stage, tape: Tape, played: Played, *, unsteady: str) -> tuple[Trace, dict[str, Any]]:
    """The trace of a tape that broke something: its steps, its statements, and the cause in a sentence."""
    plan = stage.plan
    saved = saved_tape(plan, tape, played.difference)
    account = None if played.outcome is None else played.outcome.account
    details: dict[str, Any] = {"tape": saved.as_json(), "difference": played.difference}
    lines = []
    if account is not None:
        details["statements"] = [list(row) for row in causes.statement_rows(account)]
        details["cause"] = causes.cause(account)
        lines += [details["cause"]] if details["cause"] else []
    lines += [f"first difference: {played.difference}"] if played.difference else []
    if unsteady:
        details["unsteady"] = unsteady
        lines.append(f"the implementation is not deterministic: {unsteady}")
    runner = plan.oracle.runner
    initial = codes = runner.codes(runner.initial())
    made = []
    for step in played.ready.steps:
        codes = codes if step.transition is None else runner.codes(step.transition.state)
        made.append(TraceStep(step.move.action, step.move.arguments, step.label, step.answered, codes))
    for done in () if account is None else account.steps:
        codes = runner.codes(done.made.state)
        made.append(TraceStep(done.made.action.name, done.made.codes, done.label, done.made.outcome, codes))
    oracle = plan.oracle
    source = {"adapter": plan.adapter.name, "variant": plan.adapter.model_variant, "tape": saved.token}
    source["protocol"] = saved.protocol
    trace = Trace(
        plan.adapter.name,
        tape.breaks,
        oracle.scope,
        oracle.fingerprint,
        initial,
        tuple(made),
        tuple(lines),
        source,
    )
    return trace, details
