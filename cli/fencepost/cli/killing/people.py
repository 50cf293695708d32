"""Who has no lease: a process that cancels, approves, rejects and decides, and delivers events again (§4).

It keeps nothing in mind that it could not find again: what it asks follows from what it sees in the store and
from the seed, and each request has the same id whenever it is made. So it may be killed and begun again at
any moment, like a worker.
"""

from __future__ import annotations

import select
import socket
import time
from dataclasses import astuple, dataclass, field
from random import Random
from typing import Final, cast

from fencepost.cli.killing.orders import Course, course_of, input_of, name_of
from fencepost.cli.killing.work import Line, Settings, WatchedStore, deliver_event, opened
from fencepost.reference import (
    Refused,
    Row,
    StepRow,
    StepStatus,
    Store,
    approve,
    cancel,
    decide,
    observe_downstream,
    reject,
    resume,
)
from fencepost.reference.downstream_values import DECLINED

LOOK_SECONDS: Final = 0.004
"""Between two looks at all orders; a look that took long is followed by a longer pause."""

SHARE_OF_LOOKING: Final = 4
"""How many times as long as a look the pause after it is: workers need the processor more."""

VERSIONS_BEFORE_THE_GATE: Final = 9
"""About as many commits does an order take until it asks for an approval."""

UNSURE: Final = "unsure of "
"""What people wait for leave with, before the name of an order about which they have to decide."""

LATE_SECONDS: Final = 0.2
"""How long after its approval an order is cancelled at the latest, if it is to be cancelled then."""


@dataclass(slots=True)
class People:
    """Those who ask something of orders: `zoe` buys, `eve` and `eli` approve and decide."""

    store: Store
    line: Line
    settings: Settings
    approved_at: dict[str, float] = field(default_factory=dict)
    asked: set[tuple[str, str]] = field(default_factory=set)

    def look_round(self) -> None:
        """Look at all orders that are not finished, and ask what there is to ask."""
        after = ""
        while names := self.store.open_instances(after=after):
            for name in names:
                self.look_at(name)
            after = names[-1]

    def look_at(self, instance: str) -> None:
        """Ask of one order what there is to ask of it now."""
        seen = self.store.read(instance)
        if isinstance(seen, Refused):
            return
        row = seen.value
        if self._is_to_be_cancelled(row) and self._first(instance, "cancel"):
            cancel(self.store, instance, requester="zoe", request_id="cancel", reason="a whim")
        for step in row.steps:
            if step.status is StepStatus.WAITING_APPROVAL:
                self._at_the_gate(instance, step)
            elif step.status is StepStatus.MANUAL_INTERVENTION:
                self._decide(row, step)
        name = f"resume at {row.state_version}"
        if row.manual_cause is not None and self._first(instance, name):
            resume(self.store, instance, requester="eve", request_id=name)

    def _first(self, instance: str, name: str) -> bool:
        """Whether something is asked for the first time, as far as is remembered: twice would be harmless."""
        new = (instance, name) not in self.asked
        self.asked.add((instance, name))
        return new

    def _is_to_be_cancelled(self, row: Row) -> bool:
        chance = Random(f"{self.settings.seed} {row.instance}").random()
        match course_of(row.instance):
            case Course.CANCELLED:
                return row.state_version > chance * VERSIONS_BEFORE_THE_GATE
            case Course.CANCELLED_LATE:
                since = self.approved_at.get(row.instance)
                return since is not None and time.monotonic() - since >= chance * LATE_SECONDS
            case _:
                return False

    def _at_the_gate(self, instance: str, step: StepRow) -> None:
        """Approve, two of them to be sure, or reject; what is to be cancelled before is left waiting."""
        course = course_of(instance)
        if course is Course.CANCELLED or not self._first(instance, step.step):
            return
        self.approved_at.setdefault(instance, time.monotonic())
        for who in ("eve", "eli"):
            if course is Course.REJECTED:
                reject(self.store, instance, step=step.step, requester=who)
            else:
                approve(self.store, instance, step=step.step, requester=who)

    def _decide(self, row: Row, step: StepRow) -> None:
        """Settle by hand what nobody else can, and say so: a compensation as done, an effect as it is.

        What an opaque downstream did can be found out by hand, but only when nothing is on its way any more:
        so they first have the supervisor end whoever may still send something.
        """
        name = f"decide {step.step} at {row.state_version}"  # what was decided may be overtaken
        if self._first(row.instance, name):
            if self.settings.opaque:
                self.line.at(f"{UNSURE}{row.instance}")
            decide(
                self.store,
                row.instance,
                step=step.step,
                status=self._status_of(row, step),
                requester="eve",
                request_id=name,
                reason="settled by hand",
            )

    def _status_of(self, row: Row, step: StepRow) -> StepStatus:
        if step.from_status is StepStatus.COMPENSATING:
            return StepStatus.COMPENSATED
        key = "" if step.intent is None else step.intent.key
        if observe_downstream(self.settings.ledger).effects_of(key):
            return StepStatus.SUCCEEDED
        if DECLINED in (step.reason or ""):
            return StepStatus.FAILED
        return StepStatus.RUNNING if row.unwinding_cause is None else StepStatus.CANCELLED

    def deliver_again(self, chance: Random, names: tuple[str, ...]) -> None:
        """Deliver the event of some order again, now and then with another content."""
        instance = chance.choice(names)
        more = {"cents": 1} if chance.random() < 0.2 else {}
        triggered = deliver_event(self.store, instance, {**input_of(instance), **more})
        self.line.tell(triggered=list(astuple(triggered)))


def ask(settings: Settings, instances: int, connection: socket.socket) -> None:
    """Look round again and again, until nobody listens any more; the body of the process."""
    line = Line(connection)
    names = tuple(name_of(number, instances=instances) for number in range(instances))
    try:
        with opened(settings) as store:
            watched = cast("Store", WatchedStore(store, line))
            people, chance = People(watched, line, settings), Random(settings.seed)
            while True:
                began = time.monotonic()
                people.deliver_again(chance, names)
                people.look_round()
                pause = max(LOOK_SECONDS, SHARE_OF_LOOKING * (time.monotonic() - began))
                if select.select([connection], [], [], pause)[0]:
                    return
    except Exception as error:  # noqa: BLE001  # as in work.py
        line.tell(failed=f"{type(error).__name__}: {error}")
