"""State diagrams of one variable of a model: which of its values an action leads from, and to which.

They are read off the traced actions, so they hold for all sizes. An arrow says that the action's own lines
allow it for some values of everything else; whether a run comes there is for the claims to say.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache

from fencepost.checker.diagrams import escaped
from fencepost.model import Protocol
from fencepost.model import terms as t
from fencepost.model.domains import Boolean, Enumeration, LeafDomain
from fencepost.model.ground import show_code
from fencepost.model.trace import Command, trace_action

from .generated import table

LOST = "lost"
"""The parameter of an operation that says that its answer is lost."""


class How(IntEnum):
    """How an action ends; what is less plain is told only where nothing plainer leads the same way."""

    PLAINLY = 0
    ANSWER_LOST = 1
    REFUSED = 2


SUFFIX = {How.PLAINLY: "", How.ANSWER_LOST: " with the answer lost", How.REFUSED: " refused"}


@dataclass(frozen=True, slots=True)
class Arrow:
    """One way from a value to another, or to the same: the action, what was chosen in it, how it ended."""

    source: str
    target: str
    action: str
    choice: str
    how: How


@dataclass(frozen=True, slots=True)
class Drawn:
    """A variable of a protocol as a diagram shows it.

    `only` names the actions that are looked at, all if there are none; `names` what values are called.
    """

    protocol: Protocol
    variable: str
    only: Collection[str] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    # -- what is drawn

    def arrows(self) -> list[Arrow]:
        """Every arrow, with those that lead to where they begin."""
        actions = self.protocol.actions.values()
        looked_at = (a for a in actions if not self.only or a.name in self.only)
        read = Read(self.protocol)
        found = (
            Arrow(self.shown(before), self.shown(after), action.name, choice, how)
            for action in looked_at
            for before, after, choice, how in _moves(read, self.variable, action.name)
        )
        return list(dict.fromkeys(found))

    def labels(self) -> dict[tuple[str, str], list[str]]:
        """By two values: what the arrow between them says."""
        every = self.arrows()
        found: dict[tuple[str, str], list[str]] = {}
        for arrow in every:
            if arrow.source == arrow.target:
                continue
            alike = [a for a in every if (a.source, a.action) == (arrow.source, arrow.action)]
            if arrow.how and any(a.target == arrow.target and not a.how for a in alike):
                continue
            matters = len(_targets(a for a in alike if a.how == arrow.how)) > 1
            choice = f" {arrow.choice}" if arrow.choice and matters else ""
            said = found.setdefault((arrow.source, arrow.target), [])
            label = arrow.action + choice + SUFFIX[arrow.how]
            if label not in said:
                said.append(label)
        return found

    def mermaid(self) -> str:
        """The diagram as Mermaid text, with where it begins and where nothing leads on."""
        labels = self.labels()
        values = [v for v in self._values() if any(v in pair for pair in labels)]
        ids = {value: f"v{n}" for n, value in enumerate(values)}
        lines = ["stateDiagram-v2"]
        lines += [f'    state "{escaped(value)}" as {ids[value]}' for value in values]
        lines += [f"    [*] --> {ids[v]}" for v in values if v == self._initial()]
        lines += [
            f"    {ids[source]} --> {ids[target]}: {escaped(', '.join(said))}"
            for (source, target), said in labels.items()
        ]
        left = {a.source for a in Drawn(self.protocol, self.variable, (), self.names).arrows()
                if a.source != a.target}  # fmt: skip
        lines += [f"    {ids[value]} --> [*]" for value in values if value not in left]
        return "```mermaid\n" + "\n".join(lines) + "\n```\n"

    def table(self) -> str:
        """The same as a table."""
        order = self._values()
        labels = self.labels()
        rows = [
            (source, target, ", ".join(f"`{label}`" for label in labels[source, target]))
            for source, target in sorted(labels, key=lambda pair: [order.index(v) for v in pair])
        ]
        return table(("from", "to", "by"), rows)

    # -- how it is found

    def _values(self) -> list[str]:
        return [self.shown(code) for code in range(_number(self._domain()))]

    def _domain(self) -> LeafDomain:
        return domain_of(self.protocol, self.variable)

    def shown(self, code: int) -> str:
        """What a page calls a value, given its code."""
        value = show_code(self._domain(), code)
        return self.names.get(value, value)

    def _initial(self) -> str:
        value = self.protocol.variables[self.variable].initially
        shown = show_code(self._domain(), int(value)) if isinstance(value, bool) else str(value)
        return self.names.get(shown, shown)


def _targets(arrows: Iterable[Arrow]) -> set[frozenset[str]]:
    """To which values arrows lead, for each choice: a choice matters where that differs."""
    by_choice: dict[str, set[str]] = {}
    for arrow in arrows:
        by_choice.setdefault(arrow.choice, set()).add(arrow.target)
    return {frozenset(targets) for targets in by_choice.values()}


@dataclass(frozen=True, slots=True)
class Read:
    """A protocol to remember something about: those that are built in do not change."""

    protocol: Protocol

    def __hash__(self) -> int:
        return id(self.protocol)


@cache
def _moves(read: Read, variable: str, name: str) -> tuple[tuple[int, int, str, How], ...]:
    """The ways of an action: from which code of a variable to which, by which choice, and how it ends."""
    action, domain = read.protocol.actions[name], domain_of(read.protocol, variable)
    commands = [c for c in trace_action(read.protocol, action) if c.moves]
    whole = [c.updates[variable] for c in commands if variable in c.updates]
    cells = dict.fromkeys(cell for new in whole for cell in _cells(new, variable))
    found: dict[tuple[int, int, str, How], None] = {}
    for command, cell, code in itertools.product(commands, cells, range(_number(domain))):
        for choice in _choices(command):
            known = {**choice, cell: t.constant(code, domain)}
            if t.and_(t.substitute(g, known) for g in command.guard) is t.FALSE:
                continue
            for after in _possible(t.substitute(_after(command, variable, cell), known)):
                found[code, after, _said(choice), _how(command, choice)] = None
    return tuple(found)


def domain_of(protocol: Protocol, variable: str) -> LeafDomain:
    """The domain of a variable's cells."""
    domain = protocol.variables[variable].domain
    assert isinstance(domain, LeafDomain), f"{variable} is no single value"
    return domain


def _said(choice: Mapping[t.Term, t.Term]) -> str:
    """What was chosen among names."""
    chosen = ((p.domain, value) for p, value in choice.items())
    return ", ".join(show_code(d, int(v.payload or 0)) for d, v in chosen if isinstance(d, Enumeration))


def _number(domain: LeafDomain) -> int:
    """How many values a domain has, which must be few."""
    assert isinstance(domain, (Boolean, Enumeration)), f"{domain!r} has too many values to be drawn"
    return len(domain.members) if isinstance(domain, Enumeration) else len((False, True))


def _choices(command: Command) -> Iterator[dict[t.Term, t.Term]]:
    """Every way to choose those parameters that have few values."""
    few = [(p, p.domain) for p in command.parameters if isinstance(p.domain, (Boolean, Enumeration))]
    for chosen in itertools.product(*(range(_number(domain)) for _, domain in few)):
        yield {p: t.constant(code, domain) for (p, domain), code in zip(few, chosen, strict=True)}


def _cells(new: t.Term, variable: str) -> Iterator[t.Term]:
    """The cells of a variable that an update writes."""
    whole = t.variable(variable, new.domain)
    if not isinstance(new.domain, t.Array):
        yield whole
        return
    while new.op == "store":
        yield t.select(whole, new.args[1:-1])
        new = new.args[0]
    if new.op != "var":
        yield t.select(whole, tuple(t.bound(f"cell {n}", d) for n, d in enumerate(new.domain.index)))


def _after(command: Command, variable: str, cell: t.Term) -> t.Term:
    """What a cell holds after a step."""
    new = command.updates.get(variable)
    if new is None:
        return cell
    return t.select(new, cell.args[1:]) if isinstance(new.domain, t.Array) else new


def _possible(value: t.Term) -> set[int]:
    """The values that a term may have."""
    if value.op == "const":
        return {int(value.payload or 0)}
    if value.op == "ite":
        return _possible(value.args[1]) | _possible(value.args[2])
    raise AssertionError(f"{t.show(value)} is no choice between values")


def _how(command: Command, choice: Mapping[t.Term, t.Term]) -> How:
    if command.refused:
        return How.REFUSED
    lost = any(str(p.payload).endswith(f".{LOST}") and v is t.TRUE for p, v in choice.items())
    return How.ANSWER_LOST if lost else How.PLAINLY
