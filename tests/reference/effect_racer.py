"""One of two workers, each a process, that race for the effects of the same instances.

A program of its own, run by `test_effect_race.py`. Of each instance one of them is the *zombie*: it takes the
lease, commits the intent, and then holds its request back until the other has taken over and settled the
step. Only then does it send; its own clock stands still, so that it does not notice the time. The other is
the *heir*: it waits for the intent, and then tries until the step is settled.

It prints its journal, one JSON object a line: what the held-back requests were answered.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fencepost.reference import (
    BROKEN_DOWNSTREAMS,
    DOWNSTREAM_STATEMENTS,
    Effect,
    Ok,
    Owner,
    Step,
    StepStatus,
    Store,
    TakesEffects,
    open_downstream,
    open_store,
    run_once,
)

PAUSE_SECONDS = 0.001
PATIENCE_SECONDS = 60.0  # only to end a test that has gone wrong
LEASE_MS = 25
STEPS = (Step("charge", Effect("payment", "charge", {"cents": 500})),)


def clock_ms() -> int:
    """Milliseconds since a moment on which all processes of one machine agree."""
    return time.monotonic_ns() // 1_000_000


def wait_for(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happens():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(PAUSE_SECONDS)


def is_settled(store: Store, instance: str) -> bool:
    row = store.read(instance)
    assert isinstance(row, Ok)
    return any(step.status not in (StepStatus.PENDING, StepStatus.RUNNING) for step in row.value.steps)


class Journal:
    """A downstream that writes down what the requests of one instance are answered."""

    def __init__(self, inner: TakesEffects, instance: str) -> None:
        self.inner = inner
        self.instance = instance
        self.capabilities = inner.capabilities

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def apply(self, request: Any) -> Any:
        answer = self.inner.apply(request)
        told = answer.value.receipt if isinstance(answer, Ok) else getattr(answer, "code", "unknown")
        print(json.dumps({"instance": self.instance, "token": request.token, "answer": told}))
        return answer


def haunt(store: Store, downstream: TakesEffects, owner: Owner, instance: str) -> None:
    held_back = False
    lease_ms = LEASE_MS

    def hold_back(point: str) -> None:
        nonlocal held_back
        if point == "sending":
            held_back = True
            wait_for(lambda: is_settled(store, instance))

    journal = Journal(downstream, instance)
    while not held_back:
        run_once(
            store,
            journal,
            owner,
            instance,
            STEPS,
            lease_ms=lease_ms,
            monotonic_ms=lambda: 0,
            at=hold_back,
        )
        lease_ms *= 2  # a slow machine, on which the intent was not committed in time


def inherit(store: Store, downstream: TakesEffects, owner: Owner, instance: str) -> None:
    def is_haunted() -> bool:
        row = store.read(instance)
        return isinstance(row, Ok) and any(step.intent for step in row.value.steps)

    wait_for(is_haunted)
    while not is_settled(store, instance):
        run_once(store, downstream, owner, instance, STEPS, lease_ms=10_000, monotonic_ms=clock_ms)
        time.sleep(PAUSE_SECONDS)


def main(path: str, ledger: str, number: int, instances: int, options: dict[str, Any]) -> None:
    broken = options.pop("broken", None)
    statements = BROKEN_DOWNSTREAMS[broken] if broken else DOWNSTREAM_STATEMENTS
    owner = Owner("ada", number)
    with (
        open_store(Path(path), clock_ms=clock_ms, busy_timeout_ms=60_000, synchronous="OFF") as store,
        open_downstream(
            Path(ledger),
            clock_ms=clock_ms,
            busy_timeout_ms=60_000,
            synchronous="OFF",
            statements=statements,
            **options,
        ) as downstream,
    ):
        print("ready", flush=True)
        sys.stdin.readline()
        for each in range(instances):
            work = haunt if each % 2 == number else inherit
            work(store, downstream, owner, f"order-{each}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), json.loads(sys.argv[5]))
