"""Why a schedule went wrong, in one sentence: what was read where, changed where, and not compared where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fencepost.checker.traces import show_value
from fencepost.conformance.refinement import Account, Event
from fencepost.conformance.schedules import shortened_text

WORDS = {
    "lease_version": ("lease_version", "lease", "token"),
    "owner": ("owner", "owner_worker", "owner_incarnation", "worker", "holder"),
    "state_version": ("state_version",),
    "finished": ("finished", "status", "done"),
    "live": ("expires_at_ms", "expires_at", "expires", "expiry", "live", "ends", "ends_at"),
    "log": ("log", "event_log"),
}
"""By which columns and tables a statement names a stored variable; one that is not listed, by its name."""

_CONTROLS = re.compile(r"\s*(begin|commit|rollback|end|savepoint|release)\b", re.IGNORECASE)

GUARDING = ("lease_version", "owner", "live", "finished", "state_version")
"""What a statement that writes may have to compare."""


def mentions(text: str, name: str, *, everywhere: bool = False) -> bool:
    """Whether a statement's condition (or all of it, where it has none) names a stored variable.

    A column or table has to be there as a word of its own; a parameter (``:lease``) is none.
    """
    if not everywhere and _written_place(text):
        return False  # the decision was made before, in Python
    if everywhere:
        return bool(_words(text) & {*WORDS.get(name, (name,))})
    condition = re.split(r"\bwhere\b", text, maxsplit=1, flags=re.IGNORECASE)[-1]
    condition = re.split(r"\breturning\b", condition, maxsplit=1, flags=re.IGNORECASE)[0]
    return bool(_words(condition) & {*WORDS.get(name, (name,))})


def _words(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w:@$])[a-z_]\w*", text.lower()))


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
    mine = [e for e in account.events[: place + 1] if _call(e) == _call(end)]
    if not end.changes:
        return "" if any(e.changes for e in mine) else _answered_from(account, mine, place)
    write = _writing(mine)
    if _CONTROLS.match(write.text):
        return ""
    foreign = _foreign(account, write, mine, place)
    if foreign is None:
        return _alone(account, end, write)
    event, cell, old, new = foreign
    name = cell.split("[")[0]
    at = account.events.index(event)
    before = [e for e in mine if _reads(e.text) and account.events.index(e) < at]
    read = next((e for e in reversed(before) if _reads_it(e, name, write.text)), None)
    ending = f"statement {write.number} ({shortened_text(write.text)}), which does not compare {name}"
    if read is None:
        return f"{_doing(event)} set {cell} to {new} before {write.who}'s {ending}"
    return (
        f"{_doing(event)} set {cell} to {new} between {write.who}'s statement {read.number} "
        f"({shortened_text(read.text)}), which read {old}, and its {ending}"
    )


def _answered_from(account: Account, mine: Sequence[Event], place: int) -> str:
    """A call that changed nothing: which statement its answer rests on, if something came after that."""
    found = []
    for event, cell, _, new in _by_others(account, mine, place):
        name, at = cell.split("[")[0], account.events.index(event)
        reads = [e for e in mine if _reads(e.text) and mentions(e.text, name, everywhere=True)]
        if reads and account.events.index(reads[-1]) < at:
            found.append((cell != "lease_version", reads[-1], event, cell, new))
    if not found:
        return ""
    _, read, event, cell, new = min(found, key=lambda f: f[0])
    statement = f"statement {read.number} ({shortened_text(read.text)})"
    return f"{read.who} answered from what {statement} read, before {_doing(event)} set {cell} to {new}"


def _call(event: Event) -> tuple[object, ...]:
    return event.who, event.operation, event.call


def _doing(event: Event) -> str:
    return f"{event.who}'s {event.operation.split('(')[0]}" if event.number else event.operation


def _reads_it(event: Event, name: str, write: str) -> bool:
    """Whether a statement reads something of what another one writes to."""
    if event.text == _written_place(write):
        return True
    tables = {_table(event.text), _table(write)}
    return mentions(event.text, name, everywhere=True) and (len(tables) == 1 or "" in tables)


def _table(text: str) -> str:
    """The first table that a statement names; "" where it names none."""
    found = re.search(r"\b(?:from|into|update)\s+(\w+)", text, re.IGNORECASE)
    return "" if found is None else found[1].lower()


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


def _by_others(account: Account, mine: Sequence[Event], place: int) -> Iterator[tuple[Event, str, str, str]]:
    """What others changed since the operation began: by which event, the cell, as it was and as it is."""
    for event in account.events[account.events.index(mine[0]) : place]:
        if event not in mine:
            for cell, (old, new) in changes(account, event).items():
                yield event, cell, old, new


def _foreign(
    account: Account, write: Event, mine: Sequence[Event], place: int
) -> tuple[Event, str, str, str] | None:
    """A change by another since the operation began, of something that its write does not compare.

    What the operation has read again since is no cause.
    """
    found = []
    for event, cell, old, new in _by_others(account, mine, place):
        name, at = cell.split("[")[0], account.events.index(event)
        since = [e for e in mine if account.events.index(e) > at and _reads(e.text)]
        again = any(_reads_it(e, name, write.text) for e in since)
        if not again and not mentions(write.text, name):
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
