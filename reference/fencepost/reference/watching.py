"""What a person sees of an instance: where it stands, and what happened, line by line (§4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fencepost.reference.planning import What, next_todo, waits_for
from fencepost.reference.store import Store
from fencepost.reference.values import (
    FINISHED,
    Answer,
    Entry,
    Ok,
    Refused,
    Row,
    StepEntry,
    StepRow,
    StepStatus,
)


@dataclass(frozen=True, slots=True)
class StatusView:
    """Where an instance stands: its row with its steps, why, and what it waits for, in words.

    `why` is the cause of its unwinding, if it does or did; `waits_for` is empty if a worker can go on, or if
    it is finished; `next` is what a worker does, if it can go on: what was asked for and is not yet honoured
    counts.
    """

    instance: str
    status: str
    why: str
    waits_for: str
    row: Row
    next: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The same as lines to be read."""
        head = f"{self.instance}: {self.status}" + (f", {self.why}" if self.why else "")
        waits = (f"waits for {self.waits_for}",) if self.waits_for else ()
        goes_on = (f"a worker can go on: {self.next}",) if self.next else ()
        return (head, *map(_step_line, self.row.steps), *waits, *goes_on)


def status(store: Store, instance: str) -> Answer[StatusView]:
    """Where an instance stands; refused `no-such-instance`."""
    seen = store.read(instance)
    if isinstance(seen, Refused):
        return seen
    row = seen.value
    view = StatusView(instance, row.status, row.unwinding_cause or "", "", row)
    if row.status in FINISHED:
        return Ok(view)
    if row.definition is None:  # of one that is no workflow, nobody knows what is left to do
        return Ok(replace(view, waits_for=waits_for(row)))
    todo = next_todo(row, store.inbox(instance, unconsumed=True), store.now_ms())
    if todo.what is What.WAIT:
        return Ok(replace(view, waits_for=waits_for(row)))
    return Ok(replace(view, next=f"{todo.what} {todo.step}".rstrip()))


def events(store: Store, instance: str) -> tuple[str, ...]:
    """The event log as lines to be read, in order and without a gap; none if there is no such instance (§4).

    Each line has the state version, the event, by whom and under which lease version, and what it left of
    each step that it changed.
    """
    changed: dict[int, list[StepEntry]] = {}
    for entry in store.step_log(instance):
        changed.setdefault(entry.state_version, []).append(entry)
    return tuple(_line(entry, changed.get(entry.state_version, [])) for entry in store.log(instance))


def _line(entry: Entry, steps: list[StepEntry]) -> str:
    by = f"{entry.owner.worker}/{entry.owner.incarnation} under lease {entry.lease_version}"
    left = "; ".join(f"{each.step} {_left(each)}" for each in steps)
    parts = (f"{entry.state_version:>3}  {entry.event}", f"by {by}", left, entry.payload)
    return "  |  ".join(part for part in parts if part)


def _left(entry: StepEntry) -> str:
    said = [f"{entry.status}, attempt {entry.attempt}"]
    if entry.receipt is not None and entry.status is StepStatus.SUCCEEDED:
        said.append(entry.receipt)
    if entry.evidence is not None:
        said.append(entry.evidence)
    return ", ".join(said)


def _step_line(step: StepRow) -> str:
    said = [f"  {step.step}: {step.status}"]
    if step.attempt > 1:
        said.append(f"attempt {step.attempt}")
    if step.attested:
        said.append("attested")
    if step.reason is not None:
        said.append(step.reason)
    return ", ".join(said)
