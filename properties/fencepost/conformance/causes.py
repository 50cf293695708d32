"""Why a schedule went wrong, in one sentence: what was read where, changed where, and not compared where."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fencepost.checker.traces import show_value
from fencepost.conformance.refinement import Account, Event
from fencepost.conformance.schedules import shortened_text

WORDS = {
    "lease_version": ("lease_version", "lease", "token"),
    "owner": ("owner", "worker", "holder"),
    "state_version": ("state_version",),
    "finished": ("finished", "status"),
    "live": ("expires", "expiry", "live"),
    "log": ("log",),
}
"""By which words a statement's text mentions a stored variable; one that is not listed, by its name."""

GUARDING = ("lease_version", "owner", "live", "finished", "state_version")
"""What a statement that writes may have to compare."""


def mentions(text: str, name: str, *, everywhere: bool = False) -> bool:
    """Whether a statement's condition (or all of it, where it has none) mentions a stored variable."""
    if not everywhere and _written_place(text):
        return False  # the decision was made before, in Python
    if everywhere:
        return any(word in text.lower() for word in WORDS.get(name, (name,)))
    condition = re.split(r"\bwhere\b", text, maxsplit=1, flags=re.IGNORECASE)[-1]
    condition = re.split(r"\breturning\b", condition, maxsplit=1, flags=re.IGNORECASE)[0]
    return any(word in condition.lower() for word in WORDS.get(name, (name,)))


def changes(account: Account, event: Event) -> dict[str, tuple[str, str]]:
    """The cells of stored variables that an event changed: as they were, and as they are."""
    if event.before == event.after:
        return {}
    runner, protocol = account.oracle.runner, account.oracle.protocol
    old, new = (runner.codes(account.moments[i].state) for i in (event.before, event.after))
    found: dict[str, tuple[str, str]] = {}
    for cell in new:
        name = re.split(r"[.\[]", cell)[0]
        if name in account.plan.observed and old[cell] != new[cell]:
            place = f"{cell.split(']')[0]}]" if "[" in cell else name
            domain = protocol.variables[name].domain
            found[place] = (show_value(domain, place, "", old), show_value(domain, place, "", new))
    return found


def cause(account: Account) -> str:
    """The causal sentence, or "" when there is none to give: nothing went wrong between two statements."""
    if account.blame is None:
        return ""
    _, place = account.blame
    if not 0 <= place < len(account.events) or not account.events[place].number:
        return ""
    end = account.events[place]
    mine = [e for e in account.events[: place + 1] if e.operation == end.operation and e.who == end.who]
    write = _writing(mine)
    foreign = _foreign(account, write, mine[0], place)
    if foreign is None:
        return _alone(account, end, write)
    event, cell, old, new = foreign
    name = cell.split("[")[0]
    before = [e for e in mine if _reads(e.text) and account.events.index(e) < account.events.index(event)]
    place_read = _written_place(write.text)
    read = next((e for e in before if mentions(e.text, name, everywhere=True) or e.text == place_read), None)
    doing = f"{event.who}'s {event.operation.split('(')[0]}" if event.number else event.operation
    ending = f"statement {write.number} ({shortened_text(write.text)}), which does not compare {name}"
    if read is None:
        return f"{doing} set {cell} to {new} before {write.who}'s {ending}"
    return (
        f"{doing} set {cell} to {new} between {write.who}'s statement {read.number} "
        f"({shortened_text(read.text)}), which read {old}, and its {ending}"
    )


def _writing(mine: Sequence[Event]) -> Event:
    """The statement that wrote what the last one made visible: the first write of the same transaction."""
    for event in reversed(mine[:-1]):
        if re.match(r"\s*(begin|commit|rollback)\b", event.text, re.IGNORECASE):
            break
    else:
        event = mine[0]
    if not re.match(r"\s*commit\b", mine[-1].text, re.IGNORECASE):
        return mine[-1]
    inside = mine[mine.index(event) :]
    writes = [e for e in inside if re.match(r"\s*(update|insert|delete|replace)\b", e.text, re.IGNORECASE)]
    row = (e for e in writes if mentions(e.text, "state_version", everywhere=True))
    return next(row, (writes or mine[-1:])[0])


def _reads(text: str) -> bool:
    lowered = text.lstrip().lower()
    of_mapping = lowered.startswith("[") and "=" not in lowered
    return lowered.startswith(("select", "with")) or of_mapping


def _written_place(text: str) -> str:
    """The place in a mapping that a statement writes to; "" for any other statement."""
    found = re.match(r"((?:\[[^\]]*\])+) = |(.*)\.(?:update|setdefault|pop|clear)\(", text)
    return "" if found is None else found[1] or found[2] or "."


def _foreign(account: Account, write: Event, since: Event, place: int) -> tuple[Event, str, str, str] | None:
    """A change by another since the operation began, of something that its write does not compare."""
    start = account.events.index(since)
    found = []
    for event in account.events[start:place]:
        if event.who == write.who and event.operation == write.operation:
            continue
        for cell, (old, new) in changes(account, event).items():
            if not mentions(write.text, cell.split("[")[0]):
                found.append((cell != "lease_version", cell.startswith("log"), event, cell, old, new))
    if not found:
        return None
    _, _, event, cell, old, new = min(found, key=lambda f: f[:2])
    return event, cell, old, new


def _alone(account: Account, end: Event, write: Event) -> str:
    """Nobody came between: the statement itself does not compare what it depends on."""
    changed = changes(account, end)
    if not changed:
        return ""
    what = ", ".join(f"{cell} to {new}" for cell, (_, new) in list(changed.items())[:2])
    left = [n for n in account.plan.observed if n in GUARDING and not mentions(write.text, n)]
    compares = f", and compares no {' and no '.join(left)}" if left and not _written_place(write.text) else ""
    return f"{write.who}'s statement {write.number} ({shortened_text(write.text)}) set {what}{compares}"


def statement_rows(account: Account) -> list[tuple[str, ...]]:
    """The schedule in order: who, which operation, which statement, and what it changed."""
    rows: list[tuple[str, ...]] = [("who", "operation", "", "statement", "changed")]
    for event in account.events:
        changed = "; ".join(f"{cell} {old} → {new}" for cell, (old, new) in changes(account, event).items())
        text = shortened_text(event.text) + (f"  {event.note}" if event.note else "")
        rows.append((event.who, event.operation, str(event.number or ""), text, changed))
    return rows
