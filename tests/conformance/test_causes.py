"""The causal sentence says only what the statements bear out."""

import pytest

from fencepost.checker.verdicts import Verdict
from fencepost.conformance import verify_statements
from fencepost.conformance.causes import mentions
from fencepost.reference.adapter import SqliteAdapter

from .test_more_than_asked import OtherEntry


@pytest.mark.parametrize(
    ("text", "name", "named"),
    [
        ("select lease from job", "lease_version", True),
        ("select release from job", "lease_version", False),
        ("select catalog from job", "log", False),
        ("update job set ends = :lease", "lease_version", False),
        ("select 1 from log", "log", True),
    ],
)
def test_a_statement_names_what_is_in_it_as_a_word_of_its_own(text: str, name: str, named: bool) -> None:
    assert mentions(text, name, everywhere=True) is named


@pytest.mark.slow
def test_a_false_answer_is_not_laid_to_the_clock_nor_to_a_commit_statement() -> None:
    adapter = SqliteAdapter("another", worker=OtherEntry)
    claims = ["lock-step", "only_expiry_or_the_owner_ends_a_lease"]
    report = verify_statements(adapter, claims=claims, budget_s=20)
    found = {f.claim.name: f for f in report.findings}
    assert found["only_expiry_or_the_owner_ends_a_lease"].verdict is not Verdict.REFUTED
    cause = found["every_step_is_the_models"].details["cause"]
    assert "commit)" not in cause
    assert "does not compare" not in cause
