"""Every store that is broken on purpose is refuted by the claim that the page names for it."""

import pytest

from fencepost.checker.verdicts import Verdict

from .caught import CAUGHT, finding_on, without_a_row


@pytest.mark.parametrize("name", CAUGHT)
def test_a_broken_store_is_refuted_by_the_claim_that_is_named(name: str) -> None:
    found = finding_on(name)
    assert found.verdict is Verdict.REFUTED
    assert found.method.endswith(f"grade {CAUGHT[name].grade}")


def test_every_broken_store_has_a_row() -> None:
    assert without_a_row() == set()
