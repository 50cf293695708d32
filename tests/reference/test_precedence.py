"""Every operation on every combination of a small set of rows and arguments, against a few lines of Python.

The rows are written straight into the tables, so that states are met which a short run would not reach,
versions at their bound among them. Each case has an instance of its own; at the end the whole database must
be what the oracle foretold, so that no case may have touched another's row either.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, product
from pathlib import Path

from fencepost.reference import (
    MAX_VERSION,
    Answer,
    Commit,
    Entry,
    Ok,
    Owner,
    Refused,
    Row,
    Store,
    observe,
    open_store,
)

from .support import ADA, ADA_RESTARTED, BOB, Clock

NOW_MS = 1_000
EXPIRIES_MS = (None, NOW_MS - 1, NOW_MS, NOW_MS + 1, NOW_MS + 50)
VERSIONS = (0, 1, 2, MAX_VERSION - 1, MAX_VERSION)
LEASES_MS = (1, 10)
OWNERS = (ADA, ADA_RESTARTED, BOB)
LOGGED = "logged"


@dataclass(frozen=True)
class World:
    """One instance before or after a case: its row, if it has one, and its log."""

    row: Row | None
    log: tuple[Entry, ...] = ()


Outcome = tuple[Ok[Row] | Ok[Entry] | Refused, World]


def live(row: Row) -> bool:
    return row.expires_at_ms is not None and row.expires_at_ms > NOW_MS


# The oracle: what the protocol says, in the order in which it says it.


def acquire(world: World, owner: Owner, lease_ms: int) -> Outcome:
    row = world.row
    if row is None:
        return Refused("no-such-instance", None), world
    if row.status == "succeeded":
        return Refused("finished", row), world
    if live(row):
        return Refused("lease-live", row), world
    if row.lease_version == MAX_VERSION:
        return Refused("lease-version-exhausted", row), world
    row = replace(row, owner=owner, lease_version=row.lease_version + 1, expires_at_ms=NOW_MS + lease_ms)
    return Ok(row), World(row, world.log)


def renew(world: World, owner: Owner, lease_version: int, lease_ms: int) -> Outcome:
    row = world.row
    if row is None:
        return Refused("no-such-instance", None), world
    if row.lease_version != lease_version:
        return Refused("stale-lease-version", row), world
    if row.owner != owner:
        return Refused("not-the-owner", row), world
    if not live(row):
        return Refused("lease-expired", row), world
    assert row.expires_at_ms is not None
    row = replace(row, expires_at_ms=max(row.expires_at_ms, NOW_MS + lease_ms))
    return Ok(row), World(row, world.log)


def release(world: World, owner: Owner, lease_version: int) -> Outcome:
    row = world.row
    if row is None:
        return Refused("no-such-instance", None), world
    if row.lease_version != lease_version:
        return Refused("stale-lease-version", row), world
    if row.owner != owner:
        return Refused("not-the-owner", row), world
    row = replace(row, expires_at_ms=None)
    return Ok(row), World(row, world.log)


def commit(world: World, asked: Commit) -> Outcome:
    row = world.row
    if row is None:
        return Refused("no-such-instance", None), world
    for entry in world.log:
        if entry.commit_id == asked.commit_id:
            return Ok(entry), world
    if row.lease_version != asked.expected_lease_version:
        return Refused("stale-lease-version", row), world
    if row.owner != asked.owner:
        return Refused("not-the-owner", row), world
    if row.status == "succeeded":
        return Refused("finished", row), world
    if not live(row):
        return Refused("lease-expired", row), world
    if row.state_version != asked.expected_state_version:
        return Refused("stale-state-version", row), world
    if row.state_version == MAX_VERSION:
        return Refused("state-version-exhausted", row), world
    status = "succeeded" if asked.finishes else row.status
    row = replace(row, state_version=row.state_version + 1, status=status)
    entry = Entry(
        row.instance, row.state_version, row.lease_version, asked.owner, asked.commit_id, "e", "", NOW_MS
    )
    return Ok(entry), World(row, (*world.log, entry))


# The cases.


Maker = Callable[[], tuple[str, World]]
"""Begins another instance of one kind."""


def worlds(
    names: Iterator[str], lease_versions: tuple[int, ...], state_versions: tuple[int, ...]
) -> Iterator[Maker]:
    """A maker for each kind of world: no row, no lease yet, and every lease at each of the versions."""

    def maker(
        owner: Owner | None, lease_version: int, expires_at_ms: int | None, state_version: int, status: str
    ) -> Maker:
        def make() -> tuple[str, World]:
            name = next(names)
            log: tuple[Entry, ...] = ()
            if state_version > 0 and lease_version > 0:
                log = (Entry(name, state_version, lease_version, ADA, LOGGED, "e", "", 1),)
            return name, World(Row(name, owner, lease_version, expires_at_ms, state_version, status), log)

        return make

    yield lambda: (next(names), World(None))
    for state_version, status in product(state_versions, ("running", "succeeded")):
        yield maker(None, 0, None, state_version, status)
        for owner, lease_version, expires_at_ms in product((ADA, BOB), lease_versions, EXPIRIES_MS):
            yield maker(owner, lease_version, expires_at_ms, state_version, status)


@dataclass(frozen=True)
class Case:
    before: World
    call: Callable[[Store], Answer[Row] | Answer[Entry]]
    expected: Outcome


def lease_cases(names: Iterator[str]) -> Iterator[Case]:
    for make in worlds(names, VERSIONS[1:], (0, 1)):
        for owner, lease_ms in product(OWNERS, LEASES_MS):
            name, world = make()
            call = partial(Store.acquire, instance=name, owner=owner, lease_ms=lease_ms)
            yield Case(world, call, acquire(world, owner, lease_ms))
        for owner, version, lease_ms in product(OWNERS, VERSIONS, LEASES_MS):
            name, world = make()
            call = partial(Store.renew, instance=name, owner=owner, lease_version=version, lease_ms=lease_ms)
            yield Case(world, call, renew(world, owner, version, lease_ms))
        for owner, version in product(OWNERS, VERSIONS):
            name, world = make()
            call = partial(Store.release, instance=name, owner=owner, lease_version=version)
            yield Case(world, call, release(world, owner, version))


def commit_cases(names: Iterator[str]) -> Iterator[Case]:
    state_versions = (0, 1, MAX_VERSION - 1, MAX_VERSION)
    for make in worlds(names, (1, MAX_VERSION), state_versions):
        for owner, lease_version, state_version, commit_id, finishes in product(
            (ADA, ADA_RESTARTED), (0, 1, MAX_VERSION), state_versions, (LOGGED, "new"), (False, True)
        ):
            name, world = make()
            asked = Commit(name, owner, commit_id, state_version, lease_version, "e", finishes=finishes)
            yield Case(world, partial(Store.commit, commit=asked), commit(world, asked))


def write(path: Path, cases: list[Case]) -> None:
    """Put the worlds of all cases into the tables, past the store."""
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = [case.before.row for case in cases if case.before.row is not None]
        connection.executemany(
            "insert into instances (instance, owner_worker, owner_incarnation, lease_version, expires_at_ms,"
            " state_version, status) values (?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    row.instance,
                    row.owner and row.owner.worker,
                    None if row.owner is None else row.owner.incarnation,
                    row.lease_version,
                    row.expires_at_ms,
                    row.state_version,
                    row.status,
                )
                for row in rows
            ],
        )
        connection.executemany(
            "insert into event_log (instance, state_version, lease_version, owner_worker, owner_incarnation,"
            " commit_id, event, payload, committed_at_ms) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    entry.instance,
                    entry.state_version,
                    entry.lease_version,
                    entry.owner.worker,
                    entry.owner.incarnation,
                    entry.commit_id,
                    entry.event,
                    entry.payload,
                    entry.committed_at_ms,
                )
                for case in cases
                for entry in case.before.log
            ],
        )


def agree(path: Path, cases: list[Case]) -> set[str]:
    """Run all cases on one store and compare answers and tables with the oracle; the codes that were met."""
    with open_store(path, clock_ms=Clock(NOW_MS), synchronous="OFF") as store:
        write(path, cases)
        for case in cases:
            assert case.call(store) == case.expected[0], case
    after = [case.expected[1] for case in cases]
    observed = observe(path)
    assert observed.now_ms == NOW_MS
    # Instances are numbered in the order of the cases, and a log is in order: so both lists are sorted.
    assert observed.rows == tuple(world.row for world in after if world.row is not None)
    assert observed.entries == tuple(entry for world in after for entry in world.log)
    answers = [case.expected[0] for case in cases]
    return {answer.code if isinstance(answer, Refused) else "ok" for answer in answers}


def test_lease_operations_agree_with_the_oracle_on_the_whole_product(path: Path) -> None:
    cases = list(lease_cases(f"i{number:06}" for number in count()))
    assert len(cases) == (1 + 2 * 2 * 41) * (6 + 30 + 15)
    assert agree(path, cases) == {
        "ok",
        "no-such-instance",
        "finished",
        "lease-live",
        "lease-version-exhausted",
        "stale-lease-version",
        "not-the-owner",
        "lease-expired",
    }


def test_commits_agree_with_the_oracle_on_the_whole_product(path: Path) -> None:
    cases = list(commit_cases(f"i{number:06}" for number in count()))
    assert len(cases) == (1 + 4 * 2 * 21) * 96
    assert agree(path, cases) == {
        "ok",
        "no-such-instance",
        "stale-lease-version",
        "not-the-owner",
        "finished",
        "lease-expired",
        "stale-state-version",
        "state-version-exhausted",
    }
