"""What does more than was asked for, or tells of something else, is refuted at both grades."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from fencepost.checker.verdicts import Verdict
from fencepost.conformance import (
    LOCK_STEP,
    Ability,
    Answer,
    Commit,
    Conformance,
    Ok,
    verify,
    verify_statements,
)
from fencepost.conformance.adapter import Adapter
from fencepost.conformance.subjects import EFFECTS_SUBJECT
from fencepost.reference import DOWNSTREAM_STATEMENTS, STATEMENTS, sql
from fencepost.reference.adapter import INSTANCE, SqliteAdapter, StoreWorker, _entry, make_sqlite

from .effects_support import CLASSES

FULL = (Ability.FENCED, Ability.KEYED, Ability.QUERYABLE)

AGAIN = """
    insert into effects
        (instance, resource, operation, parameters, fingerprint, key, token, revision, applied_at_ms)
    select instance, resource, operation, parameters, fingerprint, key, token, revision, applied_at_ms
    from effects order by number desc limit 1
"""


def lands(times: int, abilities: tuple[Ability, ...] = FULL) -> SqliteAdapter:
    """A downstream that brings about each effect so many times in one decision."""
    statements = replace(DOWNSTREAM_STATEMENTS, between=(AGAIN,) * (times - 1))
    return make_sqlite(downstream=abilities, name=f"lands-{times}", downstream_statements=statements)


@dataclass(frozen=True, slots=True)
class OtherEntry(StoreWorker):
    """Answers each commit with the first entry of the log, whoever's it is."""

    def commit(self, commit: Commit) -> Answer:
        told = StoreWorker.commit(self, commit)
        return Ok(entry=_entry(self.store.log(INSTANCE)[0])) if isinstance(told, Ok) else told


@dataclass(frozen=True, slots=True)
class OtherFate(StoreWorker):
    """Tells of the latest entry of the log, whatever commit it is asked about."""

    def ask(self, commit_id: str) -> Answer:
        told = StoreWorker.ask(self, commit_id)
        if isinstance(told, Ok) and told.entry is not None:
            return replace(told, entry=_entry(self.store.log(INSTANCE)[-1]))
        return told


@dataclass(frozen=True, slots=True)
class OtherReceipt(StoreWorker):
    """Stores another receipt than the commit names."""

    def commit(self, commit: Commit) -> Answer:
        change = commit.change
        if change is not None and change.receipt is not None:
            commit = replace(commit, change=replace(change, receipt="another"))
        return StoreWorker.commit(self, commit)


def renews(length: str) -> SqliteAdapter:
    text = sql.RENEW.replace("max(expires_at_ms, :now_ms + :lease_ms)", f"max(expires_at_ms, {length})")
    return SqliteAdapter("renews", statements=replace(STATEMENTS, renew=text))


def acquires(length: str) -> SqliteAdapter:
    text = sql.ACQUIRE.replace(":now_ms + :lease_ms", length)
    return SqliteAdapter("acquires", statements=replace(STATEMENTS, acquire=text))


def lock_step(adapter: Adapter, *claims: str, **options: Any) -> Conformance:
    return verify(adapter, examples=options.pop("examples", 0), claims=["lock-step", *claims], **options)


def by_statements(adapter: Adapter, *claims: str, **options: Any) -> Conformance:
    return verify_statements(adapter, claims=["lock-step", *claims], **options)


def difference(report: Conformance) -> str:
    found = next(f for f in report.findings if f.claim.name == LOCK_STEP.name)
    assert found.verdict is Verdict.REFUTED
    return str(found.details["difference"])


@cache
def landed(times: int, kind: str) -> Conformance:
    return lock_step(lands(times, CLASSES[kind]), subject=EFFECTS_SUBJECT)


GRADES = [lock_step, pytest.param(by_statements, marks=pytest.mark.slow)]
"""Of effects, statement by statement takes its time."""


@pytest.mark.parametrize(
    "kind",
    [k if k in ("opaque", "keyed") else pytest.param(k, marks=pytest.mark.slow) for k in CLASSES],
)
@pytest.mark.parametrize("times", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_an_effect_that_lands_more_than_once_in_one_decision_is_a_difference(times: int, kind: str) -> None:
    assert f"request c1 took effect {times} times" in difference(landed(times, kind))


@pytest.mark.slow
@pytest.mark.parametrize("grade", GRADES)
@pytest.mark.parametrize("times", [2, 3])
def test_where_keys_are_kept_it_breaks_the_claim_of_one_effect(
    times: int, grade: Callable[..., Conformance]
) -> None:
    report = grade(lands(times), "S8", subject=EFFECTS_SUBJECT)
    found = {f.claim.name: f.verdict for f in report.findings}
    assert found["one_effect_per_intent"] is Verdict.REFUTED
    assert f"took effect {times} times" in difference(report)


def test_a_commit_that_is_told_of_another_one_is_a_difference() -> None:
    adapter = SqliteAdapter("another", worker=OtherEntry)
    assert "and is told of commit" in difference(verify(adapter, examples=0))
    assert "and is told of commit" in difference(by_statements(adapter))


def test_a_question_that_is_answered_with_another_commit_is_a_difference() -> None:
    assert "ask(" in difference(by_statements(SqliteAdapter("another", worker=OtherFate)))


@pytest.mark.parametrize("grade", [lock_step, by_statements])
@pytest.mark.parametrize("length", [":now_ms + 2 * :lease_ms", ":now_ms + :lease_ms + 1"])
def test_a_lease_that_lasts_longer_than_was_asked_for_is_a_difference(
    length: str, grade: Callable[..., Conformance]
) -> None:
    for adapter in (renews(length), acquires(length)):
        wrong = difference(grade(adapter))
        assert "was asked for until" in wrong


@pytest.mark.parametrize("grade", GRADES)
def test_another_receipt_than_the_commit_names_is_a_difference(grade: Callable[..., Conformance]) -> None:
    adapter = make_sqlite(downstream=FULL, name="receipts", worker=OtherReceipt)
    assert "the receipt 'another' is stored" in difference(grade(adapter, subject=EFFECTS_SUBJECT))
