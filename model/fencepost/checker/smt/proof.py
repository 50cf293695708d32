"""Proofs for all sizes: claims and supporting invariants that the first state has and every move keeps.

Induction over the moves of a protocol: workers, keys and messages are any number, versions have no end. A
claim is proved only when all its obligations are shown, with hypotheses that are themselves proved in the
same set, on a model whose numbers stay in their domains and whose every action can happen. Everything else is
not a proof (`reasons`). What may not live here: counterexamples, which only a finite instance gives
(`bounded.py`).

A switch of the world is on or off for the whole run. So a claim that needs some off speaks of the runs with
those off, and may rest on whatever holds in them: on invariants that need the same switches off, or fewer.
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
    switch_variable,
)
from fencepost.checker.smt.solver import (
    BRIEFLY,
    MODELS,
    OUT_OF_BUDGET,
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
from fencepost.model.protocol import Protocol, did_you_mean

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
        if self.out_of_budget:
            return "the budget ended"
        return "the solver does not know" if self.status == UNKNOWN else self.status

    @property
    def out_of_budget(self) -> bool:
        """Whether only the end of the budget left it undecided."""
        return self.status == UNKNOWN and self.way == OUT_OF_BUDGET

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
    needs_off: Mapping[str, frozenset[str]]
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
    _off: dict[frozenset[str], dict[t.Term, t.Term]] = field(default_factory=dict)

    @property
    def claims(self) -> frozenset[str]:
        return frozenset({*self.states, *self.steps})

    def obligations(self) -> list[Obligation]:
        moves = self.moves
        found = list(moves.standing())
        for name, claim in self.states.items():
            found.append(Obligation(START, name, self.when_off(moves.at_start(claim), self.off_for(name))))
        for move in moves.accepted():
            guards = {off: self.guard_of(move, off) for off in {self.off_for(name) for name in self.claims}}
            after = [(name, moves.after(move, claim)) for name, claim in self.states.items()]
            after += [(name, moves.across(move, claim)) for name, claim in self.steps.items()]
            for name, said in after:
                guard = guards[self.off_for(name)]
                if t.FALSE not in guard:
                    goal = self.when_off(said, self.off_for(name))
                    found.append(Obligation(move.label, name, goal, guard, move.parameters))
        return found

    def off_for(self, claim: str) -> frozenset[str]:
        """The switches that a claim needs off; what every proof rests on needs none."""
        return self.needs_off.get(claim, frozenset())

    def when_off(self, term: t.Term, off: frozenset[str]) -> t.Term:
        """A term as it reads while these switches are off."""
        if not off:
            return term
        if off not in self._off:
            self._off[off] = {switch_variable(name): t.FALSE for name in off}
        return t.substitute(term, {}, self._off[off])

    def guard_of(self, move: Move, off: frozenset[str]) -> tuple[t.Term, ...]:
        """The guard of a move while these switches are off; false among its parts where it cannot happen."""
        return tuple(g for part in move.guard if (g := self.when_off(part, off)) is not t.TRUE)

    def hypotheses(self, obligation: Obligation) -> frozenset[str]:
        if obligation.move == START:
            return frozenset()
        off = self.off_for(obligation.claim)
        kept = {name for name in self.alive & self.states.keys() if self.off_for(name) <= off}
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
        goal = self.state(claim, self.off_for(claim))
        result = self.solve(Obligation(ANY_STATE, claim, goal), WAYS)
        if result.holds:
            self.results[result.name] = result
        else:
            self.following.remove(claim)
        return result.holds

    def solve(self, obligation: Obligation, ways: tuple[Way, ...]) -> Result:
        hypotheses = self.hypotheses(obligation)
        off = self.off_for(obligation.claim)
        assumed = {part: name for name in sorted(hypotheses) for part in self.parts(self.state(name, off))}
        goals = self.parts(obligation.goal)
        left = [g for g in goals if g not in assumed and not _given(g, obligation.guard)]
        if not left:
            used = frozenset(assumed[g] for g in goals if g in assumed)
            trivial = obligation.claim in self.states and obligation.goal is self.state(obligation.claim, off)
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
        off = self.off_for(obligation.claim)
        assumed = {name: self.state(name, off) for name in sorted(hypotheses)}
        formulas = [translator.formula(c) for c in obligation.guard]
        known = {name: translator.formula(claim) for name, claim in assumed.items()}
        read = self.variables([*obligation.guard, *goals, *assumed.values()], obligation.parameters)
        supply = [translator.formula(term) for term in self.moves.supply(read, obligation.parameters)]
        heavy = [n for n, term in assumed.items() if n != obligation.claim and self.size(term) > LIGHT_TERMS]
        asserted = [*formulas, *self.facts(read), wanted]
        claim = obligation.claim
        return self.asker.ask(asserted, known, itself=claim, heavy=heavy, supply=supply, ways=ways)

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

    def state(self, name: str, off: frozenset[str]) -> t.Term:
        """A claim about states as it reads while these switches are off."""
        return self.when_off(self.states[name], off)

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

    def never(self, already_off: frozenset[str]) -> dict[frozenset[str], tuple[str, ...]]:
        """For each set of switches that claims need off: the actions that no state is shown to allow.

        Asked of a state with all invariants that hold while the set is off. What is possible there is so
        with fewer off, too, for then no more invariants are assumed: so the largest sets come first.
        """
        never: dict[frozenset[str], tuple[str, ...]] = {}
        asked = sorted({self.off_for(name) for name in self.claims}, key=lambda off: (-len(off), sorted(off)))
        actions = self.moves.protocol.actions
        shown: dict[frozenset[str], set[str]] = {}
        for off in asked:
            known = set[str]().union(*(found for larger, found in shown.items() if off <= larger))
            excused = {name for name, action in actions.items() if action.switch in off | already_off}
            shown[off] = known | self.possible(off, already_off, actions.keys() - known - excused)
            idle = actions.keys() - shown[off] - excused
            never[off] = tuple(name for name in actions if name in idle)
        return never

    def possible(self, off: frozenset[str], already_off: frozenset[str], asked: set[str]) -> set[str]:
        """Which of these actions some state is shown to allow while these switches are off."""
        moves = [m for m in self.moves.accepted() if m.action in asked]
        if not moves:
            return set()
        names = sorted(n for n in self.alive & self.states.keys() if self.off_for(n) <= off)
        assumed = [self.state(name, off) for name in names]
        all_off, limit_s = off | already_off, self.asker.timeout_s
        small = Instance(self.moves.protocol, moves, assumed, off=all_off, timeout_s=limit_s)
        found = set[str]()
        for move in moves:
            guard = self.guard_of(move, off)
            if move.action not in found and (small.allows(move) or self.allows(move, guard, assumed)):
                found.add(move.action)
        return found

    def allows(self, move: Move, guard: tuple[t.Term, ...], assumed: list[t.Term]) -> bool:
        formulas = [self.asker.translator.formula(term) for term in (*assumed, *guard)]
        facts = self.facts(self.variables([*assumed, *guard], move.parameters))
        return self.asker.ask([*formulas, *facts], ways=MODELS).status == SAT


def _given(goal: t.Term, guard: tuple[t.Term, ...]) -> bool:
    """Whether a goal, or one of its alternatives, is a part of the guard."""
    return goal in guard or (goal.op == "or" and any(part in guard for part in goal.args))


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
    needs_off: Mapping[str, Iterable[str]] | None = None,
    on_progress: Progress | None = None,
) -> ProofResult:
    """Prove state claims and step claims for all sizes, by induction with `supporting` invariants (§17).

    `timeout_s` bounds one obligation and `budget_s` all of them, in seconds; what is not decided by then is
    unknown. `supports` restricts the hypotheses of a claim to itself and the names given for it; by default
    all claims and supporting invariants are assumed. `off` are switches of the world that the proof assumes
    off (§16), and `needs_off` those that one claim or invariant assumes off, which then helps only what needs
    them off, too; all others are open, so the proof covers each combination. What has no reading for all
    sizes is not proved, with the reason. Raises ModelError for a claim that reads what may not be there, for
    two claims of one name, and for a switch that the protocol does not have.
    """
    started = time.monotonic()
    every = {**claims, **steps, **supporting}
    if len(every) < len(claims) + len(steps) + len(supporting):
        raise ModelError("two claims of one name", instead="name claims, step claims and invariants apart")
    switches_off = frozenset(off)
    needed = {name: frozenset(switches) for name, switches in (needs_off or {}).items()}
    _refuse_unknown_switches(protocol, {"off": switches_off, **needed})
    try:
        moves = Moves(protocol, switches_off)
    except NeedsFiniteError as error:
        reasons = dict.fromkeys(every, f"no reading for all sizes: {error}")
        return ProofResult(dict.fromkeys(every, False), (), reasons, (), time.monotonic() - started)
    reasons = {}
    states = _readable(moves, {**claims, **supporting}, reasons)
    asker = Asker(Translator(), Deadline(budget_s), timeout_s=timeout_s, seed=seed)
    allowed = {name: frozenset(names) for name, names in (supports or {}).items()}
    proof = _Proof(moves, asker, states, _readable(moves, steps, reasons), allowed, needed, on_progress)
    proof.settle()
    never = proof.never(switches_off)
    _explain(reasons, proof, never)
    proved = {name: name in proof.alive and name not in reasons for name in every}
    idle = tuple(dict.fromkeys(action for actions in never.values() for action in actions))
    return ProofResult(proved, tuple(proof.results.values()), reasons, idle, time.monotonic() - started)


def _refuse_unknown_switches(protocol: Protocol, off: Mapping[str, Iterable[str]]) -> None:
    for who, names in off.items():
        for name in sorted(names):
            if name not in protocol.switches:
                raise ModelError(
                    f"{who} needs the switch {name!r} off, which {protocol.name} does not have",
                    instead=did_you_mean(name, protocol.switches, empty="it has no switch at all"),
                )


def _readable(moves: Moves, claims: Claims, reasons: dict[str, str]) -> dict[str, t.Term]:
    found: dict[str, t.Term] = {}
    for name, function in claims.items():
        try:
            found[name] = moves.claim(function)
        except NeedsFiniteError as error:
            reasons[name] = f"no reading for all sizes: {error}"
    return found


def _explain(reasons: dict[str, str], proof: _Proof, never: Mapping[frozenset[str], tuple[str, ...]]) -> None:
    broken: dict[str, list[Result]] = {}
    for result in proof.results.values():
        if not result.holds:
            broken.setdefault(result.obligation.claim, []).append(result)
    over = proof.asker.deadline.left_s <= 0
    standing = [r for claim, found in broken.items() if claim not in proof.claims for r in found]
    for name in proof.claims:
        if name not in proof.alive:
            reasons[name] = "not shown: " + "; ".join(f"{r.obligation.move} ({r.says})" for r in broken[name])
            if over and not any(r.out_of_budget for r in broken[name]):
                reasons[name] += "; the budget ended before every invariant was decided"
        elif standing and all(r.out_of_budget for r in standing):
            reasons[name] = "the budget ended before the model itself was shown to be sound"
        elif standing:
            reasons[name] = "the model itself is not shown to be sound: " + "; ".join(
                r.name for r in standing if not r.out_of_budget
            )
        elif idle := never[proof.off_for(name)]:
            reasons[name] = (
                "the budget ended before these were shown to be possible at all: " + ", ".join(idle)
                if over
                else _impossible(idle, proof.off_for(name))
            )


def _impossible(idle: Iterable[str], off: frozenset[str]) -> str:
    """What is said of actions that nothing allows, and what to write instead where switches are off."""
    if not off:
        return "not shown to be possible at all: " + ", ".join(idle)
    switches = sorted(off)
    words = f"{' and '.join(switches)} {'is' if len(switches) == 1 else 'are'} off"
    return (
        f"not shown to be possible at all while {words}: {', '.join(idle)}; needs_off is for faults: for an "
        f"ability, write `switched({switches[0]!r}) or ...` in the claim instead; an action that only a "
        "fault makes possible, declare with its switch"
    )
