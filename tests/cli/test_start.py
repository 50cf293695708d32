"""Start-up: help without loading anything heavy, commands that exist, options that are honoured."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest

from fencepost.checker.explore import InternalError
from fencepost.checker.subject import BUILT_IN
from fencepost.cli.main import COMMANDS, cli, run
from fencepost.model.protocol import listed

from .support import fencepost

HEAVY = ("z3", "llvmlite", "numpy", "hypothesis", "rich", "fencepost.model", "fencepost.checker")

_WATCH = """
import json, sys
from fencepost.cli.main import run
code = run(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


def loaded_by(*arguments: str) -> tuple[int, set[str]]:
    command = [sys.executable, "-c", _WATCH, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stderr.splitlines()[-1])
    return code, set(modules)


@pytest.mark.parametrize(
    "arguments", [("--help",), ("--version",), *((c, "--help") for c in ("check", "evidence", "demo"))]
)
def test_help_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    code, modules = loaded_by(*arguments)

    assert code == 0
    assert sorted(modules & set(HEAVY)) == []


def test_only_the_module_of_the_command_is_loaded() -> None:
    _, modules = loaded_by("prove", "--help")

    assert sorted(m for m in modules if m.startswith("fencepost.cli.commands.")) == [
        "fencepost.cli.commands.prove"
    ]


def test_listing_loads_neither_solver_nor_compiler() -> None:
    code, modules = loaded_by("list", "claims")

    assert code == 0
    assert sorted(modules & {"z3", "llvmlite", "numpy", "hypothesis", "rich"}) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_a_command_in_help_is_its_own(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)

    assert command is not None
    assert (command.name, command.short_help) == (name, COMMANDS[name])
    assert COMMANDS[name] == (command.help or "").split("\n\n")[0].replace("\n", " ")


def test_the_script_is_the_entry_point() -> None:
    (script,) = entry_points(group="console_scripts", name="fencepost")

    assert script.value == "fencepost.cli.main:main"
    assert importlib.import_module("fencepost.cli.main").main is script.load()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_prints_json(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = {option for p in command.params for option in p.opts}

    assert {"--json", "--debug"} <= options


OFFERED = {
    "check": "--with --variant --model --scope --on --off --budget --memory --jobs --stop --require --expect",
    "prove": "--with --variant --model --scope --on --off --seed --budget --require --expect",
    "simulate": "--with --variant --model --scope --on --off --runs --steps --seed --budget --expect",
    "sweep": "--with --variant --model --scope --on --off --kinds --pairs --budget --memory --jobs",
    "verify": "--with --model --examples --steps --statements --seed --budget --jobs --expect",
    "evidence": "--with --model --scope --on --off --seed --budget --memory --jobs --require --expect",
    "demo": "--instances --workers --kills --seed --budget --keyed --opaque --broken --directory",
    "replay": "--with --variant --model --adapter --as",
    "list": "--with --variant --model",
    "explain": "--with --variant --model",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_the_options_that_it_honours_and_no_other(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = {p.opts[0] for p in command.params if isinstance(p, click.Option)}

    assert options == {*OFFERED[name].split(), "--json", "--debug"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("chek",), "did you mean 'check'?"),
        (("nonsense",), "there are check, prove"),
        (("check", "--bugdet", "3"), "--budget"),
        (("check", "--budget", "soon"), "write 30, 30s, 2m or 1h"),
        (("check", "S28"), "did you mean 'S8' or 'S2"),
        (("check", "S8-revison"), "did you mean 'S8-revision'"),
        (("check", "--model", "efects"), "did you mean 'effects'?"),
        (
            ("check", "--scope", "quik"),
            f"no scope 'quik' in {listed(BUILT_IN)}: did you mean 'quick'",
        ),
        (("check", "every_contact_is_recorded", "--scope", "large"), "effects has no scope 'large'"),
        (
            ("check", "S2", "every_contact_is_recorded", "--scope", "large"),
            "is a claim of effects, which does not have 'large'",
        ),
        (("check", "--on", "record_expird"), "did you mean 'record_expired'?"),
        (("check", "--model", "core", "--variant", "fence-not-compared"), "no variant 'fence-not-compared'"),
        (("check", "--variant", "late-comit-by-id"), "did you mean 'late-commit-by-id'?"),
        (("check", "--with", "missing.py"), "missing.py: no such file"),
        (("explain", "lease-expird"), "did you mean 'lease-expired'?"),
        (("replay", "zzzzzz"), "no trace 'zzzzzz'"),
        (("sweep", "--kinds", "whn"), "did you mean 'when'?"),
        (("verify", "sqlit"), "did you mean 'sqlite'?"),
        (("demo", "--broken", "key-per-rety"), "did you mean 'key-per-retry'?"),
        (("verify", "no.such.module:make"), "no module 'no.such.module'"),
        (("verify", "fencepost.reference.adapter:make_sqlit"), "did you mean 'make_sqlite'?"),
        (("verify", "json:dumps"), "without arguments"),
        (("list", "claim"), "claims"),
        (("verify", "pathlib:Path"), "which is no adapter"),
        (("replay",), "TOKEN"),
    ],
)
def test_a_wrong_word_is_a_usage_error_with_a_remedy(arguments: tuple[str, ...], says: str) -> None:
    done = fencepost(*arguments)

    assert (done.code, done.out) == (2, "")
    assert says in " ".join(done.err.split())
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "--scope", "xyz"),
        ("check", "--scope", "xyz", "--model", "core"),
        ("check", "--on", "xyz"),
        ("check", "--on", "xyz", "--model", "core"),
        ("check", "--scope", "small:xyz=1"),
        ("check", "--scope", "small:xyz=1", "--model", "core"),
        ("check", "--model", "xyz"),
        ("sweep", "--kinds", "xyz"),
    ],
)
def test_what_is_not_known_is_not_answered_with_none_and_then_with_what_there_is(
    arguments: tuple[str, ...],
) -> None:
    done = fencepost(*arguments)

    said = " ".join(done.err.split())
    assert (done.code, "known: " in said) == (2, True)
    assert "none" not in said


def test_no_command_at_all_prints_help_and_is_a_usage_error() -> None:
    done = fencepost()

    assert done.code == 2
    assert "Usage: fencepost" in done.text


def test_a_package_that_would_hide_fencepost_is_pointed_out() -> None:
    Path("fencepost").mkdir()
    Path("fencepost", "__init__.py").touch()
    done = fencepost("list")

    assert done.code == 2
    assert "would hide parts of fencepost" in done.err


def test_an_unexpected_error_is_one_message_and_exit_code_4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.checker.subject.load_all", None)
    done = fencepost("list")

    assert (done.code, done.out) == (4, "")
    assert "internal error: TypeError: 'NoneType' object is not callable" in done.err
    assert "Please report it" in done.err
    assert "Traceback" not in done.err
    assert "Traceback" in fencepost("list", "--debug").err


def test_readings_that_disagree_are_a_mistake_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def disagree(*_: object, **__: object) -> None:
        raise InternalError("core: compiled and run reading differ in live")

    monkeypatch.setattr("fencepost.checker.together.check_all", disagree)
    done = fencepost("check")

    assert (done.code, done.out) == (4, "")
    assert "InternalError: core: compiled and run reading differ in live" in done.err


def test_the_calls_behind_commands_are_loaded_when_they_are_asked_for() -> None:
    program = (
        "import sys, fencepost.checker as c\n"
        "assert 'fencepost.model' not in sys.modules\n"
        "assert c.Verdict.PROVED.value == 'PROVED' and callable(c.load) and 'check' in dir(c)\n"
        "assert 'fencepost.checker.native' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_an_interruption_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fencepost.checker.subject.load_all", interrupted)
    done = fencepost("list")

    assert done.code == 130
    assert "nothing is claimed" in done.err


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    program = "from fencepost.cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "list", "claims"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""


def test_what_is_run_is_what_main_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["fencepost", "--version"])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module("fencepost.cli.main").main()

    assert (ended.value.code, run(["--version"])) == (0, 0)
