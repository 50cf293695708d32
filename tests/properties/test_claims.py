"""Claims are declared once, with a sentence, and answer for their witnesses."""

from __future__ import annotations

import pytest

from fencepost.model import State
from fencepost.properties import CORE, REFUSALS, REGISTRY, ClaimError, Claims, Kind
from fencepost.properties.refusals import as_markdown, precedence


def test_a_claim_keeps_its_name_sentence_and_kind() -> None:
    mine = Claims("mine")

    @mine.always()
    def nothing_happens(s: State) -> object:
        """Nothing happens.

        More about it.
        """
        return s.state_version == 0

    (claim,) = mine.promises()
    assert (claim.id, claim.name, claim.sentence) == (
        "nothing_happens",
        "nothing_happens",
        "Nothing happens.",
    )
    assert claim.kind is Kind.ALWAYS
    assert claim.place.endswith("test_claims.py:18") or "test_claims.py:" in claim.place


def test_a_claim_without_a_sentence_is_refused() -> None:
    def silent(s: State) -> object:
        return s.live

    with pytest.raises(ClaimError, match=r"silent.*docstring"):
        Claims("mine").always()(silent)


def test_a_claim_of_the_wrong_arity_is_refused_with_the_forms_there_are() -> None:
    def odd(a: State, b: State, c: object, d: object) -> object:
        """Too many."""
        return a == b == c == d

    with pytest.raises(ClaimError, match=r"takes 4 arguments.*each_step\(before, after, step\)"):
        Claims("mine").each_step()(odd)


def test_the_same_name_twice_is_refused() -> None:
    mine = Claims("mine")

    def one(s: State) -> object:
        """One."""
        return s.live

    mine.always()(one)
    with pytest.raises(ClaimError, match="declared twice"):
        mine.always()(one)
    with pytest.raises(ClaimError, match="exists already"):
        mine.joined(mine.promises())


def test_a_witness_that_nobody_declares_is_refused() -> None:
    mine = Claims("mine")

    @mine.always("X", witnesses=("nowhere",))
    def claim(s: State) -> object:
        """A claim."""
        return s.live

    with pytest.raises(ClaimError, match="nowhere"):
        mine.witnesses_of("X")


@pytest.mark.parametrize("claim_id", CORE.ids())
def test_each_claim_of_the_core_has_a_witness(claim_id: str) -> None:
    assert CORE.witnesses_of(claim_id)


def test_each_witness_of_the_core_is_a_witness_of_some_claim() -> None:
    named = {w for c in CORE.promises() for w in c.witnesses}
    assert {c.name for c in CORE.of_kind(Kind.SOMETIMES)} == named


def test_supporting_invariants_name_claims_that_exist() -> None:
    for claim in CORE.of_kind(Kind.SUPPORTING):
        assert set(claim.supports) <= set(CORE.ids()), claim.name


def test_the_registry_ranks_codes_in_its_own_order() -> None:
    assert [precedence(r.code) for r in REGISTRY] == list(range(len(REGISTRY)))
    assert list(REFUSALS) == [r.code for r in REGISTRY]


def test_only_the_missing_answer_is_indefinite() -> None:
    assert [r.code for r in REGISTRY if not r.definite] == ["unknown"]


def test_the_table_of_refusals_has_a_row_per_code() -> None:
    assert sum(line.startswith("| `") for line in as_markdown()) == len(REGISTRY)


@pytest.mark.parametrize("what", ["witnesses", "supports", "needs_off"])
@pytest.mark.parametrize("given", ["expired", ["expired"], {"expired"}, (1,), None])
def test_what_is_no_tuple_of_names_is_refused(what: str, given: object) -> None:
    def claim(s: State) -> object:
        """A claim."""
        return s.live

    with pytest.raises(ClaimError, match=rf"'claim' has {what}=.*write {what}=\('"):
        Claims("mine").always(**{what: given})(claim)


def test_a_witness_that_needs_a_switch_off_is_refused() -> None:
    def witness(s: State) -> object:
        """A witness."""
        return s.live

    with pytest.raises(ClaimError, match="give needs_off to the claims that it is a witness of"):
        Claims("mine").sometimes(needs_off=("expired",))(witness)
