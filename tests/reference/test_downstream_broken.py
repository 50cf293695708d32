"""Each downstream that is broken on purpose does the one thing wrong that its name says."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    BROKEN_DOWNSTREAMS,
    DOWNSTREAM_STATEMENTS,
    Downstream,
    DownstreamStatements,
    observe_downstream,
    open_downstream,
)

from .support import FINGERPRINT, Clock, ok, request

KEY = request().key

Opener = Callable[..., Downstream]


class DeathError(BaseException):
    """The process is gone."""


class DiesAtTheRecord(sqlite3.Connection):
    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        if "insert into records" in statement:
            raise DeathError
        return super().execute(statement, *arguments)


def effects_after_a_death(opened: Opener, ledger: Path) -> int:
    dying = opened(connection_class=DiesAtTheRecord)
    with pytest.raises(DeathError):
        dying.apply(request())
    dying._connection.close()
    with opened() as heir:
        ok(heir.apply(request()))
    return len(observe_downstream(ledger).effects_of(KEY))


def effects_after_a_restart(opened: Opener, ledger: Path) -> int:
    for _ in range(2):
        with opened() as downstream:
            ok(downstream.apply(request()))
            ok(downstream.apply(request()))
    return len(observe_downstream(ledger).effects_of(KEY))


def answer_to_another_fingerprint(opened: Opener, _: Path) -> str:
    with opened() as downstream:
        ok(downstream.apply(request()))
        answer = downstream.apply(request(fingerprint="another"))
        return getattr(answer, "code", "ok")


def answer_to_an_old_owner(opened: Opener, _: Path) -> str:
    with opened() as downstream:
        ok(downstream.apply(request(token=2)))
        answer = downstream.apply(request(token=1, key="late"))
        return getattr(answer, "code", "ok")


def effects_after_a_tombstone(opened: Opener, ledger: Path) -> int:
    with opened() as downstream:
        ok(downstream.tombstone(KEY, FINGERPRINT, instance="order-1", resource="payment", token=1))
        downstream.apply(request())
    return len(observe_downstream(ledger).effects)


def answer_to_another_revision(opened: Opener, _: Path) -> str:
    with opened(revisioned=True) as downstream:
        answer = downstream.apply(request(expected_revision=7))
        return getattr(answer, "code", "ok")


CASES: dict[str, tuple[Callable[[Opener, Path], object], object, object]] = {
    "effect-and-record-in-two-transactions": (effects_after_a_death, 1, 2),
    "record-in-memory": (effects_after_a_restart, 1, 2),
    "fingerprint-not-compared": (answer_to_another_fingerprint, "key-conflict", "ok"),
    "fence-compared-the-wrong-way": (answer_to_an_old_owner, "stale-token", "ok"),
    "fence-not-compared": (answer_to_an_old_owner, "stale-token", "ok"),
    "tombstone-not-looked-at": (effects_after_a_tombstone, 0, 1),
    "revision-not-compared": (answer_to_another_revision, "wrong-revision", "ok"),
}


def test_each_broken_downstream_has_a_case() -> None:
    assert set(CASES) == set(BROKEN_DOWNSTREAMS)


@pytest.mark.parametrize("name", CASES)
def test_it_does_what_its_name_says_and_the_whole_one_does_not(
    name: str, tmp_path: Path, clock: Clock
) -> None:
    case, right, wrong = CASES[name]

    def answer(statements: DownstreamStatements, ledger: Path) -> object:
        def opened(**options: Any) -> Downstream:
            return open_downstream(
                ledger, clock_ms=clock, synchronous="OFF", statements=statements, **options
            )

        return case(opened, ledger)

    assert answer(DOWNSTREAM_STATEMENTS, tmp_path / "whole.db") == right
    assert answer(BROKEN_DOWNSTREAMS[name], tmp_path / "broken.db") == wrong
