"""Small models made by hand or by chance, and a plain search to compare the compiled one with.

The interpreter and the search below share no code with the package under test.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from fencepost.checker.native import Seek, StateClaim, StepClaim
from fencepost.model import BOOLEAN, Enumeration, Protocol, Range
from fencepost.model import terms as t
from fencepost.model.domains import LeafDomain
from fencepost.model.ground import Cell, GroundCommand, GroundModel
from fencepost.model.protocol import Action, Scope
from fencepost.model.trace import Command

Codes = dict[str, int]
COLOUR = Enumeration("Colour", "red", "green", "blue")
INTERNAL = "internal"


# -- models


def cell(name: str, low: int, high: int) -> Cell:
    return Cell(name, name, name, Range(low, high), low, high)


def flag(name: str) -> Cell:
    return Cell(name, name, name, BOOLEAN, 0, 1)


def colour(name: str) -> Cell:
    return Cell(name, name, name, COLOUR, 0, 2)


def command(
    name: str,
    guard: t.Term,
    updates: Mapping[str, t.Term],
    fits: Sequence[tuple[t.Term, int, int]] = (),
    outcome: str = "done",
) -> GroundCommand:
    action = Action(name, lambda _: None, "world", (), None, None, None)
    return GroundCommand(
        action, (), outcome, guard, dict(updates), tuple(fits), Command(action, (), (), outcome, {})
    )


def model_of(
    cells: Sequence[Cell], commands: Sequence[GroundCommand], initial: Codes | None = None
) -> GroundModel:
    first = {c.name: c.low for c in cells} | (initial or {})
    scope = Scope("by hand", {}, {})
    none = cast("Any", None)
    return GroundModel(Protocol("by hand"), scope, none, tuple(cells), first, tuple(commands), none)


def counter_model(high: int, step: int = 1, low: int = 0) -> GroundModel:
    """One cell that counts from `low` to `high`."""
    x = cell("x", low, high)
    return model_of(
        [x], [command("count", t.TRUE, {"x": plus(x.term, step)}, [(plus(x.term, step), low, high)])]
    )


def grid_model(sizes: Sequence[int], padding: Sequence[Cell] = ()) -> GroundModel:
    """Cells that count up independently: as many states as the product of `sizes`."""
    cells = [cell(f"x{i}", 0, size - 1) for i, size in enumerate(sizes)]
    commands = [
        command(f"count{i}", t.not_(t.le(t.integer(c.high), c.term)), {c.name: plus(c.term, 1)})
        for i, c in enumerate(cells)
    ]
    return model_of([*padding, *cells], commands)


def plus(a: t.Term, n: int) -> t.Term:
    return t.add(a, t.integer(n))


# -- a plain search


def evaluate(term: t.Term, codes: Mapping[str, int]) -> int:
    """A ground term's value; booleans are 0 and 1."""
    values = [evaluate(arg, codes) for arg in term.args]
    if term.op == "const":
        return int(term.payload or 0)
    if term.op == "var":
        return codes[str(term.payload)]
    if term.op == "ite":
        return values[1] if values[0] else values[2]
    functions = {
        "not": lambda v: v[0] == 0,
        "and": min,
        "or": max,
        "eq": lambda v: v[0] == v[1],
        "le": lambda v: v[0] <= v[1],
        "add": sum,
        "neg": lambda v: -v[0],
    }
    return int(functions[term.op](values))  # type: ignore[operator]


@dataclass
class Plain:
    """What the plain search found. `hits`: name -> (kind, depth); `faults`: label -> depth."""

    depth_of: dict[tuple[int, ...], int] = field(default_factory=dict)
    taken: list[int] = field(default_factory=list)
    cuts: dict[int, int] = field(default_factory=dict)
    hits: dict[str, tuple[str, int]] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    dead_ends: int = 0
    boundary_ends: int = 0
    levels: int = 0


def plain_step(model: GroundModel, number: int, codes: Codes) -> Codes | str | None:
    """The next state; ``cut``, ``fault`` or ``internal``; or None where the command is not enabled."""
    rule = model.commands[number]
    if not evaluate(rule.guard, codes):
        return None
    if rule.outcome in ("cut", "fault"):
        return rule.outcome
    if not all(low <= evaluate(term, codes) <= high for term, low, high in rule.fits):
        return "cut"
    after = codes | {name: evaluate(term, codes) for name, term in rule.updates.items()}
    limits = {c.name: (c.low, c.high) for c in model.cells}
    if not all(limits[name][0] <= code <= limits[name][1] for name, code in after.items()):
        return INTERNAL
    return after


class _PlainSearch:
    def __init__(self, model: GroundModel, watched: list[tuple[str, Any, bool]]) -> None:
        self.model = model
        self.watched = watched
        self.found = Plain(taken=[0] * len(model.commands))

    def look(self, codes: Codes, depth: int, number: int | None) -> None:
        for name, terms, wanted in self.watched:
            if isinstance(terms, t.Term) == (number is None) and name not in self.found.hits:
                term = terms if number is None else terms[number]
                if bool(evaluate(term, codes)) == wanted:
                    self.found.hits[name] = ("state" if number is None else "step", depth)

    def enter(self, codes: Codes, depth: int) -> bool:
        key = tuple(codes[c.name] for c in self.model.cells)
        if key in self.found.depth_of:
            return False
        self.found.depth_of[key] = depth
        self.look(codes, depth, None)
        return True

    def expand(self, codes: Codes) -> Iterator[Codes]:
        """The new states one step on."""
        found = self.found
        moved = blocked = 0
        for number in range(len(self.model.commands)):
            after = plain_step(self.model, number, codes)
            if after == "cut":
                found.cuts[number] = found.cuts.get(number, 0) + 1
            elif isinstance(after, str):
                label = self.model.commands[number].label if after == "fault" else INTERNAL
                found.faults.setdefault(label, found.levels)
            elif after is not None:
                moved += 1
                found.taken[number] += 1
                self.look(codes, found.levels, number)
                if self.enter(after, found.levels):
                    yield after
            blocked += isinstance(after, str)
        found.dead_ends += not moved and not blocked
        found.boundary_ends += not moved and bool(blocked)


def plain_search(
    model: GroundModel,
    *,
    claims: Sequence[StateClaim | StepClaim] = (),
    seeks: Sequence[Seek] = (),
    stop: str = "never",
) -> Plain:
    watched: list[tuple[str, Any, bool]] = [
        (c.name, c.term if isinstance(c, StateClaim) else c.terms, False) for c in claims
    ]
    watched += [(s.name, s.terms, True) for s in seeks]
    search = _PlainSearch(model, watched)
    found = search.found
    level = [dict(model.initial)]
    search.enter(level[0], 0)
    names = {c.name for c in claims}
    while level:
        found.levels += 1
        level = [after for codes in level for after in search.expand(codes)]
        if stop == "first" and (names & found.hits.keys() or found.faults):
            break
        if stop == "all" and watched and len(found.hits) == len(watched):
            break
    return found


# -- models by chance


_SHALLOW = ["flag", "const"]
_DEEP = ["flag", "eq", "le", "le", "not", "and", "or", "ite", "colour", "same"]


class Chance:
    """Terms over given cells, chosen at random."""

    def __init__(self, rng: random.Random, cells: Sequence[Cell]) -> None:
        self.rng = rng
        self.cells = cells
        self.numbers = [c for c in cells if isinstance(c.domain, Range)]
        self.flags = [c for c in cells if c.domain == BOOLEAN]
        self.colours = [c for c in cells if c.domain == COLOUR]

    def number(self, depth: int) -> t.Term:
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            if self.numbers and rng.random() < 0.7:
                return rng.choice(self.numbers).term
            return t.integer(rng.randint(-4, 6))
        kind = rng.choice(["add", "add", "constant", "neg", "ite"])
        if kind == "add":
            return t.add(self.number(depth - 1), self.number(depth - 1))
        if kind == "constant":
            return plus(self.number(depth - 1), rng.choice([-2, -1, 1, 2]))
        if kind == "neg":
            return t.negate(self.number(depth - 1))
        return t.ite(self.truth(depth - 1), self.number(depth - 1), self.number(depth - 1))

    def member(self, depth: int) -> t.Term:
        if depth and self.rng.random() < 0.4:
            return t.ite(self.truth(depth - 1), self.member(depth - 1), self.member(depth - 1))
        if self.colours and self.rng.random() < 0.6:
            return self.rng.choice(self.colours).term
        return t.constant(self.rng.randrange(3), COLOUR)

    def truth(self, depth: int) -> t.Term:
        rng = self.rng
        kind = rng.choice(_SHALLOW if depth == 0 else _DEEP)
        if kind == "flag" and self.flags:
            return rng.choice(self.flags).term
        if kind in ("flag", "const"):
            return t.eq(self.number(0), t.integer(rng.randint(-2, 3)))
        if kind in ("eq", "le"):
            return (t.eq if kind == "eq" else t.le)(self.number(depth - 1), self.number(depth - 1))
        if kind == "colour":
            return t.eq(self.member(depth - 1), self.member(depth - 1))
        parts = [self.truth(depth - 1) for _ in range(3)]
        if kind == "not":
            return t.not_(parts[0])
        if kind == "ite":
            return t.ite(*parts)
        if kind == "same":
            return t.eq(parts[0], parts[1])
        return (t.and_ if kind == "and" else t.or_)(parts[: rng.randint(2, 3)])

    def of(self, domain: LeafDomain, depth: int) -> t.Term:
        if domain == BOOLEAN:
            return self.truth(depth)
        return self.member(depth) if domain == COLOUR else self.number(depth)


def random_model(seed: int) -> tuple[GroundModel, list[StateClaim | StepClaim], list[Seek]]:
    """A model with claims and seeks, in one to six words; nine of ten have twenty states or more."""
    rng = random.Random(seed)
    fewest = rng.choice([1] + [20] * 9)
    while True:
        made = _random_model(rng)
        if len(plain_search(made[0]).depth_of) >= fewest:
            return made


def _random_model(rng: random.Random) -> tuple[GroundModel, list[StateClaim | StepClaim], list[Seek]]:
    cells: list[Cell] = []
    for i in range(rng.randint(2, 4)):
        low = rng.choice([0, 0, -3, -1, 2])
        cells.append(cell(f"n{i}", low, low + rng.randint(1, 6)))
    cells += [flag(f"f{i}") for i in range(rng.randint(0, 2))] + [
        colour(f"c{i}") for i in range(rng.randint(0, 1))
    ]
    for i in range(rng.choice([0, 0, 1, 3, 6])):  # rarely written, but they fill words
        bits = rng.randint(20, 61)
        low = rng.choice([0, -(1 << (bits - 1)), 7])
        cells.insert(
            rng.randrange(len(cells) + 1), cell(f"wide{i}", low, low + (1 << bits) - rng.randint(1, 3))
        )
    small = [c for c in cells if not c.name.startswith("wide")]
    chance = Chance(rng, small)
    commands = [_random_command(chance, cells, small, i) for i in range(rng.randint(3, 12))]
    first = {c.name: rng.choice([c.low, c.high, rng.randint(c.low, c.high)]) for c in cells}
    made = model_of(cells, commands, first)
    claims: list[StateClaim | StepClaim] = []
    claims += [
        StateClaim(f"state{i}", t.or_([chance.truth(3), chance.truth(2), chance.truth(1)]))
        for i in range(rng.randint(0, 3))
    ]
    for i in range(rng.randint(0, 2)):
        rare = [t.or_([chance.truth(2), chance.truth(2), chance.truth(1)]) for _ in commands]
        claims.append(StepClaim(f"step{i}", tuple(t.TRUE if rng.random() < 0.7 else x for x in rare)))
    seeks = [Seek(f"seek{i}", t.and_([chance.truth(2) for _ in range(3)])) for i in range(rng.randint(0, 2))]
    if rng.random() < 0.5:
        seeks.append(Seek("seek step", tuple(rng.choice([t.FALSE, chance.truth(2)]) for _ in commands)))
    return made, claims, seeks


def _random_command(
    chance: Chance, cells: Sequence[Cell], small: Sequence[Cell], number: int
) -> GroundCommand:
    rng = chance.rng
    guard = t.and_([chance.truth(rng.choice([0, 1, 2])) for _ in range(rng.choice([0, 0, 1, 1, 1, 2]))])
    outcome = rng.choice(["done"] * 20 + ["refused", "cut", "fault"])
    if outcome in ("cut", "fault"):
        return command(f"c{number}", t.and_([guard, chance.truth(1)]), {}, (), outcome)
    updates: dict[str, t.Term] = {}
    fits: list[tuple[t.Term, int, int]] = []
    for target in rng.sample(list(small), rng.choice([0, 1, 1, 1, 2, 3]) % (len(small) + 1)):
        value = chance.of(target.domain, 2)
        if isinstance(target.domain, Range) and rng.random() < 0.7:
            value = plus(target.term, rng.choice([-1, 1, 1]))
        elif target.domain == BOOLEAN and rng.random() < 0.7:
            value = t.not_(target.term)
        kept = t.ite(chance.truth(1), value, target.term)  # as a write into a family is
        updates[target.name] = kept if rng.random() < 0.3 else value
        if isinstance(target.domain, Range) and rng.random() < 0.97:
            fits.append((value, target.low, target.high))
    wide = [c for c in cells if c.name.startswith("wide")]
    if wide and rng.random() < 0.5:
        target = rng.choice(wide)
        updates[target.name] = t.ite(chance.truth(1), t.integer(target.high), target.term)
    return command(f"c{number}", guard, updates, fits, outcome)
