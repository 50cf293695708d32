"""The gate: of several workers one moves at a time, each stops before each statement, a policy says who goes.

Each worker is a task with a stack of its own, in a thread that lasts. Threads change hands only when another
worker is to go on, and whoever stops makes the choice itself, so most steps cost no switch.

A statement that fails because another worker holds a lock has done nothing. Its worker is *blocked* until
another one has made progress; then the same statement is tried again. When all are blocked it is a deadlock.
When nobody else is left, the error is real and goes to the code that made the statement.

Code that reaches no next statement and does not end would stop everything. Who runs the schedule waits for
it, but not for ever: then the gate is *abandoned*, and says where that code stands. Threads that cannot be
got out of it are left behind; they end with the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NoReturn, Protocol

from fencepost.checker.subject import UsageError
from fencepost.conformance import watchdog
from fencepost.model import FencepostError

MOST_STATEMENTS = 400
"""A schedule of two operations has some dozen statements; more is a loop that does not end."""

DIES, DIES_AFTER = "!", "~"
"""Follow the letter of a worker in a list of choices: it dies before its next statement, or after it."""

LETTERS = "abcdefgh"


class Touch(Enum):
    """What a statement had to do with those of other workers."""

    NOTHING = "nothing"
    """It looked at what is committed, and holds nobody up."""
    LOCK = "lock"
    """It took or gave up a lock, and changed nothing that others see. Readers do not mind."""
    ANY = "any"
    """It changed something, or nobody knows."""

    def commutes(self, other: Touch) -> bool:
        """Whether two statements of two workers do the same in either order."""
        return Touch.ANY not in (self, other) and Touch.NOTHING in (self, other)


class DiedError(BaseException):
    """The worker is dead. No code that is under test may catch this and do anything: no statement works."""


class GateError(Exception):
    """The checks themselves failed, not the implementation."""


class Passage(Protocol):
    """What a statement passes through: it knows the driver."""

    touch: Touch
    """What the last statement touched, as far as the driver can tell: changes are seen by others."""

    def blocks(self, error: BaseException) -> bool:
        """Whether the error says that another worker holds a lock, so that waiting helps."""
        ...

    def denies(self, error: BaseException) -> bool:
        """Whether the error says that another worker was in the way, and waiting does not help."""
        ...


@dataclass(frozen=True, slots=True)
class Pending:
    """A statement before which a worker has stopped."""

    text: str
    perform: Callable[[], Any]
    through: Passage


@dataclass(frozen=True, slots=True)
class Waiting:
    """A worker that waits for a lock, and before which statement of its own."""

    task: Task
    number: int
    text: str


@dataclass(slots=True, eq=False)
class Task:
    """One worker in one schedule: what it runs, and where it stands."""

    name: str
    script: Callable[[Task], None]
    number: int = 0
    started: bool = False
    done: bool = False
    dying: bool = False
    last: bool = False
    """It dies right after its next statement."""
    blocked: bool = False
    passes: bool = False
    """It was chosen to begin, and so to run its first statement."""
    statements: int = 0
    """How many of its statements have been run."""
    denied: int = 0
    """How many of its statements ended in the error that another worker was in the way."""
    refused: int = 0
    """How many of its statements came after its death."""
    kept_out: BaseException | None = None
    """The error with which the statement that it stands before was refused last, by another worker's lock."""
    doing: str = ""
    """What it does, in words."""
    pending: Pending | None = None
    result: Any = None
    error: BaseException | None = None

    letter: str = LETTERS[0]
    """Its letter in a list of choices."""


class Policy(Protocol):
    """Who goes on. `options` are the tasks that can, in order; a choice is a letter, then a fault if any."""

    def choose(self, place: int, options: Sequence[Task], current: Task | None) -> str:
        """The choice at that place in the list of choices."""
        ...


class Listener(Protocol):
    """Who is told what happens."""

    def ran(self, task: Task, pending: Pending, error: BaseException | None) -> Touch:
        """A statement was run; what it touched."""
        ...

    def died(self, task: Task) -> None:
        """A worker is dead, its stack is gone; what the operating system does for it is still to be done."""
        ...


class Carrier(threading.Thread):
    """A thread that lasts from schedule to schedule."""

    def __init__(self, gate: Gate, number: int) -> None:
        super().__init__(name=f"fencepost-worker-{number}", daemon=True)
        self.gate, self.number = gate, number

    def run(self) -> None:
        """Run the task of this number whenever it is its turn."""
        while True:
            self.gate.batons[self.number].acquire()
            if self.gate.closed or self.gate.abandoned:
                return
            self.gate.carry(self.gate.tasks[self.number])


@dataclass(slots=True)
class Gate:
    """Runs schedules, one after another. Not to be used by two threads at once; to be closed."""

    tasks: list[Task] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)
    """What was chosen in the schedule at hand. A choice that came to nothing, for a lock, is not among it."""
    options: list[str] = field(default_factory=list)
    """For each choice, the letters of all who could have gone on."""
    touches: list[Touch] = field(default_factory=list)
    """For each choice, what its statement touched."""
    nothing: list[tuple[int, str]] = field(default_factory=list)
    """The choices that came to nothing, for a lock, with their places."""
    strayed: bool = False
    """Whether the policy chose somebody who could not go on; the first who could went on instead."""
    deadlock: tuple[Waiting, ...] = ()
    endless: bool = False
    failure: BaseException | None = None
    closed: bool = False
    abandoned: bool = False
    """Whether code under test did not come to an end. Nothing can be run any more."""
    patience_s: float = field(default_factory=lambda: watchdog.PATIENCE_S)
    batons: list[Any] = field(default_factory=list)
    _retried: bool = False
    _policy: Policy | None = None
    _listener: Listener | None = None
    _finished: Any = field(default_factory=threading.Lock)
    _carriers: list[Carrier] = field(default_factory=list)
    _beats: int = 0
    """Rises whenever anything gets on."""
    _mover: int = 0
    """The number of the thread that moves."""
    _performing: Task | None = None
    _judging: bool = False
    """Whether it is now looked at what a statement did."""

    def __post_init__(self) -> None:
        """Nobody has the turn."""
        self._finished.acquire()

    def run(self, tasks: Sequence[Task], policy: Policy, listener: Listener) -> None:
        """Run one schedule to its end. UsageError when code under test does not come to an end."""
        if self.abandoned:
            raise GateError("the gate is abandoned: an operation did not end")
        self.tasks, self._policy, self._listener = list(tasks), policy, listener
        self.choices, self.options, self.touches = [], [], []
        self.nothing, self.strayed, self._retried = [], False, False
        self.deadlock, self.endless, self.failure = (), False, None
        self._performing, self._judging = None, False
        for number, task in enumerate(self.tasks):
            task.number, task.letter = number, LETTERS[number]
            if number == len(self.batons):
                self.batons.append(threading.Lock())
                self.batons[number].acquire()
                self._carriers.append(Carrier(self, number))
                self._carriers[-1].start()
        try:
            self._advance(None)
            self._wait()
        except BaseException:  # also of whoever interrupts the process
            self._abandon()
            raise
        if not all(t.done for t in self.tasks):
            self._abandon()
        failure = self.failure
        if isinstance(failure, FencepostError | KeyboardInterrupt):
            raise failure
        if failure is not None:
            raise GateError(f"the checks failed inside a schedule: {failure!r}") from failure

    def _wait(self) -> None:
        """Wait for the end of a schedule, as long as anything gets on."""
        ticks, beats = 0, self._beats
        while not self._finished.acquire(timeout=self.patience_s / watchdog.TICKS):
            ticks, beats = ticks + 1 if self._beats == beats else 0, self._beats
            if ticks >= watchdog.TICKS:
                raise UsageError(self._does_not_end())

    def _does_not_end(self) -> str:
        task = self._performing or self.tasks[self._mover]
        who = f"{task.name}'s {task.doing}" if task.doing else task.name
        time = f"{self.patience_s:g} s"
        text = task.pending.text if task.pending is not None else ""
        if self._judging:
            lines = [f"looking at what a statement of {who} did does not end: for {time} `observe` has not"]
        elif self._performing is not None:
            lines = [f"{who} does not end: for {time} it has been in its statement {text!r}"]
        else:
            lines = [f"{who} does not end: in {time} it reached no statement"]
        others = [t for t in self.tasks if t is not task and t.started and not t.done]
        lines += [f"  meanwhile {t.name} stands before {t.pending.text!r}" for t in others if t.pending]
        stands = watchdog.standing(self._carriers[self._mover])
        lines += ["  it stands in", *(f"    {line}" for line in stands)] if stands else []
        lines.append(
            "is there a lock that is not passed through `watched`? Then whoever waits for it never lets the "
            "one go on who holds it; pass it through `surroundings.watched` in `open_worker`. If it only "
            "takes long, give the adapter an attribute `patience_s`, in seconds"
        )
        return "\n".join(lines)

    def _abandon(self) -> None:
        """Nothing goes on any more: who is in a call is to get out, and no statement is run."""
        self.abandoned = True
        for task in self.tasks:
            task.dying = True
        for baton in self.batons:
            with suppress(RuntimeError):
                baton.release()

    def close(self) -> bool:
        """End the threads; False when some cannot be got out of the code under test and are left behind."""
        self.closed = True
        for carrier in self._carriers:
            with suppress(RuntimeError):
                self.batons[carrier.number].release()
        ended = True
        for carrier in self._carriers:
            if self.abandoned:
                ended = watchdog.got_out(carrier, DiedError) and ended
            else:
                carrier.join()
        self._carriers.clear()
        return ended

    # -- in the thread of a task

    def carry(self, task: Task) -> None:
        """Run a task whose turn it is, and then give the turn to another."""
        try:
            if not task.dying:
                task.script(task)
        except DiedError:
            pass
        except BaseException as error:  # noqa: BLE001  # reported by `run`
            self.failure = error
        self._end(task)

    def statement(self, task: Task, pending: Pending) -> Any:
        """Stop before a statement; its result, once the worker's turn has come and it was run."""
        if task.dying:
            self.refuse(task)
        self._beats += 1
        task.pending = pending
        if task.passes:
            task.passes = False
            if not self._perform(task):
                self._take_back()
                self._advance(task)
        else:
            self._advance(task)
        if task.dying:
            raise DiedError
        error, task.error = task.error, None
        if error is not None:
            raise error
        return task.result

    def refuse(self, task: Task) -> NoReturn:
        """A dead worker wants to run a statement: it is told again that it is dead, but not for ever."""
        task.refused += 1
        if task.refused > watchdog.MOST_REFUSED:
            if not self.abandoned and self.failure is None:
                who = f"{task.name}'s {task.doing}" if task.doing else task.name
                stands = watchdog.standing(self._carriers[task.number])
                self.failure = UsageError(
                    f"{who} goes on after the death of its process: {task.refused} statements were refused, "
                    "and it tries again. Some loop catches everything, as `while True: try: … except: pass` "
                    "does; catch `Exception` there, so that it can be killed\n"
                    + "\n".join(["  it stands in", *(f"    {line}" for line in stands)])
                )
                self._finished.release()
            threading.Event().wait()  # left behind
        raise DiedError

    def _end(self, task: Task) -> None:
        if self.abandoned:
            return
        self._beats += 1
        task.done, task.pending = True, None
        try:
            if task.dying and self._listener is not None:
                self._listener.died(task)
        except BaseException as error:  # noqa: BLE001  # reported by `run`
            self.failure = error
        self.unblock()
        if all(t.done for t in self.tasks):
            self._finished.release()
        else:
            self._advance(task)

    def _advance(self, current: Task | None) -> None:
        """Choose who goes on, and give the turn away unless it is the one who has it."""
        chosen = self._chosen(current)
        if chosen is current:
            return
        self._mover = chosen.number
        self.batons[chosen.number].release()
        if current is not None and not current.done:
            self.batons[current.number].acquire()

    def _chosen(self, current: Task | None) -> Task:
        """Who goes on; its statement has been run, unless it begins or dies."""
        while True:
            dying = next((t for t in self.tasks if t.dying and not t.done), None)
            if dying is not None:
                return dying
            options = [t for t in self.tasks if not t.done and not t.blocked]
            if not options and not self._retried:
                self._retried = True  # a lock may have been given up between two statements
                self.unblock()
                continue
            if not options or len(self.choices) >= MOST_STATEMENTS or self.failure is not None:
                return self._given_up()
            task, fault = self._choice(options, current)
            self._record(task.letter + fault, options)
            if fault == DIES:
                task.dying = True
                return task
            task.last = fault == DIES_AFTER
            if not task.started:
                task.started = task.passes = True
                return task
            if self._perform(task):
                return task
            self._take_back()

    def _choice(self, options: Sequence[Task], current: Task | None) -> tuple[Task, str]:
        assert self._policy is not None  # noqa: S101
        choice = self._policy.choose(len(self.choices), options, current)
        for task in options:
            if choice[0] == task.letter:
                return task, choice[1:]
        self.strayed = True
        return options[0], ""

    def _record(self, choice: str, options: Sequence[Task]) -> None:
        self.choices.append(choice)
        self.options.append("".join([t.letter for t in options]))
        self.touches.append(Touch.ANY)

    def _take_back(self) -> None:
        """The last choice came to nothing."""
        self.options.pop()
        self.touches.pop()
        self.nothing.append((len(self.choices) - 1, self.choices.pop()))

    def _perform(self, task: Task) -> bool:
        """Run the statement that a task has stopped before; False when another worker's lock forbids it."""
        pending = task.pending
        assert pending is not None  # noqa: S101
        assert self._listener is not None  # noqa: S101
        self._performing = task
        try:
            task.result = pending.perform()
        except BaseException as error:  # noqa: BLE001  # it belongs to the code that made the statement
            if pending.through.blocks(error):
                if not all(t.done for t in self.tasks if t is not task):
                    task.blocked, task.kept_out, self._performing = True, error, None
                    return False
                task.denied += 1
            elif pending.through.denies(error):
                task.denied += 1
            task.error = error
        if self.abandoned:
            raise DiedError
        task.kept_out, self._performing, self._judging = None, None, True
        task.statements += 1
        task.dying = task.dying or task.last
        self._retried = False
        self.unblock()
        try:
            self.touches[-1] = self._listener.ran(task, pending, task.error)
        except BaseException as error:  # noqa: BLE001  # reported by `run`; not the business of that code
            self.failure = error
        self._beats += 1
        self._judging = False
        return True

    def unblock(self) -> None:
        """Somebody made progress: whoever is blocked may try again."""
        for task in self.tasks:
            task.blocked = False

    def _given_up(self) -> Task:
        """Nobody can go on, or the schedule does not end: all who are left die, one after another."""
        left = [t for t in self.tasks if not t.done]
        if not any(t.dying for t in left) and self.failure is None:
            if len(self.choices) >= MOST_STATEMENTS:
                self.endless = True
            elif all(t.blocked for t in left):
                self.deadlock = tuple(
                    Waiting(t, t.statements + 1, t.pending.text) for t in left if t.pending is not None
                )
        for task in left:
            task.dying = True
        begun = [t for t in left if t.started]
        return (begun or left)[0]
