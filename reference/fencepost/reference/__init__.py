"""A reference implementation of the protocol on SQLite; needs only the standard library.

Start with `sql.py`, which says what each action requires and does, then `store.py`, which runs it. Effects
begin at `downstream.py`; `worker.py` brings both together. `downstream_http.py` is imported by itself.
"""

from fencepost.reference.downstream import Downstream, open_downstream
from fencepost.reference.downstream_broken import BROKEN_DOWNSTREAMS
from fencepost.reference.downstream_observe import DownstreamObservation, observe_downstream
from fencepost.reference.downstream_sql import DOWNSTREAM_STATEMENTS, DownstreamStatements
from fencepost.reference.downstream_values import (
    Capabilities,
    EffectRequest,
    Held,
    NotFound,
    Receipt,
    RecordedRefusal,
    TakesEffects,
    Tombstone,
    Unknown,
)
from fencepost.reference.keys import canonical_json, fingerprint, step_key
from fencepost.reference.observe import Observation, Observer, observe
from fencepost.reference.opening import open_store
from fencepost.reference.recovery import unwind
from fencepost.reference.session import Ended, Run
from fencepost.reference.sql import STATEMENTS, Statements
from fencepost.reference.store import Store
from fencepost.reference.values import (
    MAX_TIME_MS,
    MAX_VERSION,
    Answer,
    ArgumentError,
    Commit,
    Entry,
    Evidence,
    Intent,
    Ok,
    Owner,
    Refused,
    Row,
    StepChange,
    StepEntry,
    StepRow,
    StepStatus,
    StoreBusyError,
    StoreError,
)
from fencepost.reference.worker import Effect, Step, run_once, run_worker

__all__ = [
    "BROKEN_DOWNSTREAMS",
    "DOWNSTREAM_STATEMENTS",
    "MAX_TIME_MS",
    "MAX_VERSION",
    "STATEMENTS",
    "Answer",
    "ArgumentError",
    "Capabilities",
    "Commit",
    "Downstream",
    "DownstreamObservation",
    "DownstreamStatements",
    "Effect",
    "EffectRequest",
    "Ended",
    "Entry",
    "Evidence",
    "Held",
    "Intent",
    "NotFound",
    "Observation",
    "Observer",
    "Ok",
    "Owner",
    "Receipt",
    "RecordedRefusal",
    "Refused",
    "Row",
    "Run",
    "Statements",
    "Step",
    "StepChange",
    "StepEntry",
    "StepRow",
    "StepStatus",
    "Store",
    "StoreBusyError",
    "StoreError",
    "TakesEffects",
    "Tombstone",
    "Unknown",
    "canonical_json",
    "fingerprint",
    "observe",
    "observe_downstream",
    "open_downstream",
    "open_store",
    "run_once",
    "run_worker",
    "step_key",
    "unwind",
]
