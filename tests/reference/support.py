"""What the tests of the store share: a clock that is set by hand, a dump of the tables, broken statements."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from fencepost.reference import (
    Answer,
    Commit,
    EffectRequest,
    Entry,
    Intent,
    Ok,
    Owner,
    Refused,
    Row,
    StepChange,
    Store,
)

ADA = Owner("ada", 0)
ADA_RESTARTED = Owner("ada", 1)
BOB = Owner("bob", 0)

LEASE_MS = 100

Value = TypeVar("Value")


@dataclass
class Clock:
    """Shows what it was set to; may be set back."""

    now_ms: int = 1_000

    def __call__(self) -> int:
        return self.now_ms


def ok(answer: Answer[Value]) -> Value:
    """The value of an answer that must be ok."""
    assert isinstance(answer, Ok), answer
    return answer.value


def refusal(answer: Answer[Any]) -> Refused:
    """An answer that must be a refusal."""
    assert isinstance(answer, Refused), answer
    return answer


def code(answer: Answer[Any]) -> str:
    """The code of an answer that must be a refusal."""
    return refusal(answer).code


def leased(store: Store, instance: str = "order-1", owner: Owner = ADA) -> Row:
    """A new instance whose lease the owner holds for LEASE_MS."""
    ok(store.create(instance))
    return ok(store.acquire(instance, owner, lease_ms=LEASE_MS))


def commit_on(
    row: Row, commit_id: str = "0-1", *, owner: Owner | None = None, finishes: bool = False
) -> Commit:
    """The commit of someone who believes in exactly this row."""
    owner = owner or row.owner
    assert owner is not None
    return Commit(
        instance=row.instance,
        owner=owner,
        commit_id=commit_id,
        expected_state_version=row.state_version,
        expected_lease_version=row.lease_version,
        event="charged",
        payload="{}",
        finishes=finishes,
    )


def dump(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every table of a database but the clock, whatever tables there are."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [
            name for (name,) in connection.execute("select name from sqlite_schema where type = 'table'")
        ]
        return {
            name: sorted(connection.execute(f"select * from {name}"), key=repr)
            for name in tables
            if name != "clock"
        }


def only(statement: str, *codes: str) -> str:
    """The statement with no guards but those of the given codes."""
    lines = statement.splitlines()
    return "\n".join(line for line in lines if "-- refuse: " not in line or line.split()[-1] in codes)


# Steps and effects.

FINGERPRINT = "f" * 64


def intent(version: int = 1, **changes: Any) -> Intent:
    """The intent to charge order-1, of some version."""
    whole: dict[str, Any] = {
        "intent_version": version,
        "key": f"order-1:charge:payment-v{version}",
        "fingerprint": FINGERPRINT,
        "resource": "payment",
        "operation": "charge",
        "parameters": '{"cents":500}',
    }
    return Intent(**(whole | changes))


def request(**changes: Any) -> EffectRequest:
    """The request that goes with `intent`, under token 1."""
    whole: dict[str, Any] = {
        "instance": "order-1",
        "resource": "payment",
        "operation": "charge",
        "parameters": '{"cents":500}',
        "fingerprint": FINGERPRINT,
        "key": "order-1:charge:payment-v1",
        "token": 1,
    }
    return EffectRequest(**(whole | changes))


def changed(store: Store, *changes: StepChange, finishes: bool = False, owner: Owner = ADA) -> Answer[Entry]:
    """Commit changes of steps of order-1 on the row as it stands."""
    row = ok(store.read("order-1"))
    commit = commit_on(row, f"{row.lease_version}-{row.state_version}", owner=owner, finishes=finishes)
    return store.commit(replace(commit, changes=changes))
