"""What is wrong with an adapter, or never ends, is said by name; what is only in the way is waited for."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fencepost.checker.subject import UsageError
from fencepost.conformance import Answer, Ok, Refused, Surroundings, Unknown
from fencepost.conformance.gate import Pending, Task, Touch
from fencepost.conformance.moves import Move
from fencepost.conformance.refinement import Memory
from fencepost.conformance.schedules import Dies, Follow, Item, Outcome, Schedule
from fencepost.conformance.stage import Stage, _waits_to_commit
from fencepost.conformance.verify import prepare

from .dict_store import DictAdapter, DictWorker, DictWorld, RewindingDictAdapter
from .test_gate import Scene, connections

ACQUIRES = ((Item("acquire", (0, 0)),), (Item("acquire", (1, 0)),))


def schedule(adapter: Any, policy: Any = None, moves: tuple[Move, ...] = ()) -> Outcome:
    """Two workers acquire, in an order."""
    plan, _ = prepare(adapter, claims=["lock-step"])
    with Stage(plan) as stage:
        return Schedule(stage, Memory(), ACQUIRES).run(stage.ready(moves), policy or Follow(("a", "b")))


@dataclass
class Changed(DictWorker):
    """Acquires in another way."""

    way: Callable[[DictWorker, Callable[[], Answer]], Answer]

    def __init__(self, worker: DictWorker, way: Any) -> None:
        self.__dict__.update(worker.__dict__)
        self.way = way

    def acquire(self, *, lease_ms: int) -> Answer:
        return self.way(self, lambda: DictWorker.acquire(self, lease_ms=lease_ms))


def changed(way: Any, **named: Any) -> Any:
    adapter = DictAdapter("changed", passed=lambda worker: Changed(worker, way), **named)
    adapter.patience_s = 0.4  # type: ignore[attr-defined]
    return adapter


# -- what never ends

UNWATCHED = threading.Lock()


def behind_a_lock(_: DictWorker, acquire: Callable[[], Answer]) -> Answer:
    with UNWATCHED:
        return acquire()


def on_and_on(_: DictWorker, __: Callable[[], Answer]) -> Answer:
    while True:
        pass


def waits_for_nobody(_: DictWorker, acquire: Callable[[], Answer]) -> Answer:
    threading.Event().wait()
    return acquire()


@pytest.mark.parametrize("way", [behind_a_lock, on_and_on, waits_for_nobody])
def test_a_call_that_never_ends_is_named_with_where_it_stands(way: Any) -> None:
    with pytest.raises(UsageError, match="does not end") as caught:
        schedule(changed(way, locking="none"))
    told = str(caught.value)
    assert "acquire(w" in told
    assert f"test_in_the_way.py:{way.__code__.co_firstlineno + 1} in {way.__name__}" in told
    assert "is there a lock that is not passed through `watched`?" in told
    assert "0x" not in told


def test_that_a_lock_is_held_by_who_stands_before_a_statement_is_said() -> None:
    with pytest.raises(UsageError, match=r"meanwhile w1 stands before .*(items|update)"):
        schedule(changed(behind_a_lock, locking="none"))
    assert not UNWATCHED.locked()


def own_handler(*_: object) -> None:
    pass


def goes_on_waiting() -> None:
    """As a library in C leaves it behind that put the handler back without care."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.siginterrupt(signal.SIGINT, False)


@pytest.fixture
def interrupts(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    if request.param is goes_on_waiting:
        goes_on_waiting()
    else:
        signal.signal(signal.SIGINT, request.param)
    stands = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is stands
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "interrupts",
    [signal.SIG_IGN, signal.SIG_DFL, signal.default_int_handler, own_handler, goes_on_waiting],
    ids=["ignored", "default", "python", "own", "goes on waiting"],
    indirect=True,
)
@pytest.mark.parametrize("way", [on_and_on, waits_for_nobody])
@pytest.mark.usefixtures("interrupts")
def test_a_whole_call_that_never_ends_is_named_with_where_it_stands(way: Any) -> None:
    with pytest.raises(UsageError, match="acquire does not end") as caught:
        schedule(changed(way), moves=(Move("acquire", (0, 0)),))
    assert f" in {way.__name__}" in str(caught.value)


def tries_again(_: DictWorker, acquire: Callable[[], Answer]) -> Answer:
    while True:
        with suppress(BaseException):
            return acquire()


def test_code_that_goes_on_after_its_death_is_stopped() -> None:
    with pytest.raises(UsageError, match=r"(?s)w1's acquire\(w1\) goes on after the death.*in tries_again"):
        schedule(changed(tries_again, locking="none"), Dies(1))


# -- deaths and interruptions


def swallows(_: DictWorker, acquire: Callable[[], Answer], answer: Answer | None = None) -> Answer:
    try:
        return acquire()
    except BaseException as error:
        if answer is None:
            raise ValueError("other") from error
        return answer


@pytest.mark.parametrize("answer", [None, Unknown("oh"), Ok(), Refused("lease-live")])
@pytest.mark.parametrize("after", [1, 2])
def test_what_a_worker_answers_after_its_death_is_not_judged(answer: Answer | None, after: int) -> None:
    outcome = schedule(changed(partial(swallows, answer=answer), locking="none"), Dies(after))
    assert outcome.breaks == ()
    assert [e.operation for e in outcome.account.events].count("acquire(w1)") == after
    assert any("crash" in s.label for s in outcome.account.steps) or after == 1


@pytest.mark.parametrize("where", ["in the call", "from outside"])
def test_who_interrupts_the_checks_interrupts_them(where: str) -> None:
    def interrupts(_: DictWorker, acquire: Callable[[], Answer]) -> Answer:
        if where == "in the call":
            raise KeyboardInterrupt
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(0.1)
        return acquire()

    with pytest.raises(KeyboardInterrupt):
        schedule(changed(interrupts))


# -- what the adapter does wrong


class Failing(RewindingDictAdapter):
    fails, after = "", 0

    def stamp(self, world: DictWorld) -> Any:
        self._maybe("stamp")
        return id(world), object()

    def observe(self, world: DictWorld) -> Any:
        self._maybe("observe")
        return super().observe(world)

    def open_worker(self, world: Any, name: str, incarnation: int, surroundings: Surroundings) -> Any:
        self._maybe("open_worker")
        return super().open_worker(world, name, incarnation, surroundings)

    def snapshot(self, world: DictWorld) -> Any:
        self._maybe("snapshot")
        return super().snapshot(world)

    def restore(self, world: DictWorld, snapshot: Any) -> None:
        self._maybe("restore")
        super().restore(world, snapshot)

    def _maybe(self, name: str) -> None:
        if name == self.fails:
            self.after -= 1
            if self.after < 0:
                raise RuntimeError("no such thing")


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("name", ["stamp", "observe", "open_worker", "snapshot", "restore"])
def test_a_method_of_the_adapter_that_fails_is_named(name: str, after: int) -> None:
    adapter = Failing("failing", locking="none")
    adapter.fails, adapter.after = name, min(after, {"restore": 1, "snapshot": 1}.get(name, after))

    def often() -> None:
        for _ in range(3):
            schedule(adapter)

    with pytest.raises(UsageError, match=f"failing: the adapter's `{name}` failed: RuntimeError: no such"):
        often()


@pytest.mark.parametrize("left_out", [["owner"], ["lease", "ends"], ["log"], []])
def test_a_world_that_was_not_put_back_is_said_with_what(left_out: list[str]) -> None:
    class Half(RewindingDictAdapter):
        def restore(self, world: DictWorld, snapshot: Any) -> None:
            super().restore(world, {k: world.stored[k] if k in left_out else v for k, v in snapshot.items()})

    plan, _ = prepare(Half(locking="none"), claims=["lock-step"])
    moves = tuple(Move(a, c) for a, c in (("acquire", (0, 0)), ("send_commit", (0, 0, 0))))
    moves += (Move("decide_commit", (0, 0)),)

    def twice() -> None:
        with Stage(plan) as stage:
            stage.ready(moves)
            stage.ready(moves)

    if not left_out:
        twice()
        return
    what = "log" if "log" in left_out else "row"
    with pytest.raises(UsageError, match=f"`restore` did not put back the {what}"):
        twice()


class Locked(DictAdapter):
    """Looking fails while somebody who writes has begun, as it does without a write-ahead log."""

    def observe(self, world: DictWorld) -> Any:
        if world.stored["lease"] == 1 and world.stored["owner"] is None:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return super().observe(world)


def test_a_lock_that_is_in_the_way_of_looking_leaves_what_was_seen() -> None:
    outcome = schedule(Locked(locking="none", in_two_writes=True), Follow("aaa"))
    assert outcome.account.difference == ""


def test_an_async_method_is_refused_in_words_without_addresses() -> None:
    async def later(_: DictWorker, acquire: Callable[[], Answer]) -> Answer:
        return acquire()

    with pytest.raises(UsageError, match="async methods are not supported") as caught:
        schedule(changed(later))
    assert "0x" not in str(caught.value)


def test_what_a_watched_thing_cannot_do_is_said() -> None:
    def odd(worker: DictWorker, acquire: Callable[[], Answer]) -> Answer:
        worker.stored.move_to_end("lease")
        return acquire()

    with pytest.raises(UsageError, match=r"no 'move_to_end' \(WatchedMapping\)"):
        schedule(changed(odd))


@pytest.mark.parametrize("choices", ["a a b b b a a", "b b a a b a", "a b a b b a", "b a b b a a a"])
def test_nobody_can_look_while_a_commit_waits_for_readers_and_so_it_is_not_tried(
    tmp_path: Path, choices: str
) -> None:
    class Looking(Scene):
        def ran(self, task: Task, pending: Pending, error: BaseException | None) -> Touch:
            try:
                seen.append((watcher.execute("select n from t").fetchone(), self.waits))
            except sqlite3.OperationalError:
                seen.append((None, self.waits))
            return super().ran(task, pending, error)

        @property
        def waits(self) -> bool:
            return any(_waits_to_commit(task) for task in self.gate.tasks)

    seen: list[Any] = []
    scene = Looking()
    one, other = connections(scene, tmp_path / "x.db", journal="delete")
    watcher = sqlite3.connect(tmp_path / "x.db", timeout=0, check_same_thread=False)

    def does(connection: Any, begin: str, *texts: str) -> None:
        for text in (begin, *texts, "commit"):
            connection.execute(text).fetchall()

    scene.run(
        lambda: does(one, "begin", "select n from t", "select 2"),
        lambda: does(other, "begin immediate", "update t set n = 1"),
        choices=choices,
    )
    scene.gate.close()
    assert one.execute("select n from t").fetchone() == (1,)
    watcher.close()
    scene.close()
    assert {row for row, waits in seen if not waits} <= {(0,), (1,)}
    assert all(row is None for row, waits in seen if waits)
