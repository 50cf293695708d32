"""The core with something wrong, or unusual: what each claim is shown to fail on, and what must not fail.

A variant is made by taking lines out of the model, so that it says only what is different. `breaks` names the
claims (by name) that must be refuted, with the exact length of the shortest run; no other claim may be.
"""

from __future__ import annotations

from fencepost.model.core import commits, leases, world
from fencepost.model.core.state import Versions, acts, core
from fencepost.model.domains import Element
from fencepost.model.language import State, when
from fencepost.model.mutate import without
from fencepost.model.protocol import Protocol
from fencepost.model.variants import Variant

assert commits, leases  # the core is complete only with all its modules  # noqa: S101
assert world  # noqa: S101


VARIANTS: dict[str, Variant] = {}


def _add(name: str, protocol: Protocol, story: str, faults: tuple[str, ...] = (), **breaks: int) -> None:
    VARIANTS[name] = Variant(name, protocol, story, "", breaks, faults)


def reread_by_name(s: State, w: Element) -> None:
    """A worker adopts the lease in the row when its own *name* stands there, whatever the incarnation."""
    when(acts(s, w))
    when(s.unsure[w])

    s.unsure[w] = False
    if s.owner.present and s.owner.worker == w:
        s.believes[w] = Versions(lease=s.lease_version, state=s.state_version)


def restart_unsure(s: State, w: Element) -> None:
    """A dead worker starts again and, remembering nothing, first reads the row."""
    when(not s.up[w])

    s.up[w] = True
    s.incarnation[w] = s.incarnation[w] + 1
    s.unsure[w] = True


_add(
    "late-commit-by-id",
    without(
        core,
        "late-commit-by-id",
        decide_commit=(
            '"stale-lease-version"', '"not-the-owner"', '"finished"', '"lease-expired"',
            '"stale-state-version"',
        ),
    ),
    "The write that settles the work finds the row by its id and compares nothing.",
    ("F01",),
    stale_worker_never_overrides=5,
    commit_matches_both_versions=5,
    the_end_is_final=5,
    commit_only_while_live=4,
)  # fmt: skip
_add(
    "status-only-guard",
    without(
        core,
        "status-only-guard",
        decide_commit=(
            '"stale-lease-version"',
            '"not-the-owner"',
            '"lease-expired"',
            '"stale-state-version"',
        ),
    ),
    "The settling write compares the status alone, which looks the same again after a takeover.",
    ("F02",),
    stale_worker_never_overrides=5,
    commit_matches_both_versions=5,
    commit_only_while_live=4,
)
_add(
    "state-version-only-guard",
    without(
        core,
        "state-version-only-guard",
        decide_commit=('"stale-lease-version"', '"not-the-owner"', '"lease-expired"'),
    ),
    "The settling write compares the state version but not the lease version.",
    ("F01", "F03"),
    stale_worker_never_overrides=5,
    commit_matches_both_versions=5,
    commit_only_while_live=4,
)
_add(
    "lease-version-not-raised",
    without(
        core,
        "lease-version-not-raised",
        acquire=("s.lease_version = s.lease_version + 1",),
        decide_commit=('"not-the-owner"',),
    ),
    "A takeover leaves the lease version as it was, and the commit compares versions only.",
    ("F13",),
    stale_worker_never_overrides=5,
    lease_version_only_grows=1,
    no_version_held_by_two=3,
    takeover_only_after_expiry=1,
)
_add(
    "no-state-version-check",
    without(core, "no-state-version-check", decide_commit=('"stale-state-version"',)),
    "The commit does not compare the state version: the last writer wins.",
    ("F04",),
    commit_matches_both_versions=5,
)
_add(
    "owner-by-name",
    core.variant("owner-by-name", reread=reread_by_name, restart=restart_unsure),
    "The owner is known by name alone, so a restarted worker adopts the lease of its former incarnation.",
    ("F11",),
    no_version_held_by_two=4,
)
_add(
    "takeover-from-a-live-owner",
    without(core, "takeover-from-a-live-owner", acquire=('"lease-live"',)),
    "A lease is taken while it is live.",
    ("F06",),
    takeover_only_after_expiry=2,
)
_add(
    "renewal-revives",
    without(core, "renewal-revives", renew=('"lease-expired"',)),
    "A renewal makes a lease live again that was over.",
    ("F08",),
    takeover_only_after_expiry=3,
)
_add(
    "release-by-anyone",
    without(core, "release-by-anyone", release=('"stale-lease-version"', '"not-the-owner"')),
    "A release compares nothing, so a former owner ends the new owner's lease.",
    ("F10",),
    only_expiry_or_the_owner_ends_a_lease=4,
)
_add(
    "no-commit-id",
    without(core, "no-commit-id", decide_commit=("if in_log(s, c)",)),
    "The store does not know a commit that it accepted before, and refuses its second copy.",
    ("F12",),
    what_was_refused_is_not_in_the_log=4,
)
_add(
    "at-least-once-log",
    without(core, "at-least-once-log", decide_commit=("if in_log(s, c)", '"stale-state-version"')),
    "Neither the commit id nor the state version is compared, so one that arrives twice is logged twice.",
    ("F12", "F04"),
    commit_matches_both_versions=4,
    log_has_each_commit_once=4,
    what_was_refused_is_not_in_the_log=4,
)
_add(
    "commits-after-the-end",
    without(core, "commits-after-the-end", decide_commit=('"finished"',)),
    "A commit is accepted although the instance has reached its end.",
    ("F05",),
    the_end_is_final=6,
)
_add(
    "no-restart",
    core.variant("no-restart", without=["restart"]),
    "A worker that died stays dead.",
    no_stuck_state=2,
)
_add(
    "commits-after-expiry",
    without(core, "commits-after-expiry", decide_commit=('"lease-expired"',)),
    "Correct but unusual: a commit is accepted after expiry as long as nobody has taken over.",
    commit_only_while_live=4,
)
_add(
    "owner-not-compared",
    without(core, "owner-not-compared", decide_commit=('"not-the-owner"',)),
    "Correct but unusual: the commit compares both versions but not the owner, whom they imply.",
)
