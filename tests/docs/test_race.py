"""The page about two workers with one step is made of runs of the model, and up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.model.effects import effects

from . import race, race_runs
from .pages import PROJECT, prose, settle
from .runs import flowed, run

PAGE = PROJECT / "docs" / "two-workers-race.md"


def test_the_page_is_what_the_model_says() -> None:
    settle(PAGE, PAGE.read_text(encoding="utf-8") if PAGE.exists() else "", race.page())


def test_no_code_in_its_text_is_typed_by_hand() -> None:
    source = Path(race.__file__).read_text(encoding="utf-8")
    assert effects.answers is not None
    codes = [member.name for member in effects.answers.members]
    assert [code for code in codes if f"`{code}`" in source] == []
    page = prose(PAGE.read_text(encoding="utf-8"))
    for code in ("ok", "stale-lease-version", "stale-token", "key-conflict", "lease-expired", "tombstoned"):
        assert f"`{code}`" in page


def test_a_step_that_the_model_cannot_take_is_noticed() -> None:
    with pytest.raises(AssertionError, match=r"step 2, acquire\(w1\), is not possible"):
        run(effects, race_runs.scope("keyed"), "acquire(w1)\nacquire(w1)")


def test_an_outcome_that_is_another_than_the_page_says_is_noticed() -> None:
    made = run(effects, race_runs.scope("keyed"), "acquire(w1)")
    with pytest.raises(AssertionError, match=r"acquire\(w1\) ends ok, not lease-live"):
        made.says("acquire(w1)", "lease-live")
    with pytest.raises(AssertionError, match="fence is 0 at the end, not 1"):
        made.ends_with("fence", "1")
    with pytest.raises(AssertionError, match="effects land in"):
        race_runs.lands(made, 1)


def test_only_prose_is_wrapped_anew() -> None:
    page = "# A title\n\none\ntwo\n- three\n  four\n\n```text\na\n  b\n```\n| a | b |\n"
    assert flowed(page) == "# A title\n\none two\n- three four\n\n```text\na\n  b\n```\n| a | b |\n"
