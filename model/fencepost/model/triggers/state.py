"""The state of triggers and notifications: sources that deliver, a store that begins instances, a recipient.

A trigger is a source and the id that the source gave to an event; together they are the key. A notification
is an instance, a kind and a version of the recipient's target, and these three are the key.

The store keeps of a notification that it is to be sent, its intent, and that it was sent: a commit each, and
the notice goes out in between. It is sent as the intent says, be the target another by then.

Left out, and why that is safe: leases and who owns an instance (here any worker, a former owner as well, may
send what the store holds as intended and not as sent, so the key alone must keep a notification from arriving
twice); what a worker read some time ago (one that sends by an old reading is like one whose notice comes
late); commits of several intents, or of an intent with other changes (all of it is stored or refused, as one
intent is here); that a store may record after the end of an instance that a notification was sent (no row
changes by it; here that is refused, and the notification may be sent again, under its key); steps (`finish`
and the commits of notifications stand for all commits); the text of a notification (the key says all that
differs, and fingerprints are shown at triggers); and recipients other than one, whose target has a version
that rises whenever the target changes.
"""

from __future__ import annotations

from fencepost.model.core.state import STORE, core, lease_versions, state_versions
from fencepost.model.domains import BOOLEAN, Counter, Enumeration, Family, Optional, Record, Sort
from fencepost.model.language import absent
from fencepost.model.protocol import HISTORY, Protocol

SOURCE, RECIPIENT, REQUESTER = "source", "recipient", "requester"
"""Who acts, beside workers, network and world: who triggers; who is told; who changes the target."""

sources = Sort("source", prefix="a")
events = Sort("event")
requests = Sort("request")
instances = Sort("instance")
kinds = Sort("kind")
notices = Sort("notice")
fingerprints = Sort("fingerprint")
target_versions = Counter("target_version")

Torn = Enumeration("Torn", "whole", "effect-only", "record-only")
"""What is left when the keeper dies between the transaction of the row or effect and that of its record."""

Row = Record(
    "Row",
    source=sources,
    event=events,
    fingerprint=fingerprints,
    lease=lease_versions,
    state=state_versions,
    finished=BOOLEAN,
)
"""An instance: the event that is its input, the fingerprint of that, both versions, and whether it ended."""

Request = Record("Request", source=sources, event=events, key=events, fingerprint=fingerprints)
"""A trigger on its way; with the source, `key` is what it is known by, and should be the event."""

Kept = Record("Kept", fingerprint=fingerprints, instance=instances)
Notice = Record("Notice", instance=instances, kind=kinds, target=target_versions, key=target_versions)
"""A notification on its way; with instance and kind, `key` is what it is known by: the target's version."""

Answer = Enumeration("Answer", "none", "ok", "key-conflict", "finished")

triggers = Protocol("triggers", answers=Answer)

_variable = triggers.variable
# What the store keeps: the rows, what is known of triggers, what is to be sent, and what was sent.
_variable("row", Family(instances, of=Optional(Row)), absent, home=STORE, meaning="the instance's row")
_variable("given", Family(instances, of=BOOLEAN), False, home=STORE,
          meaning="whether the id was given to an instance")  # fmt: skip
_variable("record", Family(sources, events, of=Optional(Kept)), absent, home=STORE,
          meaning="dedup record: what began under this key")  # fmt: skip
_variable("target", target_versions, 0, home=STORE, meaning="changes of the recipient's target so far")
_variable("intended", Family(instances, kinds, target_versions, of=BOOLEAN), False, home=STORE,
          meaning="whether it is committed that this notification is to be sent")  # fmt: skip
_variable("settled", Family(instances, kinds, target_versions, of=BOOLEAN), False, home=STORE,
          meaning="whether it is committed that this notification was sent")  # fmt: skip
# What a source knows.
_variable("payload", Family(sources, events, of=Optional(fingerprints)), absent, home=SOURCE,
          meaning="the fingerprint of the event's payload, fixed when it occurs")  # fmt: skip
_variable("answered", Family(sources, events, of=BOOLEAN), False, home=SOURCE,
          meaning="whether the source knows that the event was taken")  # fmt: skip
# What workers know: gone when they crash.
_variable("awaited", Family(notices, of=BOOLEAN), False, home="worker",
          meaning="whether the sender waits for the reply")  # fmt: skip
# What is on its way.
_variable("request", Family(requests, of=Optional(Request)), absent, home="network",
          meaning="what this request says, fixed when it is sent")  # fmt: skip
_variable("arriving", Family(requests, of=BOOLEAN), False, home="network",
          meaning="whether a copy of the request may still arrive")  # fmt: skip
_variable("answer", Family(requests, of=Answer), Answer.none, home="network",
          meaning="the store's answer on its way back")  # fmt: skip
_variable("told", Family(requests, of=Optional(instances)), absent, home="network",
          meaning="the instance that the answer names")  # fmt: skip
_variable("notice", Family(notices, of=Optional(Notice)), absent, home="network",
          meaning="what this notice says, fixed when it is sent")  # fmt: skip
_variable("in_flight", Family(notices, of=BOOLEAN), False, home="network",
          meaning="whether a copy of the notice may still arrive")  # fmt: skip
_variable("reply", Family(notices, of=BOOLEAN), False, home="network",
          meaning="whether the recipient's ok is on its way back")  # fmt: skip
# What the recipient keeps, and what it was told.
_variable("kept", Family(instances, kinds, target_versions, of=BOOLEAN), False, home=RECIPIENT,
          meaning="idempotency record: whether the key is known")  # fmt: skip
_variable("received", Family(instances, kinds, target_versions, of=BOOLEAN), False, home=RECIPIENT,
          meaning="whether the notification has reached this version of the target")  # fmt: skip
# What only claims read.
_variable("landings", Family(notices, of=BOOLEAN), False, home=HISTORY,
          meaning="changes whenever a copy of this notice reaches the target")  # fmt: skip

for _name in ("crash", "reply_lost"):
    triggers.switch(_name, core.switches[_name])
triggers.switch("trigger_lost", "a trigger on its way to the store is lost")
triggers.switch("trigger_duplicated", "a trigger arrives at the store more than once")
triggers.switch("notice_lost", "a notification on its way is lost")
triggers.switch("notice_duplicated", "a notification arrives at the recipient more than once")
triggers.switch("payload_changed", "a source delivers an event again with another payload")
triggers.switch("key_per_retry", "a key is minted for each message instead of one for what it is about")
triggers.switch("record_expired", "store or recipient forgets what it kept under a key")
triggers.switch("record_volatile", "store or recipient keeps its records in memory, and restarts")
triggers.switch("two_transactions", "store or recipient dies between what it does and the record of it")
