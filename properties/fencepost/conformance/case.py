"""The lock-step as a test case: one class, for those who have tests and want no report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fencepost.checker.subject import Subject
from fencepost.conformance.adapter import Adapter
from fencepost.conformance.chosen_goals import goals_of
from fencepost.conformance.compare import show_answer
from fencepost.conformance.lockstep import MOST_TRIES, BrokenRun, Watch, machine, settings_of
from fencepost.conformance.plans import Plan
from fencepost.conformance.runs import LOCK_STEP, again, shortened
from fencepost.conformance.verify import prepare
from fencepost.model import Scope

if TYPE_CHECKING:
    import unittest


def lockstep_case(
    adapter: Adapter,
    *,
    scope: Scope | None = None,
    examples: int = 50,
    steps: int = 25,
    claims: Iterable[str] = (),
    subject: Subject | None = None,
) -> type[unittest.TestCase]:
    """A test case for pytest or unittest, which fails with the shortest run found of what breaks first.

    `verify` gives verdicts and counts, this does not. The runs are the same each time; other settings of
    Hypothesis can be assigned to `settings` of the class.
    """
    from hypothesis.errors import Flaky

    plan, prepared = prepare(adapter, scope=scope, claims=claims, subject=subject)
    watch = Watch(prepared.wanted, most_tries=MOST_TRIES)
    drawn: Any = machine(plan, lambda: goals_of(plan), watch).TestCase

    class LockStepCase(drawn):  # type: ignore[misc]
        """Runs of the implementation beside the model."""

        settings = settings_of(examples, steps, derandomize=True)

        def runTest(self) -> None:  # noqa: N802  # the name is unittest's
            """No run breaks anything that is to hold."""
            watch.begin()
            try:
                super().runTest()
            except (BrokenRun, Flaky):
                if watch.broken is None:
                    raise
            if watch.broken is not None:
                raise smallest(plan, watch.broken) from None

    LockStepCase.__qualname__ = "LockStepCase"
    return LockStepCase


def smallest(plan: Plan, broken: BrokenRun) -> BrokenRun:
    """The shortest version of a broken run, with a message for a person."""
    name = broken.names[0]
    steps = shortened(plan, [s.move for s in broken.steps], name) or list(broken.steps)
    twice = again(plan, [s.move for s in steps], name)
    claim = next(c for c in (LOCK_STEP, *plan.claims) if c.name == name)
    lines = [f"{plan.adapter.name} breaks {claim.id} {claim.name}: {claim.sentence}"]
    lines += [f"  {n}  {s.label} -> {show_answer(s.told)}" for n, s in enumerate(steps, 1)]
    lines += [s.difference for s in steps if s.difference][:1]
    if twice.unsteady or not twice.fails:
        lines.append(
            f"the implementation is not deterministic: {twice.unsteady or 'this run did not fail again'}"
        )
    return BrokenRun((name,), steps, "\n".join(lines))
