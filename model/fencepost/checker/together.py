"""A claim looked at in several scopes, of which each shows something else: one verdict of all.

REFUTED if it is false in any. BOUNDED if it is true in every state of each, and at least one of them
exercised it: all of its witnesses were reached there. UNDETERMINED otherwise. So a scope that does not
exercise a claim takes nothing away from one that does, and does not count as one that does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fencepost.checker.explore import UNEXERCISED, Progress, check, unexercised
from fencepost.checker.shares import share_s
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Finding, Report, Verdict
from fencepost.model import Scope
from fencepost.properties import Claim

NOT_BEGUN = "not looked at: the search ended with the first violation"


def check_each(
    subject: Subject,
    scopes: Sequence[str | Scope],
    *,
    claims: Iterable[str] = (),
    budget_s: float | None = None,
    memory_mb: int | None = None,
    jobs: int = 1,
    stop: str = "all",
    traces: bool = True,
    required: Verdict | None = None,
    on_progress: Progress | None = None,
) -> Report:
    """`check` in each scope, in order; claims that are refuted in one are not looked at in the next.

    `budget_s` (seconds) is for all of them: what a scope leaves over goes to those after it.
    """
    where = [subject.scope(s) if isinstance(s, str) else s for s in scopes]
    chosen = subject.chosen(claims)
    started = time.monotonic()
    reports: list[tuple[Scope, Report]] = []
    open_claims = [c.name for c in chosen]
    for number, scope in enumerate(where):
        spent, waiting = time.monotonic() - started, len(where) - number - 1
        found = check(
            subject,
            scope=scope,
            claims=open_claims,
            budget_s=None if budget_s is None else share_s(max(0.0, budget_s - spent), waiting),
            memory_mb=memory_mb,
            jobs=jobs,
            stop=stop,
            traces=traces,
            on_progress=on_progress,
        )
        reports.append((scope, found))
        broken = {f.claim.name for f in found.refuted}
        open_claims = [n for n in open_claims if n not in broken]
        if not open_claims or (broken and stop == "first"):
            break
    return joined(subject, chosen, where, reports, required)


def joined(
    subject: Subject,
    chosen: Iterable[Claim],
    scopes: Sequence[Scope],
    reports: Sequence[tuple[Scope, Report]],
    required: Verdict | None = None,
) -> Report:
    """The reports of some scopes as one; a scope of `scopes` without a report was not looked at."""
    findings = []
    for claim in chosen:
        found = [(s, f) for s, r in reports for f in r.findings if f.claim.name == claim.name]
        findings.append(_finding(claim, scopes, found))
    notes = [f"scope {s.name}: {note}" for s, r in reports for note in r.notes]
    return Report("check", subject.name, tuple(findings), _figures(reports), tuple(notes), required)


def _finding(claim: Claim, scopes: Sequence[Scope], found: Sequence[tuple[Scope, Finding]]) -> Finding:
    seconds = sum(f.seconds for _, f in found)
    for scope, one in found:
        if one.verdict is Verdict.REFUTED:
            return replace(one, why=f"{one.why}, in scope {scope.name}", seconds=seconds)
    bound = _bounds(scopes)
    for scope, one in found:
        if one.verdict is Verdict.UNDETERMINED and UNEXERCISED not in one.details:
            why = f"in scope {scope.name}: {one.why}"
            return Finding(claim, Verdict.UNDETERMINED, "explored", bound, why, None, seconds)
    if len(found) < len(scopes):
        return Finding(claim, Verdict.UNDETERMINED, "explored", bound, NOT_BEGUN, None, seconds)
    exercised = [s for s, f in found if f.verdict is Verdict.BOUNDED]
    if not exercised:
        parts = [unexercised(claim, s, f.details[UNEXERCISED], f"scope {s.name}") for s, f in found]
        why = f"never exercised: {'; '.join(parts)}"
        return Finding(claim, Verdict.UNDETERMINED, "explored", bound, why, None, seconds)
    others = [s.name for s in scopes if s not in exercised]
    why = f"exercised in {' and '.join(s.name for s in exercised)}"
    if others:
        why += f"; held in {' and '.join(others)}"
    details = {"exercised_in": [s.name for s in exercised]}
    return Finding(claim, Verdict.BOUNDED, "explored", _bounds(exercised), why, None, seconds, details)


def _bounds(scopes: Iterable[Scope]) -> str:
    return "; ".join(f"scope {s.name}: {s.describe()}" for s in scopes)


_SUMS = ("states", "transitions", "cut", "seconds", "compile_seconds")


def _figures(reports: Sequence[tuple[Scope, Report]]) -> Mapping[str, Any]:
    """The figures of all scopes together, and of each."""
    figures = [r.figures for _, r in reports]
    return {
        "scope": ", ".join(s.name for s, _ in reports),
        "bound": _bounds(s for s, _ in reports),
        **{name: round(sum(f[name] for f in figures), 3) for name in _SUMS},
        "depth": max(f["depth"] for f in figures),
        "complete": all(f["complete"] for f in figures),
        "peak_bytes": max(f["peak_bytes"] for f in figures),
        "scopes": [dict(f) for f in figures],
    }
