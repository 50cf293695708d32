"""Validates implementations against the model.

Start with `adapter`, which says what an implementation gives; then `verify`, which says what it gets for it.
`session` is one run, `lockstep` draws runs, `runs` makes them again and shorter.

`counterparts` lists the protocols that implementations are run beside; each has a module with its tables.
`adapter_triggers` and `adapter_replay` say what an adapter gives besides for those two.

`statements` checks statement by statement: `gate` stops the workers, `schedules` says who goes on,
`refinement` looks after each statement, `tapes` are schedules as data.
"""

from fencepost.conformance.adapter import (
    EVERYTHING,
    Ability,
    Adapter,
    Answer,
    Capability,
    Commit,
    Downstream,
    Effect,
    EffectsAdapter,
    Entry,
    Happened,
    Held,
    Intent,
    Ledger,
    Observation,
    Ok,
    Owner,
    Refused,
    Row,
    StepChange,
    StepEntry,
    Surroundings,
    Unknown,
    Worker,
)
from fencepost.conformance.adapter_workflow import (
    Definition,
    Recorded,
    Request,
    Requester,
    StepPlan,
    StepSeen,
    WorkflowAdapter,
    WorkflowSeen,
)
from fencepost.conformance.case import lockstep_case
from fencepost.conformance.core import SCOPE
from fencepost.conformance.report import Conformance
from fencepost.conformance.runs import LOCK_STEP, SavedRun, read_run
from fencepost.conformance.statements import verify_statements
from fencepost.conformance.suite import ConformanceSuite
from fencepost.conformance.tapes import ReplayedTape, SavedTape, read_tape, replay_tape
from fencepost.conformance.verify import Replayed, replay_run, verify, verify_all
from fencepost.conformance.vocabulary import MappingError

__all__ = [
    "EVERYTHING",
    "LOCK_STEP",
    "SCOPE",
    "Ability",
    "Adapter",
    "Answer",
    "Capability",
    "Commit",
    "Conformance",
    "ConformanceSuite",
    "Definition",
    "Downstream",
    "Effect",
    "EffectsAdapter",
    "Entry",
    "Happened",
    "Held",
    "Intent",
    "Ledger",
    "MappingError",
    "Observation",
    "Ok",
    "Owner",
    "Recorded",
    "Refused",
    "Replayed",
    "ReplayedTape",
    "Request",
    "Requester",
    "Row",
    "SavedRun",
    "SavedTape",
    "StepChange",
    "StepEntry",
    "StepPlan",
    "StepSeen",
    "Surroundings",
    "Unknown",
    "Worker",
    "WorkflowAdapter",
    "WorkflowSeen",
    "lockstep_case",
    "read_run",
    "read_tape",
    "replay_run",
    "replay_tape",
    "verify",
    "verify_all",
    "verify_statements",
]
