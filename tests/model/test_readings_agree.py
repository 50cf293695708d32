"""All readings of a model mean the same: the test that holds them together."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost.model import ModelError, PathLimitError, Protocol, Scope
from fencepost.model.ground import ground_model
from fencepost.model.run import Rest, Runner, Transition

from .grounded import Codes, GroundRunner, Move
from .random_models import Writer
from .support import Model

Claims = list[Callable[..., Any]]


class Both:
    """A protocol in a scope, run and ground."""

    def __init__(self, protocol: Protocol, scope: Scope, claims: Claims = [], step_claims: Claims = []) -> None:  # noqa: B006
        self.runner = Runner(protocol, scope)
        self.model = ground_model(protocol, scope)
        self.ground = GroundRunner(self.model)
        self.claims = [(c, self.ground.claim([self.model.state_claim(c)])) for c in claims]
        self.step_claims = [(c, self.ground.claim(self.model.step_claim(c))) for c in step_claims]
        self.numbers: Tally[str] = Tally()

    def codes(self, state: Rest) -> Codes:
        codes = self.runner.codes(state)
        assert codes.keys() == self.ground.places.keys()
        return tuple(codes[name] for name in self.ground.places)

    def search(self, limit: int) -> None:
        """Compare everything in every state, breadth first, as far as `limit` states."""
        first = self.runner.initial()
        assert self.codes(first) == self.ground.initial
        seen, states = {first}, [first]
        for state in states:
            assert self.runner.from_codes(self.runner.codes(state)) == state
            for transition in self.compare(state):
                if transition.state not in seen and len(states) < limit:
                    seen.add(transition.state)
                    states.append(transition.state)
        self.numbers["states"] += len(states)

    def compare(self, state: Rest) -> list[Transition]:
        """The transitions of one state, after all readings gave the same."""
        codes = self.codes(state)
        expected, transitions = self.moves_run(state)
        actual = self.ground.moves(codes)
        assert sorted(expected) == sorted(actual)
        self.numbers.update(move.outcome if move.outcome in ("cut", "fault") else "moves" for move in actual)
        self.numbers["refused"] += sum(t.refused for t in transitions)
        for claim, value in self.claims:
            assert self.runner.holds(claim, state) == bool(value(codes)[0]), claim.__name__
        if self.step_claims:
            by_move = {self.ground.move(i, codes)[:2]: i for i in self.ground.fired(codes)}
            for claim, values in self.step_claims:
                truths = values(codes)
                for t in transitions:
                    holds = self.runner.holds_step(claim, state, t)
                    assert holds == bool(truths[by_move[t.action.name, t.codes]]), f"{claim.__name__} {t.label}"
        return transitions

    def moves_run(self, state: Rest) -> tuple[list[Move], list[Transition]]:
        """What the run reading does in a state."""
        runner = self.runner
        try:
            transitions = list(runner.transitions(state))
            cuts = [(action, Transition(action, a, "", ()).codes) for action, a in runner.cuts(state)]
        except ModelError:
            return self.moves_one_by_one(state)
        moves = [Move(t.action.name, t.codes, t.outcome, self.codes(t.state)) for t in transitions]
        return moves + [Move(action.name, a, "cut", ()) for action, a in cuts], transitions

    def moves_one_by_one(self, state: Rest) -> tuple[list[Move], list[Transition]]:
        moves, transitions = [], []
        for action, arguments in self.runner.choices():
            codes = Transition(action, arguments, "", ()).codes
            try:
                made = self.runner.attempt(state, action, arguments)
            except ModelError:
                moves.append(Move(action.name, codes, "fault", ()))
                continue
            if isinstance(made, Transition):
                transitions.append(made)
                moves.append(Move(action.name, codes, made.outcome, self.codes(made.state)))
            elif made == "cut":
                moves.append(Move(action.name, codes, "cut", ()))
        return moves, transitions


def random_model(seed: int, directory: Path) -> Model | None:
    """The random model of a seed, or None when it forks too often to be read."""
    return Model(directory, Writer(seed).model(), preamble="")


def readable_claims(both: Callable[[Claims, Claims], Both], names: dict[str, Any]) -> Both:
    """The model with those of its claims that never read what may not be there."""
    kept: tuple[Claims, Claims] = ([], [])
    for name, value in names.items():
        if "claim_" in name:
            place = kept[name.startswith("step_")]
            try:
                both(*(([value], []) if place is kept[0] else ([], [value])))
            except ModelError:
                continue
            place.append(value)
    return both(*kept)
