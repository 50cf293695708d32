"""Replaying a saved run of a model: whether it still breaks its claim, and the model still goes this way.

The steps are taken one by one with the run reading. A step that now ends otherwise, or leads elsewhere, is
reported and the run goes on; a step that is not possible any more ends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fencepost.checker.explore import run_trace
from fencepost.checker.fingerprints import fingerprint
from fencepost.checker.subject import BUILT_IN, DEFAULT, Subject, UsageError, load
from fencepost.checker.traces import STORE, ReplayError, Trace, TraceStep, read
from fencepost.checker.verdicts import EXIT_OK, EXIT_REFUTED, EXIT_UNDETERMINED, Finding, Verdict
from fencepost.cli.text import amount
from fencepost.model.run import Runner
from fencepost.properties import Claim, Kind

__all__ = ["STORE", "Replayed", "read", "replay_trace", "subject_of"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of a saved run: how it goes now, what is different, where the claim breaks."""

    saved: Trace
    claim: Claim
    now: Trace
    changes: tuple[str, ...]
    broken_at: int | None
    """The step (0 for the start) with which the claim breaks; None when it holds as far as the run goes."""
    stopped_at: int | None
    """The step that is not possible any more, if there is one."""

    @property
    def exit_code(self) -> int:
        """1 if the claim still breaks, 0 if not; 3 if the run ends before its last step and says little."""
        if self.broken_at is not None:
            return EXIT_REFUTED
        if self.stopped_at is not None and self.stopped_at < len(self.saved.steps):
            return EXIT_UNDETERMINED
        return EXIT_OK

    @property
    def conclusion(self) -> str:
        """The outcome in one sentence."""
        name, steps = self.claim.name, len(self.saved.steps)
        if self.broken_at is not None:
            return f"{name} still breaks, with step {self.broken_at}"
        if self.stopped_at is None:
            return f"{name} holds along this run of {amount(steps, 'step')}; other runs are not looked at"
        if self.stopped_at == steps:
            return f"{name} holds along this run: its last step, which broke it, is not possible any more"
        return (
            f"the run ends before its last step and says little about {name}; `fencepost check` looks further"
        )

    def finding(self) -> Finding:
        """The run as a finding that refutes; only where the claim still breaks."""
        why = f"replayed: {amount(len(self.now.steps), 'step')}"
        return Finding(self.claim, Verdict.REFUTED, "replayed", self.saved.scope.describe(), why, self.now)

    def as_json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "command": "replay",
            "claim": self.claim.name,
            "still_breaks": self.broken_at is not None,
            "broken_at": self.broken_at,
            "stopped_at": self.stopped_at,
            "changes": list(self.changes),
            "conclusion": self.conclusion,
            "exit_code": self.exit_code,
            "trace": self.now.as_json(),
        }


def subject_of(trace: Trace, *, file: str = "", variant: str = "", model: str = "") -> Subject:
    """The subject of a trace as it is now: from where it was then, or from what is given."""
    built_in = trace.source.get("protocol", DEFAULT)  # it was not written down while there was only one
    model = model or (built_in if built_in in BUILT_IN else "")
    if variant or (file and model):
        return _loaded(file, variant, model)
    if file:
        return load(file)
    file, variant = trace.source.get("file", ""), trace.source.get("variant", "")
    if not file:
        return load(variant=variant, model=model)
    # A protocol made in the file is called by its name; only a built-in variant is asked for by name.
    subject = _loaded(file, "", model)
    return subject if subject.variant == variant else load(file, variant=variant, model=model)


def _loaded(file: str, variant: str, model: str) -> Subject:
    """What a file holds about a protocol; a file that has a protocol of its own by now decides itself."""
    try:
        return load(file, variant=variant, model=model)
    except UsageError:
        if variant:
            raise
        return load(file)


def replay_trace(trace: Trace, subject: Subject) -> Replayed:
    """Take the steps of a saved run again; ReplayError when the subject does not have the claim."""
    claim = subject.claims.claims.get(trace.claim)
    if claim is None:
        raise ReplayError(
            f"the claim {trace.claim!r} of this run is not in {subject.name}; give --with the file it is in"
        )
    if claim.kind is Kind.SOMETIMES:
        raise ReplayError(f"{trace.claim!r} is a witness, which no run can break; save the run of a claim")
    runner = Runner(subject.protocol, trace.scope)
    state = runner.initial()
    changes = []
    if fingerprint(subject.protocol) != trace.fingerprint:
        changes.append(
            f"the model has changed since the run was saved ({trace.subject} then, {subject.name} now)"
        )
    initial = runner.codes(state)
    changes += _difference(0, "start", trace.initial, initial)
    broken_at = 0 if not claim.over_steps and not runner.holds(claim.predicate, state) else None
    stopped_at = None
    steps: list[TraceStep] = []
    for number, step in enumerate(trace.steps, 1):
        if broken_at is not None:
            break
        if step.action not in subject.protocol.actions:
            changes.append(f"step {number}, {step.label}: there is no such action now")
            stopped_at = number
            break
        made = runner.step(state, step.action, step.arguments)
        if isinstance(made, str):
            reason = "not possible" if made == "disabled" else "outside the scope"
            changes.append(f"step {number}, {step.label}: {reason} here now")
            stopped_at = number
            break
        codes = runner.codes(made.state)
        steps.append(TraceStep(step.action, step.arguments, made.label, made.outcome, codes))
        if made.outcome != step.outcome:
            changes.append(
                f"step {number}, {step.label}: ends {made.outcome} now, {step.outcome} when it was saved"
            )
        else:
            changes += _difference(number, step.label, step.state, codes)
        holds = (
            runner.holds_step(claim.predicate, state, made)
            if claim.over_steps
            else runner.holds(claim.predicate, made.state)
        )
        broken_at = None if holds else number
        state = made.state
    if broken_at is not None:
        now = run_trace(subject, trace.scope, claim, [(s.action, s.arguments) for s in steps])
    else:
        source = {"file": subject.file, "variant": subject.variant, "protocol": subject.model}
        now = Trace(
            subject.name,
            claim.name,
            trace.scope,
            fingerprint(subject.protocol),
            initial,
            tuple(steps),
            (),
            source,
        )
    return Replayed(trace, claim, now, tuple(changes), broken_at, stopped_at)


def _difference(number: int, label: str, saved: Any, found: Any) -> list[str]:
    different = sorted(k for k, v in saved.items() if found.get(k) != v)
    more = " and others" if len(different) > 4 else ""  # as many as are read at a glance
    verb = "is" if len(different) == 1 else "are"
    names = ", ".join(different[:4])
    return [f"step {number}, {label}: {names}{more} {verb} not as saved"] if different else []
