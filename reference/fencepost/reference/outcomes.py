"""What became of an intent, asked of a downstream in the way that its class allows (§6, §7).

Keyed: the same request under the same key has one effect at most, and a tombstone prevents it. Fenced, and
can be asked: raise the fence, so that no older request lands any more, then ask. Can only be asked: a receipt
settles it, its absence does not. Otherwise nobody knows, and a person decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fencepost.reference import downstream_values as words
from fencepost.reference.answers import asked
from fencepost.reference.downstream_values import (
    EffectRequest,
    NotFound,
    Receipt,
    RecordedRefusal,
    TakesEffects,
    Tombstone,
    Unknown,
)
from fencepost.reference.passes import Pass
from fencepost.reference.recovery import OWN_DECISIONS
from fencepost.reference.session import Ended
from fencepost.reference.values import Evidence, Intent, Refused, StepStatus

RECORDS: Final = (Receipt, Tombstone, RecordedRefusal)
ANSWERS: Final = (*RECORDS, NotFound)
"""What a tombstone, and a query, may be answered with."""


class Fate(StrEnum):
    """What is known of an effect."""

    HAPPENED = "happened"
    NOT_HAPPENED = "not happened"
    """It did not, and will not under its key: the outcome says how that is known."""
    ABSENT = "absent"
    """It did not, and no request that was sent so far will: it may be sent again."""
    OPEN = "open"
    """It is not known now, but can be found out later."""
    STUCK = "stuck"
    """It is not known, and there is no way to find out."""
    SENSELESS = "senseless"
    """The request cannot be understood, so that it had no effect; an earlier one of the intent may have."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The fate of an effect: with its receipt if it happened, the evidence if not, and the code or words."""

    fate: Fate
    receipt: str | None = None
    evidence: Evidence | None = None
    why: str = ""


def is_fenced_and_queryable(downstream: TakesEffects) -> bool:
    """Whether fence and query together prove that an effect did not happen, where no key does."""
    can = downstream.capabilities
    return can.fenced and can.queryable and not can.keyed


def send(run: Pass, intent: Intent, downstream: TakesEffects) -> Outcome:
    """Send a stored intent under its stored key, with the lease version as the token (§6)."""
    run.session.may_send()
    run.session.at("sending")
    first = intent.key not in run.sent
    run.sent.add(intent.key)
    request = EffectRequest(
        instance=run.row.instance,
        resource=intent.resource,
        operation=intent.operation,
        parameters=intent.parameters,
        fingerprint=intent.fingerprint,
        key=intent.key,
        token=run.session.token,
        expected_revision=intent.expected_revision,
    )
    answer = asked(lambda: downstream.apply(request), Receipt)
    run.session.at("answered")
    if isinstance(answer, Unknown):
        if downstream.capabilities.keyed or is_fenced_and_queryable(downstream):
            return Outcome(Fate.OPEN, why=f"unknown: {answer.why}")
        return look(run, intent, downstream, f"unknown: {answer.why}")
    if isinstance(answer, Refused) and answer.code == words.MALFORMED:
        return _senseless(run, intent, downstream, _said(answer), first=first)
    if isinstance(answer, Refused):
        return _refused(run, intent, downstream, answer)
    return Outcome(Fate.HAPPENED, receipt=answer.value.receipt)


def _senseless(run: Pass, intent: Intent, downstream: TakesEffects, why: str, *, first: bool) -> Outcome:
    """This call did nothing. Where others cannot be prevented, that counts if there was no other one."""
    senseless = Outcome(Fate.SENSELESS, why=why)
    step = next((each for each in run.row.steps if each.intent == intent), None)
    if step is None or downstream.capabilities.keyed or is_fenced_and_queryable(downstream):
        return senseless
    only = first and step.intent_lease_version == run.session.token and step.error_class is None
    if not only or step.status is not StepStatus.RUNNING:
        return senseless
    return Outcome(Fate.NOT_HAPPENED, evidence=Evidence.UNSENT, why=why)


def _said(answer: Refused[words.Held]) -> str:
    why = answer.observed.why if answer.observed is not None and answer.observed.why else ""
    return f"{answer.code}: {why}" if why else answer.code


def _refused(run: Pass, intent: Intent, downstream: TakesEffects, answer: Refused[words.Held]) -> Outcome:
    """Only some refusals say that the effect of the intent did not happen, beside this call's (§2)."""
    code, said = answer.code, _said(answer)
    if code == words.STALE_TOKEN:
        run.end(Ended.LOST, code)
    if code == words.IN_PROGRESS and downstream.capabilities.keyed:
        return Outcome(Fate.OPEN, why=code)
    if code == words.TOMBSTONED:
        return Outcome(Fate.NOT_HAPPENED, evidence=Evidence.TOMBSTONED, why=code)
    if code not in OWN_DECISIONS:
        return Outcome(Fate.STUCK, why=said)
    if downstream.capabilities.keyed:
        return Outcome(Fate.NOT_HAPPENED, evidence=Evidence.RECORDED_REFUSAL, why=said)
    if is_fenced_and_queryable(downstream):
        # This call had no effect, but another one of this intent may have had.
        found = find(run, intent, downstream)
        if found.fate is not Fate.ABSENT:
            return found
        return Outcome(Fate.NOT_HAPPENED, evidence=Evidence.FENCED_AND_NOT_FOUND, why=said)
    return look(run, intent, downstream, said)


def find(run: Pass, intent: Intent, downstream: TakesEffects) -> Outcome:
    """What became of an intent that may have been sent before, where there is no key to send it again by."""
    if not is_fenced_and_queryable(downstream):
        return look(run, intent, downstream, "it was left unknown")
    if intent.key in run.sent:
        run.taken_anew()  # the fence has to stand above the tokens it was sent under, our own included
    run.session.may_send()
    raised = asked(
        lambda: downstream.raise_fence(run.row.instance, intent.resource, token=run.session.token), int
    )
    run.session.at("fence raised")
    if isinstance(raised, Unknown):
        return Outcome(Fate.OPEN, why=raised.why)
    if isinstance(raised, Refused) and raised.code == words.MALFORMED:
        return Outcome(Fate.STUCK, why=_said(raised))
    if isinstance(raised, Refused):
        run.end(Ended.LOST, raised.code)
    answer = asked(lambda: downstream.query(intent.key), *ANSWERS)
    run.session.at("query answered")
    if isinstance(answer, Unknown):
        return Outcome(Fate.OPEN, why=answer.why)
    if isinstance(answer, Refused):
        return Outcome(Fate.STUCK, why=_said(answer))
    return _held(answer.value) or Outcome(Fate.ABSENT, evidence=Evidence.FENCED_AND_NOT_FOUND)


def look(run: Pass, intent: Intent, downstream: TakesEffects, why: str) -> Outcome:
    """Ask for a receipt where only that settles anything: "not found" proves nothing (§7)."""
    stuck = Outcome(Fate.STUCK, why=f"{why}; it may have happened")
    if not downstream.capabilities.can_be_asked:
        return stuck
    answer = asked(lambda: downstream.query(intent.key), *ANSWERS)
    run.session.at("query answered")
    if isinstance(answer, Unknown):
        return Outcome(Fate.OPEN, why=answer.why)
    if isinstance(answer, Refused):
        return Outcome(Fate.STUCK, why=_said(answer))
    return _held(answer.value) or stuck


def give_up(run: Pass, intent: Intent, downstream: TakesEffects) -> Outcome:
    """Prevent an effect whose reason for being given up is recorded, or learn that it happened (§7)."""
    if not downstream.capabilities.keyed:
        found = find(run, intent, downstream)
        if found.fate is Fate.ABSENT:
            return Outcome(Fate.NOT_HAPPENED, evidence=found.evidence, why="fenced off, and not found")
        return found
    run.session.may_send()
    answer = asked(
        lambda: downstream.tombstone(
            intent.key,
            intent.fingerprint,
            instance=run.row.instance,
            resource=intent.resource,
            token=run.session.token,
        ),
        *RECORDS,
    )
    run.session.at("tombstone answered")
    if isinstance(answer, Unknown):
        return Outcome(Fate.OPEN, why=answer.why)
    if isinstance(answer, Refused):
        return _refused(run, intent, downstream, answer)
    return _held(answer.value) or Outcome(Fate.OPEN, why="the tombstone is not there")


def _held(held: words.Record | NotFound) -> Outcome | None:
    match held:
        case Receipt():
            return Outcome(Fate.HAPPENED, receipt=held.receipt)
        case Tombstone():
            return Outcome(Fate.NOT_HAPPENED, evidence=Evidence.TOMBSTONED, why=words.TOMBSTONED)
        case RecordedRefusal():
            why = f"{held.code}: {held.why}"
            return Outcome(Fate.NOT_HAPPENED, evidence=Evidence.RECORDED_REFUSAL, why=why)
        case _:
            return None
