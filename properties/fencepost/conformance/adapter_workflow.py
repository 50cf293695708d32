"""What an implementation with whole workflows gives besides: definitions, steps, an inbox (§4, §9 to §12).

An adapter with `Capability.WORKFLOW` is one with effects whose instance has the steps of a definition. Its
commits name the step that they change, and the request that they consume; requests come from those who have
no lease, each under an id of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from fencepost.conformance.adapter import Answer, EffectsAdapter, Surroundings


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A step of a definition: what it needs first, whether an approval, and whether it can be undone."""

    step: str
    needs: tuple[str, ...] = ()
    gated: bool = False
    undoable: bool = True


@dataclass(frozen=True, slots=True)
class Definition:
    """The steps of an instance, in any order (§1)."""

    steps: tuple[StepPlan, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody without a lease asks for (§4). The same `request_id` is the same request.

    `wish` is ``cancel``; ``approve`` or ``reject``, of the intent of this version with this fingerprint; or
    what an operator decides that a step in a person's hands becomes: ``running``, ``succeeded``, ``failed``,
    ``compensated``; or ``late-result``: a receipt that a former owner got under this key, with this
    fingerprint. One who decides on what nobody has asked for yet names the first version, or the present one.
    """

    request_id: str
    wish: str
    step: str | None = None
    fingerprint: str | None = None
    key: str | None = None
    receipt: str | None = None
    intent_version: int = 1


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request as the inbox holds it, under its number."""

    number: int
    request: Request
    consumed: bool = False


@dataclass(frozen=True, slots=True)
class StepSeen:
    """One step as it is stored (§5). Times are on the store's clock, None where there are none.

    `intent` is the stored one or, while the step waits, the one that is to be approved; None before the
    first. `undoable` is None as long as it is not stored. `retries` are the timers that have fired,
    `succeeded_at` is the state version of its success, 0 without one. `undoing` says of a step in a person's
    hands whether its compensation is meant. `receipt` is the step's own, `undo_receipt` its compensation's.
    """

    step: str
    status: str
    needs: tuple[str, ...] = ()
    gated: bool = False
    undoable: bool | None = None
    intent_version: int = 0
    key: str | None = None
    fingerprint: str | None = None
    retries: int = 0
    timer_at_ms: int | None = None
    approval_until_ms: int | None = None
    succeeded_at: int = 0
    undoing: bool = False
    attested: bool = False
    receipt: str | None = None
    undo_key: str | None = None
    undo_receipt: str | None = None


@dataclass(frozen=True, slots=True)
class WorkflowSeen:
    """All that is stored of the instance beside its row: why it unwinds, if it does, its steps, the inbox.

    `ended` is how it ended: ``succeeded``, ``failed`` or ``cancelled``; None until then.
    """

    cause: str | None
    steps: tuple[StepSeen, ...]
    inbox: tuple[Recorded, ...]
    ended: str | None = None


@runtime_checkable
class Requester(Protocol):
    """One handle on a world of somebody without a lease. An exception counts as no answer."""

    def request(self, request: Request) -> Answer:
        """Put the request into the inbox."""
        ...

    def close(self) -> None:
        """Give up the handle."""
        ...


@runtime_checkable
class WorkflowAdapter(EffectsAdapter, Protocol):
    """An adapter with `Capability.WORKFLOW`: instances with several steps, requests and ways back."""

    def begin(self, world: Any, definition: Definition) -> None:
        """Let the world's instance be a new one, with this definition; what was in the world is gone.

        Only asked before anybody has acquired the instance, or asked anything of it. Handles may be open.
        """
        ...

    def open_requester(self, world: Any, surroundings: Surroundings) -> Requester:
        """A handle of its own on the world's storage, as somebody without a lease would have."""
        ...
