"""In which order guards are tested: commands that share a condition stand below one test of it.

The order of transitions that results is fixed by the model alone, so searches are repeatable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fencepost.model import terms as t
from fencepost.model.domains import BOOLEAN


@dataclass(frozen=True, slots=True)
class Leaf:
    """A command whose guard is decided: its number."""

    command: int


@dataclass(frozen=True, slots=True)
class Fork:
    """One condition and the trees below it."""

    condition: t.Term
    then: tuple[Tree, ...]
    otherwise: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A term that commands compare with several constants, and the trees for each."""

    subject: t.Term
    cases: tuple[tuple[int, tuple[Tree, ...]], ...]


Tree = Leaf | Fork | Choice
Open = tuple[int, tuple[t.Term, ...]]
"""A command and the parts of its guard that are still to be tested."""


def conjuncts(guard: t.Term) -> tuple[t.Term, ...]:
    """The parts of a guard."""
    if guard is t.TRUE:
        return ()
    return guard.args if guard.op == "and" else (guard,)


def trees_of(guards: Sequence[t.Term]) -> tuple[Tree, ...]:
    """The trees that decide which of the commands with these guards are enabled."""
    return _trees([(i, conjuncts(guard)) for i, guard in enumerate(guards) if guard is not t.FALSE])


def size_of(tree: Tree) -> int:
    """How many commands a tree decides."""
    if isinstance(tree, Leaf):
        return 1
    if isinstance(tree, Fork):
        return sum(map(size_of, tree.then)) + sum(map(size_of, tree.otherwise))
    return sum(size_of(below) for _, trees in tree.cases for below in trees)


def _trees(items: list[Open]) -> tuple[Tree, ...]:
    found: list[Tree] = []
    while items:
        number, parts = items[0]
        if not parts:
            found.append(Leaf(number))
            items = items[1:]
            continue
        if not _shared(items):
            found.append(Fork(t.and_(parts), (Leaf(number),), ()))
            items = items[1:]
            continue
        subject = _common_subject(items)
        if subject is not None:
            choice, items = _choice(subject, items)
            found.append(choice)
        else:
            test, items = _test(_common_part(items), items)
            found.append(test)
    return tuple(found)


def _shared(items: list[Open]) -> bool:
    """Whether another command tests a part of the first one's guard, or what a part of it compares."""
    for part in items[0][1]:
        other, subject = t.not_(part), _subject(part)
        for _, parts in items[1:]:
            if part in parts or other in parts:
                return True
            if subject is not None and any(_subject(p) is subject for p in parts):
                return True
    return False


def _subject(part: t.Term) -> t.Term | None:
    """What `part` compares with a constant, if that is what it does."""
    if part.op == "eq" and part.args[1].op == "const" and part.args[0].domain != BOOLEAN:
        return part.args[0]
    return None


def _common_subject(items: list[Open]) -> t.Term | None:
    """A term that the first command compares with a constant, and others with other constants."""
    for part in items[0][1]:
        subject = _subject(part)
        if subject is not None:
            constants = {p.args[1].payload for _, parts in items for p in parts if _subject(p) is subject}
            if len(constants) > 1:
                return subject
    return None


def _choice(subject: t.Term, items: list[Open]) -> tuple[Choice, list[Open]]:
    cases: dict[int, list[Open]] = {}
    rest: list[Open] = []
    for number, parts in items:
        mine = next((p for p in parts if _subject(p) is subject), None)
        if mine is None:
            rest.append((number, parts))
        else:
            left = tuple(p for p in parts if p is not mine)
            cases.setdefault(int(mine.args[1].payload or 0), []).append((number, left))
    return Choice(subject, tuple((value, _trees(below)) for value, below in cases.items())), rest


def _common_part(items: list[Open]) -> t.Term:
    """The part of the first command's guard to test, without its `not`: what most of the next commands share.

    Among equals, what most of all commands share.
    """
    best, most = items[0][1][0], (0, 0)
    for part in items[0][1]:
        other = t.not_(part)
        shares = [part in parts or other in parts for _, parts in items]
        run = shares.index(False) if False in shares else len(shares)
        if (run, sum(shares)) > most:
            best, most = part, (run, sum(shares))
    return best.args[0] if best.op == "not" else best


def _test(condition: t.Term, items: list[Open]) -> tuple[Fork, list[Open]]:
    negation = t.not_(condition)
    then: list[Open] = []
    otherwise: list[Open] = []
    rest: list[Open] = []
    for number, parts in items:
        if condition in parts:
            then.append((number, tuple(p for p in parts if p is not condition)))
        elif negation in parts:
            otherwise.append((number, tuple(p for p in parts if p is not negation)))
        else:
            rest.append((number, parts))
    return Fork(condition, _trees(then), _trees(otherwise)), rest
