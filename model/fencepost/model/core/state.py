"""The state of the core: one instance's row and event log, workers with beliefs, commits on their way.

Left out, and why that is safe: steps and their statuses (a commit here stands for any change of state),
requests of those without a lease (they move no version), and the clock itself (a lease is live or over, and
`expire` may happen at any moment while it is live: every clock, right or wrong, is one of these behaviours).
"""

from __future__ import annotations

from fencepost.model.domains import BOOLEAN, Counter, Element, Enumeration, Family, Optional, Record, Sort
from fencepost.model.language import State, absent, derived, some
from fencepost.model.protocol import HISTORY, Protocol

WORKER, NETWORK, CLOCK, SUPERVISOR, WORLD = "worker", "network", "clock", "supervisor", "world"
"""Who acts: workers; the network, which delivers; the clock; who restarts and resumes; all that fails."""

STORE = "store"

workers = Sort("worker")
commits = Sort("commit")
lease_versions = Counter("lease_version")
state_versions = Counter("state_version")
incarnations = Counter("incarnation")

Owner = Record("Owner", worker=workers, incarnation=incarnations)
Versions = Record("Versions", lease=lease_versions, state=state_versions)
Request = Record("Request", by=Owner, lease=lease_versions, state=state_versions, finishes=BOOLEAN)
Answer = Enumeration(
    "Answer",
    "none",
    "ok",
    "finished",
    "lease-live",
    "stale-lease-version",
    "not-the-owner",
    "lease-expired",
    "stale-state-version",
)

core = Protocol("core", answers=Answer)

_variable = core.variable
# The row and the event log: what the store keeps.
_variable("owner", Optional(Owner), absent, home=STORE, meaning="who acquired last: worker and incarnation")
_variable("lease_version", lease_versions, 0, home=STORE, meaning="acquires so far; the fencing token")
_variable("live", BOOLEAN, False, home=STORE, meaning="whether now < expires_at")
_variable("state_version", state_versions, 0, home=STORE, meaning="accepted commits so far")
_variable("finished", BOOLEAN, False, home=STORE, meaning="whether the instance has reached its end")
_variable("log", Family(state_versions, of=Optional(commits)), absent, home=STORE,
          meaning="event log: the commit accepted as this state version")  # fmt: skip
# What each worker is and believes: gone when it crashes.
_variable("up", Family(workers, of=BOOLEAN), True, home=WORKER, meaning="whether its process runs")
_variable("paused", Family(workers, of=BOOLEAN), False, home=WORKER,
          meaning="whether it stands still, unaware")  # fmt: skip
_variable("incarnation", Family(workers, of=incarnations), 0, home=WORKER,
          meaning="restarts of that name so far")  # fmt: skip
_variable("believes", Family(workers, of=Optional(Versions)), absent, home=WORKER,
          meaning="the lease it takes for its own, and the versions it last read")  # fmt: skip
_variable("unsure", Family(workers, of=BOOLEAN), False, home=WORKER,
          meaning="whether it has to re-read the row first")  # fmt: skip
_variable("awaited", Family(commits, of=BOOLEAN), False, home=WORKER,
          meaning="whether the sender waits for an answer")  # fmt: skip
# What is on its way.
_variable("request", Family(commits, of=Optional(Request)), absent, home=NETWORK,
          meaning="what the commit with this id says, fixed when it is first sent")  # fmt: skip
_variable("in_flight", Family(commits, of=BOOLEAN), False, home=NETWORK,
          meaning="whether a copy may still arrive")  # fmt: skip
_variable("answer", Family(commits, of=Answer), Answer.none, home=NETWORK,
          meaning="the answer on its way back")  # fmt: skip
# What only claims read.
_variable("holder", Family(lease_versions, of=Optional(Owner)), absent, home=HISTORY,
          meaning="who acquired this lease version")  # fmt: skip

core.switch("crash", "a worker's process dies and loses all it believed; it may restart under the same name")
core.switch("pause", "a worker stands still for any length of time and goes on unaware")
core.switch("reply_lost", "the answer to a call is lost, although the call was decided")
core.switch("commit_lost", "a commit on its way is lost")
core.switch("commit_duplicated", "a commit arrives more than once")


@derived
def acts(s: State, w: Element) -> object:
    """Whether worker `w` can do anything now."""
    return s.up[w] and not s.paused[w]


def me(s: State, w: Element) -> object:
    """Worker `w` as an owner: its name and its incarnation."""
    return Owner(worker=w, incarnation=s.incarnation[w])


@derived
def in_log(s: State, c: Element) -> object:
    """Whether the event log holds the commit with id `c`."""
    return some(state_versions, lambda v: s.log[v] == c)
