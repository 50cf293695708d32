"""The class of tests that an implementation gets with one import: what passes, what fails, what it says."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost.checker.subject import UsageError
from fencepost.checker.verdicts import Finding, Verdict
from fencepost.cli.adapters import load_adapter
from fencepost.cli.main import run
from fencepost.conformance import Conformance, ConformanceSuite, suite, verify, verify_statements
from fencepost.conformance.report import UNTELLABLE
from fencepost.conformance.saving import name_of
from fencepost.properties import CORE
from fencepost.reference.broken_stores import UNUSUAL

pytest_plugins = ("pytester",)

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"

HEAD = """
from fencepost.conformance import ConformanceSuite
from dict_store import DictAdapter, make
from broken_dict_store import Trusting, Unlocked
"""


@pytest.fixture
def stores(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A directory with the job stores of the page."""
    for path in EXAMPLES.glob("*_store.py"):
        if not path.name.startswith("test_"):
            shutil.copy(path, pytester.path)
    monkeypatch.setattr(sys, "path", [str(pytester.path), *sys.path])
    return pytester


def outcome(stores: pytest.Pytester, body: str, *arguments: str) -> tuple[dict[str, int], str]:
    """What became of the tests of a file, and the output."""
    stores.makepyfile(test_mine=HEAD + body)
    done = stores.runpytest("-rxs", *arguments)
    return done.parseoutcomes(), done.stdout.str()


def test_a_store_that_is_right_passes_and_only_what_no_run_can_tell_is_skipped(
    stores: pytest.Pytester,
) -> None:
    counts, text = outcome(
        stores,
        """
class TestMine(ConformanceSuite):
    adapter = staticmethod(make)
    claims = ("S1", "S7", "L3")
    examples = 5
    faults = False
""",
        "-v",
    )
    assert counts == {"passed": 4, "skipped": 1}
    for name in ("test_claim[S1]", "test_claim[S7]", "test_lock_step", "test_statements"):
        assert f"TestMine::{name} PASSED" in text
    assert "L3 cannot be told from runs: " in text


def test_a_broken_store_fails_with_the_claim_and_a_line_that_replays_it(
    stores: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts, text = outcome(
        stores,
        """
class TestMine(ConformanceSuite):
    adapter = Trusting
    claims = ("S1",)
    examples = 1
    faults = False
""",
    )
    assert counts == {"failed": 3}
    assert "REFUTED  S1 stale_worker_never_overrides" in text
    assert "An accepted commit was made by the owner of the current lease version." in text
    assert "statement by statement, 2 refuted: S1 stale_worker_never_overrides, lock-step" in text
    tokens = re.findall(r"again +fencepost replay (\w+)$", text, re.MULTILINE)
    assert len(tokens) == 4
    monkeypatch.chdir(stores.path)
    for token in tokens:
        assert run(["replay", token]) == 1
        assert "still breaks" in capsys.readouterr().out


def test_a_store_without_a_lock_fails_between_two_statements_only(stores: pytest.Pytester) -> None:
    counts, text = outcome(
        stores,
        """
class TestMine(ConformanceSuite):
    adapter = staticmethod(Unlocked)
    claims = ("no_version_held_by_two",)
    examples = 1
    faults = False
""",
    )
    assert counts == {"passed": 2, "failed": 1}
    assert "between w1's statement 1 (['job']), which read 0, and its" in text


def test_a_wrong_declaration_fails_both_ways(stores: pytest.Pytester) -> None:
    counts, text = outcome(
        stores,
        """
class Declares(DictAdapter):
    deviations = {"S27": "late commits are taken"}

class TestTooMuch(ConformanceSuite):
    adapter = Declares
    claims = ("S27",)
    examples = 1
    faults = False
""",
    )
    assert counts == {"failed": 2, "passed": 1}
    assert text.count("S27 is declared not to hold (late commits are taken), but nothing broke it") == 2


def test_a_deviation_that_is_declared_and_seen_is_an_expected_failure(stores: pytest.Pytester) -> None:
    counts, text = outcome(
        stores,
        """
from fencepost.reference.broken_stores import UNUSUAL

class TestUnusual(ConformanceSuite):
    claims = ("S27", "S1")
    examples = 1
    faults = False

    def make_adapter(self):
        return UNUSUAL["commits-after-expiry"]
""",
        "-k",
        "claim or lock_step",
    )
    assert counts == {"xfailed": 1, "passed": 2, "deselected": 1}
    reason = UNUSUAL["commits-after-expiry"].deviations["S27"]
    assert f"S27 is REFUTED, as declared: {reason}" in text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("pass", r"TestMine does not say what to test; write in it\n +adapter = staticmethod\(make\)"),
        ("adapter = dict", r"\{\} is no adapter, it has no fresh_world, open_worker, observe"),
        ("adapter = make\n    claims = ('S99',)", "no claim 'S99'"),
    ],
)
def test_a_class_that_cannot_be_tested_says_what_to_write(
    stores: pytest.Pytester, body: str, message: str
) -> None:
    counts, text = outcome(stores, f"\nclass TestMine(ConformanceSuite):\n    {body}\n")
    assert counts == {"errors": 1}
    assert re.search(message, text), text


def test_an_adapter_that_lets_nothing_be_watched_is_told_so_and_not_held(stores: pytest.Pytester) -> None:
    counts, text = outcome(
        stores,
        """
from dict_store import JobStore, Worker

class Deaf(DictAdapter):
    def open_worker(self, world, name, incarnation, around):
        return Worker(JobStore(world.jobs, world.lock, around.clock_ms), f"{name}/{incarnation}")

class TestDeaf(ConformanceSuite):
    adapter = Deaf
    claims = ("S1",)
    examples = 1
""",
    )
    assert counts == {"passed": 2, "failed": 1}
    assert "no schedule can stop between two of its statements" in text


@pytest.mark.slow
def test_the_tests_of_a_class_can_be_spread_over_processes(stores: pytest.Pytester) -> None:
    stores.makepyfile(
        test_mine=HEAD
        + """
class TestMine(ConformanceSuite):
    adapter = staticmethod(make)
    claims = ("S1",)
    examples = 1
    faults = False
"""
    )
    done = stores.runpytest_subprocess("-n", "2", "--dist", "loadscope")
    assert done.parseoutcomes() == {"passed": 3}


# -- what each verdict makes of a test, with reports made by hand

S1 = CORE.claims["stale_worker_never_overrides"]


def report(verdict: Verdict, *, declared: dict[str, str] | None = None, **details: object) -> Conformance:
    found = Finding(S1, verdict, "lock-step, grade O", "1 run", "so it is", details=details)
    return Conformance("verify", "by hand", (found,), {}, ("a note",), None, declared or {})


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Callable[[Conformance], Any]:
    """How the tests of S1 end with a report on whole calls, and how many times it was asked for."""

    def of(made: Conformance) -> list[object]:
        class Suite(ConformanceSuite):
            adapter = staticmethod(lambda: UNUSUAL["two-transactions"])

        asked: list[object] = []
        monkeypatch.setattr(suite, "verify_all", lambda *_, **__: asked.append(made) or made)
        for _ in range(2):
            try:
                Suite().test_claim("S1", lambda *_: None)
            except BaseException as error:  # noqa: BLE001  # what pytest raises is no Exception
                asked.append(error)
        return asked

    return of


@pytest.mark.parametrize("verdict", [Verdict.UNDETERMINED, Verdict.NOT_EXERCISED])
def test_what_is_not_known_fails_with_its_reason(verdict: Verdict, settled: Callable[..., Any]) -> None:
    _, first, second = settled(report(verdict))
    for error in (first, second):
        assert type(error) is pytest.fail.Exception
        assert str(error) == f"{verdict.value}  S1 stale_worker_never_overrides: so it is\na note"


def test_the_checks_are_run_once_for_a_class(settled: Callable[..., Any]) -> None:
    assert len(settled(report(Verdict.HELD))) == 1


def test_what_no_run_can_tell_is_skipped(settled: Callable[..., Any]) -> None:
    _, error, _ = settled(report(Verdict.NOT_EXERCISED, **{UNTELLABLE: True}))
    assert type(error) is pytest.skip.Exception


def test_a_declaration_that_is_only_not_known_to_be_right_fails(settled: Callable[..., Any]) -> None:
    _, error, _ = settled(report(Verdict.UNDETERMINED, declared={"S1": "on purpose"}))
    assert type(error) is pytest.fail.Exception
    assert "declared not to hold (on purpose), but nothing broke it" in str(error)


# -- the stores of the page


def store(name: str) -> Any:
    return load_adapter(f"{EXAMPLES / name}")


def test_the_adapter_of_the_page_is_short() -> None:
    lines = (EXAMPLES / "dict_store.py").read_text(encoding="utf-8").splitlines()
    assert sum(bool(line.strip()) for line in lines) < 60


def test_the_store_of_the_page_is_held_by_calls_and_by_statements() -> None:
    adapter = store("dict_store.py:make")
    for made in (verify(adapter, examples=5), verify_statements(adapter)):
        assert made.exit_code == 0
        assert {f.verdict for f in made.findings if f.claim.id != "L3"} == {Verdict.HELD}
    assert made.figures["left_out"] == made.figures["strayed"] == 0


@pytest.mark.parametrize("name", ["Trusting", "Unlocked"])
def test_the_broken_stores_of_the_page_break_s1_statement_by_statement(name: str) -> None:
    made = verify_statements(store(f"broken_dict_store.py:{name}"), claims=["S1"])
    assert made.of("S1").verdict is Verdict.REFUTED
    assert "unsteady" not in made.of("S1").details


# -- names of adapters


def test_a_function_is_named_by_its_file_or_by_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES.parents[1])
    make = type(store("dict_store.py:make"))
    assert name_of(make) == "docs/examples/dict_store.py:DictAdapter"
    monkeypatch.chdir(tmp_path)
    assert name_of(UNUSUAL["two-transactions"].__class__) == "fencepost.reference.adapter:SqliteAdapter"
    assert name_of(lambda: None) == ""


def test_the_command_line_takes_a_suite_for_its_adapter(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from fencepost.conformance import ConformanceSuite\n"
        "from fencepost.reference.adapter import make_sqlite\n"
        "class TestMine(ConformanceSuite):\n"
        "    adapter = make_sqlite\n"
        "class TestNothing(ConformanceSuite):\n"
        "    pass\n"
    )
    assert load_adapter(f"{path}:TestMine").name == "sqlite"
    with pytest.raises(UsageError, match="write in it"):
        load_adapter(f"{path}:TestNothing")
