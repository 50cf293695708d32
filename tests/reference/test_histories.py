"""Where histories are kept (§15): they only grow, and no position is taken twice."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from fencepost.reference import (
    Command,
    CommandType,
    DamagedHistoryError,
    History,
    MemoryHistory,
    Outcome,
    Recorded,
    Result,
    StoreError,
    open_histories,
    open_store,
)
from fencepost.reference.replay_values import command

from .replays import Outside, ended, takes_two

VALUE = Result(Outcome.VALUE, "1")
OTHER = Result(Outcome.VALUE, "2")


def at(position: int, name: str = "charge") -> Command:
    kind = CommandType.CALL if position else CommandType.START
    return command(position, kind, name, {}, definition="v1")


def test_a_position_is_given_to_whoever_is_first(history: History) -> None:
    assert history.append(at(0), VALUE)
    assert history.append(at(1), None)
    assert not history.append(at(1, "send"), None)
    assert history.read() == (Recorded(at(0), VALUE), Recorded(at(1), None))


def test_no_position_is_skipped_and_nothing_follows_what_has_no_result(history: History) -> None:
    assert not history.append(at(1), VALUE)
    assert history.append(at(0), VALUE)
    assert not history.append(at(2), VALUE)
    assert history.append(at(1), None)
    assert not history.append(at(2), VALUE)
    assert history.settle(1, VALUE)
    assert history.append(at(2), VALUE)


def test_a_result_is_never_replaced_and_belongs_to_a_command(history: History) -> None:
    assert not history.settle(0, VALUE)
    history.append(at(0), VALUE)
    history.append(at(1), None)
    assert history.settle(1, VALUE)
    assert not history.settle(1, OTHER)
    assert not history.settle(2, OTHER)
    assert [r.result for r in history.read()] == [VALUE, VALUE]


@pytest.mark.parametrize("what", ["position", "result"])
def test_of_two_that_race_exactly_one_is_taken(tmp_path: Path, what: str) -> None:
    file = tmp_path / "histories.db"
    for number in range(20):
        run, barrier = f"run-{number}", Barrier(2)
        with open_histories(file, synchronous="OFF") as one, open_histories(file, synchronous="OFF") as other:
            one.of(run).append(at(0), VALUE)
            if what == "result":
                one.of(run).append(at(1), None)

            def racing(history: History, mine: Result, barrier: Barrier = barrier) -> bool:
                barrier.wait()
                return history.append(at(1), mine) if what == "position" else history.settle(1, mine)

            with ThreadPoolExecutor(2) as pool:
                first = pool.submit(racing, one.of(run), VALUE)
                second = pool.submit(racing, other.of(run), OTHER)
            assert [first.result(), second.result()].count(True) == 1
            assert one.of(run).read()[1].result == (VALUE if first.result() else OTHER)


def test_a_file_keeps_what_was_recorded_when_it_is_opened_again(tmp_path: Path) -> None:
    with open_histories(tmp_path / "histories.db", synchronous="OFF") as histories:
        first = ended(Outside(), takes_two, histories.of("order-42"))
        ended(Outside(), takes_two, histories.of("order-43"))
        kept = histories.of("order-42").read()
    with open_histories(tmp_path / "histories.db", synchronous="OFF") as histories:
        assert histories.runs() == ("order-42", "order-43")
        assert histories.of("order-42").read() == kept
        outside = Outside()
        assert outside.run(takes_two, histories.of("order-42")).ended == first
        assert outside.calls == []
        assert histories.of("order-44").read() == ()


@pytest.mark.parametrize("statement", [
    "update commands set name = 'x'", "update results set content = '2'", "delete from commands",
    "delete from results", "insert into results values ('order-42', 9, 'value', '1')",
    "insert or replace into results values ('order-42', 1, 'value', '2')",
])  # fmt: skip
def test_the_schema_itself_lets_a_history_only_grow(tmp_path: Path, statement: str) -> None:
    file = tmp_path / "histories.db"
    with open_histories(file, synchronous="OFF") as histories:
        ended(Outside(), takes_two, histories.of("order-42"))
        kept = histories.of("order-42").read()
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("pragma foreign_keys = on")
            connection.execute("pragma recursive_triggers = on")
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(statement)
        assert histories.of("order-42").read() == kept


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    open_store(tmp_path / "store.db", clock_ms=lambda: 1, synchronous="OFF").close()
    with pytest.raises(StoreError, match="database of something else"):
        open_histories(tmp_path / "store.db")


def test_a_row_that_nobody_can_read_is_damage(tmp_path: Path) -> None:
    file = tmp_path / "histories.db"
    with open_histories(file, synchronous="OFF") as histories:
        histories.of("order-42").append(at(0), VALUE)
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("pragma ignore_check_constraints = on")
            connection.execute("insert into commands values ('order-42', 1, 'jump', 'x', '{}', 'f', 'v1')")
        with pytest.raises(DamagedHistoryError, match="at position 1: 'jump'"):
            histories.of("order-42").read()


def changed(history: History, number: int, **changes: Any) -> list[Recorded]:
    rows = list(history.read())
    row = rows[number]
    fields = {f: getattr(row.command, f) for f in Command.__dataclass_fields__} | changes
    result = fields.pop("result", row.result)
    rows[number] = Recorded(Command(**fields), result)
    return rows


@pytest.mark.parametrize(
    ("position", "changes", "said"),
    [
        (1, {"position": 2}, "stands where position 1 belongs"),
        (0, {"type": CommandType.NOW}, "is no start"),
        (2, {"type": CommandType.START}, "starts a second time"),
        (1, {"arguments": '{"cents":501,"to":"ada"}'}, "do not fit their fingerprint"),
        (1, {"arguments": "{"}, "do not fit their fingerprint"),
        (1, {"result": None}, "has no result"),
        (3, {"result": None}, "has no result"),
    ],
)
def test_a_history_that_cannot_have_been_recorded_is_an_error_of_its_own(
    position: int, changes: dict[str, Any], said: str
) -> None:
    good = MemoryHistory("order-42")
    ended(Outside(), takes_two, good)
    bad = MemoryHistory("order-42", changed(good, position, **changes))
    with pytest.raises(DamagedHistoryError, match=said):
        Outside().run(takes_two, bad)


def test_a_history_that_goes_on_after_its_end_is_damaged() -> None:
    good = MemoryHistory("order-42")
    ended(Outside(), takes_two, good)
    rows = [*good.read(), *changed(good, 1, position=4)[1:2]]
    with pytest.raises(DamagedHistoryError, match="ends the run, but more is recorded"):
        Outside().run(takes_two, MemoryHistory("order-42", rows))
