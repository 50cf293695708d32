"""What an implementation does not offer is not asked of it, and what cannot be seen is never held."""

import pytest

from fencepost.checker.verdicts import EXIT_UNDETERMINED, Verdict
from fencepost.conformance import EVERYTHING, Answer, Capability, Ok, Refused, Unknown, verify

from .support import OddAdapter


def without(*missing: Capability) -> frozenset[Capability]:
    return EVERYTHING - frozenset(missing)


def test_an_operation_that_is_not_offered_is_never_called() -> None:
    adapter = OddAdapter(capabilities=without(Capability.RELEASE, Capability.ASK))
    report = verify(adapter, examples=0)
    assert (adapter.asked["release"], adapter.asked["ask"]) == (0, 0)
    assert report.of("S1").verdict is Verdict.HELD
    assert report.of("only_expiry_or_the_owner_ends_a_lease").verdict is Verdict.NOT_EXERCISED


def test_claims_about_a_log_that_is_not_shown_are_not_exercised() -> None:
    report = verify(OddAdapter(capabilities=without(Capability.LOG)), examples=0)
    for finding in report.findings:
        if finding.claim.id == "S7" or finding.claim.name == "stale_worker_never_overrides":
            assert finding.verdict is Verdict.NOT_EXERCISED
            assert "it reads" in finding.why
    assert report.of("S5").verdict is Verdict.HELD
    assert report.exit_code == EXIT_UNDETERMINED


def test_refusals_without_codes_are_compared_as_refusals() -> None:
    def coarse(_: str, answer: Answer) -> Answer:
        return Refused("", answer.observed) if isinstance(answer, Refused) else answer

    assert (
        verify(OddAdapter(passed=coarse), examples=0, claims=["lock-step"]).of("lock-step").verdict
        is Verdict.REFUTED
    )
    adapter = OddAdapter(passed=coarse, capabilities=without(Capability.CODES))
    assert verify(adapter, examples=0, claims=["lock-step"]).of("lock-step").verdict is Verdict.HELD


def test_no_answer_where_the_model_has_one_is_a_difference() -> None:
    def silent(operation: str, answer: Answer) -> Answer:
        return Unknown("timeout") if operation == "renew" else answer

    compared = verify(OddAdapter(passed=silent), examples=0, claims=["lock-step"]).of("lock-step")
    assert compared.verdict is Verdict.REFUTED
    assert (
        "renew(w1): the model answers ok, the implementation answered unknown (timeout)"
        in compared.details["difference"]
    )


def test_an_exception_is_no_answer_and_names_itself() -> None:
    def failing(operation: str, answer: Answer) -> Answer:
        if operation == "read":
            raise OSError("disk full")
        return answer

    difference = (
        verify(OddAdapter(passed=failing), examples=0, claims=["lock-step"])
        .of("lock-step")
        .details["difference"]
    )
    assert "unknown (OSError: disk full)" in difference


def test_something_that_is_no_answer_is_a_difference_and_no_crash() -> None:
    def wrong(operation: str, answer: Answer) -> Answer:
        return True if operation == "renew" else answer  # type: ignore[return-value]

    assert (
        "True is no answer"
        in verify(OddAdapter(passed=wrong), examples=0, claims=["lock-step"])
        .of("lock-step")
        .details["difference"]
    )


def test_an_answer_without_the_row_that_was_promised_is_a_difference() -> None:
    def bare(operation: str, answer: Answer) -> Answer:
        return Ok() if operation == "renew" and isinstance(answer, Ok) else answer

    compared = verify(OddAdapter(passed=bare), examples=0, claims=["lock-step"]).of("lock-step")
    assert compared.details["difference"].endswith("the answer carries no row")
    adapter = OddAdapter(passed=bare, capabilities=without(Capability.VERSIONS))
    assert verify(adapter, examples=0, claims=["lock-step"]).of("lock-step").verdict is Verdict.HELD


@pytest.mark.parametrize("code", ["ok", "done", "none", "", "no-such-code"])
def test_a_refusal_with_a_code_that_is_none_is_no_answer_of_the_model(code: str) -> None:
    def made_up(operation: str, answer: Answer) -> Answer:
        return Refused(code, answer.row) if operation == "renew" and isinstance(answer, Ok) else answer

    compared = verify(OddAdapter(passed=made_up), examples=0, claims=["lock-step"]).of("lock-step")
    assert compared.verdict is Verdict.REFUTED
    assert f"the implementation answered refused with the code {code!r}" in compared.details["difference"]
