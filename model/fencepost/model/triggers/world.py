"""Everything that goes wrong around triggers and notifications (§16): each fault has a switch of its own."""

from __future__ import annotations

from fencepost.model.core.state import WORLD
from fencepost.model.domains import Element
from fencepost.model.language import State, absent, when
from fencepost.model.triggers.state import (
    Answer,
    events,
    instances,
    kinds,
    notices,
    requests,
    sources,
    target_versions,
    triggers,
)


@triggers.action(WORLD, switch="crash", i=instances)
def crash(s: State, i: Element) -> None:
    """The worker of an instance dies; what it sent stays on its way, and nobody waits for the replies."""
    s.awaited.update_where(lambda n, waits: waits and s.notice[n].present and s.notice[n].instance != i)


@triggers.action(WORLD, switch="crash", a=sources)
def crash_source(s: State, a: Element) -> None:
    """A source dies and forgets which of its events were taken; it delivers them again."""
    s.answered.update_where(lambda b, _event, known: known and b != a)


@triggers.action(WORLD, switch="trigger_lost", r=requests)
def lose_trigger(s: State, r: Element) -> None:
    """All copies of a request that are on their way are lost."""
    when(s.arriving[r])

    s.arriving[r] = False


@triggers.action(WORLD, switch="reply_lost", r=requests)
def lose_answer(s: State, r: Element) -> None:
    """The store's answer to a source is lost on its way back."""
    when(s.answer[r] != Answer.none)

    s.answer[r] = Answer.none
    s.told[r] = absent


@triggers.action(WORLD, switch="notice_lost", n=notices)
def lose_notice(s: State, n: Element) -> None:
    """All copies of a notice that are on their way are lost."""
    when(s.in_flight[n])

    s.in_flight[n] = False


@triggers.action(WORLD, switch="reply_lost", n=notices)
def lose_reply(s: State, n: Element) -> None:
    """The recipient's reply is lost on its way back."""
    when(s.reply[n])

    s.reply[n] = False


@triggers.action(WORLD, switch="record_expired", a=sources, key=events)
def expire_trigger(s: State, a: Element, key: Element) -> None:
    """The store forgets what began under a key."""
    when(s.record[a, key].present)

    s.record[a, key] = absent


@triggers.action(WORLD, switch="record_expired", i=instances, k=kinds, key=target_versions)
def expire_notice(s: State, i: Element, k: Element, key: int) -> None:
    """The recipient forgets that it knows a key."""
    when(s.kept[i, k, key])

    s.kept[i, k, key] = False


@triggers.action(WORLD, switch="record_volatile")
def restart_store(s: State) -> None:
    """The store restarts; the rows are there, and the dedup records, which were kept in memory, are not."""
    s.record.fill(absent)


@triggers.action(WORLD, switch="record_volatile")
def restart_recipient(s: State) -> None:
    """The recipient restarts, and what it kept in memory is gone."""
    s.kept.fill(False)
