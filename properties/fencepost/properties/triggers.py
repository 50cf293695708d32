"""What is promised about triggers and notifications: S21, and of S4, S6, S8, S9, S10, S14 and S25.

`needs_off` names the faults against which a promise says nothing: with any of them it is refuted, and
`needs_off.WHY` says why.
"""

from __future__ import annotations

from fencepost.model import State, Step, derived, every, ite, some
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
from fencepost.properties.claims import Claims

TRIGGERS = Claims("triggers")

UNTRUE = ("two_transactions", "key_per_retry")
"""Faults by which a record says what did not happen, or something about another trigger or notification."""

FORGETFUL = ("record_expired", "record_volatile", *UNTRUE)
"""These, and those by which a record is gone."""


@derived
def began_from(s: State, i: Element, a: Element, e: Element) -> object:
    """Whether instance `i` exists and began from event `e` of source `a`."""
    return s.row[i].present and s.row[i].source == a and s.row[i].event == e


@derived
def lands(before: State, after: State, n: Element) -> object:
    """Whether a copy of notice `n` reaches its target in this step."""
    return before.notice[n].present and before.landings[n] != after.landings[n]


# Triggers.


@TRIGGERS.always(
    "S21-trigger",
    section="§13",
    witnesses=("a_trigger_comes_again", "two_triggers_begin_two_instances"),
    needs_off=FORGETFUL,
)
def one_instance_per_trigger(s: State) -> object:
    """However often a trigger is delivered, at most one instance begins from it."""
    return every(
        instances,
        instances,
        lambda i, j: (
            i == j
            or not s.row[i].present
            or not s.row[j].present
            or s.row[i].source != s.row[j].source
            or s.row[i].event != s.row[j].event
        ),
    )


@TRIGGERS.always("S21-trigger", section="§13", witnesses=("a_trigger_is_answered",), needs_off=UNTRUE)
def an_answered_trigger_has_an_instance(s: State) -> object:
    """An event that its source knows to be taken has an instance that began from it."""
    return every(
        sources,
        events,
        lambda a, e: not s.answered[a, e] or some(instances, lambda i: began_from(s, i, a, e)),
    )


@TRIGGERS.always(
    "S9", section="§6", witnesses=("a_trigger_comes_again", "another_payload_is_refused"), needs_off=UNTRUE
)
def every_ok_names_the_instance_of_its_trigger(s: State) -> object:
    """A trigger that is answered ok is told an instance that began from that event, with that payload."""
    return every(
        requests,
        instances,
        lambda r, i: (
            s.answer[r] != Answer.ok
            or (
                s.request[r].present
                and s.told[r].present
                and (
                    s.told[r] != i
                    or (
                        began_from(s, i, s.request[r].source, s.request[r].event)
                        and s.row[i].fingerprint == s.request[r].fingerprint
                    )
                )
            )
        ),
    )


@TRIGGERS.always("S25", section="§2", witnesses=("another_payload_is_refused",))
def only_an_ok_names_an_instance(s: State) -> object:
    """A trigger is told an instance only with the answer ok: a refusal tells of nobody's work."""
    return every(requests, lambda r: not s.told[r].present or s.answer[r] == Answer.ok)


# Rows.


@TRIGGERS.each_step("S4", section="§4", witnesses=("a_trigger_of_a_row_that_moved_comes_again",))
def a_trigger_moves_no_version(before: State, after: State, step: Step) -> object:
    """A row begins with both versions 0; its input stays, and only acquires and commits move its versions."""
    return every(
        instances,
        lambda i: (
            after.row[i] == before.row[i]
            or (not before.row[i].present and is_new(after, i))
            or (before.row[i].present and after.row[i].present and is_moved(before, after, i, step))
        ),
    )


@derived
def is_new(s: State, i: Element) -> object:
    """Whether instance `i` is as it begins."""
    return s.row[i].present and s.row[i].lease == 0 and s.row[i].state == 0 and not s.row[i].finished


@derived
def is_moved(before: State, after: State, i: Element, step: Step) -> object:
    """Whether an acquire or a commit has changed the row of instance `i`, but not its input."""
    was, now = before.row[i].value, after.row[i].value
    same_input = now.source == was.source and now.event == was.event and now.fingerprint == was.fingerprint
    if step.action == "acquire":
        return same_input and now.lease == was.lease + 1 and not has_commit(before, after, i)
    commits = step.action == "intend_notice" or step.action == "record_notice" or step.action == "finish"
    return same_input and commits and now.lease == was.lease


@derived
def has_commit(before: State, after: State, i: Element) -> object:
    """Whether it is committed in this step that instance `i` is to notify, has notified, or ends."""
    ends = after.row[i].finished and not before.row[i].finished
    return ends or some(
        kinds,
        target_versions,
        lambda k, v: is_intended(before, after, i, k, v) or is_recorded(before, after, i, k, v),
    )


@derived
def is_intended(before: State, after: State, i: Element, k: Element, v: int) -> object:
    """Whether it is committed in this step that a notification is to be sent."""
    return after.intended[i, k, v] and not before.intended[i, k, v]


@derived
def is_recorded(before: State, after: State, i: Element, k: Element, v: int) -> object:
    """Whether it is committed in this step that a notification was sent."""
    return after.settled[i, k, v] and not before.settled[i, k, v]


@TRIGGERS.each_step(
    "S4", section="§4", witnesses=("a_notification_is_intended", "a_notification_is_recorded")
)
def state_version_counts_commits(before: State, after: State) -> object:
    """The state version rises by exactly one with each accepted commit, and by nothing else."""
    return every(
        instances,
        lambda i: (
            not before.row[i].present
            or (
                after.row[i].present
                and after.row[i].state
                == ite(has_commit(before, after, i), before.row[i].state + 1, before.row[i].state)
            )
        ),
    )


@TRIGGERS.each_step(
    "S6-end",
    section="§5",
    witnesses=(
        "acquiring_after_the_end_is_refused",
        "an_intent_after_the_end_is_refused",
        "a_commit_after_the_end_is_refused",
    ),
)
def the_end_stays_as_it_is(before: State, after: State) -> object:
    """The row of an instance that has finished does not change any more, and is not taken away."""
    return every(
        instances,
        lambda i: not before.row[i].present or not before.row[i].finished or after.row[i] == before.row[i],
    )


# Notifications.


@TRIGGERS.always(
    "S8-intent",
    section="§6",
    witnesses=("a_notice_is_sent_after_a_change", "a_notice_is_sent_again_after_a_crash"),
)
def only_intended_notifications_are_sent(s: State) -> object:
    """A notification is sent, and reaches its target, only after it was committed that it is to be sent."""
    return every(
        notices,
        lambda n: (
            not s.notice[n].present or s.intended[s.notice[n].instance, s.notice[n].kind, s.notice[n].target]
        ),
    ) and every(
        instances,
        kinds,
        target_versions,
        lambda i, k, v: not s.received[i, k, v] or s.intended[i, k, v],
    )


@TRIGGERS.each_step(
    "S21-notification",
    section="§13",
    witnesses=(
        "a_notice_comes_again",
        "another_target_is_told_as_well",
        "a_notice_is_sent_again_after_a_crash",
    ),
    needs_off=FORGETFUL,
)
def one_notification_per_target(before: State, after: State) -> object:
    """Each kind of notification of an instance reaches each version of the target at most once."""
    return every(
        notices,
        lambda n: (
            not lands(before, after, n)
            or not before.received[before.notice[n].instance, before.notice[n].kind, before.notice[n].target]
        ),
    )


@TRIGGERS.always("S10", section="§6", witnesses=("a_notification_is_recorded",), needs_off=UNTRUE)
def what_is_recorded_as_sent_was_received(s: State) -> object:
    """A notification that is committed as sent has reached that version of the target."""
    return every(
        instances,
        kinds,
        target_versions,
        lambda i, k, v: not s.settled[i, k, v] or s.received[i, k, v],
    )


@TRIGGERS.each_step("S14", section="§13", witnesses=("a_notification_is_intended",))
def only_what_is_owed_is_intended(before: State, after: State) -> object:
    """What is committed to be sent is for an instance that exists, and for the target as it stands."""
    return every(
        instances,
        kinds,
        target_versions,
        lambda i, k, v: (
            not is_intended(before, after, i, k, v) or (before.row[i].present and v == before.target)
        ),
    )


@TRIGGERS.each_step("S14", section="§8", witnesses=("another_target_is_told_as_well",))
def only_what_is_owed_is_sent(before: State, after: State) -> object:
    """A notice is for an instance that exists, and for what is not yet committed as sent."""
    return every(
        notices,
        lambda n: (
            before.notice[n].present
            or not after.notice[n].present
            or (
                before.row[after.notice[n].instance].present
                and not before.settled[after.notice[n].instance, after.notice[n].kind, after.notice[n].target]
            )
        ),
    )


@TRIGGERS.each_step("S14", section="§8", witnesses=("a_notification_is_recorded",))
def what_is_recorded_stays_recorded(before: State, after: State) -> object:
    """What is committed to be sent stays so, and so does what is committed as sent."""
    return every(
        instances,
        kinds,
        target_versions,
        lambda i, k, v: (
            (not before.intended[i, k, v] or after.intended[i, k, v])
            and (not before.settled[i, k, v] or after.settled[i, k, v])
        ),
    )


# Both.


@TRIGGERS.each_step(
    "S25",
    section="§2",
    witnesses=(
        "another_payload_is_refused",
        "an_intent_after_the_end_is_refused",
        "a_commit_after_the_end_is_refused",
    ),
)
def a_refusal_leaves_store_and_recipient_alone(before: State, after: State, step: Step) -> object:
    """A call that is refused changes nothing at the store and nothing at the recipient."""
    return not step.refused or (
        after.target == before.target
        and every(instances, lambda i: after.row[i] == before.row[i] and after.given[i] == before.given[i])
        and every(sources, events, lambda a, e: after.record[a, e] == before.record[a, e])
        and every(
            instances,
            kinds,
            target_versions,
            lambda i, k, v: (
                after.intended[i, k, v] == before.intended[i, k, v]
                and after.settled[i, k, v] == before.settled[i, k, v]
                and after.kept[i, k, v] == before.kept[i, k, v]
                and after.received[i, k, v] == before.received[i, k, v]
            ),
        )
    )


# Witnesses: each a state or step that must be reachable, or the claims that name it say nothing.


@derived
def is_told_again(before: State, after: State, r: Element, i: Element) -> object:
    """Whether request `r` is answered in this step with instance `i`, which there was before."""
    return (
        before.answer[r] == Answer.none
        and after.answer[r] == Answer.ok
        and after.told[r] == i
        and before.row[i].present
    )


@TRIGGERS.sometimes()
def a_trigger_comes_again(before: State, after: State) -> object:
    """A trigger whose instance exists is delivered again, and answered ok with that instance."""
    return some(requests, instances, lambda r, i: is_told_again(before, after, r, i))


@TRIGGERS.sometimes()
def a_trigger_of_a_row_that_moved_comes_again(before: State, after: State) -> object:
    """A trigger is delivered again when its instance was taken over and has finished."""
    return some(
        requests,
        instances,
        lambda r, i: (
            is_told_again(before, after, r, i) and before.row[i].lease > 0 and before.row[i].finished
        ),
    )


@TRIGGERS.sometimes()
def two_triggers_begin_two_instances(s: State) -> object:
    """Two triggers have an instance each."""
    return some(instances, instances, lambda i, j: i != j and s.row[i].present and s.row[j].present)


@TRIGGERS.sometimes()
def a_trigger_is_answered(before: State, after: State) -> object:
    """A source learns that its event was taken."""
    return some(sources, events, lambda a, e: after.answered[a, e] and not before.answered[a, e])


@TRIGGERS.sometimes()
def another_payload_is_refused(before: State, after: State, step: Step) -> object:
    """A trigger is delivered again with another payload, and refused as a conflict."""
    return (
        step.action == "decide_trigger" and step.outcome == "key-conflict" and after.target == before.target
    )


@TRIGGERS.sometimes()
def acquiring_after_the_end_is_refused(before: State, after: State, step: Step) -> object:
    """A worker tries to acquire the lease of an instance that has finished."""
    return step.action == "acquire" and step.outcome == "finished" and after.target == before.target


@TRIGGERS.sometimes()
def an_intent_after_the_end_is_refused(before: State, after: State, step: Step) -> object:
    """A worker commits that a notification is to be sent when the instance has finished, and is refused."""
    return step.action == "intend_notice" and step.outcome == "finished" and after.target == before.target


@TRIGGERS.sometimes()
def a_commit_after_the_end_is_refused(before: State, after: State, step: Step) -> object:
    """A worker commits that a notification was sent when the instance has finished, and is refused."""
    return step.action == "record_notice" and step.outcome == "finished" and after.target == before.target


@TRIGGERS.sometimes()
def a_notice_comes_again(before: State, after: State) -> object:
    """A notice whose key the recipient knows arrives, is answered ok, and nothing reaches the target."""
    return some(
        notices,
        lambda n: (
            before.notice[n].present
            and after.reply[n]
            and not before.reply[n]
            and before.kept[before.notice[n].instance, before.notice[n].kind, before.notice[n].key]
            and before.landings[n] == after.landings[n]
        ),
    )


@TRIGGERS.sometimes()
def another_target_is_told_as_well(before: State, after: State) -> object:
    """A notification reaches the target that stands, after it has reached a former one."""
    return some(
        notices,
        target_versions,
        lambda n, v: (
            lands(before, after, n)
            and v < before.notice[n].target
            and before.received[before.notice[n].instance, before.notice[n].kind, v]
        ),
    )


@TRIGGERS.sometimes()
def a_notice_is_sent_again_after_a_crash(before: State, after: State, step: Step) -> object:
    """A worker sends a notification again that reached its target, since the one that sent it has crashed."""
    return step.action == "send_notice" and some(
        notices,
        notices,
        lambda n, m: (
            not before.notice[n].present
            and after.notice[n].present
            and before.notice[m].present
            and not before.awaited[m]
            and after.notice[n] == before.notice[m]
            and before.received[before.notice[m].instance, before.notice[m].kind, before.notice[m].target]
        ),
    )


@TRIGGERS.sometimes()
def a_notice_is_sent_after_a_change(before: State, after: State) -> object:
    """A worker sends a notification to the target that it was intended for, although another one stands."""
    return some(
        notices,
        lambda n: (
            not before.notice[n].present
            and after.notice[n].present
            and after.notice[n].target != before.target
        ),
    )


@TRIGGERS.sometimes()
def a_notification_is_intended(before: State, after: State) -> object:
    """It is committed that a notification is to be sent."""
    return some(instances, kinds, target_versions, lambda i, k, v: is_intended(before, after, i, k, v))


@TRIGGERS.sometimes()
def a_notification_is_recorded(before: State, after: State) -> object:
    """It is committed that a notification was sent."""
    return some(instances, kinds, target_versions, lambda i, k, v: is_recorded(before, after, i, k, v))
