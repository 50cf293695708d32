"""What has to be shown so that claims hold in every reachable state, as terms over the state before a step.

A *move* is one guarded command of an action as it reads for all sizes. What a claim says after a move is
rewritten to the state before it, so that reads of what was written disappear and most obligations fold before
a solver sees them. What may not live here: solvers, time limits, verdicts.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.smt.translate import Unbounded
from fencepost.model import terms as t
from fencepost.model.domains import BOOLEAN, Counter, LeafDomain, Range, index_low
from fencepost.model.protocol import Fresh, Protocol
from fencepost.model.steps import step_word
from fencepost.model.trace import PRIME, Command, Tracer, site_of, trace_action, trace_claim
from fencepost.model.values import encode

START = "start"
"""The name of the first state among the moves."""
ANY_STATE = "any state"
"""Stands for a move where a claim is shown to follow from invariants, without induction of its own."""

DOMAINS = "numbers stay in their domains"
FAULTS = "nothing is read that is not there"
"""What every proof rests on."""


@dataclass(frozen=True, slots=True)
class Move:
    """A command for all sizes: its switch is in its guard, its bound variables have names of their own."""

    label: str
    action: str
    outcome: str
    parameters: tuple[t.Term, ...]
    guard: tuple[t.Term, ...]
    updates: Mapping[str, t.Term] = field(hash=False)
    fits: tuple[tuple[t.Term, LeafDomain], ...]
    command: Command = field(hash=False)

    @property
    def possible(self) -> bool:
        """Whether its guard has not already folded to false."""
        return t.FALSE not in self.guard


@dataclass(frozen=True, slots=True)
class Obligation:
    """That `goal` follows from the invariants, the guard of `move` and the domains of the variables.

    `claim` is the claim's name, or `DOMAINS` or `FAULTS`. A fault, or an index beyond its domain, is an
    obligation whose goal is false: the move itself must be impossible. `parameters` are the free variables of
    the move.
    """

    move: str
    claim: str
    goal: t.Term
    guard: tuple[t.Term, ...] = ()
    parameters: tuple[t.Term, ...] = ()

    @property
    def name(self) -> str:
        """The obligation as a report shows it: ``deliver[ok] × stale_worker_never_overrides``."""
        return f"{self.move} × {self.claim}"


class Moves:
    """The moves of a protocol for all sizes, and claims rewritten over them.

    Raises NeedsFiniteError when an action loops over a sort or counts, ModelError when it is not a model at
    all.
    """

    def __init__(self, protocol: Protocol, off: Iterable[str] = ()) -> None:
        self.protocol = protocol
        self.unbounded = Unbounded(off)
        self.leaves: dict[str, t.Term] = {}
        for variable in protocol.variables.values():
            for suffix, domain in variable.domain.leaves():
                of = t.Array(variable.index, domain) if variable.index else domain
                self.leaves[f"{variable.name}{suffix}"] = t.variable(f"{variable.name}{suffix}", of)
        self.moves: list[Move] = []
        self.first = self._first_values()
        for action in protocol.actions.values():
            commands = trace_action(protocol, action)
            self.unbounded.site = action.site
            totals, numbers = Tally(c.outcome for c in commands), Tally[str]()
            for command in commands:
                numbers[command.outcome] += 1
                several = f"/{numbers[command.outcome]}" if totals[command.outcome] > 1 else ""
                self.moves.append(self._move(command, f"{action.name}[{command.outcome}{several}]"))
        self.supplies = tuple(self._supplies())
        self._after: dict[str, dict[t.Term, t.Term]] = {}
        self._words: dict[t.Term, tuple[t.Term, ...]] = {}

    def claim(self, function: Callable[..., Any]) -> t.Term:
        """A claim as one term for all sizes; raises NeedsFiniteError when it has none."""
        self.unbounded.site = site_of(function)
        return self.unbounded(trace_claim(self.protocol, function))

    def after(self, move: Move, claim: t.Term) -> t.Term:
        """What a state claim says about the state after `move`, over the state before it."""
        return self._substituted(move, claim, "")

    def across(self, move: Move, claim: t.Term) -> t.Term:
        """What a claim about steps says about `move`, over the state before it."""
        return self._substituted(move, claim, PRIME)

    def at_start(self, claim: t.Term) -> t.Term:
        """What a state claim says about the first state."""
        return t.substitute(claim, self.first)

    def standing(self) -> Iterator[Obligation]:
        """What every proof rests on: numbers stay in their domains, and nothing is read that is not there."""
        inside = []
        for variable in self.leaves.values():
            value, domain = self.first[variable], variable.domain
            if isinstance(domain, t.Array):
                value, domain = value.args[0], domain.value
            if isinstance(domain, (Counter, Range)):
                inside.append(_inside(value, domain))
        yield Obligation(START, DOMAINS, t.and_(inside))
        for move in self.moves:
            if not move.possible:
                continue
            if move.outcome in ("cut", "fault"):
                claim = FAULTS if move.outcome == "fault" else DOMAINS
                yield Obligation(move.label, claim, t.FALSE, move.guard, move.parameters)
            else:
                goal = t.and_(_inside(term, domain) for term, domain in move.fits)
                if goal is not t.TRUE:
                    yield Obligation(move.label, DOMAINS, goal, move.guard, move.parameters)

    def accepted(self) -> Iterator[Move]:
        """The moves that lead to a state."""
        return (m for m in self.moves if m.possible and m.outcome not in ("cut", "fault"))

    def supply(self, read: Iterable[t.Term], parameters: tuple[t.Term, ...]) -> Iterator[t.Term]:
        """That some id of each sort of fresh ids is neither used nor a parameter of the move.

        Ids never run out: in any state finitely many are used, and for all sizes there are more (a finite
        reading counts it as cut when none is left). Said only of the families among `read`.
        """
        for used in self.supplies:
            if used in read:
                assert isinstance(used.domain, t.Array)  # noqa: S101
                (domain,) = used.domain.index
                unused = t.bound(f"unused {used.payload}", domain)
                others = [t.not_(t.eq(unused, p)) for p in parameters if p.domain == domain]
                yield t.exists((unused,), t.and_([t.not_(t.select(used, (unused,))), *others]))

    def _first_values(self) -> dict[t.Term, t.Term]:
        tracer = Tracer(self.protocol, "initially")
        values: dict[t.Term, t.Term] = {}
        for variable in self.protocol.variables.values():
            for suffix, term in encode(tracer, variable.domain, variable.initially).items():
                leaf = self.leaves[f"{variable.name}{suffix}"]
                values[leaf] = t.fill(leaf.domain, term) if isinstance(leaf.domain, t.Array) else term
        return values

    def _move(self, command: Command, label: str) -> Move:
        switch = command.action.switch
        guard = [*([switch_variable(switch)] if switch else []), *command.guard]
        written = [*command.updates.values(), *(term for term, _ in command.fits)]
        # A claim may contain the same action (through can_move): its bound variables must not meet the move's
        # own.
        own = {
            b: t.bound(f"move {b.payload}", b.domain)
            for b in t.variables_of([*guard, *written, *command.parameters])
            if b.op == "bound" and isinstance(b.domain, LeafDomain)
        }
        cache: dict[t.Term, t.Term] = {}

        def ready(term: t.Term) -> t.Term:
            return self.unbounded(t.substitute(term, own, cache))

        joined = t.and_(ready(c) for c in guard)
        return Move(
            label,
            command.action.name,
            command.outcome,
            tuple(own[p] for p in command.parameters),
            joined.args if joined.op == "and" else () if joined is t.TRUE else (joined,),
            {leaf: ready(term) for leaf, term in command.updates.items()},
            tuple((ready(term), domain) for term, domain in command.fits),
            command,
        )

    def _substituted(self, move: Move, claim: t.Term, suffix: str) -> t.Term:
        key = f"{move.label}{suffix}"
        cache = self._after.get(key)
        if cache is None:
            cache = self._after[key] = {
                t.variable(f"{leaf}{suffix}", variable.domain): move.updates.get(leaf, variable)
                for leaf, variable in self.leaves.items()
            }
        for word in self._words_of(claim) if suffix else ():
            cache[word] = t.boolean(step_word(str(word.payload), move.command))
        return t.substitute(claim, {}, cache)

    def _words_of(self, claim: t.Term) -> tuple[t.Term, ...]:
        found = self._words.get(claim)
        if found is None:
            words = (v for v in t.variables_of([claim]) if str(v.payload).startswith("step "))
            found = self._words[claim] = tuple(words)
        return found

    def _supplies(self) -> Iterator[t.Term]:
        """The families that say which ids are used, where only finitely many ever are."""
        fresh = [d for a in self.protocol.actions.values() for _, d in a.parameters if isinstance(d, Fresh)]
        for name in dict.fromkeys(domain.used for domain in fresh):
            used = self.leaves.get(name) or self.leaves[f"{name}.present"]
            leaf = str(used.payload)
            written = [move.updates[leaf] for move in self.moves if leaf in move.updates]
            single = isinstance(used.domain, t.Array) and len(used.domain.index) == 1
            if single and self.first[used].args == (t.FALSE,) and all(_few(used, term) for term in written):
                yield used


def _few(family: t.Term, written: t.Term) -> bool:
    """Whether what is written differs from `family` in finitely many cells."""
    if written.op == "ite":
        return all(_few(family, a) for a in written.args[1:])
    return written is family or (written.op == "store" and _few(family, written.args[0]))


def _inside(term: t.Term, domain: LeafDomain) -> t.Term:
    low = t.le(t.integer(index_low(domain)), term)
    return low if isinstance(domain, Counter) else t.and_((low, t.le(term, t.limit_of(domain))))


def switch_variable(name: str) -> t.Term:
    """Whether a switch of the world is on."""
    return t.variable(f"switch {name}", BOOLEAN)


def parts_of(term: t.Term) -> Iterator[t.Term]:
    """The conjuncts of a term, also below universal quantifiers and on the right of an implication."""
    if term.op == "and":
        for part in term.args:
            yield from parts_of(part)
    elif term.op == "forall":
        for part in parts_of(term.args[-1]):
            inner = part.args[:-1] if part.op == "forall" else ()
            if set(inner) & set(term.args[:-1]):
                yield t.forall(term.args[:-1], part)
            else:
                yield t.forall((*term.args[:-1], *inner), part.args[-1] if inner else part)
    elif term.op == "or" and sum(a.op in ("and", "forall") for a in term.args) == 1:
        rest = [a for a in term.args if a.op not in ("and", "forall")]
        joined = next(a for a in term.args if a.op in ("and", "forall"))
        if joined.op == "forall":
            yield from parts_of(t.forall(joined.args[:-1], t.or_((*rest, joined.args[-1]))))
        else:
            for part in joined.args:
                yield from parts_of(t.or_((*rest, part)))
    elif term is not t.TRUE:
        yield term


def subterms(terms: Iterable[t.Term]) -> Iterator[t.Term]:
    """Every distinct term below and including these."""
    seen: set[t.Term] = set()
    stack = list(terms)
    while stack:
        term = stack.pop()
        if term not in seen:
            seen.add(term)
            stack.extend(term.args)
            yield term
