"""A small lease and commit protocol for the tests of the solver, with its claims and broken variants.

Left out: everything that the real protocol has besides acquire, expiry, crash, and commits on their way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencepost.checker import smt
from fencepost.checker.smt import ProofResult
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
    Record,
    Sort,
    State,
    Step,
    absent,
    every,
    implies,
    refuse_unless,
    switched,
    when,
)

workers = Sort("worker")
commits = Sort("commit")
lease_versions = Counter("lease_version")
state_versions = Counter("state_version")
Answer = Enumeration("Answer", "ok", "lease-live", "stale-lease-version", "stale-state-version", "expired")
Belief = Record("Belief", lease=lease_versions, state=state_versions)

LEASES = Protocol("leases", answers=Answer)


def _variable(name: str, domain: Any, first: Any, home: str) -> None:
    LEASES.variable(name, domain, first, home=home, meaning=name)


_variable("owner", Optional(workers), absent, "store")
_variable("lease", lease_versions, 0, "store")
_variable("live", BOOLEAN, False, "store")
_variable("version", state_versions, 0, "store")
_variable("believed", Family(workers, of=Optional(Belief)), absent, "worker")
_variable("used", Family(commits, of=BOOLEAN), False, "network")
_variable("sent", Family(commits, of=BOOLEAN), False, "network")
_variable("sent_by", Family(commits, of=workers), workers.element(0), "network")
_variable("sent_lease", Family(commits, of=lease_versions), 0, "network")
_variable("sent_state", Family(commits, of=state_versions), 0, "network")
_variable("answer", Family(commits, of=Optional(Answer)), absent, "network")
_variable("holder", Family(lease_versions, of=workers), workers.element(0), HISTORY)
LEASES.switch("duplicated", "a commit is delivered again")
LEASES.switch("crash", "a worker forgets what it believed")


def learn_acquired(s: State, w: Element, answer: Member) -> None:
    if answer == Answer.ok:
        s.believed[w] = Belief(lease=s.lease, state=s.version)
        s.holder[s.lease] = w


def acquire_but(s: State, w: Element, *, without: str) -> None:
    if without != "live":
        refuse_unless(not s.live, "lease-live")

    s.owner = w
    if without != "raise":
        s.lease = s.lease + 1
    s.live = True


@LEASES.operation("worker", home="store", answered=learn_acquired, w=workers)
def acquire(s: State, w: Element) -> None:
    """A worker takes the lease when none is live."""
    acquire_but(s, w, without="")


@LEASES.action("world")
def expire(s: State) -> None:
    """The lease is over."""
    when(s.live)
    s.live = False


@LEASES.action("worker", w=workers, c=LEASES.fresh(commits, unless="used"))
def send(s: State, w: Element, c: Element) -> None:
    """A worker sends a commit on what it believes."""
    when(s.believed[w].present)
    s.used[c] = True
    s.sent[c] = True
    s.sent_by[c] = w
    s.sent_lease[c] = s.believed[w].lease
    s.sent_state[c] = s.believed[w].state


def answer_arrives(s: State, c: Element, again: bool, answer: Member) -> None:
    s.answer[c] = answer
    if not again:
        s.sent[c] = False


def deliver_but(s: State, c: Element, again: bool, *, without: str) -> None:
    when(s.sent[c])
    when(not again or switched("duplicated"))
    if without != "lease":
        refuse_unless(s.sent_lease[c] == s.lease, "stale-lease-version")
    if without != "state":
        refuse_unless(s.sent_state[c] == s.version, "stale-state-version")
    if without != "expired":
        refuse_unless(s.live, "expired")

    s.version = s.version + 1


@LEASES.operation("network", home="store", answered=answer_arrives, c=commits, again=BOOLEAN)
def deliver(s: State, c: Element, again: bool) -> None:
    """A commit arrives and the store decides it; `again` leaves another copy on its way."""
    deliver_but(s, c, again, without="")


@LEASES.action("worker", w=workers, c=commits)
def learn(s: State, w: Element, c: Element) -> None:
    """A worker learns what became of its commit."""
    when(s.sent_by[c] == w)
    when(s.answer[c].present)
    if s.answer[c] == Answer.ok and s.believed[w].present:
        s.believed[w] = s.believed[w].value.changed(state=s.sent_state[c] + 1)
    s.answer[c] = absent


@LEASES.action("world", switch="crash", w=workers)
def crash(s: State, w: Element) -> None:
    """A worker forgets."""
    when(s.believed[w].present)
    s.believed[w] = absent


def acquire_a_live_lease(s: State, w: Element) -> None:
    acquire_but(s, w, without="live")


def acquire_without_raising(s: State, w: Element) -> None:
    acquire_but(s, w, without="raise")


def deliver_under_any_lease(s: State, c: Element, again: bool) -> None:
    deliver_but(s, c, again, without="lease")


def deliver_on_any_state(s: State, c: Element, again: bool) -> None:
    deliver_but(s, c, again, without="state")


def deliver_after_expiry(s: State, c: Element, again: bool) -> None:
    deliver_but(s, c, again, without="expired")


VARIANTS = {
    "live": LEASES.variant("acquires a live lease", acquire=acquire_a_live_lease),
    "raise": LEASES.variant("acquires without raising", acquire=acquire_without_raising),
    "lease": LEASES.variant("delivers under any lease", deliver=deliver_under_any_lease),
    "state": LEASES.variant("delivers on any state", deliver=deliver_on_any_state),
    "expired": LEASES.variant("delivers after expiry", deliver=deliver_after_expiry),
}

SMALL = LEASES.scope(
    "small",
    sizes={"worker": 2, "commit": 2},
    bounds={"lease_version": 2, "state_version": 2},
    switches=("duplicated", "crash"),
    why="the smallest with a takeover",
)


def stale_worker_never_overrides(before: State, after: State) -> object:
    """A commit that raised the state version was sent by the owner under the current lease version."""
    return implies(
        after.version > before.version,
        lambda: every(
            commits,
            lambda c: (
                not before.sent[c]
                or after.answer[c] == before.answer[c]
                or (before.owner == before.sent_by[c] and before.sent_lease[c] == before.lease)
            ),
        ),
    )


def accepted_on_the_current_state(before: State, after: State) -> object:
    """A commit that raised the state version expected the state version that stood."""
    return implies(
        after.version > before.version,
        lambda: every(
            commits,
            lambda c: (
                not before.sent[c]
                or after.answer[c] == before.answer[c]
                or before.sent_state[c] == before.version
            ),
        ),
    )


def accepted_only_while_live(before: State, _after: State, step: Step) -> object:
    """An accepted commit was made while its lease was live."""
    return implies(step.action == "deliver" and step.outcome == "ok", before.live)


def taken_over_only_after_expiry(before: State, after: State) -> object:
    """The owner changes only when no lease is live."""
    return implies(before.live, after.owner == before.owner)


def state_version_counts_commits(before: State, after: State, step: Step) -> object:
    """The state version rises by one per accepted commit and by nothing else."""
    if step.action == "deliver" and step.outcome == "ok":
        return after.version == before.version + 1
    return after.version == before.version


def refused_changes_nothing(before: State, after: State, step: Step) -> object:
    """A refusal leaves the store as it was."""
    return implies(
        step.refused,
        after.version == before.version and after.lease == before.lease and after.live == before.live,
    )


def live_leases_have_an_owner(s: State) -> object:
    """A live lease has an owner."""
    return not s.live or s.owner.present


def believed_leases_were_held(s: State) -> object:
    """Who believes in a lease version held it."""
    return every(
        workers,
        lambda w: (
            not s.believed[w].present
            or (
                s.believed[w].lease >= 1
                and s.believed[w].lease <= s.lease
                and s.holder[s.believed[w].lease] == w
            )
        ),
    )


def sent_by_the_holder(s: State) -> object:
    """A commit on its way was sent by the holder of its lease version."""
    return every(
        commits,
        lambda c: (
            not s.sent[c]
            or (
                s.sent_lease[c] >= 1
                and s.sent_lease[c] <= s.lease
                and s.holder[s.sent_lease[c]] == s.sent_by[c]
            )
        ),
    )


def owner_is_the_holder(s: State) -> object:
    """The owner is who held the newest lease version."""
    return s.lease == 0 or (s.owner.present and s.holder[s.lease] == s.owner.value)


Claims = dict[str, Callable[..., Any]]


def named(*functions: Callable[..., Any]) -> Claims:
    """The functions by name."""
    return {f.__name__: f for f in functions}


CLAIMS = named(live_leases_have_an_owner)
STEPS = named(
    stale_worker_never_overrides,
    accepted_on_the_current_state,
    accepted_only_while_live,
    taken_over_only_after_expiry,
    state_version_counts_commits,
    refused_changes_nothing,
)
SUPPORTING = named(believed_leases_were_held, sent_by_the_holder, owner_is_the_holder)


def prove(
    protocol: Protocol, claims: Claims, steps: Claims, supporting: Claims, **options: Any
) -> ProofResult:
    """`smt.prove` with time enough on a busy machine."""
    return smt.prove(protocol, claims, steps, supporting, **{"timeout_s": 30.0, "budget_s": 300.0, **options})


def lost(result: ProofResult) -> set[str]:
    """What was not proved."""
    return {name for name, proved in result.proved.items() if not proved}
