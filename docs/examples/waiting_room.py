"""A waiting room: a machine gives out numbers, and a desk serves who holds the number on the display."""

from fencepost.model import (
    BOOLEAN,
    HISTORY,
    Counter,
    Element,
    Enumeration,
    Family,
    Member,
    Optional,
    Protocol,
    Sort,
    State,
    Step,
    absent,
    at_most_one,
    can_move,
    derived,
    every,
    refuse_unless,
    some,
    when,
)
from fencepost.properties import Claims

visitors = Sort("visitor")
numbers = Counter("number")
Answer = Enumeration("Answer", "ok", "closed", "not-your-turn")

room = Protocol("waiting room", answers=Answer)

room.variable("next", numbers, 0, home="machine", meaning="the number of the next ticket")
room.variable("closed", BOOLEAN, False, home="machine", meaning="whether it gives out no more tickets")
room.variable("display", numbers, 0, home="desk", meaning="the number that is called")
room.variable("served", Family(visitors, of=BOOLEAN), False, home="desk", meaning="who is at the desk")
room.variable("ticket", Family(visitors, of=Optional(numbers)), absent, home="visitor", meaning="in hand")
room.variable("took", Family(numbers, of=Optional(visitors)), absent, home=HISTORY, meaning="who took which")

room.switch("leaving", "a visitor goes home with a ticket in hand")


def hold(s: State, v: Element, answer: Member) -> None:
    """The visitor takes the ticket out of the machine, if there is one."""
    if answer == Answer.ok:
        s.ticket[v] = s.next - 1


@room.operation("visitor", home="machine", answered=hold, v=visitors)
def take_ticket(s: State, v: Element) -> None:
    """A visitor without a ticket asks the machine for one."""
    when(not s.ticket[v].present)
    refuse_unless(not s.closed, "closed")

    s.took[s.next] = v
    s.next = s.next + 1


@room.operation("visitor", home="desk", v=visitors)
def step_up(s: State, v: Element) -> None:
    """A visitor steps up to the desk."""
    refuse_unless(s.ticket[v] == s.display, "not-your-turn")

    s.served[v] = True


@room.action("desk", v=visitors)
def finish(s: State, v: Element) -> None:
    """The desk has served a visitor and keeps the ticket."""
    when(s.served[v])

    s.served[v] = False
    s.ticket[v] = absent


@derived
def somebody_is_called(s: State) -> object:
    """Whether somebody in the room holds the number on the display."""
    return some(visitors, lambda v: s.ticket[v] == s.display)


@room.action("desk")
def call_next(s: State) -> None:
    """The desk calls the next number when nobody in the room holds the one on the display."""
    when(s.display < s.next)
    when(not somebody_is_called(s))

    s.display = s.display + 1


@room.action("clock")
def close(s: State) -> None:
    """It is five o'clock: the machine gives out no more tickets."""
    s.closed = True


@room.action("world", switch="leaving", v=visitors)
def go_home(s: State, v: Element) -> None:
    """A visitor who is not at the desk leaves, and nobody is told."""
    when(not s.served[v])

    s.ticket[v] = absent


room.scope(
    "small",
    sizes={"visitor": 2},
    bounds={"number": 3},
    switches=("leaving",),
    why="two visitors, who come back: the smallest in which somebody can be overtaken",
)

claims = Claims("waiting room")


@claims.always(witnesses=("two_wait",))
def one_at_a_time(s: State) -> object:
    """At most one visitor is at the desk."""
    return at_most_one(visitors, lambda v: s.served[v])


@claims.always(witnesses=("two_wait",))
def nobody_is_passed_over(s: State) -> object:
    """No visitor in the room holds a number that comes before the one on the display."""
    return every(visitors, lambda v: not s.ticket[v].present or s.ticket[v] >= s.display)


@claims.always(witnesses=("a_visitor_gives_up",))
def who_is_served_took_the_number(s: State) -> object:
    """A visitor at the desk is the one who took the number on the display."""
    return every(visitors, lambda v: not s.served[v] or s.took[s.display] == v)


@claims.each_step(witnesses=("a_visitor_is_turned_away",))
def a_closed_machine_gives_no_tickets(before: State, after: State) -> object:
    """Once the machine is closed, its next number stays as it is."""
    return not before.closed or after.next == before.next


@claims.each_step(witnesses=("a_visitor_was_served",))
def a_ticket_serves_once(before: State, after: State) -> object:
    """A visitor who leaves the desk leaves the ticket there."""
    return every(visitors, lambda v: not before.served[v] or after.served[v] or not after.ticket[v].present)


@claims.always(witnesses=("two_wait",))
def the_room_never_stands_still(s: State) -> object:
    """While somebody holds a ticket, a visitor or the desk can do something."""
    return every(visitors, lambda v: not s.ticket[v].present) or can_move(s, "visitor", "desk")


@claims.supporting(supports=("one_at_a_time", "nobody_is_passed_over"))
def no_number_is_held_twice(s: State) -> object:
    """Two visitors never hold the same number."""
    return every(
        visitors, visitors, lambda v, w: v == w or not s.ticket[v].present or s.ticket[v] != s.ticket[w]
    )


@claims.supporting(supports=("one_at_a_time", "who_is_served_took_the_number"))
def tickets_come_from_the_machine(s: State) -> object:
    """Every ticket has a number that the machine gave to its holder."""
    return every(
        visitors,
        lambda v: not s.ticket[v].present or (s.ticket[v] < s.next and s.took[s.ticket[v].value] == v),
    )


@claims.supporting(supports=("one_at_a_time", "nobody_is_passed_over"))
def who_is_served_was_called(s: State) -> object:
    """A visitor at the desk holds the number on the display."""
    return every(visitors, lambda v: not s.served[v] or s.ticket[v] == s.display)


@claims.supporting(supports=("nobody_is_passed_over",))
def only_given_numbers_are_called(s: State) -> object:
    """The number on the display is at most the next one of the machine."""
    return s.display <= s.next


@claims.sometimes()
def two_wait(s: State) -> object:
    """Two visitors hold tickets at the same time."""
    return not at_most_one(visitors, lambda v: s.ticket[v].present)


@claims.sometimes()
def a_visitor_was_served(before: State, after: State) -> object:
    """A visitor leaves the desk."""
    return some(visitors, lambda v: before.served[v] and not after.served[v])


@claims.sometimes()
def a_visitor_gives_up(before: State, after: State) -> object:
    """A visitor leaves, unserved, just when the number is called."""
    return some(
        visitors,
        lambda v: before.ticket[v] == before.display and not before.served[v] and not after.ticket[v].present,
    )


@claims.sometimes()
def a_visitor_is_turned_away(before: State, after: State, step: Step) -> object:
    """A visitor asks a closed machine for a ticket, and gets none."""
    return before.closed and step.outcome == "closed" and after.closed
