"""The run reading: a protocol executed on concrete states, one transition after another.

This is the plainest meaning of a model. The other readings are tested against it; replays, lock-step tests
and debugging use it.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fencepost.model import language
from fencepost.model.concrete import RunningState, all_values, not_there, shapes_of
from fencepost.model.domains import Element, LeafDomain, Record, Sort
from fencepost.model.errors import ModelError, raised_at
from fencepost.model.ground import check_scope, label_of, show_code
from fencepost.model.language import Cut, Disabled, Fault, GuardSignal, Refused, absent
from fencepost.model.lint import check_function
from fencepost.model.protocol import Action, Fresh, Protocol, Scope, did_you_mean
from fencepost.model.rest import (
    Maybe,
    code_of,
    from_codes,
    leaf_codes,
    raw,
    record_of,
    values_of,
)
from fencepost.model.trace import perform, refused_outside, site_of, step_enumerations

Rest = tuple[Any, ...]
"""A state in rest: one value per variable, families as tuples."""

Arguments = tuple[Any, ...]


class Transition(NamedTuple):
    """One step of a run: what was done, how it ended, and the state it led to."""

    action: Action
    arguments: Arguments
    outcome: str
    state: Rest

    @property
    def codes(self) -> tuple[int, ...]:
        """The codes of the arguments."""
        return _codes(self.action, self.arguments)

    @property
    def label(self) -> str:
        """The step as a person writes it: ``acquire(w1)``."""
        return label_of(self.action, self.codes)

    @property
    def refused(self) -> bool:
        """Whether it is a refusal."""
        return self.outcome not in ("ok", "done")


class StepWord:
    """`step.action` or `step.outcome`: compare it with a name."""

    __slots__ = ("_name", "_names", "_what")

    def __init__(self, what: str, name: str, names: Collection[str]) -> None:
        self._what, self._name, self._names = what, name, names

    def __eq__(self, name: object) -> bool:
        if name not in self._names:
            raise ModelError(
                f"no {self._what} {name!r}", instead=did_you_mean(str(name), self._names, "see the protocol")
            )
        return self._name == name

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return self._name


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What a step claim may ask about the step."""

    action: StepWord
    outcome: StepWord
    refused: bool


def _codes(action: Action, arguments: Arguments) -> tuple[int, ...]:
    return tuple(
        code_of(_sort_of(domain), value)
        for (_, domain), value in zip(action.parameters, arguments, strict=True)
    )


def _sort_of(domain: LeafDomain | Fresh) -> LeafDomain:
    return domain.sort if isinstance(domain, Fresh) else domain


class _Plan(NamedTuple):
    """One action and what it can be tried with; `fresh` are the places of its fresh parameters."""

    action: Action
    options: list[Arguments]
    fresh: tuple[int, ...] = ()
    by_fresh: Mapping[Arguments, list[Arguments]] = {}


class _Beyond(NamedTuple):
    """The same protocol with one more element to name, and where each of its cells has its value from."""

    runner: Runner
    sources: list[list[int | None] | None]
    initial: Rest

    def state(self, rest: Rest) -> Rest:
        """A state with the cells of the new elements as they were in the beginning."""
        return tuple(
            value if places is None else tuple(first[0] if p is None else value[p] for p in places)
            for value, places, first in zip(rest, self.sources, self.initial, strict=True)
        )


class Runner:
    """A protocol in a scope, to be run. Answers the words of the language with Python values."""

    evaluates = True

    def __init__(self, protocol: Protocol, scope: Scope) -> None:
        check_scope(protocol, scope)
        for action in protocol.actions.values():
            check_function(action.function)
            if action.answered is not None:
                check_function(action.answered)
            protocol.check_fresh(action)
        self.protocol = protocol
        self.scope = scope
        self._shapes = shapes_of(protocol, scope)
        self._plans = [
            self._plan(action)
            for action in protocol.actions.values()
            if action.switch is None or action.switch in scope.switches
        ]
        self._idle: list[RunningState] = []
        self._readers = [RunningState(self._shapes, writable=False) for _ in range(2)]
        self._checked: set[Callable[..., Any]] = set()
        self._combinations: dict[tuple[int, ...], tuple[tuple[LeafDomain, ...], list[Arguments]]] = {}
        self._beyond: dict[str, _Beyond] = {}
        self._step_names = [frozenset(m.name for m in e.members) for e in step_enumerations(protocol)]
        self._cells = [list(self._cell_names(name)) for name in self._shapes]

    def _plan(self, action: Action) -> _Plan:
        ranges = [values_of(_sort_of(d), self.scope) for _, d in action.parameters]
        options = list(itertools.product(*ranges))
        fresh = tuple(i for i, (_, d) in enumerate(action.parameters) if isinstance(d, Fresh))
        by_fresh: dict[Arguments, list[Arguments]] = {}
        for values in options:
            by_fresh.setdefault(tuple(values[i] for i in fresh), []).append(values)
        return _Plan(action, options, fresh, by_fresh)

    # -- states

    def initial(self) -> Rest:
        """The first state."""
        made = []
        for variable, shape in zip(self.protocol.variables.values(), self._shapes.values(), strict=True):
            value = raw(variable.domain, variable.initially, variable.name)
            if not shape.fits(value):
                raise ModelError(
                    f"variable {variable.name} starts as {value!r}, outside of the scope",
                    instead="mend one of them",
                )
            made.append((value,) * len(shape.index) if variable.index else value)
        return tuple(made)

    def _cell_names(self, name: str) -> Iterator[list[str]]:
        """The names of the leaves of each cell of a variable, as the other finite readings name them."""
        variable = self.protocol.variables[name]
        suffixes = [suffix for suffix, _ in variable.domain.leaves()]
        for index in self._shapes[name].index:
            shown = [show_code(d, code_of(d, i)) for d, i in zip(variable.index, index, strict=True)]
            place = f"[{','.join(shown)}]" if index else ""
            yield [f"{name}{place}{suffix}" for suffix in suffixes]

    def codes(self, state: Rest) -> dict[str, int]:
        """A state as codes of cells, the names and codes of the compiled reading."""
        found: dict[str, int] = {}
        for variable, names, value in zip(self.protocol.variables.values(), self._cells, state, strict=True):
            for leaves, cell in zip(names, value if variable.index else (value,), strict=True):
                found.update(zip(leaves, leaf_codes(variable.domain, cell), strict=True))
        return found

    def from_codes(self, codes: Mapping[str, int]) -> Rest:
        """The state whose cells have these codes."""
        made: list[Any] = []
        for variable, names in zip(self.protocol.variables.values(), self._cells, strict=True):
            cells = [from_codes(variable.domain, [codes[leaf] for leaf in leaves]) for leaves in names]
            made.append(tuple(cells) if variable.index else cells[0])
        return tuple(made)

    # -- transitions

    def choices(self) -> Iterator[tuple[Action, Arguments]]:
        """Every action with every combination of arguments, in the order of the model."""
        for plan in self._plans:
            for values in plan.options:
                yield plan.action, values

    def attempt(self, state: Rest, action: Action, arguments: Arguments) -> Transition | str:
        """One action tried: the transition, or ``"disabled"`` or ``"cut"``. A fault raises ModelError."""
        plan = next((p for p in self._plans if p.action is action), None) or self._plan(action)
        if plan.fresh:
            unused = self._unused(state, plan)
            if None in unused:
                return "cut" if arguments in self._cut_beyond(state, plan) else "disabled"
            if unused != tuple(arguments[i] for i in plan.fresh):
                return "disabled"
        cuts: list[tuple[Action, Arguments]] = []
        made = self._checked_explore(state, [_Plan(action, [arguments])], cuts)
        return made[0] if made else "cut" if cuts else "disabled"

    def transitions(self, state: Rest) -> Iterator[Transition]:
        """Every transition from a state."""
        return iter(self._checked_explore(state, self._plans, []))

    def cuts(self, state: Rest) -> Iterator[tuple[Action, Arguments]]:
        """Every action, with arguments, that would leave the bounds of the scope.

        That no unused element is left is such a bound: the move is cut if it were possible with one more. The
        arguments then name the first element in its place.
        """
        found: list[tuple[Action, Arguments]] = []
        self._checked_explore(state, self._plans, found)
        for plan in self._plans:
            if plan.fresh and None in self._unused(state, plan):
                found += [(plan.action, values) for values in self._cut_beyond(state, plan)]
        return iter(found)

    def step(self, state: Rest, action: str, codes: tuple[int, ...]) -> Transition | str:
        """The transition of an action by name and argument codes."""
        found = self.protocol.actions.get(action)
        if found is None:
            raise ModelError(
                f"no action {action!r}", instead=did_you_mean(action, self.protocol.actions, empty="none")
            )
        for candidate, arguments in self.choices():
            if candidate is found and _codes(found, arguments) == codes:
                return self.attempt(state, found, arguments)
        return "disabled"

    def _checked_explore(
        self, state: Rest, plans: Iterable[_Plan], cuts: list[tuple[Action, Arguments]]
    ) -> list[Transition]:
        try:
            return self._explore(state, plans, cuts)
        except Fault as fault:
            raise fault.error from None

    def _explore(
        self, state: Rest, plans: Iterable[_Plan], cuts: list[tuple[Action, Arguments]]
    ) -> list[Transition]:
        """The transitions of some actions; what is cut is added to `cuts`. A fault ends it as a signal."""
        found: list[Transition] = []
        running = self._idle.pop() if self._idle else RunningState(self._shapes, writable=True)
        language.push(self)
        try:
            if running.__dict__["_rest"] is not state:
                running.load(state)
            written = running.__dict__["_changed"]
            for plan in plans:
                options = plan.options
                if plan.fresh:
                    options = plan.by_fresh.get(self._unused(state, plan), [])
                action, outcome = plan.action, "done"
                function, plain = action.function, action.home is None
                for arguments in options:
                    try:
                        if plain:
                            function(running, *arguments)
                        else:
                            outcome = perform(running, action, arguments, self.protocol.answers)
                        found.append(Transition(action, arguments, outcome, running.at_rest()))
                    except Disabled:
                        if plain and not written:
                            continue
                    except Cut:
                        cuts.append((action, arguments))
                    except Refused as refusal:
                        raise refused_outside(action, refusal) from None
                    running.forget()
        except AttributeError as error:
            raise not_there(error) or error from None
        finally:
            language.pop()
            running.forget()
            self._idle.append(running)
        return found

    def _unused(self, state: Rest, plan: _Plan) -> Arguments:
        """The smallest unused element for each fresh parameter, None where there is none left."""
        return tuple(self._first_unused(state, plan.action.parameters[i][1]) for i in plan.fresh)

    def _first_unused(self, state: Rest, domain: Any) -> Element | None:
        for number, used in enumerate(state[self.protocol.position(domain.used)]):
            if used is False or used is absent:
                return domain.sort.element(number)  # type: ignore[no-any-return]
        return None

    def _cut_beyond(self, state: Rest, plan: _Plan) -> list[Arguments]:
        """With which arguments an action would be possible if there were one more unused element."""
        beyond = self._beyond.get(plan.action.name)
        if beyond is None:
            beyond = self._beyond[plan.action.name] = self._with_one_more(plan)
        larger = beyond.state(state)
        unused = self._unused(state, plan)
        named = dict(zip(plan.fresh, beyond.runner._unused(larger, plan), strict=True))  # noqa: SLF001
        if None in named.values():
            return []  # elements are used from the beginning
        shown = (plan.options[0][i] if e is None else e for i, e in zip(plan.fresh, unused, strict=True))
        found = []
        for values in plan.by_fresh[tuple(shown)]:
            arguments = tuple(named.get(i, value) for i, value in enumerate(values))
            cuts: list[tuple[Action, Arguments]] = []
            try:
                made = beyond.runner._explore(larger, [_Plan(plan.action, [arguments])], cuts)  # noqa: SLF001
            except Fault:
                continue  # the larger scope would report it, this one cannot
            if made or cuts:
                found.append(values)
        return found

    def _with_one_more(self, plan: _Plan) -> _Beyond:
        sorts = {_sort_of(plan.action.parameters[i][1]) for i in plan.fresh}
        sizes = {name: n + (name in {s.name for s in sorts}) for name, n in self.scope.sizes.items()}
        runner = Runner(self.protocol, self.scope.but(sizes=sizes))
        sources: list[list[int | None] | None] = []
        for mine, theirs in zip(self._shapes.values(), runner._shapes.values(), strict=True):
            places = {index: n for n, index in enumerate(mine.index)}
            same = len(mine.index) == len(theirs.index)
            sources.append(None if same else [places.get(index) for index in theirs.index])
        return _Beyond(runner, sources, runner.initial())

    # -- claims

    def holds(self, function: Callable[..., Any], state: Rest) -> bool:
        """Whether a claim over one state is true there."""
        return self._truth(function, self._reader(0, state))

    def holds_step(self, function: Callable[..., Any], before: Rest, transition: Transition) -> bool:
        """Whether a claim over steps is true of a transition."""
        states = (self._reader(0, before), self._reader(1, transition.state))
        facts = StepFacts(
            StepWord("action", transition.action.name, self._step_names[0]),
            StepWord("outcome", transition.outcome, self._step_names[1]),
            transition.refused,
        )
        return self._truth(function, *(*states, facts)[: inspect.unwrap(function).__code__.co_argcount])

    def _reader(self, number: int, state: Rest) -> RunningState:
        reader = self._readers[number]
        if reader.__dict__["_rest"] is not state:
            reader.load(state)
        return reader

    def _truth(self, function: Callable[..., Any], *arguments: Any) -> bool:
        if function not in self._checked:
            check_function(function)
            self._checked.add(function)
        language.push(self)
        try:
            result = function(*arguments)
        except Fault as fault:
            raise fault.error from None
        except AttributeError as error:
            raise not_there(error) or error from None
        except GuardSignal as signal:
            name = function.__name__
            what, instead = (
                ("reads an index beyond its domain", "guard the index")
                if isinstance(signal, Cut)
                else ("contains a guard", "return the condition: claims only look")
            )
            site = raised_at(signal.__traceback__) or site_of(function)
            raise ModelError(f"claim {name} {what}", instead=instead, site=site) from None
        finally:
            language.pop()
        if result is not True and result is not False:
            raise ModelError(
                f"claim {function.__name__} gave {result!r}",
                instead="return a condition",
                site=site_of(function),
            )
        return result

    # -- words of the language

    def truth(self, condition: object) -> bool:
        """The truth of a guard's condition: only booleans have one."""
        raise ModelError(
            f"a guard on {condition!r}, which is not a condition", instead="give a comparison or a boolean"
        )

    def quantify(self, op: str, domains: tuple[LeafDomain, ...], fn: Callable[..., Any]) -> Any:
        """A quantifier over finitely many values; all are looked at, as in the other readings."""
        found = all_values(fn, self._values(domains))
        for value in found:
            if value is not True and value is not False:
                self._boolean(value)
        if op == "forall":
            return False not in found
        if op == "exists":
            return True in found
        number = found.count(True)
        return number if op == "count" else number <= 1

    def _values(self, domains: tuple[LeafDomain, ...]) -> list[Arguments]:
        """Every combination of values. Domains are told apart by identity, which is cheap; they are kept."""
        key = tuple([id(domain) for domain in domains])
        known = self._combinations.get(key)
        if known is None:
            values = list(itertools.product(*(values_of(d, self.scope) for d in domains)))
            known = self._combinations[key] = (domains, values)
        return known[1]

    def _boolean(self, value: Any) -> bool:
        if value is True or value is False:
            return value
        raise ModelError(f"{value!r} is not a condition", instead="give a comparison or a boolean")

    def extreme(self, op: str, domain: LeafDomain, fn: Callable[..., Any]) -> Any:
        """The lowest or highest number."""
        found = [self._number(fn(v)) for (v,) in self._values((domain,))]
        return min(found) if op == "lowest" else max(found)

    def _number(self, value: Any) -> int:
        value = value.value if isinstance(value, Maybe) else value
        if type(value) is int:
            return value
        raise ModelError(f"{value!r} is not a number", instead="lowest and highest compare numbers")

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
        return record_of(record, values)

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

    def movable(self, state: RunningState, actions: tuple[str, ...]) -> bool:
        """Whether one of `actions` is possible that changes something, or leaves the scope."""
        if state.__dict__["_writable"]:
            raise ModelError(
                "can_move inside an action", instead="it is for claims: write the condition itself"
            )
        rest = state.at_rest()
        for plan in self._plans:
            if plan.action.name in actions:
                options = plan.by_fresh.get(self._unused(rest, plan), []) if plan.fresh else plan.options
                if any(self._moves(rest, plan.action, arguments) for arguments in options):
                    return True
        return False

    def _moves(self, rest: Rest, action: Action, arguments: Arguments) -> bool:
        cuts: list[tuple[Action, Arguments]] = []
        try:
            made = self._explore(rest, [_Plan(action, [arguments])], cuts)
        except Fault:
            return False  # what explores the model reports it
        return bool(cuts) or any(x.state != rest for x in made)
