"""`check`: every state of a scope is looked at, on the compiled reading, and each claim gets its verdict.

A claim that is false somewhere is REFUTED with a shortest run, which the run reading has replayed. One that
is true everywhere is BOUNDED, if the search ended and its witnesses were reached; anything else is
UNDETERMINED.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from fencepost.checker.explain import Values, against_unbroken, step_words, why_false
from fencepost.checker.fingerprints import fingerprint
from fencepost.checker.native import Hit, SearchResult, Seek, StateClaim, StepClaim, explore
from fencepost.checker.subject import Subject
from fencepost.checker.traces import ReplayError, Trace, TraceStep, replay
from fencepost.checker.verdicts import Finding, Report, Verdict
from fencepost.model import Counter, FencepostError, Protocol, Scope, ScopeError
from fencepost.model import terms as t
from fencepost.model.fresh import unused_are_alike
from fencepost.model.ground import Grounder, GroundModel, Readings, ground_model
from fencepost.model.protocol import HISTORY
from fencepost.model.run import Rest, Runner
from fencepost.model.trace import PRIME
from fencepost.properties import Claim, Kind

Progress = Callable[[str], None]

ALIKE = "unused ids are alike"
"""What a search takes for granted when it tries only the smallest unused id; checked in every state."""


NEEDS_OFF = "needs_off"
"""In the details of a refutation: the switches that the claim needs off, and that were on."""

UNEXERCISED = "unexercised"
"""In the details of a claim that is true in a whole scope: the witnesses for want of which, and for nothing
else, it is not BOUNDED there."""


class Halted(Exception):  # noqa: N818  # no error: nobody waits for the search any more
    """A search was ended before it had a report."""


class InternalError(FencepostError):
    """Two readings of one model disagree: a mistake in fencepost itself. Please report it with the model."""


def check(
    subject: Subject,
    *,
    scope: str | Scope | Sequence[str | Scope] = (),
    claims: Iterable[str] = (),
    budget_s: float | None = None,
    memory_mb: int | None = None,
    jobs: int = 1,
    stop: str = "all",
    traces: bool = True,
    required: Verdict | None = None,
    on_progress: Progress | None = None,
) -> Report:
    """Look at every state of a scope. `claims` are ids or names; none means all. Budgets in seconds and MiB.

    `scope` may be the name of a group (`Subject.groups`); none means the subject's own. Of several scopes
    `jobs` are searched at the same time, and a claim has one verdict (`fencepost.checker.together`). With
    ``stop="first"`` the search ends with the first violation, and the other claims are UNDETERMINED. Without
    `traces` a refutation carries its length only.
    """
    from fencepost.checker.together import Asked, check_all

    if isinstance(scope, str) and scope in subject.groups:
        scope = subject.groups[scope]
    if isinstance(scope, str | Scope):
        scope = (scope,)
    among = tuple(scope) or subject.default_scopes or (subject.scope(),)
    where = tuple(subject.scope(s) if isinstance(s, str) else s for s in among)
    (report,) = check_all(
        [Asked(subject, where, tuple(claims))], budget_s=budget_s, memory_mb=memory_mb, jobs=jobs, stop=stop,
        traces=traces, required=required, on_progress=on_progress,
    )  # fmt: skip
    return report


def check_one(
    subject: Subject,
    scope: Scope,
    *,
    claims: Iterable[str] = (),
    left_s: Callable[[], float | None] = lambda: None,
    memory_mb: int | None = None,
    stop: str = "all",
    traces: bool = True,
    on_progress: Progress | None = None,
    readings: Readings | None = None,
    turn: AbstractContextManager[Any] | None = None,
    halted: Callable[[], bool] | None = None,
) -> Report:
    """`check` in one scope. `readings` are what has been traced of the protocol in other scopes.

    `turn` is held while the model is read: only one thread may do that. `left_s` says how many seconds the
    search may take, when it is to begin; `halted`, that nobody waits for it any more: then Halted is raised.
    """
    turn = turn or nullcontext()

    def go_on() -> None:
        if halted is not None and halted():
            raise Halted

    with turn:
        go_on()
        chosen = subject.chosen(claims)
        if left_s() == 0:
            return _not_begun(subject, scope, chosen)
        sought = _witnesses(subject, chosen)
        model = ground_model(subject.protocol, scope, readings)
        predicates = {c.name: ground_claim(model, c) for c in (*chosen, *sought)}
        model, predicates = without_unread_history(model, predicates)
        alike = StateClaim(ALIKE, unused_are_alike(model))
    go_on()
    result = explore(
        model,
        claims=[*(_claim(c, predicates[c.name]) for c in chosen), alike],
        seeks=[Seek(c.name, predicates[c.name]) for c in sought],
        budget_s=left_s(),
        memory_mb=memory_mb,
        stop=stop,  # type: ignore[arg-type]
        on_progress=None if on_progress is None else lambda progress: on_progress(str(progress)),
        halted=halted,
    )
    with turn:
        go_on()
        return _report(subject, scope, model, chosen, sought, result, traces=traces)


def _not_begun(subject: Subject, scope: Scope, chosen: list[Claim]) -> Report:
    """What is known of a scope for which no time was left."""
    why = "the search did not finish (time): there was none left to begin"
    findings = [
        Finding(claim, Verdict.UNDETERMINED, "explored", scope.describe(), why, None, 0.0) for claim in chosen
    ]
    figures = {
        "scope": scope.name, "bound": scope.describe(), "states": 0, "transitions": 0, "depth": 0, "cut": 0,
        "complete": False, "why_incomplete": "time", "seconds": 0.0, "compile_seconds": 0.0, "peak_bytes": 0,
        "witnesses": {},
    }  # fmt: skip
    return Report("check", subject.name, tuple(findings), figures, ())


def needed_off(claim: Claim, scope: Scope) -> tuple[str, ...]:
    """The switches that are on in a scope and that the claim needs off: with them it promises nothing."""
    return tuple(s for s in claim.needs_off if s in scope.switches)


def unexercised(claim: Claim, scope: Scope, missing: Sequence[str], where: str = "this scope") -> str:
    """Why a scope does not exercise a claim. With a switch on that it needs off, nothing there counts."""
    if needed := needed_off(claim, scope):
        return f"it needs {' and '.join(needed)} off, on in {where}, and promises nothing there"
    return f"{' and '.join(missing)} not reachable in {where}"


def _witnesses(subject: Subject, chosen: list[Claim]) -> list[Claim]:
    found = {w.name: w for c in chosen for w in subject.claims.witnesses_of(c.id) if w.name in c.witnesses}
    return list(found.values())


def ground_claim(model: GroundModel, claim: Claim) -> t.Term | tuple[t.Term, ...]:
    """A claim as ground terms: one over states, or one per command over steps."""
    return model.step_claim(claim.predicate) if claim.over_steps else model.state_claim(claim.predicate)


def _claim(claim: Claim, terms: t.Term | tuple[t.Term, ...]) -> StateClaim | StepClaim:
    if isinstance(terms, tuple):
        return StepClaim(claim.name, terms)
    return StateClaim(claim.name, terms)


def without_unread_history(
    model: GroundModel, predicates: Mapping[str, t.Term | tuple[t.Term, ...]]
) -> tuple[GroundModel, dict[str, t.Term | tuple[t.Term, ...]]]:
    """The model without the history cells that no claim reads: they would only multiply states."""
    flat = [x for p in predicates.values() for x in (p if isinstance(p, tuple) else (p,))]
    read = {str(v.payload) for v in t.variables_of(flat)}
    variables = model.protocol.variables
    gone = {c.name for c in model.cells if variables[c.variable].home == HISTORY and c.name not in read}
    needed: set[str] = set()
    gone -= {str(v.payload) for c in model.commands for fit in c.fits for v in t.variables_of([fit[0]])}
    while True:  # what a kept history cell is computed from must be kept too, and what may leave the bounds
        more = {
            str(v.payload)
            for command in model.commands
            for cell, term in command.updates.items()
            if cell not in gone
            for v in t.variables_of([term])
        } & gone
        if not more:
            break
        gone -= more
        needed |= more
    commands = tuple(
        replace(c, updates={k: v for k, v in c.updates.items() if k not in gone}) for c in model.commands
    )
    cells = tuple(c for c in model.cells if c.name not in gone)
    initial = {k: v for k, v in model.initial.items() if k not in gone}
    return replace(model, cells=cells, commands=commands, initial=initial), dict(predicates)


def _report(
    subject: Subject,
    scope: Scope,
    model: GroundModel,
    chosen: list[Claim],
    witnesses: list[Claim],
    result: SearchResult,
    *,
    traces: bool,
) -> Report:
    cut = sum(result.cuts.values())
    bound = scope.describe()
    counts = f"{result.states:,} states, {result.transitions:,} transitions, depth {result.depth}"
    closing = f"{cut:,} transitions cut at the bounds" if cut else _closing(subject, scope)
    reached = {w.name for w in witnesses if w.name in result.hits}
    notes = [f"fault: {_fault(model, hit)}" for hit in result.faults]
    if ALIKE in result.hits:
        notes.append(_not_alike(model, result, result.hits[ALIKE]))
    findings = []
    for claim in chosen:
        hit = result.hits.get(claim.name)
        needed = needed_off(claim, scope)
        missing = [w for w in claim.witnesses if w not in reached or needed]
        details: dict[str, Any] = {}
        if hit is not None:
            trace = build_trace(subject, scope, model, claim, hit, result) if traces else None
            steps = hit.depth
            length = f"shortest run: {steps} step{'s' * (steps != 1)}"
            details["steps"] = steps
            if needed:
                details[NEEDS_OFF] = list(needed)
            findings.append(
                Finding(claim, Verdict.REFUTED, "explored", bound, length, trace, result.seconds, details)
            )
            continue
        if result.faults:
            verdict, why = Verdict.UNDETERMINED, f"the model reads something that is not there: {notes[0]}"
        elif ALIKE in result.hits:
            verdict, why = Verdict.UNDETERMINED, notes[-1]
        elif not result.complete:
            verdict, why = (
                Verdict.UNDETERMINED,
                f"the search did not finish ({result.why_incomplete}): {counts}",
            )
        elif missing:
            verdict, why = Verdict.UNDETERMINED, f"never exercised: {unexercised(claim, scope, missing)}"
            details[UNEXERCISED] = missing
        else:
            verdict, why = Verdict.BOUNDED, f"{counts}; {closing}"
        findings.append(Finding(claim, verdict, "explored", bound, why, None, result.seconds, details))
    figures = {
        "scope": scope.name,
        "bound": bound,
        "states": result.states,
        "transitions": result.transitions,
        "depth": result.depth,
        "cut": cut,
        "complete": result.complete,
        "why_incomplete": result.why_incomplete,
        "seconds": round(result.seconds, 3),
        "compile_seconds": round(result.compile_seconds, 3),
        "peak_bytes": result.peak_bytes,
        "witnesses": {w.name: result.hits[w.name].depth for w in witnesses if w.name in result.hits},
    }
    return Report("check", subject.name, tuple(findings), figures, tuple(notes))


def _closing(subject: Subject, scope: Scope) -> str:
    """What it means that no transition was cut: all is seen, unless arguments end at a bound of the scope."""
    ends = {
        f"{domain.name} ≤ {scope.bounds[domain.name]}"
        for action in subject.protocol.actions.values()
        for _, domain in action.parameters
        if isinstance(domain, Counter)
    }
    if ends:
        return f"no transition cut, but arguments looked at only for {' and '.join(sorted(ends))}"
    return "closed below all bounds"


def _not_alike(model: GroundModel, result: SearchResult, hit: Hit) -> str:
    steps = ", ".join(model.commands[command].label for command, _ in result.path(hit.state))
    return (
        f"not everything was looked at: after {steps or 'the start'}, unused ids can be told apart, but "
        "a search tries only the smallest; never give an id back, and write nothing about one nobody took"
    )


def _fault(model: GroundModel, hit: Hit) -> str:
    command = model.commands[hit.command] if hit.command is not None else None
    if command is None:
        return hit.name
    error = command.source.fault
    return f"{command.label}: {error}" if error is not None else command.label


def build_trace(
    subject: Subject, scope: Scope, model: GroundModel, claim: Claim, hit: Hit, result: SearchResult
) -> Trace:
    """The run to a hit, replayed by the run reading; InternalError if the two do not agree on every state."""
    commands = [command for command, _ in result.path(hit.state)]
    if hit.command is not None and claim.over_steps:
        commands.append(hit.command)
    steps = [(model.commands[c].action.name, model.commands[c].arguments) for c in commands]
    return run_trace(
        subject,
        scope,
        claim,
        steps,
        expected=dict(result.codes(hit.state)),
        at=len(steps) - int(claim.over_steps),
    )


def run_trace(
    subject: Subject,
    scope: Scope,
    claim: Claim,
    steps: Iterable[tuple[str, tuple[int, ...]]],
    *,
    expected: Mapping[str, int] | None = None,
    at: int = -1,
) -> Trace:
    """The trace of some steps, run from the first state; the claim must be false at its end."""
    runner = Runner(subject.protocol, scope)
    state = before = runner.initial()
    initial = runner.codes(state)
    made_steps: list[TraceStep] = []
    last = None
    for number, (action, arguments) in enumerate(steps, 1):
        made = runner.step(state, action, arguments)
        if isinstance(made, str):
            raise InternalError(
                f"{subject.name}: step {number}, {action}{arguments}, is {made} in the run reading"
            )
        before, state, last = state, made.state, made
        codes = runner.codes(state)
        made_steps.append(TraceStep(action, arguments, made.label, made.outcome, codes))
        if number == at and expected is not None:
            _same(subject, expected, codes)
    if claim.over_steps:
        false = last is not None and not runner.holds_step(claim.predicate, before, last)
    else:
        false = not runner.holds(claim.predicate, state)
    if not false and claim.kind is not Kind.SOMETIMES:
        raise InternalError(
            f"{subject.name}: {claim.name} is false in the compiled reading, true in the run reading"
        )
    grounder = Grounder(subject.protocol, scope)
    traced = Readings(subject.protocol).claim(claim.predicate, scope)
    explanation: list[str] = []
    if claim.kind is not Kind.SOMETIMES:
        term = grounder.boolean(traced)
        after = runner.codes(state)
        earlier = runner.codes(before) if claim.over_steps else after
        explanation = _explanation(subject, scope, term, earlier, after, before, last)
    return Trace(
        subject.name,
        claim.name,
        scope,
        fingerprint(subject.protocol),
        initial,
        tuple(made_steps),
        tuple(explanation),
        {"file": subject.file, "variant": subject.variant, "protocol": subject.model},
        _variables_read(subject.protocol, traced),
    )


def _variables_read(protocol: Protocol, term: t.Term) -> tuple[str, ...]:
    names = {str(v.payload).split("[")[0].split(".")[0].rstrip(PRIME) for v in t.variables_of([term])}
    return tuple(n for n in protocol.variables if n in names)


def _same(subject: Subject, expected: Mapping[str, int], codes: Mapping[str, int]) -> None:
    different = [k for k, v in expected.items() if codes[k] != v]
    if different:
        raise InternalError(f"{subject.name}: compiled and run reading differ in {', '.join(different[:4])}")


def _explanation(
    subject: Subject, scope: Scope, term: t.Term, earlier: Values, after: Values, before: Rest, last: Any
) -> list[str]:
    """Why the claim's term is false, and what the unbroken model says to the last step."""
    words = step_words(last, term) if last is not None else {}
    parts = why_false(term, earlier, after, words)
    lines = ["false because " + parts[0]] if parts else []
    if len(parts) > 1:
        lines[0] += ", where " + ", and ".join(parts[1:])
    if subject.unbroken is not None and last is not None:
        said = _unbroken_says(subject, scope, before, last)
        lines += [said] if said else []
    return lines


def _unbroken_says(subject: Subject, scope: Scope, before: Any, last: Any) -> str:
    assert subject.unbroken is not None  # noqa: S101
    if list(subject.unbroken.variables) != list(subject.protocol.variables):
        return ""
    try:
        return against_unbroken(Runner(subject.unbroken, scope), before, last)
    except ScopeError:
        return ""


def replayed(trace: Trace, subject: Subject) -> bool:
    """Whether a saved trace still breaks its claim; ReplayError when the model has changed."""
    claim = subject.claims.claims.get(trace.claim)
    if claim is None:
        raise ReplayError(
            f"the claim {trace.claim!r} of this trace is not in {subject.name}; give --with the file it is in"
        )
    runner = Runner(subject.protocol, trace.scope)
    state = runner.initial()
    before, last = state, None
    for earlier, made in replay(trace, subject.protocol):
        before, state, last = earlier, made.state, made
    if claim.over_steps:
        return last is not None and not runner.holds_step(claim.predicate, before, last)
    return not runner.holds(claim.predicate, state)
