"""The job store broken twice: once without a guard, once without its lock."""

from collections.abc import Callable, MutableMapping
from contextlib import nullcontext

from dict_store import DictAdapter
from job_store import Job, JobStore


class TrustingStore(JobStore):
    """Whoever says that it holds the lease is believed."""

    def holds(self, job: Job, owner: str, lease: int) -> bool:
        return True


class UnlockedStore(JobStore):
    """Whoever wants to read, decide and write does so at any time."""

    def __init__(self, jobs: MutableMapping[str, Job], lock: object, now_ms: Callable[[], int]) -> None:
        super().__init__(jobs, nullcontext(), now_ms)


class Trusting(DictAdapter):
    store, name = TrustingStore, "trusting job store"


class Unlocked(DictAdapter):
    store, name = UnlockedStore, "unlocked job store"
