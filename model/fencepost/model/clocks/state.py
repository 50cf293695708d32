"""The state of clocks: a lease with the moment at which it ends, and three clocks that need not agree.

The store's now is the larger of its clock and a mark that it keeps (§1). A worker counts its lease down by a
clock of its own, from before it asked for it (§3), and starts no effect when the count is over. A moment and
a tick have the same length; what it is does not matter.

Left out, and why that is safe: restarts and names of owners, renewal and release, commit ids, commits that
are late and answers that are lost (the core has them, and none reads a clock in another way than acquire and
commit do), steps and keys (`workflow`, `effects`). A worker has one request for the lease and one effect on
its way at a time; both, and the news that the lease is given, may arrive at any time later. A partition lets
nothing happen that could not happen without: a worker may be slow to call as it is. It is there to be seen.
"""

from __future__ import annotations

from fencepost.model.core.state import CLOCK, NETWORK, STORE, WORKER, lease_versions, state_versions, workers
from fencepost.model.domains import BOOLEAN, Counter, Enumeration, Family, Optional
from fencepost.model.language import State, absent, derived, ite
from fencepost.model.protocol import HISTORY, Protocol

DOWNSTREAM = "downstream"

moments = Counter("moment")
ticks = Counter("tick")

Answer = Enumeration(
    "Answer",
    "ok",
    "lease-live",
    "lease-version-exhausted",
    "stale-lease-version",
    "lease-expired",
    "stale-token",
)

clocks = Protocol("clocks", answers=Answer)

_variable = clocks.variable
# The row, what is done with it, and the store's clock, whose mark no refusal takes back.
_variable("owner", Optional(workers), absent, home=STORE, meaning="who acquired last")
_variable("lease_version", lease_versions, 0, home=STORE, meaning="acquires so far; the fencing token")
_variable("expires_at", moments, 0, home=STORE, meaning="the moment from which on the lease is over")
_variable("state_version", state_versions, 0, home=STORE, meaning="accepted commits so far")
_variable("exhausted", BOOLEAN, False, home=STORE, meaning="whether no larger lease version can be stored")
_variable("clock", moments, 0, home=CLOCK, meaning="what the store's clock shows")
_variable("mark", moments, 0, home=CLOCK, meaning="the largest now so far, kept by the store")
# What each worker believes and counts.
_variable("asks", Family(workers, of=Optional(ticks)), absent, home=NETWORK,
          meaning="the lease that it asks for, in ticks; the request is on its way")  # fmt: skip
_variable("granted", Family(workers, of=Optional(lease_versions)), absent, home=NETWORK,
          meaning="the lease version that it was given; the answer is on its way")  # fmt: skip
_variable("believes", Family(workers, of=Optional(lease_versions)), absent, home=WORKER,
          meaning="the lease version that it takes for its own")  # fmt: skip
_variable("left", Family(workers, of=ticks), 0, home=WORKER,
          meaning="ticks of its own clock for which it counts the lease as live")  # fmt: skip
_variable("cut_off", Family(workers, of=BOOLEAN), False, home=NETWORK,
          meaning="whether it cannot reach the store")  # fmt: skip
# The downstream.
_variable("sending", Family(workers, of=Optional(lease_versions)), absent, home=NETWORK,
          meaning="the token of its effect that is on its way")  # fmt: skip
_variable("fence", lease_versions, 0, home=DOWNSTREAM, meaning="the highest token recorded")
_variable("effects", state_versions, 0, home=DOWNSTREAM, meaning="effects that took place")

# What only claims read.
_variable("made_by", Family(state_versions, of=Optional(workers)), absent, home=HISTORY,
          meaning="who made this commit")  # fmt: skip
_variable("contacted", lease_versions, 0, home=HISTORY,
          meaning="the highest token under which an effect took place")  # fmt: skip
_variable("found_over", lease_versions, 0, home=CLOCK,
          meaning="the lease version last found to be over; only claims read it")  # fmt: skip

clocks.switch("clock_skewed", "a clock runs faster or slower than the others")
clocks.switch("clock_stepped_back", "the store's clock is set back")
clocks.switch("partitioned", "a worker cannot reach the store, and still reaches the downstream")
clocks.switch("tokens_exhausted", "the store can count no further lease version")


@derived
def now(s: State) -> object:
    """The store's now: its clock, but never less than it has been."""
    return ite(s.clock > s.mark, s.clock, s.mark)
