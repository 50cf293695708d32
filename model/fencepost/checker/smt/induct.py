"""Proofs for all sizes: claims and supporting invariants that the first state has and every move keeps.

Induction over the moves of a protocol: workers, keys and messages are any number, versions have no end. A claim is
proved only when all its obligations are shown, with hypotheses that are themselves proved in the same set, on a model
whose numbers stay in their domains and whose every action can happen. Everything else is not a proof (`reasons`).
What may not live here: counterexamples, which only a finite instance gives (`bounded.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.checker.smt.obligations import START, Move, Moves, Obligation, parts_of, unreadable
from fencepost.checker.smt.solver import SAT, UNKNOWN, UNSAT, Answer, Asker, Deadline
from fencepost.checker.smt.translate import Formula, Translator
from fencepost.model import terms as t
from fencepost.model.errors import ModelError
from fencepost.model.protocol import Protocol

TRIVIAL, FOLDED = "trivial", "folded"
HOLDS = frozenset({UNSAT, TRIVIAL, FOLDED})

Claims = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Result:
    """One obligation and what became of it.

    `status`: ``unsat`` (shown by the solver), ``trivial`` (the move does not touch what the claim reads), ``folded``
    (true by rewriting), ``sat`` (a state that satisfies the hypotheses breaks it; it need not be reachable) or
    ``unknown``. `hypotheses` are the invariants that were assumed.
    """

    obligation: Obligation
    status: str
    seconds: float
    way: str
    hypotheses: frozenset[str]

    @property
    def name(self) -> str:
        """Move × claim."""
        return self.obligation.name

    @property
    def holds(self) -> bool:
        """Whether it is shown."""
        return self.status in HOLDS


@dataclass(frozen=True, slots=True)
class ProofResult:
    """What was proved for all sizes, and what each part of the proof took.

    `proved` has every claim, step claim and supporting invariant; `reasons` says why each one that is false there is.
    `never` are actions of which no move could be shown possible: with one of them nothing is proved.
    """

    proved: Mapping[str, bool]
    obligations: tuple[Result, ...]
    reasons: Mapping[str, str]
    never: tuple[str, ...]
    seconds: float

    @property
    def failed(self) -> tuple[Result, ...]:
        """The obligations that are not shown."""
        return tuple(r for r in self.obligations if not r.holds)


Progress = Callable[[int, int, Result], None]


@dataclass(slots=True)
class _Proof:
    moves: Moves
    asker: Asker
    state_claims: dict[str, t.Term]
    step_claims: dict[str, t.Term]
    supports: Mapping[str, frozenset[str]]
    on_progress: Progress | None
    results: dict[str, Result] = field(default_factory=dict)
    done: int = 0

    def obligations(self) -> list[Obligation]:
        found = list(self.moves.standing())
        for name, claim in self.state_claims.items():
            found.append(Obligation(START, name, (), self.moves.at_start(claim)))
        for move in self.moves.accepted():
            for name, claim in self.state_claims.items():
                found.append(Obligation(move.label, name, move.guard, self.moves.after(move, claim)))
            for name, claim in self.step_claims.items():
                found.append(Obligation(move.label, name, move.guard, self.moves.across(move, claim)))
        return found

    def hypotheses(self, obligation: Obligation, alive: Iterable[str]) -> frozenset[str]:
        if obligation.move == START:
            return frozenset()
        kept = frozenset(alive) & self.state_claims.keys()
        allowed = self.supports.get(obligation.claim)
        return kept if allowed is None else kept & (allowed | {obligation.claim})

    def settle(self) -> set[str]:
        """Drop what fails until the rest carries itself; gives the names that are left."""
        alive = {*self.state_claims, *self.step_claims}
        todo = self.obligations()
        while True:
            failed: set[str] = set()
            for obligation in todo:
                if obligation.claim in alive or obligation.claim not in self.claims:
                    failed |= self.discharge(obligation, alive, len(todo))
            if not failed & alive:
                return alive
            alive -= failed
            todo = [r.obligation for r in self.results.values() if r.holds and r.hypotheses - alive]

    @property
    def claims(self) -> frozenset[str]:
        return frozenset({*self.state_claims, *self.step_claims})

    def discharge(self, obligation: Obligation, alive: set[str], total: int) -> set[str]:
        hypotheses = self.hypotheses(obligation, alive)
        result = self.results[obligation.name] = self.solve(obligation, hypotheses)
        self.done += 1
        if self.on_progress is not None:
            self.on_progress(self.done, max(self.done, total), result)
        return set() if result.holds else {obligation.claim}

    def solve(self, obligation: Obligation, hypotheses: frozenset[str]) -> Result:
        assumed = {part: name for name in sorted(hypotheses) for part in parts_of(self.state_claims[name])}
        goals = list(dict.fromkeys(parts_of(obligation.goal)))
        left = [g for g in goals if g not in assumed and g not in obligation.guard]
        if not left:
            used = frozenset(assumed[g] for g in goals if g in assumed)
            trivial = obligation.goal is self.state_claims.get(obligation.claim)
            return Result(obligation, TRIVIAL if trivial else FOLDED, 0.0, "", used)
        answer = self.ask(hypotheses, obligation.guard, left)
        if answer.status == UNKNOWN and len(left) > 1 and self.asker.deadline.left_s > 0:
            answer = self.one_by_one(hypotheses, obligation.guard, left, answer)
        return Result(obligation, answer.status, answer.seconds, answer.way, hypotheses)

    def one_by_one(
        self, hypotheses: frozenset[str], guard: tuple[t.Term, ...], goals: list[t.Term], first: Answer
    ) -> Answer:
        seconds = first.seconds
        for goal in goals:
            answer = self.ask(hypotheses, guard, [goal])
            seconds += answer.seconds
            if answer.status != UNSAT:
                return replace(answer, seconds=seconds)
        return Answer(UNSAT, seconds, "one by one")

    def ask(self, hypotheses: frozenset[str], guard: tuple[t.Term, ...], goals: list[t.Term]) -> Answer:
        assumed = [self.state_claims[name] for name in sorted(hypotheses)]
        translator = self.asker.translator
        wanted = translator.negation(translator.conjunction(translator.formula(g) for g in goals))
        return self.asker.ask([*self.background([*assumed, *guard], goals), wanted])

    def background(self, assumed: list[t.Term], goals: Iterable[t.Term] = ()) -> list[Formula]:
        """The assumptions, and the domains of every variable that they or the goals mention."""
        translator = self.asker.translator
        formulas = [translator.formula(a) for a in assumed]
        for goal in goals:
            translator.formula(goal)
        mentioned = t.variables_of([*assumed, *goals])
        bound_inside = {v for term in _subterms([*assumed, *goals]) if term.op in t.BINDERS for v in term.args[:-1]}
        free = [v for v in mentioned if v not in bound_inside]
        return [*formulas, *translator.domain_facts(self.moves.protocol, free), *translator.distinct_elements()]

    def never(self, alive: set[str]) -> tuple[str, ...]:
        """The actions none of whose moves is shown to be possible in a state with all invariants."""
        assumed = [self.state_claims[name] for name in sorted(alive & self.state_claims.keys())]
        by_action: dict[str, list[Move]] = {}
        for move in self.moves.accepted():
            by_action.setdefault(move.action, []).append(move)
        found = []
        for action in self.moves.protocol.actions:
            possible = any(
                self.asker.ask(self.background([*assumed, *move.guard])).status == SAT
                for move in by_action.get(action, [])
            )
            if not possible:
                found.append(action)
        return tuple(found)


def _subterms(terms: Iterable[t.Term]) -> Iterable[t.Term]:
    seen: set[t.Term] = set()
    stack = list(terms)
    while stack:
        term = stack.pop()
        if term not in seen:
            seen.add(term)
            stack.extend(term.args)
    return seen


def prove(
    protocol: Protocol,
    claims: Claims,
    steps: Claims,
    supporting: Claims,
    *,
    timeout_s: float = 2.0,
    budget_s: float = 60.0,
    seed: int = 0,
    supports: Mapping[str, Iterable[str]] | None = None,
    off: Iterable[str] = (),
    on_progress: Progress | None = None,
) -> ProofResult:
    """Prove state claims and step claims for all sizes, by induction with `supporting` invariants.

    `timeout_s` bounds one obligation and `budget_s` all of them, in seconds; what is not decided by then is unknown.
    `supports` restricts the hypotheses of a claim to itself and the names given for it; by default all claims and
    supporting invariants are assumed. `off` are switches of the world that the proof assumes off (§16); all others
    are open, so the proof covers each combination. Raises ModelError for a claim that reads what may not be there.
    """
    started = time.monotonic()
    reasons: dict[str, str] = {}
    every = {**claims, **steps, **supporting}
    try:
        moves = Moves(protocol, off)
    except ModelError as error:
        reasons = dict.fromkeys(every, unreadable(error))
        return ProofResult(dict.fromkeys(every, False), (), reasons, (), time.monotonic() - started)
    state_claims = _readable(moves, {**claims, **supporting}, reasons)
    step_claims = _readable(moves, steps, reasons)
    asker = Asker(Translator(), Deadline(budget_s), timeout_s=timeout_s, seed=seed)
    allowed = {name: frozenset(names) for name, names in (supports or {}).items()}
    proof = _Proof(moves, asker, state_claims, step_claims, allowed, on_progress)
    alive = proof.settle()
    never = proof.never(alive)
    results = tuple(proof.results.values())
    _explain(reasons, proof, alive, never)
    proved = {name: name in alive and name not in reasons for name in every}
    return ProofResult(proved, results, reasons, never, time.monotonic() - started)


def _readable(moves: Moves, claims: Claims, reasons: dict[str, str]) -> dict[str, t.Term]:
    found: dict[str, t.Term] = {}
    for name, function in claims.items():
        try:
            found[name] = moves.claim(function)
        except ModelError as error:
            reasons[name] = unreadable(error)
    return found


def _explain(reasons: dict[str, str], proof: _Proof, alive: set[str], never: tuple[str, ...]) -> None:
    broken: dict[str, list[Result]] = {}
    for result in proof.results.values():
        if not result.holds:
            broken.setdefault(result.obligation.claim, []).append(result)
    standing = [r for claim, found in broken.items() if claim not in proof.claims for r in found]
    for name in proof.claims:
        if name not in alive:
            reasons[name] = "not shown: " + "; ".join(f"{r.obligation.move} ({r.status})" for r in broken[name])
        elif standing:
            reasons[name] = "the model itself is not shown to be sound: " + "; ".join(r.name for r in standing)
        elif never:
            reasons[name] = "not shown to be possible at all: " + ", ".join(never)
