"""Statement by statement: what breaks only between two statements is found, shown and run again."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from fencepost.checker.traces import ReplayError
from fencepost.checker.verdicts import EXIT_OK, EXIT_UNDETERMINED, Verdict
from fencepost.conformance import LOCK_STEP, Conformance, Refused, read_tape, replay_tape, verify_statements
from fencepost.conformance.core import STATEMENTS
from fencepost.conformance.refinement import Memory
from fencepost.conformance.schedules import Item, Outcome, Schedule, interleavings
from fencepost.conformance.stage import Stage
from fencepost.conformance.tapes import Tape, play_tape, tape_from_json
from fencepost.conformance.verify import prepare
from fencepost.reference.adapter import SqliteAdapter, make_sqlite
from fencepost.reference.broken_stores import BETWEEN_STATEMENTS, BROKEN, LYING, UNUSUAL

from .dict_store import DictAdapter, DictWorker, RewindingDictAdapter

ADAPTERS = {
    **{name: make_sqlite(text, name=name) for name, text in {**BROKEN, **LYING}.items()},
    **BETWEEN_STATEMENTS,
}

BREAKS = {
    "late-commit-by-id": "stale_worker_never_overrides",
    "status-only-guard": "stale_worker_never_overrides",
    "check-then-act": "stale_worker_never_overrides",
    "lease-version-not-raised": "lease_version_only_grows",
    "renewal-revives": "takeover_only_after_expiry",
    "release-by-anyone": "only_expiry_or_the_owner_ends_a_lease",
    "refused-but-committed": "log_has_no_gap",
    "owner-by-name": "no_version_held_by_two",
    "ok-but-not-committed": "what_was_answered_ok_is_in_the_log",
    "no-commit-id": "what_was_refused_is_not_in_the_log",
    "renewal-shortens": LOCK_STEP.name,
}


@cache
def report(name: str) -> Conformance:
    """The report on a broken store about the claim that it breaks, found once in a process."""
    claim = BREAKS[name]
    return verify_statements(ADAPTERS[name], claims=["lock-step" if claim == LOCK_STEP.name else claim])


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_store_is_refuted_by_the_claim_that_it_breaks(name: str) -> None:
    found = next(f for f in report(name).findings if f.claim.name == BREAKS[name])
    assert found.verdict is Verdict.REFUTED
    assert found.method == "statements, grade S"
    assert found.details["statements"]
    assert "unsteady" not in found.details


def test_check_then_act_is_wrong_only_between_two_statements_and_the_cause_says_where() -> None:
    found = report("check-then-act").of("S1")
    assert "2 switches" in found.why
    cause = found.details["cause"]
    assert cause.startswith("w2's acquire set lease_version to 2 between w1's statement 2 (select")
    assert "which read 1, and its statement" in cause
    assert cause.endswith("which does not compare lease_version")
    text = "\n".join(report("check-then-act").lines())
    assert cause in text
    assert "lease_version 1 → 2" in text
    assert "again  replay_tape('" in text


@pytest.mark.slow  # a table on a page, which the short run compares, says so too
def test_the_reference_holds_everything_in_all_interleavings() -> None:
    found = verify_statements(make_sqlite(), faults=False)
    assert found.refuted == ()
    assert found.figures["left_out"] == 0
    assert found.of("S1").verdict is Verdict.HELD
    assert found.exit_code == EXIT_OK
    assert f"all {found.figures['interleavings']} interleavings of 2" in found.of("S1").bound


def test_a_budget_that_is_used_up_holds_nothing() -> None:
    found = verify_statements(make_sqlite(), budget_s=0, claims=["S1"])
    assert found.of("S1").verdict is Verdict.UNDETERMINED
    assert found.exit_code == EXIT_UNDETERMINED
    assert found.figures["left_out"] > 0


# -- tapes


def saved(tmp_path: Path, name: str = "check-then-act") -> Path:
    return tape_from_json(report(name).of("S1").details["tape"]).save(tmp_path)


def test_a_saved_tape_fails_again_on_the_store_that_made_it(tmp_path: Path) -> None:
    again = replay_tape(saved(tmp_path), ADAPTERS["check-then-act"])
    assert again.fails
    assert (again.breaks, again.unsteady, again.changed) == ("stale_worker_never_overrides", "", "")


def test_a_saved_tape_does_not_fail_on_a_store_that_compares_once_more(tmp_path: Path) -> None:
    again = replay_tape(saved(tmp_path), replace(UNUSUAL["two-transactions"], name="check-then-act"))
    assert not again.fails
    assert again.difference == ""


def test_a_tape_is_the_same_after_saving_and_reading(tmp_path: Path) -> None:
    path = saved(tmp_path)
    assert read_tape(path) == tape_from_json(report("check-then-act").of("S1").details["tape"])
    assert read_tape(path).token == path.stem


def test_that_the_model_or_the_adapter_is_another_one_is_said(tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "fingerprint": "0" * 16}))
    assert replay_tape(path, ADAPTERS["check-then-act"]).changed == "the model has changed since"
    assert "check-then-act" in replay_tape(path, make_sqlite()).changed


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "trace", "format": 1}', "not json"])
def test_a_file_that_is_no_tape_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tape.json"
    path.write_text(text)
    with pytest.raises(ReplayError, match=r"tape\.json"):
        read_tape(path)


# -- stores in a dictionary


def test_a_dictionary_behind_a_lock_is_checked_too() -> None:
    found = verify_statements(RewindingDictAdapter(), faults=False, claims=["S1", "lock-step"])
    assert found.refuted == ()
    assert found.of("S1").verdict is Verdict.HELD


def test_without_putting_back_each_schedule_has_a_fresh_world() -> None:
    adapter = DictAdapter()
    found = verify_statements(adapter, claims=["lock-step"], budget_s=2)
    assert found.refuted == ()
    assert next(adapter.opened) > found.figures["schedules"]


def test_a_dictionary_without_its_lock_loses_an_update() -> None:
    found = verify_statements(RewindingDictAdapter(locking="none"), claims=["lock-step"])
    lost = found.of("lock-step")
    assert lost.verdict is Verdict.REFUTED
    assert "2 switches" in lost.why


def test_two_changes_in_one_operation_are_one_too_many() -> None:
    difference = (
        verify_statements(RewindingDictAdapter(in_two_writes=True), claims=["lock-step"])
        .of("lock-step")
        .details["difference"]
    )
    assert "acquire" in difference
    assert "neither as before nor as after the call" in difference


def test_a_deadlock_is_a_difference_that_names_its_cycle() -> None:
    found = verify_statements(RewindingDictAdapter(locking="two"), claims=["lock-step"], faults=False)
    difference = found.of("lock-step").details["difference"]
    assert difference.startswith("deadlock: ")
    assert difference.count("waits before its statement 2 (acquire the lock)") == 2


def test_an_answer_that_no_moment_justifies_is_a_difference() -> None:
    class Early(DictWorker):
        def acquire(self, *, lease_ms: int) -> object:
            super().acquire(lease_ms=lease_ms)
            return Refused("finished")

    def early(worker: DictWorker) -> DictWorker:
        worker.__class__ = Early
        return worker

    found = verify_statements(RewindingDictAdapter(passed=early), claims=["lock-step"])
    assert "although the call changed what is stored" in found.of("lock-step").details["difference"]


def test_an_implementation_that_does_otherwise_the_second_time_is_not_deterministic() -> None:
    class Moody(DictWorker):
        calls = 0

        def release(self, lease_version: int) -> object:
            Moody.calls += 1
            return Refused("finished") if Moody.calls == 5 else super().release(lease_version)

    def moody(worker: DictWorker) -> DictWorker:
        worker.__class__ = Moody
        return worker

    found = verify_statements(RewindingDictAdapter(passed=moody), claims=["lock-step"], faults=False)
    compared = found.of("lock-step")
    assert compared.verdict is Verdict.UNDETERMINED
    assert compared.why.startswith("non-deterministic implementation: ")


# -- counting


@pytest.fixture
def stage() -> Iterator[Stage]:
    plan, _ = prepare(RewindingDictAdapter(locking="none"), scope=STATEMENTS)
    with Stage(plan) as made:
        yield made


def test_two_calls_of_two_steps_have_as_many_schedules_as_there_are_ways_to_mix_them(stage: Stage) -> None:
    ready = stage.ready(())
    scripts = ((Item("acquire", (0, 0)),), (Item("acquire", (1, 0)),))

    def run(policy: object) -> Outcome:
        return Schedule(stage, Memory(), scripts).run(ready, policy)  # type: ignore[arg-type]

    found = list(interleavings(run))
    # Both read before either writes: 4. One has ended before the other reads, which is then refused: 2.
    assert sorted("".join(o.choices) for o in found) == ["aab", "abab", "abba", "baab", "baba", "bba"]
    assert len([o for o in found if o.account.difference]) == 4


def test_a_tape_of_moves_alone_shows_what_broke_on_the_way(stage: Stage) -> None:
    played = play_tape(stage, Tape(()))
    assert played.breaks == ()
    assert played.outcome is None


def test_the_sqlite_adapter_takes_a_directory_for_its_files(tmp_path: Path) -> None:
    adapter = SqliteAdapter(directory=tmp_path)
    world = adapter.fresh_world()
    assert world.path.is_relative_to(tmp_path)
    adapter.close_world(world)
