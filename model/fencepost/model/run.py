"""The run reading: a protocol executed on concrete states, one transition after another.

This is the plainest meaning of a model. The other readings are tested against it; replays, lock-step tests and
debugging use it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.model.concrete import (
    RecordOf,
    RunningState,
    code_of,
    from_codes,
    leaf_codes,
    places,
    raw,
    values_of,
)
from fencepost.model.domains import Element, LeafDomain, Record, Sort
from fencepost.model.errors import ModelError
from fencepost.model.ground import check_scope, label_of, show_code
from fencepost.model.language import Cut, Disabled, Fault, Refused, reading
from fencepost.model.lint import check_function
from fencepost.model.protocol import Action, Fresh, Protocol, Scope, did_you_mean
from fencepost.model.trace import is_used, perform

Rest = tuple[Any, ...]
"""A state in rest: one value per variable, families as tuples."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One step of a run: what was done, how it ended, and the state it led to."""

    action: Action
    arguments: tuple[Any, ...]
    outcome: str
    state: Rest

    @property
    def codes(self) -> tuple[int, ...]:
        """The codes of the arguments."""
        return tuple(
            _argument_code(d, a) for (_, d), a in zip(self.action.parameters, self.arguments, strict=True)
        )

    @property
    def label(self) -> str:
        """The step as a person writes it: ``acquire(w1)``."""
        return label_of(self.action, self.codes)

    @property
    def refused(self) -> bool:
        """Whether it is a refusal."""
        return self.outcome not in ("ok", "done")


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What a step claim may ask about the step."""

    action: str
    outcome: str
    refused: bool


def _argument_code(domain: LeafDomain | Fresh, value: Any) -> int:
    return code_of(domain.sort if isinstance(domain, Fresh) else domain, value)


class Runner:
    """A protocol in a scope, to be run. Answers the words of the language with Python values."""

    def __init__(self, protocol: Protocol, scope: Scope) -> None:
        check_scope(protocol, scope)
        for action in protocol.actions.values():
            check_function(action.function)
            if action.answered is not None:
                check_function(action.answered)
        self.protocol = protocol
        self.scope = scope
        self._choices: list[tuple[Action, list[tuple[Any, ...]]]] = []
        for action in protocol.actions.values():
            if action.switch is None or action.switch in scope.switches:
                ranges = [
                    values_of(d.sort if isinstance(d, Fresh) else d, scope) for _, d in action.parameters
                ]
                self._choices.append((action, list(itertools.product(*ranges))))

    # -- states

    def initial(self) -> Rest:
        """The first state."""
        with reading(self):
            made = []
            for variable in self.protocol.variables.values():
                value = raw(variable.domain, variable.initially, variable.name)
                made.append((value,) * len(places(variable, self.scope)) if variable.index else value)
            return tuple(made)

    def codes(self, state: Rest) -> dict[str, int]:
        """A state as codes of cells, the names and codes of the compiled reading."""
        found: dict[str, int] = {}
        for variable, value in zip(self.protocol.variables.values(), state, strict=True):
            suffixes = [s for s, _ in variable.domain.leaves()]
            rows = zip(places(variable, self.scope), value, strict=True) if variable.index else [((), value)]
            for index, cell in rows:
                shown = [show_code(d, code_of(d, i)) for d, i in zip(variable.index, index, strict=True)]
                place = f"[{','.join(shown)}]" if index else ""
                for suffix, code in zip(suffixes, leaf_codes(variable.domain, cell), strict=True):
                    found[f"{variable.name}{place}{suffix}"] = code
        return found

    def from_codes(self, codes: Mapping[str, int]) -> Rest:
        """The state whose cells have these codes."""
        made: list[Any] = []
        for variable in self.protocol.variables.values():
            suffixes = [s for s, _ in variable.domain.leaves()]
            cells = []
            for index in places(variable, self.scope) if variable.index else [()]:
                shown = [show_code(d, code_of(d, i)) for d, i in zip(variable.index, index, strict=True)]
                place = f"[{','.join(shown)}]" if index else ""
                cells.append(
                    from_codes(variable.domain, [codes[f"{variable.name}{place}{s}"] for s in suffixes])
                )
            made.append(tuple(cells) if variable.index else cells[0])
        return tuple(made)

    # -- transitions

    def choices(self) -> Iterator[tuple[Action, tuple[Any, ...]]]:
        """Every action with every combination of arguments, in the order of the model."""
        for action, arguments in self._choices:
            for values in arguments:
                yield action, values

    def attempt(self, state: Rest, action: Action, arguments: tuple[Any, ...]) -> Transition | str:
        """One action tried on a state: the transition, or ``"disabled"`` or ``"cut"``. A fault raises ModelError."""
        running = RunningState(self.protocol, self.scope, state, writable=True)
        try:
            with reading(self):
                if any(isinstance(d, Fresh) for _, d in action.parameters) and not self._is_fresh(
                    running, action, arguments
                ):
                    return "disabled"
                outcome = perform(running, action, arguments, self.protocol.answers)
            return Transition(action, arguments, outcome, running.at_rest())
        except Disabled:
            return "disabled"
        except Cut:
            return "cut"
        except Fault as fault:
            raise fault.error from None
        except Refused as refusal:
            raise ModelError(
                f"{action.name} is no operation but is refused ({refusal.code})",
                instead="use `when`, or declare it with protocol.operation(…)",
                site=action.site,
            ) from None

    def _is_fresh(self, state: Any, action: Action, arguments: tuple[Any, ...]) -> bool:
        """Whether each fresh parameter names the smallest unused element."""
        for (_, domain), value in zip(action.parameters, arguments, strict=True):
            if isinstance(domain, Fresh):
                unused = [e for e in values_of(domain.sort, self.scope) if not is_used(state, domain, e)]
                if not unused or unused[0] is not value:
                    return False
        return True

    def transitions(self, state: Rest) -> Iterator[Transition]:
        """Every transition from a state."""
        for action, arguments in self.choices():
            made = self.attempt(state, action, arguments)
            if isinstance(made, Transition):
                yield made

    def step(self, state: Rest, action: str, codes: tuple[int, ...]) -> Transition | str:
        """The transition of an action by name and argument codes."""
        found = self.protocol.actions.get(action)
        if found is None:
            raise ModelError(
                f"no action {action!r}", instead=did_you_mean(action, self.protocol.actions, "none")
            )
        for candidate, arguments in self.choices():
            if candidate is found and Transition(found, arguments, "", ()).codes == codes:
                return self.attempt(state, found, arguments)
        return "disabled"

    # -- claims

    def holds(self, function: Callable[..., Any], state: Rest) -> bool:
        """Whether a claim over one state is true there."""
        return self._truth(function, self._reader(state))

    def holds_step(self, function: Callable[..., Any], before: Rest, transition: Transition) -> bool:
        """Whether a claim over steps is true of a transition."""
        states = (self._reader(before), self._reader(transition.state))
        facts = StepFacts(transition.action.name, transition.outcome, transition.refused)
        return self._truth(function, *(*states, facts)[: function.__code__.co_argcount])

    def _reader(self, state: Rest) -> RunningState:
        return RunningState(self.protocol, self.scope, state, writable=False)

    def _truth(self, function: Callable[..., Any], *arguments: Any) -> bool:
        check_function(function)
        try:
            with reading(self):
                result = function(*arguments)
        except Fault as fault:
            raise fault.error from None
        except Cut:
            raise ModelError(
                f"claim {function.__name__} reads an index beyond its domain", instead="guard the index"
            ) from None
        if result is not True and result is not False:
            raise ModelError(f"claim {function.__name__} gave {result!r}", instead="return a condition")
        return bool(result)

    # -- words of the language

    def truth(self, condition: object) -> bool:
        """The truth of a guard's condition: only booleans have one."""
        raise ModelError(
            f"a guard on {condition!r}, which is not a condition", instead="give a comparison or a boolean"
        )

    def quantify(self, op: str, domains: tuple[LeafDomain, ...], fn: Callable[..., Any]) -> Any:
        """A quantifier over finitely many values; all are looked at, as in the other readings."""
        found = [
            self._boolean(fn(*values))
            for values in itertools.product(*(values_of(d, self.scope) for d in domains))
        ]
        if op == "forall":
            return all(found)
        if op == "exists":
            return any(found)
        number = sum(found)
        return number if op == "count" else number <= 1

    def _boolean(self, value: Any) -> bool:
        if value is not True and value is not False:
            raise ModelError(f"{value!r} is not a condition", instead="give a comparison or a boolean")
        return bool(value)

    def extreme(self, op: str, domain: LeafDomain, fn: Callable[..., Any]) -> Any:
        """The lowest or highest number."""
        found = [fn(v) for v in values_of(domain, self.scope)]
        return min(found) if op == "lowest" else max(found)

    def choose(self, condition: object, a: Any, b: Any) -> Any:
        """One value out of two."""
        return a if self._boolean(condition) else b

    def imply(self, a: object, b: Any) -> Any:
        """Implication; a callable consequence is evaluated only where the premise holds."""
        premise = self._boolean(a)
        if callable(b):
            return self._boolean(b()) if premise else True
        return not premise or self._boolean(b)

    def fold(self, fn: Callable[[], Any]) -> Any:
        """A helper's value."""
        return fn()

    def record(self, record: Record, values: dict[str, Any]) -> Any:
        """A record value."""
        return RecordOf(
            record, tuple(raw(d, values[n], f"{record.name}.{n}") for n, d in record.fields.items())
        )

    def elements(self, sort: Sort) -> Iterator[Element]:
        """The elements of a sort."""
        return iter(values_of(sort, self.scope))

    def switched(self, name: str) -> bool:
        """Whether the scope has a switch on."""
        if name not in self.protocol.switches:
            raise ModelError(
                f"no switch {name!r}", instead=did_you_mean(name, self.protocol.switches, "declare it")
            )
        return name in self.scope.switches

    def movable(self, state: RunningState, actors: tuple[str, ...]) -> bool:
        """Whether an accepted move by one of `actors` is possible that changes something, or leaves the scope."""
        rest = state.at_rest()
        for action, arguments in self.choices():
            if action.actor in actors:
                made = self.attempt(rest, action, arguments)
                if made == "cut" or (
                    isinstance(made, Transition) and not made.refused and made.state != rest
                ):
                    return True
        return False

    def guard_outside(self) -> str:
        """What a guard here belongs to."""
        return self.protocol.name
