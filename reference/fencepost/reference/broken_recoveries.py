"""Recoveries that are broken on purpose, for the conformance checks to find, and one that is of no use.

Each is the recovery with a question left out that it asks of a checkpoint, or with one of its parts done
otherwise. What compares the checkpoint with the row, behind all other questions, is left out as well where
another question is: it is a second lock behind the same door.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fencepost.conformance import adapter as a
from fencepost.reference.adapter_recovery import (
    INSTANCE,
    KEYED,
    RecoveringSqlite,
    RecoveringStoreWorker,
    answered,
)
from fencepost.reference.broken_stores import without_guards
from fencepost.reference.checkpoint import (
    CHECKS,
    BadCheckpointError,
    Checkpoint,
    Checkpoints,
    Problem,
    Stored,
    check_content,
    check_hash,
    check_instance,
    check_mac,
    check_versions,
    read_checkpoint,
    steps_of,
)
from fencepost.reference.driving import code_for, hand_over
from fencepost.reference.session import Ended, RunEndsError, Session
from fencepost.reference.sql import STATEMENTS
from fencepost.reference.values import Row

NO_KEY = Checkpoints()


def without(kept: Checkpoints, *checks: object) -> Checkpoints:
    """Checkpoints of which some things are not asked."""
    left = tuple(each for each in CHECKS if each not in (*checks, check_content))
    return replace(kept, checks=left)


def check_state_version(checkpoint: Checkpoint, stored: Stored, key: bytes | None) -> None:
    """The state version alone is compared."""
    told = replace(checkpoint, lease_version=stored.lease_version)
    check_versions(told, stored, key)


def check_present_lease(checkpoint: Checkpoint, stored: Stored, key: bytes | None) -> None:
    """The lease version is compared with the row's, which acquire has just raised."""
    check_versions(checkpoint, replace(stored, lease_version=stored.row.lease_version), key)


class TrustsTheFirstCheck(RecoveringStoreWorker):
    """What was checked before acquire is resumed: checkpoint and definition are not looked at again."""

    first: Stored | None = None

    def check(self) -> a.Answer:
        """Look at the checkpoint, and remember what was found."""
        told = super().check()
        self.first = answered(self.store.stored(INSTANCE))
        return told

    def take_up(self, session: Session) -> None:
        """Resume from what was found then."""
        if self.first is not None and self.first.checkpoint is not None:
            found = read_checkpoint(self.first.checkpoint, INSTANCE)
            session.see(replace(session.row, steps=steps_of(found)))

    def compare_code(self, session: Session) -> None:
        """By the row that was found then."""
        row = session.row if self.first is None else self.first.row
        self.phase = "resumed" if code_for(row, self.workflows)[0] is not None else "misfit"


class BeginsAnew(RecoveringStoreWorker):
    """A checkpoint that is damaged or lost counts as none, and the instance begins with the first step."""

    def take_up(self, session: Session) -> None:
        """Resume from the checkpoint, or from nothing."""
        stored = answered(self.store.stored(INSTANCE))
        assert self.store.checkpoints is not None  # noqa: S101
        try:
            self.store.checkpoints.check(stored)
        except BadCheckpointError as error:
            if error.problem not in (Problem.LOST, Problem.HASH_DIFFERS, Problem.OTHER_FORMAT):
                super().take_up(session)
            session.see(nothing_done(stored.row))
        else:
            super().take_up(session)


def nothing_done(row: Row) -> Row:
    """The row as it began."""
    return replace(row, steps=())


class RunsEverythingAgain(RecoveringStoreWorker):
    """Whatever the checkpoint says, the steps are begun anew."""

    def take_up(self, session: Session) -> None:
        """Resume from nothing."""
        super().take_up(session)
        session.see(nothing_done(session.row))


class KeepsTheLease(RecoveringStoreWorker):
    """Who finds a bad checkpoint reports it, and keeps the lease until it runs out."""

    def take_up(self, session: Session) -> None:
        """Look again, and end without releasing."""
        stored = answered(self.store.stored(INSTANCE))
        assert self.store.checkpoints is not None  # noqa: S101
        try:
            self.store.checkpoints.check(stored)
        except BadCheckpointError as error:
            session.end(Ended.BAD_CHECKPOINT, str(error))
        super().take_up(session)


class SaysNothing(RecoveringStoreWorker):
    """Who finds a bad checkpoint releases the lease, and tells nobody."""

    def _ended(self, ends: RunEndsError) -> a.Answer:
        told = super()._ended(ends)
        self.world.reports.clear()
        return told


class RunsWhatDoesNotFit(RecoveringStoreWorker):
    """Code of another definition goes on with the instance all the same."""

    def compare_code(self, session: Session) -> None:
        """Nothing is compared."""
        del session
        self.phase = "resumed"


class MigratesWithoutACommit(RecoveringStoreWorker):
    """Code that has a migration goes on, and commits none."""

    def compare_code(self, session: Session) -> None:
        """A migration that is registered is enough."""
        workflow, _ = code_for(session.row, self.workflows)
        self.phase = "misfit" if workflow is None else "resumed"


class HandsOverWhatFits(RecoveringStoreWorker):
    """An instance is handed to a person although a migration is registered."""

    def _settle_definition(self, session: Session) -> None:
        hand_over(session)


class AdoptsWithoutRecovery(RecoveringStoreWorker):
    """A lease of its own that a worker finds after a lost answer is gone on with at once."""

    def read(self) -> a.Answer:
        """Read the row, and take it up unseen."""
        told = super().read()
        if self.session is not None:
            self.session.see(nothing_done(self.session.row))
            self.phase = "resumed"
        return told


def _asking(kept: Checkpoints) -> RecoveringSqlite:
    return RecoveringSqlite(checkpoints=kept)


def _with(**removed: tuple[str, ...]) -> RecoveringSqlite:
    """The recovery over a store without some guards."""
    texts = {name: without_guards(getattr(STATEMENTS, name), *codes) for name, codes in removed.items()}
    return RecoveringSqlite(statements=replace(STATEMENTS, **texts))


BROKEN: Mapping[str, RecoveringSqlite] = {
    name: replace(adapter, name=name)
    for name, adapter in {
        "hash-not-compared-without-a-key": _asking(without(NO_KEY, check_hash)),
        "hash-alone": _asking(without(KEYED, check_mac)),
        "instance-not-compared": _asking(without(KEYED, check_instance)),
        "versions-not-compared": _asking(without(KEYED, check_versions)),
        "lease-version-not-compared": _asking(
            replace(
                KEYED,
                checks=tuple(
                    check_state_version if c is check_versions else c for c in without(KEYED).checks
                ),
            )
        ),
        "checked-only-before": RecoveringSqlite(worker=TrustsTheFirstCheck),
        "damaged-is-none": RecoveringSqlite(worker=BeginsAnew),
        "begins-anew": RecoveringSqlite(worker=RunsEverythingAgain),
        "keeps-the-lease": RecoveringSqlite(worker=KeepsTheLease),
        "says-nothing": RecoveringSqlite(worker=SaysNothing),
        "definition-not-compared": RecoveringSqlite(worker=RunsWhatDoesNotFit),
        "migrates-without-a-commit": RecoveringSqlite(worker=MigratesWithoutACommit),
        "incompatible-is-migratable": RecoveringSqlite(worker=HandsOverWhatFits),
        "adopts-without-recovery": RecoveringSqlite(worker=AdoptsWithoutRecovery),
        "stale-recovery-commits": _with(commit=("stale-lease-version", "not-the-owner")),
        "recovery-after-expiry": _with(commit=("lease-expired",)),
        "recovery-beside-a-live-owner": _with(acquire=("lease-live",)),
        "recovery-after-the-end": _with(acquire=("finished",)),
    }.items()
}
"""Each recovery under the name of the variant of the model that it is like, where there is one."""

USELESS = RecoveringSqlite(
    "lease-version-of-the-row",
    checkpoints=replace(
        KEYED, checks=tuple(check_present_lease if c is check_versions else c for c in CHECKS)
    ),
)
"""Correct, and of no use: nobody ever resumes what a former owner has committed."""
