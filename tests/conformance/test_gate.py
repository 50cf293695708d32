"""The gate: one worker moves at a time, locks block and do not hang, and the dead do nothing more."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from math import comb
from pathlib import Path
from typing import Any

import pytest

from fencepost.conformance.drivers import Port
from fencepost.conformance.gate import DiedError, Gate, Pending, Task, Touch
from fencepost.conformance.schedules import Follow, cycle


class Scene:
    """Scripts of workers on ports of their own, and a record of what they ran."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.locks: dict[int, Any] = {}
        self.ran_texts: list[tuple[str, str, bool]] = []
        self.dead: list[str] = []
        self.ports = [Port(self.gate, self.locks), Port(self.gate, self.locks)]
        self.opened: list[sqlite3.Connection] = []

    def close(self) -> None:
        self.gate.close()
        for connection in self.opened:
            sqlite3.Connection.close(
                connection
            )  # not through the gate, which is closed, nor as a dead worker

    def ran(self, task: Task, pending: Pending, error: BaseException | None) -> Touch:
        self.ran_texts.append((task.letter, pending.text, error is None))
        return Touch.ANY

    def died(self, task: Task) -> None:
        self.dead.append(task.letter)
        self.ports[task.number].kill()

    def run(self, *scripts: Callable[[], object], choices: str = "") -> list[str]:
        def made(number: int, script: Callable[[], object]) -> Callable[[Task], None]:
            def run(task: Task) -> None:
                self.ports[number].task = task
                try:
                    script()
                finally:
                    self.ports[number].task = None

            return run

        tasks = [Task(f"worker {n + 1}", made(n, script)) for n, script in enumerate(scripts)]
        self.gate.run(tasks, Follow(choices.split()), self)
        return self.gate.choices

    @property
    def order(self) -> str:
        return " ".join(f"{letter}:{text}" for letter, text, _ in self.ran_texts)


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def connections(scene: Scene, path: Path, journal: str = "wal") -> list[Any]:
    with sqlite3.connect(path) as first:
        first.execute(f"pragma journal_mode = {journal}")
        first.execute("create table t (n integer)")
        first.execute("insert into t values (0)")
    first.close()
    made = [
        sqlite3.connect(path, isolation_level=None, factory=port.watched(sqlite3.Connection))
        for port in scene.ports
    ]
    scene.opened += made
    return made


def test_workers_stop_before_each_statement_and_go_on_as_chosen(scene: Scene) -> None:
    raw: dict[str, int] = {}
    one, other = (port.watched(raw) for port in scene.ports)

    def counts(mapping: Any) -> None:
        mapping["n"] = mapping.get("n", 0) + 1

    chosen = scene.run(lambda: counts(one), lambda: counts(other), choices="a b a b")
    assert chosen == ["a", "b", "a", "b"]
    assert scene.order == "a:['n'] b:['n'] a:['n'] = 1 b:['n'] = 1"
    assert raw == {"n": 1}


def test_outside_of_a_schedule_a_watched_driver_is_the_driver(scene: Scene, tmp_path: Path) -> None:
    one, other = connections(scene, tmp_path / "x.db")
    assert one.execute("update t set n = n + 1 returning n").fetchone() == (1,)
    assert list(other.execute("select n from t")) == [(1,)]
    assert scene.ran_texts == []
    one.close()
    other.close()


def test_a_statement_that_returns_what_it_wrote_has_ended_when_the_next_one_begins(
    scene: Scene, tmp_path: Path
) -> None:
    one, other = connections(scene, tmp_path / "x.db")
    seen: list[Any] = []

    def writes() -> None:
        cursor = one.execute("update t set n = 7 returning n")
        one.execute("select 1").fetchall()
        seen.append(cursor.fetchone())

    scene.run(writes, lambda: seen.append(other.execute("select n from t").fetchone()), choices="a b a")
    assert seen == [(7,), (7,)]
    one.close()
    other.close()


def test_a_worker_that_waits_for_a_lock_is_blocked_until_another_gets_on(
    scene: Scene, tmp_path: Path
) -> None:
    one, other = connections(scene, tmp_path / "x.db")

    def adds(connection: Any) -> None:
        connection.execute("begin immediate")
        connection.execute("update t set n = n + 1")
        connection.execute("commit")

    chosen = scene.run(lambda: adds(one), lambda: adds(other), choices="a b b b")
    assert "".join(chosen) == "aaabbb"
    assert (1, "b") in scene.gate.nothing
    assert all(fine for _, _, fine in scene.ran_texts)
    assert one.execute("select n from t").fetchone() == (2,)
    one.close()
    other.close()


def test_a_snapshot_that_is_too_old_is_an_error_at_once(scene: Scene, tmp_path: Path) -> None:
    one, other = connections(scene, tmp_path / "x.db")
    errors: list[int] = []

    def late() -> None:
        one.execute("begin")
        one.execute("select n from t").fetchall()
        try:
            one.execute("update t set n = 1")
        except sqlite3.OperationalError as error:
            errors.append(error.sqlite_errorcode)
        one.execute("rollback")

    scene.run(late, lambda: other.execute("update t set n = 2"), choices="a a b a")
    assert errors == [sqlite3.SQLITE_BUSY_SNAPSHOT]
    one.close()
    other.close()


def test_a_deadlock_is_told_with_who_waits_for_whom(scene: Scene) -> None:
    first, second = threading.Lock(), threading.Lock()
    held = [[port.watched(lock) for lock in (first, second)] for port in scene.ports]

    def takes(locks: list[Any]) -> None:
        with locks[0], locks[1]:
            pass

    scene.run(lambda: takes(held[0]), lambda: takes(held[1][::-1]), choices="a b a")
    told = cycle(scene.gate.deadlock)
    assert "worker 1 waits before its statement 2 (acquire the lock) for worker 2" in told
    assert "worker 2 waits before its statement 2 (acquire the lock) for worker 1" in told
    assert scene.locks == {}


def test_two_readers_that_both_want_to_write_are_a_deadlock_without_a_write_ahead_log(
    scene: Scene, tmp_path: Path
) -> None:
    one, other = connections(scene, tmp_path / "x.db", journal="delete")

    def adds(connection: Any) -> None:
        connection.execute("begin")
        (n,) = connection.execute("select n from t").fetchone()
        connection.execute("update t set n = ?", (n + 1,))
        connection.execute("commit")

    scene.run(lambda: adds(one), lambda: adds(other), choices="a a b b a b a b")
    assert "worker 1 waits" in cycle(scene.gate.deadlock)
    assert "worker 2 waits" in cycle(scene.gate.deadlock)


def test_a_lock_that_nobody_else_will_give_up_is_a_real_error(scene: Scene, tmp_path: Path) -> None:
    one, _ = connections(scene, tmp_path / "x.db")
    stranger = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    stranger.execute("begin immediate")
    failed: list[BaseException] = []

    def writes() -> None:
        try:
            one.execute("update t set n = 1")
        except sqlite3.OperationalError as error:
            failed.append(error)

    scene.run(writes)
    assert "locked" in str(failed[0])
    stranger.close()


@pytest.mark.parametrize("choices", ["a a a~", "a a a a!"])
def test_the_finally_of_a_dead_worker_cannot_commit(scene: Scene, tmp_path: Path, choices: str) -> None:
    one, other = connections(scene, tmp_path / "x.db")
    tried: list[str] = []

    def writes() -> None:
        one.execute("begin immediate")
        one.execute("update t set n = 5")
        try:
            one.execute("select 1")
            one.execute("select 2")
        finally:
            tried.append("finally")
            one.execute("commit")

    scene.run(writes, lambda: None, choices=choices)
    assert tried == ["finally"]
    assert scene.dead == ["a"]
    assert "commit" not in scene.order
    other.execute("begin immediate")  # the dead one's lock is gone
    assert other.execute("select n from t").fetchone() == (0,)
    with pytest.raises(DiedError):
        one.execute("select 1")
    other.close()


def test_the_lock_of_a_dead_worker_is_given_up(scene: Scene) -> None:
    lock = threading.RLock()
    mine, theirs = (port.watched(lock) for port in scene.ports)
    shared = scene.ports[0].watched({})
    taken: list[bool] = []

    def dies() -> None:
        with mine, mine:
            shared["a"] = 1

    scene.run(dies, lambda: taken.append(theirs.acquire()), choices="a a a! b")
    assert taken == [True]


def test_what_cannot_be_watched_is_refused_by_name(scene: Scene) -> None:
    with pytest.raises(TypeError, match="cannot be watched"):
        scene.ports[0].watched(object())


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (4, 4)])
def test_a_schedule_has_a_choice_for_each_statement(scene: Scene, n: int, m: int) -> None:
    from fencepost.conformance.schedules import switches

    mappings = [port.watched({}) for port in scene.ports]

    def reads(mapping: Any, times: int) -> None:
        for i in range(times):
            mapping.get(i)

    seen = set()
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        prefix = waiting.pop()
        choices = scene.run(
            lambda: reads(mappings[0], n), lambda: reads(mappings[1], m), choices=" ".join(prefix)
        )
        seen.add(tuple(choices))
        for place in range(len(prefix), len(choices)):
            waiting += [
                (*choices[:place], other) for other in scene.gate.options[place] if other != choices[place]
            ]
    assert len(seen) == comb(n + m, n)
    assert min(switches(choices) for choices in seen) == 1
