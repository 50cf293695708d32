"""`sweep`: take one thing away from the model at a time and see which claim notices.

A guard that nothing needs, and a claim that nothing breaks, are findings: each needs a written reason, or the
check that leans on it says less than it seems to.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.checker.changed import Base
from fencepost.checker.explore import ALIKE, check, without_unread_history
from fencepost.checker.native import Seek, StateClaim, StepClaim, explore
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import EXIT_OK, EXIT_UNDETERMINED, Report
from fencepost.model import ModelError, Protocol, Scope
from fencepost.model.fresh import unused_are_alike
from fencepost.model.ground import Readings
from fencepost.model.mutate import GUARD, KINDS, REFUSAL, Mutant, mutants, pairs

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SweepRow:
    """What became of one mutant: which claims broke, after how many steps at least, or why none did."""

    kind: str
    action: str
    place: str
    name: str
    text: str
    broken: Mapping[str, int]
    """By claim name, steps to the violation."""
    ids: tuple[str, ...]
    outcome: str
    """``caught`` by a claim, ``noticed`` (a witness is out of reach), ``faulty`` (the mutant reads what is
    not there), ``nothing broke`` or ``unfinished``."""
    lost: tuple[str, ...] = ()
    """The witnesses that the mutant can no longer reach: it does less than it should."""
    reason: str = ""
    seconds: float = 0.0
    scope: str = ""
    """Where a claim or the model itself noticed; else the scopes in which nothing did."""

    @property
    def accounted_for(self) -> bool:
        """Whether a claim noticed, the model itself did, or a reason is written."""
        return self.outcome in ("caught", "noticed", "faulty") or bool(self.reason)

    def as_json(self) -> dict[str, Any]:
        """The row as plain data."""
        return {
            "kind": self.kind, "action": self.action, "place": self.place, "change": self.name,
            "outcome": self.outcome, "claims": list(self.ids), "lost": list(self.lost),
            "broken": dict(self.broken), "reason": self.reason, "scope": self.scope,
            "seconds": round(self.seconds, 3),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class SweepReport:
    """All mutants of a subject and what became of them."""

    subject: str
    scope: str
    bound: str
    rows: tuple[SweepRow, ...]
    unbroken: tuple[str, ...]
    """Claims that no mutant broke and that no reason excuses."""
    by_shape: Mapping[str, str]
    """Claims that no mutant can break, with the reason."""
    seconds: float
    notes: tuple[str, ...] = field(default=())

    @property
    def unaccounted(self) -> tuple[SweepRow, ...]:
        """The rows that nothing noticed and no reason explains: findings about the model."""
        return tuple(r for r in self.rows if not r.accounted_for)

    @property
    def exit_code(self) -> int:
        """0 when every row is accounted for and every claim was broken by something; 3 otherwise."""
        return EXIT_UNDETERMINED if self.unaccounted or self.unbroken else EXIT_OK

    def as_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "command": "sweep", "subject": self.subject, "scope": self.scope, "bound": self.bound,
            "exit_code": self.exit_code, "rows": [r.as_json() for r in self.rows],
            "claims_nothing_breaks": list(self.unbroken), "true_by_shape": dict(self.by_shape),
            "seconds": round(self.seconds, 3), "notes": list(self.notes),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Setting:
    """What all searches of one sweep share; `reached` are, by scope, the witnesses of the unchanged model."""

    subject: Subject
    scopes: tuple[Scope, ...]
    deadline: float | None
    memory_mb: int | None
    reached: Mapping[str, frozenset[str]]
    readings: Readings
    bases: dict[str, Base] = field(default_factory=dict)

    def base(self, scope: Scope) -> Base:
        """The unchanged model in a scope, grounded once."""
        if scope.name not in self.bases or self.bases[scope.name].scope != scope:
            self.bases[scope.name] = Base(self.subject.protocol, scope, self.readings)
        return self.bases[scope.name]


_WORK: list[_Setting] = []


def sweep(
    subject: Subject,
    *,
    scope: str | Scope | Sequence[str | Scope] = (),
    kinds: Iterable[str] = KINDS,
    with_pairs: bool = False,
    budget_s: float | None = None,
    memory_mb: int | None = None,
    jobs: int = 1,
    reasons: Mapping[tuple[str, str], str] | None = None,
    on_progress: Progress | None = None,
) -> SweepReport:
    """Remove each guard, effect, branch and action in turn, and search each mutant of the model in a scope.

    Of several scopes, each next one is for what no claim has noticed so far; none means the subject's own.
    `reasons` say why a change may go unnoticed, by (action, text of the line). `budget_s` (seconds) bounds
    the whole sweep: what is not searched by then is unfinished. `jobs` processes share the work where the
    system can fork.
    """
    started = time.monotonic()
    among = [scope] if isinstance(scope, str | Scope) else list(scope) or list(subject.sweep_scopes)
    scopes = tuple(subject.scope(x) if isinstance(x, str) else x for x in among)
    written = reasons_for(subject) if reasons is None else reasons
    deadline = None if budget_s is None else started + budget_s
    reached: dict[str, frozenset[str]] = {}
    notes: list[str] = []
    for where in scopes:
        base = check(subject, scope=where, budget_s=budget_s, memory_mb=memory_mb, traces=False)
        notes += [f"the unchanged model already fails {f.claim.name}: {f.why}" for f in base.refuted]
        reached[where.name] = frozenset(base.figures["witnesses"])
    setting = _Setting(subject, scopes, deadline, memory_mb, reached, Readings(subject.protocol))
    named = dict.fromkeys(w for c in subject.chosen() for w in c.witnesses)
    names = ", ".join(x.name for x in scopes)
    notes += [
        f"{w} is out of reach in scope {names}: no change can be noticed by it"
        for w in named
        if all(w not in found for found in reached.values())
    ]
    todo = mutants(subject.protocol, tuple(kinds))
    rows = [_reasoned(r, written) for r in _searched(setting, todo, jobs, on_progress)]
    if with_pairs:
        silent = {r.name for r in rows if r.outcome == "nothing broke" and r.kind in (GUARD, REFUSAL)}
        both = pairs(subject.protocol, silent)
        rows += [_reasoned(r, written) for r in _searched(setting, both, jobs, on_progress)]
    rows += _variants(setting)
    broken = {name for r in rows for name in r.broken}
    promises = subject.chosen()
    by_shape = {c.name: c.by_shape for c in promises if c.by_shape}
    unbroken = tuple(c.name for c in promises if c.name not in broken and not c.by_shape)
    return SweepReport(
        subject.name,
        names,
        "; ".join(dict.fromkeys(x.describe() for x in scopes)),
        tuple(rows),
        unbroken,
        by_shape,
        time.monotonic() - started,
        tuple(notes),
    )


def reasons_for(subject: Subject) -> Mapping[tuple[str, str], str]:
    """Why lines of a built-in protocol, or of one that varies it, are there although no claim needs them."""
    built_in = subject.built_in
    return {} if built_in is None else built_in.unneeded


def _variants(setting: _Setting) -> Iterator[SweepRow]:
    """The broken variants of a built-in protocol: changes of several lines that claims must notice, too."""
    built_in = setting.subject.built_in
    if built_in is None or setting.subject.protocol is not built_in.protocol:
        return
    for variant in built_in.variants.values():
        if variant.breaks:
            own = variant.scope
            scopes = (setting.subject.scope(own),) if own else setting.scopes
            made = Mutant("variant", "", "", 0, variant.name, "variant", variant.protocol)
            yield _search(replace(setting, scopes=scopes), made)


def _reasoned(row: SweepRow, written: Mapping[tuple[str, str], str]) -> SweepRow:
    if row.outcome != "nothing broke":
        return row
    for (action, text), reason in written.items():
        if action == row.action and text in row.name:
            return replace(row, reason=reason)
    return row


def _searched(
    setting: _Setting, todo: list[Mutant], jobs: int, on_progress: Progress | None
) -> Iterator[SweepRow]:
    if jobs > 1 and hasattr(os, "fork") and len(todo) > 1:
        _QUEUE[:] = todo
        _WORK[:] = [setting]
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            for number, row in enumerate(pool.imap(_search_number, range(len(todo)), chunksize=2), 1):
                if on_progress is not None:
                    on_progress(f"mutant {number} of {len(todo)}: {row.name}")
                yield row
        return
    for number, mutant in enumerate(todo, 1):
        if on_progress is not None:
            on_progress(f"mutant {number} of {len(todo)}: {mutant.name}")
        yield _search(setting, mutant)


_QUEUE: list[Mutant] = []


def _search_number(number: int) -> SweepRow:
    return _search(_WORK[0], _QUEUE[number])


def _search(setting: _Setting, mutant: Mutant) -> SweepRow:
    """Search one mutant: which claims break, and which witnesses are out of reach that the model reaches.

    An action of the world whose switch is off in a scope is searched with it on, in the first scope only:
    faults multiply states. What a claim needs off is then no finding.
    """
    started = time.monotonic()

    def row(
        outcome: str,
        broken: Mapping[str, int] | None = None,
        ids: tuple[str, ...] = (),
        *,
        lost: tuple[str, ...] = (),
        why: str = "",
    ) -> SweepRow:
        place = f"{mutant.file}:{mutant.line}"
        return SweepRow(
            mutant.kind, mutant.action, place, mutant.name, mutant.text, broken or {}, ids, outcome, lost,
            why, time.monotonic() - started, ", ".join(looked),
        )  # fmt: skip

    looked: list[str] = []
    lost: set[str] = set()
    for scope in _scopes_for(setting, mutant):
        left = None if setting.deadline is None else setting.deadline - time.monotonic()
        if left is not None and left <= 0:
            return row("unfinished")
        looked.append(scope.name)
        try:
            seen = _look(setting, scope, mutant.protocol, left)
        except ModelError as error:
            looked[:] = [scope.name]
            return row("faulty", why=error.what)
        if seen.broken:
            looked[:] = [scope.name]
            return row("caught", seen.broken, seen.ids)
        if seen.fault:
            looked[:] = [scope.name]
            return row("faulty", why=seen.fault)
        if not seen.complete:
            return row("unfinished")
        lost |= setting.reached.get(scope.name, frozenset()) & seen.missed
    return row("noticed", lost=tuple(sorted(lost))) if lost else row("nothing broke")


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a search of a changed model found."""

    broken: Mapping[str, int]
    ids: tuple[str, ...]
    fault: str
    complete: bool
    missed: frozenset[str]
    """The witnesses that it did not reach."""


def _look(setting: _Setting, scope: Scope, protocol: Protocol, budget_s: float | None) -> _Seen:
    """Search a changed model. A claim says nothing where a switch is on that it needs off."""
    claims = [c for c in setting.subject.chosen() if not scope.switches & set(c.needs_off)]
    names = dict.fromkeys(w for c in claims for w in c.witnesses)
    witnesses = [setting.subject.claims.claims[w] for w in names]
    model, terms = without_unread_history(*setting.base(scope).changed(protocol, [*claims, *witnesses]))
    promised: list[StateClaim | StepClaim] = [StateClaim(ALIKE, unused_are_alike(model))]
    for claim in claims:
        term = terms[claim.name]
        promised.append(
            StepClaim(claim.name, term) if isinstance(term, tuple) else StateClaim(claim.name, term)
        )
    seeks = [Seek(name, terms[name]) for name in names]
    found = explore(model, claims=promised, seeks=seeks, budget_s=budget_s, memory_mb=setting.memory_mb)
    broken = {c.name: found.hits[c.name].depth for c in claims if c.name in found.hits}
    fault = f"the model reads what is not there, or {ALIKE} no more"
    return _Seen(
        broken,
        tuple(dict.fromkeys(c.id for c in claims if c.name in broken)),
        fault if found.faults or ALIKE in found.hits else "",
        found.complete,
        frozenset(w for w in names if w not in found.hits),
    )


def _scopes_for(setting: _Setting, mutant: Mutant) -> Iterator[Scope]:
    action = setting.subject.protocol.actions.get(mutant.action)
    switch = action.switch if action is not None else None
    if switch is None or all(switch in scope.switches for scope in setting.scopes):
        yield from setting.scopes
        return
    having = [scope for scope in setting.scopes if switch in scope.switches]
    yield from having or [s.but(switches=s.switches | {switch}) for s in setting.scopes[:1]]


def summary(report: SweepReport | Report) -> str:
    """One line on a sweep."""
    if isinstance(report, Report):
        return report.subject
    caught = sum(r.outcome == "caught" for r in report.rows)
    explained = sum(bool(r.reason) and r.outcome == "nothing broke" for r in report.rows)
    return (
        f"{len(report.rows)} change{'s' * (len(report.rows) != 1)}: {caught} caught by a claim, "
        f"{sum(r.outcome == 'noticed' for r in report.rows)} by a witness, "
        f"{sum(r.outcome == 'faulty' for r in report.rows)} by the model itself, "
        f"{explained} unneeded for a written reason, "
        f"{len(report.unaccounted)} unexplained"
    )
