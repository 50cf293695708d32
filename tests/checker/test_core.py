"""The core of the protocol: what is claimed of it is proved, explored, and shown able to fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.checker.explore import check
from fencepost.checker.plain import search
from fencepost.checker.proofs import prove
from fencepost.checker.subject import BUILT_IN, core_subject
from fencepost.checker.verdicts import Verdict
from fencepost.model.core import core
from fencepost.model.core.variants import VARIANTS
from fencepost.model.mutate import REFUSAL, mutants
from fencepost.properties import CORE, REGISTRY

PINNED = json.loads((Path(__file__).parent / "pinned_counts.json").read_text())
"""Distinct states, transitions and cuts by scope. A change of a number needs its reason in the commit."""


ONLY_IN_IMPLEMENTATIONS = {
    "no-such-instance": "each model has an instance, or names one only by what began it",
    "state-version-exhausted": "the models count commits without end; what cannot be given twice is a lease",
    "in-progress": "the downstream of the model decides a request in one step",
    "key-expired": "in the model an expired record is a fault, and looks like none",
    "no-such-migration": "the model of recovery tries no migration that is not registered",
    "no-such-step": "in the models all steps that are named exist",
    "no-such-notification": "in the models all notifications that are named exist",
}
"""Codes that no model gives, each with the reason."""


@pytest.mark.parametrize("scope", ["quick", "small"])
def test_every_claim_holds_in_every_state_of_the_scope(scope: str) -> None:
    report = check(core_subject(), scope=scope)
    assert {k: v.value for k, v in report.verdicts().items()} == dict.fromkeys(CORE.ids(), "BOUNDED")
    assert {k: report.figures[k] for k in ("states", "transitions", "cut")} == PINNED[scope]


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["usual"])
def test_every_claim_holds_with_three_workers(scope: str) -> None:
    report = check(core_subject(), scope=scope)
    assert set(report.verdicts().values()) == {Verdict.BOUNDED}
    assert {k: report.figures[k] for k in ("states", "transitions", "cut")} == PINNED[scope]


def test_every_claim_is_proved_for_all_sizes() -> None:
    report = prove(core_subject())
    assert {k: v.value for k, v in report.verdicts().items()} == dict.fromkeys(CORE.ids(), "PROVED")
    assert report.figures["failed_invariants"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [n for n in VARIANTS if "stale_worker_never_overrides" not in VARIANTS[n].breaks]
)
def test_s1_survives_every_variant_that_does_not_break_it(name: str) -> None:
    assert prove(core_subject(name), claims=["S1"], counterexamples=False).of("S1").verdict is Verdict.PROVED


@pytest.mark.parametrize(
    "name", [n for n in VARIANTS if "stale_worker_never_overrides" in VARIANTS[n].breaks]
)
def test_s1_is_not_proved_where_it_is_broken(name: str) -> None:
    found = prove(core_subject(name), claims=["S1"], counterexamples=False).of("S1")
    assert found.verdict is Verdict.UNDETERMINED


def test_commits_after_expiry_lose_only_what_they_declare() -> None:
    report = prove(core_subject("commits-after-expiry"), counterexamples=False)
    assert [k for k, v in report.verdicts().items() if v is not Verdict.PROVED] == ["S27"]


def test_the_plain_search_agrees_with_the_compiled_one_on_a_small_core() -> None:
    scope = core.scopes["quick"].but(
        sizes={"worker": 2, "commit": 1},
        bounds={"lease_version": 1, "state_version": 1, "incarnation": 0},
    )
    plain = search(core, scope)
    compiled = check(core_subject(), scope=scope, claims=["S1", "S3"]).figures
    assert (plain.states, plain.transitions, plain.cut) == tuple(
        compiled[k] for k in ("states", "transitions", "cut")
    )


def test_refusals_come_in_the_registry_s_order_of_precedence() -> None:
    ranks = {r.code: i for i, r in enumerate(REGISTRY)}
    found: dict[str, list[int]] = {}
    for mutant in mutants(core, (REFUSAL,)):
        found.setdefault(mutant.action, []).append(ranks[mutant.text.split('"')[1]])
    assert set(found) == {"acquire", "renew", "release", "decide_commit"}
    for action, order in found.items():
        assert order == sorted(order), action


def test_every_code_of_the_model_is_registered_and_every_registered_one_used() -> None:
    protocols = [b.protocol for b in BUILT_IN.values()]
    answers = [m.name for p in protocols if p.answers is not None for m in p.answers.members]
    used = set(answers) - {"none", "ok"}
    assert used | set(ONLY_IN_IMPLEMENTATIONS) == {r.code for r in REGISTRY if r.definite}
    assert not used & set(ONLY_IN_IMPLEMENTATIONS)
