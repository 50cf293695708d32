"""Random runs: one Hypothesis state machine, made from the model's table of actions.

A rule per action; its arguments are drawn from those with which the model can make the move where the run
stands; time passes between moves as drawn, and a lease runs out exactly at its end or later. Hypothesis
chooses, and makes failing runs smaller; what a run is, and when it fails, is the business of `session`.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from fencepost.conformance.goals import Goal
from fencepost.conformance.mapping import Lease
from fencepost.conformance.moves import LAST_MOMENT_MS, LEASE_MS, RESTART, WAIT, Move, Step
from fencepost.conformance.plans import Plan
from fencepost.conformance.runs import breaks
from fencepost.conformance.session import Session
from fencepost.model.core.state import WORLD
from fencepost.model.recovery.state import DEVELOPER

if TYPE_CHECKING:
    from hypothesis import settings as Settings  # noqa: N812  # it is a class
    from hypothesis.stateful import RuleBasedStateMachine
    from hypothesis.strategies import SearchStrategy

Entry = TypeVar("Entry")

WAITS_MS = (0, 0, 0, 1, LAST_MOMENT_MS, 3)
"""Drawn waits: none, a moment, up to the last millisecond of a live lease, and something in between."""

BEYOND_MS = (0, 0, 1, 7)
"""Drawn times beyond the end of a lease: most often none, since its end is where clocks are compared."""

LEASES_MS = (LEASE_MS, 1, 2, 50)
"""Drawn lengths of leases; after one of 1 ms, the next millisecond is its end."""

WEIGHT = 4
"""How much more often a move is chosen that is no fault and no wait: faults alone lead nowhere."""

COPIES = 5
"""How often everything stands in the table that is drawn from, so that each entry has many neighbours."""

MOST_TRIES = 100
"""How many smaller runs are tried once a run is broken; `runs.shortened` goes on from there."""


class BrokenRun(AssertionError):  # noqa: N818  # what it tells of is a run
    """A run that broke something that was to hold: what broke, and the steps."""

    def __init__(self, names: tuple[str, ...], steps: Sequence[Step], message: str) -> None:
        super().__init__(message)
        self.names = names
        self.steps = tuple(steps)


def _nothing(_: object) -> None:
    """Report to nobody."""


@dataclass(slots=True)
class Watch:
    """What runs report to, and what they fail on: `wanted` are the names of claims that are to hold."""

    wanted: set[str]
    on_step: Callable[[Step], None] = _nothing
    on_end: Callable[[Session], None] = _nothing
    expired: Callable[[], bool] = lambda: False
    """Whether there is no time left: runs then end at once."""
    broken: BrokenRun | None = field(default=None, init=False)
    """The last run that failed: the smallest, once Hypothesis has made it smaller."""
    most_tries: int | None = None
    """How many more runs are made once one failed; later ones end at once. None means no limit."""
    tries: int = field(default=0, init=False)

    def begin(self) -> None:
        """Forget what was broken before."""
        self.broken, self.tries = None, 0

    def over(self) -> bool:
        """Whether a run that begins now has nothing to do."""
        if self.broken is not None:
            self.tries += 1
        return self.expired() or (self.most_tries is not None and self.tries > self.most_tries)


class Player:
    """One run on behalf of a state machine: what it may choose from, and when it fails."""

    def __init__(self, plan: Plan, watch: Watch) -> None:
        self.plan = plan
        self.calm = False
        """Whether nothing goes wrong any more in this run."""
        self._watch = watch
        self._session: Session | None = None if watch.over() else Session(plan).__enter__()

    def choices(self, action: str) -> list[tuple[int, ...]]:
        """The argument codes with which an action is possible now."""
        return [] if self._session is None else self._session.choices(action)

    def play(self, move: Move) -> None:
        """Make a move, if it is possible. Raises BrokenRun when that breaks what was to hold."""
        step = None if self._session is None else self._session.play(move)
        if step is None or self._session is None:
            return
        watch, steps = self._watch, self._session.steps
        watch.on_step(step)
        names = tuple(name for name in breaks(step) if name in watch.wanted)
        if names:
            watch.broken = BrokenRun(
                names, steps, f"{self.plan.adapter.name}: {', '.join(names)} broken after {len(steps)} steps"
            )
            raise watch.broken

    def go_to(self, goal: Goal | None, waits_ms: Sequence[int]) -> None:
        """Go straight to a goal."""
        for number, (action, arguments) in enumerate(() if goal is None else goal.steps):
            wait_ms = waits_ms[number] if number < len(waits_ms) else 0
            self.play(Move(action, arguments, 0 if runs_out(self.plan, action) else wait_ms))

    def end(self) -> None:
        """The run is over."""
        if self._session is not None:
            self._watch.on_end(self._session)
            self._session.close()


def machine(plan: Plan, goals: Callable[[], Sequence[Goal]], watch: Watch) -> type[RuleBasedStateMachine]:
    """The state machine for one adapter: a class for Hypothesis to run. Goals are asked for when it runs."""
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

    draws = {name: _draws(plan, name) for name in plan.performances}
    steering = _steering(plan, draws)

    class LockStep(RuleBasedStateMachine):
        """Runs of the implementation beside the model."""

        def __init__(self) -> None:
            super().__init__()
            self.player = Player(plan, watch)
            # Our own choice among the rules; a Hypothesis without such an attribute chooses as it does.
            vars(self)["_rules_strategy"] = steering

        def teardown(self) -> None:
            self.player.end()

        @rule(wait_ms=st.sampled_from(WAITS_MS))
        def wait(self, wait_ms: int) -> None:
            """Time passes."""
            self.player.play(Move(WAIT, (), wait_ms))

        @initialize(
            calm=st.booleans(),
            goal=st.deferred(lambda: st.sampled_from([None, *goals()])),
            waits_ms=st.lists(st.sampled_from(WAITS_MS), max_size=8),
        )
        def begin(self, calm: bool, goal: Goal | None, waits_ms: list[int]) -> None:  # noqa: FBT001
            """Go straight to a goal, or begin anywhere; when calm, nothing more goes wrong in the run."""
            self.player.go_to(goal, waits_ms)
            self.player.calm = calm

    as_rule: Any = rule  # its type has an overload for each use but this one
    guarded_by: Any = precondition
    for name in plan.performances:
        made = as_rule(**draws[name])(_rule(name))
        setattr(LockStep, name, guarded_by(_possible(name))(made))
    if RESTART in plan.others:
        setattr(LockStep, RESTART, rule(wait_ms=st.sampled_from(WAITS_MS))(_restart))
    return LockStep


def _restart(self: Any, wait_ms: int) -> None:
    """The downstream is closed and opened again."""
    self.player.play(Move(RESTART, (), wait_ms))


_restart.__name__ = RESTART


def _possible(name: str) -> Callable[[Any], bool]:
    return lambda self: bool(self.player.choices(name))


def runs_out(plan: Plan, action: str) -> bool:
    """Whether the action is that the lease's time is over."""
    return plan.performances[action].lease is Lease.RUNS_OUT


def _draws(plan: Plan, name: str) -> dict[str, SearchStrategy[Any]]:
    """What is drawn for an action: its arguments and the time that goes with it."""
    from hypothesis import strategies as st

    draws: dict[str, SearchStrategy[Any]] = {
        "arguments": st.runner().flatmap(lambda self: st.sampled_from(self.player.choices(name))),
        "wait_ms": st.sampled_from(BEYOND_MS if runs_out(plan, name) else WAITS_MS),
    }
    if plan.performances[name].takes_lease_ms:
        draws["lease_ms"] = st.sampled_from(LEASES_MS)
    return draws


def _steering(plan: Plan, draws: Mapping[str, Mapping[str, SearchStrategy[Any]]]) -> SearchStrategy[Any]:
    """A possible rule and its arguments.

    What is drawn are places in tables that are always the same; the next possible entry from there on is
    taken. So a choice means the same when earlier moves are left out, and Hypothesis can leave them out.
    """
    from hypothesis import strategies as st

    faults = {name for name in draws if plan.oracle.protocol.actions[name].actor in (WORLD, DEVELOPER)}
    table = [
        name
        for name in (*draws, *plan.others)
        for _ in range(1 if name in (*faults, *plan.others) else WEIGHT)
    ] * COPIES
    random.Random(0).shuffle(table)  # so that what is not possible does not always lead to the same neighbour
    options = {name: plan.oracle.options(name) for name in draws}
    places = {name: st.integers(0, len(found) - 1) for name, found in options.items()}
    place, waits = st.integers(0, len(table) - 1), st.sampled_from(WAITS_MS)

    @st.composite
    def chosen(draw: Callable[..., Any]) -> tuple[Any, dict[str, Any]]:
        self = draw(st.runner())
        possible = {name: set(self.player.choices(name)) for name in draws}
        allowed = {n for n, found in possible.items() if found and not (self.player.calm and n in faults)}
        name = _next(table, draw(place), allowed | set(plan.others))
        found = next(r for r in self.rules if r.function.__name__ == name)
        if name in plan.others:
            return found, {"wait_ms": draw(waits)}
        arguments = _next(options[name], draw(places[name]), possible[name])
        others = {key: draw(strategy) for key, strategy in draws[name].items() if key != "arguments"}
        return found, {"arguments": arguments, **others}

    return chosen()


def _next(table: Sequence[Entry], place: int, allowed: Collection[Entry]) -> Entry:
    """The first allowed entry from a place on, round the table."""
    return next(entry for entry in (*table[place:], *table[:place]) if entry in allowed)


def _rule(name: str) -> Callable[..., None]:
    def made(self: Any, arguments: tuple[int, ...], wait_ms: int, lease_ms: int = LEASE_MS) -> None:
        self.player.play(Move(name, arguments, wait_ms, lease_ms))

    made.__name__ = name
    made.__qualname__ = f"LockStep.{name}"
    return made


def settings_of(examples: int, steps: int, **others: Any) -> Settings:
    """How Hypothesis is to run: no example database, no deadline, and slow runs are no fault."""
    from hypothesis import HealthCheck, Phase, Verbosity, settings

    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.filter_too_much,
        ],
        print_blob=False,
        verbosity=Verbosity.quiet,
        **others,
    )


def run_machine(made: type[RuleBasedStateMachine], *, examples: int, steps: int, seed: int) -> None:
    """Run a state machine `examples` times. Broken runs are told to its `Watch`, the smallest one last."""
    from hypothesis import seed as with_seed
    from hypothesis.errors import Flaky
    from hypothesis.stateful import run_state_machine_as_test

    with_seed(seed)(made)
    # Flaky: what a run did depended on more than its moves. Whether it does is found out by making it again.
    with _no_files(), suppress(BrokenRun, Flaky):
        run_state_machine_as_test(made, settings=settings_of(examples, steps, report_multiple_bugs=False))


@contextmanager
def _no_files() -> Iterator[None]:
    """Keep Hypothesis from leaving files of its own where the program was started."""
    from hypothesis import configuration

    found: Any = configuration.storage_directory(intent_to_write=False)
    before = getattr(found, "home_directory", found)  # older ones give the path itself
    with tempfile.TemporaryDirectory(prefix="fencepost-") as directory:
        configuration.set_hypothesis_home_dir(directory)
        try:
            yield
        finally:
            configuration.set_hypothesis_home_dir(before)
