"""The state of recovery: one instance's row and event log, its checkpoint, and workers that take it up.

The steps of an instance run one after another, so that two numbers say how far it is: how many are done, and
what the next one does. What is done lies in the checkpoint, which each commit writes anew in its own
transaction; a worker knows it from nowhere else. The store compares versions and looks into no checkpoint:
stores that refuse illegal transitions as well refuse more than this one.

Leases are those of the core, action for action. Left out, and why that is safe: commits on their way (the
core has them, late and repeated; here a commit is decided at once and only its answer may be lost), renewal
(it ends a lease no sooner than `expire` may), steps side by side, what steps do outside (`effects` has it),
and how a person repairs a checkpoint or an instance.
"""

from __future__ import annotations

from typing import Any

from fencepost.model.core.state import (
    STORE,
    WORKER,
    Answer,
    Owner,
    core,
    lease_versions,
    state_versions,
    workers,
)
from fencepost.model.domains import BOOLEAN, Counter, Element, Enumeration, Family, Optional, Record
from fencepost.model.language import State, absent, derived
from fencepost.model.protocol import HISTORY, Protocol

REQUESTER, DEVELOPER = "requester", "developer"
"""Who acts without a lease: who gives what a step waits for; who deploys code and registers migrations."""

OPERATORS = "operators"
"""Who keeps what is reported."""

step_numbers = Counter("step")
definitions = Counter("definition")
"""Fingerprints of definitions, which are only ever compared. Instance and code begin with the first."""

Status = Enumeration("Status", "pending", "running", "waiting")
"""What the step after those that are done does (§5); `waiting` is for an approval or a timer."""

Change = Enumeration("Change", "start", "wait", "wake", "succeed", "finish", "migrate", "hand-over")
"""What a commit does: to the next step, as `finish` to the last one, or to the instance as a whole."""

Phase = Enumeration("Phase", "idle", "checked", "acquired", "resumed", "misfit")
"""How far a worker's recovery is (§8); `misfit`: the checkpoint is sound, and its code is not for it."""

Fate = Enumeration("Fate", "as-written", "damaged", "tampered", "replaced")
"""What the world did last to the checkpoint."""

Steps = Record("Steps", done=step_numbers, now=Status)
Entry = Record("Entry", steps=Steps, definition=definitions, lease=lease_versions, manual=BOOLEAN)
Checkpoint = Record(
    "Checkpoint",
    readable=BOOLEAN,
    ours=BOOLEAN,
    lease=lease_versions,
    state=state_versions,
    definition=definitions,
    steps=Steps,
    hash=BOOLEAN,
    mac=BOOLEAN,
)
"""`readable`: its format is known; `ours`: it names this instance; `hash` and `mac`: whether they fit."""
Made = Record("Made", by=Owner, lease=lease_versions, state=state_versions, code=definitions)

NOTHING_DONE = Steps(done=0, now=Status.pending)

recovery = Protocol("recovery", answers=Answer)

_variable = recovery.variable
# The row and the event log, of which the last entry is how the instance stands.
for _name in ("owner", "lease_version", "live", "state_version", "finished"):
    _known = core.variables[_name]
    _variable(_name, _known.domain, _known.initially, home=STORE, meaning=_known.meaning)
_variable("log", Family(state_versions, of=Entry),
          Entry(steps=NOTHING_DONE, definition=0, lease=0, manual=False), home=STORE,
          meaning="event log: the instance as this state version left it, and by which lease")  # fmt: skip
_variable("checkpoint", Optional(Checkpoint), absent, home=STORE,
          meaning="the checkpoint as whoever reads it finds it")  # fmt: skip
_variable("come", BOOLEAN, False, home=STORE, meaning="inbox: whether what the step waits for has come")
# What each worker is and believes: gone when it crashes.
for _name in ("up", "paused", "incarnation", "believes", "unsure"):
    _known = core.variables[_name]
    _variable(_name, Family(workers, of=_known.domain), _known.initially, home=WORKER, meaning=_known.meaning)
_variable("code", Family(workers, of=definitions), 0, home=WORKER, meaning="the definition that its code has")
_variable("phase", Family(workers, of=Phase), Phase.idle, home=WORKER, meaning="how far its recovery is")
_variable("view", Family(workers, of=Steps), NOTHING_DONE, home=WORKER,
          meaning="the steps as it resumed them, and has changed them since")  # fmt: skip
# What people do.
_variable("registered", Family(definitions, definitions, of=BOOLEAN), False, home=DEVELOPER,
          meaning="whether there is a migration from the first definition to the second")  # fmt: skip
_variable("reported", BOOLEAN, False, home=OPERATORS, meaning="whether a bad checkpoint was reported")
# What only claims read.
_variable("holder", Family(lease_versions, of=Optional(Owner)), absent, home=HISTORY,
          meaning="who acquired this lease version")  # fmt: skip
_variable("made", Optional(Made), absent, home=HISTORY,
          meaning="who made the latest accepted commit, on which versions and with which code")  # fmt: skip
_variable("fate", Fate, Fate.as_written, home=HISTORY, meaning="what the world did last to the checkpoint")

for _name in ("crash", "pause", "reply_lost"):
    recovery.switch(_name, core.switches[_name])
recovery.switch("definition_changed", "a worker is started anew with code of another definition")
recovery.switch("migration_registered", "a migration from one definition to another is registered")
recovery.switch("checkpoint_damaged", "a part of the checkpoint, or all of it, is lost by accident")
recovery.switch("checkpoint_tampered", "somebody changes the checkpoint, and its hash with it")
recovery.switch("checkpoint_replayed", "a sound checkpoint that is not the latest takes the place of it")
recovery.switch("mac_key_missing", "no key is configured, so no message authentication code is compared")


@derived
def read(s: State, w: Element) -> Any:
    """The instance as worker `w` last read it in the row."""
    return s.log[s.believes[w].state]


@derived
def in_work(s: State, w: Element) -> object:
    """Whether worker `w` takes the lease for its own and has resumed the steps."""
    return s.believes[w].present and s.phase[w] == Phase.resumed
