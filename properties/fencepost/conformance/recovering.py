"""What an implementation gives so that its recovery can be validated: checkpoints and definitions (§8, §14).

A world has one instance whose steps run one after another. A worker takes it up in the parts of §8, and the
harness calls one part at a time, so that everything can happen in between. Definitions are numbers: the
instance begins with 0, and 1 is that of other code. How far a worker is, and what it has resumed, is read
from the worker itself; what is stored, and what was reported, by the back door.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from fencepost.conformance.adapter import Adapter, Answer, Observation, Worker


@dataclass(frozen=True, slots=True)
class Steps:
    """How far an instance is: the number of steps that have succeeded, and what the next one does.

    `now` is ``pending``, ``running`` or ``waiting``, for an approval.
    """

    done: int = 0
    now: str = "pending"


@dataclass(frozen=True, slots=True)
class Recovered:
    """How far a worker's recovery is, and the steps as it has resumed them and has changed them since.

    `phase` is ``idle``, ``checked`` (before acquire), ``acquired``, ``resumed``, or ``misfit``: its code is
    not for the checkpoint, which is sound. It has steps in the last two. `lease` are the lease version and
    the state version that it goes by, None while it takes itself for no owner.
    """

    phase: str = "idle"
    steps: Steps = Steps()
    lease: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint as the back door reads it. `mac_fits` is true of all that were written without a key.

    `readable` is whether its format is known, `ours` whether it names this instance. `lease_version` is that
    of the commit that it was written with.
    """

    readable: bool
    ours: bool
    lease_version: int
    state_version: int
    definition: int
    steps: Steps
    hash_fits: bool
    mac_fits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryObservation(Observation):
    """What is stored, as the commit with state version `version` left it, with the checkpoint.

    `committed_under` is the lease version of that commit, 0 before the first. `manual` is whether the
    instance was handed to a person, `come` whether an approval lies in the inbox that no commit has consumed,
    `reported` whether anybody was ever told of a bad checkpoint.
    """

    version: int
    standing: Steps
    definition: int
    committed_under: int
    manual: bool
    checkpoint: Checkpoint | None
    come: bool
    reported: bool


@runtime_checkable
class RecoveringWorker(Worker, Protocol):
    """One handle of one worker, with its recovery. `read` adopts a lease of its own that it finds."""

    def deploy(self, definition: int) -> None:
        """Its code is of this definition from now on; told before anything else is called."""
        ...

    def check(self) -> Answer:
        """Look at the checkpoint before acquiring: `Ok`, be it sound or reported as bad."""
        ...

    def resume(self) -> Answer:
        """After acquiring, check again and take up the steps, or report, and release the lease.

        `Ok` for either, or the refusal of the release.
        """
        ...

    def change(self, what: str) -> Answer:
        """Commit: ``start``, ``wait``, ``wake`` or ``succeed`` with the next step, or ``finish`` with it.

        ``migrate`` and ``hand-over`` are asked for where its code does not fit, and it does what is right.
        """
        ...

    def unheard(self) -> None:
        """The answer to the last call was lost: whatever it said, the worker does not know it."""
        ...

    def recovered(self) -> Recovered:
        """How far it is, from its own memory."""
        ...


@runtime_checkable
class RecoveringAdapter(Adapter, Protocol):
    """The adapter of recoveries: its workers are `RecoveringWorker`, it observes `RecoveryObservation`."""

    @property
    def has_mac_key(self) -> bool:
        """Whether a key for the MAC is configured."""
        ...

    def register_migration(self, world: Any, former: int, later: int) -> None:
        """From now on code of the definition `later` may go on with instances of `former`."""
        ...

    def give(self, world: Any, *, now_ms: int) -> None:
        """Somebody approves what the step waits for."""
        ...

    def plant(self, world: Any, checkpoint: Checkpoint | None) -> None:
        """Past the code under test, make the checkpoint one that reads like this; None takes it away."""
        ...


@runtime_checkable
class RecoveryAdapter(Adapter, Protocol):
    """An adapter with `Capability.RECOVERY`."""

    def recovering(self) -> RecoveringAdapter:
        """The adapter of its recoveries, for worlds of their own, with the same name and deviations."""
        ...
