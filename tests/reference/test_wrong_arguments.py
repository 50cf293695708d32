"""What is wrong is refused where it is written, by its name and with what to write instead."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    MAX_TIME_MS,
    Activity,
    ArgumentError,
    Effect,
    MemoryHistory,
    ReplayedWorkflow,
    Retry,
    StoreError,
    Workflow,
    canonical_json,
    open_downstream,
    open_histories,
    open_store,
    recover,
    run_instance,
    run_once,
    run_workflow,
    start,
    work,
)

from .orders import NAME, THRICE, MakeOrders, maker
from .support import ADA, LEASE_MS, Clock, ok
from .worlds import STEPS

HUGE = 10**5_000
"""A number of more digits than Python writes."""


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeOrders]:
    with maker(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    "value",
    [HUGE, -HUGE, [HUGE], {"a": {"b": HUGE}}, {HUGE}, {HUGE: 1}, Unspeakable()],
    ids=["number", "negative", "in a list", "deep", "in a set", "key", "object"],
)
def test_a_value_that_cannot_be_written_is_refused_in_words(value: Any, make: MakeOrders) -> None:
    with pytest.raises(ArgumentError, match=r"canonical_json: \$"):
        canonical_json(value)
    with make(workflow=THRICE).opened() as (store, _):
        for more in ({"input": value}, {"implicit": value}):
            with pytest.raises(ArgumentError, match=r"canonical_json: \$"):
                start(store, THRICE, source="shop", event_id="9", **more)
        for wrong in (value, Unspeakable()):
            with pytest.raises(ArgumentError, match="instance must be a str"):
                start(store, THRICE, source="shop", event_id="9", instance=wrong)
    assert canonical_json(10**4_000) == "1" + "0" * 4_000


def test_a_number_out_of_bounds_is_refused_in_words_however_long_it_is() -> None:
    with pytest.raises(ArgumentError, match="Retry: attempts is a int that cannot be shown; pass a whole"):
        Retry(attempts=HUGE)


def test_what_begins_nothing_is_refused(make: MakeOrders) -> None:
    with make(workflow=THRICE).opened() as (store, _):
        with pytest.raises(ArgumentError, match="start: instance is empty"):
            start(store, THRICE, source="shop", event_id="9", instance="")
        with pytest.raises(ArgumentError, match="start: workflow must be a Workflow, not 'order'"):
            start(store, "order", source="shop", event_id="9")  # type: ignore[arg-type]


# Workflows as they are written.


WRITTEN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "approval": (
        lambda w: w.step(approval=True),
        r"approval must be .* Approval, .* approval=Approval\(\)",
    ),
    "retry": (
        lambda w: w.step(retry=3),
        r"retry must be .* not 3; write retry=Retry\(attempts=3\)",
    ),
    "no retry": (lambda w: w.step(retry=None), "step: retry must be .* Retry, not None"),
    "resource": (lambda w: w.step(resource=3), "step: resource must be a str, not 3"),
    "no resource": (lambda w: w.step(resource=""), "step: resource is empty"),
    "name": (lambda w: w.step(name=5), "step: name must be a str, not 5"),
    "no name": (lambda w: w.step(name=""), "step: name is empty"),
    "no function": (lambda w: w.step(name="b")(None), "step: expected a function, not None"),
    "a number": (lambda w: w.step(name="b")(5), "step: expected a function, not 5"),
    "parentheses": (lambda w: w.step(lambda _: 1), r"write @workflow.step\(\) with its parentheses"),
    "after a text": (lambda w: w.step(after="a"), r"not 'a'; write after=\('a',\)"),
    "after a list": (lambda w: w.step(after=["a"]), r"not \['a'\]; write after=\('a',\)"),
    "after two": (lambda w: w.step(after=["a", "b"]), r"write after=\('a', 'b'\)"),
    "after a number": (lambda w: w.step(after=(1,)), "step: after must be a str, not 1"),
    "after what has no hash": (lambda w: w.step(after=([],)), r"step: after must be a str, not \[\]"),
    "compensation": (
        lambda w: w.steps["a"].compensation(None),
        "compensation: expected a function",
    ),
    "instead": (lambda w: w.steps["a"].instead("refund"), "instead: expected a function, not 'refund'"),
    "notification": (
        lambda w: w.steps["a"].notification(None),
        "notification: expected a function",
    ),
    "former": (lambda w: w.migrates(Unspeakable(), name="m"), "a Definition, not a Unspeakable that cannot"),
    "parameters": (
        lambda _: Effect("r", "o", None),
        "Effect: parameters must be a mapping of names",
    ),
    "text": (lambda _: Effect("r", "o", "abc"), "Effect: parameters must be a mapping of names, not 'abc'"),
    "pairs": (lambda _: Effect("r", "o", [("a", 1)]), "Effect: parameters must be a mapping"),
    "operation": (lambda _: Effect("r", "", {}), "Effect: operation is empty"),
    "where": (lambda _: Effect(5, "o", {}), "Effect: resource must be a str, not 5"),
    "version": (lambda _: Effect("r", "o", {}, schema_version="1"), "Effect: schema_version must be an int"),
    "revision": (lambda _: Effect("r", "o", {}, expected_revision=-1), "Effect: expected_revision is -1"),
}


@pytest.mark.parametrize(("wrong", "message"), WRITTEN.values(), ids=WRITTEN)
def test_a_step_is_refused_where_it_is_written(wrong: Callable[[Any], Any], message: str) -> None:
    workflow = Workflow("w", version="1")
    workflow.step(name="a")(lambda _: None)
    before = workflow.definition
    with pytest.raises(ArgumentError, match=message):
        wrong(workflow)
    assert workflow.definition == before


# Workers.


@pytest.mark.parametrize("call", [work, run_instance, recover])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workflows": THRICE}, r"workflows must be a list of Workflow, .* write \[workflow\]"),
        ({"workflows": [THRICE, "order"]}, "workflows must be a list of Workflow"),
        ({"owner": "ada"}, "owner must be an Owner"),
        ({"lease_ms": 0}, "lease_ms is 0"),
        ({"lease_ms": MAX_TIME_MS + 1}, "lease_ms is "),
        ({"lease_ms": 1.5}, "lease_ms must be an int, not 1.5"),
        ({"monotonic_ms": 5}, "monotonic_ms must be a function, not 5"),
        ({"monotonic_ms": lambda: 0.5}, "monotonic_ms gives 0.5; give whole milliseconds"),
        ({"monotonic_ms": lambda: True}, "monotonic_ms gives True; give whole milliseconds"),
        ({"monotonic_ms": lambda: None}, "monotonic_ms gives None; give whole milliseconds"),
        ({"downstream": None}, "downstream must be a downstream with its Capabilities, not None"),
        ({"notifier": "mail"}, "notifier must be a downstream with its Capabilities, not 'mail'"),
    ],
)
def test_a_worker_refuses_what_is_wrong_before_it_does_anything(
    call: Callable[..., Any], changes: dict[str, Any], message: str, make: MakeOrders
) -> None:
    world = make(workflow=THRICE)
    before = world.row()
    with world.opened() as (store, downstream):
        right: dict[str, Any] = {"owner": ADA, "workflows": [THRICE], "lease_ms": LEASE_MS}
        right |= {"monotonic_ms": world.clock, "downstream": downstream}
        right |= {} if call is work else {"instance": NAME}
        with pytest.raises(ArgumentError, match=f"{call.__name__}: {message}"):
            call(store, **(right | changes))
    assert world.row() == before


def test_a_clock_that_turns_to_seconds_later_is_refused_and_nothing_is_sent(make: MakeOrders) -> None:
    """Else a worker would believe in a lease a thousand times as long."""
    world = make(workflow=THRICE)
    readings = iter([0, 0])
    with world.opened() as (store, downstream), pytest.raises(ArgumentError, match=r"gives 0\.001"):
        work(
            store,
            downstream,
            owner=ADA,
            workflows=[THRICE],
            lease_ms=LEASE_MS,
            monotonic_ms=lambda: next(readings, 0.001),  # type: ignore[arg-type, return-value]
        )
    assert world.effects() == []
    with world.opened() as (store, downstream):
        ok(store.create("order-2"))
        seconds: Any = lambda: 0.001  # noqa: E731
        with pytest.raises(ArgumentError, match=r"gives 0\.001"):
            run_once(store, downstream, ADA, "order-2", STEPS, lease_ms=LEASE_MS, monotonic_ms=seconds)


def test_an_activity_that_is_a_plain_function_is_refused_before_the_run_begins() -> None:
    history = MemoryHistory("order-42")
    outside: dict[str, Any] = {"clock_ms": lambda: 0, "random": lambda: 0.5, "new_id": lambda: "id"}
    workflow = ReplayedWorkflow("buy", lambda runtime: runtime.call("charge"), "1")
    wrong: Any = {"charge": lambda: "charged"}
    with pytest.raises(ArgumentError, match=r"'charge' is <function .*; write Activity\(function\)"):
        run_workflow(workflow, history, activities=wrong, **outside)
    assert history.read() == ()
    right = {"charge": Activity(wrong["charge"])}
    assert run_workflow(workflow, history, activities=right, **outside).recorded == 3


# Files.

OPENERS: dict[str, Callable[[Any], Any]] = {
    "open_store": lambda path: open_store(path, clock_ms=Clock()),
    "open_downstream": lambda path: open_downstream(path, clock_ms=Clock()),
    "open_histories": open_histories,
}


@pytest.mark.parametrize("who", OPENERS)
@pytest.mark.parametrize("path", [5, None, b"store.db", "nul\0.db", "", ":memory:", Unspeakable()])
def test_what_names_no_file_is_refused(path: Any, who: str) -> None:
    with pytest.raises(ArgumentError, match=f"{who}: path is .*; name a file"):
        OPENERS[who](path)


@pytest.mark.parametrize("who", OPENERS)
def test_a_path_that_no_database_can_be_at_is_told_apart(who: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="it is a directory, so name a file in it"):
        OPENERS[who](tmp_path)
    with pytest.raises(StoreError, match="does its directory exist"):
        OPENERS[who](tmp_path / "missing" / "store.db")


@pytest.mark.parametrize("who", OPENERS)
def test_what_may_not_be_written_is_told_of(
    who: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may do everything would find nothing forbidden, so what the system says is given."""
    (tmp_path / "locked.db").mkdir()  # nobody can open it, be it as a user who may do everything
    target = tmp_path / "locked.db" / "store.db"
    target.symlink_to(tmp_path / "locked.db" / "store.db")
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != target.parent)
    with pytest.raises(StoreError, match="its directory cannot be written to"):
        OPENERS[who](target)
    target.unlink()
    target.write_text("no database")
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != target)
    with pytest.raises(StoreError, match="the file cannot be read and written by this user"):
        OPENERS[who](target)


def test_a_business_that_is_no_function_is_refused(ledger: Path, clock: Clock) -> None:
    with pytest.raises(ArgumentError, match="decline must be a function, not 'no'"):
        open_downstream(ledger, clock_ms=clock, decline="no")  # type: ignore[arg-type]
