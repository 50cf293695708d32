"""How values of options are read, and what is said about values that make no sense."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from fencepost.checker.subject import UsageError, load
from fencepost.cli.options import Mebibytes, Seconds
from fencepost.cli.pins import read_pins
from fencepost.cli.scopes import chosen_scope

from .support import SMALLEST, fencepost


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("30s", 30), ("2m", 120), ("1h", 3600), ("0.5", 0.5), ("1.5 m", 90)]
)
def test_a_time_is_read_with_its_unit(text: str, seconds: float) -> None:
    assert Seconds().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "0", "-3", "3 days", "m", "1e3"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write 30, 30s, 2m or 1h"):
        Seconds().convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "mebibytes"), [("500", 500), ("500M", 500), ("2G", 2048), ("1.5g", 1536), ("64MiB", 64)]
)
def test_an_amount_of_memory_is_read_with_its_unit(text: str, mebibytes: int) -> None:
    assert Mebibytes().convert(text, None, None) == mebibytes


@pytest.mark.parametrize("text", ["", "0", "much", "5K", "0.2M"])
def test_what_is_no_amount_of_memory_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write 500, 500M or 2G"):
        Mebibytes().convert(text, None, None)


def test_sizes_and_bounds_of_a_scope_can_be_changed() -> None:
    scope = chosen_scope(load(), "small:worker=3, lease_version=4")

    assert (3, 4) == (scope.sizes["worker"], scope.bounds["lease_version"])
    assert scope.sizes["commit"] == load().scope("small").sizes["commit"]
    assert scope.name == "small, changed"


def test_switches_can_be_turned_on_and_off() -> None:
    scope = chosen_scope(load(), "quick", on=["pause"], off=["crash"])

    assert "pause" in scope.switches
    assert "crash" not in scope.switches


def test_a_scope_that_is_not_changed_keeps_its_name() -> None:
    assert chosen_scope(load(), "quick", on=["crash"]) is load().scope("quick")


@pytest.mark.parametrize(
    ("text", "switch", "says"),
    [
        ("smal", "", "did you mean 'small'?"),
        ("small:workers=3", "", "did you mean 'worker'?"),
        ("small:worker=many", "", "write NAME=NUMBER"),
        ("small:worker=0", "", "a size is at least 1"),
        ("small", "crsh", "did you mean 'crash'?"),
    ],
)
def test_a_wrong_name_in_a_scope_gets_a_close_match(text: str, switch: str, says: str) -> None:
    with pytest.raises(UsageError, match=says.replace("?", r"\?")):
        chosen_scope(load(), text, off=[switch] if switch else [])


def test_verdicts_as_pinned_give_exit_code_0_even_where_a_claim_is_refuted() -> None:
    Path("pins.toml").write_text('S27 = {verdict = "REFUTED", steps = 4}\n', encoding="utf-8")
    done = fencepost(
        "check", "S27", "--variant", "commits-after-expiry", "--scope", SMALLEST, "--expect", "pins.toml"
    )

    assert (done.code, done.err) == (0, "")
    assert "as pins.toml says" in done.out


@pytest.mark.parametrize(
    ("pins", "says"),
    [
        ('{"S27": "BOUNDED"}', "S27: REFUTED, pinned as BOUNDED"),
        ('{"S27": {"verdict": "REFUTED", "steps": 3}}', "S27: REFUTED in 4 steps, pinned with 3"),
        ('{"S1": "BOUNDED"}', "S27: REFUTED, not pinned"),
    ],
)
def test_each_difference_from_pinned_verdicts_is_listed(pins: str, says: str) -> None:
    Path("pins.json").write_text(pins, encoding="utf-8")
    done = fencepost(
        "check", "S27", "--variant", "commits-after-expiry", "--scope", SMALLEST, "--expect", "pins.json"
    )

    assert done.code == 1
    assert f"not as pins.json says:\n  {says}\n" in done.out


def test_saved_json_output_serves_as_pins() -> None:
    arguments = ("check", "S5", "--scope", SMALLEST)
    Path("saved.json").write_text(fencepost(*arguments, "--json").out, encoding="utf-8")

    assert read_pins("saved.json") == {"S5": "BOUNDED"}
    assert fencepost(*arguments, "--expect", "saved.json").code == 0


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("pins.json", "{", "is not JSON"),
        ("pins.toml", "S1 = ", "is not TOML"),
        ("pins.json", "{}", "holds no verdicts"),
        ("pins.json", '{"S1": "TRUE"}', "'TRUE', which is no verdict"),
    ],
)
def test_a_file_of_pins_that_cannot_be_used_is_a_usage_error(name: str, text: str, says: str) -> None:
    Path(name).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=says):
        read_pins(name)
    with pytest.raises(UsageError, match="give a JSON or TOML file"):
        read_pins("missing.json")


def test_require_proved_is_not_met_by_a_search_of_a_scope() -> None:
    done = fencepost("check", "S5", "--scope", SMALLEST, "--require", "proved")

    assert done.code == 3
    assert fencepost("check", "S5", "--scope", SMALLEST, "--require", "bounded").code == 0


def test_a_search_that_runs_out_of_its_budget_is_undetermined() -> None:
    done = fencepost("check", "S5", "--scope", "small", "--budget", "0.01")

    assert done.code == 3
    assert "UNDETERMINED" in done.out
    assert "did not finish" in done.out


def test_json_holds_verdicts_counts_and_the_token_of_a_run() -> None:
    done = fencepost("check", "S27", "--variant", "commits-after-expiry", "--scope", SMALLEST, "--json")
    data = json.loads(done.out)

    assert (data["exit_code"], done.code, done.err) == (1, 1, "")
    assert data["verdicts"] == {"S27": "REFUTED"}
    assert data["figures"]["states"] > 0
    assert Path(".fencepost", f"{data['replay']['commit_only_while_live']}.json").is_file()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("worker=65", "worker=65 is no size from 1 to 64"),
        ("worker=400", "worker=400 is no size from 1 to 64"),
        ("lease_version=1000001", "lease_version=1000001 is no bound from 0 to 1,000,000"),
        ("lease_version=99999999999999999999", "lease_version=10**12 or more is no bound"),
        ("lease_version=" + "9" * 5000, "lease_version=10**12 or more is no bound"),
        ("worker=²", "write NAME=NUMBER"),
        ("worker=٣", "write NAME=NUMBER"),
    ],
)
@pytest.mark.parametrize("method", ["check", "prove", "simulate", "sweep"])
def test_a_scope_that_no_search_could_end_in_is_refused_at_once(change: str, says: str, method: str) -> None:
    done = fencepost(method, "--scope", f"small:{change}")

    assert (done.code, done.out) == (2, "")
    assert says in " ".join(done.err.split())


def test_the_limits_are_within_the_limits() -> None:
    scope = chosen_scope(load(), "small:worker=64,lease_version=1000000,state_version=00000000000000000002")

    assert (scope.sizes["worker"], scope.bounds["lease_version"]) == (64, 10**6)
    assert scope.bounds["state_version"] == 2


COUNTING = """
from fencepost.model import Counter, Protocol, Range, Sort
from fencepost.properties import Claims

things, number = Sort("thing"), Counter("number")
p = Protocol("counting")
p.variable("n", number, 0, home="here", meaning="a number")
p.scope("own", sizes={{"thing": {size}}}, bounds={{"number": {bound}}}, why="as given")
mine = Claims("mine")


@p.action("somebody", t=things, r=Range(0, {high}))
def count(s, t, r):
    '''It goes on.'''
    s.n = s.n + 1


@mine.always()
def it_is_small(s):
    '''It stays small.'''
    return s.n <= 3
"""


@pytest.mark.parametrize(
    ("size", "bound", "high", "says"),
    [
        ("400", "3", "1", "thing=400 is no size from 1 to 64"),
        ("2", "2**70", "1", "number=10**12 or more is no bound"),
        ("2", "10**5000", "1", "number=10**12 or more is no bound"),
        ("2", "2.5", "1", "give a whole number"),
        ("True", "3", "1", "give a whole number"),
        ("2", "'3'", "1", "give a whole number"),
        ("2", "3", "2**40", "Range(0, 1099511627776)"),
    ],
)
@pytest.mark.parametrize("method", ["check", "simulate"])
def test_a_huge_scope_of_a_users_own_is_refused_at_once(
    size: str, bound: str, high: str, says: str, method: str
) -> None:
    Path("own.py").write_text(COUNTING.format(size=size, bound=bound, high=high), encoding="utf-8")
    done = fencepost(method, "--with", "own.py")

    assert (done.code, done.out) == (2, "")
    assert says in " ".join(done.err.split())


@pytest.mark.parametrize(("bound", "runs"), [(3, 40), (4, 40), (4, 1)])
def test_a_simulation_counts_the_runs_that_were_drawn(bound: int, runs: int) -> None:
    Path("own.py").write_text(COUNTING.format(size=1, bound=bound, high=0), encoding="utf-8")
    done = fencepost("simulate", "--with", "own.py", "--runs", str(runs), "--json")
    figures = json.loads(done.out)["figures"]

    assert figures["runs"] == runs if done.code == 3 else 1 <= figures["runs"] <= runs
    assert figures["steps"] == sum(figures["outcomes"].values())
    assert f"{figures['runs']} random run" in figures["bound"]
