"""Runs as data: to be made again, made shorter, saved and read.

A run is the list of its moves and nothing else: no random numbers and no library's inner state. Whoever has
the file and the adapter makes the same run again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fencepost.checker.traces import STORE, ReplayError, load_data, save_data
from fencepost.conformance.compare import show_answer
from fencepost.conformance.moves import LEASE_MS, Move, Step
from fencepost.conformance.plans import Plan
from fencepost.conformance.session import Session
from fencepost.model import Scope
from fencepost.properties import Claim, Kind

FORMAT = 1
KIND = "run of an implementation"

MOST_PAIRS = 14
"""Runs up to this long are also tried without each two of their moves."""


def every_step_is_the_models(before: Any, after: Any, step: Any) -> object:
    """Every call is answered, and changes what is stored, as the model says."""
    del before, after, step
    return True  # the comparison that decides is made in `session`, where both sides are known


LOCK_STEP = Claim(
    "lock-step",
    "every_step_is_the_models",
    Kind.EACH_STEP,
    every_step_is_the_models,
    "Every call is answered, and changes what is stored, as the model says.",
    section="§2–§4",
)
"""The comparison with the model, as a claim like any other."""


def breaks(step: Step) -> tuple[str, ...]:
    """The names of all that a step breaks."""
    return ((LOCK_STEP.name,) if step.difference else ()) + step.broken


# -- runs as files


@dataclass(frozen=True, slots=True)
class SavedRun:
    """A run that broke something: the moves, what they were made in, and what they broke."""

    adapter: str
    protocol: str
    fingerprint: str
    scope: Scope
    moves: tuple[Move, ...]
    labels: tuple[str, ...]
    breaks: str
    difference: str

    def as_json(self) -> dict[str, Any]:
        """The run as plain data: its portable form."""
        return {
            "format": FORMAT,
            "kind": KIND,
            "adapter": self.adapter,
            "protocol": self.protocol,
            "fingerprint": self.fingerprint,
            "scope": {
                "name": self.scope.name,
                "sizes": dict(self.scope.sizes),
                "bounds": dict(self.scope.bounds),
                "switches": sorted(self.scope.switches),
            },
            "moves": [
                {
                    "label": label,
                    "action": move.action,
                    "arguments": list(move.arguments),
                    "wait_ms": move.wait_ms,
                    "lease_ms": move.lease_ms,
                }
                for move, label in zip(self.moves, self.labels, strict=True)
            ],
            "breaks": self.breaks,
            "difference": self.difference,
        }

    @property
    def token(self) -> str:
        """A short name made of the content."""
        text = json.dumps(self.as_json(), sort_keys=True)
        number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:5], "big")
        letters = "23456789abcdefghjkmnpqrstuvwxyz"
        return "".join(letters[number // len(letters) ** i % len(letters)] for i in range(6))

    def save(self, folder: Path = STORE) -> Path:
        """Write the run to a file in `folder` and give its path."""
        return save_data(folder, self.token, self.as_json())


def saved_run(plan: Plan, steps: Sequence[Step], name: str) -> SavedRun:
    """The run that these steps were, with the first difference from the model that they show."""
    protocol = plan.oracle.protocol
    return SavedRun(
        plan.adapter.name,
        protocol.name,
        plan.oracle.fingerprint,
        plan.oracle.scope,
        tuple(s.move for s in steps),
        tuple(s.label for s in steps),
        name,
        next((f"step {n}, {s.difference}" for n, s in enumerate(steps, 1) if s.difference), ""),
    )


def run_from_json(data: Mapping[str, Any], origin: str = "these data") -> SavedRun:
    """A run from plain data. ReplayError when it is none."""
    try:
        if data["kind"] != KIND:
            raise ReplayError(f"{origin} is a {data['kind']}, not a {KIND}")
        if data["format"] != FORMAT:
            raise ReplayError(
                f"{origin}: written by another version (format {data['format']}; this one reads {FORMAT})"
            )
        scope = data["scope"]
        return SavedRun(
            data["adapter"],
            data["protocol"],
            data["fingerprint"],
            Scope(scope["name"], scope["sizes"], scope["bounds"], frozenset(scope["switches"])),
            tuple(
                Move(m["action"], tuple(m["arguments"]), int(m["wait_ms"]), int(m["lease_ms"]))
                for m in data["moves"]
            ),
            tuple(m["label"] for m in data["moves"]),
            data["breaks"],
            data["difference"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReplayError(f"{origin} is no {KIND} ({type(error).__name__}: {error}); save it anew") from error


def read_run(path: Path | str) -> SavedRun:
    """The run in a file. ReplayError when there is none, or when the file is something else."""
    return run_from_json(load_data(Path(path), "run"), str(path))


# -- making a run again


def play(plan: Plan, moves: Iterable[Move]) -> list[Step]:
    """The steps of a run; moves that are not possible where they come are left out."""
    with Session(plan) as session:
        for move in moves:
            session.play(move)
        return session.steps


def until_broken(steps: Sequence[Step], name: str) -> list[Step]:
    """The steps up to the first that breaks `name`; none when nothing does."""
    for number, step in enumerate(steps, 1):
        if name in breaks(step):
            return list(steps[:number])
    return []


@dataclass(frozen=True, slots=True)
class Again:
    """A run made twice: whether `name` was broken both times, and the first thing that was not the same."""

    fails: bool
    steps: tuple[Step, ...]
    unsteady: str


def again(plan: Plan, moves: Sequence[Move], name: str) -> Again:
    """Make a run twice."""
    first, second = play(plan, moves), play(plan, moves)
    broken, broken_again = until_broken(first, name), until_broken(second, name)
    return Again(bool(broken and broken_again), tuple(broken or first), first_difference(first, second))


def first_difference(first: Sequence[Step], second: Sequence[Step]) -> str:
    """What the implementation first did otherwise the second time, as a sentence; "" for nothing."""
    for number, (a, b) in enumerate(zip(first, second, strict=False), 1):
        if a.told != b.told:
            return (
                f"step {number}, {a.label}, was answered {show_answer(a.told)} and then {show_answer(b.told)}"
            )
        if a.record != b.record:
            return f"after step {number}, {a.label}, something else was stored the second time"
    if len(first) != len(second):
        return f"one run came to {len(first)} steps and the other to {len(second)}"
    return ""


# -- making a run shorter


def shortened(plan: Plan, moves: Sequence[Move], name: str) -> list[Step]:
    """A run in which `name` is still broken, and from which no move and no two moves can be left out.

    Arguments and times are made plain where that breaks it too. Empty when the run breaks nothing when it is
    made again.
    """
    best = until_broken(play(plan, moves), name)
    while best:
        better = _better(plan, best, name)
        if better is None:
            break
        best = better
    return best


def _better(plan: Plan, steps: list[Step], name: str) -> list[Step] | None:
    """A run that breaks the same and is shorter, or as long and plainer; None when none is found."""
    moves = [s.move for s in steps]
    for tried in (*_without_some(moves), *_plainer(moves)):
        found = until_broken(play(plan, tried), name)
        if found and _cost(found) < _cost(steps):
            return found
    return None


def _cost(steps: Sequence[Step]) -> tuple[int, int, int]:
    """How long a run is, and how far from plain its arguments and times are."""
    moves = [s.move for s in steps]
    arguments = sum(sum(m.arguments) for m in moves)
    return len(moves), arguments, sum((m.wait_ms != 0) + (m.lease_ms != LEASE_MS) for m in moves)


def _without_some(moves: Sequence[Move]) -> Iterator[list[Move]]:
    """The moves without one of them, and then without two; the last one stays."""
    last = len(moves) - 1
    out = [{i} for i in reversed(range(last))]
    if len(moves) <= MOST_PAIRS:
        out += [{i, j} for j in reversed(range(last)) for i in reversed(range(j))]
    for leave_out in out:
        yield [m for i, m in enumerate(moves) if i not in leave_out]


def _plainer(moves: Sequence[Move]) -> Iterator[list[Move]]:
    """The moves with one of them made plainer: an argument the first of its kind, or a time as usual."""
    for place, move in enumerate(moves):
        plainer = [
            replace(move, arguments=(*move.arguments[:i], 0, *move.arguments[i + 1 :]))
            for i, code in enumerate(move.arguments)
            if code
        ]
        plainer += [replace(move, wait_ms=0), replace(move, lease_ms=LEASE_MS)]
        for other in plainer:
            if other != move:
                yield [*moves[:place], other, *moves[place + 1 :]]
