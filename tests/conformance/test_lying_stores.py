"""A store whose answer is not what it does is caught by the claim that says so."""

import pytest

from fencepost.conformance import LOCK_STEP

from .support import refuted, verified


def test_ok_for_a_commit_that_is_not_in_the_log_breaks_s7() -> None:
    assert refuted(verified("ok-but-not-committed"))["what_was_answered_ok_is_in_the_log"] == 3


def test_a_refusal_that_changes_the_row_breaks_s25() -> None:
    found = refuted(verified("refused-but-committed"))
    assert found["refused_changes_nothing"] == 3
    assert found["log_has_no_gap"] == 3


def test_an_answer_that_tells_of_another_lease_version_makes_a_worker_hold_what_nobody_acquired() -> None:
    assert refuted(verified("tells-of-another-version"))["no_version_held_by_two"] == 1


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("ok-but-not-committed", "which is not in the log"),
        ("tells-of-another-version", "the answer tells of versions 2/0"),
        ("reads-an-old-row", "the answer tells of versions 1/0, owner w1/0"),
        ("live-at-its-end", "the model answers lease-expired, the implementation answered ok"),
        ("renewal-shortens", "the renewal moved the end of the lease back"),
    ],
)
def test_the_first_difference_is_said_in_one_sentence(name: str, sentence: str) -> None:
    assert sentence in verified(name).of(LOCK_STEP.id).details["difference"]
