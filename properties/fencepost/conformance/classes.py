"""Classes of small states: from where operations are run against each other, statement by statement.

Two states are of one class when the calls that are possible there, alone and after one another, are the same,
are refused by the same guards and change the same variables. Workers and commits are told apart only by what
they can do, and versions not at all, so names and numbers do not count. The classes are found by a search
through the model; of each class the state that is fewest moves away is kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from fencepost.conformance.mapping import Lease
from fencepost.conformance.moves import Move
from fencepost.conformance.oracle import Oracle, Rest, Transition, with_guards
from fencepost.conformance.plans import Plan
from fencepost.conformance.vocabulary import message
from fencepost.model import HISTORY, FencepostError, absent
from fencepost.model.concrete import RunningState, shapes_of
from fencepost.model.language import GuardSignal, reading

Codes = tuple[int, ...]
Reaction = tuple[str, tuple[str, ...], tuple[str, ...]]
"""How a call ends, all guards that would refuse it, and the variables that it changes."""

LOST = "lost"
"""The parameter by which the model says that the reply to a call is lost."""

MOST_MOVES = 7
"""Starts are at most this many moves away from a fresh world."""


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """An action that is a call to the implementation, with the codes of its arguments."""

    action: str
    codes: Codes


@dataclass(frozen=True, slots=True)
class Start:
    """A state to begin from, by the moves that lead there."""

    moves: tuple[Move, ...]
    state: Rest


@dataclass(frozen=True, slots=True)
class Pair:
    """Two calls that are run against each other from one start."""

    start: Start
    first: Call
    second: Call


@dataclass(slots=True)
class Classes:
    """The search for classes of states, and for the pairs of calls in them."""

    plan: Plan
    most_moves: int = MOST_MOVES
    _watched: Mapping[str, int] = field(init=False)
    _reactions: dict[tuple[Rest, Call], tuple[Reaction, Rest]] = field(init=False, default_factory=dict)
    _guarded: RunningState = field(init=False)

    def __post_init__(self) -> None:
        """Find what of a state counts: all but history."""
        protocol = self.oracle.protocol
        self._watched = {n: protocol.position(n) for n, v in protocol.variables.items() if v.home != HISTORY}
        self._guarded = RunningState(shapes_of(protocol, self.oracle.scope), writable=True)

    @property
    def oracle(self) -> Oracle:
        """The model."""
        return self.plan.oracle

    # -- calls

    def calls(self, state: Rest) -> list[Call]:
        """The calls that are possible in a state; that a reply is lost is no call of its own."""
        found = []
        for name, moves in self.oracle.moves(state).items():
            how = self.plan.performances.get(name)
            if how is None or not how.is_call:
                continue
            found += [Call(name, codes) for codes, made in moves.items() if plain(made)]
        return found

    def reaction(self, state: Rest, call: Call) -> tuple[Reaction, Rest] | None:
        """What a call does in a state; None where it is not possible."""
        key = (state, call)
        found = self._reactions.get(key)
        if found is None:
            made = self.oracle.moves(state).get(call.action, {}).get(call.codes)
            if made is None:
                return None
            found = self._reactions[key] = (self._reaction(state, made), made.state)
        return found

    def _reaction(self, state: Rest, made: Transition) -> Reaction:
        changed = tuple(name for name, p in self._watched.items() if state[p] != made.state[p])
        return made.outcome, self._refusals(state, made), changed

    def _refusals(self, state: Rest, made: Transition) -> tuple[str, ...]:
        """The codes of all guards that do not hold, not only of the first."""
        if not made.refused:
            return ()
        codes: list[str] = []
        body = made.action.function
        assert isinstance(body, FunctionType)  # noqa: S101  # the language takes no other
        asking = with_guards(body, lambda holds, code: None if holds else codes.append(code))
        self._guarded.load(state)
        # After a guard that does not hold, the rest may ask for what is not there.
        with reading(self.oracle.runner), suppress(FencepostError, GuardSignal, AttributeError):
            asking(self._guarded, *made.arguments)
        self._guarded.forget()
        return tuple(codes)

    # -- classes

    def starts(self) -> Iterator[Start]:
        """A start of each class, nearest first."""
        begin = self.oracle.runner.initial()
        seen = {begin}
        classes: set[Any] = set()
        waiting = [Start((), begin)]
        while waiting:
            further: list[Start] = []
            for start in waiting:
                kind = self.kind(start.state)
                if kind in classes:
                    continue
                classes.add(kind)
                yield start
                if len(start.moves) < self.most_moves:
                    further += self._after(start, seen)
            waiting = further

    def _after(self, start: Start, seen: set[Rest]) -> Iterator[Start]:
        for name, moves in self.oracle.moves(start.state).items():
            if name not in self.plan.performances:
                continue
            for codes, made in moves.items():
                if made.state not in seen:
                    seen.add(made.state)
                    yield Start((*start.moves, Move(name, codes)), made.state)

    def kind(self, state: Rest) -> Any:
        """What makes the class of a state: its calls and their reactions, alone and after one another."""
        calls = self.calls(state)
        over = self._ended(state)
        rows = []
        for call in calls:
            alone = self.reaction(state, call)
            assert alone is not None  # noqa: S101
            late = None if over is None else self.reaction(over, call)
            then = sorted(self._summary(alone[1], other) for other in calls if other != call)
            rows.append((call.action, alone[0], late and late[0], tuple(then)))
        return tuple(sorted(rows, key=repr))

    def _summary(self, state: Rest, call: Call) -> tuple[str, str]:
        found = self.reaction(state, call)
        return call.action, "" if found is None else repr(found[0])

    def _ended(self, state: Rest) -> Rest | None:
        """The state after the lease has run out."""
        for name, moves in self.oracle.moves(state).items():
            how = self.plan.performances.get(name)
            if how is not None and how.lease is Lease.RUNS_OUT:
                return next(iter(moves.values())).state
        return None

    # -- pairs

    def pairs(self, start: Start) -> Iterator[tuple[Any, Pair]]:
        """Each two calls by two handles, with what the pair does from there; a delivery also with itself."""
        calls = self.calls(start.state)
        for first, second in itertools.combinations_with_replacement(calls, 2):
            if self.apart(start.state, first, second):
                yield self._pair_kind(start.state, first, second), Pair(start, first, second)

    def apart(self, state: Rest, first: Call, second: Call) -> bool:
        """Whether two calls can be on their way at once: of two workers, or one of them long since sent."""
        one, other = self.caller(state, first), self.caller(state, second)
        return one is None or other is None or one != other

    def caller(self, state: Rest, call: Call) -> Any:
        """The worker that makes a call, None for a message that is on its way."""
        made = self.oracle.moves(state)[call.action][call.codes]
        found = named_arguments(made)
        if "w" in found:
            return found["w"]
        if made.action.is_operation:
            return None
        return message(self.oracle.reader(state), found["c"]).by.worker

    def call_kind(self, state: Rest, call: Call) -> Any:
        """What a call does, in time and too late."""
        over, alone = self._ended(state), self.reaction(state, call)
        late = None if over is None else self.reaction(over, call)
        caller, owner = self.caller(state, call), state[self.oracle.protocol.position("owner")]
        named_owner = owner is not absent and owner[0] == caller  # in whatever incarnation
        return call.action, alone and alone[0], late and late[0], named_owner

    def _pair_kind(self, state: Rest, first: Call, second: Call) -> Any:
        over = self._ended(state)
        sides = []
        for one, other in ((first, second), (second, first)):
            alone, late = self.reaction(state, one), None if over is None else self.reaction(over, one)
            assert alone is not None  # noqa: S101
            after = self.reaction(alone[1], other)
            sides.append((one.action, alone[0], late and late[0], after and after[0]))
        return (*sorted(sides, key=repr), first == second)


def plain(made: Transition) -> bool:
    """Whether a call is made as it usually is: its reply arrives, and a message may arrive again."""
    named = named_arguments(made)
    again = named.get("kept", True) is True and named.get("again", True) is True
    return named.get(LOST, False) is False and again


def named_arguments(made: Transition) -> dict[str, Any]:
    """The arguments of a step by name."""
    return dict(zip([name for name, _ in made.action.parameters], made.arguments, strict=True))
