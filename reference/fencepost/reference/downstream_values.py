"""The words of a downstream: requests, what it holds under a key, and its answers (§6, §7).

A downstream is any system outside the store that takes an effect. `TakesEffects` is what a worker needs of
one; the ledger of `downstream.py` and the client of `downstream_http.py` both are such.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar

from fencepost.reference.values import Ok, Refused, text, whole

STALE_TOKEN: Final = "stale-token"  # noqa: S105  # a fencing token is no password
"""A higher token has been recorded for the instance and resource (§7)."""

IN_PROGRESS: Final = "in-progress"
"""The first call with the key is being decided just now; ask again later (§6)."""

KEY_EXPIRED: Final = "key-expired"
"""What was recorded under the key has been given up: what happened is no longer known here (§6)."""

KEY_CONFLICT: Final = "key-conflict"
"""The key stands for something else: its fingerprint is another (§6)."""

TOMBSTONED: Final = "tombstoned"
"""The intent has been given up; its effect did not happen, and will not (§7)."""

DECLINED: Final = "declined"
"""The business of the downstream said no, as to an amount above a limit."""

WRONG_REVISION: Final = "wrong-revision"
"""The resource's revision is not the expected one (§7)."""

MALFORMED: Final = "malformed"
"""The downstream, or its client, can make no sense of the request, now or later, and did nothing with it.

What a worker makes of an `ArgumentError`; no downstream answers so in its own words.
"""

PRECEDENCE: Final = {
    "apply": (
        IN_PROGRESS,
        STALE_TOKEN,
        KEY_CONFLICT,
        TOMBSTONED,
        KEY_EXPIRED,
        WRONG_REVISION,
        DECLINED,
    ),
    "tombstone": (IN_PROGRESS, STALE_TOKEN, KEY_CONFLICT, KEY_EXPIRED),
    "query": (KEY_EXPIRED,),
    "raise_fence": (STALE_TOKEN,),
}
"""For each operation, its refusals in the order in which they are given: fence, key, revision.

Before them all, and without a look at anything, stands that another call with the key is running.
"""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a downstream can do (§7). Classes combine; with none of them it is opaque."""

    fenced: bool
    keyed: bool
    queryable: bool
    revisioned: bool

    @property
    def can_be_asked(self) -> bool:
        """Whether it answers a query by key: each keyed downstream does."""
        return self.keyed or self.queryable


@dataclass(frozen=True, slots=True)
class EffectRequest:
    """One effect to be applied (§6). `parameters` is canonical JSON text, `token` the lease version."""

    instance: str
    resource: str
    operation: str
    parameters: str
    fingerprint: str
    key: str
    token: int
    expected_revision: int | None = None

    def __post_init__(self) -> None:
        for name in ("instance", "resource", "operation", "parameters", "fingerprint", "key"):
            text("EffectRequest", name, getattr(self, name))
        whole("EffectRequest", "token", self.token)
        if self.expected_revision is not None:
            whole("EffectRequest", "expected_revision", self.expected_revision)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The effect happened: under which token, and as what. The same to every request of its key.

    `revision` is the one it made of its resource, None at a downstream without revisions.
    """

    receipt: str
    key: str
    fingerprint: str
    instance: str
    resource: str
    token: int
    revision: int | None


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The effect did not happen and never will: its intent was given up (§7)."""

    key: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class RecordedRefusal:
    """The effect did not happen: it was refused for good, and why (§6)."""

    key: str
    fingerprint: str
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class NotFound:
    """Nothing is held under the key. By itself it proves nothing: a request may be on its way (§7)."""

    key: str


@dataclass(frozen=True, slots=True)
class Held:
    """What a refusing downstream saw (§2). None stands for nothing, or for what is not asked.

    `token` and `revision` are those recorded, `fingerprint` that under the key, `why` what a business refusal
    said.
    """

    token: int | None
    fingerprint: str | None
    revision: int | None
    why: str | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """The call may or may not have happened: a timeout, a lost connection, an answer nobody can read (§2)."""

    why: str


Record: TypeAlias = Receipt | Tombstone | RecordedRefusal
Value = TypeVar("Value")
DownstreamAnswer: TypeAlias = Ok[Value] | Refused[Held] | Unknown
"""What every operation of a downstream gives back (§2)."""


class TakesEffects(Protocol):
    """A downstream as a worker sees it.

    An `ArgumentError` that an operation raises says that it can make no sense of the request and did nothing,
    which is final. Whatever else it raises, of any class, is an unknown answer, and so is what is no answer.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What it can do, which does not change."""
        ...

    def apply(self, request: EffectRequest) -> DownstreamAnswer[Receipt]:
        """Apply an effect, or give the receipt of the one that its key stands for."""
        ...

    def tombstone(
        self, key: str, fingerprint: str, *, instance: str, resource: str, token: int
    ) -> DownstreamAnswer[Record]:
        """Give an intent up, unless it was decided before; what its key holds from now on."""
        ...

    def query(self, key: str) -> DownstreamAnswer[Record | NotFound]:
        """What the key holds."""
        ...

    def raise_fence(self, instance: str, resource: str, *, token: int) -> DownstreamAnswer[int]:
        """Record a token without any other effect; the token that stands."""
        ...
