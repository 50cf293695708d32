"""The model beside the implementation: what it would do, and what claims say of what was done.

All answers are remembered, since runs come through the same states again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import unwrap
from types import FunctionType
from typing import Any

from fencepost.checker.fingerprints import fingerprint
from fencepost.model import HISTORY, ModelError, Protocol, Scope
from fencepost.model.concrete import RunningState, Shape, shapes_of
from fencepost.model.core.state import WORKER
from fencepost.model.language import Cut, Fault, Refused, reading
from fencepost.model.protocol import Action
from fencepost.model.run import Rest, Runner, Transition
from fencepost.properties import Claim

Moves = Mapping[str, Mapping[tuple[int, ...], Transition]]
"""What can be done from a state, by action and by the codes of its arguments."""

_REMEMBERED = 200_000
"""How many answers are remembered before all are forgotten: some hundred megabytes at most."""


AS_MODELLED: Any = object()
"""Stands for a value that is not stored at the moment: it is then as the model says."""


ANOTHER_MOVE = "whether another move was possible"


class CannotTellError(ModelError):
    """A claim asks what could have happened instead; a run of an implementation shows only what did."""


class ObservedRunner(Runner):
    """The run reading for states that were observed: it does not say what else could have happened."""

    def movable(self, state: RunningState, actions: tuple[str, ...]) -> bool:
        """No answer."""
        del state, actions
        raise CannotTellError(ANOTHER_MOVE, instead="explore the model")


class PinnedState(RunningState):
    """A state in which an action's writes to stored variables give what is really stored there.

    So an update of history, such as ``holder[s.lease_version] = s.owner``, speaks of what happened.
    """

    def __init__(self, shapes: Mapping[str, Shape], pinned: Mapping[str, Any]) -> None:
        super().__init__(shapes, writable=True)
        self.__dict__["_pinned"] = pinned

    def __setattr__(self, name: str, value: Any) -> None:
        shape = self._shapes.get(name)
        if shape is not None and not shape.variable.index and name in self._pinned:
            value = shape.seen(self._pinned[name])
        super().__setattr__(name, value)


@dataclass(slots=True)
class Oracle:
    """A protocol in a scope, asked about single steps."""

    protocol: Protocol
    scope: Scope
    runner: ObservedRunner = field(init=False)
    _shapes: dict[str, Shape] = field(init=False)
    _moves: dict[Rest, Moves] = field(init=False, default_factory=dict)
    _single: dict[Any, Transition | None] = field(init=False, default_factory=dict)
    _arguments: dict[tuple[str, tuple[int, ...]], tuple[Any, ...]] = field(init=False)
    _truths: dict[Any, frozenset[str]] = field(init=False, default_factory=dict)
    _accepting: dict[str, Callable[..., None]] = field(init=False, default_factory=dict)
    _fingerprint: str = field(init=False, default="")

    def __post_init__(self) -> None:
        """Make the protocol ready to be run."""
        self.runner = ObservedRunner(self.protocol, self.scope)
        self._shapes = shapes_of(self.protocol, self.scope)
        self._arguments = {
            (action.name, Transition(action, values, "", ()).codes): values
            for action, values in self.runner.choices()
        }

    @property
    def fingerprint(self) -> str:
        """A hash of what the protocol does."""
        self._fingerprint = self._fingerprint or fingerprint(self.protocol)
        return self._fingerprint

    def actions(self) -> list[Action]:
        """The actions that the scope's switches allow."""
        found = {action.name: action for action, _ in self.runner.choices()}
        return list(found.values())

    def options(self, action: str) -> list[tuple[int, ...]]:
        """The codes of all arguments that an action has in the scope."""
        found = self.protocol.actions[action]
        return [
            Transition(found, values, "", ()).codes for each, values in self.runner.choices() if each is found
        ]

    def reader(self, state: Rest) -> RunningState:
        """A state, to be read."""
        found = RunningState(self._shapes, writable=False)
        found.load(state)
        return found

    def moves(self, state: Rest) -> Moves:
        """What the model can do."""
        found = self._moves.get(state)
        if found is None:
            made: dict[str, dict[tuple[int, ...], Transition]] = {}
            for transition in self.runner.transitions(state):
                made.setdefault(transition.action.name, {})[transition.codes] = transition
            _forget(self._moves)
            found = self._moves[state] = made
        return found

    def move(self, state: Rest, action: str, codes: tuple[int, ...]) -> Transition | None:
        """What the model does when an action is tried with the arguments of these codes; None for nothing."""
        known = self._moves.get(state)
        if known is not None:
            return known.get(action, {}).get(codes)
        key = (state, action, codes)
        if key not in self._single:
            arguments = self._arguments.get((action, codes))
            made = None
            if arguments is not None:
                made = self.runner.attempt(state, self.protocol.actions[action], arguments)
            _forget(self._single)
            self._single[key] = made if isinstance(made, Transition) else None
        return self._single[key]

    # -- what was really done, in the model's words

    def overlaid(self, state: Rest, stored: Mapping[str, Any]) -> Rest:
        """A state with other values for some variables; a cell of `AS_MODELLED` stays as it is."""
        made = list(state)
        for name, value in stored.items():
            place = self.protocol.position(name)
            made[place] = value
            if type(value) is tuple and any(cell is AS_MODELLED for cell in value):
                cells = zip(state[place], value, strict=True)
                made[place] = tuple(was if now is AS_MODELLED else now for was, now in cells)
        return tuple(made)

    def followed(
        self,
        state: Rest,
        expected: Transition,
        *,
        called: bool,
        outcome: str,
        told: Mapping[str, Any],
        stored: Mapping[str, Any],
    ) -> Rest:
        """The state after a step that ended in `outcome`: what is stored as it is, the rest by the model.

        `told` are the stored variables as the answer gives them, which is what a worker learns from. Raises
        Cut where a number leaves the scope, ModelError where the model reads something that is not there.
        """
        if not called:
            return self.overlaid(expected.state, stored)
        action, values = expected.action, expected.arguments
        try:
            with reading(self.runner):
                if not action.is_operation:
                    asking = self._writable(self.overlaid(state, told))
                    action.function(asking, *values)
                    return self.overlaid(asking.at_rest(), stored)
                deciding = PinnedState(self._shapes, stored)
                deciding.load(state)
                self._decided(deciding, action, values, accepted=outcome == "ok")
                # What a worker knows is seen after it has learned, and is not what it learns from.
                learned = {n: v for n, v in told.items() if self.protocol.variables[n].home != WORKER}
                after = self.overlaid(deciding.at_rest(), learned)
                if action.answered is not None and self.protocol.answers is not None:
                    learning = self._writable(after)
                    action.tell(learning, values, self.protocol.answers[outcome])
                    after = learning.at_rest()
                return self.overlaid(after, stored)
        except Fault as fault:
            raise fault.error from None

    def _writable(self, state: Rest) -> RunningState:
        made = RunningState(self._shapes, writable=True)
        made.load(state)
        return made

    def _decided(
        self, running: RunningState, action: Action, values: tuple[Any, ...], *, accepted: bool
    ) -> None:
        """Run the body of an operation as the implementation decided it, whatever the model says."""
        if accepted:
            self._accepting_body(action)(running, *values)
            return
        try:
            action.function(running, *values)
        except Refused:
            running.undo(str(action.home))
            return
        running.undo(str(action.home))
        running.undo(HISTORY)

    def _accepting_body(self, action: Action) -> Callable[..., None]:
        """The body of an operation with `refuse_unless` doing nothing."""
        found = self._accepting.get(action.name)
        if found is None:
            body = action.function
            if not isinstance(body, FunctionType):
                raise ModelError(f"{action.name} is no plain function", instead="define it with def")
            found = with_guards(body, lambda condition, code: None)  # noqa: ARG005
            self._accepting[action.name] = found
        return found

    def answer_known(self, outcome: str) -> bool:
        """Whether the model has such an answer."""
        answers = self.protocol.answers
        return answers is None or any(m.name == outcome for m in answers.members)

    # -- claims

    def holds(self, claim: Claim, before: Rest, made: Transition) -> bool:
        """Whether a claim (or a witness) is true of a step, or of the state after it."""
        if claim.over_steps:
            return self.runner.holds_step(claim.predicate, before, made)
        return self.runner.holds(claim.predicate, made.state)

    def true_of(self, claims: Sequence[Claim], before: Rest, made: Transition) -> frozenset[str]:
        """The names of those claims that are true of a step and of the state after it."""
        key = (id(claims), before, made.action.name, made.outcome, made.state)
        found = self._truths.get(key)
        if found is None:
            found = frozenset(c.name for c in claims if self.holds(c, before, made))
            _forget(self._truths)
            self._truths[key] = found
        return found

    def untellable(self, claims: Iterable[Claim]) -> dict[str, str]:
        """Claims that no run can say anything about, with the reason."""
        found = {}
        start = self.runner.initial()
        idle = Transition(next(iter(self.protocol.actions.values())), (), "done", start)
        for claim in claims:
            if "can_move" in unwrap(claim.predicate).__code__.co_names:
                found[claim.name] = f"it asks {ANOTHER_MOVE}; a run shows only what did happen"
                continue
            try:
                self.holds(claim, start, idle)
            except CannotTellError as error:
                found[claim.name] = f"it asks {error.what}; a run shows only what did happen"
        return found


def with_guards(body: FunctionType, guard: Callable[[object, str], None]) -> FunctionType:
    """The body of an operation with another `refuse_unless`, also in the plain helpers that it calls."""
    names = {**body.__globals__, "refuse_unless": guard}
    for name in body.__code__.co_names:
        helper = body.__globals__.get(name)
        if isinstance(helper, FunctionType) and _refuses(helper, {body}):
            names[name] = with_guards(helper, guard)
    return FunctionType(body.__code__, names, body.__name__, body.__defaults__, body.__closure__)


def _refuses(function: FunctionType, seen: set[FunctionType]) -> bool:
    """Whether a helper of the model can refuse."""
    if function in seen or function.__name__ == "refuse_unless":
        return False
    seen.add(function)
    called = [function.__globals__.get(name) for name in function.__code__.co_names]
    return "refuse_unless" in function.__code__.co_names or any(
        isinstance(helper, FunctionType)
        and helper.__module__ == function.__module__
        and _refuses(helper, seen)
        for helper in called
    )


def merged(before: Rest, after: Rest, now: Rest) -> Rest:
    """The state of now with each cell that a step changed as that step left it."""
    if now is before:
        return after
    made = []
    for old, new, current in zip(before, after, now, strict=True):
        if old == new:
            made.append(current)
        elif type(old) is tuple and type(new) is tuple and len(old) == len(new):
            made.append(tuple(c if o == n else n for o, n, c in zip(old, new, current, strict=True)))
        else:
            made.append(new)
    return tuple(made)


def _forget(table: dict[Any, Any]) -> None:
    if len(table) >= _REMEMBERED:
        table.clear()


__all__ = ["Cut", "Moves", "Oracle", "Rest", "Transition"]
