"""A declared deviation is strict: it must be seen, and nothing else may be."""

from dataclasses import replace

import pytest

from fencepost.checker.subject import UsageError
from fencepost.checker.verdicts import EXIT_OK, EXIT_REFUTED, EXIT_UNDETERMINED, Verdict
from fencepost.conformance import verify
from fencepost.reference.adapter import make_sqlite
from fencepost.reference.broken_stores import BROKEN

from .support import refuted, verified

DECLARED = make_sqlite(
    BROKEN["commits-after-expiry"],
    name="commits after expiry, and says so",
    model_variant="commits-after-expiry",
    deviations={"S27": "a commit is accepted after expiry while nobody has taken over"},
)


def test_commits_after_expiry_break_s27_and_keep_s1_when_held_to_the_protocol_itself() -> None:
    report = verified("commits-after-expiry")
    assert report.of("S1").verdict is Verdict.HELD
    assert report.of("S27").verdict is Verdict.REFUTED
    assert report.exit_code == EXIT_REFUTED


def test_with_its_declaration_the_same_store_passes_and_the_deviation_is_shown() -> None:
    report = verify(DECLARED, examples=5)
    assert refuted(report) == {"commit_only_while_live": 4}
    assert report.of("S27").details["declared"] == DECLARED.deviations["S27"]
    assert report.of("lock-step").verdict is Verdict.HELD
    assert report.of("S1").verdict is Verdict.HELD
    assert report.exit_code == EXIT_OK


def test_a_declared_variant_does_not_excuse_a_claim_that_is_not_declared() -> None:
    report = verify(replace(DECLARED, deviations={}), examples=0)
    assert report.exit_code == EXIT_REFUTED


def test_a_declared_deviation_that_is_never_seen_is_not_confirmed() -> None:
    report = verify(make_sqlite(deviations={"S27": "it is not so"}), examples=0)
    assert report.of("S27").verdict is Verdict.HELD
    assert report.exit_code == EXIT_UNDETERMINED


def test_a_deviation_from_a_claim_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="S99"):
        verify(make_sqlite(deviations={"S99": "no such claim"}))
