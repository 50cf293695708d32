"""Instances and downstreams that make trouble, for the tests of who else is served."""

from collections.abc import Callable
from typing import Any

from fencepost.reference import (
    ArgumentError,
    Context,
    Retry,
    Run,
    Workflow,
    events,
)

from .orders import NAME, Orders, single
from .support import ADA, ok

HEALTHY = Workflow("healthy", version="1")
HEALTHY.step(name="think")(lambda _: "thought")
LAST = "z-healthy"
"""Sorted behind the instance that makes trouble."""

ONCE = single(Retry(attempts=2, delay_ms=10))


def rounds(world: Orders, workflow: Workflow, number: int = 6, **more: Any) -> list[Run]:
    """Let a worker run until the instance has had every chance, with a healthy one behind it."""
    world.begin(HEALTHY, LAST)
    runs: list[Run] = []
    for _ in range(number):
        runs += world.work(ADA, workflows=(workflow, HEALTHY), **more)
        world.clock.now_ms += 100_000
    with world.opened() as (store, _):
        assert ok(store.read(LAST)).status == "succeeded"
    return runs


def log(world: Orders) -> str:
    with world.opened() as (store, _):
        return "\n".join(events(store, NAME))


def senseless(name: str, call: Callable[[], Any]) -> Any:
    """A downstream, or its client, that cannot take what is to be applied, and does nothing."""
    if name == "apply":
        raise ArgumentError("the request has 70,000 bytes")
    return call()


def raising(error: Exception) -> Callable[[Context], Any]:
    def decide(_: Context) -> Any:
        raise error

    return decide


class OddError(Exception):
    """One that cannot say itself."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def raises(error: Exception) -> Callable[[], Any]:
    def call() -> Any:
        raise error

    return call
