"""What an audit says of effects (§6, §7, §12, §13; S8, S10, S11, S13, S21): the ledger against the store.

Each effect in the ledger is held against an intent that the store has: that of a step, of a compensation, or
of a notification. It is found by its key, or else by what it did: an effect under a key that nobody stored is
still the effect of somebody's intent, if its instance, resource, operation and parameters are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from fencepost.reference.audit_records import (
    ENDED_WITHOUT,
    FINISHED,
    OK,
    Found,
    Records,
    grouped,
    steps,
    whose,
)
from fencepost.reference.downstream_observe import AppliedEffect
from fencepost.reference.values import Intent, StepStatus

SUCCEEDED_ONCE: Final = (StepStatus.SUCCEEDED, StepStatus.COMPENSATING, StepStatus.COMPENSATED)


class Kind(StrEnum):
    """Whose intent one is."""

    STEP = "step"
    COMPENSATION = "compensation"
    NOTIFICATION = "notification"


@dataclass(frozen=True, slots=True)
class Meant:
    """What the store says of one thing that is to happen outside: a step, a compensation or a notification.

    `name` is the step's, or the notification's kind, recipient and target version; `said` are words for it.
    `given_up` says that the step ended without its effect, `attested` that this rests on a person's word.
    """

    kind: Kind
    instance: str
    name: str
    said: str
    receipt: str | None
    given_up: bool = False
    attested: bool = False


Matched = Mapping[int, Meant]
"""By the number of an effect, what it was meant to be; those without lack."""


def matched(records: Records) -> Matched:
    """What each effect of the ledger was meant to be, as far as the store knows."""
    by_key: dict[tuple[str, str], Meant] = {}
    by_form: dict[tuple[str, str, str, str], Meant] = {}
    for meant, key, form in _intents(records):
        by_key[meant.instance, key] = meant
        if form is not None:
            by_form.setdefault((meant.instance, *form), meant)
    found = {}
    for effect in records.downstream.effects:
        did = (effect.instance, effect.resource, effect.operation, effect.fingerprint)
        of = by_key.get((effect.instance, effect.key)) or by_form.get(did)
        if of is not None:
            found[effect.number] = of
    return found


Form = tuple[str, str, str]
"""Resource, operation and fingerprint."""


def _intents(records: Records) -> Iterator[tuple[Meant, str, Form | None]]:
    """What is meant, the key of it, and what it does; of a former intent only the key is left, in the log."""
    former = grouped(
        (entry for entry in records.store.step_entries if entry.key is not None),
        lambda entry: (entry.instance, entry.step),
    )
    for step in steps(records):
        if step.intent is not None:
            given_up = step.status in ENDED_WITHOUT
            meant = Meant(
                Kind.STEP, step.instance, step.step, whose(step), step.receipt, given_up, step.attested
            )
            for key in sorted({str(e.key) for e in former[step.instance, step.step]} - {step.intent.key}):
                yield meant, key, None
            yield meant, step.intent.key, _form(step.intent)
        if step.undo is not None:
            said = f"the compensation of {whose(step)}"
            attested = step.attested and step.undo_receipt is None
            undo = Meant(
                Kind.COMPENSATION, step.instance, step.step, said, step.undo_receipt, attested=attested
            )
            yield undo, step.undo.key, _form(step.undo)
    for each in records.store.notifications:
        told = each.notification
        name = f"{told.kind} to {told.recipient}, version {told.target_version}"
        said = f"the notification {name}, of {each.instance}"
        yield Meant(Kind.NOTIFICATION, each.instance, name, said, each.receipt), told.key, None


def _form(intent: Intent) -> Form:
    return intent.resource, intent.operation, intent.fingerprint


def _numbers(effects: list[AppliedEffect]) -> str:
    return ", ".join(f"effect {effect.number}" for effect in effects)


def one_effect_per_intent(records: Records) -> Found:
    """No intent took effect twice, and no step of an instance under two intents."""
    effects = records.downstream.effects
    meant = matched(records)
    by_key = grouped(effects, lambda effect: effect.key)
    by_intent = grouped(effects, lambda effect: meant.get(effect.number, effect.key))
    wrongs = [
        f"{happened[0].operation} on {happened[0].resource} of {happened[0].instance} took effect "
        f"{len(happened)} times: {_numbers(happened)}"
        for happened in by_intent.values()
        if len(happened) > 1
    ]
    wrongs += [
        f"the key {key} stands for several effects: {_numbers(happened)}"
        for key, happened in by_key.items()
        if len({(e.instance, e.resource, e.operation) for e in happened}) > 1
    ]
    again = sum(number - 1 for number in Counter(s.key for s in records.journal.sent).values())
    late = _too_late(records)
    evidence = (
        f"{len(effects):,} effects of {len(by_intent):,} intents; {again:,} sent again, {late:,} too late"
    )
    return evidence, bool(effects) and again + late > 0, wrongs


def _too_late(records: Records) -> int:
    return sum(sent.answer == "stale-token" for sent in records.journal.sent)


def receipt_is_true(records: Records) -> Found:
    """Each receipt in the store is that of an effect in the ledger, and each success with an effect has one.

    A person may have said so instead: such a step is marked attested, and nothing is claimed of its receipt.
    """
    ledger = _by_receipt(records)
    wrongs, receipts, attested = [], 0, 0
    for step in steps(records):
        attested += step.attested
        for intent, receipt, what, over in (
            (step.intent, step.receipt, whose(step), step.status in SUCCEEDED_ONCE),
            (
                step.undo,
                step.undo_receipt,
                f"the compensation of {whose(step)}",
                step.status is StepStatus.COMPENSATED,
            ),
        ):
            receipts += receipt is not None
            if receipt is None:
                if over and intent is not None and not step.attested:
                    wrongs.append(f"{what} succeeded without a receipt")
                continue
            effect = ledger.get(receipt)
            if effect is None:
                wrongs.append(f"{what} has {receipt}, which is not in the ledger")
            elif intent is None or effect.key != intent.key:
                wrongs.append(f"{what} has {receipt}, which was given for the key {effect.key}")
            elif effect.fingerprint != intent.fingerprint:
                wrongs.append(f"{what} has {receipt}, which was given for other parameters")
    word = f", {attested:,} attested instead" if attested else ""
    evidence = f"{receipts:,} receipts in the store{word}, {len(ledger):,} effects in the ledger"
    return evidence, receipts > 0, wrongs


def _by_receipt(records: Records) -> dict[str, AppliedEffect]:
    return {f"receipt-{effect.number}": effect for effect in records.downstream.effects}


def no_effect_is_lost(records: Records) -> Found:
    """Each effect in the ledger is one that the store knows of, and each that was answered ok is there.

    Of an instance that is not finished the store may not know it yet.
    """
    meant, ledger = matched(records), _by_receipt(records)
    open_ = {row.instance for row in records.store.rows if row.status not in FINISHED}
    answered = [sent for sent in records.journal.sent if sent.answer == OK]
    wrongs = [
        f"{s.receipt} was answered ok and is not in the ledger" for s in answered if s.receipt not in ledger
    ]
    for effect in records.downstream.effects:
        what = f"effect {effect.number}, {effect.operation} for {effect.instance},"
        of = meant.get(effect.number)
        if effect.instance in open_:
            continue
        if of is None:
            wrongs.append(f"{what} is of no step, compensation or notification that the store knows")
        elif of.kind is not Kind.NOTIFICATION and not (of.receipt or of.attested or of.given_up):
            wrongs.append(f"{what} happened, and the store has no receipt for {of.said}")
    return f"{len(ledger):,} effects, {len(answered):,} answers with a receipt", bool(ledger), wrongs


def unknown_is_never_guessed(records: Records) -> Found:
    """A step that ended as failed or cancelled did not take effect, unless a person said that it had not."""
    found = matched(records)
    effects = grouped(records.downstream.effects, lambda effect: found.get(effect.number))
    given_up = {each for each, _, _ in _intents(records) if each.given_up}
    known = [each for each in given_up if not each.attested]
    wrongs = [
        f"{meant.said} was given up, and took effect all the same: {_numbers(effects[meant])}"
        for meant in known
        if meant in effects
    ]
    attested = len(given_up) - len(known)
    word = f", {attested:,} said not to have by a person" if attested else ""
    return f"{len(known):,} effects known not to have happened{word}", bool(known), sorted(wrongs)


def fence_only_rises(records: Records) -> Found:
    """No effect was applied on a resource after one of the same instance with a higher lease version."""
    wrongs = []
    of = grouped(records.downstream.effects, lambda effect: (effect.instance, effect.resource))
    fences = {(instance, resource): token for instance, resource, token in records.downstream.fences}
    for (instance, resource), effects in of.items():
        for former, effect in pairwise(effects):
            if effect.token < former.token:
                wrongs.append(
                    f"effect {effect.number}, {effect.operation} on {resource} of {instance}, came with "
                    f"lease version {effect.token}, after effect {former.number} with {former.token}"
                )
        highest = max(effect.token for effect in effects)
        if fences and fences.get((instance, resource), -1) < highest:
            wrongs.append(f"the fence of {resource} for {instance} is below {highest}, which was applied")
    late = _too_late(records)
    return f"{len(fences):,} fences, {late:,} requests refused by them", late > 0, wrongs


def one_notification_per_target(records: Records) -> Found:
    """Nobody was told the same thing of an instance twice, and each receipt of a notification is true."""
    meant, ledger = matched(records), _by_receipt(records)
    told = grouped(
        (e for e in records.downstream.effects if e.number in meant),
        lambda effect: meant[effect.number],
    )
    wrongs = [
        f"{what.said}, was told {len(happened)} times: {_numbers(happened)}"
        for what, happened in told.items()
        if what.kind is Kind.NOTIFICATION and len(happened) > 1
    ]
    for each in records.store.notifications:
        notification = each.notification
        what = f"the notification {notification.kind} to {notification.recipient} of {each.instance}"
        effect = ledger.get(each.receipt or "")
        if each.receipt is not None and effect is None:
            wrongs.append(f"{what} has {each.receipt}, which is not in the ledger")
        elif effect is not None and (effect.key, effect.fingerprint) != (
            notification.key,
            notification.fingerprint,
        ):
            wrongs.append(f"{what} has {each.receipt}, which was given for the key {effect.key}")
    stored = records.store.notifications
    delivered = sum(each.receipt is not None for each in stored)
    return f"{len(stored):,} notifications, {delivered:,} delivered", delivered > 0, wrongs
