"""Abstract two-phase commit, as the field's common example states it: a transaction manager and its resource
managers.

It has nothing to do with leases; it shows that the language serves other protocols, with the state counts
that other tools give for it. Messages are sets that only grow, so delay, loss and duplication are all
covered.
"""

from __future__ import annotations

from fencepost.model import BOOLEAN, Element, Enumeration, Family, Protocol, Scope, Sort, State, every, when

Manager = Enumeration("Manager", "working", "prepared", "committed", "aborted")
Coordinator = Enumeration("Coordinator", "init", "committed", "aborted")
managers = Sort("manager")
HOME = "all"


def two_phase(count: int) -> tuple[Protocol, Scope]:
    """The protocol with `count` resource managers, and its scope."""
    p = Protocol("two-phase commit")
    p.variable(
        "state", Family(managers, of=Manager), Manager.working, home=HOME, meaning="each manager's state"
    )
    p.variable(
        "coordinator", Coordinator, Coordinator.init, home=HOME, meaning="the transaction manager's state"
    )
    p.variable("heard", Family(managers, of=BOOLEAN), False, home=HOME, meaning="who is known to be prepared")
    p.variable("said", Family(managers, of=BOOLEAN), False, home=HOME, meaning="prepared messages sent")
    p.variable("commit_sent", BOOLEAN, False, home=HOME, meaning="whether the commit message was sent")
    p.variable("abort_sent", BOOLEAN, False, home=HOME, meaning="whether the abort message was sent")

    @p.action("coordinator", m=managers)
    def hear(s: State, m: Element) -> None:
        when(s.coordinator == Coordinator.init)
        when(s.said[m])
        s.heard[m] = True

    @p.action("coordinator")
    def commit(s: State) -> None:
        when(s.coordinator == Coordinator.init)
        when(every(managers, lambda m: s.heard[m]))
        s.coordinator = Coordinator.committed
        s.commit_sent = True

    @p.action("coordinator")
    def abort(s: State) -> None:
        when(s.coordinator == Coordinator.init)
        s.coordinator = Coordinator.aborted
        s.abort_sent = True

    @p.action("manager", m=managers)
    def prepare(s: State, m: Element) -> None:
        when(s.state[m] == Manager.working)
        s.state[m] = Manager.prepared
        s.said[m] = True

    @p.action("manager", m=managers)
    def choose_to_abort(s: State, m: Element) -> None:
        when(s.state[m] == Manager.working)
        s.state[m] = Manager.aborted

    @p.action("manager", m=managers)
    def receive_commit(s: State, m: Element) -> None:
        when(s.commit_sent)
        s.state[m] = Manager.committed

    @p.action("manager", m=managers)
    def receive_abort(s: State, m: Element) -> None:
        when(s.abort_sent)
        s.state[m] = Manager.aborted

    scope = p.scope(
        f"{count} managers", sizes={"manager": count}, bounds={}, why="the sizes that others have counted"
    )
    return p, scope


def consistent(s: State) -> object:
    """No manager has committed while another has aborted."""
    return every(
        managers,
        managers,
        lambda a, b: not (s.state[a] == Manager.committed and s.state[b] == Manager.aborted),
    )


CLAIMS = (consistent,)
