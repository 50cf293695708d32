"""Who talks to whom in a run: its lanes, steps and messages, found in the protocol. `diagrams` draws them.

- A *lane* is an element of a sort that an actor is named after (`worker`: w1, w2), or a home that keeps
  variables (`store`), or whoever else calls an operation.
- A *carrier* is a home that keeps nothing but what senders name afresh: the network. It is no lane. What it
  keeps of a message, other than what the message says, tells where copies and answers are: one sets out in
  the step that fills such a place, and ends in the step that empties it.
- An *exchange* is asked and answered in one step: an operation, or a look at what another lane keeps. What
  senders of messages read of another lane, they have read before; so that alone is no look.

One name is a convention: with the parameter `lost` of an operation, its answer does not reach the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from fencepost.checker.traces import Trace, TraceStep, _columns, _step_label
from fencepost.model import Protocol
from fencepost.model import terms as t
from fencepost.model.domains import Boolean, LeafDomain, Sort
from fencepost.model.ground import show_code
from fencepost.model.protocol import HISTORY, Action, Fresh
from fencepost.model.trace import trace_action

LOST = "lost"
"""The parameter of an operation that says that its answer is lost."""


class Fate(Enum):
    """How a message's way ends."""

    ARRIVES = "arrives"
    LOST = "is lost"
    UNDER_WAY = "is still on its way"


@dataclass(frozen=True, slots=True)
class Passage:
    """A message, or an answer, that is on its way from one step to another.

    `text` names it. `stops` are the steps in which a copy arrives and another goes on; `ends` is the step of
    its fate, None if the run ends first. `target` is where it goes.
    """

    text: str
    source: str
    target: str
    is_answer: bool
    departs: int
    stops: tuple[int, ...] = ()
    ends: int | None = None
    fate: Fate = Fate.UNDER_WAY


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call that is asked and answered in one step; `reads` if `callee` is only looked at."""

    caller: str
    callee: str
    reads: bool
    lost: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """One step: the lane that takes it (none for the world), and what it changes in each lane.

    What the world does to a lane is a change of it, also if nothing comes of it.
    """

    number: int
    step: TraceStep
    by: str | None
    exchange: Exchange | None
    changes: Mapping[str, tuple[str, ...]]

    @property
    def label(self) -> str:
        """The step, with its code if it is refused."""
        return _step_label(self.step)

    @property
    def answer(self) -> str:
        """What an operation is answered."""
        return self.step.outcome if self.step.outcome in ("done", "ok") else f"refused: {self.step.outcome}"


@dataclass(frozen=True, slots=True)
class Diagram:
    """Lanes from left to right (`callers` come first), steps from top to bottom, and messages."""

    callers: tuple[str, ...]
    keepers: tuple[str, ...]
    carrier: str
    moments: tuple[Moment, ...]
    passages: tuple[Passage, ...]

    @property
    def lanes(self) -> tuple[str, ...]:
        """Every lane."""
        return self.callers + self.keepers


def diagram(trace: Trace, protocol: Protocol, *, about: Iterable[str] = ()) -> Diagram:
    """The run as lanes, steps and messages. `about` are the variables to note changes of; none means all.

    History, and what is on its way, is never noted.
    """
    return _Reader(trace, protocol, set(about)).read()


class _Reader:
    """Reads a run step by step, with the messages that are on their way."""

    def __init__(self, trace: Trace, protocol: Protocol, about: set[str]) -> None:
        self.trace, self.protocol, self.about = trace, protocol, about
        variables, actions = protocol.variables.values(), protocol.actions.values()
        self.actors = {a.actor for a in actions} | protocol.actors
        self.sorts = {n: d for n, d in protocol.sorts().items() if isinstance(d, Sort) and n in self.actors}
        self.contents = self._contents()
        self.carriers = {protocol.variables[v].home for v in self.contents.values()}
        self.keepers = [
            home
            for home in dict.fromkeys([*(v.home for v in variables), *(a.home or HISTORY for a in actions)])
            if home != HISTORY and home not in self.carriers and home not in self.sorts
        ]
        self.others = [
            a for a in dict.fromkeys(a.actor for a in actions if a.is_operation)
            if a not in self.sorts and a not in self.keepers and a not in self.carriers
        ]  # fmt: skip
        self.columns = _columns(protocol, trace.scope, trace.initial)
        self.known = {v for a in actions if self._sends(a) for v in self._reads(a)}
        self.open: dict[str, Passage] = {}
        self.closed: list[Passage] = []

    # -- what the protocol says

    def _contents(self) -> dict[Sort, str]:
        """For each sort of messages the variable that holds what they say; its home is the carrier."""
        found: dict[Sort, str] = {}
        decided = {a.home for a in self.protocol.actions.values()}
        fresh = [d for a in self.protocol.actions.values() for _, d in a.parameters if isinstance(d, Fresh)]
        named = {d.sort for d in fresh}
        for domain in fresh:
            home = self.protocol.variables[domain.used].home
            kept = [v for v in self.protocol.variables.values() if v.home == home]
            only = all(len(v.index) == 1 and v.index[0] in named for v in kept)
            if only and len(kept) > 1 and home not in decided and home not in self.sorts:
                found[domain.sort] = domain.used
        return found

    def _sends(self, action: Action) -> bool:
        return any(isinstance(d, Fresh) and d.sort in self.contents for _, d in action.parameters)

    def _reads(self, action: Action) -> set[str]:
        """The variables that an action looks at."""
        found: set[str] = set()
        for command in trace_action(self.protocol, action, self.trace.scope):
            read = set(t.variables_of(command.guard))
            for leaf, term in command.updates.items():
                read |= {v for v in t.variables_of([term]) if v.payload != leaf}
            found |= {str(v.payload).partition(".")[0] for v in read if v.op == "var"}
        return found & set(self.protocol.variables)

    def _destination(self, message: Sort) -> str:
        """Who decides messages of a sort."""
        for action in self.protocol.actions.values():
            takes = any(domain == message for _, domain in action.parameters)
            if takes and action.home is not None and action.actor in self.carriers:
                return action.home
        return ""

    # -- what the run says

    def read(self) -> Diagram:
        """The whole run."""
        before = self.trace.initial
        moments = []
        for number, step in enumerate(self.trace.steps, 1):
            moments.append(self._moment(number, step, before))
            before = step.state
        callers = [
            show_code(sort, code)
            for sort in self.sorts.values()
            for code in range(self.trace.scope.size(sort))
        ]
        involved = {m.by for m in moments} | {lane for m in moments for lane in m.changes}
        others = [lane for lane in self.others if lane in involved]
        passages = sorted([*self.closed, *self.open.values()], key=lambda p: p.departs)
        return Diagram(
            (*callers, *others),
            tuple(self.keepers),
            ", ".join(sorted(self.carriers)),
            tuple(moments),
            tuple(passages),
        )

    def _moment(self, number: int, step: TraceStep, before: Mapping[str, int]) -> Moment:
        action = self.protocol.actions[step.action]
        values = [
            (name, d.sort if isinstance(d, Fresh) else d, code)
            for (name, d), code in zip(action.parameters, step.arguments, strict=True)
        ]
        changed = [c for c, show in self.columns.items() if show(before) != show(step.state)]
        by = self._by(action, values, changed, step.state)
        exchange = None
        if not self._carry(number, action, values, by, before, step.state) and by is not None:
            exchange = self._exchange(action, values, by, changed)
        changes = self._changes(changed, by, before, step.state)
        if by is None and not changes:
            changes = {show_code(d, code): () for _, d, code in values if d in self.sorts.values()}
        return Moment(number, step, by, exchange, changes)

    def _by(
        self,
        action: Action,
        values: list[tuple[str, LeafDomain, int]],
        changed: list[str],
        state: Mapping[str, int],
    ) -> str | None:
        """The lane that takes a step: its actor, or where a message arrives; None for the world, say."""
        sort = self.sorts.get(action.actor)
        if sort is not None:
            for _, domain, code in values:
                if domain == sort:
                    return show_code(domain, code)
            for _, domain, code in values:
                if isinstance(domain, Sort) and domain in self.contents:
                    return self._sender(domain, show_code(domain, code), state)
            return None
        if action.actor in self.carriers:
            homes = [self._home(c) for c in changed]
            return action.home or next((h for h in homes if h in self.keepers), None)
        return action.actor if action.actor in (*self.keepers, *self.others) else None

    def _sender(self, message: Sort, name: str, state: Mapping[str, int]) -> str | None:
        """Who sent a message: the first element of an actor's sort in what it says."""
        content = self.contents[message]
        for suffix, leaf in self.protocol.variables[content].domain.leaves():
            if leaf in self.sorts.values():
                return show_code(leaf, state[f"{content}[{name}]{suffix}"])
        return None

    def _home(self, cell: str) -> str:
        return self.protocol.variables[cell.partition("[")[0]].home

    def _exchange(
        self, action: Action, values: list[tuple[str, LeafDomain, int]], by: str, changed: list[str]
    ) -> Exchange | None:
        """Whom a step asks: who decides it, or else whose variables it writes, or looks at."""
        lost = any(name == LOST and code for name, _, code in values)
        if action.home is not None:
            return Exchange(by, action.home, reads=False, lost=lost)
        for homes, reads in (
            ([self._home(c) for c in changed], False),
            ([self.protocol.variables[v].home for v in sorted(self._reads(action) - self.known)], True),
        ):
            others = [home for home in homes if home in self.keepers and home != by]
            if others:
                return Exchange(by, others[0], reads=reads, lost=False)
        return None

    def _changes(
        self, changed: list[str], by: str | None, before: Mapping[str, int], after: Mapping[str, int]
    ) -> dict[str, tuple[str, ...]]:
        """What a step changed, by the lane that keeps it."""
        found: dict[str, list[str]] = {}
        for cell in changed:
            variable = self.protocol.variables[cell.partition("[")[0]]
            if variable.home == HISTORY or variable.home in self.carriers:
                continue
            if self.about and variable.name not in self.about:
                continue
            lane: str | None = variable.home
            if variable.home in self.sorts:
                name = cell.partition("[")[2].removesuffix("]")
                lane = by
                if variable.index[:1] == (self.sorts[variable.home],):
                    lane = name.partition(",")[0]
                elif (
                    variable.index
                    and isinstance(message := variable.index[0], Sort)
                    and message in self.contents
                ):
                    lane = self._sender(message, name.partition(",")[0], after)
            show = self.columns[cell]
            if lane is not None:
                found.setdefault(lane, []).append(f"{cell} {show(before)}→{show(after)}")
        return {lane: tuple(notes) for lane, notes in found.items()}

    def _carry(
        self,
        number: int,
        action: Action,
        values: list[tuple[str, LeafDomain, int]],
        by: str | None,
        before: Mapping[str, int],
        after: Mapping[str, int],
    ) -> bool:
        """Follow the messages through a step; whether any set out or ended."""
        named = {show_code(d, code) for _, d, code in values if d in self.contents}
        moved = False
        for message, content in self.contents.items():
            for place in self._places(message, content):
                name = place.partition("[")[2].removesuffix("]")
                show = self.columns[place]
                was, now, empty = show(before), show(after), show(self.trace.initial)
                passage = self.open.get(place)
                if passage is not None:
                    reaches = by is not None and by != passage.source and name in named
                    if reaches:
                        passage = self.open[place] = replace(passage, target=by or "")
                    goes_on = reaches and was == now and action.actor in self.carriers
                    if goes_on:
                        self.open[place] = replace(passage, stops=(*passage.stops, number))
                    elif was != now:
                        fate = Fate.ARRIVES if reaches and now == empty else Fate.LOST
                        self.closed.append(replace(self.open.pop(place), ends=number, fate=fate))
                    moved = moved or goes_on or was != now
                if now not in (was, empty) and by is not None:
                    self.open[place] = self._departure(place, message, name, by, number, after)
                    moved = True
        return moved

    def _places(self, message: Sort, content: str) -> Iterator[str]:
        """The cells of the carrier that tell where a copy or an answer is."""
        for cell in self.columns:
            variable = self.protocol.variables[cell.partition("[")[0]]
            if variable.home in self.carriers and variable.index == (message,) and variable.name != content:
                yield cell

    def _departure(
        self, place: str, message: Sort, name: str, by: str, number: int, after: Mapping[str, int]
    ) -> Passage:
        variable = self.protocol.variables[place.partition("[")[0]]
        is_answer = by in self.keepers
        text = name if isinstance(variable.domain, Boolean) else f"{name}: {self.columns[place](after)}"
        target = self._sender(message, name, after) if is_answer else self._destination(message)
        return Passage(text, by, target or "", is_answer, number)
