"""What has to be shown so that claims hold in every reachable state, as terms over the state before a step.

A *move* is one guarded command of an action as it reads for all sizes. What a claim says after a move is rewritten to
the state before it, so that reads of what was written disappear and most obligations fold before a solver sees them.
What may not live here: solvers, time limits, verdicts.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.smt.translate import Unbounded
from fencepost.model import terms as t
from fencepost.model.domains import BOOLEAN, Counter, LeafDomain, Range, index_low
from fencepost.model.errors import ModelError
from fencepost.model.protocol import Protocol
from fencepost.model.trace import PRIME, Command, Tracer, step_enumerations, trace_action, trace_claim
from fencepost.model.values import encode

START = "start"
"""The name of the first state among the moves."""


@dataclass(frozen=True, slots=True)
class Move:
    """A command for all sizes: its switch is part of its guard, and its bound variables have names of their own."""

    label: str
    action: str
    outcome: str
    guard: tuple[t.Term, ...]
    updates: Mapping[str, t.Term] = field(hash=False)
    fits: tuple[tuple[t.Term, LeafDomain], ...]
    refused: bool

    @property
    def possible(self) -> bool:
        """Whether its guard has not already folded to false."""
        return t.FALSE not in self.guard


@dataclass(frozen=True, slots=True)
class Obligation:
    """That `goal` follows from the invariants, the guard of `move` and the domains of the variables.

    `claim` is the claim's name, or ``domains`` and ``faults`` for what every proof rests on. A fault or a number beyond
    its domain is an obligation whose goal is false: the move itself must be impossible.
    """

    move: str
    claim: str
    guard: tuple[t.Term, ...]
    goal: t.Term

    @property
    def name(self) -> str:
        """The obligation as a report shows it: ``deliver[ok] × stale_worker_never_overrides``."""
        return f"{self.move} × {self.claim}"


class Moves:
    """The moves of a protocol for all sizes, and claims rewritten over them.

    Raises NeedsFiniteError when an action loops over a sort or counts, ModelError when it is not a model at all.
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
            totals, numbers = Tally(c.outcome for c in commands), Tally[str]()
            for command in commands:
                numbers[command.outcome] += 1
                several = f"/{numbers[command.outcome]}" if totals[command.outcome] > 1 else ""
                self.moves.append(self._move(command, f"{action.name}[{command.outcome}{several}]"))
        self._after: dict[str, dict[t.Term, t.Term]] = {}

    def claim(self, function: Callable[..., Any]) -> t.Term:
        """A claim as one term for all sizes; raises NeedsFiniteError when it has none."""
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
        for leaf, variable in self.leaves.items():
            start = self.first[variable]
            value, domain = (start.args[0], variable.domain.value) if isinstance(variable.domain, t.Array) else (
                start, variable.domain)  # fmt: skip
            if isinstance(domain, (Counter, Range)):
                yield Obligation(START, f"domain of {leaf}", (), _inside(value, domain))
        for move in self.moves:
            if not move.possible:
                continue
            if move.outcome == "fault":
                yield Obligation(move.label, "faults", move.guard, t.FALSE)
            elif move.outcome == "cut":
                yield Obligation(move.label, "domains", move.guard, t.FALSE)
            else:
                goal = t.and_(_inside(term, domain) for term, domain in move.fits)
                if goal is not t.TRUE:
                    yield Obligation(move.label, "domains", move.guard, goal)

    def accepted(self) -> Iterator[Move]:
        """The moves that lead to a state."""
        return (m for m in self.moves if m.possible and m.outcome not in ("cut", "fault"))

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
        guard = [*([t.variable(f"switch {switch}", BOOLEAN)] if switch else []), *command.guard]
        written = [*command.updates.values(), *(term for term, _ in command.fits)]
        # A claim may contain the same action (through can_move): its bound variables must not meet the move's own.
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
            joined.args if joined.op == "and" else () if joined is t.TRUE else (joined,),
            {leaf: ready(term) for leaf, term in command.updates.items()},
            tuple((ready(term), domain) for term, domain in command.fits),
            command.refused,
        )

    def _substituted(self, move: Move, claim: t.Term, suffix: str) -> t.Term:
        key = f"{move.label}{suffix}"
        cache = self._after.get(key)
        if cache is None:
            cache = self._after[key] = self._replacement(move, suffix)
        return t.substitute(claim, {}, cache)

    def _replacement(self, move: Move, suffix: str) -> dict[t.Term, t.Term]:
        replace: dict[t.Term, t.Term] = {}
        for leaf, variable in self.leaves.items():
            replace[t.variable(f"{leaf}{suffix}", variable.domain)] = move.updates.get(leaf, variable)
        if suffix:
            actions, outcomes = step_enumerations(self.protocol)
            for kind, enumeration, mine in (("action", actions, move.action), ("outcome", outcomes, move.outcome)):
                for member in enumeration.members:
                    word = t.variable(f"step {kind} {member.name}", BOOLEAN)
                    replace[word] = t.boolean(member.name == mine)
            replace[t.variable("step refused", BOOLEAN)] = t.boolean(move.refused)
        return replace


def _inside(term: t.Term, domain: LeafDomain) -> t.Term:
    low = t.le(t.integer(index_low(domain)), term)
    return low if isinstance(domain, Counter) else t.and_((low, t.le(term, t.limit_of(domain))))


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
        inner = next(a for a in term.args if a.op in ("and", "forall"))
        if inner.op == "forall":
            yield from parts_of(t.forall(inner.args[:-1], t.or_((*rest, inner.args[-1]))))
        else:
            for part in inner.args:
                yield from parts_of(t.or_((*rest, part)))
    elif term is not t.TRUE:
        yield term


def unreadable(error: ModelError) -> str:
    """Why there is no reading for all sizes, as a verdict prints it."""
    return f"no reading for all sizes: {error}"
