"""A lease by the store's now: who gets it, whose commit is in time, and when its owner stops (§3)."""

from __future__ import annotations

from fencepost.model.clocks.state import DOWNSTREAM, Answer, clocks, now, ticks
from fencepost.model.core.state import NETWORK, STORE, WORKER, workers
from fencepost.model.domains import Element, Member
from fencepost.model.language import State, absent, ite, refuse_unless, when


def look_at_the_clock(s: State) -> None:
    """The store reads its clock, and keeps the moment: no later operation has an earlier one."""
    s.mark = now(s)
    s.found_over = ite(s.mark >= s.expires_at, s.lease_version, s.found_over)


@clocks.action(WORKER, w=workers, length=ticks)
def ask(s: State, w: Element, length: int) -> None:
    """A worker asks for the lease, and from this moment on counts it by its own clock."""
    when(not s.cut_off[w])
    when(not s.asks[w].present and not s.granted[w].present and not s.believes[w].present)
    when(length >= 1)

    s.asks[w] = length
    s.left[w] = length


def grant(s: State, w: Element, answer: Member) -> None:
    """The version that was given is on its way to the worker; of a refusal it waits for nothing."""
    s.asks[w] = absent
    if answer == Answer.ok:
        s.granted[w] = s.lease_version
    else:
        s.left[w] = 0


@clocks.operation(NETWORK, home=STORE, answered=grant, w=workers)
def acquire(s: State, w: Element) -> None:
    """A request for the lease arrives: allowed once the lease that stands is over."""
    when(s.asks[w].present)
    when(not s.cut_off[w])
    look_at_the_clock(s)
    refuse_unless(s.mark >= s.expires_at, "lease-live")
    refuse_unless(not s.exhausted, "lease-version-exhausted")

    s.owner = w
    s.lease_version = s.lease_version + 1
    s.expires_at = s.mark + s.asks[w].value


@clocks.action(WORKER, w=workers)
def receive(s: State, w: Element) -> None:
    """A worker learns that it was given the lease, maybe long ago."""
    when(s.granted[w].present)
    when(not s.cut_off[w])

    s.believes[w] = s.granted[w].value
    s.granted[w] = absent


def stop_if_refused(s: State, w: Element, answer: Member) -> None:
    """Who is refused takes itself for the owner no longer."""
    if answer != Answer.ok:
        s.believes[w] = absent
        s.left[w] = 0


@clocks.operation(WORKER, home=STORE, answered=stop_if_refused, w=workers)
def commit(s: State, w: Element) -> None:
    """A worker commits under the lease that it takes for its own, whatever its own count says."""
    when(s.believes[w].present)
    when(not s.cut_off[w])
    look_at_the_clock(s)
    refuse_unless(s.believes[w].value == s.lease_version, "stale-lease-version")
    refuse_unless(s.mark < s.expires_at, "lease-expired")

    s.state_version = s.state_version + 1
    s.made_by[s.state_version] = w


@clocks.action(WORKER, w=workers)
def start_effect(s: State, w: Element) -> None:
    """A worker sends an effect, with its lease version as the token, while its own count lasts."""
    when(s.believes[w].present)
    when(not s.sending[w].present)
    when(s.left[w] >= 1)

    s.sending[w] = s.believes[w].value


def arrive(s: State, w: Element, answer: Member) -> None:
    """The effect is not on its way any more; who is refused for its token stops."""
    s.sending[w] = absent
    if answer != Answer.ok:
        s.believes[w] = absent
        s.left[w] = 0


@clocks.operation(NETWORK, home=DOWNSTREAM, answered=arrive, w=workers)
def take_effect(s: State, w: Element) -> None:
    """An effect arrives at the fenced downstream, which asks no clock."""
    when(s.sending[w].present)
    refuse_unless(s.sending[w].value >= s.fence, "stale-token")

    s.fence = s.sending[w].value
    s.effects = s.effects + 1
    s.contacted = ite(s.sending[w].value > s.contacted, s.sending[w].value, s.contacted)
