"""Validates implementations against the model.

Start with `adapter`, which says what an implementation gives; then `verify`, which says what it gets for it.
`session` is one run, `lockstep` draws runs, `runs` makes them again and shorter.
"""

from fencepost.conformance.adapter import (
    EVERYTHING,
    Adapter,
    Answer,
    Capability,
    Commit,
    Entry,
    Observation,
    Ok,
    Owner,
    Refused,
    Row,
    Surroundings,
    Unknown,
    Worker,
)
from fencepost.conformance.case import lockstep_case
from fencepost.conformance.report import Conformance
from fencepost.conformance.runs import LOCK_STEP, SavedRun, read_run
from fencepost.conformance.verify import SCOPE, Replayed, replay_run, verify
from fencepost.conformance.vocabulary import MappingError

__all__ = [
    "EVERYTHING",
    "LOCK_STEP",
    "SCOPE",
    "Adapter",
    "Answer",
    "Capability",
    "Commit",
    "Conformance",
    "Entry",
    "MappingError",
    "Observation",
    "Ok",
    "Owner",
    "Refused",
    "Replayed",
    "Row",
    "SavedRun",
    "Surroundings",
    "Unknown",
    "Worker",
    "lockstep_case",
    "read_run",
    "replay_run",
    "verify",
]
