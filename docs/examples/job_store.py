"""A job store: one dictionary, one lock, and the rules of who may do what."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Job:
    """What is stored of a job. `log` has the id of each commit, with the lease that it was made under."""

    owner: str = ""
    lease: int = 0
    lease_ends_ms: int | None = None
    version: int = 0
    finished: bool = False
    log: tuple[tuple[str, int, str], ...] = ()


class JobStore:
    """One worker's way to the job. Each method gives the job as it then is, or None for no."""

    def __init__(
        self,
        jobs: MutableMapping[str, Job],
        lock: AbstractContextManager[Any],
        now_ms: Callable[[], int],
    ) -> None:
        self.jobs, self.lock, self.now_ms = jobs, lock, now_ms

    def acquire(self, owner: str, lease_ms: int) -> Job | None:
        """Take the lease, if it is free."""
        with self.lock:
            job = self.jobs["job"]
            if job.finished or self.live(job):
                return None
            return self.put(job, owner=owner, lease=job.lease + 1, lease_ends_ms=self.now_ms() + lease_ms)

    def renew(self, owner: str, lease: int, lease_ms: int) -> Job | None:
        """Extend a lease that is still live."""
        with self.lock:
            job = self.jobs["job"]
            if not self.holds(job, owner, lease) or not self.live(job):
                return None
            return self.put(job, lease_ends_ms=max(job.lease_ends_ms or 0, self.now_ms() + lease_ms))

    def release(self, owner: str, lease: int) -> Job | None:
        """Give the lease back."""
        with self.lock:
            job = self.jobs["job"]
            return self.put(job, lease_ends_ms=None) if self.holds(job, owner, lease) else None

    def commit(self, commit_id: str, owner: str, lease: int, version: int, *, finish: bool) -> Job | None:
        """Write one more entry, unless something has changed since the sender looked."""
        with self.lock:
            job = self.jobs["job"]
            if any(commit_id == made for made, _, _ in job.log):
                return job  # it has come before, and its answer was lost
            if not self.holds(job, owner, lease):
                return None
            if job.finished or not self.live(job) or job.version != version:
                return None
            log = (*job.log, (commit_id, lease, owner))
            return self.put(job, version=version + 1, finished=finish, log=log)

    def read(self) -> Job:
        """The job as it is."""
        return self.jobs["job"]

    def holds(self, job: Job, owner: str, lease: int) -> bool:
        """Whether this owner was the last to take the lease, and this is the number that it got."""
        return (job.owner, job.lease) == (owner, lease)

    def live(self, job: Job) -> bool:
        """Whether the lease is live."""
        return job.lease_ends_ms is not None and self.now_ms() < job.lease_ends_ms

    def put(self, job: Job, **changed: Any) -> Job:
        """Store the job with some of it changed."""
        self.jobs["job"] = new = replace(job, **changed)
        return new
