"""Schedules as data: the start, what each worker does, and the choices. To be run again, made smaller, saved.

A tape holds no random numbers and no library's inner state: whoever has the file and the adapter runs the
same schedule again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fencepost.checker.subject import refuse_beyond_limits
from fencepost.checker.traces import STORE, ReplayError, load_data, save_data
from fencepost.conformance.adapter import Adapter
from fencepost.conformance.gate import DIES, DIES_AFTER, LETTERS
from fencepost.conformance.moves import RESTART, WAIT, Move
from fencepost.conformance.plans import Plan
from fencepost.conformance.refinement import Memory
from fencepost.conformance.runs import LOCK_STEP
from fencepost.conformance.schedules import (
    Follow,
    Item,
    Outcome,
    Schedule,
    Script,
    interleavings,
    switches,
)
from fencepost.conformance.stage import Ready, Stage
from fencepost.conformance.subjects import subject_of
from fencepost.model import FencepostError, Scope

FORMAT = 1
KIND = "schedule of an implementation"

MOST_TRIES = 3_000
"""Schedules that are run to make one smaller: a second or two."""


@dataclass(frozen=True, slots=True)
class Tape:
    """One schedule: the moves to its start, what each worker does, who goes on when, and what it breaks."""

    moves: tuple[Move, ...]
    scripts: tuple[Script, ...] = ()
    choices: tuple[str, ...] = ()
    breaks: str = ""

    @property
    def cost(self) -> tuple[int, ...]:
        """What is to be small: faults, then switches, then the way to the start, then all else.

        A tape that ends with its start shows no statements, and so is the last resort.
        """
        deaths = sum(c[1:] in (DIES, DIES_AFTER) for c in self.choices)
        items = sum(len(s) for s in self.scripts)
        return (
            int(not self.scripts),
            deaths,
            switches(self.choices),
            len(self.moves) + items,
            len(self.choices),
        )


@dataclass(frozen=True, slots=True)
class SavedTape:
    """A tape with what it was made in."""

    tape: Tape
    adapter: str
    protocol: str
    fingerprint: str
    scope: Scope
    difference: str = ""

    def as_json(self) -> dict[str, Any]:
        """The tape as plain data: its portable form."""
        tape, scope = self.tape, self.scope
        return {
            "format": FORMAT,
            "kind": KIND,
            "adapter": self.adapter,
            "protocol": self.protocol,
            "fingerprint": self.fingerprint,
            "scope": {
                "name": scope.name,
                "sizes": dict(scope.sizes),
                "bounds": dict(scope.bounds),
                "switches": sorted(scope.switches),
            },
            "moves": [
                {
                    "action": m.action,
                    "arguments": list(m.arguments),
                    "wait_ms": m.wait_ms,
                    "lease_ms": m.lease_ms,
                }
                for m in tape.moves
            ],
            "scripts": [
                [
                    {
                        "action": i.action,
                        "arguments": None if i.codes is None else list(i.codes),
                        "worker": i.worker,
                    }
                    for i in script
                ]
                for script in tape.scripts
            ],
            "choices": list(tape.choices),
            "breaks": tape.breaks,
            "difference": self.difference,
        }

    @property
    def token(self) -> str:
        """A short name made of the content."""
        text = json.dumps(self.as_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def save(self, folder: Path = STORE) -> Path:
        """Write the tape to a file in `folder` and give its path."""
        return save_data(folder, self.token, self.as_json())


def saved_tape(plan: Plan, tape: Tape, difference: str) -> SavedTape:
    """A tape with what it was made in."""
    oracle = plan.oracle
    return SavedTape(
        tape, plan.adapter.name, oracle.protocol.name, oracle.fingerprint, oracle.scope, difference
    )


def tape_from_json(data: Mapping[str, Any], origin: str = "these data") -> SavedTape:
    """A tape from plain data. ReplayError when it is none, or names what there is not."""
    try:
        kind, made_by = data["kind"], data["format"]
        saved = _from_json(data) if (kind, made_by) == (KIND, FORMAT) else None
    except FencepostError as error:
        raise ReplayError(f"{origin} is no {KIND} ({error}); save it anew") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReplayError(f"{origin} is no {KIND} ({type(error).__name__}: {error}); save it anew") from error
    if kind != KIND:
        raise ReplayError(f"{origin} is a {kind}, not a {KIND}")
    if saved is None:
        raise ReplayError(f"{origin}: written by another version (format {made_by}; this one reads {FORMAT})")
    return saved


def _from_json(data: Mapping[str, Any]) -> SavedTape:
    scope = data["scope"]
    tape = Tape(
        tuple(
            Move(_text(m["action"]), _codes(m["arguments"]), _number(m["wait_ms"]), _number(m["lease_ms"]))
            for m in _list(data["moves"])
        ),
        tuple(
            tuple(
                Item(
                    _text(i["action"]),
                    None if i["arguments"] is None else _codes(i["arguments"]),
                    _text(i["worker"], empty=True),
                )
                for i in _list(script)
            )
            for script in _list(data["scripts"])
        ),
        tuple(_choice(c, len(data["scripts"])) for c in _list(data["choices"])),
        _text(data["breaks"]),
    )
    switches = frozenset(_text(s) for s in _list(scope["switches"]))
    made_in = Scope(_text(scope["name"]), dict(scope["sizes"]), dict(scope["bounds"]), switches)
    refuse_beyond_limits(made_in)
    if len(tape.scripts) > len(LETTERS):
        raise ValueError(f"{len(tape.scripts)} scripts; there are at most {len(LETTERS)} workers")
    saved = SavedTape(
        tape,
        _text(data["adapter"], empty=True),
        _text(data["protocol"]),
        _text(data["fingerprint"]),
        made_in,
        _text(data["difference"], empty=True),
    )
    _refuse_unknown(saved)
    return saved


def _list(found: Any) -> Sequence[Any]:
    if not isinstance(found, list | tuple):
        raise TypeError(f"{found!r} is no list")
    return found


def _text(found: Any, *, empty: bool = False) -> str:
    if not isinstance(found, str) or not (found or empty):
        raise TypeError(f"{found!r} is no name")
    return found


def _number(found: Any) -> int:
    if type(found) is not int or found < 0:
        raise TypeError(f"{found!r} is no number from 0")
    return found


def _codes(found: Any) -> tuple[int, ...]:
    return tuple(_number(code) for code in _list(found))


def _choice(found: Any, workers: int) -> str:
    text = _text(found)
    if text[0] not in LETTERS[:workers] or text[1:] not in ("", DIES, DIES_AFTER):
        raise ValueError(f"{text!r} is no choice of one of {workers} workers")
    return text


def _refuse_unknown(saved: SavedTape) -> None:
    """ValueError for a name that the model and its claims do not have, if that model is still there."""
    subject = subject_of(saved.protocol)
    if saved.protocol != subject.protocol.name:
        return
    names = {*subject.protocol.actions, WAIT, RESTART}
    named = [m.action for m in saved.tape.moves] + [i.action for s in saved.tape.scripts for i in s]
    for action in named:
        if action not in names:
            raise ValueError(f"{action!r} is no action; there are {', '.join(sorted(names))}")
    if saved.tape.breaks != LOCK_STEP.name and saved.tape.breaks not in {
        c.name for c in subject.claims.promises()
    }:
        raise ValueError(f"{saved.tape.breaks!r} is no claim of {saved.protocol}")


def read_tape(path: Path | str) -> SavedTape:
    """The tape in a file. ReplayError when there is none, or when the file is something else."""
    return tape_from_json(load_data(Path(path), "tape"), str(path))


# -- running a tape


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a tape. `outcome` is None when it ends with its start."""

    ready: Ready
    outcome: Outcome | None

    @property
    def breaks(self) -> tuple[str, ...]:
        """The names of all that it breaks."""
        return self.ready.strays + (() if self.outcome is None else self.outcome.breaks)

    @property
    def difference(self) -> str:
        """The first difference from the model."""
        first = next((s.difference for s in self.ready.steps if s.difference), "")
        return first or ("" if self.outcome is None else self.outcome.account.difference)

    @property
    def record(self) -> tuple[Any, ...]:
        """What the implementation did."""
        steps = tuple(s.record for s in self.ready.steps)
        return steps, None if self.outcome is None else self.outcome.record


def play_tape(stage: Stage, tape: Tape) -> Played:
    """Run a tape on a stage."""
    ready = stage.ready(tape.moves)
    if not tape.scripts:
        return Played(ready, None)
    return Played(ready, Schedule(stage, Memory(), tape.scripts).run(ready, Follow(tape.choices)))


@dataclass(frozen=True, slots=True)
class Twice:
    """A tape run twice: whether it broke the same both times, and the first thing that was not the same."""

    fails: bool
    played: Played
    unsteady: str


def play_twice(stage: Stage, tape: Tape) -> Twice:
    """Run a tape twice."""
    first, second = play_tape(stage, tape), play_tape(stage, tape)
    fails = tape.breaks in first.breaks and tape.breaks in second.breaks
    return Twice(fails, first, "" if first.record == second.record else _unsteady(first, second))


def _unsteady(first: Played, second: Played) -> str:
    for number, (one, other) in enumerate(zip(first.ready.steps, second.ready.steps, strict=False), 1):
        if one.record != other.record:
            return f"step {number} to the start, {one.label}, ended otherwise the second time"
    if first.outcome is None or second.outcome is None:
        return "one run came further than the other"
    pairs = zip(first.outcome.account.events, second.outcome.account.events, strict=False)
    for number, (a, b) in enumerate(pairs, 1):
        if (a.who, a.text, a.note, a.changes) != (b.who, b.text, b.note, b.changes):
            return (
                f"statement {number} of the schedule was {a.who}'s {a.text!r} and then {b.who}'s {b.text!r}"
            )
    return "the same statements were answered or left something stored otherwise the second time"


@dataclass(frozen=True, slots=True)
class ReplayedTape:
    """A saved tape run again, twice: whether it still fails, what is different now, and what happened."""

    fails: bool
    breaks: str
    difference: str
    unsteady: str
    changed: str
    """What is not as it was when the tape was saved: the model, or the name of the adapter; else empty."""
    played: Played


def replay_tape(path: Path | str, adapter: Adapter) -> ReplayedTape:
    """Run a saved tape again, twice, and say whether it still breaks what it broke. Raises ReplayError."""
    from fencepost.conformance.verify import prepare

    saved = read_tape(path)
    plan, _ = prepare(adapter, scope=saved.scope, subject=subject_of(saved.protocol, adapter.model_variant))
    with Stage(plan) as stage:
        twice = play_twice(stage, saved.tape)
    protocol = plan.oracle.protocol
    changes = []
    if saved.adapter != adapter.name:
        changes.append(f"the schedule was run with {saved.adapter}")
    if saved.protocol != protocol.name:
        changes.append(f"its model was {saved.protocol}, and now is {protocol.name}")
    elif saved.fingerprint != plan.oracle.fingerprint:
        changes.append("the model has changed since")
    lost = len(saved.tape.moves) - len(twice.played.ready.moves)
    if lost:
        changes.append(f"{lost} of the {len(saved.tape.moves)} moves to its start are not possible any more")
    outcome = twice.played.outcome
    if outcome is not None and (outcome.strayed or outcome.choices != saved.tape.choices) and not twice.fails:
        changes.append("the schedule is not possible as it was")
    return ReplayedTape(
        twice.fails,
        saved.tape.breaks,
        twice.played.difference,
        twice.unsteady,
        "; ".join(changes),
        twice.played,
    )


# -- making a tape smaller


def shrunk(stage: Stage, tape: Tape) -> Tape:
    """A tape that breaks the same, with fewer faults, then fewer switches, then fewer moves to its start."""
    best, tries = tape, 0
    better: Tape | None = tape
    while better is not None and tries < MOST_TRIES:
        better = None
        for tried in _smaller(best):
            tries += 1
            found = _still(stage, tried)
            if found is not None and found.cost < best.cost:
                best = better = found
                break
        if better is None:
            better = _calmer(stage, best)
            best = better or best
            tries += 1
    return best


def _still(stage: Stage, tape: Tape) -> Tape | None:
    """The tape as it really ran, if it still breaks the same; without what came after."""
    played = play_tape(stage, tape)
    if tape.breaks not in played.breaks:
        return None
    if played.outcome is None:
        return replace(tape, moves=played.ready.moves)
    if tape.breaks in played.ready.strays:
        return None
    return replace(tape, moves=played.ready.moves, choices=played.outcome.choices)


def _smaller(tape: Tape) -> Iterator[Tape]:
    for place, choice in enumerate(tape.choices):
        if choice[1:]:
            yield replace(tape, choices=(*tape.choices[:place], choice[0], *tape.choices[place + 1 :]))
    for number, script in enumerate(tape.scripts):
        for place in range(len(script)):
            fewer = (*script[:place], *script[place + 1 :])
            scripts = (*tape.scripts[:number], fewer, *tape.scripts[number + 1 :])
            yield replace(tape, scripts=scripts)
            yield replace(tape, scripts=scripts, choices=())
    moves = tape.moves
    for leave_out in _some(len(moves)):
        yield replace(tape, moves=tuple(m for i, m in enumerate(moves) if i not in leave_out))
    for place, move in enumerate(moves):
        for i, code in enumerate(move.arguments):
            if code:
                plainer = replace(move, arguments=(*move.arguments[:i], 0, *move.arguments[i + 1 :]))
                yield replace(tape, moves=(*moves[:place], plainer, *moves[place + 1 :]))


def _some(length: int) -> Iterator[Sequence[int]]:
    yield from ((i,) for i in reversed(range(length)))
    yield from ((i, j) for j in reversed(range(length)) for i in reversed(range(j)))


def _calmer(stage: Stage, tape: Tape) -> Tape | None:
    """The same with fewer switches between workers, if there is such a schedule without a death."""
    bound = switches(tape.choices) - 1
    if bound < 0 or any(c[1:] for c in tape.choices):
        return None
    ready = stage.ready(tape.moves)
    schedule = Schedule(stage, Memory(), tape.scripts)
    for number, outcome in enumerate(
        interleavings(lambda policy: schedule.run(ready, policy), most_switches=bound)
    ):
        if tape.breaks in outcome.breaks and switches(outcome.choices) <= bound:
            return replace(tape, choices=outcome.choices)
        if number >= MOST_TRIES:
            break
    return None
