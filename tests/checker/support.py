"""Small protocols and claims for the tests of the checker."""

from __future__ import annotations

from fencepost.model import (
    BOOLEAN,
    Counter,
    Element,
    Family,
    Optional,
    Protocol,
    Sort,
    State,
    absent,
    every,
    when,
)
from fencepost.properties import Claims

workers = Sort("worker")
tickets = Counter("ticket")


def lock(*, broken: bool = False) -> Protocol:
    """A lock that hands out growing tickets; the broken one is taken while it is held."""
    p = Protocol("lock")
    p.variable("held_by", Optional(workers), absent, home="store", meaning="who holds the lock")
    p.variable("ticket", tickets, 0, home="store", meaning="tickets given so far")
    p.variable("inside", Family(workers, of=BOOLEAN), False, home="worker", meaning="who thinks to be inside")

    @p.action("worker", w=workers)
    def take(s: State, w: Element) -> None:
        """A worker takes the lock."""
        when(not s.inside[w])
        when(broken or not s.held_by.present)

        s.held_by = w
        s.ticket = s.ticket + 1
        s.inside[w] = True

    @p.action("worker", w=workers)
    def leave(s: State, w: Element) -> None:
        """A worker leaves."""
        when(s.inside[w])

        s.held_by = absent
        s.inside[w] = False

    p.scope("two", sizes={"worker": 2}, bounds={"ticket": 3}, why="two workers and three tickets")
    return p


def lock_claims() -> Claims:
    """Claims about the lock: one true, one false, one whose witness is out of reach, and witnesses."""
    claims = Claims("lock")

    @claims.always("ONE", witnesses=("somebody_is_inside",))
    def one_inside(s: State) -> object:
        """At most one worker is inside."""
        return every(workers, workers, lambda a, b: a == b or not s.inside[a] or not s.inside[b])

    @claims.each_step("GROWS")
    def tickets_grow(before: State, after: State) -> object:
        """A ticket number never falls."""
        return after.ticket >= before.ticket

    @claims.always("FEW")
    def few_tickets(s: State) -> object:
        """Fewer than two tickets are given: false."""
        return s.ticket < 2

    @claims.always("VACUOUS", witnesses=("ticket_seven",))
    def after_seven_nobody_is_inside(s: State) -> object:
        """From ticket seven on nobody is inside: never exercised in a small scope."""
        return s.ticket < 7 or every(workers, lambda w: not s.inside[w])

    @claims.sometimes()
    def somebody_is_inside(s: State) -> object:
        """A worker is inside."""
        return s.held_by.present

    @claims.sometimes()
    def ticket_seven(s: State) -> object:
        """The seventh ticket is given."""
        return s.ticket >= 7

    @claims.supporting(supports=("ONE",))
    def who_is_inside_holds_it(s: State) -> object:
        """Who is inside holds the lock."""
        return every(workers, lambda w: not s.inside[w] or s.held_by == w)

    return claims
