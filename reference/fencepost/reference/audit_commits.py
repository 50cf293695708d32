"""What an audit says of leases, commits and the event log (§3, §4; S1, S3, S4, S7)."""

from __future__ import annotations

from collections import Counter

from fencepost.reference.audit_records import OK, UNKNOWN, Found, Records, grouped, logs, named


def state_version_counts_commits(records: Records) -> Found:
    """The event log has one entry for each state version up to the current one, and no commit id twice."""
    wrongs = []
    for row, entries in logs(records):
        versions = [entry.state_version for entry in entries]
        if versions != list(range(1, row.state_version + 1)):
            missing = sorted(set(range(1, row.state_version + 1)) - set(versions))
            more = f", without {', '.join(map(str, missing[:3]))}" if missing else ""
            wrongs.append(
                f"{row.instance} has state version {row.state_version} and {len(versions)} entries{more}"
            )
        ids = Counter(entry.commit_id for entry in entries)
        wrongs += [f"{row.instance} has commit {id_} {n} times" for id_, n in ids.items() if n > 1]
    number = len(records.store.entries)
    return f"{number:,} entries in {len(records.store.rows):,} event logs", number > 0, wrongs


def no_lost_update(records: Records) -> Found:
    """A commit that was answered ok is in the event log; one that was refused is not."""
    logged = {(entry.instance, entry.commit_id) for entry in records.store.entries}
    answers = Counter(c.answer if c.answer in (OK, UNKNOWN) else "refused" for c in records.journal.committed)
    wrongs = []
    for commit in records.journal.committed:
        there = (commit.instance, commit.commit_id) in logged
        if commit.answer == OK and not there:
            wrongs.append(f"commit {commit.commit_id} of {commit.instance} was answered ok and is not logged")
        if commit.answer not in (OK, UNKNOWN) and there:
            wrongs.append(
                f"commit {commit.commit_id} of {commit.instance} was refused ({commit.answer}) and is logged"
            )
    return f"{answers[OK]:,} commits answered ok, {answers['refused']:,} refused", answers[OK] > 0, wrongs


def lease_version_only_grows(records: Records) -> Found:
    """No lease version was given twice, none is above that of the row, and along the event log none falls."""
    rows = {row.instance: row for row in records.store.rows}
    wrongs = []
    for (instance, version), given in grouped(
        records.journal.acquired, lambda each: (each.instance, each.lease_version)
    ).items():
        if len(given) > 1:
            owners = ", ".join(named(each.owner) for each in given)
            wrongs.append(f"lease version {version} of {instance} was given {len(given)} times: to {owners}")
        if instance in rows and version > rows[instance].lease_version:
            wrongs.append(f"lease version {version} of {instance} was given, and the row is below it")
    for row, entries in logs(records):
        former = 0
        for entry in entries:
            if entry.lease_version < former or entry.lease_version > row.lease_version:
                wrongs.append(
                    f"entry {entry.state_version} of {row.instance} has lease version {entry.lease_version}, "
                    f"after {former}; the row has {row.lease_version}"
                )
            former = max(former, entry.lease_version)
    taken = sum(row.lease_version for row in rows.values())
    evidence = f"{len(records.journal.acquired):,} leases told of, {taken:,} given"
    return evidence, taken > len(rows), wrongs


def stale_worker_never_overrides(records: Records) -> Found:
    """Each commit was made by whoever was given its lease version, and none under a lease that was lost."""
    holders = {(a.instance, a.lease_version): a.owner for a in records.journal.acquired}
    takeovers = grouped(records.journal.acquired, lambda each: each.instance)
    wrongs = []
    for entry in records.store.entries:
        what = f"entry {entry.state_version} of {entry.instance} by {named(entry.owner)}"
        holder = holders.get((entry.instance, entry.lease_version))
        if holder != entry.owner:
            to = "nobody" if holder is None else named(holder)
            wrongs.append(f"{what} has lease version {entry.lease_version}, which was given to {to}")
        lost = next(
            (
                taken
                for taken in takeovers.get(entry.instance, [])
                if taken.lease_version > entry.lease_version and taken.state_version < entry.state_version
            ),
            None,
        )
        if lost is not None:
            wrongs.append(
                f"{what} has lease version {entry.lease_version}, and {named(lost.owner)} had taken over "
                f"with {lost.lease_version} at state version {lost.state_version}"
            )
    late = sum(commit.answer == "stale-lease-version" for commit in records.journal.committed)
    return f"{len(records.store.entries):,} commits accepted, {late:,} stale ones refused", late > 0, wrongs
