"""The SQLite store with a downstream of each class holds what is claimed about effects."""

import pytest

from fencepost.checker.verdicts import EXIT_OK, Verdict
from fencepost.conformance import Ability, verify_all
from fencepost.conformance.report import UNTELLABLE
from fencepost.reference.adapter import make_sqlite

from .effects_support import CLASSES, by_name, verified_effects

SAYS_NOTHING = {
    "fenced, keyed and revisioned": {"S8-intent"},
    "keyed": {"S8-intent", "S8-revision", "S11", "S12", "S25"},
    "fenced and queryable": {"S8-intent", "S8", "S8-revision", "S9", "S19"},
    "queryable": {"S8-intent", "S8", "S8-revision", "S9", "S11", "S12", "S13", "S19", "S25"},
    "fenced": {"S8-intent", "S8", "S8-revision", "S9", "S11", "S13", "S19"},
    "revisioned": {"S8-intent", "S8", "S9", "S11", "S12", "S13", "S19", "S25"},
    "opaque": {"S8-intent", "S8", "S8-revision", "S9", "S11", "S12", "S13", "S19", "S25"},
}
"""Claims of which one or all say nothing where the downstream cannot do what they speak of.

Of S8-intent, `effects_land_as_stored` speaks of workers, who are the harness's own here.
"""

KINDS = [k if k in ("keyed", "opaque") else pytest.param(k, marks=pytest.mark.slow) for k in CLASSES]


@pytest.mark.parametrize("name", KINDS)
def test_effects_are_held_with_each_kind_of_downstream(name: str) -> None:
    report = verified_effects(name, examples=12)
    assert [f.claim.name for f in report.refuted] == []
    assert report.of("receipt_is_true").verdict is Verdict.HELD
    assert report.of("given_up_effects_never_happen").verdict is Verdict.HELD
    assert report.exit_code == EXIT_OK
    assert all("grade O" in finding.method for finding in report.findings)


@pytest.mark.parametrize("name", KINDS)
def test_a_claim_that_says_nothing_of_such_a_downstream_is_not_held_but_named(name: str) -> None:
    report = verified_effects(name, examples=12)
    silent = {f.claim.id for f in report.findings if f.verdict is Verdict.NOT_EXERCISED}
    assert silent == SAYS_NOTHING[name]
    for finding in report.findings:
        assert (finding.verdict is Verdict.NOT_EXERCISED) == (UNTELLABLE in finding.details)


def test_with_everything_a_downstream_can_do_each_claim_is_exercised() -> None:
    report = verified_effects("fenced, keyed and revisioned", examples=12)
    verdicts = by_name(report)
    assert verdicts.pop("effects_land_as_stored") is Verdict.NOT_EXERCISED
    assert set(verdicts.values()) == {Verdict.HELD}
    assert report.figures["kinds"]["raise_fence: stale-token"] > 0
    assert report.figures["kinds"]["restart_downstream: done"] > 0


def test_one_call_covers_the_core_and_effects() -> None:
    adapter = make_sqlite(downstream=[Ability.KEYED])
    report = verify_all(adapter, examples=0, claims=["S1", "S8", "S25", "lock-step"])
    assert {f.claim.id for f in report.findings} == {"S1", "S8", "S25", "lock-step"}
    assert [f.claim.id for f in report.findings].count("lock-step") == 2
    assert report.of("S1").verdict is report.of("S8").verdict is Verdict.HELD
    assert report.figures["runs"] == sum(part["runs"] for part in report.figures["parts"])


def test_an_adapter_without_effects_is_asked_about_the_core_alone() -> None:
    report = verify_all(make_sqlite(), examples=0, claims=["S5"])
    assert {f.claim.id for f in report.findings} == {"S5"}
