"""Holds what both databases ended with against what workers were answered while they ran (§17).

The databases are read by the back door (`observe.py`, `downstream_observe.py`). What workers were answered,
their journal, they tell themselves, each thing before they do anything else, so that a worker that is killed
has told of every lease under which it can have committed. Nothing here asks the code under test.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

from fencepost.reference.downstream_observe import DownstreamObservation
from fencepost.reference.observe import Observation
from fencepost.reference.values import Entry, InstanceStatus, Owner, Row, StepRow, StepStatus

OK: Final = "ok"
"""The answer of a call that was accepted; any other is the code of a refusal, or `UNKNOWN`."""

UNKNOWN: Final = "unknown"
"""No answer, and so nothing is claimed of the call (§2)."""

FINISHED: Final = (InstanceStatus.SUCCEEDED, InstanceStatus.FAILED, InstanceStatus.CANCELLED)

SETTLED: Final = (*FINISHED, InstanceStatus.MANUAL_INTERVENTION)
"""What an instance may end as: finished, or waiting for a person."""


@dataclass(frozen=True, slots=True)
class Acquired:
    """A lease that a worker was given: the versions of the row that came with it."""

    instance: str
    owner: Owner
    lease_version: int
    state_version: int


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that a worker asked for, and what it was answered."""

    instance: str
    commit_id: str
    answer: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A request for an effect that a worker sent, and what it was answered; with ok, the receipt."""

    instance: str
    key: str
    answer: str
    receipt: str | None = None


@dataclass(slots=True)
class Journal:
    """What all workers were answered, each in the order in which it was told; calls of the dead may lack."""

    acquired: list[Acquired] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)


class Verdict(StrEnum):
    """One word on what was checked, from worst to best."""

    REFUTED = "REFUTED"
    UNDETERMINED = "UNDETERMINED"
    """It is not known: the time was up before."""
    NOT_EXERCISED = "NOT EXERCISED"
    """Nothing broke it, and what it speaks of never happened."""
    HELD = "HELD"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked: the claim's id and name in the protocol (§17), and what was found.

    `says` is the claim as a sentence, `evidence` what was counted, `wrongs` what breaks it.
    """

    id: str
    name: str
    says: str
    verdict: Verdict
    evidence: str
    wrongs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Records:
    """Everything that is compared: both databases, the journal, and the instances with their steps."""

    instances: tuple[str, ...]
    steps: tuple[str, ...]
    store: Observation
    downstream: DownstreamObservation
    journal: Journal


Found: TypeAlias = tuple[str, bool, list[str]]
"""What was counted, whether what is claimed of really happened, and what is wrong."""


def audit(records: Records, *, ended: bool) -> tuple[Check, ...]:
    """Each claim and whether it held; `ended` says that workers had the time to settle every instance (§17).

    If they had not, what is claimed of the end is UNDETERMINED; the other claims speak of any moment.
    """
    checks = []
    for id_, check in CHECKS:
        evidence, happened, wrongs = check(records)
        verdict = Verdict.REFUTED if wrongs else Verdict.HELD if happened else Verdict.NOT_EXERCISED
        if check is _every_instance_settles and wrongs and not ended:
            verdict = Verdict.UNDETERMINED
        name, says = check.__name__.strip("_"), check.__doc__ or ""
        checks.append(Check(id_, name, says, verdict, evidence, tuple(wrongs)))
    return tuple(checks)


def _every_instance_settles(records: Records) -> Found:
    """Each instance that was begun is finished, or waits for a person."""
    rows = {row.instance: row for row in records.store.rows}
    wrongs = [f"{name} is not in the store" for name in records.instances if name not in rows]
    wrongs += [f"{row.instance} is still {row.status}" for row in rows.values() if row.status not in SETTLED]
    ends = Counter(row.status for row in rows.values() if row.status in SETTLED)
    said = ", ".join(f"{number:,} {status}" for status, number in sorted(ends.items())) or "none"
    return f"of {len(records.instances):,} instances {said}", bool(rows), wrongs


def _one_effect_per_intent(records: Records) -> Found:
    """No intent took effect twice, and no step of an instance under two intents."""
    effects = records.downstream.effects
    by_key = _grouped(effects, lambda effect: effect.key)
    by_step = _grouped(
        effects, lambda effect: f"{effect.operation} on {effect.resource} of {effect.instance}"
    )
    wrongs = [
        f"{what} took effect {len(happened)} times: {', '.join(f'effect {e.number}' for e in happened)}"
        for what, happened in by_step.items()
        if len(happened) > 1
    ]
    wrongs += [
        f"the key {key} stands for several effects: {', '.join(f'effect {e.number}' for e in happened)}"
        for key, happened in by_key.items()
        if len({(e.instance, e.resource, e.operation) for e in happened}) > 1
    ]
    again = sum(number - 1 for number in Counter(s.key for s in records.journal.sent).values())
    late = sum(sent.answer == "stale-token" for sent in records.journal.sent)
    evidence = f"{len(effects):,} effects of {len(by_key):,} intents; {again:,} sent again, {late:,} too late"
    return evidence, bool(effects) and again + late > 0, wrongs


def _receipt_is_true(records: Records) -> Found:
    """Each receipt in the store is that of an effect in the ledger, and each step that succeeded has one."""
    ledger = {f"receipt-{effect.number}": effect for effect in records.downstream.effects}
    wrongs, receipts = [], 0
    for step in _steps(records):
        receipts += step.receipt is not None
        what = f"{step.step} of {step.instance}"
        if step.receipt is None:
            if step.status is StepStatus.SUCCEEDED and step.intent is not None:
                wrongs.append(f"{what} succeeded without a receipt")
            continue
        effect = ledger.get(step.receipt)
        if effect is None:
            wrongs.append(f"{what} has {step.receipt}, which is not in the ledger")
        elif step.intent is None or effect.key != step.intent.key:
            wrongs.append(f"{what} has {step.receipt}, which was given for the key {effect.key}")
        elif effect.fingerprint != step.intent.fingerprint:
            wrongs.append(f"{what} has {step.receipt}, which was given for other parameters")
    return f"{receipts:,} receipts in the store, {len(ledger):,} effects in the ledger", receipts > 0, wrongs


def _no_effect_is_lost(records: Records) -> Found:
    """Each effect in the ledger, and each that was answered ok, is known to the store as a step's receipt."""
    known = {(step.instance, step.receipt) for step in _steps(records) if step.receipt is not None}
    open_ = {row.instance for row in records.store.rows if row.status not in FINISHED}
    ledger = {f"receipt-{effect.number}": effect for effect in records.downstream.effects}
    answered = [sent for sent in records.journal.sent if sent.answer == OK]
    wrongs = [
        f"{s.receipt} was answered ok and is not in the ledger" for s in answered if s.receipt not in ledger
    ]
    wrongs += [
        f"effect {effect.number}, {effect.operation} for {effect.instance}, is the receipt of no step"
        for receipt, effect in ledger.items()
        if (effect.instance, receipt) not in known and effect.instance not in open_
    ]
    return f"{len(ledger):,} effects, {len(answered):,} answers with a receipt", bool(ledger), wrongs


def _recovery_repeats_nothing(records: Records) -> Found:
    """A step that has succeeded is not run again, and nothing that is known of it changes."""
    done = set[tuple[str, str]]()
    wrongs = []
    for entry in records.store.step_entries:
        if (entry.instance, entry.step) in done:
            wrongs.append(
                f"{entry.step} of {entry.instance} had succeeded before entry {entry.state_version}"
            )
        elif entry.status is StepStatus.SUCCEEDED:
            done.add((entry.instance, entry.step))
    taken_over = sum(max(0, row.lease_version - 1) for row in records.store.rows)
    return f"{len(done):,} successes, {taken_over:,} takeovers", bool(done) and taken_over > 0, wrongs


def _order_is_kept(records: Records) -> Found:
    """No step began before the one before it had succeeded, and no instance succeeded without all of them."""
    wrongs, begun = [], 0
    entries = _grouped(records.store.step_entries, lambda entry: entry.instance)
    for row in records.store.rows:
        done = list[str]()
        for entry in entries.get(row.instance, []):
            begun += entry.status is StepStatus.RUNNING
            if entry.status is StepStatus.RUNNING and [*done, entry.step] != [
                *records.steps[: len(done) + 1]
            ]:
                wrongs.append(
                    f"{entry.step} of {row.instance} ran when {', '.join(done) or 'none'} had succeeded"
                )
            if entry.status is StepStatus.SUCCEEDED and entry.step not in done:
                done.append(entry.step)
        missing = [step for step in records.steps if step not in done]
        if row.status == InstanceStatus.SUCCEEDED and missing:
            wrongs.append(f"{row.instance} succeeded without {', '.join(missing)}")
    return f"{begun:,} times a step was begun", begun > 0, wrongs


def _state_version_counts_commits(records: Records) -> Found:
    """The event log has one entry for each state version up to the current one, and no commit id twice."""
    wrongs = []
    for row, entries in _logs(records):
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


def _no_lost_update(records: Records) -> Found:
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


def _lease_version_only_grows(records: Records) -> Found:
    """No lease version was given twice, none is above that of the row, and along the event log none falls."""
    rows = {row.instance: row for row in records.store.rows}
    wrongs = []
    for (instance, version), given in _grouped(
        records.journal.acquired, lambda each: (each.instance, each.lease_version)
    ).items():
        if len(given) > 1:
            owners = ", ".join(_named(each.owner) for each in given)
            wrongs.append(f"lease version {version} of {instance} was given {len(given)} times: to {owners}")
        if instance in rows and version > rows[instance].lease_version:
            wrongs.append(f"lease version {version} of {instance} was given, and the row is below it")
    for row, entries in _logs(records):
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


def _stale_worker_never_overrides(records: Records) -> Found:
    """Each commit was made by whoever was given its lease version, and none under a lease that was lost."""
    holders = {(a.instance, a.lease_version): a.owner for a in records.journal.acquired}
    takeovers = _grouped(records.journal.acquired, lambda each: each.instance)
    wrongs = []
    for entry in records.store.entries:
        what = f"entry {entry.state_version} of {entry.instance} by {_named(entry.owner)}"
        holder = holders.get((entry.instance, entry.lease_version))
        if holder != entry.owner:
            to = "nobody" if holder is None else _named(holder)
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
                f"{what} has lease version {entry.lease_version}, and {_named(lost.owner)} had taken over "
                f"with {lost.lease_version} at state version {lost.state_version}"
            )
    late = sum(commit.answer == "stale-lease-version" for commit in records.journal.committed)
    return f"{len(records.store.entries):,} commits accepted, {late:,} stale ones refused", late > 0, wrongs


Item = TypeVar("Item")
Group = TypeVar("Group")


def _grouped(items: Iterable[Item], of: Callable[[Item], Group]) -> Mapping[Group, list[Item]]:
    groups: dict[Group, list[Item]] = defaultdict(list)
    for item in items:
        groups[of(item)].append(item)
    return groups


def _logs(records: Records) -> Iterator[tuple[Row, list[Entry]]]:
    """Each row and its event log."""
    logs = _grouped(records.store.entries, lambda entry: entry.instance)
    for row in records.store.rows:
        yield row, logs.get(row.instance, [])


def _steps(records: Records) -> Iterator[StepRow]:
    for row in records.store.rows:
        yield from row.steps


def _named(owner: Owner) -> str:
    return f"{owner.worker}/{owner.incarnation}"


CHECKS: Final[Sequence[tuple[str, Callable[[Records], Found]]]] = (
    ("L1", _every_instance_settles),
    ("S8", _one_effect_per_intent),
    ("S10", _receipt_is_true),
    ("S10", _no_effect_is_lost),
    ("S14", _recovery_repeats_nothing),
    ("S15", _order_is_kept),
    ("S4", _state_version_counts_commits),
    ("S7", _no_lost_update),
    ("S3", _lease_version_only_grows),
    ("S1", _stale_worker_never_overrides),
)
"""The claims in the order in which they are reported, with their ids."""
