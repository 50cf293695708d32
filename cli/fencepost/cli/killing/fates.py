"""What happens to whom: at each point where a worker waits for leave, chance decides, from a seed.

Each kind of fault happens once, at the first occasion, so that also a short run has seen them all. The other
kills are spread over the work that is left: the more work, the seldomer. The last instance is not let finish
before the last kill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final

from fencepost.cli.killing.orders import ORDERS
from fencepost.reference.downstream_values import STALE_TOKEN


class Act(Enum):
    """What the supervisor does with a worker that waits for leave."""

    GO = "give it leave"
    KILL = "kill it where it waits"
    KILL_SOON = "give it leave, and kill it after a random short time"
    KILL_BOTH = "kill it where it waits, and the downstream with it"
    STOP_UNTIL_TAKEN = "stop it until another has its instance, and continue it before that one goes on"
    STOP_UNTIL_SETTLED = "stop it until another has settled its step"
    SILENCE = "kill the downstream, give leave, and start the downstream again afterwards"
    DOWNSTREAM_SOON = "give it leave, and kill the downstream after a random short time"
    PEOPLE_SOON = "give it leave, and kill who cancels, approves and decides after a random short time"


KILLS: Final = (Act.KILL, Act.KILL_SOON, Act.KILL_BOTH)
STOPS: Final = (Act.STOP_UNTIL_TAKEN, Act.STOP_UNTIL_SETTLED)

ONCE: Final[Sequence[tuple[str, Act]]] = (
    ("answered", Act.KILL_BOTH),
    ("answered", Act.STOP_UNTIL_TAKEN),
    ("sending", Act.STOP_UNTIL_SETTLED),
    ("sending", Act.SILENCE),
    ("sending", Act.KILL),
    ("started", Act.KILL),
    ("acquired", Act.KILL),
    ("derived", Act.KILL),
    ("intent-committed", Act.KILL),
    ("outcome-committed", Act.KILL),
    ("sending", Act.DOWNSTREAM_SOON),
    ("retry-committed", Act.KILL),
    ("approval-asked", Act.PEOPLE_SOON),
    ("approval-asked", Act.KILL),
    ("unwinding-committed", Act.KILL),
    ("undo-answered", Act.KILL_BOTH),
    ("undo-sending", Act.STOP_UNTIL_SETTLED),
    ("undo-sending", Act.KILL),
    ("undo-committed", Act.KILL),
    ("undone-committed", Act.KILL),
    ("handed-over", Act.KILL),
    ("decision-committed", Act.KILL),
    ("telling", Act.KILL),
    ("telling-answered", Act.KILL_BOTH),
    ("finished", Act.KILL),
)
"""What happens once in any case, if there are kills enough."""

ONCE_WITHOUT_KEYS: Final[Sequence[tuple[str, Act]]] = (
    ("fence-raised", Act.KILL),
    ("query-answered", Act.KILL),
)

MOST_STOPS: Final = 10
"""How often a worker is stopped at most, beyond what chance says, for a fence to refuse it."""

POINTS_OF_A_STEP: Final = 5
"""derived, intent-committed, sending, answered, outcome-committed; and as many when it is undone."""

SENDING: Final = ("sending", "undo-sending")
STOPPING: Final = (*SENDING, "answered", "undo-answered", "intent-committed", "undo-committed")
"""Where it says something that a worker goes on which has lost its lease."""

ONE_IN: Final = 25
"""How seldom, at the points where it says something, a worker is stopped or the downstream killed."""


@dataclass(slots=True)
class Fates:
    """What is still to happen, and what work is left to let it happen in.

    `steps_left` are the steps that an instance still has, as far as workers told; `closing` the instances
    whose workers were given leave to finish them, and may have. `stops_left` says how often
    another worker is stopped at most until a fence has refused one.
    """

    random: Random
    kills_left: int
    steps_left: dict[str, int]
    closing: set[str] = field(default_factory=set)
    once: list[tuple[str, Act]] = field(default_factory=list)
    stops_left: int = 0
    work_left: int = 0

    def __post_init__(self) -> None:
        self.work_left = sum(self.steps_left.values())

    def went_on(self, point: str, act: Act, answer: str | None) -> None:
        """What the downstream said to a worker that went on after `act`, or None if it died before.

        A worker that is stopped until another has settled its step is stopped to be refused by the fence. It
        is not where the other had something else to settle, such as a cancel: then another one is stopped.
        """
        if act is not Act.STOP_UNTIL_SETTLED or point not in SENDING:
            return
        if answer == STALE_TOKEN:
            self.stops_left = 0  # it has been seen
        elif self.stops_left and self.kills_left:
            self.stops_left -= 1
            self.once.append((point, act))

    def give_up(self) -> None:
        """From now on nothing happens to anybody."""
        self.kills_left = 0
        self.once.clear()

    def acquired(self, instance: str, steps_left: int) -> None:
        """A worker has the instance, with so many steps to do."""
        self.left(instance, steps_left)
        self.closing.discard(instance)

    def left(self, instance: str, steps_left: int) -> None:
        """An instance has so many steps to do."""
        self.work_left += steps_left - self.steps_left.get(instance, 0)
        self.steps_left[instance] = steps_left

    def at(self, point: str, instance: str | None, *, may_stop: bool) -> Act:
        """What happens to a worker that waits at a point; `may_stop` says whether it may be to stop it."""
        act = self._act(point, instance, may_stop=may_stop)
        if act in KILLS:
            self.kills_left -= 1
        elif act not in STOPS and instance is not None and self._finishes(point, instance):
            self.closing.add(instance)
        return act

    def _act(self, point: str, instance: str | None, *, may_stop: bool) -> Act:
        finishes = instance is not None and self._finishes(point, instance)
        last = finishes and len(self.closing - {instance}) >= len(self.steps_left) - 1
        if self.kills_left and last:
            return Act.KILL
        for each in self.once:
            where, act = each
            possible = may_stop if act in STOPS else self.kills_left > 0 or act not in KILLS
            if where == point and possible:
                self.once.remove(each)
                return act
        spare = self.kills_left - sum(act in KILLS for _, act in self.once)
        return self._by_chance(point, spare, finishes=finishes, may_stop=may_stop)

    def _finishes(self, point: str, instance: str) -> bool:
        """Whether nothing is left to do but to end the instance, which is not done yet."""
        return point != "finished" and not self.steps_left.get(instance, 0)

    def _by_chance(self, point: str, spare: int, *, finishes: bool, may_stop: bool) -> Act:
        """`spare` are the kills that are not kept for what is to happen once."""
        chance = self.random.random
        if not self.kills_left:
            return Act.GO
        if point in STOPPING and chance() * ONE_IN < 1 and may_stop:
            return self.random.choice(STOPS)
        if point in SENDING and chance() * ONE_IN < 1:
            return self.random.choice((Act.SILENCE, Act.DOWNSTREAM_SOON))
        if spare <= 0 or chance() * (spare + self.work_left * POINTS_OF_A_STEP) >= spare:
            return Act.GO
        if point in ("answered", "undo-answered") and chance() < 0.1:
            return Act.KILL_BOTH
        # An instance that finishes at the moment of the kill would be counted as work that is left.
        return Act.KILL if finishes else self.random.choice((Act.KILL, Act.KILL_SOON))


def fates(random: Random, kills: int, instances: Sequence[str], *, asks: bool, fenced: bool = True) -> Fates:
    """What is to happen in a run with so many kills.

    `asks` says that workers fence off and ask, `fenced` that the downstream has a fence.
    """
    ours = Fates(random, kills, dict.fromkeys(instances, len(ORDERS.steps)))
    ours.stops_left = MOST_STOPS if fenced else 0
    if kills:
        ours.once += (*ONCE, *ONCE_WITHOUT_KEYS) if asks else ONCE
    return ours
