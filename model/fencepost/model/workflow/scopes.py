"""How far finite readings look at a workflow: each scope with its reason. Bounds are cuts, never guards.

No scope has everything: a workflow with all its features at once has more states than anybody can visit.
What matters together is looked at together, and each scope says what it has no room for. A reply that is lost
looks to everybody like one that is never delivered, and a crashed worker knows as little as one that never
began, so the scopes that are looked at by default do without those switches; the proofs leave every one open.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.protocol import Scope
from fencepost.model.workflow.state import workflow

_BOUNDS: Mapping[str, int] = MappingProxyType(
    {"lease_version": 2, "state_version": 7, "intent_version": 1, "attempt": 1, "incarnation": 1}
)


def _scope(
    name: str, *switches: str, why: str, bounds: Mapping[str, int] | None = None, **sizes: int
) -> None:
    workflow.scope(
        name,
        sizes={"worker": 2, "step": 2, "call": 1, "request": 1, "fingerprint": 1} | sizes,
        bounds=dict(_BOUNDS) | dict(bounds or {}),
        switches=switches,
        why=why,
    )


_scope(
    "undone",
    "keyed", "fenced", "declining",
    why="two steps and two recoveries: one step fails or is given up, its key is buried, the other is undone",
)  # fmt: skip
_scope(
    "cancelled",
    "keyed", "cancels", bounds={"state_version": 8},
    why="a cancel against two steps that run and are undone in order; one call at a time",
)  # fmt: skip
_scope(
    "late",
    "keyed", "cancels", "call_duplicated", step=1, call=2,
    why="a cancel, an effect that comes late or twice, the tombstone and the compensation; one step",
)  # fmt: skip
_scope(
    "chained",
    "chained", "irreversible", "cancels", "keyed", worker=1,
    bounds={"lease_version": 1, "state_version": 12},
    why="steps that depend on each other, some of which cannot be undone; one worker, always the owner",
)  # fmt: skip
_scope(
    "branching",
    "chained", step=3, worker=1, bounds={"lease_version": 1, "state_version": 12},
    why="chain, fan-out and fan-in of three steps; one worker, and nothing but success and failure",
)  # fmt: skip
_scope(
    "approved",
    "gates", "keyed", "request_duplicated", step=1, fingerprint=2,
    why="an approval and its deadline beside a takeover, of this intent or of another; one step",
)  # fmt: skip
_scope(
    "approved-cancelled",
    "gates", "keyed", "cancels", step=1, request=2,
    why="an approval and a cancel at the same time; one step",
)  # fmt: skip
_scope(
    "approved-anew",
    "gates", "keyed", "declining", "intent_renewed", step=1, worker=1, request=2,
    bounds={"intent_version": 2, "lease_version": 1},
    why="an intent that came to nothing, and another that is approved anew; one worker, one step",
)  # fmt: skip
_scope(
    "retried",
    "retries", "operator", "keyed", step=1,
    why="timers, takeovers, and a person who decides where keys are kept; one step",
)  # fmt: skip
_scope(
    "attested",
    "operator", "irreversible", step=1, bounds={"state_version": 6},
    why="a downstream that keeps nothing: what is unknown only a person can settle; one step",
)  # fmt: skip
_scope(
    "decided",
    "operator", "irreversible", step=1, request=2, bounds={"state_version": 4, "incarnation": 0},
    why="two who decide about the same step, too early, too late, or otherwise than each other; one step",
)  # fmt: skip

_scope(
    "handed-in",
    "late_results", "keyed", "fenced", "cancels", step=1,
    why="a receipt that comes to a former owner, which hands it in, or a cancel instead of that; one step",
)  # fmt: skip

# For changes of the model that are tried one after another: between them, every claim is exercised and can
# fail. One worker, always the owner, has the whole life of a step; what takes two owners has less of it.
_ALONE: Mapping[str, int] = MappingProxyType({"lease_version": 1, "incarnation": 0})
_scope(
    "quick-step",
    "gates", "retries", "operator", "cancels", "intent_renewed", "keyed", "declining", "request_duplicated",
    "call_lost", step=1, worker=1, bounds={**_ALONE, "intent_version": 2},
    why="all that can become of one step, with one request; one worker, always the owner",
)  # fmt: skip
_scope(
    "quick-two",
    "chained", "gates", worker=1, bounds={**_ALONE, "state_version": 8},
    why="two steps, of which one may wait for the other and for an approval; one worker, always the owner",
)  # fmt: skip
_scope(
    "quick-owners",
    "keyed", "fenced", bounds={"state_version": 4, "incarnation": 0},
    why="two owners and two steps, as far as the first success after a takeover",
)  # fmt: skip
_scope(
    "quick-calls",
    "keyed", "fenced", "declining", "call_duplicated", step=1, call=2,
    bounds={"state_version": 4, "incarnation": 0},
    why="calls of two owners that come late or twice, and the tombstone; one step",
)  # fmt: skip
_scope(
    "quick-anew",
    "intent_renewed", "keyed", "declining", step=1, worker=1, call=2,
    bounds={**_ALONE, "state_version": 4, "intent_version": 2},
    why="a reply to a former intent that comes late; one worker, one step",
)  # fmt: skip
_scope(
    "quick-unkeyed",
    "operator", "declining", "call_duplicated", step=1, bounds={"state_version": 4, "incarnation": 0},
    why="as attested, for a downstream that declines and calls that arrive twice",
)  # fmt: skip
_scope(
    "quick-requests",
    "gates", "operator", "cancels", "keyed", step=1, worker=1, request=2,
    bounds={**_ALONE, "state_version": 5},
    why="a cancel at the same time as an approval or an operator's decision; one worker, one step",
)  # fmt: skip
_scope(
    "quick-crash",
    "operator", "keyed", "crash", step=1, bounds={"state_version": 3},
    why="workers that die and start again; one step",
)  # fmt: skip
_scope(
    "quick-thrice",
    "gates", "intent_renewed", "cancels", "late_results", "keyed", "fenced", step=1,
    bounds={"lease_version": 3, "state_version": 4, "intent_version": 2, "incarnation": 0},
    why="three lease versions, so that a worker can be the owner again after another was; one step",
)  # fmt: skip
_scope(
    "quick-faults",
    "gates", "retries", "operator", "cancels", "intent_renewed", "late_results", "keyed", "fenced",
    "declining", "crash", "pause", "reply_lost", step=1, worker=1,
    bounds={"state_version": 3, "intent_version": 2},
    why="less of what quick-step has, and a worker that dies, stands still and misses answers; it may meet "
    "what its former incarnation has left",
)  # fmt: skip

SWEEP = ("quick-step", "quick-two", "quick-owners", "quick-calls", "quick-anew", "quick-unkeyed",
         "quick-requests", "attested", "approved", "handed-in", "quick-thrice", "quick-faults")  # fmt: skip
"""The scopes of a sweep: a change that no claim notices in the first is looked at in the next."""

# What is looked at when there are some minutes. Everything in the small ones, and more of it at once.
_scope(
    "undone-cancelled",
    "keyed", "fenced", "declining", "cancels",
    why="a failure, a cancel and a takeover at once: two steps, keys that are buried, effects that are "
    "undone; one call at a time",
)  # fmt: skip
_scope(
    "approved-two",
    "gates", "keyed", "request_duplicated", step=2,
    why="an approval that may be meant for the other of two steps, its deadline, and a takeover; one "
    "request, one fingerprint",
)  # fmt: skip
_scope(
    "retried-cancelled",
    "retries", "operator", "keyed", "cancels", step=1, request=2, bounds={"attempt": 2},
    why="two retries, a cancel and a person's decision in any order, with takeovers; one step",
)  # fmt: skip
_scope(
    "chained-taken",
    "chained", "irreversible", "cancels", "keyed", bounds={"state_version": 8},
    why="as chained, with a takeover: two owners, and as many commits as two steps and their undoing take",
)  # fmt: skip
_scope(
    "branching-cancelled",
    "chained", "keyed", "cancels", "irreversible", step=3, worker=1,
    bounds={"lease_version": 1, "state_version": 12},
    why="chain, fan-out and fan-in of three steps, some without a compensation, and a cancel; one worker",
)  # fmt: skip
_scope(
    "all-faults",
    "keyed", "fenced", "declining", "cancels", "crash", "pause", "reply_lost", "call_lost", "call_duplicated",
    "request_lost", "request_duplicated", step=1,
    why="one step with every fault of workers and messages, beside a cancel; one call at a time",
)  # fmt: skip

SMALL = (
    "undone", "cancelled", "late", "chained", "branching", "approved", "approved-cancelled", "approved-anew",
    "retried", "attested", "decided", "handed-in",
)  # fmt: skip
"""The scopes that are looked at where none is named: between them every claim is exercised."""


# What is looked at once, when there is an hour: see the reasons for what it adds.
_scope(
    "undone-late",
    "keyed", "fenced", "declining", call=2,
    why="as undone, with calls that overtake each other: 27 million states, half a minute and 1 GB",
)  # fmt: skip

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "small": (
            "undone", "chained", "branching", "approved", "approved-anew", "retried", "attested", "decided",
            "handed-in",
        ),
        "usual": (
            "cancelled", "late", "approved-cancelled", "undone-cancelled", "approved-two",
            "retried-cancelled", "chained-taken", "branching-cancelled", "all-faults", "approved",
            "approved-anew", "attested", "decided", "handed-in",
        ),
        "large": ("undone-late",),
    }
)  # fmt: skip
"""Scopes that go by one name. Every claim is exercised between the small ones, and between the usual ones."""


def _what_if(name: str, *switches: str, sizes: Mapping[str, int], bounds: Mapping[str, int]) -> Scope:
    return workflow.scopes["late"].but(
        name=name,
        sizes={"worker": 1, "step": 1, "call": 1, "request": 1, "fingerprint": 1} | dict(sizes),
        bounds={"lease_version": 1, "state_version": 3, "intent_version": 1, "attempt": 1, "incarnation": 0}
        | dict(bounds),
        switches=frozenset(switches),
        why="as little as a downstream that forgets needs to break a claim",
    )


WHAT_IF_IN = (
    _what_if(
        "one-call", "keyed", "declining", "call_duplicated", "intent_renewed",
        sizes={}, bounds={"intent_version": 2},
    ),
    _what_if("two-calls", "keyed", sizes={"call": 2}, bounds={}),
    _what_if(
        "two-owners", "keyed", "fenced", sizes={"worker": 2, "call": 2},
        bounds={"lease_version": 2, "state_version": 1},
    ),
)  # fmt: skip
"""The scopes to which a fault of the downstream is added to see what it breaks: some thousand states each."""

RESULTS_FORGOTTEN = workflow.scopes["handed-in"].but(
    name="handed-in with record_expired",
    bounds={**_BOUNDS, "state_version": 4, "intent_version": 2, "incarnation": 0},
    switches=frozenset(
        {"late_results", "keyed", "declining", "intent_renewed", "call_duplicated", "record_expired"}
    ),
    why="a result of a former intent, of which the downstream has forgotten that it was declined",
)
"""Only there the intent matters that a late result names: it keeps S10, which needs no fault off."""

WHAT_IF: Mapping[str, tuple[Scope, ...]] = MappingProxyType(
    {
        switch: tuple(
            scope.but(name=f"{scope.name} with {switch}", switches=scope.switches | {switch})
            for scope in WHAT_IF_IN
        )
        for switch in ("record_expired", "record_volatile")
    }
)
"""For each fault that some claims need off: scopes with it."""
