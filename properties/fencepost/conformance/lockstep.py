"""Random runs: one Hypothesis state machine, made from the model's table of actions.

A rule per action; its arguments are drawn from those with which the model can make the move where the run stands; time
passes between moves as drawn, and a lease runs out exactly at its end or later. Hypothesis chooses, and makes failing
runs smaller; what a run is, and when it fails, is the business of `session`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fencepost.conformance.goals import Goal
from fencepost.conformance.mapping import Lease
from fencepost.conformance.runs import breaks
from fencepost.conformance.session import LAST_MOMENT_MS, LEASE_MS, WAIT, Move, Plan, Session, Step
from fencepost.model.core.state import WORLD

if TYPE_CHECKING:
    from hypothesis.stateful import RuleBasedStateMachine
    from hypothesis.strategies import SearchStrategy

WAITS_MS = (0, 1, LAST_MOMENT_MS, 3)
"""Drawn waits: none, a moment, up to the last millisecond of a live lease, and something in between."""

BEYOND_MS = (0, 0, 1, 7)
"""Drawn times beyond the end of a lease; exactly at its end most often, since that is where clocks are compared."""

LEASES_MS = (LEASE_MS, 1, 2, 50)
"""Drawn lengths of leases; after one of 1 ms, the next millisecond is its end."""

WEIGHT = 4
"""How much more often a move is chosen that is no fault and no wait: faults alone lead nowhere."""


class BrokenRun(AssertionError):  # noqa: N818  # what it tells of is a run
    """A run that broke something that was to hold. Carries what broke and the steps; the message shows them."""

    def __init__(self, names: tuple[str, ...], steps: Sequence[Step], message: str) -> None:
        super().__init__(message)
        self.names = names
        self.steps = tuple(steps)


def _plain_message(plan: Plan, steps: Sequence[Step], names: Sequence[str]) -> str:
    return f"{plan.adapter.name}: {', '.join(names)} broken after {len(steps)} steps"


@dataclass(slots=True)
class Watch:
    """What runs report to, and what they fail on: `wanted` are the names of claims that are to hold."""

    wanted: set[str]
    on_step: Callable[[Step], None] = lambda step: None
    on_end: Callable[[Session], None] = lambda session: None
    expired: Callable[[], bool] = lambda: False
    """Whether there is no time left: runs then end at once."""
    message: Callable[[Plan, Sequence[Step], Sequence[str]], str] = _plain_message
    broken: BrokenRun | None = field(default=None, init=False)
    """The last run that failed: the smallest, once Hypothesis has made it smaller."""


def machine(plan: Plan, goals: Collection[Goal], watch: Watch) -> type[RuleBasedStateMachine]:
    """The state machine for one adapter: a class for Hypothesis to run."""
    from hypothesis import strategies as st  # noqa: PLC0415
    from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule  # noqa: PLC0415

    draws = {name: _draws(plan, name) for name in plan.performances}
    steering = _steering(plan, draws)

    class LockStep(RuleBasedStateMachine):
        """Runs of the implementation beside the model."""

        def __init__(self) -> None:
            super().__init__()
            self._calm = False
            self._idle = watch.expired()
            self._session = Session(plan)
            # Our own choice among the rules. Where Hypothesis has no such attribute, it chooses as it always does.
            self._rules_strategy = steering
            if not self._idle:
                self._session.__enter__()

        def teardown(self) -> None:
            if not self._idle:
                watch.on_end(self._session)
                self._session.close()

        def _choices(self, action: str) -> list[tuple[int, ...]]:
            return [] if self._idle else self._session.choices(action)

        def _play(self, move: Move) -> None:
            step = None if self._idle else self._session.play(move)
            if step is None:
                return
            watch.on_step(step)
            names = tuple(name for name in breaks(step) if name in watch.wanted)
            if names:
                steps = self._session.steps
                watch.broken = BrokenRun(names, steps, watch.message(plan, steps, names))
                raise watch.broken

        @rule(wait_ms=st.sampled_from(WAITS_MS))
        def wait(self, wait_ms: int) -> None:
            """Time passes."""
            self._play(Move(WAIT, (), wait_ms))

        @initialize(
            calm=st.booleans(),
            goal=st.sampled_from([None, *sorted(goals, key=lambda g: len(g.steps))]),
            waits_ms=st.lists(st.sampled_from(WAITS_MS), max_size=8),
        )
        def begin(self, calm: bool, goal: Goal | None, waits_ms: list[int]) -> None:  # noqa: FBT001
            """Go straight to a goal, or begin anywhere; when calm, nothing more goes wrong in the run."""
            for number, (action, arguments) in enumerate(() if goal is None else goal.steps):
                wait_ms = waits_ms[number] if number < len(waits_ms) else 0
                self._play(Move(action, arguments, 0 if runs_out(plan, action) else wait_ms))
            self._calm = calm

    for name in plan.performances:
        possible = precondition(lambda self, name=name: bool(self._choices(name)))
        setattr(LockStep, name, possible(rule(**draws[name])(_rule(name))))
    return LockStep


def runs_out(plan: Plan, action: str) -> bool:
    """Whether the action is that the lease's time is over."""
    return plan.performances[action].lease is Lease.RUNS_OUT


def _draws(plan: Plan, name: str) -> dict[str, SearchStrategy[Any]]:
    """What is drawn for an action: its arguments and the time that goes with it."""
    from hypothesis import strategies as st  # noqa: PLC0415

    draws: dict[str, SearchStrategy[Any]] = {
        "arguments": st.runner().flatmap(lambda self: st.sampled_from(self._choices(name))),
        "wait_ms": st.sampled_from(BEYOND_MS if runs_out(plan, name) else WAITS_MS),
    }
    if plan.performances[name].takes_lease_ms:
        draws["lease_ms"] = st.sampled_from(LEASES_MS)
    return draws


def _steering(plan: Plan, draws: Mapping[str, Mapping[str, SearchStrategy[Any]]]) -> SearchStrategy[Any]:
    """A rule that is possible, with what it is called with. The choice depends on where the run stands, and no more."""
    from hypothesis import strategies as st  # noqa: PLC0415

    faults = {name for name in draws if plan.oracle.protocol.actions[name].actor == WORLD}
    table = [name for name in draws for _ in range(1 if name in faults else WEIGHT)] + [WAIT]
    waits = st.sampled_from(WAITS_MS)

    @st.composite
    def chosen(draw: Callable[..., Any]) -> tuple[Any, dict[str, Any]]:
        self = draw(st.runner())

        def possible(name: str) -> bool:
            return name == WAIT or (not (self._calm and name in faults) and bool(self._choices(name)))

        name = draw(st.sampled_from(table).filter(possible))
        found = next(r for r in self.rules if r.function.__name__ == name)
        if name == WAIT:
            return found, {"wait_ms": draw(waits)}
        return found, {key: draw(strategy) for key, strategy in draws[name].items()}

    return chosen()


def _rule(name: str) -> Callable[..., None]:
    def made(self: Any, arguments: tuple[int, ...], wait_ms: int, lease_ms: int = LEASE_MS) -> None:
        self._play(Move(name, arguments, wait_ms, lease_ms))

    made.__name__ = name
    made.__qualname__ = f"LockStep.{name}"
    return made


def run_machine(made: type[RuleBasedStateMachine], *, examples: int, steps: int, seed: int) -> None:
    """Run a state machine `examples` times. Broken runs are told to its `Watch`, the smallest one last."""
    from hypothesis import HealthCheck, Phase, Verbosity, settings  # noqa: PLC0415
    from hypothesis import seed as with_seed  # noqa: PLC0415
    from hypothesis.errors import Flaky  # noqa: PLC0415
    from hypothesis.stateful import run_state_machine_as_test  # noqa: PLC0415

    with_seed(seed)(made)
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
    )
    # Flaky: what a run did depended on more than its moves. Whether it does is found out by making it again.
    with _no_files(), suppress(BrokenRun, Flaky):
        run_state_machine_as_test(made, settings=chosen)


@contextmanager
def _no_files() -> Iterator[None]:
    """Keep Hypothesis from leaving files of its own where the program was started."""
    from hypothesis import configuration  # noqa: PLC0415

    found: Any = configuration.storage_directory(intent_to_write=False)
    before = getattr(found, "home_directory", found)  # older ones give the path itself
    with tempfile.TemporaryDirectory(prefix="fencepost-") as directory:
        configuration.set_hypothesis_home_dir(directory)
        try:
            yield
        finally:
            configuration.set_hypothesis_home_dir(before)
