"""How far finite readings look at the core: each scope with its reason. Bounds are cuts, never guards."""

from __future__ import annotations

from fencepost.model.core.state import core

ALL_SWITCHES = ("crash", "pause", "reply_lost", "commit_lost", "commit_duplicated")

core.scope(
    "quick",
    sizes={"worker": 2, "commit": 2},
    bounds={"lease_version": 2, "state_version": 2, "incarnation": 1},
    switches=("crash", "reply_lost", "commit_duplicated"),
    why="as small, without pauses and lost commits, which add waiting but no new kind of step: for sweeps",
)
core.scope(
    "small",
    sizes={"worker": 2, "commit": 2},
    bounds={"lease_version": 2, "state_version": 2, "incarnation": 1},
    switches=ALL_SWITCHES,
    why="two workers, one takeover and one restart: the smallest in which each claim can fail",
)
core.scope(
    "usual",
    sizes={"worker": 3, "commit": 2},
    bounds={"lease_version": 3, "state_version": 2, "incarnation": 1},
    switches=("crash", "commit_duplicated"),
    why="three workers who hold the lease in turn, with restarts and copies that arrive late; without "
    "pauses and lost messages, which small has: some minutes and 2 GB",
)
core.scope(
    "large",
    sizes={"worker": 3, "commit": 2},
    bounds={"lease_version": 3, "state_version": 2, "incarnation": 0},
    switches=ALL_SWITCHES,
    why="three workers, three leases and every fault, but no restart, so what needs one is not exercised: "
    "96 million states, some minutes and 4 GB",
)
