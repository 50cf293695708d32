"""Clocks with something wrong, or unusual: what each claim is shown to fail on.

A variant is made by taking lines out of the model, or by making them say something else, so that it says only
what is different. `breaks` names the claims (by name) that must be refuted in the variant's scope, with the
exact length of the shortest run; no other claim may be.
"""

from __future__ import annotations

from fencepost.model.clocks import leases, scopes, world
from fencepost.model.clocks.state import clocks
from fencepost.model.mutate import with_lines, without
from fencepost.model.variants import Variant, adding_to

assert leases, scopes  # the protocol is complete only with all its modules  # noqa: S101
assert world  # noqa: S101

VARIANTS: dict[str, Variant] = {}
_add = adding_to(VARIANTS, scope="quick")

_LOOK = "look_at_the_clock(s)"
_CLOCK = "s.mark = s.clock\ns.found_over = ite(s.mark >= s.expires_at, s.lease_version, s.found_over)"
_FOUND = "s.found_over = ite(now(s) >= s.expires_at, s.lease_version, s.found_over)"

_add(
    without(clocks, "commits-under-any-version", commit=('"stale-lease-version"',)),
    "A commit is accepted while a lease is live, whoever has it.",
    ("F1",),
    stale_worker_never_overrides=7,
)
_add(
    without(clocks, "commits-by-the-state-alone", commit=('"lease-expired"',)),
    "Correct but unusual: a commit is accepted after expiry as long as nobody has taken over.",
    commit_only_while_live=5,
    what_is_over_stays_over=6,
)
_add(
    without(clocks, "gives-a-live-lease", acquire=('"lease-live"',)),
    "A lease is given while another is live.",
    takeover_only_after_expiry=4,
    who_starts_an_effect_holds_the_lease=6,
)
_add(
    without(clocks, "counts-beyond-the-last", acquire=('"lease-version-exhausted"',)),
    "No heed is paid to the largest number that can be stored: the next version is anything.",
    lease_version_only_grows=3,
)
_add(
    with_lines(clocks, "wraps-around", acquire={
        'refuse_unless(not s.exhausted, "lease-version-exhausted")': "",
        "s.lease_version = s.lease_version + 1": (
            "if s.exhausted:\n    s.lease_version = 1\nelse:\n    s.lease_version = s.lease_version + 1"
        ),
    }),
    "After the largest lease version that can be stored comes the first again.",
    stale_worker_never_overrides=8,
    lease_version_only_grows=3,
    what_is_over_stays_over=8,
)  # fmt: skip
_add(
    with_lines(clocks, "goes-by-the-clock", acquire={_LOOK: _CLOCK}, commit={_LOOK: _CLOCK}),
    "The store goes by its clock alone, which may be set back: a lease that was over is live again.",
    only_an_acquire_gives_time=9,
    commit_only_while_live=9,
    what_is_over_stays_over=8,
    now_never_steps_back=6,
)
_add(
    with_lines(clocks, "looks-once", commit={_LOOK: "s.mark = s.mark"}),
    "A commit is judged by the moment of the last acquire, and not by now.",
    commit_only_while_live=5,
    now_never_steps_back=5,
)
_add(
    with_lines(clocks, "acquire-keeps-no-mark", acquire={
        _LOOK: _FOUND, "s.mark >= s.expires_at": "now(s) >= s.expires_at",
        "s.expires_at = s.mark": "s.expires_at = now(s)",
    }),
    "A request for the lease is judged by the store's now, and the mark is not kept.",
    what_is_over_stays_over=9,
    now_never_steps_back=3,
)  # fmt: skip
_add(
    with_lines(clocks, "commit-keeps-no-mark", commit={
        _LOOK: _FOUND, "s.mark < s.expires_at": "now(s) < s.expires_at",
    }),
    "A commit is judged by the store's now, and the mark is not kept: what it found over is live again.",
    what_is_over_stays_over=8,
    now_never_steps_back=5,
)  # fmt: skip
_add(
    with_lines(clocks, "anybody-commits-for-the-owner", commit={
        "s.believes[w].value == s.lease_version": "s.believes[s.owner.value] == s.lease_version",
    }),
    "A commit is accepted while its owner holds the lease, whoever sends it.",
    ("F1",),
    stale_worker_never_overrides=8,
)  # fmt: skip
_add(
    with_lines(clocks, "commits-prolong-the-lease", commit={
        "s.state_version = s.state_version + 1": (
            "s.state_version = s.state_version + 1\ns.expires_at = s.expires_at + 1"
        ),
    }),
    "A commit moves the end of the lease.",
    only_an_acquire_gives_time=4,
)  # fmt: skip
_add(
    with_lines(clocks, "gives-a-tick-more", acquire={
        "s.expires_at = s.mark + s.asks[w].value": "s.expires_at = s.mark + s.asks[w].value + 1",
    }),
    "A lease is given for longer than was asked.",
    only_an_acquire_gives_time=2,
)  # fmt: skip
_add(
    with_lines(clocks, "counts-twice", commit={
        "s.state_version = s.state_version + 1": "s.state_version = s.state_version + 2",
    }),
    "A commit is counted twice.",
    state_version_counts_commits=4,
)  # fmt: skip
_add(
    with_lines(clocks, "records-no-token", take_effect={
        "s.fence = s.sending[w].value": "s.fence = ite(s.cut_off[w], s.fence, s.sending[w].value)",
    }),
    "The downstream does not record the token of a worker that is cut off from the store.",
    stale_effect_never_lands_after_contact=6,
)  # fmt: skip
_add(
    without(clocks, "starts-without-a-count", start_effect=("when(s.left[w] >= 1)",)),
    "A worker starts effects as long as nobody has told it that its lease is over.",
    ("F3",),
    who_starts_an_effect_holds_the_lease=5,
)
_add(
    with_lines(clocks, "counts-from-the-answer", receive={
        "s.granted[w] = absent": "s.granted[w] = absent\ns.left[w] = s.left[w] + 1",
    }),
    "A worker counts its lease from when it hears of it; the answer took a tick to come.",
    who_starts_an_effect_holds_the_lease=5,
)  # fmt: skip
_add(
    without(clocks, "fence-not-looked-at", take_effect=('"stale-token"',)),
    "The downstream records tokens and does not compare them.",
    fence_only_rises=11,
    stale_effect_never_lands_after_contact=11,
)
_add(
    with_lines(clocks, "writes-when-refused", acquire={
        "s.left[w] = 0": "s.left[w] = 0\ns.owner = w",
    }),
    "A request for the lease that is refused leaves its sender's name in the row.",
    stale_worker_never_overrides=6,
    refused_changes_nothing=3,
)  # fmt: skip
