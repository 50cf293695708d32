"""Files of the user's own, end to end: claims that hold or do not, changed guards, new actions, mistakes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from fencepost.properties import CORE

from .support import SMALLEST, fencepost, tokens, users_file


def test_a_claim_that_holds_is_bounded_by_a_search() -> None:
    done = fencepost("check", "M1", "--with", users_file("holds"), "--scope", SMALLEST)

    assert (done.code, done.err) == (0, "")
    assert "BOUNDED  M1  an_owner_comes_with_a_version" in done.out
    assert "2 workers, 1 commit, lease_version ≤ 2" in done.out


def test_a_claim_that_holds_is_proved_for_all_sizes() -> None:
    done = fencepost("prove", "an_owner_comes_with_a_version", "--with", users_file("holds"))

    assert (done.code, done.err) == (0, "")
    assert "PROVED  M1  an_owner_comes_with_a_version" in done.out
    assert "any number of workers" in done.out


def test_the_claims_of_a_file_come_beside_the_built_in_ones() -> None:
    users_file("holds")
    done = fencepost("list", "--with", "holds.py")

    assert (done.code, done.err) == (0, "")
    assert all(claim in done.out for claim in ("S1, S2", "M1"))
    assert "an_owner_comes_with_a_version" not in CORE.claims


def test_a_false_claim_is_refuted_with_a_shortest_run() -> None:
    done = fencepost("check", "M2", "--with", users_file("false"), "--scope", SMALLEST)

    assert (done.code, done.err) == (1, "")
    assert "REFUTED  M2 an_owner_knows_it" in done.out
    assert "Who owns a live lease takes it for its own." in done.out
    assert "shortest run: 1 step" in done.out
    assert "claim: false.py:10" in done.out
    assert len(tokens(done.out)) == 1


@pytest.mark.parametrize("command", ["prove", "simulate"])
def test_a_false_claim_is_refuted_by_every_method(command: str) -> None:
    done = fencepost(command, "M2", "--with", users_file("false"), "--scope", SMALLEST)

    assert (done.code, done.err) == (1, "")
    assert "REFUTED  M2 an_owner_knows_it" in done.out


@pytest.mark.parametrize("name", ["changed_guard", "without_guard"])
def test_a_changed_guard_keeps_one_claim_and_loses_another(name: str) -> None:
    done = fencepost("check", "S1", "S27", "--with", users_file(name), "--scope", SMALLEST)

    assert (done.code, done.err) == (1, "")
    assert "BOUNDED  S1   stale_worker_never_overrides" in done.out
    assert "REFUTED  S27 commit_only_while_live" in done.out
    assert "the guard that would have refused decide_commit(c1): lease-expired" in done.out


def test_a_new_action_is_checked_against_the_built_in_claims() -> None:
    done = fencepost("check", "S3", "--with", users_file("new_action"), "--scope", SMALLEST)

    assert (done.code, done.err) == (1, "")
    assert "REFUTED  S3 lease_version_only_grows" in done.out
    assert "the unbroken model has no action purge" in done.out
    assert "last step: new_action.py:10" in done.out


def test_a_new_action_is_listed_and_explained() -> None:
    users_file("new_action")

    assert "purge" in fencepost("list", "actions", "--with", "new_action.py").out
    explained = fencepost("explain", "purge", "--with", "new_action.py").out
    assert "The row is wiped by a clean-up that asks nobody (§3)." in explained
    assert "s.lease_version = 0" in explained


HEAD = """\
from fencepost.model import every, refuse_unless, when
from fencepost.model.core import core
from fencepost.model.core.state import workers
from fencepost.properties import Claims

mine = Claims("mine")


"""

CLAIM = '@mine.always()\ndef own(s):\n    """A claim of my own."""\n    return {}\n'

MISTAKES = {
    "a syntax error": (
        "mine = Claims('mine'\n\n@mine.always()\ndef own(s):\n    pass\n",
        [
            "own.py:9: syntax error: '(' was never closed",
            "  9 | mine = Claims('mine'",
            "    |              ^",
        ],
    ),
    "a name that nothing has, when the file is loaded": (
        "mine.always(id=nothing)\n",
        ["own.py:9: NameError: name 'nothing' is not defined", "    |                ^^^^^^^"],
    ),
    "a name that nothing has, when the claim is read": (
        CLAIM.format("s.owner.present == nothing"),
        [
            "own.py:12: NameError: name 'nothing' is not defined",
            "    |                               ^^^^^^^",
        ],
    ),
    "an identity test on state": (
        CLAIM.format("s.owner is None or s.live"),
        [
            "own.py:12: in own: `is None` cannot be seen",
            "    |                    ^^^^^^^",
            "= ask x.present",
        ],
    ),
    "an unknown state variable": (
        CLAIM.format("s.lease_versions >= 0"),
        [
            "own.py:12: in own: no state variable 'lease_versions'",
            "^^^^^^^^^^^^^^",
            "did you mean 'lease_version'?",
        ],
    ),
    "an unknown field": (
        CLAIM.format("not s.owner.present or s.owner.value.wroker == s.owner.value.worker"),
        ["own.py:12: in own: Owner has no field 'wroker'", "^^^^^^", "worker"],
    ),
    "an optional that may be absent": (
        CLAIM.format("every(workers, lambda w: s.owner.value.worker == w or s.live)"),
        ["own.py:12: claim own reads something that may not be there", "12 |     return every(", "x.present"],
    ),
    "a claim without a sentence": (
        "@mine.always()\ndef own(s):\n    return s.live\n",
        ["own.py:9: claim 'own' has no docstring", "  9 | @mine.always()", "write one sentence"],
    ),
    "a claim with too many arguments": (
        '@mine.always()\ndef own(before, after):\n    """A claim."""\n    return True\n',
        ["own.py:9: claim 'own' takes 2 arguments", "each_step(before, after)"],
    ),
    "a variant of an action that does not exist": (
        "mine.claims.clear()\nlate = core.variant('late', aquire=every)\n",
        ["own.py:10: late replaces 'aquire'", "10 | late = core.variant('late', aquire=every)", "'acquire'"],
    ),
    "an end of the program that looks like success": (
        "import sys\nsys.exit(0)\n",
        [" own.py:10: this ends the program (SystemExit: 0)".strip(), " 10 | sys.exit(0)", "take it out"],
    ),
    "an end of the program in a claim": (
        CLAIM.format("quit(0)"),
        ["own.py:12: ", "quit(0)"],
    ),
    "an exception that is no error": (
        "raise GeneratorExit\n",
        ["own.py:9: GeneratorExit"],
    ),
    "a module that is not there": (
        "import nowhere_to_be_found\n",
        ["own.py:9: ModuleNotFoundError: No module named 'nowhere_to_be_found'"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_shown_at_the_users_line(mistake: str) -> None:
    text, wanted = MISTAKES[mistake]
    Path("own.py").write_text(HEAD + text, encoding="utf-8")
    done = fencepost("check", "own", "--with", "own.py", "--scope", SMALLEST)

    assert (done.code, done.out) == (2, "")
    assert [w for w in wanted if w not in done.err] == [], done.err
    assert "Traceback" not in done.err


def test_a_mistake_in_a_changed_action_is_shown_at_the_users_line() -> None:
    Path("own.py").write_text(
        HEAD
        + textwrap.dedent("""\
            def expire_now(s):
                '''The lease is over.'''
                when(s.live)
                refuse_unless(s.finished, "lease-expird")
                s.live = False


            changed = core.variant("changed", expire=expire_now)
            """),
        encoding="utf-8",
    )
    done = fencepost("check", "S1", "--with", "own.py", "--scope", SMALLEST)

    assert (done.code, done.out) == (2, "")
    assert "own.py:12: in expire_now:" in done.err
    assert ' 12 |     refuse_unless(s.finished, "lease-expird")' in done.err


def test_a_file_without_claims_or_a_protocol_says_what_to_write() -> None:
    Path("own.py").write_text("print('hello')\n", encoding="utf-8")
    done = fencepost("check", "--with", "own.py")

    assert done.code == 2
    assert "defines neither claims nor a protocol" in done.err


def test_a_prove_of_what_is_true_but_not_inductive_is_undetermined() -> None:
    Path("own.py").write_text(
        HEAD + CLAIM.format("s.state_version <= 2 or not s.live or s.lease_version >= 1"), encoding="utf-8"
    )
    done = fencepost("prove", "own", "--with", "own.py", "--scope", SMALLEST)

    assert done.code in (0, 3)
    assert ("PROVED" in done.out) == (done.code == 0)
    assert "REFUTED" not in done.out


@pytest.mark.parametrize("method", ["check", "prove", "simulate"])
def test_a_neighbour_of_a_users_file_hides_no_module(method: str) -> None:
    users_file("holds")
    Path("mine").mkdir()
    Path("holds.py").rename("mine/holds.py")
    for name in ("z3", "json", "numpy", "llvmlite", "hypothesis", "textwrap", "fencepost"):
        Path(f"mine/{name}.py").write_text(f"raise RuntimeError('not this {name}')\n", encoding="utf-8")
    program = "from fencepost.cli.main import main; main()"
    command = [sys.executable, "-c", program, method, "M1", "--with", "mine/holds.py", "--scope", SMALLEST]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (3 if method == "simulate" else 0, "")


def test_a_users_file_imports_its_neighbours() -> None:
    Path("neighbour_of_own.py").write_text("HIGHEST = 7\n", encoding="utf-8")
    text = HEAD.replace("from", "from neighbour_of_own import HIGHEST\nfrom", 1)
    Path("own.py").write_text(text + CLAIM.format("s.lease_version <= HIGHEST"), encoding="utf-8")

    assert fencepost("check", "own", "--with", "own.py", "--scope", SMALLEST).code == 0


@pytest.mark.parametrize("name", ["own_protocol", "changed_guard", "new_action"])
@pytest.mark.parametrize("method", ["check", "prove", "simulate", "sweep", "list"])
def test_a_variant_beside_a_file_with_its_own_protocol_is_refused(name: str, method: str) -> None:
    done = fencepost(method, "--with", users_file(name), "--variant", "commits-after-expiry")

    assert (done.code, done.out) == (2, "")
    assert "the variant 'commits-after-expiry' would not be looked at" in " ".join(done.err.split())


def test_a_variant_beside_a_file_of_claims_is_looked_at() -> None:
    done = fencepost(
        "check", "S27", "--with", users_file("holds"), "--variant", "commits-after-expiry",
        "--scope", SMALLEST,
    )  # fmt: skip

    assert (done.code, done.err) == (1, "")


@pytest.mark.parametrize("method", ["check", "prove", "simulate", "sweep", "list", "evidence"])
def test_a_second_file_is_refused(method: str) -> None:
    done = fencepost(method, "--with", users_file("holds"), "--with", users_file("false"))

    assert (done.code, done.out) == (2, "")
    assert "given 2 times: holds.py, false.py; import one from the other" in done.err


INVARIANTS = (
    HEAD
    + '''\
@mine.supporting()
def a_true_invariant(s):
    """Who owns a lease has a version."""
    return s.owner.present or s.lease_version == 0


@mine.supporting()
def a_false_invariant(s):
    """Nobody ever owns a lease."""
    return not s.owner.present
'''
)


@pytest.mark.parametrize("method", ["check", "prove", "simulate"])
def test_a_supporting_invariant_is_refuted_by_name(method: str) -> None:
    Path("own.py").write_text(INVARIANTS, encoding="utf-8")
    done = fencepost(method, "a_false_invariant", "--with", "own.py", "--scope", SMALLEST)

    assert (done.code, done.err) == (1, "")
    assert "REFUTED  a_false_invariant" in done.out
    assert "a_true_invariant" not in done.out.split("supporting invariants that are not shown")[0]
    (token,) = tokens(done.out)
    assert fencepost("replay", token).code == 1


@pytest.mark.parametrize(("method", "verdict"), [("check", "BOUNDED"), ("prove", "PROVED")])
def test_a_true_supporting_invariant_has_its_verdict(method: str, verdict: str) -> None:
    Path("own.py").write_text(INVARIANTS.replace("a_false", "_false"), encoding="utf-8")
    done = fencepost(method, "a_true_invariant", "S5", "--with", "own.py", "--scope", SMALLEST)

    assert (done.code, done.err) == (0, "")
    assert f"{verdict}" in done.out
    assert "a_true_invariant" in done.out


def test_supporting_invariants_are_checked_only_when_they_are_named() -> None:
    Path("own.py").write_text(INVARIANTS, encoding="utf-8")

    assert "invariant" not in fencepost("check", "--with", "own.py", "--scope", SMALLEST).out


@pytest.mark.parametrize(
    ("asked", "says", "says_not"),
    [
        ("a_fals_invariant", "did you mean 'a_false_invariant'", "the claims are"),
        ("no_stuck_stat", "did you mean 'no_stuck_state'?", "the claims are"),
        ("S77", "'S7'", "the claims are"),
        ("%%%", "the claims are S1, S2, S3, S4, S5, S6-end, S7, S25, S27, L3", "no_stuck_state"),
    ],
)
def test_an_unknown_claim_is_answered_with_close_names_or_all_ids(
    asked: str, says: str, says_not: str
) -> None:
    Path("own.py").write_text(INVARIANTS, encoding="utf-8")
    done = fencepost("check", asked, "--with", "own.py")

    assert done.code == 2
    assert says in " ".join(done.err.split())
    assert says_not not in done.err


def test_a_sweep_names_a_claim_without_an_id_once_and_counts_in_plain_words() -> None:
    Path("own.py").write_text(OWN_SWITCH, encoding="utf-8")
    done = fencepost("sweep", "--with", "own.py")

    assert "none of these changes breaks it_is_a_switch\n" in done.out
    assert "; 1 claim that nothing breaks;" in done.out
    assert "1 claims" not in done.out


OWN_SWITCH = '''\
from fencepost.model import BOOLEAN, Protocol
from fencepost.properties import Claims

p = Protocol("switch")
p.variable("up", BOOLEAN, False, home="here", meaning="whether it is up")
p.scope("only", sizes={}, bounds={}, why="there is nothing to size")
mine = Claims("mine")


@p.action("somebody")
def flip(s):
    """It is flipped."""
    s.up = not s.up


@mine.always()
def it_is_a_switch(s):
    """It is up or down."""
    return s.up or not s.up
'''


@pytest.mark.parametrize("method", ["check", "prove", "simulate", "sweep", "list", "explain", "evidence"])
def test_a_claim_that_needs_an_unknown_switch_off_is_refused_by_every_command(method: str) -> None:
    text = (HEAD + CLAIM.format("True")).replace('Claims("mine"', 'Claims("mine", about="effects"')
    Path("own.py").write_text(text.replace("@mine.always(", '@mine.always(needs_off=("record_expire",), '))
    names = ["own"] if method == "explain" else []
    done = fencepost(method, *names, "--with", "own.py")

    assert (done.code, done.out) == (2, "")
    assert "needs the switch 'record_expire' off" in " ".join(done.err.split())
    assert "did you mean 'record_expired'?" in " ".join(done.err.split())
