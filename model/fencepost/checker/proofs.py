"""`prove`: claims for any number of workers and unbounded versions, by induction.

What the solver does not show is not called false: the finite instance is searched for a concrete run first,
and only when that finds none is the verdict UNDETERMINED, with the obligations that failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from fencepost.checker.smt import ProofResult, Result
from fencepost.checker.smt import prove as induct
from fencepost.checker.subject import Subject
from fencepost.checker.verdicts import Finding, Report, Verdict
from fencepost.model import Scope
from fencepost.model.protocol import listed
from fencepost.properties import Claim

Progress = Callable[[str], None]

FOR_ALL = "{sorts}unbounded versions, every combination of the world's switches"
"""What PROVED covers. Fresh ids never run out: where only finitely many are ever used, another one exists."""

AS_NEEDED = ", with those off that the claim needs off"
"""What the bound of a whole report adds, where its claims need different switches off."""


def prove(
    subject: Subject,
    *,
    claims: Iterable[str] = (),
    budget_s: float = 60.0,
    timeout_s: float = 2.0,
    seed: int = 0,
    scope: str | Scope = "",
    counterexamples: bool = True,
    required: Verdict | None = None,
    on_progress: Progress | None = None,
) -> Report:
    """Prove claims by induction. `budget_s` bounds all of it and `timeout_s` one obligation, in seconds.

    A claim is proved, and where that fails searched, with the switches off that it needs off, and with no
    other. `scope` is the finite instance that is searched for a concrete run where a proof fails; by default
    the subject's first.
    """
    started = time.monotonic()
    chosen = subject.chosen(claims)
    others = [c for c in subject.chosen() if c not in chosen and not c.over_steps]
    helpers = [c for c in (*subject.supporting(), *others) if c not in chosen]
    result = _induction(subject, chosen, helpers, budget_s, timeout_s, seed, on_progress)
    broken = [c for c in chosen if not result.proved[c.name]]
    runs: dict[str, Finding] = {}
    searched_in: dict[str, str] = {}
    if broken and counterexamples:
        from fencepost.checker.explore import check

        for where, together in _instances(subject, scope, broken):
            left = max(1.0, budget_s - (time.monotonic() - started))
            names = [c.name for c in together]
            searched = check(subject, scope=where, claims=names, budget_s=left, on_progress=on_progress)
            runs.update((f.claim.name, f) for f in searched.findings if f.verdict is Verdict.REFUTED)
            ended = "" if searched.figures["complete"] else ", which was not searched to its end"
            searched_in.update(dict.fromkeys(names, _instance(where) + ended))
    findings = tuple(
        _finding(c, result, runs.get(c.name), _sizes(subject, c), searched_in.get(c.name, "")) for c in chosen
    )
    figures = {
        "bound": _sizes(subject, *chosen),
        "obligations": len(result.obligations),
        "solver_obligations": sum(1 for r in result.obligations if r.seconds > 0),
        "slowest_s": round(max((r.seconds for r in result.obligations), default=0.0), 3),
        "seconds": round(time.monotonic() - started, 3),
        "invariants": [c.name for c in subject.supporting() if result.proved[c.name]],
        "failed_invariants": [c.name for c in subject.supporting() if not result.proved[c.name]],
    }
    return Report("prove", subject.name, findings, figures, (), required)


def _sizes(subject: Subject, *claims: Claim) -> str:
    """What a proof of these claims covers: for one, the switches that it needs off are named."""
    names = listed([f"{n}s" for n in _sorts(subject)])
    sizes = FOR_ALL.format(sorts=f"any number of {names}, " if names else "")
    different = len({frozenset(c.needs_off) for c in claims}) > 1
    return sizes + (AS_NEEDED if different else "".join(map(_with_off, claims[:1])))


def _with_off(claim: Claim) -> str:
    """The switches that a claim needs off, in words; nothing when it needs none."""
    return f", with {listed(list(dict.fromkeys(claim.needs_off)))} off" if claim.needs_off else ""


def _sorts(subject: Subject) -> list[str]:
    from fencepost.model import Sort

    return [n for n, d in subject.protocol.sorts().items() if isinstance(d, Sort)]


def _induction(
    subject: Subject,
    chosen: list[Claim],
    helpers: list[Claim],
    budget_s: float,
    timeout_s: float,
    seed: int,
    on_progress: Progress | None,
) -> ProofResult:
    """All chosen claims at once; state claims that were not chosen help like supporting invariants."""

    def progress(done: int, total: int, result: Result) -> None:
        if on_progress is not None:
            on_progress(f"obligation {done} of {total}: {result.name}")

    return induct(
        subject.protocol,
        {c.name: c.predicate for c in chosen if not c.over_steps},
        {c.name: c.predicate for c in chosen if c.over_steps},
        {c.name: c.predicate for c in helpers},
        timeout_s=timeout_s,
        budget_s=budget_s,
        seed=seed,
        needs_off={c.name: c.needs_off for c in (*chosen, *helpers)},
        on_progress=progress,
    )


def _instances(
    subject: Subject, scope: str | Scope, claims: list[Claim]
) -> Iterator[tuple[Scope, list[Claim]]]:
    """The scope without the switches that claims need off, each with the claims that need just these off."""
    where = subject.scope(scope) if isinstance(scope, str) else scope
    together: dict[frozenset[str], list[Claim]] = {}
    for claim in claims:
        together.setdefault(where.switches - frozenset(claim.needs_off), []).append(claim)
    for switches, found in together.items():
        yield where.but(switches=switches), found


def _instance(where: Scope) -> str:
    on = ", ".join(sorted(where.switches)) or "none"
    return f"scope {where.name} ({where.describe()}; switches on: {on})"


def _finding(claim: Claim, result: ProofResult, run: Finding | None, sizes: str, searched: str) -> Finding:
    mine = [r for r in result.obligations if r.obligation.claim == claim.name]
    seconds = sum(r.seconds for r in mine)
    if result.proved[claim.name]:
        ids = ", taking it that ids never run out" if result.needs_ids(claim.name) else ""
        why = f"{len(mine)} obligations by induction{ids}{_with_off(claim)}"
        return Finding(claim, Verdict.PROVED, "proved", sizes, why, None, seconds)
    if run is not None:
        return Finding(
            claim,
            Verdict.REFUTED,
            "proof failed, then explored",
            run.bound,
            run.why,
            run.trace,
            seconds + run.seconds,
        )
    reason = result.reasons.get(claim.name, "not shown")
    why = f"{reason}; no run that breaks it was found in {searched}" if searched else reason
    return Finding(claim, Verdict.UNDETERMINED, "proof failed", sizes, why, None, seconds)
