"""Replay, with an implementation: how each action is done, and where each variable is observed (§15).

The counterpart of the model of replay; `replay_handles` is what a run has open. Commands and results are read
from the history. What a worker does is observed as well, since the harness's own code sees it: where its
program stands, what it was given, and whether an activity is called. Values are numbers of which each is used
once, so that none is taken for another one that was the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fencepost.conformance.adapter import Answer, Capability, Ok, Refused, Surroundings, Unknown
from fencepost.conformance.adapter_replay import DRAWS, Made, ReplayAdapter
from fencepost.conformance.counterparts import Counterpart, Reach, refuse_without
from fencepost.conformance.mapping import Performance, performing
from fencepost.conformance.replay_handles import FINISH, Handles
from fencepost.conformance.replay_journeys import journeys
from fencepost.conformance.vocabulary import CannotEmbedError, MappingError, Seen
from fencepost.model import Scope, absent
from fencepost.model.domains import Element, Member
from fencepost.model.replay.state import Name, Standing, positions

if TYPE_CHECKING:
    from fencepost.conformance.session import Session

PERFORMANCES: dict[str, Performance] = {}

performs = performing(PERFORMANCES, needs=Capability.REPLAY, tells_of_row=False)


def open_handles(adapter: Any, world: Any, around: Surroundings, scope: Scope) -> Handles:
    """What a run of an adapter with replay has open. UsageError if it has not what that takes."""
    refuse_without(adapter, Capability.REPLAY, ReplayAdapter)
    return Handles(adapter, world, around, scope)


def _handles(session: Session) -> Handles:
    found = session.names.handles
    if not isinstance(found, Handles):
        raise MappingError(f"{session.plan.adapter.name}: there is no replay; {COUNTERPART.remedy()}")
    return found


# -- The worker and its workflow.


@performs("begin")
def begin(session: Session, w: Element) -> None:
    """The worker reads the history, and its program comes to its first line."""
    _handles(session).begin(w, f"v{session.model.code[w]}")


@performs("make_command")
def make_command(session: Session, w: Element, what: Member, fingerprint: int) -> None:
    """The program is told what to ask for; it asks once it is its turn."""
    position = session.model.at[w]
    _handles(session).asked[w.label] = _asked(what.name, fingerprint, position), fingerprint


def _asked(what: str, argument: int, position: int) -> str:
    """What a command is called: of draws, which have no arguments, another one for each argument."""
    return DRAWS[(argument + position) % len(DRAWS)] if what == Name.draw.name else what


@performs("serve")
def serve(session: Session, w: Element) -> Answer | None:
    """The program makes its command, where the history has the result. An answer says what is wrong."""
    handles = _handles(session)
    position, early = handles.runs[w.label].passed, w.label in handles.early
    handles.make(w)
    return _stopped_there(session, w, early=early) or _given_exactly(session, w, position)


def _stopped_there(session: Session, w: Element, *, early: bool) -> Answer | None:
    """Why a stop is no right one: the difference that is reported is another one, or elsewhere.

    One that came `early`, before the program made anything, can only be of the definition.
    """
    model, run = session.model, _handles(session).runs.get(w.label)
    ended = None if run is None else run.ended
    if ended is None or ended.how != "stopped" or not model.command[model.at[w]].present:
        return None
    if ended.position not in (None, model.at[w]):
        return Unknown(f"it stopped at {model.at[w]}, and tells of a difference at {ended.position}")
    recorded, asked = model.command[model.at[w]].value, model.asks[w].value
    if recorded == asked:
        return None  # that it stopped at all is for the claims to say
    differs = "definition"
    if not early and recorded.fingerprint != asked.fingerprint:
        differs = "command" if asked.what == Name.draw else "arguments"  # of draws it is another one
    if not early and recorded.what != asked.what:
        differs = "command"
    if ended.differs in ("", differs):
        return None
    return Unknown(f"it stopped at another {differs}, and tells of another {ended.differs}")


def _given_exactly(session: Session, w: Element, position: int) -> Answer | None:
    """Why what the program was given is not the very number that is recorded, if it stands for the same."""
    handles = _handles(session)
    run, history = handles.runs.get(w.label), handles.observe()
    if run is None or run.passed == position or run.ended is not None or position >= len(history):
        return None
    given, recorded = run.given, history[position].result
    if given is None or recorded is None or given == recorded:
        return None
    if handles.value(given) != handles.value(recorded):
        return None  # that is seen by the variable
    return Unknown(f"the program was given {given}, and {recorded} is recorded")


@performs("meet_unfinished")
def meet_unfinished(session: Session, w: Element) -> Answer | None:
    """The program makes its command, where one was recorded without a result."""
    handles, early = _handles(session), w.label in _handles(session).early
    handles.make(w)
    return _stopped_there(session, w, early=early)


@performs("record_at_once")
def record_at_once(session: Session, w: Element, value: int) -> Answer:
    """The program makes its command, and what it draws is this value."""
    handles, run = _handles(session), _handles(session).runs[w.label]
    position, (what, _) = run.passed, handles.asked[w.label]
    run.drawn = handles.number(value)
    handles.make(w)
    run.drawn = None
    if run.ended is not None and run.ended.how == "overtaken":
        return Refused("position-taken")
    if what == FINISH and run.ended is not None and run.ended.how == "finished":
        handles.ends.setdefault(position, value)
    return Ok()


@performs("record_start")
def record_start(session: Session, w: Element) -> Answer:
    """The program makes its command, which leads to the activity."""
    handles, run = _handles(session), _handles(session).runs[w.label]
    handles.make(w)
    return Refused("position-taken") if run.ended and run.ended.how == "overtaken" else Ok()


@performs("perform")
def perform(session: Session, w: Element, value: int) -> None:
    """The activity has acted; it has not given its value yet."""
    handles = _handles(session)
    handles.performed[w.label] = handles.number(value)


@performs("settle")
def settle(session: Session, w: Element) -> Answer:
    """The activity gives its value."""
    handles, run = _handles(session), _handles(session).runs[w.label]
    handles.settle(w)
    return Refused("result-recorded") if run.ended and run.ended.how == "overtaken" else Ok()


# -- What goes wrong.


@performs("crash")
def crash(session: Session, w: Element) -> None:
    """The worker's run dies where it stands, and its handle is gone."""
    _handles(session).crash(w)


@performs("restart")
def restart(session: Session, w: Element) -> None:
    """The worker will open a new handle."""
    _handles(session).down.discard(w.label)


@performs("deploy")
def deploy(session: Session, w: Element) -> None:
    """The worker will run its next program under another definition."""


# -- What is observed.


def _seen(seen: Seen) -> tuple[tuple[Made, ...], Handles]:
    found, handles = seen.observation.more, seen.names.handles
    if not isinstance(handles, Handles) or not isinstance(found, tuple):
        raise MappingError("replay is observed by what `observe_history` gives; it gave something else")
    if len(found) > seen.names.scope.size(positions):
        raise CannotEmbedError(f"{len(found)} commands are recorded, which is beyond the scope")
    return found, handles


def _command(made: Made, position: int) -> tuple[Any, ...]:
    what, argument = made.what, made.argument
    if what in DRAWS:
        what, argument = Name.draw.name, (DRAWS.index(what) - position) % len(DRAWS)
    if what not in {member.name for member in Name.members}:
        raise CannotEmbedError(f"a command {what!r} is recorded at position {position}, which nobody makes")
    if not made.definition[1:].isdigit():
        raise CannotEmbedError(f"a command of the definition {made.definition!r} is recorded")
    return (getattr(Name, what), argument, int(made.definition[1:]))


def _commands(seen: Seen) -> tuple[Any, ...]:
    found, _ = _seen(seen)
    cells = [_command(made, position) for position, made in enumerate(found)]
    return (*cells, *[absent] * (seen.names.scope.size(positions) - len(cells)))


def _results(seen: Seen) -> tuple[Any, ...]:
    found, handles = _seen(seen)
    cells: list[Any] = []
    for position, made in enumerate(found):
        if made.result is None:
            cells.append(absent)
        elif made.what == FINISH:
            cells.append(handles.ends.get(position, 0))
        else:
            cells.append(handles.value(made.result))
    return (*cells, *[absent] * (seen.names.scope.size(positions) - len(cells)))


def _settled(seen: Seen) -> int:
    found, _ = _seen(seen)
    return max((n for n, made in enumerate(found, 1) if made.result is not None), default=0)


def _standing(seen: Seen) -> tuple[Any, ...]:
    _, handles = _seen(seen)
    return tuple(getattr(Standing, handles.standing(w)) for w in handles.all_workers())


def _at(seen: Seen) -> tuple[int, ...]:
    _, handles = _seen(seen)
    runs = [handles.runs.get(w.label) for w in handles.all_workers()]
    return tuple(0 if run is None else run.passed for run in runs)


def _got(seen: Seen) -> tuple[int, ...]:
    _, handles = _seen(seen)
    cells = []
    for w in handles.all_workers():
        run = handles.runs.get(w.label)
        if run is None or run.passed == 0:
            cells.append(0)
        elif run.ended is not None and run.ended.how == "finished":
            cells.append(handles.ends.get(run.passed - 1, 0))
        else:
            cells.append(handles.value(run.given or 0))
    return tuple(cells)


def _asks(seen: Seen) -> tuple[Any, ...]:
    _, handles = _seen(seen)
    cells: list[Any] = []
    for w in handles.all_workers():
        asked, run = handles.asked.get(w.label), handles.runs.get(w.label)
        if asked is None or run is None:
            cells.append(absent)
        else:
            cells.append(_command(Made(*asked, run.definition, None), run.passed))
    return tuple(cells)


STORED: Mapping[str, tuple[Callable[[Seen], Any], Capability | None]] = {
    "command": (_commands, Capability.REPLAY),
    "result": (_results, Capability.REPLAY),
    "settled": (_settled, Capability.REPLAY),
    "standing": (_standing, Capability.REPLAY),
    "at": (_at, Capability.REPLAY),
    "got": (_got, Capability.REPLAY),
    "asks": (_asks, Capability.REPLAY),
}
"""For each variable that is observed: its value in rest, and the capability without which it is not."""


# -- How far runs go.

_FAULTS = frozenset({"crash", "direct_call", "definition_changed"})

SCOPE = Scope(
    "replay",
    sizes={"worker": 2},
    bounds={"position": 4, "value": 1, "definition": 1},
    switches=_FAULTS,
    why="two workers that die, get other code, and run code that goes by what it finds outside",
)
GOALS = SCOPE.but(
    name="goals",
    bounds={"position": 2, "value": 1, "definition": 1},
    why="two commands, which are enough for every witness",
)
SAME_CODE = SCOPE.but(
    name="replay of the same code",
    bounds={"position": 4, "value": 1, "definition": 0},
    switches=frozenset({"crash"}),
    why="code that stays, and takes everything from the runtime: no replay of it may stop",
)

COUNTERPART = Counterpart(
    model="replay",
    where=__name__,
    performances=PERFORMANCES,
    stored=STORED,
    reach=lambda _: Reach(SCOPE, goals=(GOALS,), share=0.2, without=SAME_CODE),
    marked_by="plan",
    needs=Capability.REPLAY,
    to_write="write what ReplayAdapter names",
    open_handles=open_handles,
    assumes="one history, each value used once, programs and activities of the checks' own",
    journeys=lambda scope: journeys(SCOPE.but(switches=scope.switches)),
)
