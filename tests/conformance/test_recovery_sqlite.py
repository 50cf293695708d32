"""Recovery over the SQLite store holds what is claimed, and each action and variable of it is mapped."""

from functools import cache
from typing import Any

import pytest

from fencepost.checker.subject import UsageError
from fencepost.checker.verdicts import EXIT_OK, Verdict
from fencepost.conformance import Capability, Conformance, ConformanceSuite, verify, verify_all
from fencepost.conformance import recovery as mapped
from fencepost.conformance.adapter import Adapter, Observation
from fencepost.conformance.counterparts import part_of, reach_of, stored_variables
from fencepost.conformance.recovering import (
    RecoveringAdapter,
    RecoveringWorker,
    RecoveryAdapter,
    RecoveryObservation,
)
from fencepost.conformance.recovery_aims import AIMS
from fencepost.conformance.report import UNTELLABLE
from fencepost.conformance.session import Move, Plan, Session
from fencepost.conformance.subjects import subject_of
from fencepost.conformance.verify import goals_of, prepare
from fencepost.model.recovery import recovery
from fencepost.reference import Checkpoints
from fencepost.reference.adapter import make_reference, make_sqlite
from fencepost.reference.adapter_recovery import RecoveringSqlite

from .support import refuted

SUBJECT = subject_of("recovery")
NO_KEY = RecoveringSqlite("no key", Checkpoints())


@cache
def verified(*, keyed: bool) -> Conformance:
    """The report on the recovery of the reference, found once in a process."""
    return verify(RecoveringSqlite() if keyed else NO_KEY, subject=SUBJECT, examples=24, seed=3)


def test_recovery_is_held_and_each_claim_was_exercised() -> None:
    report = verified(keyed=True)
    assert {f.claim.name: f.verdict for f in report.findings if f.verdict is not Verdict.HELD} == {}
    assert {f.claim.id for f in report.findings} >= {"S14", "S22", "S23", "S1", "S25", "lock-step"}
    assert report.exit_code == EXIT_OK
    assert all("grade O" in finding.method for finding in report.findings)
    assert report.figures["cut_short"] == 0


def test_without_a_key_all_is_held_but_what_only_a_key_could_tell() -> None:
    report = verified(keyed=False)
    silent = {f.claim.name for f in report.findings if f.verdict is Verdict.NOT_EXERCISED}
    assert silent == {"a_tampered_checkpoint_is_never_resumed"}
    assert refuted(report) == {}
    assert all((UNTELLABLE in f.details) == (f.claim.name in silent) for f in report.findings)
    assert report.exit_code == EXIT_OK


def test_each_kind_of_step_was_made() -> None:
    kinds = verified(keyed=True).figures["kinds"]
    assert {kind.partition(":")[0] for kind in kinds} - {"wait"} == set(recovery.actions) - {
        "pause",
        "resume",
    }
    for answer in ("ok", "stale-lease-version", "lease-expired", "finished"):
        assert kinds[f"commit: {answer}"] > 0
    assert kinds["acquire: lease-live"] > 0
    assert kinds["release: ok"] > 0


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "plain"])
def test_runs_go_to_each_single_reason_for_which_a_checkpoint_is_bad(keyed: bool) -> None:
    plan, _ = prepare(RecoveringSqlite() if keyed else NO_KEY, subject=SUBJECT)
    reached = {name for goal in goals_of(plan) for name in (goal.name, *goal.also)}
    assert set(AIMS.claims) - reached == (set() if keyed else {"nothing_but_the_mac_tells"})


def test_each_action_and_each_variable_of_recovery_is_mapped_and_nothing_else() -> None:
    assert set(mapped.PERFORMANCES) == set(recovery.actions)
    kept = {name for name, v in recovery.variables.items() if v.home == "store"}
    assert set(mapped.STORED) == set(stored_variables(recovery)) == kept | {
        "reported", "phase", "view", "believes"
    }  # fmt: skip


def test_the_scopes_are_scopes_of_the_model() -> None:
    for has_mac_key in (True, False):
        for scope in (mapped.scope_of(has_mac_key=has_mac_key), mapped.goal_scope(has_mac_key=has_mac_key)):
            assert scope.switches <= set(recovery.switches)
            assert ("mac_key_missing" in scope.switches) != has_mac_key


def test_the_adapter_of_the_reference_has_a_part_for_recovery() -> None:
    adapter: Adapter = make_reference()
    assert isinstance(adapter, RecoveryAdapter)
    part = part_of(adapter, recovery)
    assert isinstance(part, RecoveringAdapter)
    assert part.name == adapter.name
    assert reach_of(adapter, recovery).starts is None
    assert part_of(part, recovery) is part


def test_one_call_covers_recovery_with_the_core_and_effects() -> None:
    report = verify_all(make_reference(), examples=0, claims=["S22", "S23"])
    assert {f.claim.id for f in report.findings} == {"S22", "S23"}
    assert report.of("S22").verdict is report.of("S23").verdict is Verdict.HELD


class TestReference(ConformanceSuite):
    adapter = staticmethod(make_reference)

    __test__ = False  # its tests are those of test_sqlite.py; here only which there are


def test_the_suite_has_the_claims_of_recovery_for_an_adapter_that_declares_it() -> None:
    suite = TestReference()
    assert {"S14", "S22", "S23"} <= set(suite._ids(suite.make_adapter()))
    assert not {"S22", "S23"} & set(suite._ids(make_sqlite()))


def test_an_adapter_without_recovery_is_told_what_to_write() -> None:
    with pytest.raises(
        UsageError, match=r"declare Capability\.RECOVERY and write what RecoveryAdapter names"
    ):
        verify(make_sqlite(), subject=SUBJECT)
    assert Capability.RECOVERY not in make_sqlite().capabilities


# What the harness does not do, and what it reads where.


def play(session: Session, *moves: tuple[str, tuple[Any, ...]]) -> list[str]:
    """Make moves that are possible, by their names and arguments."""
    made = []
    for action, arguments in moves:
        found = session.plan.oracle.moves(session.state)[action]
        codes = next(c for c, t in found.items() if tuple(map(_plain, t.arguments)) == arguments)
        step = session.play(Move(action, codes))
        made.append("" if step is None else step.difference or step.answered)
    return made


def _plain(value: Any) -> Any:
    return getattr(value, "label", getattr(value, "name", value))


TAKEN_UP = (("check", ("w1",)), ("acquire", ("w1", False)), ("begin", ("w1",)))
TAKEN_OVER = (("expire", ()), ("check", ("w2",)), ("acquire", ("w2", False)), ("begin", ("w2",)))


def plan() -> Plan:
    return prepare(RecoveringSqlite(), subject=SUBJECT)[0]


def test_an_owner_that_was_overtaken_is_not_sent_to_its_checkpoint() -> None:
    with Session(plan()) as session:
        assert play(session, *TAKEN_UP[:2]) == ["done", "ok"]
        assert play(session, *TAKEN_OVER) == ["done", "done", "ok", "done"]
        begin = session.plan.oracle.moves(session.state)["begin"]
        assert begin
        assert session.choices("begin") == []
        assert session.play(Move("begin", next(iter(begin)))) is None


def test_what_a_worker_has_in_memory_is_what_the_run_stands_on() -> None:
    """A worker that believes something else than the model thinks is a difference at once."""
    with Session(plan()) as session:
        assert play(session, *TAKEN_UP) == ["done", "ok", "done"]
        worker: Any = next(iter(session._handles.values()))
        assert isinstance(worker, RecoveringWorker)
        change = worker.change

        def forgets(what: str) -> Any:
            told = change(what)
            worker.phase = "acquired"
            return told

        worker.change = forgets
        (told,) = play(session, ("commit", ("w1", "start", False)))
        assert told.endswith("phase[w1] is acquired in the implementation and resumed in the model")


def test_the_back_door_reads_what_the_harness_planted() -> None:
    adapter = RecoveringSqlite()
    with Session(plan()) as session:
        play(session, *TAKEN_UP, ("commit", ("w1", "start", False)))
        for move in (
            ("change_content", (True, 1, "waiting")),
            ("replay_refused", (1, 0, "pending")),
            ("misplace", (1, "running")),
            ("lose_checkpoint", ()),
        ):
            if move[0] in session.plan.oracle.moves(session.state):
                (answer,) = play(session, move)
                assert answer == "done", move
        seen: Observation = adapter.observe(session.world)
        assert isinstance(seen, RecoveryObservation)
        assert seen.checkpoint is None
        assert (seen.version, seen.standing.now, seen.reported) == (1, "running", False)
