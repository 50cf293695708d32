"""A runner of replays over a list, about as small as one can be, with bugs to switch on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from fencepost.conformance import Capability, Conformance, Observation, Row, Surroundings, Worker, verify
from fencepost.conformance.adapter_replay import Ended, Made, Outside, Program
from fencepost.conformance.subjects import subject_of


class _OverError(BaseException):
    """The run is over, as it says."""

    def __init__(self, ended: Ended) -> None:
        super().__init__()
        self.ended = ended


@dataclass
class ListRun:
    """One run over the list: the commands that its program is given."""

    history: list[Made]
    definition: str
    outside: Outside
    bug: str
    position: int = 0
    known: tuple[Made, ...] = ()

    def __post_init__(self) -> None:
        self.known = tuple(self.history)

    def draw(self, what: str) -> int:
        return self._answered(what, 0) or self._recorded(what, 0, self.outside.draw())

    def call(self, argument: int) -> int:
        return self._activity("call", argument)

    def send(self, argument: int) -> int:
        return self._activity("send", argument)

    def finish(self, argument: int) -> None:
        if self._answered("finish", argument) is None:
            self._recorded("finish", argument, 0)

    def _activity(self, what: str, argument: int) -> int:
        answer = self._answered(what, argument)
        if answer is not None:
            return answer
        if self.position < len(self.known):
            if what == "call" and self.bug != "acts twice":
                raise _OverError(Ended("unknown", self.position))
        else:
            self._append(Made(what, argument, self.definition, None))
        result = self.outside.act(what, argument)
        if self.history[self.position].result is not None:
            raise _OverError(Ended("overtaken", self.position))
        self.history[self.position] = replace(self.history[self.position], result=result)
        self.position += 1
        return result

    def _answered(self, what: str, argument: int) -> int | None:
        """The recorded result of a command, if it has one."""
        if self.position >= len(self.known):
            return None
        found = self.known[self.position]
        for differs, have, want in (
            ("command", found.what, what),
            ("arguments", found.argument, argument),
            ("definition", found.definition, self.definition),
        ):
            if have != want and differs != self.bug:
                raise _OverError(Ended("stopped", self.position, differs))
        if found.result is None:
            return None
        self.position += 1
        return self.outside.draw() if self.bug == "draws anew" and what != "finish" else found.result

    def _recorded(self, what: str, argument: int, result: int) -> int:
        self._append(Made(what, argument, self.definition, result))
        self.position += 1
        return result

    def _append(self, made: Made) -> None:
        if len(self.history) > self.position and self.bug != "last one wins":
            raise _OverError(Ended("overtaken", self.position))
        self.history[self.position :] = [made]


@dataclass
class ListReplayer:
    """A handle, which remembers nothing."""

    history: list[Made]
    bug: str

    def run(self, program: Program, *, definition: str, outside: Outside) -> Ended:
        run = ListRun(self.history, definition, outside, self.bug)
        try:
            run.finish(program(run))
        except _OverError as over:
            return over.ended
        return Ended("finished")

    def close(self) -> None:
        pass


@dataclass
class DictReplay:
    """The adapter."""

    bug: str = ""
    capabilities: frozenset[Capability] = frozenset({Capability.CODES, Capability.REPLAY})
    model_variant: str = ""
    deviations: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.bug or "a list"

    def fresh_world(self) -> list[Made]:
        return []

    def open_worker(
        self, world: list[Made], name: str, incarnation: int, surroundings: Surroundings
    ) -> Worker:
        raise NotImplementedError

    def open_replayer(
        self, world: list[Made], name: str, surroundings: Surroundings  # noqa: ARG002
    ) -> ListReplayer:  # fmt: skip
        return ListReplayer(world, self.bug)

    def observe(self, world: list[Made]) -> Observation:  # noqa: ARG002
        return Observation(Row(None, 0, None, 0, finished=False))

    def observe_history(self, world: list[Made]) -> tuple[Made, ...]:
        return tuple(world)

    def close_world(self, world: list[Made]) -> None:
        pass


@cache
def verified_list(bug: str = "") -> Conformance:
    """The report on the small runner with one of its bugs, found once in a process."""
    return verify(DictReplay(bug), subject=subject_of("replay"), examples=0)
