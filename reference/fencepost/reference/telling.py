"""Notifications (§13): sent under their own key after the commit that stored them, then recorded.

They decide nothing about their instance: one that cannot be delivered stays stored, without a receipt.
"""

from __future__ import annotations

from fencepost.reference import outcomes
from fencepost.reference.downstream_values import EffectRequest, TakesEffects
from fencepost.reference.outcomes import Fate, Outcome
from fencepost.reference.passes import Pass
from fencepost.reference.session import TRIES
from fencepost.reference.store import Store
from fencepost.reference.values import FINISHED, ArgumentError, Intent, Notification, Ok, StoreError

RESOURCE = "notification"
"""The resource that a downstream of notifications keeps its fence for."""


def tell(run: Pass) -> None:
    """Send the notifications of this instance that have no receipt, each at most once in a pass."""
    stored = run.reading(lambda: run.store.notifications(run.row.instance))
    for each in stored:
        key = each.notification.key
        if each.receipt is not None or key in run.told:
            continue
        run.told.add(key)
        outcome = _send(run, each.notification)
        if outcome.fate is Fate.HAPPENED and outcome.receipt is not None:
            run.session.at("told")
            record(run.store, run.row.instance, key, outcome.receipt)
            run.session.at("receipt of telling recorded")


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

    Nobody has a lease on those, and only a key makes sending twice harmless. It looks at up to `most`.
    """
    if not notifier.capabilities.keyed:
        return 0
    delivered = 0
    for each in store.undelivered(most=most):
        row = store.read(each.instance)
        if not isinstance(row, Ok) or row.value.status not in FINISHED:
            continue
        intent = intent_of(each.notification)
        request = EffectRequest(
            instance=each.instance,
            resource=intent.resource,
            operation=intent.operation,
            parameters=intent.parameters,
            fingerprint=intent.fingerprint,
            key=intent.key,
            token=row.value.lease_version,
        )
        answer = outcomes.asked(lambda request=request: notifier.apply(request))  # type: ignore[misc]
        if isinstance(answer, Ok):
            delivered += record(store, each.instance, intent.key, answer.value.receipt)
    return delivered
