"""Two real processes race on one file; afterwards their journals are held against the event log.

What either process did is known from what it wrote down itself; what the store kept is read by the back door.
The same race on stores whose commit is broken shows that the comparison can fail.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import STATEMENTS, Observation, observe, open_store

from .racing import raced
from .support import only

ROUNDS = 15

Note = dict[str, Any]
"""One line of a journal: kind, incarnation, lease_version, and for calls the answer."""


def race(
    path: Path, role: str, *, rounds: int = ROUNDS, commit_statement: str = STATEMENTS.commit
) -> tuple[list[Note], list[Note]]:
    """Run both processes to their end; the journal of each."""
    with open_store(path, clock_ms=lambda: 0) as store:
        store.create("order-1")
    first, second = raced(
        [["racer.py", str(path), role, str(number), str(rounds), commit_statement] for number in (0, 1)]
    )
    return first, second


def wrongs(journals: Iterable[list[Note]], seen: Observation) -> list[str]:
    """What in the event log, or in the answers, could not be if §3 and §4 held."""
    notes = [note for journal in journals for note in journal]
    holder: dict[int, int] = {}
    found = []
    for note in notes:
        if note["kind"] == "acquired":
            if note["lease_version"] in holder:
                found.append(f"lease version {note['lease_version']} was acquired twice")
            holder[note["lease_version"]] = note["incarnation"]
    if sorted(holder) != list(range(1, len(holder) + 1)):
        found.append("lease versions have a gap")
    (row,) = seen.rows
    if (row.lease_version, row.state_version) != (len(holder), len(seen.entries)):
        found.append("the row does not count the leases and the commits")
    newest = 0
    for position, entry in enumerate(seen.entries, start=1):
        if entry.state_version != position:
            found.append(f"entry {position} has state version {entry.state_version}")
        if holder.get(entry.lease_version) != entry.owner.incarnation:
            found.append(f"entry {position} names a lease version that its owner never acquired")
        if entry.lease_version < newest:
            found.append(f"entry {position} is a stale commit")
        newest = max(newest, entry.lease_version)
    answered_ok = sorted(
        note["commit_id"] for note in notes if "commit_id" in note and note["answer"] == "ok"
    )
    if answered_ok != sorted(entry.commit_id for entry in seen.entries):
        found.append("the log is not what was answered ok")
    return found


def answers(journals: Iterable[list[Note]], kind: str) -> Counter[str]:
    return Counter(note["answer"] for journal in journals for note in journal if note["kind"] == kind)


def test_two_processes_race_and_no_stale_commit_is_in_the_log(path: Path) -> None:
    journals = race(path, "zombie")
    seen = observe(path)
    assert wrongs(journals, seen) == []
    assert len(seen.entries) == answers(journals, "commit")["ok"] == 2 * ROUNDS
    # Every zombie but the last really did try, each after its rival's commit stood in the log.
    for kind in ("late commit", "late renew", "late release"):
        tried = answers(journals, kind)
        assert set(tried) == {"stale-lease-version"}
        assert tried["stale-lease-version"] >= ROUNDS
    for journal in journals:
        assert answers([journal], "late commit").total() > 0


def test_two_processes_that_wait_for_nothing_keep_the_log_whole(path: Path) -> None:
    journals = race(path, "hammer", rounds=300)
    seen = observe(path)
    assert wrongs(journals, seen) == []
    for journal in journals:
        assert set(answers([journal], "stale")) == {"stale-lease-version"}


@pytest.mark.parametrize(
    "kept",
    [("no-such-instance",), ("no-such-instance", "stale-state-version"), ("no-such-instance", "finished")],
    ids=["instance only", "state version only", "status only"],
)
def test_the_same_race_on_a_broken_commit_leaves_a_stale_commit_in_the_log(
    kept: tuple[str, ...], path: Path
) -> None:
    journals = race(path, "zombie", commit_statement=only(STATEMENTS.commit, *kept))
    found = wrongs(journals, observe(path))
    assert any("is a stale commit" in wrong for wrong in found)
    assert answers(journals, "late commit")["ok"] > 0
