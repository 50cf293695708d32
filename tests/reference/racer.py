"""One of two processes that race for one instance. A program of its own, run by `test_race.py`.

As a *zombie* it takes the lease again and again, each time as another incarnation of the same worker, commits
once under each lease, and then waits until somebody else's commit stands in the log under a newer lease. Only
then does it commit, renew and release under the lease that it lost, with the state version as it is *now*: so
that nothing but what the store knows about leases can refuse it.

As a *hammer* it waits for nothing: it acquires, commits, renews and releases as fast as it can, on what it
believes, and every seventh time on a lease version that surely does not stand any more.

It prints its journal, one JSON object a line: every lease version it acquired, every answer it got.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

from fencepost.reference import STATEMENTS, Answer, Commit, Entry, Ok, Owner, Refused, Row, Store, open_store

INSTANCE = "order-1"
WORKER = "ada"
counter = count(1)
PAUSE_SECONDS = 0.000_5
PATIENCE_SECONDS = 60.0  # only to end a test that has gone wrong


def clock_ms() -> int:
    """Milliseconds since a moment on which all processes of one machine agree."""
    return time.monotonic_ns() // 1_000_000


def note(kind: str, owner: Owner, lease_version: int, **more: object) -> None:
    about = {"kind": kind, "incarnation": owner.incarnation, "lease_version": lease_version}
    print(json.dumps(about | more))


def word(answer: Answer[Row] | Answer[Entry]) -> str:
    return answer.code if isinstance(answer, Refused) else "ok"


def wait_for(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happens():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(PAUSE_SECONDS)


def acquire(store: Store, owner: Owner, lease_ms: int) -> Row | None:
    answer = store.acquire(INSTANCE, owner, lease_ms=lease_ms)
    if isinstance(answer, Refused):
        return None
    note("acquired", owner, answer.value.lease_version)
    return answer.value


def wait_for_lease(store: Store, owner: Owner, lease_ms: int) -> Row:
    while (row := acquire(store, owner, lease_ms)) is None:
        time.sleep(PAUSE_SECONDS)
    return row


def commit(store: Store, owner: Owner, believed: Row, kind: str) -> str:
    commit_id = f"{owner.incarnation}-{next(counter)}"
    answer = word(
        store.commit(
            Commit(INSTANCE, owner, commit_id, believed.state_version, believed.lease_version, event=kind)
        )
    )
    note(kind, owner, believed.lease_version, commit_id=commit_id, answer=answer)
    return answer


def come_late(store: Store, owner: Owner, lost: Row, rival_is_done: Callable[[], bool]) -> None:
    def overtaken() -> bool:
        return any(entry.lease_version > lost.lease_version for entry in store.log(INSTANCE))

    wait_for(lambda: overtaken() or rival_is_done())
    if not overtaken():
        return  # the rival is done, and nobody else will take over
    answer = "stale-state-version"
    while answer == "stale-state-version":  # the rival was quicker: not what this is about, so look again
        now = store.read(INSTANCE)
        assert isinstance(now, Ok)
        answer = commit(store, owner, replace(now.value, lease_version=lost.lease_version), "late commit")
    renewed = store.renew(INSTANCE, owner, lost.lease_version, lease_ms=1)
    note("late renew", owner, lost.lease_version, answer=word(renewed))
    released = store.release(INSTANCE, owner, lost.lease_version)
    note("late release", owner, lost.lease_version, answer=word(released))


def zombie(
    store: Store, *, number: int, rounds: int, lease_ms: int, rival_is_done: Callable[[], bool]
) -> None:
    incarnation = number
    while rounds:
        owner = Owner(WORKER, incarnation)
        row = wait_for_lease(store, owner, lease_ms)
        if commit(store, owner, row, "commit") == "ok":
            rounds -= 1
            come_late(store, owner, row, rival_is_done)
        else:
            lease_ms *= 2  # a slow machine
        incarnation += 2  # one rival's are even, the other's odd


def hammer(store: Store, *, number: int, rounds: int) -> None:
    owner = Owner(WORKER, number)
    believed = wait_for_lease(store, owner, lease_ms=1)
    for turn in range(rounds):
        believed = acquire(store, owner, lease_ms=1) or believed
        if commit(store, owner, believed, "commit") == "ok":
            believed = replace(believed, state_version=believed.state_version + 1)
        if turn % 7 == 0:
            commit(store, owner, replace(believed, lease_version=believed.lease_version - 1), "stale")
        if turn % 3 == 0:
            renewed = store.renew(INSTANCE, owner, believed.lease_version, lease_ms=2)
            note("renew", owner, believed.lease_version, answer=word(renewed))
        if turn % 5 == 0:
            released = store.release(INSTANCE, owner, believed.lease_version)
            note("release", owner, believed.lease_version, answer=word(released))


def main(path: str, role: str, number: int, rounds: int, commit_statement: str) -> None:
    done = [Path(f"{path}.{each}.done") for each in (0, 1)]
    statements = replace(STATEMENTS, commit=commit_statement)
    # Nobody cuts the power, so nobody waits for the disk; and no wait for the lock is too long.
    with open_store(
        path, clock_ms=clock_ms, busy_timeout_ms=60_000, synchronous="OFF", statements=statements
    ) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        if role == "zombie":
            zombie(store, number=number, rounds=rounds, lease_ms=4, rival_is_done=done[1 - number].exists)
        else:
            hammer(store, number=number, rounds=rounds)
    done[number].touch()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
