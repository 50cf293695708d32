"""Implicit inputs (§15): recorded at the start, used as recorded, and told by name where they differ."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.reference import (
    ArgumentError,
    Finished,
    ImplicitDifference,
    ImplicitInputs,
    MemoryHistory,
    Runtime,
)

from .replays import Outside

TOKYO = ImplicitInputs({"time_zone": "Asia/Tokyo", "model": "m-1"})
PARIS = ImplicitInputs({"time_zone": "Europe/Paris", "model": "m-1", "locale": "fr"})


def tells(ctx: Runtime) -> Any:
    return ctx.call("charge", zone=ctx.implicit["time_zone"])["of"]


def test_a_recovery_uses_the_recorded_ones_and_tells_the_differences_by_name() -> None:
    history = MemoryHistory("order-42")
    first = Outside(implicit=TOKYO).run(tells, history)
    again = Outside(implicit=PARIS).run(tells, history)
    assert first.ended == again.ended == Finished({"zone": "Asia/Tokyo"})
    assert first.implicit_differences == ()
    assert again.implicit_differences == (
        ImplicitDifference("locale", None, "fr"),
        ImplicitDifference("time_zone", "Asia/Tokyo", "Europe/Paris"),
    )
    assert [str(d) for d in again.implicit_differences] == [
        "locale was not recorded, and is 'fr' here; the run does not see it",
        "time_zone was recorded as 'Asia/Tokyo', and is 'Europe/Paris' here; the run uses the recorded one",
    ]
    gone = Outside().run(tells, history).implicit_differences
    assert str(gone[0]) == "model was recorded as 'm-1', and is not given here; the run uses the recorded one"


def test_one_that_was_not_recorded_is_not_taken_from_elsewhere() -> None:
    history = MemoryHistory("order-42")
    with pytest.raises(ArgumentError, match="'time_zone' was not recorded when the run started, only model"):
        Outside(implicit=ImplicitInputs({"model": "m-1"})).run(tells, history)
    with pytest.raises(ArgumentError, match="'time_zone' was not recorded"):
        Outside(implicit=TOKYO).run(tells, history)


def test_order_and_normal_form_do_not_matter_and_values_do() -> None:
    one = ImplicitInputs({"caf\u00e9": "x", "b": "a\u0308"})
    other = ImplicitInputs({"b": "\u00e4", "cafe\u0301": "x"})
    assert (one, one.canonical(), one.fingerprint(), hash(one)) == (
        other, other.canonical(), other.fingerprint(), hash(other)
    )  # fmt: skip
    assert ImplicitInputs.from_canonical(one.canonical()) == one
    assert TOKYO.fingerprint() != PARIS.fingerprint()
    assert TOKYO != PARIS


def test_they_cannot_be_changed_afterwards() -> None:
    given = {"model": "m-1"}
    made = ImplicitInputs(given)
    given["model"] = "m-2"
    assert made["model"] == "m-1"
    with pytest.raises(TypeError):
        made.values["model"] = "m-2"  # type: ignore[index]


@pytest.mark.parametrize(
    "values",
    [{"": "x"}, {1: "x"}, {"model": 1}, {"model": None}, [("a", "b")], {"\u00e9": "x", "e\u0301": "y"}],
)
def test_what_is_no_mapping_of_names_to_text_is_refused(values: Any) -> None:
    with pytest.raises(ArgumentError):
        ImplicitInputs(values)
