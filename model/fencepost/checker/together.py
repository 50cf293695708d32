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
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.checker.explore import UNEXERCISED, Halted, Progress, check_one, unexercised
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
    """One scope of one of the protocols that were asked for."""

    place: int
    asked: Asked
    scope: Scope
    readings: Readings
    halt: threading.Event = field(default_factory=threading.Event)
    report: Report | None = None
    error: Exception | None = None

    @property
    def ends_all(self) -> bool:
        """Whether nothing is left to ask of this protocol, since all that was asked is refuted."""
        found = () if self.report is None else self.report.findings
        return bool(found) and all(f.verdict is Verdict.REFUTED for f in found)

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether it ended for want of memory, which it may have shared with others."""
        return self.report is not None and self.report.figures["why_incomplete"] == "memory"


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
    (MiB) is for those that run together; one for which its share was too little runs again alone. With
    ``stop="first"`` nothing after the first violation is looked at: protocols after it have no report. The
    first search that fails ends those after it, and its error is raised.
    """
    searches: list[_Search] = []
    for place, asked in enumerate(wanted):
        readings = Readings(asked.subject.protocol)
        searches += [_Search(place, asked, scope, readings) for scope in asked.scopes]
    lanes = max(1, min(jobs, len(searches)))
    whole_mb = memory_limit_mb() if memory_mb is None else memory_mb
    deadline = None if budget_s is None else time.monotonic() + budget_s
    together = _Together(searches, deadline, stop, on_progress, traces=traces)
    if lanes > 1:
        together.side_by_side(lanes, max(1, whole_mb // lanes))
    together.one_by_one(whole_mb, again=lanes > 1)
    for search in searches:
        if search.error is not None and not search.halt.is_set():
            raise search.error
    reports = []
    for place, asked in enumerate(wanted):
        looked = [s for s in searches if s.place == place and not s.halt.is_set()]
        found = [(s.scope, s.report) for s in looked if s.report is not None]
        if found:
            reports.append(_joined_if_several(asked, found, required, lanes))
    return reports


class _Together:
    """Searches that are to be as if one had come after another."""

    def __init__(
        self,
        searches: Sequence[_Search],
        deadline: float | None,
        stop: str,
        on_progress: Progress | None,
        *,
        traces: bool,
    ) -> None:
        self.searches = searches
        self.deadline = deadline
        self.stop = stop
        self.on_progress = on_progress
        self.traces = traces
        self.turn = threading.Lock()

    def side_by_side(self, lanes: int, memory_mb: int) -> None:
        """Begin the searches in order, `lanes` of them at the same time."""
        waiting = list(self.searches)
        running: set[Future[None]] = set()
        pool = ThreadPoolExecutor(lanes)
        try:
            while waiting or running:
                while waiting and len(running) < lanes:
                    search = waiting.pop(0)
                    if not search.halt.is_set():
                        running.add(pool.submit(self._look, search, len(waiting) // lanes, memory_mb))
                if running:
                    _, running = wait(running, return_when=FIRST_COMPLETED)
                self._settle()
        except BaseException:  # somebody interrupts
            for search in self.searches:
                search.halt.set()
            raise
        finally:
            pool.shutdown()

    def one_by_one(self, memory_mb: int, *, again: bool) -> None:
        """What has not been searched, or, with `again`, with too little memory, since others had some."""
        for number, search in enumerate(self.searches):
            fresh = search.report is None and search.error is None
            if (fresh or (again and search.ran_out_of_memory)) and not search.halt.is_set():
                self._look(search, len(self.searches) - number - 1 if fresh else 0, memory_mb)
                self._settle()

    def _look(self, search: _Search, waiting: int, memory_mb: int) -> None:
        def left_s() -> float | None:
            if self.deadline is None:
                return None
            return share_s(max(0.0, self.deadline - time.monotonic()), waiting)

        try:
            search.report = check_one(
                search.asked.subject,
                search.scope,
                claims=search.asked.claims,
                left_s=left_s,
                memory_mb=memory_mb,
                stop=self.stop,
                traces=self.traces,
                on_progress=_telling(self.on_progress, search, several=len(self.searches) > 1),
                readings=search.readings,
                turn=self.turn,
                halted=search.halt.is_set,
            )
        except Halted:
            pass
        except Exception as error:  # noqa: BLE001  # raised in the end, unless nobody asks for this search
            search.error = error

    def _settle(self) -> None:
        """Halt what is not asked any more, by what has ended."""
        for search in _not_asked(self.searches, self.stop):
            search.halt.set()


def _not_asked(searches: Sequence[_Search], stop: str) -> list[_Search]:
    """Searches that looking at one after another would not begin."""
    over: list[_Search] = []
    ended, done = False, -1
    for search in searches:
        if ended or search.place == done:
            over.append(search)
        elif search.error is not None:
            ended = True
        elif search.report is not None:
            ended = stop == "first" and bool(search.report.refuted)
            done = search.place if search.ends_all else done
    return over


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
    figures = _figures(reports, lanes, looked_at_all=len(reports) == len(scopes))
    return Report("check", subject.name, tuple(findings), figures, tuple(notes), required)


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


def _figures(
    reports: Sequence[tuple[Scope, Report]], lanes: int, *, looked_at_all: bool
) -> Mapping[str, Any]:
    """The figures of all scopes together, and of each."""
    figures = [r.figures for _, r in reports]
    return {
        "scope": ", ".join(s.name for s, _ in reports),
        "bound": _bounds(s for s, _ in reports),
        **{name: round(sum(f[name] for f in figures), 3) for name in _SUMS},
        "depth": max(f["depth"] for f in figures),
        "complete": looked_at_all and all(f["complete"] for f in figures),
        "peak_bytes": sum(sorted(f["peak_bytes"] for f in figures)[-lanes:]),
        "scopes": [dict(f) for f in figures],
    }
