"""The words of a replay: commands, results, what a history is, and how a run ends (§15).

A history is the list of commands that a workflow has made, each with its result. It only ever grows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from fencepost.reference.implicit import ImplicitDifference
from fencepost.reference.keys import canonical_json, fingerprint
from fencepost.reference.values import ArgumentError, StoreError, text, whole

ARGUMENTS_VERSION = 1
"""The form in which arguments are recorded; part of their fingerprint."""


class ActivityFailedError(Exception):
    """An activity says that it definitely failed, which is a result like any other: it is recorded.

    The workflow gets it raised, each time the same, and may catch it. Any other exception of an activity
    leaves open whether it happened.
    """


class DamagedHistoryError(StoreError):
    """The history cannot be what was recorded: a position is missing, or a result comes before its command.

    It is never taken for an empty history. Nothing was called and nothing recorded.
    """


class CommandType(StrEnum):
    """What a workflow can ask of its runtime."""

    START = "start"
    NOW = "now"
    RANDOM = "random"
    NEW_ID = "new-id"
    CALL = "call"
    SLEEP = "sleep"
    FINISH = "finish"
    RAISE = "raise"
    """An exception that nobody caught: never recorded, but it may come where a command is recorded."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command, at its position from 0. `arguments` is canonical JSON, and `fingerprint` the hash over it.

    Two commands are the same if all but the text of the arguments is: their fingerprint stands for them.
    """

    position: int
    type: CommandType
    name: str
    arguments: str
    fingerprint: str
    definition: str

    def __post_init__(self) -> None:
        whole("Command", "position", self.position)
        if not isinstance(self.type, CommandType):
            raise ArgumentError(f"Command: type must be a CommandType, not {self.type!r}")
        for name in ("name", "arguments", "fingerprint", "definition"):
            text("Command", name, getattr(self, name))

    def __str__(self) -> str:
        asked = "" if self.arguments == "{}" else f" {self.arguments}"
        return self.type.value + (f" {self.name}" if self.name != self.type else "") + asked


def command(
    position: int, kind: CommandType, name: str, arguments: dict[str, Any], *, definition: str
) -> Command:
    """The command with these arguments. Raises `ArgumentError` for arguments that JSON does not have."""
    fingerprinted = fingerprint(kind.value, text("command", "name", name), ARGUMENTS_VERSION, arguments)
    return Command(position, kind, name, canonical_json(arguments), fingerprinted, definition)


class Outcome(StrEnum):
    """Where a result comes from."""

    VALUE = "value"
    """The command gave this value."""
    FAILED = "failed"
    """The activity definitely failed, for this reason."""
    ATTESTED = "attested"
    """A person found out that the activity gave this value; nothing is claimed of how it is known."""
    ATTESTED_FAILED = "attested-failed"
    """A person found out that the activity failed, for this reason."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a command: `content` is canonical JSON of the value, or of the reason of a failure."""

    outcome: Outcome
    content: str

    def __post_init__(self) -> None:
        if not isinstance(self.outcome, Outcome):
            raise ArgumentError(f"Result: outcome must be an Outcome, not {self.outcome!r}")
        text("Result", "content", self.content)

    def value(self) -> Any:
        """The value, made anew by each call. Raises `ActivityFailedError` for a failure."""
        if self.outcome in (Outcome.FAILED, Outcome.ATTESTED_FAILED):
            raise ActivityFailedError(json.loads(self.content))
        return json.loads(self.content)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One command of a history, and its result; None while it is not known whether the command happened."""

    command: Command
    result: Result | None


class History(Protocol):
    """Where the history of one run is kept. Whatever is recorded stays as it is.

    Each of its operations happens as a whole or not at all, also while others use the same history. An
    operation that raises may or may not have happened.
    """

    @property
    def run(self) -> str:
        """The name of the run, unique among all that share activities; keys are made of it."""
        ...

    def read(self) -> tuple[Recorded, ...]:
        """All that is recorded, in the order of positions."""
        ...

    def append(self, command: Command, result: Result | None) -> bool:
        """Record a command at its position, if it is the next and the one before has its result; whether."""
        ...

    def settle(self, position: int, result: Result) -> bool:
        """Record the result of the command at this position, if it has none yet; whether."""
        ...


@dataclass(frozen=True, slots=True)
class Activity:
    """What acts outside: files, network, models, tools. It is called with the arguments of the command.

    An `idempotent` one gets a key before them, as its first argument, and is called again with the same key
    when it is not known whether the first call happened: it must not act twice under one key (§6).
    """

    function: Callable[..., object]
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class ReplayedWorkflow:
    """A plain function that is given a `Runtime` and the arguments of the run, and `definition`: its version.

    The definition is any text that changes whenever the code does, such as `source_fingerprint` or the name
    of a release. A run goes on only under the definition that it was started with (§14).
    """

    name: str
    function: Callable[..., object]
    definition: str

    def __post_init__(self) -> None:
        text("ReplayedWorkflow", "name", self.name)
        text("ReplayedWorkflow", "definition", self.definition)
        if not callable(self.function):
            raise ArgumentError(f"ReplayedWorkflow: function must be callable, not {self.function!r}")


class Differing(StrEnum):
    """In what a command differs first from the recorded one."""

    TYPE = "type"
    NAME = "name"
    ARGUMENTS = "arguments"
    DEFINITION = "definition"
    MISSING = "missing"
    """The workflow comes to its end where a command is recorded."""
    SURPLUS = "surplus"
    """The workflow makes a command where its end is recorded."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first command that is not the recorded one; printed, it says what to do.

    `elsewhere` is the position at which the command is recorded that came now, if it is a later one.
    """

    run: str
    what: Differing
    recorded: Command
    now: Command
    elsewhere: int | None

    @property
    def position(self) -> int:
        """Where the replay stopped."""
        return self.recorded.position

    def __str__(self) -> str:
        from fencepost.reference.replay_report import report

        return report(self)


@dataclass(frozen=True, slots=True)
class Finished:
    """The workflow has come to its end, and gave this value."""

    value: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """The workflow has come to its end by a failure of an activity that it did not catch."""

    why: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The workflow sleeps; run it again at this time, in milliseconds of its clock, or later."""

    until_ms: int


@dataclass(frozen=True, slots=True)
class UnknownActivity:
    """An activity was started, and nothing is recorded of what came of it: it may or may not have happened.

    It is not called again, unless it is idempotent: then the next run does. Else find out what happened, and
    record that with `attest`. `raised` is what it raised just now, if that is how it came about.
    """

    command: Command
    raised: Exception | None = None


@dataclass(frozen=True, slots=True)
class Differs:
    """The replay stopped at the first difference. Nothing was called or recorded there.

    `raised` is what the workflow raised where a command is recorded, if that is the difference.
    """

    difference: Difference
    raised: Exception | None = None


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Somebody else recorded this position first. Nothing that was found here counts; run again."""

    position: int


Ending: TypeAlias = Finished | Failed | Waiting | UnknownActivity | Differs | Overtaken


@dataclass(frozen=True, slots=True)
class Replay:
    """How one run over a history ended.

    `served` is how many commands were answered from the history, `recorded` how many were added to it.
    `implicit_differences` are the implicit inputs that are not here as they were recorded; they do not stop a
    run, which uses the recorded ones.
    """

    ended: Ending
    served: int
    recorded: int
    implicit_differences: tuple[ImplicitDifference, ...]
