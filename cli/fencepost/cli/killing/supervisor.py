"""Keeps workers running, and kills them: the supervisor of a run, and the call that makes one."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from selectors import EVENT_READ, DefaultSelector
from typing import Any, Final

from fencepost.cli.killing.broken import broken as broken_settings
from fencepost.cli.killing.fates import KILLS, STOPS, Act, Fates, fates
from fencepost.cli.killing.people import UNSURE
from fencepost.cli.killing.processes import (
    DownstreamProcess,
    Incarnations,
    Nursery,
    ProcessesError,
    Worker,
    start_people,
    start_worker,
)
from fencepost.cli.killing.report import KillingReport
from fencepost.cli.killing.work import Settings, begin
from fencepost.reference import Owner, observe, observe_downstream
from fencepost.reference.audit import (
    OK,
    UNKNOWN,
    Acquired,
    Asked,
    Check,
    Committed,
    Journal,
    Records,
    Sent,
    Triggered,
    Verdict,
    audit,
)

LEASE_MS: Final = 100
"""Short, as what a killed worker had stays taken so long; long enough for a step on a busy machine."""

SOON_SECONDS: Final = 0.003
"""The longest random time before a kill; mostly it is shorter, as is the way from one point to the next."""

HOLD_SECONDS: Final = 1.0
"""How long a worker that has taken over is held for the former owner to go on."""

SHARE_OF_KILLING: Final = 0.75
"""The part of the budget after which nothing more is killed, so that there is time to settle."""

MOST_FAILURES: Final = 10
"""Workers that end by an error; after so many there is no point in starting another one."""

WORKER: Final = "ada"

SETTLING: Final = (
    "outcome-committed",
    "retry-committed",
    "unwinding-committed",
    "giving-up-committed",
    "undone-committed",
    "handed-over",
    "finished",
)
"""The points at which a worker that has taken over has done something about what it found."""


class Supervisor:
    """One run: its processes, what workers told, and what happened to them."""

    def __init__(
        self,
        nursery: Nursery,
        instances: int,
        *,
        workers: int,
        fates: Fates,
        incarnations: Incarnations,
        budget_s: float,
    ) -> None:
        self._nursery: Final = nursery
        self._most: Final = workers
        self._fates: Final = fates
        self._incarnations: Final = incarnations
        self._began: Final = time.monotonic()
        self._budget_s: Final = budget_s
        self._selector: Final = DefaultSelector()
        self._running = set[Worker]()
        self._stopped = dict[Worker, Act]()
        self._held = dict[Worker, tuple[Worker, float]]()
        self._downstream: Final = DownstreamProcess(nursery)
        self._instances: Final = instances
        self._people = self._begun_people()
        self.journal: Final = Journal()
        self.killed_at: Final = Counter[str]()
        self.killed_after: Final = Counter[str]()
        self.failures: Final = list[str]()
        self.started = self.continued = self.downstream_kills = self.people_kills = 0
        self.ended_by_people = 0
        self.done = False

    # The run.

    def run(self, on_progress: Callable[[object], None] | None) -> None:
        """Until workers find nothing to do any more, or the time is up."""
        while not self.done or self._running or self._stopped:
            spent_s = time.monotonic() - self._began
            if spent_s > self._budget_s or len(self.failures) > MOST_FAILURES:
                return
            if spent_s > self._budget_s * SHARE_OF_KILLING:
                self._fates.give_up()
            self._keep_workers_running()
            for key, _ in self._selector.select(timeout=0.05):
                if key.data is self._people:
                    self._listen_to_people()
                elif key.data in self._running or key.data in self._stopped:
                    self._listen(key.data)
            self._release_the_held()
            if on_progress is not None:
                on_progress(f"{self.killed_at.total() + self.killed_after.total()} kills")

    def close(self) -> None:
        """Write down what workers had told that are dead by now, because the time was up."""
        left = [*self._running, *self._stopped, self._people]
        self._stopped.clear()  # nobody goes on any more
        for worker in left:
            for told in worker.lines():
                self._hear(worker, told)
            self._forget(worker)
        self._selector.close()
        self._downstream.close()

    def _keep_workers_running(self) -> None:
        while not self.done and len(self._running) < self._most:
            worker = start_worker(
                self._nursery, Owner(WORKER, next(self._incarnations)), self._downstream.port
            )
            self._selector.register(worker.line, EVENT_READ, worker)
            self._running.add(worker)
            self.started += 1
        if self.done:
            for worker in list(self._stopped):
                self._continue(worker)

    def _listen(self, worker: Worker) -> None:
        for told in worker.lines():
            self._hear(worker, told)
        if worker.gone:
            self._bury(worker)
        elif worker.point is not None and worker in self._running and worker not in self._held:
            self._decide(worker, worker.point)

    def _hear(self, worker: Worker, told: dict[str, Any]) -> None:
        """Write down what a worker told."""
        ((kind, what),) = told.items()
        if kind == "at":
            worker.point = what
            if what in SETTLING and worker.instance is not None:
                self._settled(worker, worker.instance)
        elif kind == "acquired":
            instance, incarnation, lease_version, state_version, steps_left = what
            owner = Owner(worker.owner.worker, incarnation)
            self.journal.acquired.append(Acquired(instance, owner, lease_version, state_version))
            worker.instance, worker.lease_version = instance, lease_version
            self._taken(worker, instance, steps_left)
        elif kind == "left":
            self._fates.left(*what)
        elif kind == "asked":
            self.journal.asked.append(Asked(*what))
        elif kind == "triggered":
            self.journal.triggered.append(Triggered(*what))
        elif kind == "committed":
            self.journal.committed.append(Committed(*what))
        elif kind == "sent":
            sent = Sent(*what)
            worker.answer = sent.answer
            self.journal.sent.append(sent)
            self._went_on(worker, sent.answer)
        elif kind == "ended":
            worker.ended = self.done = True
        else:
            worker.failed = what

    def _bury(self, worker: Worker) -> None:
        """A worker that ended, by itself: none does so but when nothing is left to do."""
        self._forget(worker)
        self._nursery.end(worker.pid)
        if not worker.ended:
            self.failures.append(worker.failed or "it ended without a word")

    def _went_on(self, worker: Worker, answer: str | None) -> None:
        if worker.held_back is not None:
            self._fates.went_on(*worker.held_back, answer)
            worker.held_back = None

    def _forget(self, worker: Worker) -> None:
        self._went_on(worker, None)
        self._selector.unregister(worker.line)
        self._running.discard(worker)
        self._stopped.pop(worker, None)
        self._held.pop(worker, None)
        worker.line.close()

    # People.

    def _begun_people(self) -> Worker:
        people = start_people(self._nursery, self._instances)
        self._selector.register(people.line, EVENT_READ, people)
        return people

    def _listen_to_people(self) -> None:
        for told in self._people.lines():
            self._hear(self._people, told)
        if self._people.point is not None:
            self._make_sure(self._people.point.removeprefix(UNSURE))
            self._people.leave()
        if self._people.gone:
            self.failures.append(self._people.failed or "who cancels, approves and decides ended by itself")
            self._kill_people()

    def _kill_people(self) -> None:
        self._end(self._people)
        self._people = self._begun_people()

    def _make_sure(self, instance: str) -> None:
        """End who has, or had, a lease on an instance, and whatever is on its way to the downstream.

        Whoever may send something has told of its lease before, at the latest in a line that is read here.
        """
        for worker in [*self._running, *self._stopped]:
            if worker in self._running:
                self._listen(worker)
            if worker.instance == instance and (worker in self._running or worker in self._stopped):
                self._end(worker)
                self.ended_by_people += 1
        self._kill_downstream()

    # Takeovers.

    def _taken(self, worker: Worker, instance: str, steps_left: int) -> None:
        """Another has the instance of a worker that is stopped, perhaps: then that one may go on."""
        former_left = self._fates.steps_left.get(instance, 0)
        self._fates.acquired(instance, steps_left)
        for stopped, act in list(self._stopped.items()):
            if stopped.instance != instance or stopped.lease_version >= worker.lease_version:
                continue
            if act is Act.STOP_UNTIL_TAKEN:
                self._held[worker] = (stopped, time.monotonic() + HOLD_SECONDS)
                self._continue(stopped)
            elif steps_left != former_left:
                self._continue(stopped)

    def _settled(self, worker: Worker, instance: str) -> None:
        for stopped in list(self._stopped):
            if stopped.instance == instance and stopped.lease_version < worker.lease_version:
                self._continue(stopped)

    def _continue(self, stopped: Worker) -> None:
        del self._stopped[stopped]
        self._running.add(stopped)
        self.continued += 1
        stopped.leave()
        stopped.go_on()

    def _release_the_held(self) -> None:
        """Who has taken over goes on when the former owner has done what it was about to do."""
        for worker, (former, until) in list(self._held.items()):
            if former.gone or former.point is not None or time.monotonic() > until:
                del self._held[worker]
                if worker.point is not None:
                    self._decide(worker, worker.point)

    # Faults.

    def _decide(self, worker: Worker, point: str) -> None:
        answered = point in ("answered", "undo-answered", "telling-answered")
        if answered and worker.answer == UNKNOWN:
            worker.leave()  # what it makes of silence is seen only if it goes on
            return
        # Only who has a receipt is about to commit it, and is told that it lost the lease.
        may_stop = len(self._stopped) < self._most and (not answered or worker.answer == OK)
        act = self._fates.at(point, worker.instance, may_stop=may_stop and worker.instance is not None)
        if act in KILLS:
            self._kill(worker, point, act)
        elif act in STOPS:
            worker.stop()
            self._running.discard(worker)
            self._stopped[worker] = act
            worker.held_back = (point, act)
        elif act is Act.SILENCE:
            self._downstream.kill()
            worker.leave()
            with DefaultSelector() as selector:
                selector.register(worker.line, EVENT_READ)
                selector.select(timeout=HOLD_SECONDS)
            self._start_downstream()
        else:
            worker.leave()
            if act is Act.DOWNSTREAM_SOON:
                self._sleep_a_little()
                self._kill_downstream()
            elif act is Act.PEOPLE_SOON:
                self._sleep_a_little()
                self._kill_people()
                self.people_kills += 1

    def _kill(self, worker: Worker, point: str, act: Act) -> None:
        after = act is Act.KILL_SOON
        if after:
            worker.leave()
            self._sleep_a_little()
        self._end(worker)
        if after and worker.point is None:
            self.killed_after[point] += 1
        else:
            self.killed_at[worker.point or point] += 1
        if act is Act.KILL_BOTH:
            self._kill_downstream()

    def _end(self, worker: Worker) -> None:
        """Kill a worker, and write down what it told before it died."""
        self._nursery.end(worker.pid)
        for told in worker.lines():
            self._hear(worker, told)
        self._forget(worker)

    def _kill_downstream(self) -> None:
        self._downstream.kill()
        self._start_downstream()

    def _start_downstream(self) -> None:
        self.downstream_kills += 1
        self._downstream.start()

    def _sleep_a_little(self) -> None:
        time.sleep(SOON_SECONDS * self._fates.random.random() ** 3)


def kill_workers(
    instances: int = 20,
    workers: int = 2,
    *,
    kills: int = 200,
    seed: int = 0,
    budget_s: float = 60.0,
    keyed: bool = True,
    opaque: bool = False,
    lease_ms: int = LEASE_MS,
    broken: str | None = None,
    directory: Path | None = None,
    on_progress: Callable[[object], None] | None = None,
) -> KillingReport:
    """Run `instances` of a workflow with `workers` processes, kill workers `kills` times, audit what is left.

    Workers and the downstream are real processes, and are killed with SIGKILL. At points that chance chooses
    from `seed` a worker is killed, is stopped for longer than its lease of `lease_ms` milliseconds and then
    continued, or loses the downstream; when what happens is not in the seed. `keyed` says whether the
    downstream keeps idempotency keys, or has only a fence and can be asked; one that is `opaque` has nothing
    of all that, and people find out what happened (§7). `broken` is one of `BROKEN`.
    After `budget_s` seconds, about, everything is ended. The databases are kept in `directory`, if given.

    Raises `ProcessesError` if the system does not let processes be started or stopped, or if the directory
    has the files of an earlier run.
    """
    with _place(directory) as place:
        settings = Settings(
            str(place / "store.db"),
            str(place / "ledger.db"),
            lease_ms=lease_ms,
            keyed=keyed,
            opaque=opaque,
            seed=seed,
        )
        if broken is not None:
            settings = broken_settings(settings, broken)
        with Nursery(settings) as nursery:
            names, triggered = begin(settings, instances)
            began = time.monotonic()
            supervisor = Supervisor(
                nursery,
                instances,
                workers=workers,
                fates=_fates(settings, kills, names),
                incarnations=Incarnations(place / "incarnations"),
                budget_s=budget_s,
            )
            supervisor.journal.triggered += triggered
            try:
                supervisor.run(on_progress)
                seconds = time.monotonic() - began
            finally:
                nursery.close()
                supervisor.close()
        records = Records(
            instances=names,
            store=observe(settings.store),
            downstream=observe_downstream(settings.ledger),
            journal=supervisor.journal,
        )
        checks = audit(records, ended=supervisor.done)
    return KillingReport(
        instances=instances,
        workers=workers,
        kills=kills,
        seed=seed,
        keyed=settings.keyed,
        opaque=settings.opaque,
        broken=broken,
        killed_at=dict(supervisor.killed_at),
        killed_after=dict(supervisor.killed_after),
        started=supervisor.started,
        continued=supervisor.continued,
        downstream_kills=supervisor.downstream_kills,
        people_kills=supervisor.people_kills,
        ended_by_people=supervisor.ended_by_people,
        seconds=seconds,
        checks=(*checks, _failures(supervisor)),
        directory=None if directory is None else str(directory),
    )


def _fates(settings: Settings, kills: int, instances: Sequence[str]) -> Fates:
    can = settings.capabilities
    # A worker asks what became of an effect, having fenced others off, where there is no key.
    asks = can.fenced and can.queryable and not can.keyed
    return fates(Random(settings.seed), kills, instances, asks=asks, fenced=can.fenced)


def _failures(supervisor: Supervisor) -> Check:
    failures = supervisor.failures
    return Check(
        id="",
        name="no_worker_fails",
        says="A worker ends only by being killed, or when nothing is left to do.",
        verdict=Verdict.REFUTED if failures else Verdict.HELD,
        evidence=f"{supervisor.started:,} workers started, {len(failures):,} ended by an error",
        wrongs=tuple(failures),
    )


@contextmanager
def _place(directory: Path | None) -> Iterator[Path]:
    """The directory of the databases; one that nobody named is gone afterwards."""
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="fencepost-") as name:
            yield Path(name)
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ProcessesError(
            f"{directory} cannot be made: {error.strerror}; name another directory"
        ) from error
    if any((directory / name).exists() for name in ("store.db", "ledger.db")):
        raise ProcessesError(f"{directory} has the files of an earlier run; name another directory")
    yield directory
