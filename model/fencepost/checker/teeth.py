"""Teeth: for each claim, by how many of the single changes of the model that were tried it is broken.

`fencepost.checker.sweeps` looks at every change and asks which lines are needed. Here the question is the
other one, whether a claim can fail at all, and it is answered soon: a claim is asked of one change after
another until a few have broken it, and a changed model is searched only as far as a broken claim is to be
expected. So the numbers are *at least*, and a claim that nothing broke may only need more time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.changed import Base
from fencepost.checker.explore import needed_off, without_unread_history
from fencepost.checker.native import StateClaim, StepClaim, explore
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Finding, Report, Verdict
from fencepost.model import ModelError, Protocol, Scope
from fencepost.model.ground import Readings
from fencepost.model.mutate import ACTION, ANSWER, BRANCH, EFFECT, GUARD, REFUSAL, Mutant, mutants
from fencepost.properties import Claim

Progress = Callable[[str], None]

ORDER = (REFUSAL, ANSWER, EFFECT, BRANCH, ACTION, GUARD)
"""Kinds of changes, those that break most claims first; guards of conduct, which break fewest, last."""

ENOUGH = 3
"""So many changes show that a claim can fail, and that it was no accident of one line."""

MOST_STATES = 100_000
"""A broken claim shows within so few states, or in none, for all that is known of the built-in models."""

FIRST: Mapping[str, tuple[tuple[str, str], ...]] = {
    "core": (
        ("quick", "decide_commit: without `s.log["),
        ("quick", 'decide_commit: refused and yet done: `refuse_unless(s.live, "lease-expired")'),
        ("quick", "acquire: without `s.lease_version ="),
        ("quick", 'decide_commit: without `refuse_unless(lease == s.lease_version, "stale-lease-version")'),
        ("quick", "decide_commit: without `s.state_version ="),
        ("quick", "release: without `s.believes[w]"),
        ("quick", "release: without `s.live"),
        ("quick", 'acquire: without `refuse_unless(not s.finished, "finished")'),
        ("quick", "reread: without `s.unsure[w] = False"),
    ),
    "effects": (
        ("quick-rederived", 'decide_call: never taken: `if switched("keyed") and kept.present'),
        ("quick-rederived", 'decide_call: refused and yet done: `refuse_unless(not switched("fenced")'),
        ("quick-rederived", "commit: without `s.receipt ="),
        ("quick-queryable", 'decide_call: without `refuse_unless(not switched("fenced")'),
        ("quick-unkeyed", "decide_call: without `s.revision ="),
    ),
    "workflow": (
        ("quick-step", "schedule_retry: without `refuse_unless(s.status[x] == Status.running"),
        ("quick-step", "start: without `refuse_unless(s.status[x] == Status.pending"),
        ("quick-step", "start: refused and yet done: `refuse_unless(s.cause == Cause.none"),
        ("quick-step", "start: without `refuse_unless(not s.gated[x]"),
        ("quick-step", "succeed: without `when(s.knows[w, x] == Knows.receipt)"),
        ("quick-step", "finish: without `refuse_unless(every(steps"),
        ("quick-step", "give_up_waiting: without `refuse_unless(s.late[x]"),
        ("quick-owners", "start: refused and yet done: `refuse_unless(lease == s.lease_version"),
        ("quick-owners", "start: without `refuse_unless(s.live"),
        ("quick-owners", "acquire: without `refuse_unless(not s.live"),
    ),
    "triggers": (
        ("quick-notices", "decide_notice: without `s.kept["),
        ("quick-notices", "decide_notice: without `s.received["),
        ("quick-notices", "send_notice: without `when(s.intended["),
        ("quick-notices", 'finish: refused and yet done: `refuse_unless(not s.row[i].finished, "finished")'),
        ("quick-arrivals", "decide_trigger: without `s.row[i] = Row("),
        ("quick-arrivals", "decide_trigger: without `s.record["),
        ("quick-arrivals", "receive_answer: without `s.told[r] = absent"),
    ),
    "recovery": (
        ("quick-definitions", "take_up: without `when(is_vouched_for(s))"),
        ("quick-definitions", "take_up: without `when(is_of_the_row("),
        ("quick-definitions", "take_up: always taken: `if s.code[w] =="),
        ("quick-definitions", "take_up: never taken: `if s.code[w] =="),
        ("quick-definitions", "commit: without `when(not read(s, w).manual)"),
        ("quick-definitions", "commit: without `s.made ="),
        ("quick-definitions", "commit: without `s.fate ="),
        ("quick-definitions", "begin: without `when(is_unwritten("),
        ("quick-definitions", "acquire: without `s.lease_version ="),
        ("quick-definitions", 'acquire: without `refuse_unless(not s.finished, "finished")'),
        ("quick-definitions", "release: without `s.believes[w] ="),
        ("quick-definitions", "release: without `s.live ="),
        ("quick", 'commit: refused and yet done: `refuse_unless(s.live, "lease-expired")'),
    ),
}
"""By protocol: scopes, and how the names of changes begin that break something there, one for each claim.

No more than an order: what breaks nothing any more only takes time.
"""


@dataclass(slots=True)
class _Count:
    """What was tried on one claim, and which changes broke it."""

    claim: Claim
    tried: set[str] = field(default_factory=set)
    broken_by: list[str] = field(default_factory=list)
    already: str = ""
    """The scope in which the unchanged model breaks it, so that no change can be seen to."""
    variants: list[str] = field(default_factory=list)
    """Built-in variants that break it, which are looked at only if no single change is known to."""

    @property
    def can_fail(self) -> bool:
        return bool(self.broken_by or self.variants)


@dataclass(slots=True)
class _Trial:
    """All that is tried on the claims of a subject."""

    subject: Subject
    everything: Sequence[Mutant]
    enough: int
    deadline: float | None
    on_progress: Progress | None
    counts: dict[str, _Count]
    readings: Readings
    bases: dict[str, Base] = field(default_factory=dict)
    asked_unchanged: list[Scope] = field(default_factory=list)

    def unchanged(self, scopes: Iterable[Scope]) -> None:
        """Ask every claim of the unchanged model: one that is false there shows nothing by being false."""
        for scope in scopes:
            if scope in self.asked_unchanged:
                continue
            self.asked_unchanged.append(scope)
            asked = [c for c in self.counts.values() if not c.already and not needed_off(c.claim, scope)]
            broken = self._broken(self.subject.protocol, scope, asked, most_states=MOST_STATES)
            for count in asked:
                if count.claim.name in broken:
                    count.already = scope.name

    def late(self) -> bool:
        """Whether the budget is used up."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def first(self) -> None:
        """The changes that are known to break something, for claims that nothing has broken so far."""
        for name, start in FIRST.get(self.subject.protocol.name, ()):
            if name in self.subject.protocol.scopes:
                for mutant in self.everything:
                    if mutant.name.startswith(start) and not self.late():
                        self.change(mutant, self.subject.scope(name), enough=1)

    def variants(self) -> None:
        """The built-in variants, for claims that nothing has broken so far."""
        base = self.subject.built_in
        if base is None or self.subject.protocol is not base.protocol:
            return
        for variant in base.variants.values():
            scope = self.subject.scope(variant.scope or self.subject.sweep_scopes[0])
            wanted = [self.counts[n] for n in variant.breaks if n in self.counts]
            wanted = [c for c in wanted if not c.can_fail and not c.claim.by_shape]
            wanted = [c for c in wanted if not needed_off(c.claim, scope)]
            if wanted and not self.late():
                self.unchanged([scope])
                wanted = [c for c in wanted if not c.already]
                found = self._broken(variant.protocol, scope, wanted, most_states=None)
                for count in wanted:
                    if count.claim.name in found:
                        count.variants.append(variant.name)

    def all_in(self, scope: Scope, todo: Sequence[Mutant]) -> bool:
        """Some changes in one scope; whether there was time for all, or for as many as are enough."""
        for number, mutant in enumerate(todo, 1):
            if self.late():
                return False
            if self.on_progress is not None:
                shown = sum(c.can_fail for c in self.counts.values())
                self.on_progress(
                    f"change {number} of {len(todo)} in scope {scope.name}; {shown} claims broken"
                )
            self.change(mutant, scope, enough=self.enough)
        return True

    def change(self, mutant: Mutant, scope: Scope, *, enough: int) -> None:
        """Try one change on the claims that fewer than `enough` have broken, and this one has not."""
        action = self.subject.protocol.actions[mutant.action]
        if action.switch is not None and action.switch not in scope.switches:
            return
        asked = [
            c for c in self.counts.values()
            if len(c.broken_by) < enough and mutant.name not in c.broken_by and not c.claim.by_shape
            and not c.already and not needed_off(c.claim, scope)
        ]  # fmt: skip
        if not asked:
            return
        broken = self._broken(mutant.protocol, scope, asked, most_states=MOST_STATES)
        for count in asked:
            count.tried.add(mutant.name)
            if count.claim.name in broken:
                count.broken_by.append(mutant.name)

    def _broken(
        self, protocol: Protocol, scope: Scope, asked: Sequence[_Count], *, most_states: int | None
    ) -> set[str]:
        """The claims that a changed model is seen to break, in as many states as are looked at."""
        if scope.name not in self.bases or self.bases[scope.name].scope != scope:
            self.bases[scope.name] = Base(self.subject.protocol, scope, self.readings)
        try:
            model, terms = self.bases[scope.name].changed(protocol, [c.claim for c in asked])
            model, terms = without_unread_history(model, terms)
            result = explore(  # which ends with the last of these claims
                model,
                claims=[
                    StepClaim(n, x) if isinstance(x, tuple) else StateClaim(n, x) for n, x in terms.items()
                ],
                max_states=most_states,
                budget_s=None if self.deadline is None else max(0.1, self.deadline - time.monotonic()),
            )
        except ModelError:  # the changed model says itself that something is missing
            return set()
        return {n for n in terms if n in result.hits}


def teeth(
    subject: Subject,
    *,
    scopes: Sequence[str | Scope] = (),
    kinds: Sequence[str] = ORDER,
    enough: int = ENOUGH,
    budget_s: float | None = None,
    on_progress: Progress | None = None,
) -> Report:
    """For each promise, which single changes break it: CAN FAIL, or UNDETERMINED where none was found to.

    First, changes and variants that are known to break something, until each claim was broken once. Then
    every change of some `kinds`, in each scope, in order, until `enough` have broken each claim or the budget
    (seconds) is used up. A claim that the shape of the state makes true is UNDETERMINED for the reason that
    it names, and does not count. One that the unchanged model breaks already is UNDETERMINED, too.
    """
    started = time.monotonic()
    where = [subject.scope(s) if isinstance(s, str) else s for s in (scopes or subject.sweep_scopes)]
    everything = sorted(mutants(subject.protocol, ORDER), key=lambda m: ORDER.index(m.kind))
    todo = [m for m in everything if m.kind in kinds]
    trial = _Trial(
        subject,
        everything,
        enough,
        None if budget_s is None else started + budget_s,
        on_progress,
        {c.name: _Count(c) for c in subject.chosen()},
        Readings(subject.protocol),
    )
    known = [
        subject.scope(n) for n, _ in FIRST.get(subject.protocol.name, ()) if n in subject.protocol.scopes
    ]
    trial.unchanged((*where, *known))
    trial.first()
    trial.variants()
    in_time = [trial.all_in(scope, todo) for scope in where]
    seconds = time.monotonic() - started
    bound = "; ".join(f"scope {s.name}: {s.describe()}" for s in where)
    findings = tuple(_finding(c, bound, seconds, finished=all(in_time)) for c in trial.counts.values())
    figures = {
        "scope": ", ".join(s.name for s in where),
        "bound": bound,
        "changes": len(everything),
        "tried": len(set().union(*(c.tried for c in trial.counts.values()))),
        "enough": enough,
        "most_states": MOST_STATES,
        "finished": all(in_time),
        "seconds": round(seconds, 3),
    }
    return Report("teeth", subject.name, findings, figures)


def _finding(count: _Count, bound: str, seconds: float, *, finished: bool) -> Finding:
    claim, number, tried = count.claim, len(count.broken_by), len(count.tried)
    details: dict[str, Any] = {
        "broken_by": list(count.broken_by), "tried": tried, "variants": list(count.variants)
    }  # fmt: skip
    verdict = Verdict.CAN_FAIL
    changes = f"{tried} single change{'s' * (tried != 1)} tried"
    if claim.by_shape:
        verdict, why = Verdict.UNDETERMINED, f"true by the shape of the state: {claim.by_shape}"
        details["untellable"] = True
    elif count.already:
        verdict = Verdict.UNDETERMINED
        why = f"broken already in the unchanged model, in scope {count.already}: no change can show anything"
    elif number:
        why = f"broken by {number} of {changes}, the first of them {count.broken_by[0]}"
    elif count.variants:
        why = f"broken by the variant {count.variants[0]}, and by none of {changes}"
    else:
        verdict = Verdict.UNDETERMINED
        why = f"none of {changes} broke it" + ("" if finished else "; the budget left no time for others")
    return Finding(claim, verdict, "swept", bound, why, None, seconds, details)
