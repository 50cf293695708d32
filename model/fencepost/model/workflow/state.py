"""The state of a workflow: one instance with several steps, its inbox, workers, and a downstream.

Leases are those of the core, and a commit is decided at once, as in `effects`: its answer may be lost, so a
worker is stale by what it believes. One commit changes one step; a commit that changes several at once leads
where several in a row lead, with fewer states between. Each step has one effect, and one that undoes it.

Left out, and why that is safe: parameters of calls, revisions, raising the fence and minted keys (`effects`
has them, and no rule of a single effect depends on other steps); the event log, in which commits stand in
the order of their state versions (`core`); a step's and an instance's deadline, which are reasons to fail or
to cancel: here a step may fail, and somebody may cancel, at any moment. Definitions, checkpoints, triggers
and notifications are protocols of their own.
"""

from __future__ import annotations

from fencepost.model.core.state import (
    NETWORK,
    STORE,
    WORKER,
    Owner,
    core,
    lease_versions,
    state_versions,
    workers,
)
from fencepost.model.domains import BOOLEAN, Counter, Element, Enumeration, Family, Optional, Record, Sort
from fencepost.model.language import State, absent, derived, every, some
from fencepost.model.protocol import HISTORY, Protocol

DOWNSTREAM, REQUESTER, AUTHOR = "downstream", "requester", "author"
"""Who acts besides those of the core: people and systems without a lease, and who wrote the definition."""

steps = Sort("step")
requests = Sort("request")
calls = Sort("call")
fingerprints = Sort("fingerprint")
intent_versions = Counter("intent_version")
attempts = Counter("attempt")

Status = Enumeration(
    "Status",
    "pending",
    "waiting-approval",
    "running",
    "retry-scheduled",
    "succeeded",
    "failed",
    "compensating",
    "compensated",
    "cancelled",
    "manual-intervention",
)
"""The status of a step (§5)."""

Cause = Enumeration("Cause", "none", "failure", "cancel")
"""Why the instance unwinds (§10); with `none` it does not."""

Deed = Enumeration("Deed", "act", "undo")
"""The domain of a key (§6): the step's own effect, or its compensation."""

Wish = Enumeration("Wish", "cancel", "approve", "reject", "run-again", "succeeded", "failed", "compensated",
                   "late-result")  # fmt: skip
"""What a request asks for: a cancel, an approval decision, what an operator decides of a step, or that a
receipt is taken which came late.
"""

Stands = Enumeration("Stands", "nowhere", "inbox", "consumed")
"""How far a request has come."""

Knows = Enumeration("Knows", "nothing", "unsent", "sent", "receipt", "not-happened")
"""What a worker knows of the effect that a step has under way, under its lease."""

Kind = Enumeration("Kind", "receipt", "declined", "tombstone")
"""What a downstream keeps under a key."""

Seen = Record("Seen", status=Status, intent=intent_versions)
Call = Record("Call", by=Owner, token=lease_versions, step=steps, deed=Deed, intent=intent_versions,
              buries=BOOLEAN)  # fmt: skip
"""A request to the downstream: an effect, or with `buries` the tombstone for its key."""

Answer = Enumeration(
    "Answer",
    "none",
    "ok",
    "declined",
    "tombstoned",
    "stale-token",
    "finished",
    "lease-live",
    "stale-lease-version",
    "not-the-owner",
    "lease-expired",
    "stale-state-version",
    "cancel-requested",
    "illegal-transition",
    "dependency-unmet",
    "approval-needed",
    "approval-recorded",
    "deadline-passed",
    "not-due",
    "not-unwinding",
    "unwinding",
    "not-in-order",
    "no-such-request",
    "nothing-to-decide",
    "unfinished-steps",
)

workflow = Protocol("workflow", answers=Answer)

_variable = workflow.variable
# The definition: fixed before the instance begins.
_variable("begun", BOOLEAN, False, home=STORE, meaning="whether the instance has begun")
_variable("needs", Family(steps, steps, of=BOOLEAN), False, home=STORE,
          meaning="whether the first step depends on the second")  # fmt: skip
_variable("gated", Family(steps, of=BOOLEAN), False, home=STORE, meaning="whether it needs an approval")
_variable("undoable", Family(steps, of=BOOLEAN), True, home=STORE,
          meaning="whether a compensation is registered")  # fmt: skip
# The row.
for _name in ("owner", "lease_version", "live", "state_version", "finished"):
    _known = core.variables[_name]
    _variable(_name, _known.domain, _known.initially, home=STORE, meaning=_known.meaning)
_variable("cause", Cause, Cause.none, home=STORE, meaning="why the instance unwinds")
# The steps.
_variable("status", Family(steps, of=Status), Status.pending, home=STORE, meaning="its status")
_variable("intent", Family(steps, of=intent_versions), 0, home=STORE,
          meaning="the version of its stored intent; 0 before the first")  # fmt: skip
_variable("fingerprint", Family(steps, of=Optional(fingerprints)), absent, home=STORE,
          meaning="the fingerprint of its stored intent")  # fmt: skip
_variable("attempt", Family(steps, of=attempts), 0, home=STORE, meaning="retries so far")
_variable("due", Family(steps, of=BOOLEAN), False, home=STORE, meaning="whether now has reached its timer")
_variable("late", Family(steps, of=BOOLEAN), False, home=STORE,
          meaning="whether now has reached the deadline of its approval")  # fmt: skip
_variable("succeeded_at", Family(steps, of=state_versions), 0, home=STORE,
          meaning="the state version of its success")  # fmt: skip
_variable("undoing", Family(steps, of=BOOLEAN), False, home=STORE,
          meaning="whether it is in a person's hands because of its compensation")  # fmt: skip
_variable("attested", Family(steps, of=BOOLEAN), False, home=STORE,
          meaning="whether an operator says how it ended")  # fmt: skip
# The inbox.
_variable("stands", Family(requests, of=Stands), Stands.nowhere, home=STORE, meaning="how far it has come")
# What each worker is and believes: gone when it crashes.
for _name in ("up", "paused", "incarnation", "believes", "unsure"):
    _known = core.variables[_name]
    _variable(_name, Family(workers, of=_known.domain), _known.initially, home=WORKER, meaning=_known.meaning)
_variable("seen", Family(workers, steps, of=Seen), Seen(status=Status.pending, intent=0), home=WORKER,
          meaning="the step as this worker last read it")  # fmt: skip
_variable("unwinds", Family(workers, of=BOOLEAN), False, home=WORKER,
          meaning="whether the instance unwinds, as this worker last read it")  # fmt: skip
_variable("knows", Family(workers, steps, of=Knows), Knows.nothing, home=WORKER,
          meaning="what it knows of the effect under way")  # fmt: skip
# What is on its way.
_variable("wish", Family(requests, of=Optional(Wish)), absent, home=NETWORK,
          meaning="what this request asks for, fixed when it is sent")  # fmt: skip
_variable("about", Family(requests, of=Optional(steps)), absent, home=NETWORK,
          meaning="the step that it names; none for a cancel")  # fmt: skip
_variable("approves", Family(requests, of=Optional(fingerprints)), absent, home=NETWORK,
          meaning="the fingerprint that an approval decision names")  # fmt: skip
_variable("result_of", Family(requests, of=intent_versions), 0, home=NETWORK,
          meaning="the intent under whose key a late result was got")  # fmt: skip
_variable("arriving", Family(requests, of=BOOLEAN), False, home=NETWORK,
          meaning="whether a copy may still arrive")  # fmt: skip
_variable("call", Family(calls, of=Optional(Call)), absent, home=NETWORK,
          meaning="what this call says, fixed when it is sent")  # fmt: skip
_variable("in_flight", Family(calls, of=BOOLEAN), False, home=NETWORK,
          meaning="whether a copy may still arrive")  # fmt: skip
_variable("reply", Family(calls, of=Answer), Answer.none, home=NETWORK,
          meaning="the answer on its way back")  # fmt: skip
# What the downstream keeps.
_variable("fence", lease_versions, 0, home=DOWNSTREAM, meaning="the highest token recorded")
_variable("record", Family(steps, Deed, intent_versions, of=Optional(Kind)), absent, home=DOWNSTREAM,
          meaning="what is kept under this key")  # fmt: skip
_variable("happened", Family(steps, Deed, intent_versions, of=BOOLEAN), False, home=DOWNSTREAM,
          meaning="whether this effect has taken place")  # fmt: skip
# What only claims read.
_variable("landings", Family(calls, of=BOOLEAN), False, home=HISTORY,
          meaning="changes whenever a copy of this call takes effect")  # fmt: skip
_variable("contacted", lease_versions, 0, home=HISTORY,
          meaning="the highest token to which the downstream has answered ok")  # fmt: skip
_variable("buried", Family(steps, Deed, intent_versions, of=BOOLEAN), False, home=HISTORY,
          meaning="whether a tombstone was written under this key")  # fmt: skip
_variable("in_time", Family(requests, of=BOOLEAN), False, home=HISTORY,
          meaning="whether it was recorded before the deadline of its step's approval")  # fmt: skip
_variable("holder", Family(lease_versions, of=Optional(Owner)), absent, home=HISTORY,
          meaning="who acquired this lease version")  # fmt: skip

workflow.switch("chained", "steps depend on others")
workflow.switch("gates", "steps need an approval before they run")
workflow.switch("irreversible", "steps have no compensation")
workflow.switch("retries", "a step that ran is tried again later")
workflow.switch("intent_renewed", "a step gets another intent when the effect of the former came to nothing")
workflow.switch("cancels", "somebody cancels the instance")
workflow.switch("operator", "an operator decides of a step that is in a person's hands")
workflow.switch("late_results", "a worker that is no longer the owner hands in a receipt that it got")
workflow.switch("fenced", "the downstream keeps the highest token, and refuses a lower one")
workflow.switch("keyed", "the downstream keeps what became of a key, in the transaction of the effect")
workflow.switch("declining", "the downstream may decline an effect for reasons of its own")
for _name in ("crash", "pause", "reply_lost"):
    workflow.switch(_name, core.switches[_name])
workflow.switch("call_lost", "a call on its way to the downstream is lost")
workflow.switch("call_duplicated", "a call arrives at the downstream more than once")
workflow.switch("request_lost", "a request on its way to the inbox is lost")
workflow.switch("request_duplicated", "a request arrives at the inbox more than once")
workflow.switch("record_expired", "the downstream forgets what it kept under a key")
workflow.switch("record_volatile", "the downstream keeps records and fence in memory, and restarts")


@derived
def is_under_way(status: object) -> object:
    """Whether a step with this status may have its own effect under way."""
    return status == Status.running or status == Status.retry_scheduled


@derived
def needs_met(s: State, x: Element) -> object:
    """Whether all that step `x` depends on has succeeded."""
    return every(steps, lambda y: not s.needs[x, y] or s.status[y] == Status.succeeded)


@derived
def cancel_waits(s: State) -> object:
    """Whether a cancel is in the inbox that no commit has consumed."""
    return some(requests, lambda r: s.stands[r] == Stands.inbox and s.wish[r] == Wish.cancel)


@derived
def is_offered(s: State, r: Element, wish: object, x: Element) -> object:
    """Whether the inbox holds request `r` unconsumed, and it asks this of step `x`."""
    return s.stands[r] == Stands.inbox and s.wish[r] == wish and s.about[r] == x


@derived
def is_decision(s: State, r: Element) -> object:
    """Whether an operator decides something by request `r`."""
    return (
        s.wish[r] == Wish.run_again
        or s.wish[r] == Wish.succeeded
        or s.wish[r] == Wish.failed
        or s.wish[r] == Wish.compensated
    )


@derived
def approves(s: State, r: Element, x: Element) -> object:
    """Whether the inbox holds request `r` unconsumed, and it approves the stored intent of step `x`."""
    return is_offered(s, r, Wish.approve, x) and s.approves[r].present and s.approves[r] == s.fingerprint[x]
