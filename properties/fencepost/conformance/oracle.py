"""The model beside the implementation: what it allows next, what it would do, and what claims say of what was done.

All answers are remembered, since runs come through the same states again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from fencepost.model import HISTORY, ModelError, Protocol, Scope
from fencepost.model.concrete import RunningState, code_of, raw, view
from fencepost.model.language import Cut, Fault, Refused, reading
from fencepost.model.protocol import Action, Fresh
from fencepost.model.run import Rest, Runner, Transition
from fencepost.properties import Claim

_REMEMBERED = 200_000
"""How many answers are remembered before all are forgotten: some hundred megabytes at most."""


class CannotTellError(ModelError):
    """A claim asks what could have happened instead; a run of an implementation shows only what did."""


class ObservedRunner(Runner):
    """The run reading for states that were observed: it does not say what else could have happened."""

    def movable(self, state: RunningState, actors: tuple[str, ...]) -> bool:
        """No answer."""
        del state
        raise CannotTellError(f"whether a move of {', '.join(actors)} was possible", instead="explore the model")


class PinnedState(RunningState):
    """A state in which an action writes, and what it writes to stored variables is what is really stored there.

    So an update of history, such as ``holder[s.lease_version] = s.owner``, speaks of what happened.
    """

    def __init__(
        self, protocol: Protocol, scope: Scope, rest: tuple[Any, ...], pinned: Mapping[str, Any]
    ) -> None:
        super().__init__(protocol, scope, rest, writable=True)
        self.__dict__["_pinned"] = pinned

    def __setattr__(self, name: str, value: Any) -> None:
        variable = self._protocol.variables.get(name)
        if variable is not None and not variable.index and name in self._pinned:
            self.__dict__[name] = view(variable.domain, self._pinned[name])
            return
        super().__setattr__(name, value)


@dataclass(slots=True)
class Oracle:
    """A protocol in a scope, asked about single steps."""

    protocol: Protocol
    scope: Scope
    runner: ObservedRunner = field(init=False)
    _arguments: dict[str, dict[tuple[int, ...], tuple[Any, ...]]] = field(init=False, default_factory=dict)
    _expected: dict[Any, Transition | str] = field(init=False, default_factory=dict)
    _choices: dict[Any, list[tuple[int, ...]]] = field(init=False, default_factory=dict)
    _truths: dict[Any, bool] = field(init=False, default_factory=dict)
    _accepting: dict[str, Callable[..., None]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """List the arguments of each action that the scope's switches allow."""
        self.runner = ObservedRunner(self.protocol, self.scope)
        for action, values in self.runner.choices():
            codes = tuple(
                code_of(d.sort if isinstance(d, Fresh) else d, v)
                for (_, d), v in zip(action.parameters, values, strict=True)
            )
            self._arguments.setdefault(action.name, {})[codes] = values

    def actions(self) -> list[Action]:
        """The actions that the scope allows."""
        return [self.protocol.actions[name] for name in self._arguments]

    def values(self, action: str, codes: tuple[int, ...]) -> tuple[Any, ...] | None:
        """The arguments of an action that have these codes; None where the scope has no such."""
        return self._arguments.get(action, {}).get(codes)

    def expected(self, state: Rest, action: str, codes: tuple[int, ...]) -> Transition | str:
        """What the model does: a transition, or "disabled" or "cut"."""
        key = (state, action, codes)
        found = self._expected.get(key)
        if found is None:
            values = self.values(action, codes)
            found = (
                "disabled"
                if values is None
                else self.runner.attempt(state, self.protocol.actions[action], values)
            )
            _forget(self._expected)
            self._expected[key] = found
        return found

    def choices(self, state: Rest, action: str) -> list[tuple[int, ...]]:
        """The argument codes with which an action is possible here."""
        key = (state, action)
        found = self._choices.get(key)
        if found is None:
            found = [
                codes
                for codes in self._arguments.get(action, {})
                if isinstance(self.expected(state, action, codes), Transition)
            ]
            _forget(self._choices)
            self._choices[key] = found
        return found

    # -- what was really done, in the model's words

    def overlaid(self, state: Rest, stored: Mapping[str, Any]) -> Rest:
        """A state with other values for some variables."""
        made = list(state)
        for name, value in stored.items():
            made[self.protocol.position(name)] = value
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
        """The state after a step that ended in `outcome`: stored variables as they are, the others by the model's update.

        `told` are the stored variables as the answer gives them, which is what a worker learns from. Raises Cut where
        a number leaves the scope.
        """
        if not called:
            return self.overlaid(expected.state, stored)
        action, values = expected.action, expected.arguments
        with reading(self.runner):
            if not action.is_operation:
                asking = RunningState(self.protocol, self.scope, self.overlaid(state, told), writable=True)
                action.function(asking, *values)
                return self.overlaid(asking.at_rest(), stored)
            deciding = PinnedState(self.protocol, self.scope, state, stored)
            self._decided(deciding, action, values, accepted=outcome == "ok")
            after = self.overlaid(deciding.at_rest(), told)
            if action.answered is not None and self.protocol.answers is not None:
                learning = RunningState(self.protocol, self.scope, after, writable=True)
                action.answered(learning, *values, self.protocol.answers[outcome])
                after = learning.at_rest()
            return self.overlaid(after, stored)

    def _decided(
        self, running: RunningState, action: Action, values: tuple[Any, ...], *, accepted: bool
    ) -> None:
        """Run the body of an operation as the implementation decided it, whatever the model would have decided."""
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
            names = {**body.__globals__, "refuse_unless": lambda condition, code: None}  # noqa: ARG005
            found = FunctionType(
                body.__code__, names, body.__name__, body.__defaults__, body.__closure__
            )
            self._accepting[action.name] = found
        return found

    def answer_known(self, outcome: str) -> bool:
        """Whether the model has such an answer."""
        answers = self.protocol.answers
        return answers is None or any(m.name == outcome for m in answers.members)

    # -- claims

    def holds(self, claim: Claim, before: Rest, made: Transition) -> bool:
        """Whether a claim (or a witness) is true of a step or of the state after it."""
        key: Any = (claim.name, made.state)
        if claim.over_steps:
            key = (claim.name, before, made.action.name, made.outcome, made.state)
        found = self._truths.get(key)
        if found is None:
            found = (
                self.runner.holds_step(claim.predicate, before, made)
                if claim.over_steps
                else self.runner.holds(claim.predicate, made.state)
            )
            _forget(self._truths)
            self._truths[key] = found
        return found

    def untellable(self, claims: Iterable[Claim]) -> dict[str, str]:
        """Claims that no run can say anything about, with the reason."""
        found = {}
        start = self.runner.initial()
        idle = Transition(next(iter(self.protocol.actions.values())), (), "done", start)
        for claim in claims:
            try:
                self.holds(claim, start, idle)
            except CannotTellError as error:
                found[claim.name] = f"it asks {error.what}; a run shows only what did happen"
        return found


def _forget(table: dict[Any, Any]) -> None:
    if len(table) >= _REMEMBERED:
        table.clear()


__all__ = ["CannotTellError", "Cut", "Fault", "Oracle", "Rest", "Transition"]
