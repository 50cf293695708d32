"""Terms and finite models by chance, with a plain interpreter to compare the solver with.

Nothing here shares code with what is tested: expressions are built twice, as tuples that are interpreted
and as terms.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from fencepost.model import BOOLEAN, Counter, Enumeration, Protocol, Range, Sort
from fencepost.model import terms as t
from fencepost.model.domains import LeafDomain
from fencepost.model.ground import Cell, GroundCommand, GroundModel
from fencepost.model.protocol import Action, Scope
from fencepost.model.trace import Command

Codes = dict[str, int]
Expression = tuple[Any, ...]
"""``(operation, …)``: an expression whose meaning `value_of` gives and whose term `term_of` builds."""

workers = Sort("worker")
versions = Counter("version")
Colour = Enumeration("Colour", "red", "green", "blue")
small = Range(-2, 3)

WORKERS, HIGHEST = 2, 3
"""Elements of the sort and the highest version that quantifiers and values below go to."""


def codes_of(domain: LeafDomain) -> range:
    """The codes of a domain in the tests."""
    if domain == BOOLEAN:
        return range(2)
    if domain == workers:
        return range(WORKERS)
    if domain is Colour:
        return range(3)
    return range(-2, 4) if domain == small else range(HIGHEST + 1)


SCALARS: Mapping[str, LeafDomain] = {
    "flag": BOOLEAN,
    "worker": workers,
    "version": versions,
    "top": versions,
    "colour": Colour,
    "small": small,
}
FAMILIES: Mapping[str, tuple[tuple[LeafDomain, ...], LeafDomain]] = {
    "up": ((workers,), BOOLEAN),
    "held": ((workers,), versions),
    "by": ((versions,), workers),
    "shade": ((versions, workers), Colour),
    "offset": ((Colour,), small),
}


def state_by_chance(chance: random.Random) -> dict[str, Any]:
    """A value for each variable: a code, or a table from index to code."""
    state: dict[str, Any] = {name: chance.choice(codes_of(domain)) for name, domain in SCALARS.items()}
    for name, (index, of) in FAMILIES.items():
        places = itertools.product(*map(codes_of, index))
        state[name] = {place: chance.choice(codes_of(of)) for place in places}
    return state


class Expressions:
    """Expressions by chance over the variables above. No number outside a table is used as its index."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.bound: dict[str, LeafDomain] = {}
        self.names = itertools.count()

    def truth(self, depth: int) -> Expression:
        if depth == 0:
            return self.chance.choice([("const", BOOLEAN, self.chance.randrange(2)), self.leaf(BOOLEAN)])
        kind = self.chance.choice(["not", "and", "or", "eq", "le", "ite", "select", "forall", "exists"])
        if kind == "not":
            return "not", self.truth(depth - 1)
        if kind in ("and", "or"):
            return kind, *(self.truth(depth - 1) for _ in range(self.chance.randrange(1, 4)))
        if kind == "eq":
            domain = self.chance.choice([BOOLEAN, workers, Colour, versions])
            return "eq", self.of(domain, depth - 1), self.of(domain, depth - 1)
        if kind == "le":
            return "le", self.number(depth - 1), self.number(depth - 1)
        if kind == "ite":
            return "ite", self.truth(depth - 1), self.truth(depth - 1), self.truth(depth - 1)
        if kind == "select":
            return self.select("up", depth - 1)
        return self.quantified(kind, depth - 1)

    def quantified(self, kind: str, depth: int) -> Expression:
        domains = self.chance.choices(
            [workers, versions, Colour, BOOLEAN, small], k=self.chance.randrange(1, 3)
        )
        names = [f"x{next(self.names)}" for _ in domains]
        saved = dict(self.bound)
        self.bound.update(zip(names, domains, strict=True))
        body = self.truth(depth)
        self.bound = saved
        return kind, tuple(zip(names, domains, strict=True)), body

    def of(self, domain: LeafDomain, depth: int) -> Expression:
        if domain == BOOLEAN:
            return self.truth(depth)
        if domain == versions:
            return self.number(depth)
        if depth == 0:
            return self.chance.choice([self.constant(domain), self.leaf(domain)])
        if self.chance.random() < 0.3:
            return "ite", self.truth(depth - 1), self.of(domain, depth - 1), self.of(domain, depth - 1)
        return self.select("by" if domain == workers else "shade", depth - 1)

    def number(self, depth: int) -> Expression:
        if depth == 0:
            return self.chance.choice([self.constant(versions), self.leaf(versions), self.leaf(small)])
        kind = self.chance.choice(["add", "neg", "ite", "held", "offset"])
        if kind == "add":
            return "add", self.number(depth - 1), self.number(depth - 1)
        if kind == "neg":
            return "neg", self.number(depth - 1)
        if kind == "ite":
            return "ite", self.truth(depth - 1), self.number(depth - 1), self.number(depth - 1)
        return self.select(kind, depth - 1)

    def leaf(self, domain: LeafDomain) -> Expression:
        names = [n for n, d in self.bound.items() if d == domain]
        if names and self.chance.random() < 0.7:
            name = self.chance.choice(names)
            return "bound", name, domain
        return "var", self.chance.choice([n for n, d in SCALARS.items() if d == domain])

    def constant(self, domain: LeafDomain) -> Expression:
        return "const", domain, self.chance.choice(codes_of(domain))

    def index(self, name: str) -> tuple[Expression, ...]:
        """Only leaves: their values always lie in the table."""
        return tuple(self.chance.choice([self.leaf(d), self.constant(d)]) for d in FAMILIES[name][0])

    def select(self, name: str, depth: int) -> Expression:
        return "select", self.family(name, depth), *self.index(name)

    def family(self, name: str, depth: int) -> Expression:
        index, of = FAMILIES[name]
        kind = (
            self.chance.choice(["family", "store", "store", "fill", "lambda", "choice"])
            if depth
            else "family"
        )
        if kind == "store":
            return "store", self.family(name, depth - 1), self.index(name), self.inside(of, depth - 1)
        if kind == "fill":
            return "fill", name, self.inside(of, depth - 1)
        if kind == "choice":
            return "choice", self.truth(depth - 1), self.family(name, depth - 1), self.family(name, depth - 1)
        if kind == "lambda":
            names = [f"x{next(self.names)}" for _ in index]
            saved = dict(self.bound)
            self.bound.update(zip(names, index, strict=True))
            body = self.inside(of, depth - 1)
            self.bound = saved
            return "lambda", name, tuple(zip(names, index, strict=True)), body
        return "family", name

    def inside(self, domain: LeafDomain, depth: int) -> Expression:
        """A value that surely lies in its domain."""
        if domain in (versions, small):
            return self.chance.choice([self.leaf(domain), self.constant(domain)])
        return self.of(domain, depth)


def value_of(e: Expression, state: Mapping[str, Any]) -> Any:  # noqa: C901, PLR0911
    """What an expression is in a state; a family is a function of its index."""
    kind = e[0]
    if kind == "const":
        return bool(e[2]) if e[1] == BOOLEAN else e[2]
    if kind in ("var", "bound"):
        domain = SCALARS[e[1]] if kind == "var" else e[2]
        return bool(state[e[1]]) if domain == BOOLEAN else state[e[1]]
    if kind == "not":
        return not value_of(e[1], state)
    if kind == "and":
        return all(value_of(a, state) for a in e[1:])
    if kind == "or":
        return any(value_of(a, state) for a in e[1:])
    if kind == "eq":
        return value_of(e[1], state) == value_of(e[2], state)
    if kind == "le":
        return value_of(e[1], state) <= value_of(e[2], state)
    if kind == "add":
        return value_of(e[1], state) + value_of(e[2], state)
    if kind == "neg":
        return -value_of(e[1], state)
    if kind in ("ite", "choice"):
        return value_of(e[2] if value_of(e[1], state) else e[3], state)
    if kind == "select":
        return value_of(e[1], state)(*(int(value_of(i, state)) for i in e[2:]))
    if kind in ("forall", "exists"):
        places = itertools.product(*(codes_of(d) for _, d in e[1]))
        names = [n for n, _ in e[1]]
        cases = (value_of(e[2], {**state, **dict(zip(names, place, strict=True))}) for place in places)
        return all(cases) if kind == "forall" else any(cases)
    return family_of(e, state)


def family_of(e: Expression, state: Mapping[str, Any]) -> Any:
    """A family expression as a function of its index."""
    if e[0] == "family":
        boolean = FAMILIES[e[1]][1] == BOOLEAN
        return lambda *place: bool(state[e[1]][place]) if boolean else state[e[1]][place]
    if e[0] == "fill":
        value = value_of(e[2], state)
        return lambda *_: value
    if e[0] == "lambda":
        names = [n for n, _ in e[2]]
        return lambda *place: value_of(e[3], {**state, **dict(zip(names, place, strict=True))})
    old, new = value_of(e[1], state), value_of(e[3], state)
    at = tuple(int(value_of(i, state)) for i in e[2])
    return lambda *place: new if place == at else old(*place)


def array_of(name: str) -> t.Array:
    index, of = FAMILIES[name]
    return t.Array(index, of)


def term_of(e: Expression) -> t.Term:
    """The term of an expression, by the constructors that the language uses."""
    kind = e[0]
    if kind == "const":
        return t.constant(e[2], e[1])
    if kind == "var":
        return t.variable(e[1], SCALARS[e[1]])
    if kind == "bound":
        return t.bound(e[1], e[2])
    if kind == "family":
        return t.variable(e[1], array_of(e[1]))
    if kind == "fill":
        return t.fill(array_of(e[1]), term_of(e[2]))
    if kind == "store":
        return t.store(term_of(e[1]), tuple(map(term_of, e[2])), term_of(e[3]))
    if kind == "lambda":
        return t.function(tuple(t.bound(n, d) for n, d in e[2]), term_of(e[3]), array_of(e[1]))
    if kind in ("forall", "exists"):
        variables, body = tuple(t.bound(n, d) for n, d in e[1]), term_of(e[2])
        # Counters have no end in the solver: say below which number the tests look.
        ends = [t.le(v, t.integer(HIGHEST)) for v in variables if v.domain == versions]
        if kind == "forall":
            return t.forall(variables, t.or_([*map(t.not_, ends), body]))
        return t.exists(variables, t.and_([*ends, body]))
    args = [term_of(a) for a in e[1:]]
    if kind in ("and", "or"):
        return t.and_(args) if kind == "and" else t.or_(args)
    if kind == "select":
        return t.select(args[0], tuple(args[1:]))
    build = {
        "not": t.not_,
        "eq": t.eq,
        "le": t.le,
        "add": t.add,
        "neg": t.negate,
        "ite": t.ite,
        "choice": t.ite,
    }
    made: t.Term = build[kind](*args)  # type: ignore[operator]
    return made


# -- finite models


def evaluate(term: t.Term, codes: Mapping[str, int]) -> int:
    """A ground term's value; booleans are 0 and 1."""
    values = [evaluate(arg, codes) for arg in term.args]
    if term.op == "const":
        return int(term.payload or 0)
    if term.op == "var":
        return codes[str(term.payload)]
    if term.op == "ite":
        return values[1] if values[0] else values[2]
    return {
        "not": lambda: int(not values[0]),
        "and": lambda: int(all(values)),
        "or": lambda: int(any(values)),
        "eq": lambda: int(values[0] == values[1]),
        "le": lambda: int(values[0] <= values[1]),
        "add": lambda: sum(values),
        "neg": lambda: -values[0],
    }[term.op]()


def step(model: GroundModel, number: int, codes: Codes) -> Codes | None:
    """The state after a command, or None where it does not lead to one."""
    command = model.commands[number]
    if not command.moves or not evaluate(command.guard, codes):
        return None
    if not all(low <= evaluate(term, codes) <= high for term, low, high in command.fits):
        return None
    return codes | {name: evaluate(term, codes) for name, term in command.updates.items()}


def all_states(model: GroundModel) -> Iterator[Codes]:
    """Every state within the scope."""
    names = [c.name for c in model.cells]
    for values in itertools.product(*(range(c.low, c.high + 1) for c in model.cells)):
        yield dict(zip(names, values, strict=True))


def shortest(model: GroundModel, claim: t.Term | Sequence[t.Term], depth: int) -> int | None:
    """The length of a shortest run that breaks a claim, by breadth-first search up to `depth`."""
    level, seen = [dict(model.initial)], {tuple(model.initial.values())}
    for length in range(depth + 1):
        if isinstance(claim, t.Term) and any(not evaluate(claim, codes) for codes in level):
            return length
        following = []
        for codes in level:
            for number in range(len(model.commands)):
                after = step(model, number, codes)
                if after is None:
                    continue
                if not isinstance(claim, t.Term) and not evaluate(claim[number], codes):
                    return length + 1 if length < depth else None
                after = {name: after[name] for name in model.initial}
                if tuple(after.values()) not in seen:
                    seen.add(tuple(after.values()))
                    following.append(after)
        level = following
    return None


CELLS = (
    Cell("a", "a", "a", Range(0, 3), 0, 3),
    Cell("b", "b", "b", Range(-1, 2), -1, 2),
    Cell("flag", "flag", "flag", BOOLEAN, 0, 1),
    Cell("colour", "colour", "colour", Colour, 0, 2),
)


class Models:
    """Finite models by chance over the four cells above: 96 states."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def model(self) -> GroundModel:
        initial = {c.name: self.chance.randrange(c.low, c.high + 1) for c in CELLS}
        commands = tuple(self.command(i) for i in range(self.chance.randrange(1, 6)))
        scope = Scope("by chance", {}, {})
        none = cast("Any", None)
        return GroundModel(Protocol("by chance"), scope, none, CELLS, initial, commands, none)

    def command(self, number: int) -> GroundCommand:
        updates: dict[str, t.Term] = {}
        fits: list[tuple[t.Term, int, int]] = []
        for cell in self.chance.sample(CELLS, self.chance.randrange(1, 4)):
            if cell.domain == BOOLEAN:
                updates[cell.name] = self.truth(1)
            elif cell.domain is Colour:
                updates[cell.name] = t.ite(self.truth(1), cell.term, self.colour())
            else:
                updates[cell.name] = self.number(2)
                fits.append((updates[cell.name], cell.low, cell.high))
        outcome = self.chance.choice(["done", "done", "done", "cut", "fault"])
        action = Action(f"move{number}", lambda _: None, "world", (), None, None, None)
        source = Command(action, (), (), outcome, {})
        return GroundCommand(action, (), outcome, self.truth(2), updates, tuple(fits), source)

    def truth(self, depth: int) -> t.Term:
        kind = self.chance.choice(["le", "eq", "flag"] + (["not", "and", "or"] if depth else []))
        if kind == "le":
            return t.le(self.number(1), self.number(1))
        if kind == "eq":
            return t.eq(CELLS[3].term, self.colour())
        if kind == "flag":
            return CELLS[2].term
        if kind == "not":
            return t.not_(self.truth(depth - 1))
        return (t.and_ if kind == "and" else t.or_)([self.truth(depth - 1), self.truth(depth - 1)])

    def number(self, depth: int) -> t.Term:
        kind = self.chance.choice(["cell", "const"] + (["add", "neg", "ite"] if depth else []))
        if kind == "cell":
            return self.chance.choice(CELLS[:2]).term
        if kind == "const":
            return t.integer(self.chance.randrange(-2, 4))
        if kind == "add":
            return t.add(self.number(depth - 1), self.number(depth - 1))
        if kind == "neg":
            return t.negate(self.number(depth - 1))
        return t.ite(self.truth(0), self.number(depth - 1), self.number(depth - 1))

    def colour(self) -> t.Term:
        return t.constant(self.chance.randrange(3), Colour)

    def step_claim(self, model: GroundModel) -> tuple[t.Term, ...]:
        return tuple(self.truth(2) for _ in model.commands)
