"""A protocol run, and beside it its ground commands interpreted: whatever they do must be the same."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable
from typing import Any

from fencepost.model import ModelError, Protocol, Scope
from fencepost.model.ground import ground_model
from fencepost.model.run import Rest, Runner, Transition

from .grounded import Codes, GroundRunner, Move

Claim = Callable[..., Any]


class Both:
    """A protocol in a scope, run and ground."""

    def __init__(self, protocol: Protocol, scope: Scope) -> None:
        self.runner = Runner(protocol, scope)
        self.model = ground_model(protocol, scope)
        self.ground = GroundRunner(self.model)
        self.claims: list[tuple[Claim, Callable[[Codes], tuple[int, ...]]]] = []
        self.step_claims: list[tuple[Claim, Callable[[Codes], tuple[int, ...]]]] = []
        self.numbers: Tally[str] = Tally()

    def add_claim(self, claim: Claim) -> None:
        """Compare a claim too: over states if it takes one, over steps if more."""
        if claim.__code__.co_argcount == 1:
            self.claims.append((claim, self.ground.claim([self.model.state_claim(claim)])))
        else:
            self.step_claims.append((claim, self.ground.claim(self.model.step_claim(claim))))

    def codes(self, state: Rest) -> Codes:
        codes = self.runner.codes(state)
        assert codes.keys() == self.ground.places.keys()
        return tuple(codes[name] for name in self.ground.places)

    def search(self, limit: int, claims_in_every: int = 1) -> None:
        """Compare everything in every state, breadth first, up to `limit` states; claims in some of them."""
        first = self.runner.initial()
        assert self.codes(first) == self.ground.initial
        seen, states = {first}, [first]
        for number, state in enumerate(states):
            assert self.runner.from_codes(self.runner.codes(state)) == state
            transitions = self.compare(state)
            if number % claims_in_every == 0:
                self.compare_claims(state, transitions)
            for transition in transitions:
                if transition.state not in seen and len(states) < limit:
                    seen.add(transition.state)
                    states.append(transition.state)
        self.numbers["states"] += len(states)

    def compare(self, state: Rest) -> list[Transition]:
        """The transitions of one state, after all readings gave the same."""
        codes = self.codes(state)
        expected, transitions = self.moves_run(state)
        actual = self.ground.moves(codes)
        assert sorted(expected) == sorted(actual), f"run {sorted(expected)}, traced {sorted(actual)}"
        self.numbers.update(move.outcome if move.outcome in ("cut", "fault") else "moves" for move in actual)
        self.numbers["refused"] += sum(x.refused for x in transitions)
        return transitions

    def compare_claims(self, state: Rest, transitions: list[Transition]) -> None:
        """The truth of every claim in one state, and on every step from it."""
        codes = self.codes(state)
        for claim, value in self.claims:
            assert self.runner.holds(claim, state) == bool(value(codes)[0]), claim.__name__
        if self.step_claims:
            by_move = {self.ground.move(i, codes)[:2]: i for i in self.ground.fired(codes)}
            for claim, values in self.step_claims:
                truths = values(codes)
                for made in transitions:
                    holds = self.runner.holds_step(claim, state, made)
                    number = by_move[made.action.name, made.codes]
                    assert holds == bool(truths[number]), f"{claim.__name__} {made.label}"

    def moves_run(self, state: Rest) -> tuple[list[Move], list[Transition]]:
        """What the run reading does in a state."""
        runner = self.runner
        try:
            transitions = list(runner.transitions(state))
            cuts = [(action, Transition(action, a, "", ()).codes) for action, a in runner.cuts(state)]
        except ModelError as error:
            must_be_a_fault(error)
            return self.moves_one_by_one(state)
        moves = [Move(t.action.name, t.codes, t.outcome, self.codes(t.state)) for t in transitions]
        return moves + [Move(action.name, a, "cut", ()) for action, a in cuts], transitions

    def moves_one_by_one(self, state: Rest) -> tuple[list[Move], list[Transition]]:
        moves, transitions = [], []
        for action, arguments in self.runner.choices():
            codes = Transition(action, arguments, "", ()).codes
            try:
                made = self.runner.attempt(state, action, arguments)
            except ModelError as error:
                must_be_a_fault(error)
                moves.append(Move(action.name, codes, "fault", ()))
                continue
            if isinstance(made, Transition):
                transitions.append(made)
                moves.append(Move(action.name, codes, made.outcome, self.codes(made.state)))
            elif made == "cut":
                moves.append(Move(action.name, codes, "cut", ()))
        return moves, transitions


def is_fault(error: ModelError) -> bool:
    """Whether an error says that a run read what is not there, and not that the model is no model."""
    return error.what == "the value of an absent optional" or error.what.startswith("an index of ")


def must_be_a_fault(error: ModelError) -> None:
    assert is_fault(error), error
