"""`verify` on the command line: the reference, broken stores, declarations, claims of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.checker.subject import UsageError, load_all
from fencepost.cli.adapters import subjects_for
from fencepost.properties import CORE, EFFECTS, Kind
from fencepost.reference.adapter import make_reference, make_sqlite

from .support import fencepost, users_file

PAGE = Path(__file__).resolve().parents[2] / "docs" / "examples"

FEW = ("--examples", "10")


def test_the_reference_holds() -> None:
    done = fencepost("verify", "sqlite", "S1", "S27", "--model", "core", *FEW)

    assert (done.code, done.err) == (0, "")
    assert "HELD  S1   stale_worker_never_overrides" in done.out
    assert "grade O" in done.out


def test_a_store_that_does_not_conform_is_refuted_with_both_sides_answers() -> None:
    done = fencepost("verify", f"{users_file('broken_store')}:make", "S27", *FEW)

    assert (done.code, done.err) == (1, "")
    assert "REFUTED  S27 commit_only_while_live" in done.out
    assert "lease-expired" in done.out
    assert "fencepost replay" in done.out


def test_results_that_equal_the_declaration_give_exit_code_0() -> None:
    done = fencepost("verify", f"{users_file('broken_store')}:declared", "S1", "S27", *FEW)

    assert (done.code, done.err) == (0, "")
    assert "S27: refuted, as declared (commits are accepted after expiry)" in done.out


def test_a_claim_that_no_run_can_tell_is_said_not_to_count() -> None:
    done = fencepost("verify", "sqlite", "S1", "L3", "--model", "core", *FEW)

    assert done.code == 0
    assert "NOT EXERCISED  L3  no_stuck_state" in done.out
    assert "L3 cannot be told from runs, and does not count" in done.out


def test_a_claim_of_ones_own_is_asked_of_an_implementation() -> None:
    done = fencepost("verify", "sqlite", "M1", "--with", users_file("holds"), *FEW)

    assert (done.code, done.err) == (0, "")
    assert "HELD  M1  an_owner_comes_with_a_version" in done.out


def test_the_result_is_plain_data_too() -> None:
    data = json.loads(fencepost("verify", "sqlite", "S7", *FEW, "--json").out)

    assert data["verdicts"] == {"S7": "HELD"}
    assert data["figures"]["runs"] >= 10


def test_statement_by_statement_a_race_is_found_and_replayed() -> None:
    make = f"{PAGE / 'broken_dict_store.py'}:Unlocked"
    done = fencepost("verify", make, "lease_version_only_grows", "--statements")

    assert (done.code, done.err) == (1, "")
    assert "statements, grade S" in done.out
    assert "between w1's statement 1 (['job']), which read 0" in done.out
    token = done.out.split("again        fencepost replay ")[1].split()[0]
    again = fencepost("replay", token)
    assert (again.code, again.err) == (1, "")
    assert "lease_version_only_grows still breaks" in again.out
    mended = fencepost("replay", token, "--adapter", f"{PAGE / 'dict_store.py'}:make")
    assert (mended.code, mended.err) == (3, "")
    assert "changed: the schedule was run with unlocked job store" in mended.out
    assert "SCHEDULE = " in fencepost("replay", token, "--as", "pytest").out
    data = json.loads(fencepost("replay", token, "--json").out)
    assert (data["still_breaks"], data["exit_code"]) == (True, 1)


def test_a_claim_about_effects_is_asked_of_the_reference() -> None:
    done = fencepost("verify", "sqlite", "S12", "--model", "effects", "--examples", "1", "--json")

    (report,) = (
        json.loads(done.out)["reports"] if "reports" in json.loads(done.out) else [json.loads(done.out)]
    )
    assert done.code in (0, 3)
    assert [f["claim"] for f in report["findings"]] == ["stale_effect_never_lands_after_contact"]


@pytest.mark.parametrize("claim", EFFECTS.claims)
def test_a_claim_about_effects_is_refused_of_what_does_not_declare_them(claim: str) -> None:
    if EFFECTS.claims[claim].kind not in (Kind.ALWAYS, Kind.EACH_STEP) or claim in CORE.claims:
        return
    with pytest.raises(UsageError, match=rf"{claim} is a claim about effects, which .* does not declare"):
        subjects_for(make_sqlite(), load_all(), [claim])


@pytest.mark.parametrize(
    ("claim", "declared"), [("S21-trigger", "Capability.TRIGGERS"), ("S24-definition", "Capability.REPLAY")]
)
def test_a_claim_about_triggers_or_replay_is_asked_of_what_declares_them(claim: str, declared: str) -> None:
    with pytest.raises(UsageError, match=rf"does not declare to have; declare {declared}"):
        subjects_for(make_sqlite(), load_all(), [claim])
    models = [s.model for s in subjects_for(make_reference(), load_all(), [claim])]
    assert {"core", "effects", "triggers", "replay"} <= set(models)


def test_one_call_verifies_the_reference_beside_triggers_and_replay() -> None:
    done = fencepost(
        "verify", "sqlite", "S21-trigger", "S21-notification", "S24-definition", "--examples", "1"
    )

    assert done.code == 0
    assert done.out.count("HELD") >= 3
    assert "lock-step, grade O" in done.out


def test_the_refusal_says_what_to_declare() -> None:
    done = fencepost("verify", "fencepost.reference.adapter:make_sqlite", "S12")

    assert (done.code, done.out) == (2, "")
    said = " ".join(done.err.split())
    assert "S12 is a claim about effects, which sqlite does not declare to have" in said
    assert "declare Capability.EFFECTS and write what EffectsAdapter names" in said


def test_a_claim_about_a_protocol_beside_which_nothing_can_be_run_is_refused() -> None:
    done = fencepost("verify", "sqlite", "S27-count")

    assert (done.code, done.out) == (2, "")
    said = " ".join(done.err.split())
    assert "S27-count is a claim about clocks, which implementations cannot be run beside yet" in said


def test_one_protocol_of_several_can_be_named() -> None:
    claim = "one_instance_per_trigger"
    done = fencepost("verify", "sqlite", claim, "--model", "triggers", "--examples", "1")

    assert done.code == 0
    assert "sqlite beside triggers" in done.out
    assert "sqlite beside core" not in done.out
    told = [line.split()[:2] for line in done.out.splitlines() if claim in line]
    assert told == [["HELD", "S21-trigger"]]


@pytest.mark.parametrize(
    ("adapter", "model", "why"),
    [
        ("sqlite", "clocks", "implementations cannot be run beside clocks yet"),
        ("fencepost.reference.adapter:make_sqlite", "workflow", "sqlite does not declare to have workflow"),
    ],
)
def test_a_protocol_that_an_implementation_does_not_have_is_refused_by_name(
    adapter: str, model: str, why: str
) -> None:
    done = fencepost("verify", adapter, "--model", model)

    assert (done.code, done.out) == (2, "")
    assert why in " ".join(done.err.split())
