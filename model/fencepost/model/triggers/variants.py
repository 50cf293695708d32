"""Stores, workers and recipients with something wrong, or unusual: what each claim is shown to fail on.

As for effects: a variant says only what is different. `breaks` names the claims that must be refuted in the
variant's scope, with the exact length of the shortest run; no other claim may be.
"""

from __future__ import annotations

from fencepost.model.core.state import STORE
from fencepost.model.domains import Element, Member
from fencepost.model.language import State, absent, every, implies, refuse_unless, some, switched, when
from fencepost.model.mutate import with_lines, without
from fencepost.model.protocol import Protocol
from fencepost.model.triggers import arrivals, notices, scopes, world
from fencepost.model.triggers.arrivals import begin
from fencepost.model.triggers.state import Kept, Torn, events, instances, kinds, requests, sources, triggers
from fencepost.model.variants import Variant, adding_to

assert arrivals, notices  # the protocol is complete only with all its modules  # noqa: S101
assert scopes, world  # noqa: S101


VARIANTS: dict[str, Variant] = {}
_add = adding_to(VARIANTS, scope="quick-arrivals")

_NOTICES = "quick-notices"
_RECORD = "s.record[sent.source, sent.key] = Kept(fingerprint=sent.fingerprint, instance=i)"
_OK_AGAIN = "s.told[r] = kept.instance"
_REFUSED = 'refuse_unless(kept.fingerprint == sent.fingerprint, "key-conflict")'
_REPLY = "when(s.reply[n])"
_KEY = 'when(key == target or switched("key_per_retry"))'
_INTENDED = "when(s.intended[i, k, target])"
"""Lines of the model that variants change."""

# The row and the dedup record.


def _with_two_transactions(name: str) -> Protocol:
    """The row first, and its dedup record in a transaction of its own."""
    made = triggers.extended(name)

    @made.action(STORE, i=instances)
    def write_record(s: State, i: Element) -> None:
        """The store writes the dedup record of an instance that has begun."""
        when(s.row[i].present)
        row = s.row[i].value
        when(not s.record[row.source, row.event].present)

        s.record[row.source, row.event] = Kept(fingerprint=row.fingerprint, instance=i)

    return without(made, name, decide_trigger=(_RECORD,))


_add(
    _with_two_transactions("record-after-the-row"),
    "The dedup record is written after the row, in another transaction; the trigger comes again in between.",
    ("F17", "F23"),
    one_instance_per_trigger=3,
)


def _with_record_first(name: str) -> Protocol:
    """The dedup record first, and the row in a transaction of its own."""
    made = triggers.extended(name)

    @made.action(STORE, r=requests, i=instances)
    def write_row(s: State, r: Element, i: Element) -> None:
        """The store begins the instance for which it has a dedup record."""
        when(s.request[r].present)
        sent = s.request[r].value
        when(s.record[sent.source, sent.key].present and s.record[sent.source, sent.key].instance == i)
        when(s.record[sent.source, sent.key].fingerprint == sent.fingerprint)
        when(not s.row[i].present)

        begin(s, r, i)

    return with_lines(made, name, decide_trigger={"if torn != Torn.record_only": "if False"})


_add(
    _with_record_first("record-before-the-row"),
    "The dedup record is written before the row; the source is told of an instance that is not there yet.",
    ("F17",),
    an_answered_trigger_has_an_instance=3,
    every_ok_names_the_instance_of_its_trigger=2,
)


def decide_by_event_id(s: State, r: Element, i: Element, again: bool, torn: Member) -> None:
    """The store looks for the id of the event, whatever its source."""
    when(s.arriving[r])
    when(implies(again, switched("trigger_duplicated")))
    when(implies(torn != Torn.whole, switched("two_transactions")))
    s.arriving[r] = again
    sent = s.request[r].value
    if some(sources, lambda a: s.record[a, sent.key].present):
        for a in sources:
            if s.record[a, sent.key].present:
                refuse_unless(s.record[a, sent.key].fingerprint == sent.fingerprint, "key-conflict")
                s.told[r] = s.record[a, sent.key].instance
    else:
        begin(s, r, i)
        s.record[sent.source, sent.key] = Kept(fingerprint=sent.fingerprint, instance=i)
        s.given[i] = True
        s.told[r] = i


_add(
    triggers.variant("event-id-alone", decide_trigger=decide_by_event_id),
    "The key of a trigger lacks its source, so the event of one source is taken for that of another.",
    ("F18",),
    scope="arrivals",
    an_answered_trigger_has_an_instance=5,
    every_ok_names_the_instance_of_its_trigger=4,
)
_add(
    without(triggers, "key-per-delivery", send_trigger=('when(key == e or switched("key_per_retry"))',)),
    "A source makes a key for each delivery instead of one for the event.",
    ("F18",),
    one_instance_per_trigger=4,
    an_answered_trigger_has_an_instance=5,
    every_ok_names_the_instance_of_its_trigger=4,
)
_add(
    without(triggers, "payload-not-compared", decide_trigger=(_REFUSED,)),
    "The store keeps no fingerprint, and answers another payload with the instance of the first.",
    ("F19",),
    every_ok_names_the_instance_of_its_trigger=4,
)


def finish_and_purge(s: State, i: Element) -> None:
    """A worker commits the end of an instance, and its dedup record goes with it."""
    when(s.row[i].present)
    refuse_unless(not s.row[i].finished, "finished")

    s.row[i] = s.row[i].changed(state=s.row[i].state + 1, finished=True)
    s.record[s.row[i].source, s.row[i].event] = absent


_add(
    triggers.variant("purged-at-the-end", finish=finish_and_purge),
    "The dedup record is purged when the instance has finished, and the source delivers the event again.",
    ("F20", "F23"),
    one_instance_per_trigger=4,
)


def _with_purge(name: str) -> Protocol:
    made = triggers.extended(name)

    @made.action(STORE, a=sources, e=events)
    def purge(s: State, a: Element, e: Element) -> None:
        """The store forgets an event whose source was answered, and of which nothing is on its way."""
        when(s.answered[a, e] and s.record[a, e].present)
        when(every(requests, lambda r: not s.arriving[r] or s.request[r].source != a))

        s.record[a, e] = absent

    return made


_add(
    _with_purge("purged-when-answered"),
    "The dedup record is purged once the source knows of the answer; the source crashes, and knows no more.",
    ("F20", "F23"),
    one_instance_per_trigger=7,
)
_add(
    with_lines(
        triggers, "redelivery-replaces-the-row",
        decide_trigger={_OK_AGAIN: f"{_OK_AGAIN}\nbegin(s, r, kept.instance)"},
    ),
    "The row is inserted or replaced: a trigger that comes again sets the instance back to its beginning.",
    ("F05",),
    a_trigger_moves_no_version=4,
    state_version_counts_commits=4,
    the_end_stays_as_it_is=4,
)  # fmt: skip
_add(
    with_lines(
        triggers, "conflict-is-stored",
        decide_trigger={
            "s.answer[r] = answer":
                "s.answer[r] = answer\nif answer == Answer.key_conflict:\n"
                "    was = s.record[s.request[r].source, s.request[r].key]\n"
                "    if was.present:\n"
                "        s.record[s.request[r].source, s.request[r].key] = "
                "Kept(fingerprint=s.request[r].fingerprint, instance=was.instance)",
        },
    ),
    "Another payload is refused, and the fingerprint of it is stored all the same.",
    ("F19",),
    every_ok_names_the_instance_of_its_trigger=5,
    a_refusal_leaves_store_and_recipient_alone=4,
)  # fmt: skip
_add(
    with_lines(
        triggers, "conflict-names-the-instance",
        decide_trigger={"if torn != Torn.whole or answer != Answer.ok": "if torn != Torn.whole",
                        _REFUSED: f"s.told[r] = kept.instance\n{_REFUSED}"},
    ),
    "The refusal of another payload tells the source of the instance that began from the first.",
    only_an_ok_names_an_instance=4,
)  # fmt: skip
_add(
    with_lines(triggers, "redelivery-refused", decide_trigger={
        _REFUSED: 'refuse_unless(False, "key-conflict")',
    }),
    "Correct but useless: a trigger that comes again is refused, so a source that has lost the answer never "
    "learns that there is an instance.",
    ("F30",),
)  # fmt: skip

# The instance.

_add(
    without(triggers, "commits-after-the-end", record_notice=('"finished"',)),
    "That a notification was sent is committed although the instance has finished.",
    ("F05",),
    scope=_NOTICES,
    the_end_stays_as_it_is=7,
)
_add(
    without(triggers, "intends-after-the-end", intend_notice=('"finished"',)),
    "An instance that has finished is given another notification to send.",
    ("F05",),
    scope=_NOTICES,
    the_end_stays_as_it_is=4,
)
_add(
    without(triggers, "acquired-after-the-end", acquire=('"finished"',)),
    "A worker acquires the lease of an instance that has finished.",
    ("F05",),
    the_end_stays_as_it_is=4,
)
_add(
    without(triggers, "finishes-twice", finish=('"finished"',)),
    "An instance is finished again.",
    ("F05",),
    scope=_NOTICES,
    the_end_stays_as_it_is=4,
    state_version_counts_commits=4,
)
_add(
    without(triggers, "intended-twice", intend_notice=("if s.intended[i, k, s.target]",)),
    "That a notification is to be sent is committed again by whoever wants it sent.",
    ("F12",),
    scope=_NOTICES,
    state_version_counts_commits=4,
)
_add(
    without(triggers, "recorded-twice", record_notice=(
        "if s.settled[sent.instance, sent.kind, sent.target]",
    )),
    "That a notification was sent is committed again for each reply that comes.",
    ("F12",),
    scope=_NOTICES,
    state_version_counts_commits=9,
)  # fmt: skip

# Notifications.

_add(
    with_lines(triggers, "sends-uncommitted", send_notice={_INTENDED: "when(s.row[i].present)"}),
    "A notification is sent before it is committed that it is to be; a worker that crashes leaves no trace "
    "of it, and the commit may yet be refused.",
    ("F15",),
    scope=_NOTICES,
    only_intended_notifications_are_sent=3,
)
_add(
    with_lines(triggers, "sends-to-whatever-stands", send_notice={
        "instance=i, kind=k, target=target": "instance=i, kind=k, target=s.target",
    }),
    "A worker makes the notification anew when it sends, to the target as it stands, under the key of the "
    "one that is stored.",
    ("F03",),
    scope=_NOTICES,
    only_intended_notifications_are_sent=5,
    one_notification_per_target=9,
    what_is_recorded_as_sent_was_received=9,
    only_what_is_owed_is_sent=8,
)  # fmt: skip
_add(
    with_lines(triggers, "intends-for-a-former-target", intend_notice={
        "s.intended[i, k, s.target] = True": "s.intended[i, k, 0] = True",
    }),
    "A worker commits that a notification is to be sent to the target that it once read.",
    ("F03",),
    scope=_NOTICES,
    state_version_counts_commits=5,
    only_what_is_owed_is_intended=4,
)  # fmt: skip
_add(
    with_lines(triggers, "notice-key-without-the-target", send_notice={_KEY: "when(key == 0)"}),
    "The key of a notification lacks the version of the target, so the recipient takes one that is owed to a "
    "new target for one that it knows, and the worker commits it as sent.",
    ("F18",),
    scope=_NOTICES,
    what_is_recorded_as_sent_was_received=10,
)
_add(
    without(triggers, "notice-key-per-retry", send_notice=(_KEY,)),
    "A worker makes a key for each attempt to send instead of one for the notification.",
    ("F18",),
    scope=_NOTICES,
    one_notification_per_target=7,
    what_is_recorded_as_sent_was_received=10,
)


def decide_notice_by_target(s: State, n: Element, again: bool, torn: Member) -> None:
    """The recipient knows an instance and a target, but not what kind of notification it had."""
    when(s.in_flight[n])
    when(implies(again, switched("notice_duplicated")))
    s.in_flight[n] = again
    sent = s.notice[n].value

    if not some(kinds, lambda k: s.kept[sent.instance, k, sent.key]):
        notices.take_notice(s, n)
        s.kept[sent.instance, sent.kind, sent.key] = True
    s.reply[n] = True


_add(
    triggers.variant("notice-key-without-the-kind", decide_notice=decide_notice_by_target),
    "The key of a notification lacks its kind, so of two kinds one is never received, and committed as sent.",
    ("F18",),
    scope="notices",
    what_is_recorded_as_sent_was_received=9,
)
_add(
    without(triggers, "recipient-keeps-no-record", decide_notice=(
        "s.kept[sent.instance, sent.kind, sent.key] = True",
    )),
    "The recipient takes whatever comes, again and again.",
    ("F16",),
    scope=_NOTICES,
    one_notification_per_target=6,
)  # fmt: skip
_add(
    without(triggers, "recipient-torn-in-two", decide_notice=(
        'when(implies(torn != Torn.whole, switched("two_transactions")))',
    )),
    "The recipient takes a notification in one transaction, keeps its key in another, and dies in between.",
    ("F17",),
    scope=_NOTICES,
    one_notification_per_target=6,
    what_is_recorded_as_sent_was_received=7,
)  # fmt: skip
_add(
    without(triggers, "committed-without-a-reply", record_notice=(_REPLY,)),
    "A notification is committed as sent without a word from the recipient.",
    ("F15",),
    scope=_NOTICES,
    what_is_recorded_as_sent_was_received=5,
)
_add(
    without(triggers, "sends-what-was-sent", send_notice=("when(not s.settled[i, k, target])",)),
    "A worker does not look at what is committed as sent, and sends it again.",
    ("F16",),
    scope=_NOTICES,
    only_what_is_owed_is_sent=7,
)
_add(
    with_lines(triggers, "sends-to-a-former-target", send_notice={
        "instance=i, kind=k, target=target": "instance=i, kind=k, target=0",
    }),
    "A worker sends to the target that it once read, under the key of the one that it has intended.",
    ("F03",),
    scope=_NOTICES,
    only_intended_notifications_are_sent=5,
    one_notification_per_target=9,
    only_what_is_owed_is_sent=8,
)  # fmt: skip
_add(
    with_lines(triggers, "takeover-forgets-what-is-to-be-sent", acquire={
        "s.row[i] = s.row[i].changed(lease=s.row[i].lease + 1)":
            "s.row[i] = s.row[i].changed(lease=s.row[i].lease + 1)\n"
            "s.intended.update_where(lambda j, _kind, _version, was: was and j != i)",
    }),
    "A new owner forgets what was committed to be sent, and what was not sent never will be.",
    ("F04",),
    scope=_NOTICES,
    only_intended_notifications_are_sent=5,
    what_is_recorded_stays_recorded=4,
)  # fmt: skip
_add(
    with_lines(triggers, "takeover-begins-anew", acquire={
        "s.row[i] = s.row[i].changed(lease=s.row[i].lease + 1)":
            "s.row[i] = s.row[i].changed(lease=s.row[i].lease + 1)\n"
            "s.settled.update_where(lambda j, _kind, _version, was: was and j != i)",
    }),
    "A new owner forgets what was committed as sent. The recipient knows the keys, so nothing comes twice.",
    ("F04",),
    scope=_NOTICES,
    what_is_recorded_stays_recorded=7,
)  # fmt: skip
