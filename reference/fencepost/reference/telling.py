"""Notifications (§13): sent under their own key after the commit that stored them, then recorded.

They decide nothing about their instance: one that cannot be delivered stays stored, without a receipt. Why
it was given up is in the event log, if that was learnt before the instance was finished.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from fencepost.reference import outcomes
from fencepost.reference.answers import asked
from fencepost.reference.downstream_values import (
    IN_PROGRESS,
    DownstreamAnswer,
    EffectRequest,
    Receipt,
    TakesEffects,
    Unknown,
)
from fencepost.reference.outcomes import Fate, Outcome
from fencepost.reference.passes import OvertakenError, Pass
from fencepost.reference.session import TRIES
from fencepost.reference.store import Store
from fencepost.reference.values import FINISHED, ArgumentError, Intent, Notification, Ok, Refused, StoreError

RESOURCE = "notification"
"""The resource that a downstream of notifications keeps its fence for."""


GIVEN_UP: Final = "notification given up: "
"""How the event begins that says that a notification will never be delivered; its key follows."""

SILENCE: Final = 3
"""After how many instances in a row without an answer a round ends: the notifier seems to be away."""


def tell(run: Pass) -> None:
    """Send the notifications of this instance that have no receipt, each at most once in a pass.

    One that is refused for good is given up by a commit that says why: nothing else depends on it.
    """
    stored = run.reading(lambda: run.store.notifications(run.row.instance))
    left = [each for each in stored if each.receipt is None and each.notification.key not in run.told]
    if not left:
        return
    over = run.reading(lambda: given_up(run.store, run.row.instance))
    for each in left:
        key = each.notification.key
        run.told.add(key)
        if key in over:
            continue
        outcome = _send(run, each.notification)
        if outcome.fate is Fate.HAPPENED and outcome.receipt is not None:
            run.session.at("told")
            record(run.store, run.row.instance, key, outcome.receipt)
            run.session.at("receipt of telling recorded")
        elif _is_final(run, outcome) and run.row.status not in FINISHED:
            with suppress(OvertakenError):  # then it is tried, and noted, another time
                run.commit(f"{GIVEN_UP}{key}", payload=outcome.why)


def _is_final(run: Pass, outcome: Outcome) -> bool:
    """Whether a notification was refused in a way that no other try changes."""
    stuck = outcome.fate is Fate.STUCK and run.notifier.capabilities.keyed
    return stuck or outcome.fate in (Fate.NOT_HAPPENED, Fate.SENSELESS)


def given_up(store: Store, instance: str) -> frozenset[str]:
    """The keys of the notifications of an instance that were given up, as its event log says."""
    events = (entry.event for entry in store.log(instance))
    return frozenset(event.removeprefix(GIVEN_UP) for event in events if event.startswith(GIVEN_UP))


def _send(run: Pass, notification: Notification) -> Outcome:
    """Without a key to send it again by, only who stored it, or who has fenced others off, may send it."""
    intent, can = intent_of(notification), run.notifier.capabilities
    if can.keyed or notification.key in run.fresh:
        run.fresh.discard(notification.key)
        return outcomes.send(run, intent, run.notifier)
    found = outcomes.find(run, intent, run.notifier)
    return outcomes.send(run, intent, run.notifier) if found.fate is Fate.ABSENT else found


def intent_of(notification: Notification) -> Intent:
    """A notification as an effect at a downstream."""
    return Intent(
        1,
        notification.key,
        notification.fingerprint,
        RESOURCE,
        notification.kind,
        notification.parameters,
    )


def record(store: Store, instance: str, key: str, receipt: str) -> bool:
    """Record the receipt of a notification; the first one stays, and the same twice is harmless."""
    for _ in range(TRIES):
        try:
            return isinstance(store.delivered(instance, key, receipt), Ok)
        except ArgumentError:
            raise
        except StoreError:
            continue
    return False


def deliver(store: Store, notifier: TakesEffects, *, most: int = 100) -> int:
    """Send what instances that are finished have still to tell, at a keyed downstream only (§13); how many.

    Nobody has a lease on those, and only a key makes sending twice harmless. It goes through all of them, in
    pages of `most`, and ends early where the notifier does not answer.
    """
    return Rounds(store, notifier, most=most).go()


class Rounds:
    """Round after round over what finished instances have to tell, so that each of them gets its turn.

    A round begins where the one before ended. What is refused for good is not sent again by this object: of
    a finished instance, the store has no place to note that.
    """

    def __init__(self, store: Store, notifier: TakesEffects, *, most: int = 100) -> None:
        self._store: Final = store
        self._notifier: Final = notifier
        self._most: Final = most
        self._refused: Final[set[str]] = set()
        self._after = ""

    def go(self) -> int:
        """One round; how many were delivered."""
        if not self._notifier.capabilities.keyed:
            return 0
        delivered = silent = 0
        for instance in self._names():
            self._after = instance
            answers = self._answers(instance)
            delivered += sum(isinstance(answer, Ok) for answer in answers)
            if answers:
                silent = silent + 1 if all(isinstance(answer, Unknown) for answer in answers) else 0
            if silent == SILENCE:
                return delivered
        return delivered

    def _names(self) -> Iterator[str]:
        """The instances with something to tell: those behind where the last round ended, then the others."""
        end = self._after
        yield from self._pages(end)
        for name in self._pages("") if end else ():
            if name > end:
                return
            yield name

    def _pages(self, after: str) -> Iterator[str]:
        while page := self._store.undelivered(after=after, most=self._most):
            left = {each.instance for each in page if each.notification.key not in self._refused}
            after = page[-1].instance
            if len(page) == self._most:
                left.add(after)  # it may have more than the page had room for
            yield from sorted(left)

    def _answers(self, instance: str) -> list[DownstreamAnswer[Receipt]]:
        """Send what an instance has to tell, if it is finished, and keep what was answered."""
        row = self._store.read(instance)
        if not isinstance(row, Ok) or row.value.status not in FINISHED:
            return []
        stored = [each for each in self._store.notifications(instance) if each.receipt is None]
        if any(each.notification.key not in self._refused for each in stored):
            self._refused.update(given_up(self._store, instance))
        answers: list[DownstreamAnswer[Receipt]] = []
        for each in stored:
            key = each.notification.key
            if key in self._refused:
                continue
            answer = self._answer(instance, intent_of(each.notification), row.value.lease_version)
            if isinstance(answer, Ok) and not record(self._store, instance, key, answer.value.receipt):
                answer = Unknown("its receipt was not recorded")
            if isinstance(answer, Refused) and answer.code != IN_PROGRESS:
                self._refused.add(key)
            answers.append(answer)
        return answers

    def _answer(self, instance: str, intent: Intent, token: int) -> DownstreamAnswer[Receipt]:
        return asked(
            lambda: self._notifier.apply(
                EffectRequest(
                    instance=instance,
                    resource=intent.resource,
                    operation=intent.operation,
                    parameters=intent.parameters,
                    fingerprint=intent.fingerprint,
                    key=intent.key,
                    token=token,
                )
            ),
            Receipt,
        )
