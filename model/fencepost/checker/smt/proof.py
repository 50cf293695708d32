"""Proofs for all sizes: claims and supporting invariants that the first state has and every move keeps.

Induction over the moves of a protocol: workers, keys and messages are any number, versions have no end. A
claim is proved only when all its obligations are shown, with hypotheses that are themselves proved in the
same set, on a model whose numbers stay in their domains and whose every action can happen. Everything else is
not a proof (`reasons`). What may not live here: counterexamples, which only a finite instance gives
(`bounded.py`).
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.checker.smt.instance import Instance
from fencepost.checker.smt.obligations import (
    ANY_STATE,
    DOMAINS,
    FAULTS,
    START,
    Move,
    Moves,
    Obligation,
    parts_of,
    subterms,
)
from fencepost.checker.smt.solver import (
    BRIEFLY,
    MODELS,
    SAT,
    UNKNOWN,
    UNSAT,
    WAYS,
    Answer,
    Asker,
    Deadline,
    Way,
)
from fencepost.checker.smt.translate import Formula, Translator
from fencepost.model import terms as t
from fencepost.model.errors import ModelError, NeedsFiniteError
from fencepost.model.protocol import Protocol

TRIVIAL, FOLDED = "trivial", "folded"
HOLDS = frozenset({UNSAT, TRIVIAL, FOLDED})

LIGHT_TERMS = 200
"""A hypothesis of more distinct terms is left out at first: what reads the whole state seldom helps."""

SHOWN_FAILURES = 3
"""A claim of which so many obligations fail is lost; the others of its obligations are not asked."""

Claims = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Result:
    """One obligation and what became of it.

    `status`: ``unsat`` (shown by the solver), ``trivial`` (the move does not touch what the claim reads),
    ``folded`` (true by rewriting), ``sat`` (a state that satisfies the hypotheses breaks it; it need not be
    reachable) or ``unknown``. `hypotheses` are the invariants that it rests on, or that were assumed in vain;
    `supplied` tells whether it takes it that fresh ids never run out.
    """

    obligation: Obligation
    status: str
    seconds: float
    way: str
    hypotheses: frozenset[str]
    supplied: bool = False

    @property
    def name(self) -> str:
        """Move × claim."""
        return self.obligation.name

    @property
    def says(self) -> str:
        """The status in words."""
        if self.status == SAT:
            return "a state that satisfies the invariants breaks it; it need not be reachable"
        return "the solver does not know" if self.status == UNKNOWN else self.status

    @property
    def holds(self) -> bool:
        """Whether it is shown."""
        return self.status in HOLDS


@dataclass(frozen=True, slots=True)
class ProofResult:
    """What was proved for all sizes, and what each part of the proof took.

    `proved` has every claim, step claim and supporting invariant; `reasons` says why each one that is false
    there is. `never` are actions of which no move could be shown possible: with one of them nothing is
    proved.
    """

    proved: Mapping[str, bool]
    obligations: tuple[Result, ...]
    reasons: Mapping[str, str]
    never: tuple[str, ...]
    seconds: float

    @property
    def failed(self) -> tuple[Result, ...]:
        """The obligations that are not shown, up to three of each claim."""
        return tuple(r for r in self.obligations if not r.holds)

    def needs_ids(self, name: str) -> bool:
        """Whether the proof of `name` takes it that fresh ids never run out, as for all sizes they do not."""
        used = {name, DOMAINS, FAULTS}
        for start in tuple(used):
            used |= self.rests_on(start)
        return any(r.supplied for r in self.obligations if r.obligation.claim in used)

    def rests_on(self, name: str) -> frozenset[str]:
        """The invariants that the proof of `name` uses, directly or through others, itself left out."""
        used: dict[str, set[str]] = {}
        for result in self.obligations:
            used.setdefault(result.obligation.claim, set()).update(result.hypotheses)
        found, waiting = set[str](), [name]
        while waiting:
            more = used.get(waiting.pop(), set()) - found
            found |= more
            waiting += more
        return frozenset(found - {name})


Progress = Callable[[int, int, Result], None]


@dataclass(slots=True)
class _Proof:
    moves: Moves
    asker: Asker
    states: dict[str, t.Term]
    steps: dict[str, t.Term]
    supports: Mapping[str, frozenset[str]]
    on_progress: Progress | None
    results: dict[str, Result] = field(default_factory=dict)
    following: list[str] = field(default_factory=list)
    """Claims that follow from the others in any state, oldest first; each rests on none that is older."""
    tried: set[str] = field(default_factory=set)
    alive: set[str] = field(default_factory=set)
    done: int = 0
    _parts: dict[t.Term, tuple[t.Term, ...]] = field(default_factory=dict)
    _reads: dict[t.Term, tuple[t.Term, ...]] = field(default_factory=dict)
    _sizes: dict[t.Term, int] = field(default_factory=dict)

    @property
    def claims(self) -> frozenset[str]:
        return frozenset({*self.states, *self.steps})

    def obligations(self) -> list[Obligation]:
        moves = self.moves
        found = list(moves.standing())
        found += [Obligation(START, name, moves.at_start(claim)) for name, claim in self.states.items()]
        for move in moves.accepted():
            after = [(name, moves.after(move, claim)) for name, claim in self.states.items()]
            after += [(name, moves.across(move, claim)) for name, claim in self.steps.items()]
            found += [Obligation(move.label, name, goal, move.guard, move.parameters) for name, goal in after]
        return found

    def hypotheses(self, obligation: Obligation) -> frozenset[str]:
        if obligation.move == START:
            return frozenset()
        kept = self.alive & self.states.keys()
        allowed = self.supports.get(obligation.claim)
        if allowed is not None:
            kept &= allowed | {obligation.claim}
        if obligation.move == ANY_STATE:
            older = self.following[: self.following.index(obligation.claim)]
            kept -= {*older, obligation.claim}
        return frozenset(kept)

    def settle(self) -> None:
        """Drop what fails until the rest carries itself."""
        self.alive = set(self.claims)
        todo = self.obligations()
        for name, claim in self.states.items():
            if self.size(claim) > LIGHT_TERMS:
                self.follow(name)
        while True:
            failed = Tally[str]()
            for obligation in todo:
                name = obligation.claim
                if name in self.claims and (name not in self.alive or self.follows_already(obligation)):
                    continue
                if failed[name] < SHOWN_FAILURES:
                    failed[name] += not self.discharge(obligation, len(todo), brief=failed[name] > 0)
            lost = {name for name in failed if failed[name]} & self.alive
            if not lost:
                return
            self.alive -= lost
            todo = [r.obligation for r in self.results.values() if r.holds and r.hypotheses - self.alive]

    def follows_already(self, obligation: Obligation) -> bool:
        return obligation.move not in (START, ANY_STATE) and obligation.claim in self.following

    def discharge(self, obligation: Obligation, total: int, *, brief: bool) -> bool:
        """Whether an obligation is shown, or else its claim follows from the others in any state."""
        result = self.solve(obligation, BRIEFLY if brief else WAYS)
        lost = not result.holds and not brief and obligation.move not in (START, ANY_STATE)
        if lost and self.follow(obligation.claim):
            return True
        self.results[result.name] = result
        self.done += 1
        if self.on_progress is not None:
            self.on_progress(self.done, max(self.done, total), result)
        return result.holds

    def follow(self, claim: str) -> bool:
        """Whether a claim follows from the others without a step of its own; asked once."""
        if claim in self.tried or claim not in self.states:
            return False
        self.tried.add(claim)
        self.following.append(claim)
        result = self.solve(Obligation(ANY_STATE, claim, self.states[claim]), WAYS)
        if result.holds:
            self.results[result.name] = result
        else:
            self.following.remove(claim)
        return result.holds

    def solve(self, obligation: Obligation, ways: tuple[Way, ...]) -> Result:
        hypotheses = self.hypotheses(obligation)
        assumed = {part: name for name in sorted(hypotheses) for part in self.parts(self.states[name])}
        goals = self.parts(obligation.goal)
        left = [g for g in goals if g not in assumed and g not in obligation.guard]
        if not left:
            used = frozenset(assumed[g] for g in goals if g in assumed)
            trivial = obligation.goal is self.states.get(obligation.claim)
            return Result(obligation, TRIVIAL if trivial else FOLDED, 0.0, "", used)
        spared = frozenset(assumed[g] for g in goals if g in assumed)
        answer = self.ask(obligation, hypotheses, left, ways)
        if answer.status == UNKNOWN and len(left) > 1 and ways is WAYS:
            answer = self.one_by_one(obligation, hypotheses, left, answer)
        used = answer.used | spared if answer.status == UNSAT else hypotheses
        return Result(obligation, answer.status, answer.seconds, answer.way, used, answer.supplied)

    def one_by_one(
        self, obligation: Obligation, hypotheses: frozenset[str], goals: list[t.Term], first: Answer
    ) -> Answer:
        seconds, used, supplied = first.seconds, set[str](), False
        for goal in goals:
            answer = self.ask(obligation, hypotheses, [goal], WAYS)
            seconds += answer.seconds
            used |= answer.used
            supplied |= answer.supplied
            if answer.status != UNSAT:
                return replace(answer, seconds=seconds)
        return Answer(UNSAT, seconds, "one by one", frozenset(used), supplied)

    def ask(
        self, obligation: Obligation, hypotheses: frozenset[str], goals: list[t.Term], ways: tuple[Way, ...]
    ) -> Answer:
        translator = self.asker.translator
        wanted = translator.negation(translator.conjunction(translator.formula(g) for g in goals))
        assumed = {name: self.states[name] for name in sorted(hypotheses)}
        formulas = [translator.formula(c) for c in obligation.guard]
        known = {name: translator.formula(claim) for name, claim in assumed.items()}
        read = self.variables([*obligation.guard, *goals, *assumed.values()], obligation.parameters)
        supply = [translator.formula(term) for term in self.moves.supply(read, obligation.parameters)]
        heavy = [n for n, term in assumed.items() if n != obligation.claim and self.size(term) > LIGHT_TERMS]
        asserted = [*formulas, *self.facts(read), wanted]
        return self.asker.ask(asserted, known, heavy=heavy, supply=supply, ways=ways)

    def facts(self, read: Iterable[t.Term]) -> list[Formula]:
        """What the solver's sorts do not say of variables, once all formulas have been made."""
        return [*self.asker.translator.domain_facts(read), *self.asker.translator.distinct_elements()]

    def variables(self, spoken: Iterable[t.Term], parameters: tuple[t.Term, ...]) -> dict[t.Term, None]:
        """The parameters, and the state variables that are mentioned."""
        variables: dict[t.Term, None] = dict.fromkeys(parameters)
        for term in spoken:
            reads = self._reads.get(term)
            if reads is None:
                reads = self._reads[term] = tuple(v for v in t.variables_of([term]) if v.op == "var")
            variables.update(dict.fromkeys(reads))
        return variables

    def size(self, term: t.Term) -> int:
        found = self._sizes.get(term)
        if found is None:
            found = self._sizes[term] = sum(1 for _ in subterms([term]))
        return found

    def parts(self, term: t.Term) -> tuple[t.Term, ...]:
        found = self._parts.get(term)
        if found is None:
            found = self._parts[term] = tuple(dict.fromkeys(parts_of(term)))
        return found

    def never(self, off: frozenset[str]) -> tuple[str, ...]:
        """The actions none of whose moves is shown to be possible in a state with all invariants."""
        assumed = [self.states[name] for name in sorted(self.alive & self.states.keys())]
        moves = list(self.moves.accepted())
        small = Instance(self.moves.protocol, moves, assumed, off=off, timeout_s=self.asker.timeout_s)
        possible = {name for name, action in self.moves.protocol.actions.items() if action.switch in off}
        for move in moves:
            if move.action not in possible and (small.allows(move) or self.allows(move, assumed)):
                possible.add(move.action)
        return tuple(name for name in self.moves.protocol.actions if name not in possible)

    def allows(self, move: Move, assumed: list[t.Term]) -> bool:
        formulas = [self.asker.translator.formula(term) for term in (*assumed, *move.guard)]
        facts = self.facts(self.variables([*assumed, *move.guard], move.parameters))
        return self.asker.ask([*formulas, *facts], ways=MODELS).status == SAT


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
    """Prove state claims and step claims for all sizes, by induction with `supporting` invariants (§17).

    `timeout_s` bounds one obligation and `budget_s` all of them, in seconds; what is not decided by then is
    unknown. `supports` restricts the hypotheses of a claim to itself and the names given for it; by default
    all claims and supporting invariants are assumed. `off` are switches of the world that the proof assumes
    off (§16); all others are open, so the proof covers each combination. What has no reading for all sizes is
    not proved, with the reason. Raises ModelError for a claim that reads what may not be there, and for two
    claims of one name.
    """
    started = time.monotonic()
    every = {**claims, **steps, **supporting}
    if len(every) < len(claims) + len(steps) + len(supporting):
        raise ModelError("two claims of one name", instead="name claims, step claims and invariants apart")
    switches_off = frozenset(off)
    try:
        moves = Moves(protocol, switches_off)
    except NeedsFiniteError as error:
        reasons = dict.fromkeys(every, f"no reading for all sizes: {error}")
        return ProofResult(dict.fromkeys(every, False), (), reasons, (), time.monotonic() - started)
    reasons = {}
    states = _readable(moves, {**claims, **supporting}, reasons)
    asker = Asker(Translator(), Deadline(budget_s), timeout_s=timeout_s, seed=seed)
    allowed = {name: frozenset(names) for name, names in (supports or {}).items()}
    proof = _Proof(moves, asker, states, _readable(moves, steps, reasons), allowed, on_progress)
    proof.settle()
    never = proof.never(switches_off)
    _explain(reasons, proof, never)
    proved = {name: name in proof.alive and name not in reasons for name in every}
    return ProofResult(proved, tuple(proof.results.values()), reasons, never, time.monotonic() - started)


def _readable(moves: Moves, claims: Claims, reasons: dict[str, str]) -> dict[str, t.Term]:
    found: dict[str, t.Term] = {}
    for name, function in claims.items():
        try:
            found[name] = moves.claim(function)
        except NeedsFiniteError as error:
            reasons[name] = f"no reading for all sizes: {error}"
    return found


def _explain(reasons: dict[str, str], proof: _Proof, never: tuple[str, ...]) -> None:
    broken: dict[str, list[Result]] = {}
    for result in proof.results.values():
        if not result.holds:
            broken.setdefault(result.obligation.claim, []).append(result)
    standing = [r for claim, found in broken.items() if claim not in proof.claims for r in found]
    for name in proof.claims:
        if name not in proof.alive:
            reasons[name] = "not shown: " + "; ".join(f"{r.obligation.move} ({r.says})" for r in broken[name])
        elif standing:
            reasons[name] = "the model itself is not shown to be sound: " + "; ".join(
                r.name for r in standing
            )
        elif never:
            reasons[name] = "not shown to be possible at all: " + ", ".join(never)
