"""What the language forbids: each misuse is an error that names the line and says what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.model import ModelError, PathLimitError, Protocol, refuse_unless, when
from fencepost.model.core import core
from fencepost.model.language import Cut, Disabled, Fault, Refused
from fencepost.model.run import Runner
from fencepost.model.trace import trace_action, trace_claim
from fencepost.properties.core import CORE

from .support import Case, Model, assert_names_the_line, benchmark_lease, parametrize


@parametrize("forbidden_in_the_text.txt")
def test_what_operators_cannot_see_is_found_in_the_text_by_each_reading(case: Case, tmp_path: Path) -> None:
    model = Model(tmp_path, case.text)
    for reading in (model.trace, model.run):
        with pytest.raises(ModelError) as caught:
            reading()
        assert_names_the_line(model, caught.value, *case.expected)


@parametrize("forbidden_in_the_values.txt")
def test_what_operators_see_is_an_error_of_the_traced_reading(case: Case, tmp_path: Path) -> None:
    model = Model(tmp_path, case.text)
    with pytest.raises(ModelError) as caught:
        model.trace()
    assert_names_the_line(model, caught.value, *case.expected)


@parametrize("forbidden_in_the_first_state.txt")
def test_what_is_wrong_in_the_first_state_is_an_error_of_the_run_reading_too(
    case: Case, tmp_path: Path
) -> None:
    model = Model(tmp_path, case.text)
    for reading in (model.run, model.trace):
        with pytest.raises(ModelError) as caught:
            reading()
        assert_names_the_line(model, caught.value, *(case.expected if reading == model.run else ()))


@parametrize("forbidden_to_declare.txt")
def test_what_no_reading_could_make_sense_of_cannot_be_declared(case: Case, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        Model(tmp_path, case.text)
    (path,) = tmp_path.iterdir()
    lines = path.read_text(encoding="utf-8").splitlines()
    assert (caught.value.site.file, "# <- here" in lines[caught.value.site.line - 1]) == (str(path), True)
    assert [word for word in case.expected if word not in str(caught.value)] == [], str(caught.value)


@parametrize("faults.txt")
def test_what_is_not_there_is_a_fault_that_names_the_line(case: Case, tmp_path: Path) -> None:
    model = Model(tmp_path, case.text)
    with pytest.raises(ModelError) as caught:
        model.run()
    assert_names_the_line(model, caught.value, *case.expected)

    (error,) = [c.fault for c in trace_action(model.protocol, model.action()) if c.fault is not None]
    assert_names_the_line(model, error, *case.expected)


def test_an_update_of_too_few_parameters_names_the_line(tmp_path: Path) -> None:
    text = "@p.action('worker')\ndef act(s):\n    s.up.update_where(lambda old: True)  # <- here\n"
    model = Model(tmp_path, text)
    for reading in (model.run, model.trace):
        with pytest.raises(ModelError) as caught:
            reading()
        assert_names_the_line(model, caught.value, "update_where gives its function 2 values", "old value")


def test_values_that_know_better_answer_a_comparison_with_an_element_or_a_member(tmp_path: Path) -> None:
    text = "def claim(s):\n    first = workers.element(0)\n    return {}\n"
    for truth, condition in (
        (True, "first == s.who and not (first != s.who)"),
        (True, "Phase.idle == s.phase"),
        (False, "first == s.holder or not (first != s.holder)"),
        (True, "first == workers.element(0) and not first == workers.element(1)"),
        (True, "Phase.idle in Phase.members and Phase.idle != Phase.held"),
    ):
        model = Model(tmp_path, text.format(condition))
        model.trace()
        runner = model.runner()
        assert runner.holds(model.names["claim"], runner.initial()) is truth, condition


def test_a_variant_without_the_actions_of_an_actor_still_knows_it(tmp_path: Path) -> None:
    model = Model(
        tmp_path,
        "@p.action('clock')\ndef act(s):\n    s.n = 1\n\n\ndef claim(s):\n    return can_move(s, 'clock')\n",
    )
    assert model.runner().holds(model.names["claim"], model.runner().initial())
    left = Runner(model.protocol.variant("left", without=["act"]), model.scope)
    assert not left.holds(model.names["claim"], left.initial())


def test_functions_that_fit_a_quantifier_in_other_ways_are_taken(tmp_path: Path) -> None:
    text = "@p.action('worker')\ndef act(s):\n    s.flag = every(workers, {})\n"
    for function in ("lambda w, k=0: s.up[w]", "lambda *all_: s.up[all_[0]]", "functools.partial(up, s)"):
        helper = "def up(s, w):\n    return s.up[w]\n\n\n"
        model = Model(tmp_path, helper + text.format(function))
        model.trace()
        model.run()


def test_guards_are_no_exceptions_that_a_model_could_swallow() -> None:
    assert not any(issubclass(signal, Exception) for signal in (Disabled, Refused, Cut, Fault))
    with pytest.raises(Disabled):
        when(False)
    with pytest.raises(Refused, match="taken"):
        refuse_unless(False, "taken")


def test_the_language_says_when_it_is_used_outside_a_model(tmp_path: Path) -> None:
    model = Model(tmp_path, "def outside():\n    return every(workers, lambda w: True)  # <- here\n")
    with pytest.raises(ModelError) as caught:
        model.names["outside"]()
    assert_names_the_line(model, caught.value, "every used outside a model", "inside an action")


def test_too_many_paths_name_the_line_that_forks_and_what_to_fold(tmp_path: Path) -> None:
    model = Model(
        tmp_path,
        "@p.action('worker')\ndef act(s):\n    when(s.flag)\n"
        "    for i in (-1, 0, 1, 2):\n        for v in (0, 1, 2):\n"
        "            if s.slot[i] != s.log[v].present:  # <- here\n                s.n = 1\n",
    )
    with pytest.raises(PathLimitError) as caught:
        model.trace()
    assert_names_the_line(
        model, caught.value, "act forks into more than 512 paths", "ite(", "count(", "@derived"
    )


@parametrize("forbidden_to_vary.txt")
def test_what_differs_from_run_to_run_depends_on_something_outside_of_the_state(
    case: Case, tmp_path: Path
) -> None:
    model = Model(tmp_path, f"import itertools\n\n{case.text}")
    with pytest.raises(ModelError) as caught:
        model.trace()
    assert_names_the_line(model, caught.value, *case.expected)


@pytest.mark.parametrize("protocol", [core, benchmark_lease().lease(2, 3)[0]], ids=["core", "lease"])
def test_tracing_an_action_twice_gives_the_same_terms(protocol: Protocol) -> None:
    for action in protocol.actions.values():
        assert trace_action(protocol, action) == trace_action(protocol, action)


def test_tracing_a_claim_twice_gives_the_same_term() -> None:
    for made in CORE.claims.values():
        assert trace_claim(core, made.predicate) is trace_claim(core, made.predicate)
