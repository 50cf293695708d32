"""Gate 3 (§6, §7): which outside effect is accepted, and what a downstream holds under a key."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fencepost.reference import (
    DOWNSTREAM_STATEMENTS,
    ArgumentError,
    Downstream,
    EffectRequest,
    Held,
    NotFound,
    Receipt,
    RecordedRefusal,
    StoreError,
    Tombstone,
    observe_downstream,
    open_downstream,
)
from fencepost.reference.downstream_values import PRECEDENCE
from fencepost.reference.guards import guards_of

from .support import FINGERPRINT, Clock, code, dump, ok, refusal, request

KEY = request().key
HERE = {"instance": "order-1", "resource": "payment"}


def tombstone(downstream: Downstream, *, token: int = 1, fingerprint: str = FINGERPRINT) -> Any:
    return downstream.tombstone(KEY, fingerprint, **HERE, token=token)


def too_much(request: EffectRequest) -> str | None:
    return "above the limit" if "9" in request.parameters else None


def test_an_effect_is_applied_once_and_every_request_of_its_key_has_its_receipt(
    downstream: Downstream, ledger: Path
) -> None:
    receipt = ok(downstream.apply(request()))
    assert receipt == Receipt("receipt-1", KEY, FINGERPRINT, "order-1", "payment", 1, None)
    assert ok(downstream.apply(request())) == receipt
    assert ok(downstream.apply(request(token=5))) == receipt
    assert ok(downstream.query(KEY)) == receipt
    seen = observe_downstream(ledger)
    (effect,) = seen.effects_of(KEY)
    assert (effect.token, effect.parameters) == (1, '{"cents":500}')
    assert seen.fence("order-1", "payment") == 5
    record = seen.record(KEY)
    assert record is not None
    assert (record.kind, record.effect) == ("receipt", effect.number)


def test_a_key_with_another_fingerprint_is_a_conflict_not_the_old_receipt(
    downstream: Downstream, ledger: Path
) -> None:
    ok(downstream.apply(request()))
    refused = refusal(downstream.apply(request(fingerprint="another")))
    assert refused.code == "key-conflict"
    assert refused.observed.fingerprint == FINGERPRINT
    assert code(tombstone(downstream, fingerprint="another")) == "key-conflict"
    assert len(observe_downstream(ledger).effects) == 1


def test_a_lower_token_is_refused_and_an_equal_one_is_the_same_owner(downstream: Downstream) -> None:
    ok(downstream.apply(request(token=3)))
    for key in (KEY, "another"):
        refused = refusal(downstream.apply(request(token=2, key=key)))
        assert refused.code == "stale-token"
        assert refused.observed.token == 3
    ok(downstream.apply(request(token=3, key="another")))
    assert code(tombstone(downstream, token=2)) == "stale-token"
    assert code(downstream.raise_fence(**HERE, token=2)) == "stale-token"


def test_a_fence_is_for_one_instance_and_resource(downstream: Downstream) -> None:
    ok(downstream.apply(request(token=3)))
    ok(downstream.apply(request(token=2, key="a", instance="order-2")))
    ok(downstream.apply(request(token=2, key="b", resource="parcel")))


def test_every_ok_records_the_token_and_a_refusal_does_not(downstream: Downstream, ledger: Path) -> None:
    def fence() -> int | None:
        return observe_downstream(ledger).fence("order-1", "payment")

    ok(downstream.apply(request(token=1)))
    assert fence() == 1
    ok(downstream.apply(request(token=2)))  # deduplicated
    assert fence() == 2
    ok(downstream.raise_fence(**HERE, token=3))
    assert fence() == 3
    ok(tombstone(downstream, token=4))
    assert fence() == 4
    assert code(downstream.apply(request(token=5, fingerprint="another"))) == "key-conflict"
    assert code(tombstone(downstream, token=5, fingerprint="another")) == "key-conflict"
    assert fence() == 4


def test_a_tombstone_keeps_every_later_request_out(downstream: Downstream, ledger: Path) -> None:
    assert ok(tombstone(downstream)) == Tombstone(KEY, FINGERPRINT)
    assert ok(tombstone(downstream, token=2)) == Tombstone(KEY, FINGERPRINT)
    assert code(downstream.apply(request(token=2))) == "tombstoned"
    assert ok(downstream.query(KEY)) == Tombstone(KEY, FINGERPRINT)
    assert observe_downstream(ledger).effects == ()


def test_a_tombstone_that_comes_too_late_gives_the_receipt(downstream: Downstream) -> None:
    receipt = ok(downstream.apply(request()))
    assert ok(tombstone(downstream)) == receipt
    assert ok(tombstone(downstream)) == receipt
    assert ok(downstream.apply(request())) == receipt


def test_a_business_refusal_is_recorded_and_repeated(ledger: Path, clock: Clock) -> None:
    much = request(parameters='{"cents":900}')
    with open_downstream(ledger, clock_ms=clock, decline=too_much) as downstream:
        first = refusal(downstream.apply(much))
        assert (first.code, first.observed.why) == ("declined", "above the limit")
    with open_downstream(ledger, clock_ms=clock) as downstream:  # the limit is gone, the decision is not
        again = refusal(downstream.apply(much))
        assert (again.code, again.observed.why) == ("declined", "above the limit")
        recorded = RecordedRefusal(KEY, FINGERPRINT, "declined", "above the limit")
        assert ok(downstream.query(KEY)) == recorded
        assert ok(tombstone(downstream)) == recorded
        ok(downstream.apply(request(key="another")))
    seen = observe_downstream(ledger)
    assert [effect.key for effect in seen.effects] == ["another"]


def test_a_recorded_refusal_records_no_token_be_it_asked_for_by_an_effect_or_a_tombstone(
    ledger: Path, clock: Clock
) -> None:
    with open_downstream(ledger, clock_ms=clock, decline=lambda _: "no stock") as downstream:
        assert code(downstream.apply(request(token=2))) == "declined"
        ok(tombstone(downstream, token=4))
    assert observe_downstream(ledger).fence(**HERE) is None


def test_a_wrong_revision_is_recorded_and_repeated_when_it_would_be_right(ledger: Path, clock: Clock) -> None:
    with open_downstream(ledger, clock_ms=clock, revisioned=True) as downstream:
        early = request(key="early", expected_revision=1)
        refused = refusal(downstream.apply(early))
        assert (refused.code, refused.observed.revision) == ("wrong-revision", 0)
        assert ok(downstream.apply(request(expected_revision=0))).revision == 1
        assert code(downstream.apply(early)) == "wrong-revision"
        assert ok(downstream.apply(request(key="next", expected_revision=1))).revision == 2
        assert ok(downstream.apply(request(expected_revision=0))).revision == 1  # the key comes first
        assert ok(downstream.apply(request(key="any"))).revision == 3
    assert observe_downstream(ledger).revisions == (("payment", 3),)


def test_checks_run_in_the_order_fence_key_revision(ledger: Path, clock: Clock) -> None:
    with open_downstream(ledger, clock_ms=clock, revisioned=True, decline=too_much) as downstream:
        ok(downstream.apply(request(token=2)))
        wrong = {"expected_revision": 9, "parameters": "9"}
        assert code(downstream.apply(request(token=1, fingerprint="x", **wrong))) == "stale-token"
        assert code(downstream.apply(request(token=2, fingerprint="x", **wrong))) == "key-conflict"
        ok(downstream.apply(request(token=2, **wrong)))
        assert code(downstream.apply(request(token=2, key="new", **wrong))) == "wrong-revision"
        assert code(downstream.apply(request(token=2, key="free", parameters="9"))) == "declined"


def test_the_order_of_the_refusals_is_that_of_the_statements() -> None:
    for operation, statement in (
        ("apply", DOWNSTREAM_STATEMENTS.admit),
        ("tombstone", DOWNSTREAM_STATEMENTS.admit_tombstone),
        ("query", DOWNSTREAM_STATEMENTS.query),
        ("raise_fence", DOWNSTREAM_STATEMENTS.admit_fence),
    ):
        codes = tuple(dict.fromkeys(guard.code for guard in guards_of(statement)))
        assert codes == tuple(each for each in PRECEDENCE[operation] if each != "in-progress")


def test_an_expired_key_is_never_not_found(downstream: Downstream, ledger: Path, clock: Clock) -> None:
    ok(downstream.apply(request()))
    clock.now_ms += 10
    ok(downstream.apply(request(key="later")))
    assert downstream.expire_records(before_ms=clock.now_ms) == (KEY,)
    assert downstream.expire_records(before_ms=clock.now_ms) == ()
    for answer in (downstream.apply(request()), downstream.query(KEY), tombstone(downstream)):
        assert code(answer) == "key-expired"
    assert ok(downstream.query("later")).receipt == "receipt-2"
    assert ok(downstream.query("never seen")) == NotFound("never seen")
    assert len(observe_downstream(ledger).effects) == 2


@pytest.mark.parametrize("held", ["receipt", "tombstone", "refusal", "expired"])
def test_a_refusal_changes_nothing(held: str, ledger: Path, clock: Clock) -> None:
    with open_downstream(ledger, clock_ms=clock, revisioned=True, decline=too_much) as downstream:
        match held:
            case "tombstone":
                tombstone(downstream)
            case "refusal":
                downstream.apply(request(parameters="9"))
            case _:
                downstream.apply(request())
        if held == "expired":
            clock.now_ms += 1
            downstream.expire_records(before_ms=clock.now_ms)
        downstream.raise_fence(**HERE, token=2)
        before = dump(ledger)
        answers = [
            downstream.apply(request(token=1)),
            downstream.apply(request(token=3, fingerprint="another")),
            tombstone(downstream, token=1),
            tombstone(downstream, token=3, fingerprint="another"),
            downstream.raise_fence(**HERE, token=1),
        ]
        assert [code(answer) for answer in answers] == [
            "stale-token",
            "key-conflict",
            "stale-token",
            "key-conflict",
            "stale-token",
        ]
        if held != "receipt":
            assert code(downstream.apply(request(token=3))) in ("tombstoned", "declined", "key-expired")
        assert dump(ledger) == before


# The other classes of §7.


def test_an_unkeyed_downstream_applies_a_repeated_request_again(ledger: Path, clock: Clock) -> None:
    with open_downstream(ledger, clock_ms=clock, keyed=False) as downstream:
        assert ok(downstream.query(KEY)) == NotFound(KEY)
        first = ok(downstream.apply(request()))
        ok(downstream.apply(request(fingerprint="another")))
        assert ok(downstream.query(KEY)) == first
        assert code(downstream.apply(request(token=0))) == "stale-token"
    seen = observe_downstream(ledger)
    assert (len(seen.effects_of(KEY)), seen.records) == (2, ())


def test_an_unfenced_downstream_applies_under_any_token(ledger: Path, clock: Clock) -> None:
    with open_downstream(ledger, clock_ms=clock, fenced=False) as downstream:
        ok(downstream.apply(request(token=3)))
        ok(downstream.apply(request(token=1, key="another")))
    assert observe_downstream(ledger).fences == ()


def test_an_opaque_downstream_keeps_nothing_but_the_effects(ledger: Path, clock: Clock) -> None:
    with open_downstream(
        ledger, clock_ms=clock, fenced=False, keyed=False, queryable=False, decline=too_much
    ) as downstream:
        ok(downstream.apply(request(token=3)))
        ok(downstream.apply(request(token=1, expected_revision=7)))
        assert code(downstream.apply(request(parameters="9"))) == "declined"
        for call in (
            lambda: downstream.query(KEY),
            lambda: tombstone(downstream),
            lambda: downstream.raise_fence(**HERE, token=1),
        ):
            with pytest.raises(ArgumentError, match="look at its capabilities"):
                call()
    seen = observe_downstream(ledger)
    assert (len(seen.effects), seen.records, seen.fences, seen.revisions) == (2, (), (), ())


# One key while it is being decided, several handles, and death.


def test_a_key_that_is_being_decided_is_in_progress(ledger: Path, clock: Clock) -> None:
    deciding, decided = threading.Event(), threading.Event()

    def slowly(request: EffectRequest) -> None:
        if request.key == KEY:
            deciding.set()
            assert decided.wait(60)

    with open_downstream(ledger, clock_ms=clock, decline=slowly) as downstream:
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(downstream.apply(request())))
        thread.start()
        assert deciding.wait(60)
        assert code(downstream.apply(request())) == "in-progress"
        assert code(tombstone(downstream)) == "in-progress"
        decided.set()
        thread.join()
        assert ok(answers[0]) == ok(downstream.apply(request()))


def test_a_handle_that_fails_while_it_decides_leaves_the_key_free(ledger: Path, clock: Clock) -> None:
    def fail(_: EffectRequest) -> None:
        raise RuntimeError("out of ink")

    with open_downstream(ledger, clock_ms=clock, decline=fail) as downstream:
        for _ in range(2):
            with pytest.raises(StoreError, match="RuntimeError: out of ink; nothing was applied"):
                downstream.apply(request())
    assert observe_downstream(ledger).effects == ()


@pytest.mark.parametrize("reading", [0.5, None, -1, 2**63])
def test_a_broken_clock_is_not_the_fault_of_a_request(reading: Any, ledger: Path) -> None:
    with open_downstream(ledger, clock_ms=lambda: reading) as downstream:
        for call in (lambda: downstream.apply(request()), lambda: tombstone(downstream)):
            with pytest.raises(StoreError, match=r"its reading .*; nothing was applied") as raised:
                call()
            assert not isinstance(raised.value, ArgumentError)
    assert observe_downstream(ledger).records == ()


def test_many_handles_with_one_key_have_one_effect(ledger: Path, clock: Clock) -> None:
    together = threading.Barrier(4)
    receipts = []

    def apply() -> None:
        with open_downstream(ledger, clock_ms=clock, synchronous="OFF", busy_timeout_ms=60_000) as handle:
            together.wait()
            receipts.extend(ok(handle.apply(request(key=f"k{number}"))) for number in range(20))

    threads = [threading.Thread(target=apply) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(receipts) == 80
    assert len(set(receipts)) == len(observe_downstream(ledger).effects) == 20


class DeathError(BaseException):
    """The process is gone."""


class Dying(sqlite3.Connection):
    """A connection on which the process dies before a given statement."""

    left: int = 10**9

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self.left -= 1
        if self.left < 0:
            raise DeathError
        return super().execute(*arguments)


def test_death_at_any_statement_leaves_effect_and_record_or_neither(tmp_path: Path, clock: Clock) -> None:
    outcomes = []
    for statements in range(9):
        ledger = tmp_path / f"ledger-{statements}.db"
        dying = open_downstream(
            ledger, clock_ms=clock, revisioned=True, synchronous="OFF", connection_class=Dying
        )
        connection = dying._connection
        assert isinstance(connection, Dying)
        connection.left = statements
        try:
            dying.apply(request())
        except DeathError:
            pass
        connection.close()
        seen = observe_downstream(ledger)
        assert len(seen.effects) == len(seen.records) == len(seen.fences) == len(seen.revisions)
        outcomes.append(len(seen.effects))
        with open_downstream(ledger, clock_ms=clock, synchronous="OFF") as heir:
            ok(heir.apply(request(token=2)))
        assert len(observe_downstream(ledger).effects) == 1
    # begin, admit, apply, record, revision, fence, commit: all of them, or nothing.
    assert outcomes == [0] * 7 + [1] * 2


# The file.


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("delete from effects", "what happened"),
        ("update effects set token = 9", "what happened"),
        ("delete from records", "keeps what it holds"),
        ("update records set kind = 'tombstone', effect = null", "keeps what it holds"),
        ("update records set kind = 'expired', effect = null, fingerprint = 'x'", "keeps what it holds"),
        ("update records set kind = 'expired'", "CHECK"),
        ("insert into records values ('k', 'receipt', 'f', 9, null, null, 0)", "FOREIGN KEY"),
        ("insert into records values ('k', 'receipt', 'f', 1, null, null, 0)", "UNIQUE"),
        ("insert into records values ('k', 'receipt', 'f', null, null, null, 0)", "CHECK"),
        ("insert into records values ('k', 'refusal', 'f', null, 'a hunch', 'w', 0)", "CHECK"),
        ("insert into records values ('k', 'refusal', 'f', null, 'declined', null, 0)", "CHECK"),
        ("insert into records values ('k', 'tombstone', 'f', 1, null, null, 0)", "CHECK|UNIQUE"),
        ("update fences set token = token - 1", "never falls"),
        ("update revisions set revision = revision + 2", "rises by one"),
    ],
)
def test_what_no_operation_writes_is_repelled(statement: str, why: str, ledger: Path, clock: Clock) -> None:
    with open_downstream(ledger, clock_ms=clock, revisioned=True) as downstream:
        ok(downstream.apply(request(token=3)))
    before = dump(ledger)
    with closing(sqlite3.connect(ledger, isolation_level=None)) as connection:
        connection.execute("pragma foreign_keys = on")
        with pytest.raises(sqlite3.IntegrityError, match=why):
            connection.execute(statement)
    assert dump(ledger) == before


def test_a_store_is_no_downstream_and_the_other_way_round(ledger: Path, clock: Clock) -> None:
    from fencepost.reference import observe, open_store

    with open_downstream(ledger, clock_ms=clock), pytest.raises(StoreError, match="something else"):
        open_store(ledger, clock_ms=clock)
    path = ledger.with_name("store.db")
    with open_store(path, clock_ms=clock), pytest.raises(StoreError, match="something else"):
        open_downstream(path, clock_ms=clock)
    with pytest.raises(StoreError, match="is it a downstream"):
        observe_downstream(path)
    with pytest.raises(StoreError, match="cannot read the tables of a store"):
        observe(ledger)


def test_wrong_arguments_are_errors(downstream: Downstream, ledger: Path) -> None:
    with pytest.raises(ArgumentError, match="key is empty"):
        request(key="")
    with pytest.raises(ArgumentError, match="token is -1"):
        request(token=-1)
    with pytest.raises(ArgumentError, match="expected an EffectRequest, not 'charge'"):
        downstream.apply("charge")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="open_downstream: clock_ms must be a function"):
        open_downstream(ledger, clock_ms=0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="open_downstream: path is ':memory:'"):
        open_downstream(":memory:", clock_ms=lambda: 0)


def test_a_refusal_shows_what_was_seen(downstream: Downstream) -> None:
    ok(downstream.apply(request(token=3)))
    assert refusal(downstream.apply(request(token=2))).observed == Held(3, FINGERPRINT, None, None)
