"""What came of a run: how many were killed where, and what the audit found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fencepost.cli.errors import EXIT_OK, EXIT_REFUTED, EXIT_UNDETERMINED
from fencepost.reference.audit import Check, Verdict


@dataclass(frozen=True, slots=True)
class KillingReport:
    """The result of `kill_workers`.

    `killed_at` counts kills of workers that waited at a point, `killed_after` those within a few milliseconds
    after it. `started` counts worker processes, `continued` those that were stopped beyond their lease and
    went on, `downstream_kills` how often the downstream was killed and started again, `people_kills` the same
    of who cancels, approves and decides; `ended_by_people` are workers that those had ended, to be sure that
    nothing is on its way to an opaque downstream. `directory` has the databases, if they are kept.
    """

    instances: int
    workers: int
    kills: int
    seed: int
    keyed: bool
    opaque: bool
    broken: str | None
    killed_at: Mapping[str, int]
    killed_after: Mapping[str, int]
    started: int
    continued: int
    downstream_kills: int
    people_kills: int
    ended_by_people: int
    seconds: float
    checks: tuple[Check, ...]
    directory: str | None

    @property
    def killed(self) -> int:
        """How many workers were killed."""
        return sum(self.killed_at.values()) + sum(self.killed_after.values())

    def of(self, name: str) -> Check:
        """The check of a name, such as `one_effect_per_intent`."""
        return next(check for check in self.checks if check.name == name)

    @property
    def exit_code(self) -> int:
        """0 if all held, 1 if something is refuted, 3 if something is not known or kills are missing."""
        verdicts = {check.verdict for check in self.checks}
        if Verdict.REFUTED in verdicts:
            return EXIT_REFUTED
        return EXIT_OK if verdicts == {Verdict.HELD} and self.killed == self.kills else EXIT_UNDETERMINED

    def as_json(self) -> dict[str, Any]:
        """The same as data."""
        mine = {name: getattr(self, name) for name in self.__slots__}
        checks = [{**asdict(check), "verdict": check.verdict.value} for check in self.checks]
        return {
            "command": "demo",
            **mine,
            "killed": self.killed,
            "checks": checks,
            "exit_code": self.exit_code,
        }
