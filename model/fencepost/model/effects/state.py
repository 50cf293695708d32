"""The state of gate 3: one step with one outside effect, workers who lose track of it, and a downstream.

Leases are those of the core, action for action. Left out, and why that is safe: commits on their way (the
core has them, late and repeated; here a commit is decided at once and only its answer may be lost, so a
worker is stale by what it believes), renewal and release (they end a lease no sooner than `expire` may),
pauses (a worker that does nothing for a while is a behaviour anyway), and whatever follows a success or a
person's decision.

A downstream is fenced, keyed, queryable, revisioned, or any of these together: each is a switch of the scope.
With none it is opaque.
"""

from __future__ import annotations

from typing import Any

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
from fencepost.model.domains import (
    BOOLEAN,
    Counter,
    Element,
    Enumeration,
    Family,
    Optional,
    Record,
    Sort,
)
from fencepost.model.language import State, absent, derived
from fencepost.model.protocol import HISTORY, Protocol

DOWNSTREAM = "downstream"

calls = Sort("call")
fingerprints = Sort("fingerprint")
intent_versions = Counter("intent_version")
revisions = Counter("revision")

Status = Enumeration("Status", "pending", "running", "unwinding", "succeeded", "cancelled", "manual")
"""The step's status (§5); `unwinding` is running, with the reason to undo it committed."""

Knows = Enumeration("Knows", "nothing", "unsent", "sent", "raised", "receipt", "not-happened")
"""What a worker knows of the effect under its lease; `raised`: the fence is, and it has sent nothing."""

Kind = Enumeration("Kind", "receipt", "declined", "tombstone")
"""What a downstream keeps under a key."""

Torn = Enumeration("Torn", "whole", "effect-only", "record-only")
"""What is left when the downstream dies between the transaction of an effect and that of its record."""

Intent = Record("Intent", fingerprint=fingerprints, revision=revisions)
Entry = Record("Entry", status=Status, intent=intent_versions)
Call = Record(
    "Call",
    by=Owner,
    token=lease_versions,
    intent=intent_versions,
    key=intent_versions,
    fingerprint=fingerprints,
    revision=revisions,
    buries=BOOLEAN,
)
"""A request to the downstream: an effect, or with `buries` the tombstone for its key."""
Kept = Record("Kept", kind=Kind, fingerprint=fingerprints)

Answer = Enumeration(
    "Answer",
    "none",
    "ok",
    "declined",
    "tombstoned",
    "stale-token",
    "key-conflict",
    "wrong-revision",
    "finished",
    "lease-live",
    "stale-lease-version",
    "not-the-owner",
    "lease-expired",
    "stale-state-version",
)

effects = Protocol("effects", answers=Answer)

_variable = effects.variable
# The row and the event log, of which the step's state is the last entry.
for _name in ("owner", "lease_version", "live", "state_version", "finished"):
    _known = core.variables[_name]
    _variable(_name, _known.domain, _known.initially, home=STORE, meaning=_known.meaning)
_variable("log", Family(state_versions, of=Entry), Entry(status=Status.pending, intent=0), home=STORE,
          meaning="event log: the step as this state version left it")  # fmt: skip
_variable("intent", Family(intent_versions, of=Optional(Intent)), absent, home=STORE,
          meaning="the stored intent of this version, from which the key follows")  # fmt: skip
_variable("receipt", BOOLEAN, False, home=STORE, meaning="whether the step's receipt is stored")
# What each worker is and believes: gone when it crashes.
for _name in ("up", "paused", "incarnation", "believes", "unsure"):
    _known = core.variables[_name]
    _variable(_name, Family(workers, of=_known.domain), _known.initially, home=WORKER, meaning=_known.meaning)
_variable("knows", Family(workers, of=Knows), Knows.nothing, home=WORKER,
          meaning="what it knows of the effect under its lease")  # fmt: skip
# What is on its way.
_variable("call", Family(calls, of=Optional(Call)), absent, home=NETWORK,
          meaning="what this request says, fixed when it is sent")  # fmt: skip
_variable("in_flight", Family(calls, of=BOOLEAN), False, home=NETWORK,
          meaning="whether a copy may still arrive")  # fmt: skip
_variable("reply", Family(calls, of=Answer), Answer.none, home=NETWORK,
          meaning="the answer on its way back")  # fmt: skip
# What the downstream keeps.
_variable("fence", lease_versions, 0, home=DOWNSTREAM, meaning="the highest token recorded")
_variable("record", Family(intent_versions, of=Optional(Kept)), absent, home=DOWNSTREAM,
          meaning="what is kept under this key")  # fmt: skip
_variable("revision", revisions, 0, home=DOWNSTREAM, meaning="changes of the resource so far")
_variable("happened", Family(intent_versions, of=BOOLEAN), False, home=DOWNSTREAM,
          meaning="whether the effect of this intent has taken place")  # fmt: skip
# What only claims read.
_variable("landings", Family(calls, of=BOOLEAN), False, home=HISTORY,
          meaning="changes whenever a copy of this request takes effect")  # fmt: skip
_variable("contacted", lease_versions, 0, home=HISTORY,
          meaning="the highest token to which the downstream has answered ok")  # fmt: skip
_variable("as_intended", Family(intent_versions, of=BOOLEAN), False, home=HISTORY,
          meaning="whether the effect of this intent has taken place with its stored parameters")  # fmt: skip
_variable("landed_as", Family(intent_versions, of=Optional(fingerprints)), absent, home=HISTORY,
          meaning="the fingerprint of the latest effect under this key")  # fmt: skip
_variable("buried", Family(intent_versions, of=BOOLEAN), False, home=HISTORY,
          meaning="whether a tombstone was written under this key")  # fmt: skip
_variable("holder", Family(lease_versions, of=Optional(Owner)), absent, home=HISTORY,
          meaning="who acquired this lease version")  # fmt: skip

effects.switch("fenced", "the downstream keeps the highest token, and refuses a lower one")
effects.switch("keyed", "the downstream keeps what became of a key, in the transaction of the effect")
effects.switch("queryable", "the downstream can be asked what took effect under a key")
effects.switch("revisioned", "the downstream refuses an effect that expects another revision")
effects.switch("declining", "the downstream may decline an effect for reasons of its own")
for _name in ("crash", "pause", "reply_lost"):
    effects.switch(_name, core.switches[_name])
effects.switch("request_lost", "a request on its way to the downstream is lost")
effects.switch("request_duplicated", "a request arrives at the downstream more than once")
effects.switch("revision_moved", "somebody else changes the resource")
effects.switch("intent_rederived", "a worker derives the parameters anew, and they come out otherwise")
effects.switch("key_per_retry", "a key is minted for each request instead of one for the intent")
effects.switch("record_expired", "the downstream forgets what it kept under a key")
effects.switch("record_volatile", "the downstream keeps records and fence in memory, and restarts")
effects.switch("two_transactions", "the downstream dies between an effect and its record")


@derived
def status(s: State, w: Element) -> object:
    """The step's status, as worker `w` last read it."""
    return s.log[s.believes[w].state].status


@derived
def intent_of(s: State, w: Element) -> Any:
    """The version of the step's intent, as worker `w` last read it."""
    return s.log[s.believes[w].state].intent


@derived
def under_way(s: State, w: Element) -> object:
    """Whether worker `w` takes itself for the owner of a step whose effect is under way."""
    return s.believes[w].present and (status(s, w) == Status.running or status(s, w) == Status.unwinding)
