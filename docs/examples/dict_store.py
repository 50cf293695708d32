"""The adapter of the job store: how to make one, how to call it, and what it holds."""

from threading import Lock

from job_store import Job, JobStore

from fencepost.conformance import Answer, Capability, Commit, Entry, Observation, Ok, Owner, Refused, Row
from fencepost.conformance import Surroundings as Around

C = Capability


class Worker:
    """One handle on the store. It passes calls on, and decides nothing."""

    def __init__(self, store: JobStore, me: str) -> None:
        self.store, self.me = store, me

    def acquire(self, *, lease_ms: int) -> Answer:
        return told(self.store.acquire(self.me, lease_ms))

    def renew(self, lease_version: int, *, lease_ms: int) -> Answer:
        return told(self.store.renew(self.me, lease_version, lease_ms))

    def release(self, lease_version: int) -> Answer:
        return told(self.store.release(self.me, lease_version))

    def commit(self, commit: Commit) -> Answer:
        versions = commit.lease_version, commit.state_version
        sender = f"{commit.owner.worker}/{commit.owner.incarnation}"
        return told(self.store.commit(commit.commit_id, sender, *versions, finish=commit.finishes))

    def ask(self, commit_id: str) -> Answer:
        job = self.store.read()
        return Ok(row=row(job), entry=next((e for e in entries(job) if e.commit_id == commit_id), None))

    def read(self) -> Answer:
        return told(self.store.read())

    def close(self) -> None:
        pass


class World:
    def __init__(self) -> None:
        self.jobs, self.lock = {"job": Job()}, Lock()


class DictAdapter:
    """The store, as far as it is checked. It gives no reasons for a no, so CODES is not listed."""

    store, name, model_variant, deviations = JobStore, "job store", "", {}
    capabilities = frozenset({C.RENEW, C.RELEASE, C.READ, C.ASK, C.LOG})

    def fresh_world(self) -> World:
        return World()

    def open_worker(self, world: World, name: str, incarnation: int, around: Around) -> Worker:
        store = self.store(around.watched(world.jobs), around.watched(world.lock), around.clock_ms)
        return Worker(store, f"{name}/{incarnation}")

    def observe(self, world: World) -> Observation:
        return Observation(row(world.jobs["job"]), entries(world.jobs["job"]))

    def close_world(self, world: World) -> None:
        pass

    def snapshot(self, world: World) -> dict:
        return dict(world.jobs)

    def restore(self, world: World, snapshot: dict) -> None:
        world.jobs.update(snapshot)


def told(job: Job | None) -> Answer:
    return Refused("no") if job is None else Ok(row=row(job))


def row(job: Job) -> Row:
    return Row(owner(job.owner), job.lease, job.lease_ends_ms, job.version, job.finished)


def owner(text: str) -> Owner | None:
    name, _, incarnation = text.partition("/")
    return Owner(name, int(incarnation)) if name else None


def entries(job: Job) -> tuple[Entry, ...]:
    return tuple(Entry(made, n, lease, owner(by)) for n, (made, lease, by) in enumerate(job.log, 1))


make = DictAdapter
