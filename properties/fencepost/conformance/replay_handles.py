"""What a run beside replay has open: each worker's run in a thread of its own, which moves when told to.

A thread stands still wherever the implementation comes back to the code that the checks have given it: where
the program is to make its next command, and where an activity is to act. So one of all threads moves at a
time, and a run is the same each time that it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from fencepost.conformance.adapter import Surroundings
from fencepost.conformance.adapter_replay import DRAWS, Commands, Ended, Made, ReplayAdapter, Replayer
from fencepost.conformance.vocabulary import Landing
from fencepost.conformance.watchdog import PATIENCE_S
from fencepost.model import Scope
from fencepost.model.concrete import values_of
from fencepost.model.core.state import workers
from fencepost.model.domains import Element
from fencepost.model.replay.state import values

FINISH = "finish"


class _DiesError(BaseException):
    """The worker dies here; nothing that catches an `Exception` holds it back."""


@dataclass(slots=True)
class Running:
    """One run of the program, in its thread. `numbers` gives what is drawn when nothing else is meant.

    `event` is where it stands: ``asks`` for the next command of the program, ``acts`` in an activity, or
    ``over``, as `ended` says.
    """

    replayer: Replayer
    definition: str
    numbers: Callable[[], int]
    event: str = ""
    ended: Ended | None = None
    error: BaseException | None = None
    passed: int = 0
    """Commands whose answer the program was given."""
    given: int | None = None
    """The answer to the last one."""
    drawn: int | None = None
    """What the next draw gives, where that is meant."""
    _orders: SimpleQueue[Any] = field(default_factory=SimpleQueue)
    _events: SimpleQueue[str] = field(default_factory=SimpleQueue)
    _thread: Thread = field(init=False)

    def start(self) -> None:
        """Start the program: the implementation reads the history, and comes to the first command."""
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        self._wait()

    def order(self, order: Any) -> None:
        """Let it go on to where it stands next. Raises what the implementation raised, if it did."""
        self._orders.put(order)
        self._wait()

    def die(self) -> None:
        """The worker's process dies."""
        if self.event in ("asks", "acts"):
            self._orders.put(_DiesError())
            self._thread.join(PATIENCE_S)
        self.event = "dead"

    def _wait(self) -> None:
        try:
            self.event = self._events.get(timeout=PATIENCE_S)
        except Empty:
            self.event = "stuck"
            raise TimeoutError(f"the run comes to no command and no end in {PATIENCE_S} s") from None
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            self.ended = self.replayer.run(self._program, definition=self.definition, outside=self)
            if self.ended.how == "finished":
                self.passed += 1
        except _DiesError:
            return
        except BaseException as error:  # noqa: BLE001  # it is raised where the run is waited for
            self.error = error
        self._events.put("over")

    def _stand(self, event: str) -> Any:
        self._events.put(event)
        order = self._orders.get()
        if isinstance(order, BaseException):
            raise order
        return order

    def _program(self, commands: Commands) -> int:
        while True:
            what, argument = self._stand("asks")
            if what == FINISH:
                return int(argument)
            if what in DRAWS:
                self.given = commands.draw(what)
            else:
                self.given = (commands.call if what == "call" else commands.send)(argument)
            self.passed += 1

    # -- what is outside

    def draw(self) -> int:
        """The number that is meant for this draw; one of its own for a draw that nobody expects."""
        drawn, self.drawn = self.drawn, None
        return self.numbers() if drawn is None else drawn

    def act(self, what: str, argument: int) -> int:  # noqa: ARG002
        """The activity stands still, has acted when it is told so, and gives the number that it is told."""
        return int(self._stand("acts"))


@dataclass(slots=True)
class Handles:
    """The workers of one run of the checks, and what the harness knows of each."""

    adapter: ReplayAdapter
    world: Any
    around: Surroundings
    scope: Scope
    landed: list[Landing] = field(default_factory=list)
    runs: dict[str, Running] = field(default_factory=dict)
    """The runs of workers that are up and have begun."""
    down: set[str] = field(default_factory=set)
    asked: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By worker: the command that its program makes at its position, with the argument."""
    performed: dict[str, int] = field(default_factory=dict)
    """By worker: what its activity gave, once it has acted."""
    early: set[str] = field(default_factory=set)
    """Workers whose replay had stopped before the program could make its first command."""
    ends: dict[int, int] = field(default_factory=dict)
    """By position: the value with which an end was recorded there; an end gives none of its own."""
    _replayers: dict[str, Replayer] = field(default_factory=dict)
    _numbers: int = 0

    def observe(self) -> tuple[Made, ...]:
        """The history."""
        return tuple(self.adapter.observe_history(self.world))

    def close(self) -> None:
        """All workers die."""
        for run in self.runs.values():
            run.die()
        for replayer in self._replayers.values():
            replayer.close()

    def number(self, value: int) -> int:
        """The next number that stands for a value: numbers only rise."""
        self._numbers += 1
        return self._numbers * self.scope.size(values) + value

    def value(self, number: int) -> int:
        """The value that a number stands for."""
        return number % self.scope.size(values)

    # -- what workers do

    def begin(self, w: Element, definition: str) -> None:
        """The worker runs the program from its first line."""
        if w.label not in self._replayers:
            self._replayers[w.label] = self.adapter.open_replayer(self.world, w.label, self.around)
        run = Running(self._replayers[w.label], definition, lambda: self._unexpected(w))
        self.runs[w.label] = run
        run.start()
        if run.ended is not None and run.ended.how == "stopped":
            self.early.add(w.label)

    def _unexpected(self, w: Element) -> int:
        """What a draw gives that should have been answered from the history: another value than recorded."""
        history, at = self.observe(), self.runs[w.label].passed
        recorded = history[at].result if at < len(history) else None
        return self.number(0 if recorded is None else 1 - self.value(recorded))

    def make(self, w: Element) -> None:
        """The program makes the command that it was asked for, and the worker goes on from there."""
        if w.label in self.early:
            self.early.discard(w.label)
            return
        run = self.runs[w.label]
        run.order(self.asked[w.label])
        self._has_moved(w, run)

    def settle(self, w: Element) -> None:
        """The activity that has acted gives its value."""
        run = self.runs[w.label]
        run.order(self.performed.pop(w.label))
        self._has_moved(w, run)

    def _has_moved(self, w: Element, run: Running) -> None:
        if run.ended is not None and run.ended.how == "overtaken":
            self.forget(w)
        elif run.event != "acts" and (run.ended is None or run.ended.how == "finished"):
            self.asked.pop(w.label, None)

    def forget(self, w: Element) -> None:
        """The run of a worker is over, and what it knew is gone."""
        for table in (self.runs, self.asked, self.performed):
            table.pop(w.label, None)
        self.early.discard(w.label)

    def crash(self, w: Element) -> None:
        """The worker dies, and its handle with it."""
        if w.label in self.runs:
            self.runs[w.label].die()
        if w.label in self._replayers:
            self._replayers.pop(w.label).close()
        self.forget(w)
        self.down.add(w.label)

    # -- what is seen of workers

    def standing(self, w: Element) -> str:
        """Where a worker stands, in the model's words."""
        run = self.runs.get(w.label)
        if w.label in self.down:
            return "down"
        if run is None:
            return "idle"
        if run.event == "acts":
            return "performed" if w.label in self.performed else "performing"
        if run.ended is None or w.label in self.early:
            return "running"
        return {"finished": "done", "stopped": "stopped", "unknown": "unknown"}[run.ended.how]

    def all_workers(self) -> list[Element]:
        """The workers of the scope."""
        return list(values_of(workers, self.scope))
