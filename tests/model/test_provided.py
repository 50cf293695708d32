"""What the language provides: each word does what it says, the same when it is run and when it is traced."""

from __future__ import annotations

from pathlib import Path

from fencepost.model import ModelError
from fencepost.model.run import Transition
from fencepost.model.trace import trace_action

from .both import Both, is_fault
from .support import Case, Model, parametrize


def outcome(model: Model, before: dict[str, int], arguments: tuple[int, ...]) -> str:
    """What `act` does in a state: the cells it changes, or how else it ends. The readings must agree."""
    both = Both(model.protocol, model.scope)
    runner = both.runner
    first = {**runner.codes(runner.initial()), **before}
    assert first.keys() == runner.codes(runner.initial()).keys()
    state = runner.from_codes(first)
    both.compare(state)
    try:
        made = runner.step(state, "act", arguments)
    except ModelError as error:
        return "fault" if is_fault(error) else str(error)
    if not isinstance(made, Transition):
        return made
    words = [f"refused {made.outcome}"] if made.refused else []
    words += [f"{name}={code}" for name, code in runner.codes(made.state).items() if code != first[name]]
    return " ".join(words) or "nothing"


@parametrize("provided.txt")
def test_a_word_means_the_same_run_and_traced(case: Case, tmp_path: Path) -> None:
    model = Model(tmp_path, case.text)
    expected, *more = case.expected
    arguments = (
        next((m for m in more if m.startswith("act(")), "act()").removeprefix("act(").removesuffix(")")
    )
    codes = tuple(int(code) for code in arguments.split(", ") if code)
    assert sorted(outcome(model, case.before, codes).split()) == sorted(expected.split())
    if "one path" in more:
        assert len(trace_action(model.protocol, model.action())) == 1
