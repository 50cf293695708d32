"""Stores that are broken in one rule of whole workflows break the claim that is about it, in a short run."""

import pytest

from fencepost.reference.broken_workflows import BROKEN_WORKFLOWS

from .workflow_support import broken_adapter, broken_by

BREAKS = {
    "takes-a-request-twice": ("only_commits_change_the_instance", 6),
    "records-a-request-as-taken": ("request_consumed_once", 6),
    "starts-whatever-it-needs": ("order_is_kept", 3),
    "asks-whatever-it-was": ("only_a_new_intent_waits_again", 8),
    "takes-what-was-sent-for-unsent": ("former_intents_never_happen", 10),
    "leaves-an-end": ("legal_transitions_only", 4),
    "ends-with-steps-left": ("an_instance_ends_with_its_steps", 2),
    "timer-not-looked-at": ("timer_fires_once", 5),
    "attempts-not-counted": ("timer_fires_once", 6),
    "starts-under-a-cancel": ("cancel_is_honoured", 5),
    "ends-under-a-cancel": ("cancel_is_honoured", 10),
    "starts-while-it-unwinds": ("who_unwinds_goes_on_unwinding", 6),
    "calls-off-what-goes-on": ("what_is_given_up_has_a_cause", 2),
    "undoes-in-any-order": ("compensation_in_order", 13),
    "undoes-too-soon": ("compensation_in_order", 8),
    "undoes-past-a-person": ("compensation_in_order", 11),
    "approves-something-else": ("approval_spent_once", 7),
    "runs-on-any-approval": ("approval_spent_once", 8),
    "runs-on-a-rejection": ("approval_spent_once", 7),
    "runs-without-an-approval": ("a_gated_step_waits", 3),
    "approval-after-its-deadline": ("approvals_are_recorded_in_time", 7),
    "deadline-passes-over-an-approval": ("an_approval_in_time_is_honoured", 8),
    "decides-what-nobody-asked": ("a_decision_is_about_what_waits", 3),
    "former-decision-stands": ("a_decision_is_about_what_waits", 10),
    "undoes-what-is-undone": ("legal_transitions_only", 13),
    "undoes-what-cannot-be": ("compensation_in_order", 10),
    "success-not-dated": ("successes_are_dated", 6),
    "attested-not-marked": ("receipt_is_true", 10),
}
"""By store, the claim that catches it and the length of the run that is shown."""


def test_each_broken_store_is_looked_at() -> None:
    assert set(BREAKS) == set(BROKEN_WORKFLOWS)


ALWAYS_TRIED = ("takes-a-request-twice", "starts-whatever-it-needs", "asks-whatever-it-was",
                "takes-what-was-sent-for-unsent", "timer-not-looked-at",
                "ends-under-a-cancel", "runs-on-a-rejection", "undoes-past-a-person",
                "undoes-what-cannot-be")  # fmt: skip
"""One at least for each section; the others wait for the long run."""


@pytest.mark.parametrize(
    ("store", "claim", "length"),
    [
        pytest.param(n, c, k, id=n, marks=() if n in ALWAYS_TRIED else pytest.mark.slow)
        for n, (c, k) in BREAKS.items()
    ],
)
def test_a_broken_store_breaks_the_claim_that_is_about_the_damage(
    store: str, claim: str, length: int
) -> None:
    found = broken_by(broken_adapter(store), claim)
    assert found is not None
    _, steps = found
    assert claim in steps[-1].broken
    assert len(steps) == length
