"""A small lease and commit protocol, with parts that can be left out, for the tests of the solver's readings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    every,
    implies,
    refuse_unless,
    when,
)

workers = Sort("worker")
commits = Sort("commit")
lease_versions = Counter("lease_version")
state_versions = Counter("state_version")
Answer = Enumeration("Answer", "ok", "lease-live", "stale-lease-version", "stale-state-version", "expired")
Belief = Record("Belief", lease=lease_versions, state=state_versions)


def lease_protocol(*without: str) -> Protocol:
    """The protocol `without` some of its guards: live, lease, state, expired, fresh, raise."""
    p = Protocol("leases", answers=Answer)

    def var(name: str, domain: Any, first: Any, home: str = "store") -> None:
        p.variable(name, domain, first, home=home, meaning=name)

    from fencepost.model import absent

    var("owner", Optional(workers), absent)
    var("lease", lease_versions, 0)
    var("live", BOOLEAN, False)
    var("version", state_versions, 0)
    var("believed", Family(workers, of=Optional(Belief)), absent, "worker")
    var("used", Family(commits, of=BOOLEAN), False, "network")
    var("sent", Family(commits, of=BOOLEAN), False, "network")
    var("sent_by", Family(commits, of=workers), workers.element(0), "network")
    var("sent_lease", Family(commits, of=lease_versions), 0, "network")
    var("sent_state", Family(commits, of=state_versions), 0, "network")
    var("answer", Family(commits, of=Optional(Answer)), absent, "network")
    var("holder", Family(lease_versions, of=workers), workers.element(0), HISTORY)
    p.switch("duplicated", "a commit is delivered again")

    def holder_learns(s: State, w: Element, answer: Member) -> None:
        if answer == Answer.ok:
            s.believed[w] = Belief(lease=s.lease, state=s.version)
            s.holder[s.lease] = w

    @p.operation("worker", home="store", answered=holder_learns, w=workers)
    def acquire(s: State, w: Element) -> None:
        """A worker takes the lease when none is live."""
        if "live" not in without:
            refuse_unless(not s.live, "lease-live")

        s.owner = w
        s.lease = s.lease if "raise" in without else s.lease + 1
        s.live = True

    @p.action("world")
    def expire(s: State) -> None:
        when(s.live)
        s.live = False

    @p.action("worker", w=workers, c=p.fresh(commits, unless="used"))
    def send(s: State, w: Element, c: Element) -> None:
        when(s.believed[w].present)
        s.used[c] = True
        s.sent[c] = True
        s.sent_by[c] = w
        s.sent_lease[c] = s.believed[w].lease
        s.sent_state[c] = s.believed[w].state

    def arrives(s: State, c: Element, again: bool, answer: Member) -> None:
        s.answer[c] = answer
        if not again:
            s.sent[c] = False

    @p.operation("store", home="store", answered=arrives, c=commits, again=BOOLEAN)
    def deliver(s: State, c: Element, again: bool) -> None:
        when(s.sent[c])
        if "lease" not in without:
            refuse_unless(s.sent_lease[c] == s.lease, "stale-lease-version")
        if "state" not in without:
            refuse_unless(s.sent_state[c] == s.version, "stale-state-version")
        if "expired" not in without:
            refuse_unless(s.live, "expired")

        s.version = s.version + 1

    @p.action("worker", w=workers, c=commits)
    def learn(s: State, w: Element, c: Element) -> None:
        when(s.sent_by[c] == w)
        when(s.answer[c].present)
        if s.answer[c] == Answer.ok and s.believed[w].present:
            s.believed[w] = s.believed[w].value.changed(state=s.sent_state[c] + 1)
        s.answer[c] = absent

    @p.action("world", w=workers)
    def crash(s: State, w: Element) -> None:
        when(s.believed[w].present)
        s.believed[w] = absent

    return p


def stale_worker_never_overrides(s: State, after: State, step: Step) -> object:
    """An accepted commit was made by the owner of the current lease version."""
    return implies(
        after.version > s.version,
        lambda: every(commits, lambda c: not s.sent[c] or after.answer[c] == s.answer[c]
                      or (s.owner == s.sent_by[c] and s.sent_lease[c] == s.lease)),
    )  # fmt: skip


def accepted_only_while_live(s: State, after: State, step: Step) -> object:
    """An accepted commit was made while its lease was live."""
    return implies(step.action == "deliver" and step.outcome == "ok", s.live)


def state_version_counts_commits(s: State, after: State, step: Step) -> object:
    """The state version rises by one per accepted commit and by nothing else."""
    if step.action == "deliver" and step.outcome == "ok":
        return after.version == s.version + 1
    return after.version == s.version


def refused_changes_nothing(s: State, after: State, step: Step) -> object:
    """A refusal leaves the store as it was."""
    return implies(step.refused, after.version == s.version and after.lease == s.lease and after.live == s.live)


def believed_leases_were_held(s: State) -> object:
    """Who believes in a lease version held it."""
    return every(
        workers,
        lambda w: not s.believed[w].present
        or (1 <= s.believed[w].lease and s.believed[w].lease <= s.lease and s.holder[s.believed[w].lease] == w),
    )


def sent_by_the_holder(s: State) -> object:
    """A commit in flight was sent by the holder of its lease version."""
    return every(
        commits,
        lambda c: not s.sent[c]
        or (1 <= s.sent_lease[c] and s.sent_lease[c] <= s.lease and s.holder[s.sent_lease[c]] == s.sent_by[c]),
    )


def owner_is_the_holder(s: State) -> object:
    """The owner is who held the newest lease version."""
    return s.lease == 0 or (s.owner.present and s.holder[s.lease] == s.owner.value)


def live_leases_have_an_owner(s: State) -> object:
    """A live lease has an owner."""
    return not s.live or s.owner.present


def sent_ones_are_used(s: State) -> object:
    """A commit in flight has a used id."""
    return every(commits, lambda c: implies(s.sent[c], s.used[c]))


Claims = dict[str, Callable[..., Any]]


def named(*functions: Callable[..., Any]) -> Claims:
    """The functions by name."""
    return {f.__name__: f for f in functions}


CLAIMS = named(live_leases_have_an_owner)
STEPS = named(
    stale_worker_never_overrides, accepted_only_while_live, state_version_counts_commits, refused_changes_nothing
)
SUPPORTING = named(believed_leases_were_held, sent_by_the_holder, owner_is_the_holder, sent_ones_are_used)
