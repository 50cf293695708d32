"""What else becomes of an instance here: it is taken over, and it ends. Steps are not in this model."""

from __future__ import annotations

from fencepost.model.core.state import STORE, WORKER
from fencepost.model.domains import Element
from fencepost.model.language import State, refuse_unless, when
from fencepost.model.triggers.state import instances, triggers


@triggers.operation(WORKER, home=STORE, i=instances)
def acquire(s: State, i: Element) -> None:
    """A worker acquires the lease of an instance."""
    when(s.row[i].present)
    refuse_unless(not s.row[i].finished, "finished")

    s.row[i] = s.row[i].changed(lease=s.row[i].lease + 1)


@triggers.operation(WORKER, home=STORE, i=instances)
def finish(s: State, i: Element) -> None:
    """A worker commits the end of an instance."""
    when(s.row[i].present)
    refuse_unless(not s.row[i].finished, "finished")

    s.row[i] = s.row[i].changed(state=s.row[i].state + 1, finished=True)
