"""A worker that died in the middle of a call and begins again, before or after another one took over."""

from typing import Any

import pytest

from fencepost.checker.verdicts import Verdict
from fencepost.conformance import Commit, Owner, Surroundings, verify_statements

from .dict_store import DictWorker, DictWorld, RewindingDictAdapter, row_of


class Recovering(DictWorker):
    """Writes down what it is about to commit, and does it when it begins again, comparing or not."""

    compares = False

    def __init__(self, adapter: Any, world: DictWorld, owner: Owner, around: Surroundings) -> None:
        super().__init__(adapter, world, owner, around)
        left = world.stored.get(f"journal of {owner.worker}")
        if left is None:
            return
        if not self.compares:
            with self._locked():
                row = row_of(self._read())
                known = {e.commit_id for e in self._read()["log"]}
            if left.commit_id not in known and not row.finished:
                assert row.owner is not None
                left = Commit(left.commit_id, row.owner, row.lease_version, row.state_version, left.finishes)
        self.commit(left)

    def commit(self, commit: Commit) -> Any:
        self.stored[f"journal of {commit.owner.worker}"] = commit
        told = super().commit(commit)
        self.stored.pop(f"journal of {commit.owner.worker}", None)
        return told


class Comparing(Recovering):
    """The same, but what it does when it begins again is compared as any commit is."""

    compares = True


class Adapter(RewindingDictAdapter):
    worker: type[Recovering] = Recovering

    def open_worker(self, world: DictWorld, name: str, incarnation: int, surroundings: Surroundings) -> Any:
        return self.worker(self, world, Owner(name, incarnation), surroundings)


@pytest.mark.parametrize("worker", [Recovering, pytest.param(Comparing, marks=pytest.mark.slow)])
def test_what_a_worker_does_as_it_begins_again_is_looked_at(worker: type[Recovering]) -> None:
    adapter = Adapter(name=worker.__name__)
    adapter.worker = worker
    report = verify_statements(adapter, claims=["lock-step", "S1"])
    found = report.of("lock-step")
    if worker is Comparing:
        assert found.verdict is Verdict.HELD
        return
    assert found.verdict is Verdict.REFUTED
    assert "restart" in found.details["difference"]
