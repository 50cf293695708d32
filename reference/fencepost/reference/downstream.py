"""A downstream (§6, §7): a ledger of effects in a database of its own, which is not the store's.

Each operation is one transaction under the write lock: it asks whether the effect is admitted, applies it,
and records its receipt and token, all or nothing. Which classes of §7 it is of, the opener says. Every `ok`
records the token; a refusal records nothing, unless it is the downstream's own decision about the intent
(declined, or a wrong revision): at a keyed one that is held under the key, like a receipt, and repeated.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from fencepost.reference import downstream_sql as sql
from fencepost.reference import downstream_values as words
from fencepost.reference.database import FileKind, open_file
from fencepost.reference.downstream_sql import DOWNSTREAM_STATEMENTS, DownstreamStatements
from fencepost.reference.downstream_values import (
    Capabilities,
    EffectRequest,
    Held,
    NotFound,
    Receipt,
    Record,
    RecordedRefusal,
    Tombstone,
)
from fencepost.reference.guards import explanation_of, guards_of
from fencepost.reference.handle import BEGIN_READING, BEGIN_WRITING, Arguments, Handle
from fencepost.reference.values import MAX_TIME_MS, ArgumentError, Ok, Refused, StoreError, shown, text, whole
from fencepost.reference.wording import LONGEST_CHARACTERS, said, storable

DOWNSTREAM: Final = FileKind(
    what="downstream",
    opener="open_downstream",
    application_id=sql.APPLICATION_ID,
    version=sql.SCHEMA_VERSION,
    schema=sql.SCHEMA,
    upgrades={},
)

Decline: TypeAlias = Callable[[EffectRequest], str | None]
"""The business of a downstream: why it declines an effect, in words, or None if it does not.

One that raises, or gives something else, decides nothing: the call is undone, and raises `StoreError`.
"""


class Downstream:
    """One handle on a downstream. Made by `open_downstream`; to be closed, or used in a `with`.

    Threads may share it, processes may not. Every operation may raise `ArgumentError` and `StoreBusyError`,
    which say that the call changed nothing, and `StoreError`, after which its answer is unknown (§2).
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        capabilities: Capabilities,
        clock_ms: Callable[[], int],
        decline: Decline | None = None,
        statements: DownstreamStatements = DOWNSTREAM_STATEMENTS,
    ) -> None:
        self.capabilities: Final = capabilities
        self._handle: Final = Handle(connection, what="downstream", opener="open_downstream")
        self._connection: Final = connection
        self._clock_ms: Final = clock_ms
        self._decline: Final = decline
        self._statements: Final = statements
        self._refusals: Final = {
            statement: (
                tuple(guard.code for guard in guards_of(statement)),
                explanation_of(statement, sql.EXPLANATION),
            )
            for statement in (
                statements.admit,
                statements.admit_tombstone,
                statements.admit_fence,
                statements.query,
            )
        }
        self._deciding: Final[set[str]] = set()  # keys of calls that run just now; gone with the process
        self._deciding_lock: Final = Lock()
        for statement in statements.opening:
            connection.execute(statement)

    def apply(self, request: EffectRequest) -> Ok[Receipt] | Refused[Held]:
        """Apply an effect; at a keyed downstream at most once for each key, with one receipt for all (§6)."""
        if not isinstance(request, EffectRequest):
            raise ArgumentError(f"apply: expected an EffectRequest, not {request!r}")
        arguments: dict[str, str | int | None] = {
            "instance": request.instance,
            "resource": request.resource,
            "operation": request.operation,
            "parameters": request.parameters,
            "fingerprint": request.fingerprint,
            "key": request.key,
            "token": request.token,
            "expected_revision": request.expected_revision if self.capabilities.revisioned else None,
            "revisioned": self.capabilities.revisioned,
        }
        with self._alone(request.key) as alone:
            if not alone:
                return Refused(words.IN_PROGRESS, None)
            with self._handle.transaction(BEGIN_WRITING):
                return self._decide(request, arguments)

    def _decide(
        self, request: EffectRequest, arguments: dict[str, str | int | None]
    ) -> Ok[Receipt] | Refused[Held]:
        arguments["now_ms"] = self._now_ms()
        admitted = self._guarded(self._statements.admit, arguments)
        if isinstance(admitted, Refused):
            if admitted.code == words.WRONG_REVISION:
                self._record_refusal(admitted.code, "the resource has another revision", arguments)
            return admitted
        kind, effect = admitted.value
        if kind is not None:
            self._raise_fence(arguments)
            return Ok(self._receipt(effect))
        why = self._declines(request)
        if why is not None:
            self._record_refusal(words.DECLINED, why, arguments)
            return Refused(words.DECLINED, Held(None, None, None, why))
        (applied,) = self._handle.rows(self._statements.apply, arguments)
        for statement in self._statements.between:
            self._connection.execute(statement)
        if self.capabilities.keyed:
            self._run(self._statements.record_receipt, {**arguments, "number": applied[0]})
        if self.capabilities.revisioned:
            self._run(self._statements.raise_revision, arguments)
        self._raise_fence(arguments)
        return Ok(_receipt(applied))

    def _declines(self, request: EffectRequest) -> str | None:
        """Why the business declines, if it does. One that is broken decides nothing (§2)."""
        if self._decline is None:
            return None
        try:
            why = self._decline(request)
        except Exception as error:
            raise StoreError(
                f"decline raised {said(error)}; nothing was applied: mend the function that "
                "open_downstream was given"
            ) from error
        if why is not None and (not isinstance(why, str) or storable(why) != why or not why):
            raise StoreError(
                f"decline gave {shown(why)}; nothing was applied: give the reason in at most "
                f"{LONGEST_CHARACTERS} characters, or None to accept"
            )
        return why

    def tombstone(
        self, key: str, fingerprint: str, *, instance: str, resource: str, token: int
    ) -> Ok[Record] | Refused[Held]:
        """Give an intent up (§7): what its key holds, which is a tombstone unless it was decided before.

        Repeating it gives the same answer. Raises `ArgumentError` at a downstream that is not keyed.
        """
        self._needs(can=self.capabilities.keyed, what="tombstone", which="a keyed")
        arguments: dict[str, str | int | None] = _fence("tombstone", instance, resource, token) | {
            "key": text("tombstone", "key", key),
            "fingerprint": text("tombstone", "fingerprint", fingerprint),
            "revisioned": self.capabilities.revisioned,
        }
        with self._alone(key) as alone:
            if not alone:
                return Refused(words.IN_PROGRESS, None)
            with self._handle.transaction(BEGIN_WRITING):
                arguments["now_ms"] = self._now_ms()
                admitted = self._guarded(self._statements.admit_tombstone, arguments)
                if isinstance(admitted, Refused):
                    return admitted
                if admitted.value[0] is None:
                    self._run(self._statements.record_tombstone, arguments)
                if admitted.value[0] != "refusal":  # an answer that refuses records no token
                    self._raise_fence(arguments)
                held = self._held(arguments)
                if isinstance(held, Ok) and isinstance(held.value, NotFound):
                    raise StoreError(f"tombstone: key {key!r} holds nothing after its tombstone was written")
                return held  # type: ignore[return-value]  # the line above has ruled NotFound out

    def query(self, key: str) -> Ok[Record | NotFound] | Refused[Held]:
        """What the key holds. Raises `ArgumentError` at a downstream that cannot be asked."""
        self._needs(can=self.capabilities.can_be_asked, what="query", which="a keyed or queryable")
        arguments = {
            "key": text("query", "key", key),
            "instance": None,
            "resource": None,
            "revisioned": False,
        }
        with self._handle.transaction(BEGIN_READING):
            return self._held(arguments)

    def raise_fence(self, instance: str, resource: str, *, token: int) -> Ok[int] | Refused[Held]:
        """Record a token and do nothing else (§7). Raises `ArgumentError` where there is no fence."""
        self._needs(can=self.capabilities.fenced, what="raise_fence", which="a fenced")
        arguments = _fence("raise_fence", instance, resource, token) | {"key": None, "revisioned": False}
        with self._handle.transaction(BEGIN_WRITING):
            admitted = self._guarded(self._statements.admit_fence, arguments)
            if isinstance(admitted, Refused):
                return admitted
            self._raise_fence(arguments)
            return Ok(token)

    def expire_records(self, *, before_ms: int) -> tuple[str, ...]:
        """Give up what was recorded before a time on this downstream's clock; the keys, which stay known."""
        arguments = {"before_ms": whole("expire_records", "before_ms", before_ms, highest=MAX_TIME_MS)}
        with self._handle.transaction(BEGIN_WRITING):
            return tuple(sorted(key for (key,) in self._handle.rows(self._statements.expire, arguments)))

    def close(self) -> None:
        """Give up the handle; twice is harmless."""
        self._handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Parts of operations.

    @contextmanager
    def _alone(self, key: str) -> Iterator[bool]:
        """Whether no other call with the key runs in this process; other processes wait for the lock."""
        if not self.capabilities.keyed:
            yield True
            return
        with self._deciding_lock:
            alone = key not in self._deciding
            self._deciding.add(key)
        try:
            yield alone
        finally:
            if alone:
                with self._deciding_lock:
                    self._deciding.remove(key)

    def _held(self, arguments: Arguments) -> Ok[Record | NotFound] | Refused[Held]:
        key = str(arguments["key"])
        if not self.capabilities.keyed:
            found = self._handle.rows(self._statements.find_effect_by_key, arguments)
            return Ok(_receipt(found[0]) if found else NotFound(key))
        answer = self._guarded(self._statements.query, arguments)
        if isinstance(answer, Refused):
            return answer
        kind, fingerprint, effect, refusal, why = answer.value
        match kind:
            case "receipt":
                return Ok(self._receipt(effect))
            case "refusal":
                return Ok(RecordedRefusal(key, fingerprint, refusal, why))
            case "tombstone":
                return Ok(Tombstone(key, fingerprint))
        return Ok(NotFound(key))

    def _receipt(self, number: int) -> Receipt:
        (found,) = self._handle.rows(self._statements.find_effect, {"number": number})
        return _receipt(found)

    def _record_refusal(self, code: str, why: str, arguments: Arguments) -> None:
        if self.capabilities.keyed:
            self._run(self._statements.record_refusal, {**arguments, "refusal": code, "why": why})

    def _raise_fence(self, arguments: Arguments) -> None:
        if self.capabilities.fenced:
            self._run(self._statements.raise_fence, arguments)

    def _run(self, statement: str, arguments: Arguments) -> None:
        self._connection.execute(statement, arguments)

    def _guarded(self, statement: str, arguments: Arguments) -> Ok[tuple[Any, ...]] | Refused[Held]:
        """The statement's row; if there is none, its first guard that does not hold, and what was seen."""
        found = self._handle.rows(statement, arguments)
        if found:
            return Ok(found[0])
        codes, explanation = self._refusals[statement]
        (record,) = self._handle.rows(explanation, arguments)
        for code, holds in zip(codes, record[4:], strict=True):
            if not holds:
                return Refused(code, Held(*record[:4]))
        raise StoreError(f"a statement gave no row although each guard in its text holds:\n{statement}")

    def _now_ms(self) -> int:
        try:
            return whole("clock_ms", "its reading", self._clock_ms(), highest=MAX_TIME_MS)
        except ArgumentError as error:  # which would put the blame on the request
            raise StoreError(f"{error}; nothing was applied") from error

    @staticmethod
    def _needs(*, can: bool, what: str, which: str) -> None:
        if not can:
            raise ArgumentError(f"{what}: only {which} downstream can do this; look at its capabilities")


def open_downstream(
    path: str | os.PathLike[str],
    *,
    clock_ms: Callable[[], int],
    fenced: bool = True,
    keyed: bool = True,
    queryable: bool = True,
    revisioned: bool = False,
    decline: Decline | None = None,
    busy_timeout_ms: int = 5_000,
    synchronous: str = "FULL",
    statements: DownstreamStatements = DOWNSTREAM_STATEMENTS,
    connection_class: type[sqlite3.Connection] = sqlite3.Connection,
) -> Downstream:
    """Open the downstream in the file at `path`; the file is created if there is none.

    `fenced`, `keyed`, `queryable` and `revisioned` are the classes of §7, with none of them it is opaque; by
    default it is the kind that needs no person to settle an unknown effect. `decline` is its business:
    without it every effect is welcome. The other arguments are those of `open_store`, with its defaults.

    Raises `StoreError` for a file that is no downstream, that a newer fencepost made, or that cannot be
    opened.
    """
    if not callable(clock_ms):
        raise ArgumentError(
            f"open_downstream: clock_ms must be a function, not {clock_ms!r}; pass one for milliseconds"
        )
    if decline is not None and not callable(decline):
        raise ArgumentError(
            f"open_downstream: decline must be a function, not {shown(decline)}; pass one of a request"
        )
    connection = open_file(
        path,
        DOWNSTREAM,
        busy_timeout_ms=busy_timeout_ms,
        synchronous=synchronous,
        connection_class=connection_class,
    )
    try:
        return Downstream(
            connection,
            capabilities=Capabilities(fenced, keyed, queryable, revisioned),
            clock_ms=clock_ms,
            decline=decline,
            statements=statements,
        )
    except BaseException:
        connection.close()
        raise


def _receipt(record: tuple[Any, ...]) -> Receipt:
    number, *rest = record
    return Receipt(f"receipt-{number}", *rest)


def _fence(who: str, instance: str, resource: str, token: int) -> dict[str, str | int | None]:
    return {
        "instance": text(who, "instance", instance),
        "resource": text(who, "resource", resource),
        "token": whole(who, "token", token),
    }
