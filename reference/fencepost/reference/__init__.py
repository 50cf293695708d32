"""A reference implementation of the protocol on SQLite; needs only the standard library.

Start with `sql.py`, which says what each action requires and does, then `store.py`, which runs it.
"""

from fencepost.reference.observe import Observation, Observer, observe
from fencepost.reference.opening import open_store
from fencepost.reference.sql import STATEMENTS, Statements
from fencepost.reference.store import Store
from fencepost.reference.values import (
    MAX_TIME_MS,
    MAX_VERSION,
    Answer,
    ArgumentError,
    Commit,
    Entry,
    Ok,
    Owner,
    Refused,
    Row,
    StoreBusyError,
    StoreError,
)

__all__ = [
    "MAX_TIME_MS",
    "MAX_VERSION",
    "STATEMENTS",
    "Answer",
    "ArgumentError",
    "Commit",
    "Entry",
    "Observation",
    "Observer",
    "Ok",
    "Owner",
    "Refused",
    "Row",
    "Statements",
    "Store",
    "StoreBusyError",
    "StoreError",
    "observe",
    "open_store",
]
