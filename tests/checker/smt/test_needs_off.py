"""A claim that needs switches of the world off is proved with these off, and with no other."""

from __future__ import annotations

import itertools

import pytest

from fencepost.checker.smt import ProofResult
from fencepost.model import Counter, ModelError, Protocol, State, switched, when

from .small_protocol import lost, named, prove

numbers = Counter("number")


def counting() -> Protocol:
    """A number that rises, unless a fault has spoilt it; `left` and `right` are spoilt by a switch each."""
    p = Protocol("counting")
    for name in ("n", "left", "right"):
        p.variable(name, numbers, 0, home="all", meaning=name)
    p.switch("left_spoilt", "left is spoilt")
    p.switch("right_spoilt", "right is spoilt")

    @p.action("all")
    def move(s: State) -> None:
        if s.left > 0 or s.right > 0:
            s.n = 0
        else:
            s.n = s.n + 1

    @p.action("world", switch="left_spoilt")
    def spoil_left(s: State) -> None:
        s.left = s.left + 1

    @p.action("world")
    def spoil_right(s: State) -> None:
        if switched("right_spoilt"):
            s.right = s.right + 1

    return p


def never_falls(before: State, after: State) -> object:
    return before.n <= after.n


def left_is_whole(s: State) -> object:
    return s.left == 0


def right_is_whole(s: State) -> object:
    return s.right == 0


def right_is_whole_or_spoilt(s: State) -> object:
    return s.right == 0 or switched("right_spoilt")


def proof(p: Protocol | None = None, **needs_off: tuple[str, ...]) -> ProofResult:
    invariants = named(left_is_whole, right_is_whole)
    return prove(p or counting(), {}, named(never_falls), invariants, needs_off=needs_off)


LEFT, RIGHT = "left_spoilt", "right_spoilt"
SETS = [(), (LEFT,), (RIGHT,), (LEFT, RIGHT)]


@pytest.mark.parametrize(("claim", "left", "right"), list(itertools.product(SETS, repeat=3)))
def test_exactly_what_holds_while_the_switches_are_off_is_proved(
    claim: tuple[str, ...], left: tuple[str, ...], right: tuple[str, ...]
) -> None:
    result = proof(never_falls=claim, left_is_whole=left, right_is_whole=right)
    assert result.proved["left_is_whole"] is (LEFT in left)
    assert result.proved["right_is_whole"] is (RIGHT in right)
    helped = LEFT in left and RIGHT in right and {*left, *right} <= {*claim}
    assert result.proved["never_falls"] is helped


def test_an_invariant_that_needs_more_off_than_the_claim_does_not_help_it() -> None:
    result = proof(never_falls=(RIGHT,), left_is_whole=(LEFT,), right_is_whole=(RIGHT,))
    assert lost(result) == {"never_falls"}
    assert result.rests_on("never_falls") == {"right_is_whole"}


def test_two_that_need_different_switches_off_do_not_help_each_other() -> None:
    def both_are_whole(s: State) -> object:
        return s.left == 0 and s.right == 0

    needs = {"both_are_whole": (RIGHT,), "left_is_whole": (LEFT,), "right_is_whole": (RIGHT,)}
    result = prove(
        counting(), named(both_are_whole), {}, named(left_is_whole, right_is_whole), needs_off=needs
    )
    assert lost(result) == {"both_are_whole"}


def test_a_claim_that_follows_from_others_follows_only_from_those_that_need_no_more_off() -> None:
    def left_is_nought(s: State) -> object:
        return not s.left >= 1

    result = prove(
        counting(), named(left_is_nought), {}, named(left_is_whole), needs_off={"left_is_whole": (LEFT,)}
    )
    assert lost(result) == {"left_is_nought"}


def test_an_invariant_that_speaks_of_the_switch_helps_those_that_need_it_off() -> None:
    result = prove(
        counting(),
        {},
        named(never_falls),
        named(left_is_whole, right_is_whole_or_spoilt),
        needs_off={"never_falls": (LEFT, RIGHT), "left_is_whole": (LEFT,)},
    )
    assert lost(result) == set()


def test_an_action_that_needs_the_switch_leaves_nothing_to_show() -> None:
    result = proof(never_falls=(LEFT, RIGHT), left_is_whole=(LEFT,), right_is_whole=(RIGHT,))
    names = {r.name for r in result.obligations}
    assert "spoil_left[done] × never_falls" not in names
    assert "spoil_left[done] × right_is_whole" in names


def test_an_action_that_only_the_fault_makes_possible_leaves_the_claim_unproved() -> None:
    p = counting()

    @p.action("all")
    def mend_left(s: State) -> None:
        when(s.left > 0)
        s.left = 0

    def right_never_falls(before: State, after: State) -> object:
        return before.right <= after.right

    needs = {"never_falls": (LEFT, RIGHT), "left_is_whole": (LEFT,), "right_is_whole": (RIGHT,)}
    steps = named(never_falls, right_never_falls)
    result = prove(p, {}, steps, named(left_is_whole, right_is_whole), needs_off=needs)
    assert result.never == ("mend_left",)
    assert lost(result) == {"never_falls", "left_is_whole"}
    reason = result.reasons["never_falls"]
    assert "not shown to be possible at all while left_spoilt and right_spoilt are off: mend_left" in reason
    assert "an action that only a fault makes possible, declare with its switch" in reason


def test_an_ability_that_a_claim_needs_off_is_answered_with_what_to_write_instead() -> None:
    p = counting()
    p.switch("able", "the right one can be doubled")

    @p.action("all")
    def double_right(s: State) -> None:
        when(switched("able"))
        s.right = s.right + s.right

    def anything(before: State, after: State) -> object:
        return before.right == before.right and after.right == after.right

    result = prove(p, {}, named(anything), {}, needs_off={"anything": ("able",)})
    assert "while able is off: double_right" in result.reasons["anything"]
    assert "write `switched('able') or ...` in the claim instead" in result.reasons["anything"]


def test_a_switch_off_for_the_whole_proof_need_not_be_named_again() -> None:
    invariants = named(left_is_whole, right_is_whole)
    result = prove(
        counting(),
        {},
        named(never_falls),
        invariants,
        off=[LEFT],
        needs_off={"never_falls": (RIGHT,), "right_is_whole": (RIGHT,)},
    )
    assert lost(result) == set()


def test_a_switch_that_the_protocol_does_not_have_is_an_error() -> None:
    with pytest.raises(ModelError, match=r"never_falls needs the switch 'left_spoiled' off.*'left_spoilt'"):
        proof(never_falls=("left_spoiled",))
