"""The common benchmark model: leases, a compare-and-set commit and a fenced downstream, as other tools state
it.

Its limits are guards, as in the originals, so that all tools count the same states. It is not the protocol
that fencepost checks (that one is in `fencepost.model`); it shows that the language serves other protocols
too.
"""

from __future__ import annotations

from fencepost.model import (
    BOOLEAN,
    Counter,
    Element,
    Enumeration,
    Family,
    Protocol,
    Scope,
    Sort,
    State,
    at_most_one,
    every,
    ite,
    when,
)

WORLD, WORKER = "world", "worker"
Phase = Enumeration("Phase", "idle", "held", "read", "called", "acked", "down")
TWICE = Counter("effects")


def lease(workers_count: int, versions: int, *, seeded_bug: bool = False) -> tuple[Protocol, Scope]:
    """The model with `workers_count` workers and lease versions up to `versions`, and its scope."""
    p = Protocol("lease")
    workers = Sort("worker")
    version = Counter("version")

    def var(name: str, domain: object, first: object, meaning: str) -> None:
        p.variable(name, domain, first, home="all", meaning=meaning)  # type: ignore[arg-type]

    var("lease", version, 0, "lease version")
    var("live", BOOLEAN, False, "whether the lease is live")
    var("state", Counter("state"), 0, "state version")
    var("fence", version, 0, "highest token the downstream recorded")
    var("effects", TWICE, 0, "how often the effect was applied")
    var("applied_by", version, 0, "token of the first application")
    var("committed_by", version, 0, "token of the commit")
    var("request", Family(version, of=BOOLEAN), False, "requests in flight, by token")
    var("reply", Family(version, of=BOOLEAN), False, "replies in flight, by token")
    var("phase", Family(workers, of=Phase), Phase.idle, "where the worker stands")
    var("token", Family(workers, of=version), 0, "the lease version it holds")
    var("read_state", Family(workers, of=Counter("state")), 0, "the state version it read")

    @p.action(WORLD)
    def expire(s: State) -> None:
        when(s.live)
        s.live = False

    @p.action(WORLD, v=version)
    def deliver(s: State, v: Element) -> None:
        when(s.request[v])
        s.request[v] = False
        if v >= s.fence:
            s.fence = v
            s.reply[v] = True
            if s.effects == 0:
                s.applied_by = v
            if seeded_bug:
                s.effects = ite(s.effects < 2, s.effects + 1, s.effects)
            else:
                s.effects = ite(s.effects == 0, 1, s.effects)

    @p.action(WORLD, v=version)
    def drop(s: State, v: Element) -> None:
        when(s.reply[v])
        s.reply[v] = False

    def to(s: State, w: Element, phase: object) -> None:
        s.phase[w] = phase
        s.token[w] = 0
        s.read_state[w] = 0

    @p.action(WORKER, w=workers)
    def acquire(s: State, w: Element) -> None:
        when(s.phase[w] == Phase.idle)
        when(not s.live)
        when(s.lease < versions)
        s.lease = s.lease + 1
        s.live = True
        s.phase[w] = Phase.held
        s.token[w] = s.lease

    @p.action(WORKER, w=workers)
    def read(s: State, w: Element) -> None:
        when(s.phase[w] == Phase.held)
        s.phase[w] = Phase.read
        s.read_state[w] = s.state

    @p.action(WORKER, w=workers)
    def done(s: State, w: Element) -> None:
        when(s.phase[w] == Phase.read)
        when(s.read_state[w] == 1)
        s.live = s.live if s.lease != s.token[w] else False
        to(s, w, Phase.idle)

    @p.action(WORKER, w=workers)
    def send(s: State, w: Element) -> None:
        when(s.phase[w] == Phase.read)
        when(s.read_state[w] == 0)
        s.request[s.token[w]] = True
        s.phase[w] = Phase.called

    @p.action(WORKER, w=workers)
    def resend(s: State, w: Element) -> None:
        when(s.phase[w] == Phase.called)
        when(not s.request[s.token[w]])
        s.request[s.token[w]] = True

    @p.action(WORKER, w=workers)
    def receive(s: State, w: Element) -> None:
        when(s.phase[w] == Phase.called)
        when(s.reply[s.token[w]])
        s.reply[s.token[w]] = False
        s.phase[w] = Phase.acked

    @p.action(WORKER, w=workers)
    def commit_accepted(s: State, w: Element) -> None:
        when(s.phase[w] == Phase.acked)
        when(s.lease == s.token[w])
        when(s.state == s.read_state[w])
        s.state = s.state + 1
        s.committed_by = s.token[w]
        s.live = False
        to(s, w, Phase.idle)

    @p.action(WORKER, w=workers)
    def commit_refused(s: State, w: Element) -> None:
        when(s.phase[w] == Phase.acked)
        when(not (s.lease == s.token[w] and s.state == s.read_state[w]))
        to(s, w, Phase.idle)

    @p.action(WORLD, w=workers)
    def crash(s: State, w: Element) -> None:
        when(s.phase[w] != Phase.down)
        when(s.phase[w] != Phase.idle)
        to(s, w, Phase.down)

    @p.action(WORLD, w=workers)
    def restart(s: State, w: Element) -> None:
        when(s.phase[w] == Phase.down)
        s.phase[w] = Phase.idle

    scope = p.scope(
        f"{workers_count} workers, versions to {versions}",
        sizes={"worker": workers_count},
        bounds={"version": versions, "state": 1, "effects": 2},
        why="the sizes at which other tools have been measured",
    )
    return p, scope


def one_effect(s: State) -> object:
    """The effect was applied at most once."""
    return s.effects <= 1


def commit_after_effect(s: State) -> object:
    """A commit follows its effect, under a token that was issued and recorded."""
    return s.state != 1 or (s.effects == 1 and s.committed_by <= s.lease and s.committed_by <= s.fence)


def tokens_make_sense(s: State) -> object:
    """Tokens were issued; who has a reply knows of an effect; no two workers hold one token."""
    workers, version = Sort("worker"), Counter("version")
    return every(
        workers,
        lambda w: (
            s.token[w] <= s.lease and (s.phase[w] != Phase.acked or (s.effects > 0 and s.fence >= s.token[w]))
        ),
    ) and every(version, lambda v: v == 0 or at_most_one(workers, lambda w: s.token[w] == v))


CLAIMS = (one_effect, commit_after_effect, tokens_make_sense)
