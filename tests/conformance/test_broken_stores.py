"""A store with a guard missing breaks what the model without that guard breaks, in as few steps."""

import pytest

from fencepost.checker.verdicts import EXIT_OK, EXIT_REFUTED, Verdict
from fencepost.conformance import LOCK_STEP
from fencepost.model.core.variants import VARIANTS
from fencepost.reference.broken_stores import BROKEN

from .support import refuted, verified

UNLIKE_THE_MODEL = {
    # The model's variant never raises the lease version. The schema does not let an owner have version 0, so
    # the store raises it once, and what breaks shows only at the takeover.
    "lease-version-not-raised": {"lease_version_only_grows": 3, "takeover_only_after_expiry": 3},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_store_breaks_what_the_broken_model_breaks_in_as_few_steps(name: str) -> None:
    found = refuted(verified(name))
    found.pop(LOCK_STEP.name, None)
    assert found == {**VARIANTS[name].breaks, **UNLIKE_THE_MODEL.get(name, {})}


@pytest.mark.parametrize("name", [n for n in BROKEN if n != "owner-not-compared"])
def test_a_broken_store_also_differs_from_the_model(name: str) -> None:
    report = verified(name)
    difference = report.of(LOCK_STEP.id)
    assert difference.verdict is Verdict.REFUTED
    assert difference.details["difference"].startswith("step ")
    assert report.exit_code == EXIT_REFUTED


def test_leaving_out_the_owner_changes_nothing_since_the_lease_version_says_it_all() -> None:
    report = verified("owner-not-compared")
    assert refuted(report) == {}
    assert report.exit_code == EXIT_OK


def test_the_shortest_run_of_a_stale_worker_is_the_one_that_everybody_tells() -> None:
    trace = verified("state-version-only-guard").of("S1").trace
    assert trace is not None
    actions = [step.action for step in trace.steps]
    assert actions in (
        ["acquire", "send_commit", "expire", "acquire", "decide_commit"],
        ["acquire", "send_commit", "release", "acquire", "decide_commit"],
    )
    assert trace.steps[0].arguments[0] != trace.steps[3].arguments[0]


def test_a_refutation_shows_the_cells_the_answers_and_the_first_difference() -> None:
    report = verified("state-version-only-guard")
    text = "\n".join(report.lines())
    assert "An accepted commit was made by the owner of the current lease version." in text
    assert (
        "step 5, decide_commit(c1): the model answers stale-lease-version, the implementation answered ok"
        in text
    )
    answers = report.of("S1").details["answers"]
    assert [(expected, answered) for _, _, expected, answered, _ in answers][-1] == (
        "stale-lease-version",
        "ok",
    )
    assert "w2/0*" in text


def test_a_claim_whose_witness_a_broken_store_makes_impossible_is_not_held() -> None:
    refusals = verified("late-commit-by-id").of("S25")
    assert refusals.verdict is Verdict.NOT_EXERCISED
    assert "a_stale_commit_is_refused" in refusals.why
