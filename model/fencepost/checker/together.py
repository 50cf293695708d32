"""Several searches: a claim looked at in several scopes, of one protocol after another.

Of several scopes each shows something else, and a claim has one verdict of all. REFUTED if it is false in
any. BOUNDED if it is true in every state of each, and at least one of them exercised it: all of its witnesses
were reached there. UNDETERMINED otherwise. So a scope that does not exercise a claim takes nothing away from
one that does, and does not count as one that does.

Searches may run at the same time, each in a thread: compiled code runs side by side, Python takes turns. What
is reported does not depend on it: it is what looking at one after another finds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.checker.explore import UNEXERCISED, Progress, check_one, unexercised
from fencepost.checker.native import memory_limit_mb
from fencepost.checker.shares import share_s
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Finding, Report, Verdict
from fencepost.model import Scope
from fencepost.model.ground import Readings
from fencepost.properties import Claim

NOT_BEGUN = "not looked at: the search ended with the first violation"


@dataclass(frozen=True, slots=True)
class Asked:
    """A protocol, the claims that were asked for (ids or names; none means all), and where to look."""

    subject: Subject
    scopes: tuple[Scope, ...]
    claims: tuple[str, ...] = ()


@dataclass(slots=True)
class _Search:
    """One scope of one protocol."""

    asked: Asked
    scope: Scope
    readings: Readings
    halt: threading.Event = field(default_factory=threading.Event)
    report: Report | None = None

    @property
    def ends_all(self) -> bool:
        """Whether nothing is left to ask of this protocol, since all that was asked is refuted."""
        return self.report is not None and len(self.report.refuted) == len(self.report.findings)


def check_all(
    wanted: Sequence[Asked],
    *,
    budget_s: float | None = None,
    memory_mb: int | None = None,
    jobs: int = 1,
    stop: str = "all",
    traces: bool = True,
    required: Verdict | None = None,
    on_progress: Progress | None = None,
) -> list[Report]:
    """`check` of each protocol in each of its scopes, at most `jobs` searches at the same time.

    `budget_s` (seconds) is for all of them: what a search leaves over goes to those after it. `memory_mb`
    (MiB) is for those that run together. With ``stop="first"`` nothing after the first violation is looked
    at: protocols after it have no report.
    """
    searches: list[_Search] = []
    for asked in wanted:
        readings = Readings(asked.subject.protocol)
        searches += [_Search(asked, scope, readings) for scope in asked.scopes]
    lanes = max(1, min(jobs, len(searches)))
    deadline = None if budget_s is None else time.monotonic() + budget_s
    memory_mb = memory_mb if lanes == 1 else (memory_mb or memory_limit_mb()) // lanes
    turn = threading.Lock()

    def look(search: _Search, waiting: int) -> None:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        search.report = check_one(
            search.asked.subject,
            search.scope,
            claims=search.asked.claims,
            budget_s=None if left is None else share_s(left, waiting),
            memory_mb=memory_mb,
            stop=stop,
            traces=traces,
            on_progress=_telling(on_progress, search, several=len(searches) > 1),
            readings=search.readings,
            turn=turn,
            halted=search.halt.is_set,
        )

    def settle() -> None:
        """Halt what is not asked any more, by what has ended."""
        for search in _not_asked(searches, stop):
            search.halt.set()

    if lanes == 1:
        for number, search in enumerate(searches):
            if not search.halt.is_set():
                look(search, len(searches) - number - 1)
                settle()
    else:
        _side_by_side(searches, lanes, look, settle)
    reports = []
    for asked in wanted:
        looked = [s for s in searches if s.asked is asked and not s.halt.is_set()]
        found = [(s.scope, s.report) for s in looked if s.report is not None]
        if found:
            reports.append(_joined_if_several(asked, found, required, lanes))
    return reports


def _not_asked(searches: Sequence[_Search], stop: str) -> list[_Search]:
    """Searches that looking at one after another would not begin."""
    over: list[_Search] = []
    violated, ended = False, None
    for search in searches:
        if violated or search.asked is ended:
            over.append(search)
        elif search.report is not None:
            violated = stop == "first" and bool(search.report.refuted)
            ended = search.asked if search.ends_all else ended
    return over


def _side_by_side(
    searches: Sequence[_Search],
    lanes: int,
    look: Callable[[_Search, int], None],
    settle: Callable[[], None],
) -> None:
    """Begin the searches in order, `lanes` of them at the same time; the first that fails ends all."""
    waiting = list(searches)
    running: set[Future[None]] = set()
    pool = ThreadPoolExecutor(lanes)
    try:
        while waiting or running:
            while waiting and len(running) < lanes:
                search = waiting.pop(0)
                if not search.halt.is_set():
                    running.add(pool.submit(look, search, len(waiting) // lanes))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                one.result()
            settle()
    finally:
        for search in searches:
            if search.report is None:
                search.halt.set()
        pool.shutdown()


def _telling(on_progress: Progress | None, search: _Search, *, several: bool) -> Progress | None:
    if on_progress is None or not several:
        return on_progress
    place = f"{search.asked.subject.model}, scope {search.scope.name}"
    return lambda what: on_progress(f"{place}: {what}")


def _joined_if_several(
    asked: Asked, found: Sequence[tuple[Scope, Report]], required: Verdict | None, lanes: int
) -> Report:
    if len(asked.scopes) == 1:
        return replace(found[0][1], required=required)
    return joined(asked.subject, asked.subject.chosen(asked.claims), asked.scopes, found, required, lanes)


def joined(
    subject: Subject,
    chosen: Iterable[Claim],
    scopes: Sequence[Scope],
    reports: Sequence[tuple[Scope, Report]],
    required: Verdict | None = None,
    lanes: int = 1,
) -> Report:
    """The reports of some scopes as one; a scope of `scopes` without a report was not looked at."""
    findings = []
    for claim in chosen:
        found = [(s, f) for s, r in reports for f in r.findings if f.claim.name == claim.name]
        findings.append(_finding(claim, scopes, found))
    notes = [f"scope {s.name}: {note}" for s, r in reports for note in r.notes]
    return Report("check", subject.name, tuple(findings), _figures(reports, lanes), tuple(notes), required)


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


def _figures(reports: Sequence[tuple[Scope, Report]], lanes: int) -> Mapping[str, Any]:
    """The figures of all scopes together, and of each."""
    figures = [r.figures for _, r in reports]
    return {
        "scope": ", ".join(s.name for s, _ in reports),
        "bound": _bounds(s for s, _ in reports),
        **{name: round(sum(f[name] for f in figures), 3) for name in _SUMS},
        "depth": max(f["depth"] for f in figures),
        "complete": all(f["complete"] for f in figures),
        "peak_bytes": sum(sorted(f["peak_bytes"] for f in figures)[-lanes:]),
        "scopes": [dict(f) for f in figures],
    }
