"""Invariants that the proofs about triggers need: true, and checked like claims, but no promises.

First what is on its way; then what the records of the store say, and the recipient's. An invariant that needs
a switch off helps only claims that need it off, too.
"""

from __future__ import annotations

from fencepost.model import State, derived, every
from fencepost.model.domains import Element
from fencepost.model.triggers.state import (
    Answer,
    events,
    instances,
    kinds,
    notices,
    requests,
    sources,
    target_versions,
)
from fencepost.properties.triggers import FORGETFUL, TRIGGERS, UNTRUE, began_from

# What is on its way.


@TRIGGERS.supporting(supports=("S9", "S21-trigger"))
def what_arrives_was_sent(s: State) -> object:
    """Only requests that were sent are on their way or answered."""
    return every(
        requests, lambda r: s.request[r].present or (not s.arriving[r] and s.answer[r] == Answer.none)
    )


@TRIGGERS.supporting(supports=("S21-notification", "S10", "S6-end"))
def what_is_in_flight_was_sent(s: State) -> object:
    """Only notices that were sent are on their way, awaited or answered."""
    return every(
        notices, lambda n: s.notice[n].present or (not s.in_flight[n] and not s.awaited[n] and not s.reply[n])
    )


@TRIGGERS.supporting(supports=("S21-trigger", "S9"), needs_off=("key_per_retry",))
def requests_have_the_key_of_their_event(s: State) -> object:
    """The key of a request is that of its event."""
    return every(requests, lambda r: not s.request[r].present or s.request[r].key == s.request[r].event)


@TRIGGERS.supporting(supports=("S21-notification", "S10"), needs_off=("key_per_retry",))
def notices_have_the_key_of_their_target(s: State) -> object:
    """The key of a notice is that of the target that it is for."""
    return every(notices, lambda n: not s.notice[n].present or s.notice[n].key == s.notice[n].target)


# What the store knows.


@TRIGGERS.supporting(supports=("S4", "S6-end", "S9", "S21-trigger"))
def rows_have_ids_that_were_given(s: State) -> object:
    """The id of an instance was given to it, and is not given again."""
    return every(instances, lambda i: not s.row[i].present or s.given[i])


@derived
def is_kept_for(s: State, a: Element, e: Element, i: Element) -> object:
    """Whether the store keeps that instance `i` began from event `e` of source `a`."""
    return s.record[a, e].present and s.record[a, e].instance == i


@TRIGGERS.supporting(supports=("S9", "S21-trigger"), needs_off=UNTRUE)
def records_of_triggers_are_true(s: State) -> object:
    """What a dedup record names is the instance that began from that event, with that payload."""
    return every(
        sources,
        events,
        instances,
        lambda a, e, i: (
            not is_kept_for(s, a, e, i)
            or (began_from(s, i, a, e) and s.row[i].fingerprint == s.record[a, e].fingerprint)
        ),
    )


@TRIGGERS.supporting(supports=("S21-trigger",), needs_off=FORGETFUL)
def every_instance_has_its_record(s: State) -> object:
    """For each instance the store keeps from which event it began."""
    return every(
        sources, events, instances, lambda a, e, i: not began_from(s, i, a, e) or is_kept_for(s, a, e, i)
    )


@TRIGGERS.supporting(supports=("S14", "S6-end"))
def what_is_intended_has_its_instance(s: State) -> object:
    """Only an instance that exists has notifications to send."""
    return every(
        instances, kinds, target_versions, lambda i, k, v: not s.intended[i, k, v] or s.row[i].present
    )


# What the recipient knows.


@TRIGGERS.supporting(supports=("S10",), needs_off=UNTRUE)
def records_of_notices_are_true(s: State) -> object:
    """A key that the recipient knows is that of a notification that has reached its target."""
    return every(
        instances, kinds, target_versions, lambda i, k, v: not s.kept[i, k, v] or s.received[i, k, v]
    )


@TRIGGERS.supporting(supports=("S10",), needs_off=UNTRUE)
def replies_are_true(s: State) -> object:
    """A notice that is answered ok has reached its target, or another with the same key has."""
    return every(
        notices,
        lambda n: (
            not s.reply[n]
            or (
                s.notice[n].present and s.received[s.notice[n].instance, s.notice[n].kind, s.notice[n].target]
            )
        ),
    )


@TRIGGERS.supporting(supports=("S21-notification",), needs_off=FORGETFUL)
def what_was_received_is_on_record(s: State) -> object:
    """The recipient knows the key of each notification that has reached its target."""
    return every(
        instances, kinds, target_versions, lambda i, k, v: not s.received[i, k, v] or s.kept[i, k, v]
    )
