"""One lease on one instance, as its owner has it: what it believes, commits, and may still send (§3, §4).

What the worker and its recovery have in common. A call to the store whose answer is lost is followed up here,
so that above it each commit was accepted, or the run has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NoReturn

from fencepost.reference import codes
from fencepost.reference.checkpoint import BadCheckpointError, Stored, steps_of
from fencepost.reference.downstream_values import TakesEffects
from fencepost.reference.store import Store
from fencepost.reference.values import (
    ArgumentError,
    Commit,
    Move,
    Notification,
    Ok,
    Owner,
    Refused,
    Row,
    StepChange,
    StepRow,
    StoreBusyError,
    StoreError,
    shown,
    whole,
)

TRIES: Final = 3
"""How often a call to the store is tried whose answer is unknown: enough for a lost reply or two."""

LOST: Final = (
    codes.NO_SUCH_INSTANCE,
    codes.STALE_LEASE_VERSION,
    codes.NOT_THE_OWNER,
    codes.FINISHED,
    codes.LEASE_EXPIRED,
    codes.STALE_STATE_VERSION,
)
"""The codes of a refused commit that say that somebody else goes on."""


class Ended(StrEnum):
    """How a run of one instance came to its end."""

    FINISHED = "finished"
    """The instance is finished: of a worker without ways back, every step has succeeded."""
    WAITING = "waiting"
    """There is nothing to do now: a timer, an approval, a person, or other code is awaited."""
    STOPPED = "stopped"
    """A step failed, was cancelled or waits for a person; the run's step says which."""
    UNDECIDED = "undecided"
    """An answer is unknown, or in progress: run the instance again later."""
    LOST = "lost"
    """The lease is over or somebody else's; whoever has it goes on."""
    REFUSED = "refused"
    """The store refused a commit though the lease was in order: the instance is not one of these steps."""
    BAD_CHECKPOINT = "bad-checkpoint"
    """The checkpoint is damaged, tampered with, or of something else: a person looks. Nothing was written."""
    BROKEN = "broken"
    """Something raised what no pass expects, as the run says: the code or the environment is broken. Others
    go on; this instance is tried again when its lease has run out."""
    NOT_ACQUIRED = "not-acquired"
    """The lease was not to be had; the run's code says why."""


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one run: how it ended, at which step, and the code or the words that say why."""

    ended: Ended
    instance: str
    step: str | None = None
    why: str = ""


class RunEndsError(Exception):
    """Carries a `Run` out of its depths; never leaves `run_once` or `unwind`."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.run: Final = run


def reading_ms(who: str, monotonic_ms: object) -> int:
    """What a worker's own clock shows; `ArgumentError` unless it is a function that gives whole numbers."""
    if not callable(monotonic_ms):
        raise ArgumentError(
            f"{who}: monotonic_ms must be a function, not {shown(monotonic_ms)}; "
            "pass one that gives milliseconds"
        )
    now_ms = monotonic_ms()
    if isinstance(now_ms, bool) or not isinstance(now_ms, int):
        raise ArgumentError(
            f"{who}: monotonic_ms gives {shown(now_ms)}; give whole milliseconds, as "
            "time.monotonic_ns() // 1_000_000 does"
        )
    return now_ms


def nothing(_: str) -> None:
    """The default for `at`: nobody looks on."""


@dataclass(slots=True)
class Session:
    """One lease on one instance, and what its owner believes of it.

    `deadline_ms` is where the lease ends on the worker's own monotonic clock, counted from before it was
    asked for (§3). `commits` numbers the commits under this lease version, which only this owner ever has,
    so that no commit id is used twice. `at` is told of each point between two steps of an effect.
    """

    store: Store
    downstream: TakesEffects
    owner: Owner
    row: Row
    lease_ms: int
    deadline_ms: int
    monotonic_ms: Callable[[], int]
    at: Callable[[str], None] = nothing
    commits: int = 0
    steps: dict[str, StepRow] = field(default_factory=dict)

    @property
    def token(self) -> int:
        """What is sent with each effect: the lease version (§6)."""
        return self.row.lease_version

    def end(self, ended: Ended, why: str, step: str | None = None) -> NoReturn:
        """End the run here."""
        raise RunEndsError(Run(ended, self.row.instance, step, why))

    def commit(self, event: str, *changes: StepChange, finishes: bool = False) -> None:
        """One commit, until it is known what became of it (§4). Ends the run unless it was accepted."""
        code = self.attempt(event, *changes, finishes=finishes)
        if code is not None:
            self.end(Ended.REFUSED, code)

    def attempt(
        self,
        event: str,
        *changes: StepChange,
        finishes: bool = False,
        payload: str = "",
        move: Move | None = None,
        requests: tuple[int, ...] = (),
        notifications: tuple[Notification, ...] = (),
    ) -> str | None:
        """One commit, until it is known what became of it (§4): None if accepted, else the refusal's code.

        Ends the run if somebody else goes on, or if the answer stays unknown.
        """
        self.commits += 1
        commit = Commit(
            instance=self.row.instance,
            owner=self.owner,
            commit_id=f"{self.owner.incarnation}-{self.token}-{self.commits}",
            expected_state_version=self.row.state_version,
            expected_lease_version=self.token,
            event=event,
            payload=payload,
            finishes=finishes,
            changes=changes,
            move=move,
            requests=requests,
            notifications=notifications,
        )
        for _ in range(TRIES):
            try:
                answer = self.store.commit(commit)
            except ArgumentError:
                raise
            except StoreBusyError:
                continue  # it changed nothing
            except StoreError:
                self._ask(commit)
                continue  # accepted, or undecided: the same commit again gives the entry, or decides
            if isinstance(answer, Refused):
                if answer.code in LOST:
                    self.end(Ended.LOST, answer.code)
                return answer.code
            self._accepted()
            return None
        raise RunEndsError(
            Run(Ended.UNDECIDED, self.row.instance, why=f"no answer to commit {commit.commit_id}")
        )

    def _ask(self, commit: Commit) -> None:
        """After a lost reply: ends the run if the commit is not in the log and never will be (§4)."""
        try:
            answer = self.store.ask(commit.instance, commit.commit_id)
        except ArgumentError:
            raise
        except StoreError:
            return
        if isinstance(answer, Ok):
            entry, row = answer.value
            if entry is None and row.lease_version != commit.expected_lease_version:
                self.end(Ended.LOST, codes.STALE_LEASE_VERSION)

    def _accepted(self) -> None:
        """Read what the commit made; another owner's lease by then ends the run."""
        for _ in range(TRIES):
            try:
                answer = self.store.read(self.row.instance)
            except ArgumentError:
                raise
            except StoreError:
                continue
            if isinstance(answer, Refused):
                self.end(Ended.LOST, answer.code)
            if answer.value.lease_version != self.token:
                self.end(Ended.LOST, codes.STALE_LEASE_VERSION)
            self.see(answer.value)
            return
        self.end(Ended.UNDECIDED, "the store does not answer")

    def see(self, row: Row) -> None:
        """Believe in this row from now on."""
        self.row = row
        self.steps = {step.step: step for step in row.steps}

    def check(self) -> None:
        """Check the checkpoint on the row that acquire returned, and resume from it (§8, step 3).

        Ends the run if it is bad, with the lease released, or if the row is no longer that one.
        """
        if self.store.checkpoints is None:
            return
        stored = _stored(self.store, self.row.instance)
        if stored.row.lease_version != self.token:
            self.end(Ended.LOST, codes.STALE_LEASE_VERSION)
        try:
            checkpoint = self.store.checkpoints.check(stored)
            steps = stored.row.steps if checkpoint is None else steps_of(checkpoint)
        except BadCheckpointError as error:
            self.release()
            self.end(Ended.BAD_CHECKPOINT, str(error))
        self.see(replace(stored.row, steps=steps))
        self.at("checkpoint checked")

    def may_send(self) -> None:
        """Ends the run if no effect may start any more: the lease is over, or was not renewed (§3)."""
        before_ms = reading_ms("may_send", self.monotonic_ms)
        if before_ms >= self.deadline_ms:
            self.end(Ended.LOST, codes.LEASE_EXPIRED)
        if before_ms < self.deadline_ms - self.lease_ms // 2:
            return
        try:
            answer = self.store.renew(self.row.instance, self.owner, self.token, lease_ms=self.lease_ms)
        except ArgumentError:
            raise
        except StoreError as error:
            self.end(Ended.UNDECIDED, f"no answer to renew: {error}")
        if isinstance(answer, Refused):
            self.end(Ended.LOST, answer.code)
        self.deadline_ms = max(self.deadline_ms, before_ms + self.lease_ms)
        if reading_ms("may_send", self.monotonic_ms) >= self.deadline_ms:
            self.end(Ended.LOST, codes.LEASE_EXPIRED)

    def take_anew(self) -> None:
        """Give the lease up and acquire it again, for a token above those this owner has sent (§6)."""
        self.release()
        fresh = begin(
            self.store,
            self.downstream,
            self.owner,
            self.row.instance,
            lease_ms=self.lease_ms,
            monotonic_ms=self.monotonic_ms,
            at=self.at,
        )
        before = self.row.state_version
        self.deadline_ms = fresh.deadline_ms
        self.commits = 0
        self.see(fresh.row)
        if self.row.state_version != before:
            self.end(Ended.UNDECIDED, "another owner got further in between")

    def release(self) -> None:
        """Give the lease up; when that is not heard, it runs out by itself."""
        try:
            self.store.release(self.row.instance, self.owner, self.token)
        except ArgumentError:
            raise
        except StoreError:
            return


def begin(
    store: Store,
    downstream: TakesEffects,
    owner: Owner,
    instance: str,
    *,
    lease_ms: int,
    monotonic_ms: Callable[[], int],
    at: Callable[[str], None] = nothing,
) -> Session:
    """Acquire the lease; raises `RunEndsError` if it is not to be had.

    Where checkpoints are kept, that of the instance is checked before and after (§8). What is found before is
    advice: it spares a lease that would be taken for nothing. A lease whose reply was lost is not adopted: it
    is released, and another one acquired (§3).
    """
    whole("begin", "lease_ms", lease_ms, lowest=1)
    advise(store, instance)
    for _ in range(TRIES):
        deadline_ms = reading_ms("begin", monotonic_ms) + lease_ms
        try:
            answer = store.acquire(instance, owner, lease_ms=lease_ms)
        except ArgumentError:
            raise
        except StoreBusyError:
            continue
        except StoreError:
            _give_up_what_was_acquired(store, owner, instance)
            continue
        if isinstance(answer, Refused):
            raise RunEndsError(Run(Ended.NOT_ACQUIRED, instance, why=answer.code))
        session = Session(store, downstream, owner, answer.value, lease_ms, deadline_ms, monotonic_ms, at)
        session.see(answer.value)
        at("acquired")
        session.check()
        return session
    raise RunEndsError(Run(Ended.UNDECIDED, instance, why="the store does not answer"))


def advise(store: Store, instance: str) -> None:
    """Look at the checkpoint before acquiring (§8, step 1): ends the run if it is bad now."""
    if store.checkpoints is None:
        return
    try:
        store.checkpoints.check(_stored(store, instance))
    except BadCheckpointError as error:
        raise RunEndsError(Run(Ended.BAD_CHECKPOINT, instance, why=str(error))) from error


def _stored(store: Store, instance: str) -> Stored:
    for _ in range(TRIES):
        try:
            answer = store.stored(instance)
        except ArgumentError:
            raise
        except StoreError:
            continue
        if isinstance(answer, Refused):
            raise RunEndsError(Run(Ended.NOT_ACQUIRED, instance, why=answer.code))
        return answer.value
    raise RunEndsError(Run(Ended.UNDECIDED, instance, why="the store does not answer"))


def _give_up_what_was_acquired(store: Store, owner: Owner, instance: str) -> None:
    try:
        seen = store.read(instance)
        if isinstance(seen, Ok) and seen.value.owner == owner:
            store.release(instance, owner, seen.value.lease_version)
    except ArgumentError:
        raise
    except StoreError:
        return
