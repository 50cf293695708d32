"""`fencepost demo`: real processes, really killed. What they leave is audited, and each claim can fail."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.cli.killing import processes
from fencepost.cli.killing.broken import BROKEN
from fencepost.cli.killing.fates import KILLS, ONCE, ONCE_WITHOUT_KEYS
from fencepost.cli.killing.orders import COURSES, Course, course_of
from fencepost.cli.killing.processes import DownstreamProcess, Nursery, ProcessesError
from fencepost.cli.killing.supervisor import kill_workers
from fencepost.cli.killing.work import Settings
from fencepost.reference import observe, observe_downstream
from fencepost.reference.audit import CHECKS, Verdict

from .support import fencepost

PATIENCE_SECONDS = 60.0  # only to end a test that has gone wrong


def wait_for(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "fenced and queryable"])
def test_workers_that_are_killed_lose_nothing_and_do_nothing_twice(keyed: bool) -> None:
    report = kill_workers(8, kills=40, keyed=keyed)

    assert {check.name: check.wrongs for check in report.checks if check.wrongs} == {}
    assert {check.name for check in report.checks if check.verdict is not Verdict.HELD} == set()
    assert (report.exit_code, report.killed) == (0, 40)
    # Each kind of fault has happened: on the way forward and back, at the gate, and to who decides.
    once = ONCE if keyed else (*ONCE, *ONCE_WITHOUT_KEYS)
    assert {*report.killed_at, *report.killed_after} >= {point for point, act in once if act in KILLS}
    assert report.started > report.killed
    assert report.continued >= 3
    assert report.downstream_kills >= 5
    assert report.people_kills == 1


def test_where_nobody_can_tell_people_find_out_and_attest() -> None:
    report = kill_workers(6, kills=25, opaque=True)

    assert {check.name: check.wrongs for check in report.checks if check.wrongs} == {}
    # It has no fence, nothing is ever known not to have happened, and few are told.
    not_exercised = {check.name for check in report.checks if check.verdict is Verdict.NOT_EXERCISED}
    assert not_exercised - {"one_notification_per_target"} == {"fence_only_rises", "unknown_is_never_guessed"}
    assert " attested instead" in report.of("receipt_is_true").evidence
    assert "waiting" not in report.of("every_instance_settles").evidence
    assert (report.exit_code, report.killed) == (3, 25)


def test_each_order_ends_as_its_course_says(tmp_path: Path) -> None:
    report = kill_workers(len(COURSES), kills=10, directory=tmp_path)
    assert report.exit_code == 0
    rows = {row.instance: row for row in observe(tmp_path / "store.db").rows}
    ends = {course: {rows[name].status for name in rows if course_of(name) is course} for course in Course}

    assert ends.pop(Course.CANCELLED_LATE) <= {"cancelled", "succeeded"}
    assert ends == {
        Course.WELL: {"succeeded"},
        Course.FAILS: {"failed"},
        Course.CANCELLED: {"cancelled"},
        Course.BY_HAND: {"failed"},
        Course.REJECTED: {"cancelled"},
    }
    (by_hand,) = (name for name in rows if course_of(name) is Course.BY_HAND)
    assert {step.step: (step.status.value, step.attested) for step in rows[by_hand].steps} == {
        "charge": ("compensated", True),
        "reserve": ("compensated", False),
        "quote": ("succeeded", False),
        "ship": ("compensated", False),
        "bill": ("failed", False),
    }


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_on_purpose_is_refuted(name: str) -> None:
    report = kill_workers(6, kills=14, broken=name)

    assert report.of(BROKEN[name].breaks).verdict is Verdict.REFUTED
    assert report.exit_code == 1


def test_the_command_says_what_happened_and_what_held() -> None:
    done = fencepost("demo", "--instances", "6", "--kills", "14", "--directory", "kept")
    lines = done.out.splitlines()

    assert (done.code, done.err) == (0, "")
    assert lines[0] == "6 instances of an order: charge; reserve and quote; ship, once approved; bill"
    assert lines[1].startswith("2 workers at a time, people who cancel, approve and decide, and a downstream")
    assert "the databases are in kept" in lines
    assert sum(line.startswith("HELD ") for line in lines) == len(CHECKS) + 1
    assert "everything" not in done.out
    assert len(observe("kept/store.db").rows) == 6
    assert observe_downstream("kept/ledger.db").effects_of("order-1:bill:ledger-v1")


def test_the_command_shows_what_is_wrong() -> None:
    done = fencepost("demo", "--instances", "6", "--kills", "14", "--broken", "record-in-memory")

    assert done.code == 1
    assert "broken on purpose, record-in-memory: the downstream keeps what it did" in done.out
    assert "\nREFUTED  one_effect_per_intent: No intent took effect twice" in done.out
    assert " took effect 2 times: effect " in done.out


def test_the_same_as_data() -> None:
    done = fencepost("demo", "--instances", "4", "--kills", "12", "--seed", "7", "--json")
    data = json.loads(done.out)

    assert (data["command"], data["killed"], data["seed"], data["exit_code"]) == ("demo", 12, 7, done.code)
    assert sum(data["killed_at"].values()) + sum(data["killed_after"].values()) == 12
    assert {(c["id"], c["name"]) for c in data["checks"]} >= {("S8", "one_effect_per_intent")}
    assert all(c["says"].endswith(".") and c["evidence"] for c in data["checks"])


def test_without_kills_the_claims_about_them_are_not_exercised() -> None:
    report = kill_workers(3, kills=0)

    not_exercised = {check.name for check in report.checks if check.verdict is Verdict.NOT_EXERCISED}
    assert not_exercised == {
        "one_effect_per_intent",
        "fence_only_rises",
        "stale_worker_never_overrides",
    }
    assert (report.started, report.killed, report.exit_code) == (report.workers, 0, 3)


def test_when_the_time_is_up_nothing_is_claimed_of_what_is_left() -> None:
    done = fencepost("demo", "--instances", "2000", "--kills", "1000000", "--budget", "1")

    assert done.code == 3
    assert re.search(r"^UNDETERMINED +L1 +every_instance_settles ", done.out, re.MULTILINE)
    assert " of 1,000,000 kills: the time was up" in done.out
    assert "REFUTED" not in done.out


def test_a_worker_that_fails_by_itself_is_a_finding() -> None:
    report = kill_workers(2, kills=0, lease_ms=0)  # which no store accepts

    failing = report.of("no_worker_fails")
    assert failing.verdict is Verdict.REFUTED
    assert "lease_ms" in failing.wrongs[0]
    assert report.of("every_instance_settles").verdict is Verdict.UNDETERMINED


def test_the_page_says_what_can_be_broken_and_what_that_breaks() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "kill-the-workers.md").read_text(encoding="utf-8")
    ids = {check.__name__: id_ for id_, check in CHECKS}

    for name, what in BROKEN.items():
        assert f"| `{name}` | {what.says} | {ids[what.breaks]} |\n" in page


# Errors.


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--broken", "record-in-memry"), "did you mean 'record-in-memory'?"),
        (("--broken", "xyz"), "there are record-in-memory, fence-not-compared"),
        (("--instances", "0"), "0 is not in the range x>=1"),
        (("--workers", "65"), "65 is not in the range 1<=x<=64"),
        (("--kills", "-1"), "-1 is not in the range x>=0"),
        (("--budget", "0"), "write 30, 30s, 2m or 1h"),
        (("--directory", "a_file/below"), "a_file/below cannot be made: Not a directory; name another"),
        (("--directory", "used"), "used has the files of an earlier run; name another directory"),
    ],
)
def test_a_wrong_option_is_a_usage_error_with_a_remedy(arguments: tuple[str, ...], says: str) -> None:
    Path("a_file").touch()
    Path("used").mkdir()
    Path("used/ledger.db").touch()
    done = fencepost("demo", *arguments)

    assert (done.code, done.out) == (2, "")
    assert says in " ".join(done.err.split())


@pytest.mark.parametrize(("module", "what"), [(os, "fork"), (signal, "SIGSTOP")])
def test_a_system_that_cannot_do_it_is_told(
    module: object, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(module, what)
    done = fencepost("demo")

    assert (done.code, done.out) == (2, "")
    assert "cannot fork, or stop and continue, processes; run it on Linux or macOS" in done.err


def test_a_port_that_somebody_else_has_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with Nursery(Settings("store.db", "ledger.db", lease_ms=100)) as nursery:
        downstream = DownstreamProcess(nursery)
        downstream.kill()
        monkeypatch.setattr(processes, "PATIENCE_SECONDS", 0.1)
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", downstream.port))
            other.listen()
            with pytest.raises(ProcessesError, match=rf"cannot serve at port {downstream.port} .*in use"):
                downstream.start()
        monkeypatch.undo()
        port = downstream.port
        downstream.start()  # free again
        assert downstream.port == port
        downstream.kill()


# Nothing is left.


def descendants(pid: int) -> set[int]:
    """The numbers of all processes below one."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    found, more = set[int](), {pid}
    while more:
        more = {child for child, parent in pairs if parent in more}
        found |= more
    return found


def is_there(pid: int) -> bool:
    """Whether a process runs; one that is dead, and only not waited for, does not."""
    listed = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return listed.stdout.strip()[:1] not in ("", "Z")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_no_process_outlives_the_supervisor(sent: signal.Signals) -> None:
    arguments = ["demo", "--instances", "500", "--kills", "1000000", "--directory", "kept"]
    with subprocess.Popen(
        [sys.executable, "-m", "fencepost.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as supervisor:
        try:
            # The nursery, the downstream and a worker, at the least, and effects.
            wait_for(lambda: Path("kept/ledger.db").exists() and len(descendants(supervisor.pid)) >= 3)
            wait_for(lambda: any(row.lease_version > 1 for row in observe("kept/store.db").rows))
            below = descendants(supervisor.pid)
        finally:
            supervisor.send_signal(sent)
        out, err = supervisor.communicate(timeout=PATIENCE_SECONDS)

    assert below
    wait_for(lambda: not any(map(is_there, below)))
    assert out == ""
    if sent is signal.SIGINT:
        assert supervisor.returncode == 130
        assert err.strip() == "fencepost: interrupted; nothing is claimed about what was not finished"
    else:
        assert supervisor.returncode == -sent


def test_a_temporary_directory_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("places").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(Path("places").resolve()))
    kill_workers(1, kills=0)

    assert list(Path("places").iterdir()) == []
