"""What passes through `watched`: drivers do what they do without it, and nothing of theirs is left out."""

import gc
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.conformance.drivers import Port
from fencepost.conformance.gate import DiedError, Gate, Pending, Task
from fencepost.conformance.sqlite_driver import main_word, split

from .test_gate import Scene, connections


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.gate.close()


class Raw:
    """A DB-API connection that is its own cursor and notes what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.isolation_level: Any = "deferred"

    def cursor(self) -> "Raw":
        return self

    def execute(self, text: str) -> "Raw":
        self.asked.append(text)
        return self

    executemany = executescript = execute

    def commit(self) -> None:
        self.asked.append("commit")

    def rollback(self) -> None:
        self.asked.append("rollback")

    def copy_from(self) -> None:
        self.asked.append("copy")

    def fetchone(self) -> tuple[int]:
        return (1,)

    def close(self) -> None:
        self.asked.append("close")


def test_an_attribute_of_a_watched_connection_is_set_on_the_connection(scene: Scene) -> None:
    raw = Raw()
    watched = scene.ports[0].watched(raw)
    watched.isolation_level = None
    watched.cursor().arraysize = 7
    assert (raw.isolation_level, watched.isolation_level) == (None, None)
    assert raw.arraysize == 7  # type: ignore[attr-defined]


def test_what_execute_gives_is_watched_too(scene: Scene) -> None:
    watched = scene.ports[0].watched(Raw())

    def runs() -> None:
        first = watched.execute("one")
        first.execute("two")
        first.connection.execute("three")
        assert first.fetchone() == (1,)

    scene.run(runs)
    assert scene.order == "a:one a:two a:three"


def test_each_statement_of_a_script_is_a_step_whatever_the_driver(scene: Scene, tmp_path: Path) -> None:
    one, _ = connections(scene, tmp_path / "x.db")
    raw = Raw()
    other = scene.ports[1].watched(raw)
    script = "begin; update t set n = 1; -- ; no\n update t set n = n + 1 where 'a;b' = 'a;b'; commit;"
    scene.run(lambda: one.executescript(script), lambda: other.executescript("one; two"))
    assert scene.order == (
        "a:begin; a:update t set n = 1; a:-- ; no\n update t set n = n + 1 where 'a;b' = 'a;b'; a:commit; "
        "b:one; b:two"
    )
    assert one.execute("select n from t").fetchone() == (2,)


@pytest.mark.parametrize("level", [None, "", "IMMEDIATE"])
def test_a_script_does_what_it_does_without_the_gate(scene: Scene, tmp_path: Path, level: Any) -> None:
    script = "insert into t values (1); begin; insert into t values (2); rollback; insert into t values (3)"

    def done(connection: Any) -> Any:
        connection.isolation_level = level
        connection.execute("insert into t values (9)")
        connection.executescript(script)
        rows = connection.execute("select n from t order by n").fetchall()
        return rows, connection.in_transaction, connection.isolation_level

    watched, _ = connections(scene, tmp_path / "x.db")
    connections(scene, tmp_path / "y.db")
    assert done(watched) == done(sqlite3.connect(tmp_path / "y.db", isolation_level=None))


def test_rows_are_written_one_by_one_where_each_is_a_transaction(scene: Scene, tmp_path: Path) -> None:
    one, _ = connections(scene, tmp_path / "x.db")
    counts = []

    def writes() -> None:
        counts.append(one.executemany("insert into t values (?)", iter([(1,), (2,)])).rowcount)
        one.execute("begin")
        counts.append(one.executemany("insert into t values (?)", [(3,), (4,)]).rowcount)
        one.execute("commit")

    scene.run(writes)
    insert = "a:insert into t values (?)"
    assert scene.order == f"{insert} {insert} a:begin {insert} a:commit"
    assert counts == [2, 2]


@pytest.mark.parametrize(
    "before",
    ["-- first\n", "/* ; select */ ", "with x as (select 1) ", "with x as (values (1)), y as (select 2) "],
)
def test_a_statement_that_returns_what_it_wrote_ends_whatever_stands_before_it(
    scene: Scene, tmp_path: Path, before: str
) -> None:
    one, other = connections(scene, tmp_path / "x.db")
    seen: list[Any] = []

    def writes() -> None:
        cursor = one.execute(before + "update t set n = 7 returning n")
        one.execute("select 1").fetchall()
        seen.append(cursor.fetchone())

    scene.run(writes, lambda: seen.append(other.execute("select n from t").fetchone()), choices="a b a")
    assert seen == [(7,), (7,)]


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("select 1", "select"),
        ("  ( select 1)", "select"),
        ("", ""),
        ("-- only", ""),
        ("with x as (delete) select 'update' from x", "select"),
        ("WITH a AS (SELECT 1) DELETE FROM t", "delete"),
    ],
)
def test_the_word_of_a_statement(sql: str, word: str) -> None:
    assert main_word(sql) == word


def test_a_trigger_is_one_statement_of_a_script() -> None:
    trigger = "create trigger a after insert on t begin update t set n = 1; delete from t; end;"
    assert list(split(f"{trigger} ; select 1")) == [trigger, "select 1"]


@pytest.mark.parametrize("how", ["execute", "executemany", "executescript", "commit", "copy_from", "cursor"])
def test_nothing_of_a_dead_workers_connection_can_be_reached(scene: Scene, how: str) -> None:
    raw = Raw()
    watched = scene.ports[0].watched(raw)
    late = getattr(watched, how)
    shared = scene.ports[0].watched({})

    def dies() -> None:
        try:
            shared["a"] = 1
        finally:
            late(*(["late"] if how.startswith("execute") else []))

    scene.run(dies, choices="a~")
    assert raw.asked == ["close"]
    with pytest.raises(DiedError):
        late(*(["late"] if how.startswith("execute") else []))


@pytest.mark.parametrize("how", ["isolation_level", "backup", "executescript", "cursor"])
def test_nothing_of_a_dead_workers_sqlite_can_be_reached(scene: Scene, tmp_path: Path, how: str) -> None:
    one, other = connections(scene, tmp_path / "x.db")

    def dies() -> None:
        one.execute("begin")
        try:
            one.execute("update t set n = 5")
        finally:
            if how == "isolation_level":
                one.isolation_level = None
            elif how == "backup":
                one.backup(sqlite3.connect(":memory:"))
            else:
                getattr(one, how)(*(["commit"] if how == "executescript" else []))

    scene.run(dies, choices="a a~")
    assert scene.dead == ["a"]
    assert other.execute("select n from t").fetchone() == (0,)


def test_an_open_connection_of_sqlite_is_refused_with_what_to_write() -> None:
    port = Port(Gate(), {})
    with pytest.raises(TypeError, match=r"factory=around\.watched"):
        port.watched(sqlite3.connect(":memory:"))


def test_a_connection_that_nobody_holds_any_more_is_closed(scene: Scene, tmp_path: Path) -> None:
    cls = scene.ports[0].watched(sqlite3.Connection)
    closed = []

    class Closing(Raw):
        def __del__(self) -> None:
            closed.append(True)

    for _ in range(3):
        sqlite3.connect(tmp_path / "x.db", factory=cls).execute("select 1").fetchall()
        scene.ports[0].watched(Closing()).execute("x")
    gc.collect()
    assert len(closed) == 3
    assert list(scene.ports[0]._open) == []


class SqlError(Exception):
    def __init__(self, sqlstate: str = "", code: int | None = None) -> None:
        self.sqlstate = sqlstate
        if code is not None:
            self.sqlite_errorcode = code


@pytest.mark.parametrize(
    ("error", "blocks", "denies"),
    [
        (SqlError("55P03"), True, False),
        (SqlError("40001"), False, True),
        (SqlError("40P01"), False, True),
        (SqlError("23505"), False, False),
        (SqlError(code=sqlite3.SQLITE_BUSY), True, False),
        (SqlError(code=sqlite3.SQLITE_BUSY_SNAPSHOT), False, True),
        (SqlError(code=sqlite3.SQLITE_LOCKED), False, True),
        (SqlError(code=sqlite3.SQLITE_LOCKED_SHAREDCACHE), False, True),
        (SqlError(code=sqlite3.SQLITE_CONSTRAINT), False, False),
        (ValueError(), False, False),
    ],
)
def test_another_worker_in_the_way_blocks_or_denies(
    scene: Scene, error: Exception, *, blocks: bool, denies: bool
) -> None:
    port = scene.ports[0]
    assert (port.blocks(error), port.denies(error)) == (blocks, denies)

    def fails() -> None:
        raise error

    counted = []

    def script(task: Task) -> None:
        with pytest.raises(type(error)):
            scene.gate.statement(task, Pending("x", fails, port))
        counted.append(task.denied)

    scene.gate.run([Task("one", script)], type("P", (), {"choose": lambda *_: "a"})(), scene)
    assert counted == [int(blocks or denies)]


def test_a_watched_dictionary_is_copied_and_joined_like_one_in_one_step_each(scene: Scene) -> None:
    raw: dict[str, Any] = {"a": 1, "in": {"x": 1}}
    watched = scene.ports[0].watched(raw)
    assert isinstance(watched, dict)
    own: Any = None

    def uses() -> None:
        nonlocal own
        own = watched.copy()
        own["b"] = 2
        own["in"]["x"] = 2
        assert (watched | {"c": 3})["c"] == 3
        assert ({"a": 0, "c": 3} | watched)["a"] == 1
        same = watched
        same |= {"d": 4}
        assert same is watched
        assert watched.popitem() == ("d", 4)

    scene.run(uses)
    assert raw == {"a": 1, "in": {"x": 2}}
    assert len(scene.ran_texts) == 6
