"""Says in words where a replay first differs from its history, and what to do about it (§15)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from fencepost.reference.replay_values import Command, CommandType, Difference, Differing, Recorded

_OUTSIDE: Final = (
    "the code takes something from outside that is not recorded: take the time, chance and identifiers from "
    "the runtime, and put files, network, model and tool calls into activities"
)
_ORDER: Final = (
    "the code makes other commands than those recorded, or in another order: run this history with the code "
    "that recorded it; if the code is the same, it depends on something that is not recorded"
)
_ADVICE: Final[Mapping[Differing, str]] = {
    Differing.TYPE: _ORDER,
    Differing.NAME: _ORDER,
    Differing.ARGUMENTS: (
        f"{_OUTSIDE}; if the code was changed, run this history with the code that recorded it"
    ),
    Differing.DEFINITION: (
        "the code was changed since the run started: run this history with the code of the recorded "
        "definition, and start new runs with the new one"
    ),
    Differing.MISSING: _ORDER,
    Differing.SURPLUS: _ORDER,
}


def difference(run: str, history: tuple[Recorded, ...], now: Command) -> Difference | None:
    """In what the command that came now differs first from the recorded one; None if it is the same."""
    recorded = history[now.position].command
    what = _what(recorded, now)
    if what is None:
        return None
    later = (each.command for each in history[now.position + 1 :])
    elsewhere = (each.position for each in later if _what(each, now) is None)
    return Difference(run, what, recorded, now, next(elsewhere, None))


def _what(recorded: Command, now: Command) -> Differing | None:
    if recorded.type != now.type:
        if now.type in (CommandType.FINISH, CommandType.RAISE):
            return Differing.MISSING
        return Differing.SURPLUS if recorded.type is CommandType.FINISH else Differing.TYPE
    if recorded.name != now.name:
        return Differing.NAME
    if recorded.fingerprint != now.fingerprint:
        return Differing.ARGUMENTS
    return Differing.DEFINITION if recorded.definition != now.definition else None


def report(found: Difference) -> str:
    """The difference in a few lines, for a person."""
    lines = [
        f"The replay of {found.run} stopped at position {found.position}: {_headline(found)}.",
        f"  recorded  {found.recorded}",
        f"  now       {found.now}",
    ]
    if found.what is Differing.ARGUMENTS:
        lines += [f"  {line}" for line in _members(found)]
    if found.what is Differing.DEFINITION:
        lines.append(f"  the definition was {found.recorded.definition}, and is {found.now.definition}")
    if found.elsewhere is not None:
        lines.append(f"  what came now is recorded at position {found.elsewhere}: the order has changed")
    lines += ["  Nothing was called or recorded at this position.", f"  What to do: {_ADVICE[found.what]}."]
    return "\n".join(lines)


def _headline(found: Difference) -> str:
    match found.what:
        case Differing.MISSING if found.now.type is CommandType.RAISE:
            return f"the workflow raised {found.now.name} where a command is recorded"
        case Differing.MISSING:
            return "the workflow ended where a command is recorded"
        case Differing.SURPLUS:
            return "the workflow went on where its end is recorded"
        case Differing.ARGUMENTS if found.now.type is CommandType.FINISH:
            return "the workflow ended with another result"
        case Differing.TYPE | Differing.NAME:
            return "another command came than the one that is recorded"
        case Differing.DEFINITION:
            return "the definition of the workflow is another"
        case _:
            return f"the arguments of {found.now.name} differ"


def _members(found: Difference) -> list[str]:
    recorded, now = json.loads(found.recorded.arguments), json.loads(found.now.arguments)
    return [
        f"{name} {_was(recorded, name)}, and {_is(now, name)}"
        for name in sorted(recorded.keys() | now.keys())
        if name not in recorded or name not in now or _text(recorded[name]) != _text(now[name])
    ]


def _was(members: dict[str, Any], name: str) -> str:
    return f"was {_text(members[name])}" if name in members else "was not given"


def _is(members: dict[str, Any], name: str) -> str:
    return f"is {_text(members[name])}" if name in members else "is not given"


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
