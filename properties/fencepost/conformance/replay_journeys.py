"""Where runs beside replay go besides the witnesses: code that is replayed, or differs at one place (§15).

One worker runs some code and dies behind its last command or in the middle of it; another one replays what is
recorded, with the same code or with code that differs in one way at one position, and goes on behind it. A
run has moves that only a wrong implementation comes to: that an activity acts again, and what follows a stop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost.conformance.goals import Goal
from fencepost.model import Scope
from fencepost.model.core.state import workers
from fencepost.model.replay.state import Name, positions

DRAW, CALL, SEND, FINISH = (Name.members.index(m) for m in (Name.draw, Name.call, Name.send, Name.finish))

CODES = ((CALL, DRAW, SEND), (DRAW, SEND, CALL), (SEND, CALL, DRAW))
"""What is recorded: each kind of command at each position."""

WAYS = ("another command", "other arguments", "another definition")
"""How code may differ. Where a kind of command differs its type or its name does, by what it is."""


@dataclass(slots=True)
class _Walk:
    """The steps of one run, as they are put together. Values take turns, so that each shows in the next."""

    steps: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    got: dict[int, int] = field(default_factory=dict)

    def do(self, action: str, *codes: int) -> None:
        """One more step."""
        self.steps.append((action, codes))

    def make(self, w: int, what: int, *, otherwise: bool = False) -> None:
        """The program makes a command; its argument is what it was given last, or `otherwise` is not."""
        got = self.got.get(w, 0)
        self.do("make_command", w, what, 1 - got if otherwise else got)

    def record(self, w: int, what: int, position: int, *, dies: bool = False) -> None:
        """A command that nobody has made is recorded with its value; an activity `dies` before its result."""
        value = (position + 1) % 2
        if what in (DRAW, FINISH):
            self.do("record_at_once", w, value)
        else:
            self.do("record_start", w)
            self.do("perform", w, value)
            if not dies:
                self.do("settle", w)  # otherwise nobody knows what it gave
        self.got[w] = value

    def serve(self, w: int, what: int, position: int) -> None:
        """A command is answered from the history; a runner that asks an activity again, does that now."""
        value = (position + 1) % 2
        self.do("serve", w)
        if what in (CALL, SEND):
            self.act(w, value)
        self.got[w] = value

    def meet(self, w: int, position: int) -> None:
        """An activity was begun and has no result: it acts again, if it has a key."""
        self.do("meet_unfinished", w)
        self.act(w, (position + 1) % 2)

    def act(self, w: int, value: int) -> None:
        """An activity that was called acts, and its value is recorded."""
        self.do("perform", w, value)
        self.do("settle", w)


def journeys(scope: Scope) -> Iterator[Goal]:
    """The runs that make sense in a scope, by the codes of the arguments."""
    if scope.size(workers) < 2:  # one that dies and one that replays
        return
    most = max(1, scope.size(positions) - 2)
    for code in CODES:
        yield _replayed(code[:most])
        yield _replayed(code[:most], dies=True)
        if "direct_call" in scope.switches:
            for position in range(len(code[:most])):
                yield _replayed(code[:most], differs=position)
                yield _replayed(code[:most], differs=position, otherwise=True)
        if "definition_changed" in scope.switches:
            yield _replayed(code[:most], deploys=True)


def _replayed(
    code: tuple[int, ...],
    *,
    dies: bool = False,
    differs: int | None = None,
    otherwise: bool = False,
    deploys: bool = False,
) -> Goal:
    """One worker runs the code, and another one replays it.

    It `differs` at a position, there by its argument if that is `otherwise`; or its definition does.
    """
    walk, first, second = _Walk(), 0, 1
    walk.do("begin", first)
    for position, what in enumerate(code):
        walk.make(first, what)
        walk.record(first, what, position, dies=dies and position == len(code) - 1)
    walk.do("crash", first)
    if deploys:
        walk.do("deploy", second)
    walk.do("begin", second)
    for position, what in enumerate(code):
        other = differs == position
        asked = CODES[0][(CODES[0].index(what) + 1) % 3] if other and not otherwise else what
        walk.make(second, asked, otherwise=other and otherwise)
        if dies and position == len(code) - 1 and what in (CALL, SEND):
            walk.meet(second, position)
        else:
            walk.serve(second, what, position)
    walk.make(second, FINISH)
    walk.record(second, FINISH, len(code))
    if differs is None and not deploys and not dies:
        _once_more(walk, code, first)
    how = f"{WAYS[1] if otherwise else WAYS[0]} at {differs}" if differs is not None else "the same"
    name = f"{'-'.join(Name.members[what].name for what in code)}: {WAYS[2] if deploys else how}"
    return Goal(f"{name}{', begun and not ended' if dies else ''}", tuple(walk.steps))


def _once_more(walk: _Walk, code: tuple[int, ...], w: int) -> None:
    """The worker that has died replays all of it, to its end."""
    walk.do("restart", w)
    walk.do("begin", w)
    walk.got[w] = 0
    for position, what in enumerate((*code, FINISH)):
        walk.make(w, what)
        walk.serve(w, what, position)
