"""What the tests of workers share: a store and a downstream together, deaths, and answers that are lost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost.reference import (
    Downstream,
    Effect,
    Owner,
    Run,
    Step,
    StepRow,
    Store,
    StoreError,
    observe,
    observe_downstream,
    open_downstream,
    open_store,
    run_once,
    unwind,
)

from .support import LEASE_MS, Clock

STEPS = (
    Step("charge", Effect("payment", "charge", {"cents": 500}), compensation="refund"),
    Step("ship", Effect("parcel", "ship", {"to": "Zoë"})),
    Step("close"),
)

KEYED: dict[str, Any] = {}
FENCED_AND_QUERYABLE: dict[str, Any] = {"keyed": False}
QUERYABLE: dict[str, Any] = {"keyed": False, "fenced": False}
FENCED: dict[str, Any] = {"keyed": False, "queryable": False}
OPAQUE: dict[str, Any] = {"keyed": False, "fenced": False, "queryable": False}

CLASSES = {
    "keyed and fenced": KEYED,
    "keyed": {"fenced": False},
    "fenced and queryable": FENCED_AND_QUERYABLE,
    "queryable": QUERYABLE,
    "fenced": FENCED,
    "opaque": OPAQUE,
}


class DeathError(BaseException):
    """The worker is gone: nothing that it would do afterwards happens."""


@dataclass
class Between:
    """Stands between a worker and what it calls. Each call is given to `around` first.

    `around(name, call)` returns what the worker gets; it may call or not, raise, or do something else first.
    """

    inner: Any
    around: Callable[[str, Callable[[], Any]], Any]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not callable(found):
            return found
        return lambda *args, **named: self.around(name, lambda: found(*args, **named))


@dataclass
class Counted:
    """Counts calls and points; dies at the one of a given number, before or after it."""

    die_at: int = 10**9
    after: bool = False
    seen: list[str] = field(default_factory=list)

    def around(self, name: str, call: Callable[[], Any]) -> Any:
        self.seen.append(name)
        mine = len(self.seen) == self.die_at
        if mine and not self.after:
            raise DeathError
        answer = call()
        if mine:
            raise DeathError
        return answer


@dataclass
class World:
    path: Path
    ledger: Path
    clock: Clock
    options: dict[str, Any]

    @contextmanager
    def opened(self) -> Iterator[tuple[Store, Downstream]]:
        with (
            open_store(self.path, clock_ms=self.clock, synchronous="OFF") as store,
            open_downstream(
                self.ledger, clock_ms=self.clock, synchronous="OFF", **self.options
            ) as downstream,
        ):
            yield store, downstream

    def run(
        self,
        owner: Owner,
        *,
        at_store: Callable[[str, Callable[[], Any]], Any] = lambda _, call: call(),
        at_downstream: Callable[[str, Callable[[], Any]], Any] = lambda _, call: call(),
        at: Callable[[str], None] = lambda _: None,
        steps: tuple[Step, ...] = STEPS,
        monotonic_ms: Callable[[], int] | None = None,
    ) -> Run:
        with self.opened() as (store, downstream):
            return run_once(
                Between(store, at_store),  # type: ignore[arg-type]
                Between(downstream, at_downstream),
                owner,
                "order-1",
                steps,
                lease_ms=LEASE_MS,
                monotonic_ms=monotonic_ms or self.clock,
                at=at,
            )

    def unwind(self, owner: Owner, step: str = "charge", **more: Any) -> Run:
        with self.opened() as (store, downstream):
            return unwind(
                Between(store, more.get("at_store", lambda _, call: call())),  # type: ignore[arg-type]
                Between(downstream, more.get("at_downstream", lambda _, call: call())),
                owner,
                "order-1",
                step,
                reason="the order was withdrawn",
                lease_ms=LEASE_MS,
                monotonic_ms=self.clock,
            )

    def step(self, name: str = "charge") -> StepRow:
        found = observe(self.path).step("order-1", name)
        assert found is not None
        return found

    def effects(self, resource: str = "payment") -> int:
        seen = observe_downstream(self.ledger)
        return sum(effect.resource == resource for effect in seen.effects)

    def expire(self) -> None:
        self.clock.now_ms += LEASE_MS


def lose_the_answer(call: Callable[[], Any]) -> Any:
    call()
    raise StoreError("the connection is lost")


def die_at(point: str) -> Callable[[str], None]:
    def at(name: str) -> None:
        if name == point:
            raise DeathError

    return at


@dataclass
class Zombie:
    """A worker whose request is held back until it is let go, after somebody else has taken over."""

    meanwhile: Callable[[], None]
    answers: list[Any] = field(default_factory=list)

    def around(self, name: str, call: Callable[[], Any]) -> Any:
        if name != "apply" or self.answers:
            return call()
        self.meanwhile()
        self.answers.append(call())
        return self.answers[-1]


Make = Callable[..., World]
"""Makes a world whose downstream is of the class that the arguments say."""
