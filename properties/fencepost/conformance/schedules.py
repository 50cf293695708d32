"""One schedule of some workers' operations, and the schedules that there are: interleavings and faults.

A schedule is given by what each worker does and by the list of choices, who goes on: nothing is random. So
all interleavings of two operations are found by making one, and then for each of its choices the others.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fencepost.checker.subject import UsageError
from fencepost.conformance.adapter import Ability, Answer, Commit, Downstream, Owner, Unknown, Worker
from fencepost.conformance.classes import named_arguments, plain
from fencepost.conformance.drivers import Port
from fencepost.conformance.gate import DIES_AFTER, DiedError, Gate, Pending, Policy, Task, Touch, Waiting
from fencepost.conformance.mapping import Lease, Performance
from fencepost.conformance.moves import LEASE_MS
from fencepost.conformance.oracle import Rest, Transition
from fencepost.conformance.plans import Plan
from fencepost.conformance.refinement import Account, Memory, Operation
from fencepost.conformance.runs import LOCK_STEP
from fencepost.conformance.stage import COURIER, OWN, Ready, Stage
from fencepost.conformance.vocabulary import Names, message
from fencepost.conformance.watched import WATCHED
from fencepost.model import FencepostError
from fencepost.model.concrete import RunningState
from fencepost.model.domains import Element

CRASH = "crash"
"""The action of the model that the death of a worker is."""

RESTART = "restart"
"""The one by which it begins again."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a worker does: an action with the codes of its arguments.

    Without codes it is the action as it is possible when its turn comes: for `worker`, with the latest
    message of that worker. What is not possible then is left out.
    """

    action: str
    codes: tuple[int, ...] | None = None
    worker: str = ""


Script = tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a schedule."""

    account: Account
    choices: tuple[str, ...]
    options: tuple[str, ...]
    touches: tuple[Touch, ...]
    nothing: tuple[tuple[int, str], ...]
    strayed: bool
    statements: tuple[int, ...]
    """How many statements each worker ran."""
    deadlock: str
    endless: bool

    @property
    def breaks(self) -> tuple[str, ...]:
        """The names of all that it breaks."""
        return ((LOCK_STEP.name,) if self.account.difference else ()) + tuple(self.account.broken)

    @property
    def record(self) -> tuple[Any, ...]:
        """What the implementation did: to be the same when the schedule is run again."""
        account = self.account
        return (
            self.choices,
            tuple((e.who, e.operation, e.text, e.note) for e in account.events),
            tuple(m.seen.observation for m in account.moments),
            account.difference,
            tuple(account.broken.items()),
        )


class _Move:
    """What a move that is no call passes through: it is a step of its own, which no lock forbids."""

    touch = Touch.ANY

    def blocks(self, error: BaseException) -> bool:
        """Never."""
        del error
        return False

    denies = blocks


class _Opening(_Move):
    """What the restart of a worker passes through: what it does as it begins waits for locks."""

    def blocks(self, error: BaseException) -> bool:
        """Whether another worker holds a lock."""
        return Port.blocks(None, error)  # type: ignore[arg-type]  # it is about the error alone


MOVE = _Move()
OPENING = _Opening()


class Caller:
    """What the mapping of an action makes its call with: like a session, for one call on its way."""

    def __init__(self, stage: Stage, task: Task, model: RunningState, lease_ms: int) -> None:
        self._stage, self._task, self.model, self.lease_ms = stage, task, model, lease_ms
        self.port: Port | None = None

    def worker(self, w: Element) -> Worker:
        """The handle of a worker."""
        incarnation = self.model.incarnation[w]
        return self._use(w.label, incarnation, OWN)

    def sender(self, c: Element) -> Owner:
        """Who sent a commit."""
        by = self.model.request[c].by
        return Owner(by.worker.label, by.incarnation)

    def commit_id(self, c: Element) -> str:
        """The id of a commit."""
        return self._stage.names.commit_id(self.sender(c), c)

    def deliver(self, commit: Commit) -> Answer:
        """A commit arrives on a connection of its own, since its sender may do something else meanwhile."""
        seat = COURIER + self._task.number
        return self._use(commit.owner.worker, commit.owner.incarnation, seat).commit(commit)

    @property
    def plan(self) -> Plan:
        """What the runs have in common."""
        return self._stage.plan

    @property
    def names(self) -> Names:
        """The names of the run."""
        return self._stage.names

    @property
    def abilities(self) -> frozenset[Ability]:
        """What the downstream can do."""
        return self._stage.abilities

    @property
    def downstream(self) -> Downstream:
        """A handle on the downstream, of this call's own."""
        handle, port = self._stage.outside(COURIER + self._task.number)
        self.port, port.task = port, self._task
        return handle

    def _use(self, name: str, incarnation: int, seat: int) -> Worker:
        handle, port = self._stage.seat(name, incarnation, seat)
        self.port, port.task = port, self._task
        return handle


@dataclass(slots=True)
class Schedule:
    """One schedule on a stage."""

    stage: Stage
    memory: Memory
    scripts: Sequence[Script]
    account: Account = field(init=False)
    _operations: dict[int, Operation] = field(default_factory=dict)
    _ports: dict[int, Port] = field(default_factory=dict)
    _sent: dict[str, Element] = field(default_factory=dict)

    def run(self, ready: Ready, policy: Policy) -> Outcome:
        """Run it from a start."""
        stage, gate = self.stage, self.stage.gate
        stage.put_back(ready)
        self.account = Account(stage, self.memory)
        self.account.begin(ready.state, ready.seen)
        tasks = [Task(f"worker {n}", partial(self._script, script)) for n, script in enumerate(self.scripts)]
        gate.run(tasks, policy, self)
        self._refuse_unwatched()
        self._ended(gate)
        return Outcome(
            self.account,
            tuple(gate.choices),
            tuple(gate.options),
            tuple(gate.touches),
            tuple(gate.nothing),
            gate.strayed,
            tuple(t.statements for t in tasks),
            cycle(gate.deadlock),
            gate.endless,
        )

    def _refuse_unwatched(self) -> None:
        """Without a yield point a call runs whole, and what it changed would be taken for another's doing."""
        if self._ports and not any(port.used for port in self._ports.values()):
            raise UsageError(
                f"{self.stage.plan.adapter.name}: no schedule can stop between two of its statements; in "
                "`open_worker`, pass the connection, mapping or lock through `surroundings.watched`"
            )

    def _ended(self, gate: Gate) -> None:
        if gate.deadlock:
            self.account.stuck(f"deadlock: {cycle(gate.deadlock)}")
        if gate.endless:
            self.account.stuck("the operations go on and on, each time with another statement")

    # -- in the turn of a task

    def _script(self, script: Script, task: Task) -> None:
        for item in script:
            expected = self._found(item)
            if expected is None:
                continue
            how = self.stage.plan.performances[expected.action.name]
            task.name = self._who(expected)
            if how.is_call:
                self._call(task, how, expected)
            else:
                move = partial(self._move, task.name, how, expected)
                through = OPENING if expected.action.name == RESTART else MOVE
                self.stage.gate.statement(task, Pending(expected.action.name, move, through))

    def _found(self, item: Item) -> Transition | None:
        state = self.account.now.state
        possible = self.stage.plan.oracle.moves(state).get(item.action, {})
        if item.action not in self.stage.plan.performances:
            return None
        if item.codes is not None:
            return possible.get(item.codes)
        found = [made for made in possible.values() if plain(made) and self._is_of(made, item.worker, state)]
        return found[-1] if found else None

    def _is_of(self, made: Transition, worker: str, state: Rest) -> bool:
        named = named_arguments(made)
        if "w" in named:
            return bool(named["w"].label == worker) and named.get("finishes", False) is False
        if "c" in named:
            return bool(message(self.account.reader(state), named["c"]).by.worker.label == worker)
        return True

    def _who(self, made: Transition) -> str:
        named = named_arguments(made)
        if "w" in named:
            return str(named["w"].label)
        if "c" in named:
            return str(message(self.account.reader(self.account.now.state), named["c"]).by.worker.label)
        return made.action.actor

    def _call(self, task: Task, how: Performance, expected: Transition) -> None:
        account = self.account
        caller = Caller(self.stage, task, account.reader(account.now.state), _lease_ms(task, how))
        operation = account.called(task.name, task.number, how, expected, lease_ms=caller.lease_ms)
        self._operations[task.number], denied = operation, task.denied
        task.doing = operation.label
        try:
            told: Any = how.function(caller, *expected.arguments)
            if not isinstance(told, Answer):
                told = self._no_answer(told, expected)
        except FencepostError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever it throws is no answer
            self._refuse_unfinished(error)
            told = Unknown(f"{type(error).__name__}: {error}")
        finally:
            if caller.port is not None:
                self._ports[task.number] = caller.port
                caller.port.task = None
        if task.dying:
            raise DiedError  # whatever the code made of its death, nobody is there to be told
        account.answered(operation, told, denied=task.denied > denied)
        del self._operations[task.number]

    def _no_answer(self, told: Any, expected: Transition) -> Unknown:
        if inspect.isawaitable(told):
            if inspect.iscoroutine(told):
                told.close()
            raise UsageError(
                f"{self.stage.plan.adapter.name}: async methods are not supported, and "
                f"{expected.action.name} calls one; write methods that are not, with `asyncio.run` in them"
            )
        return Unknown(f"{told!r} is no answer; give Ok, Refused or Unknown")

    def _refuse_unfinished(self, error: Exception) -> None:
        """What a watched thing cannot do is no fault of the code that asks for it."""
        if isinstance(error, AttributeError) and isinstance(error.obj, WATCHED):
            raise UsageError(
                f"{self.stage.plan.adapter.name}: what came from `watched` has no {error.name!r} "
                f"({type(error.obj).__name__}); use another method, or watch what is beneath it"
            ) from error

    def _move(self, who: str, how: Performance, chosen: Transition) -> None:
        """A move that is no call, as it is possible by now, if it still is."""
        moves = self.stage.plan.oracle.moves(self.account.now.state)
        expected = moves.get(chosen.action.name, {}).get(chosen.codes)
        if expected is None:
            return
        clock = how.lease is Lease.RUNS_OUT
        if clock:
            ends_ms = self.account.now.seen.row.expires_at_ms
            if ends_ms is not None:
                self.stage.now_ms = max(self.stage.now_ms, ends_ms)
        elif expected.action.name == RESTART:
            w = named_arguments(expected)["w"]
            self.stage.open(w, self.account.reader(expected.state).incarnation[w])
        self.account.moved(who, expected, clock=clock)

    # -- told by the gate

    def ran(self, task: Task, pending: Pending, error: BaseException | None) -> Touch:
        """A statement was run; what it touched."""
        operation = self._operations.get(task.number)
        if operation is None:
            return Touch.ANY
        changed = self.account.ran(operation, pending.text, error)
        return Touch.ANY if changed or error is not None else pending.through.touch

    def died(self, task: Task) -> None:
        """A worker is dead: its connections are closed, and what it believed is gone."""
        operation = self._operations.pop(task.number, None)
        port = self._ports.get(task.number)
        if port is not None:
            self.stage.bury(port)
        if operation is None:
            return
        who = operation.who
        named = named_arguments(operation.expected)
        crash = self.stage.plan.oracle.moves(self.account.now.state).get(CRASH, {})
        dead = next((m for m in crash.values() if named.get("w") in m.arguments), None)
        if dead is None:
            self.account.passed_by(who, "its connection breaks")
        else:
            self.account.moved(who, dead)


def _lease_ms(task: Task, how: Performance) -> int:
    """How long a lease is asked for: by renewals of the first worker longer, of others less than is left."""
    if how.lease is not Lease.EXTENDS:
        return LEASE_MS
    return 2 * LEASE_MS if task.number == 0 else 1


def cycle(waiting: Sequence[Waiting]) -> str:
    """Who waits for whom, and before which statements."""
    if not waiting:
        return ""
    names = [w.task.name for w in waiting]
    return "; ".join(
        f"{w.task.name} waits before its statement {w.number} ({shortened_text(w.text)}) "
        f"for {' and '.join(n for n in names if n != w.task.name) or 'itself'}"
        for w in waiting
    )


def shortened_text(text: str, width: int = 60) -> str:
    """A statement on one line."""
    words = " ".join(line.split("--")[0].strip() for line in text.splitlines()).split()
    line = " ".join(words)
    return line if len(line) <= width else f"{line[: width - 1]}…"


# -- policies


@dataclass(frozen=True, slots=True)
class Follow:
    """The choices of a list, and then on with whoever has the turn."""

    choices: Sequence[str] = ()

    def choose(self, place: int, options: Sequence[Task], current: Task | None) -> str:
        """The choice of the list, if there is one."""
        if place < len(self.choices):
            return self.choices[place]
        return (current if current in options else options[0]).letter  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True)
class Pauses:
    """The first worker stands still after some statements, until all others have ended."""

    after: int

    def choose(self, place: int, options: Sequence[Task], current: Task | None) -> str:
        """The first worker, or another."""
        del place, current
        first = options[0]
        if first.number == 0 and first.statements >= self.after and len(options) > 1:
            return options[1].letter
        return first.letter


@dataclass(frozen=True, slots=True)
class Dies:
    """The first worker dies right after one of its statements; then the others go on."""

    after: int

    def choose(self, place: int, options: Sequence[Task], current: Task | None) -> str:
        """The first worker, until it is dead."""
        del place, current
        first = options[0]
        last = first.number == 0 and first.statements == self.after - 1
        return first.letter + (DIES_AFTER if last else "")


def switches(choices: Sequence[str]) -> int:
    """How often another worker goes on than the one before."""
    return sum(a[0] != b[0] for a, b in itertools.pairwise(choices))


def interleavings(
    run: Callable[[Policy], Outcome], *, most_switches: int | None = None, all_orders: bool = False
) -> Iterator[Outcome]:
    """All schedules of what `run` runs, each once; of those with few switches, where a bound is given.

    Of schedules that differ only in the order of neighbours that commute, the first by letters is run, unless
    `all_orders` are wanted: it has no two such neighbours in the wrong order, nor has any beginning of it, so
    whatever has two can be left out.
    """
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        prefix = waiting.pop()
        outcome = run(Follow(prefix))
        if prefix and (len(prefix) - 1, prefix[-1]) in outcome.nothing:
            continue  # a lock was in the way: this schedule is one of the others
        last = len(prefix) - 1
        late = not all_orders and last > 0 and prefix[last] < prefix[last - 1][0]
        if late and outcome.touches[last].commutes(outcome.touches[last - 1]):
            continue
        yield outcome
        for place in range(len(prefix), len(outcome.choices)):
            for letter in outcome.options[place]:
                if letter == outcome.choices[place][0]:
                    continue
                prefix = (*outcome.choices[:place], letter)
                if most_switches is None or switches(prefix) <= most_switches:
                    waiting.append(prefix)
