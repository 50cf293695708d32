"""Words that need more than one action to show: fresh elements, steps, movability, switches, sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.model import ModelError, NeedsFiniteError, ScopeError
from fencepost.model import terms as t
from fencepost.model.ground import ground_model
from fencepost.model.run import Runner
from fencepost.model.trace import trace_action, trace_claim

from .both import Both
from .support import Model, assert_names_the_line, reachable

SEND = """@p.action("worker", w=workers, k=p.fresh(keys, unless="used"))
def send(s, w, k):
    when(s.up[w])
    s.used[k] = True
    s.allowed[w, k] = True


@p.action("world", w=workers)
def crash(s, w):
    s.up[w] = False
"""


@pytest.mark.parametrize(
    "text",
    [
        "for w in workers:  # <- here\n        s.up[w] = False",
        "when(all(s.up[w] for w in workers))  # <- here",
        "when(any(s.up[w] for w in workers))  # <- here",
        "s.n = highest(workers, lambda w: s.ticks[w])  # <- here",
        "s.n = lowest(workers, lambda w: s.ticks[w])  # <- here",
    ],
)
def test_a_loop_over_a_sort_is_an_error_of_the_reading_for_all_sizes(text: str, tmp_path: Path) -> None:
    model = Model(tmp_path, f'@p.action("worker")\ndef act(s):\n    {text}\n')
    with pytest.raises(NeedsFiniteError) as caught:
        trace_action(model.protocol, model.action())
    assert_names_the_line(model, caught.value, "worker needs to know how many there are", "write every(")
    assert trace_action(model.protocol, model.action(), model.scope) != ()


def test_a_helper_that_forks_is_folded_to_one_value_where_it_is_derived(tmp_path: Path) -> None:
    plain = "def free(s, k):\n    return not s.used[k] and s.n != 1 and s.m != 2\n\n\n"
    text = "@p.action('worker', k=keys)\ndef act(s, k):\n"
    text += "    s.flag = free(s, k)\n    s.n = ite(free(s, k), 1, 0)\n"
    forking, folded = Model(tmp_path, plain + text), Model(tmp_path, f"@derived\n{plain}{text}")
    assert len(trace_action(forking.protocol, forking.action())) > 1
    (command,) = trace_action(folded.protocol, folded.action())
    assert command.guard == ()
    assert command.updates["n"].op == "ite"
    assert command.updates["n"].args[0] is command.updates["flag"]


def test_a_family_named_by_a_state_value_is_read_without_a_fork(tmp_path: Path) -> None:
    model = Model(
        tmp_path, "@p.action('worker')\ndef act(s):\n    s.ticks[s.who] = s.ticks[s.holder.value]\n"
    )
    commands = trace_action(model.protocol, model.action())
    assert [c.outcome for c in commands] == ["done", "fault"]
    assert len(ground_model(model.protocol, model.scope.but(sizes={"worker": 9, "key": 1})).commands) == 2


def test_a_fresh_element_is_the_smallest_unused_and_that_none_is_left_is_a_cut(tmp_path: Path) -> None:
    model = Model(tmp_path, SEND)
    both = Both(model.protocol, model.scope)
    both.search(1_000)

    runner = both.runner
    state = runner.initial()
    for expected in (["send(w1, k1)", "send(w2, k1)"], ["send(w1, k2)", "send(w2, k2)"], []):
        sent = [x for x in runner.transitions(state) if x.action.name == "send"]
        assert [x.label for x in sent] == expected
        state = sent[0].state if sent else state
    assert [(action.name, arguments[0].label) for action, arguments in runner.cuts(state)] == [
        ("send", "w1"),
        ("send", "w2"),
    ]
    assert runner.attempt(state, *next(runner.cuts(state))) == "cut"


def test_that_no_element_is_left_cuts_only_what_would_be_possible_with_one_more(tmp_path: Path) -> None:
    model = Model(tmp_path, SEND)
    runner = model.runner()
    used = runner.from_codes({**runner.codes(runner.initial()), "used[k1]": 1, "used[k2]": 1, "up[w1]": 0})
    assert [arguments[0].label for _, arguments in runner.cuts(used)] == ["w2"]
    Both(model.protocol, model.scope).compare(used)


@pytest.mark.parametrize("unless", ["used", "leases"])
def test_a_fresh_element_may_be_told_by_a_family_of_booleans_or_of_optionals(
    unless: str, tmp_path: Path
) -> None:
    text = SEND.replace('"used"', f'"{unless}"') + "\n\n@p.action('world', k=keys)\ndef take(s, k):\n"
    text += "    s.leases[k] = Lease(worker=s.who, version=s.n)\n"
    model = Model(tmp_path, text)
    both = Both(model.protocol, model.scope)
    both.search(1_000)
    assert both.numbers["cut"] > 0


def test_two_fresh_parameters_are_used_up_one_by_one(tmp_path: Path) -> None:
    model = Model(
        tmp_path,
        'variable("busy", Family(workers, of=BOOLEAN), False)\n\n\n'
        '@p.action("worker", k=p.fresh(keys, unless="used"), w=p.fresh(workers, unless="busy"))\n'
        "def act(s, k, w):\n    s.used[k] = True\n    s.busy[w] = True\n\n\n"
        "@p.action('world', w=workers)\ndef free(s, w):\n    s.busy[w] = False\n",
    )
    both = Both(model.protocol, model.scope.but(sizes={"worker": 1, "key": 3}))
    both.search(1_000)
    (state,) = [x.state for x in both.runner.transitions(both.runner.initial()) if x.action.name == "act"]
    assert [repr(arguments) for _, arguments in both.runner.cuts(state)] == ["(k2, w1)"]


def test_elements_that_are_used_from_the_beginning_are_never_fresh(tmp_path: Path) -> None:
    model = Model(
        tmp_path, '@p.action("worker", w=p.fresh(workers, unless="idle"))\ndef act(s, w):\n    s.n = 1\n'
    )
    both = Both(model.protocol, model.scope)
    both.search(10)
    assert (both.numbers["moves"], both.numbers["cut"]) == (0, 0)


@pytest.mark.parametrize("unless", ["n", "phase", "unknown", "up", "allowed", "at"])
def test_what_is_no_family_of_used_elements_is_refused(unless: str, tmp_path: Path) -> None:
    model = Model(tmp_path, SEND.replace('"used"', f'"{unless}"'))
    for read in (
        lambda: ground_model(model.protocol, model.scope),
        lambda: Runner(model.protocol, model.scope),
    ):
        with pytest.raises(ModelError, match="names no boolean or optional family"):
            read()


STEPS = """@p.operation("worker", home="store", w=workers)
def take(s, w):
    refuse_unless(s.phase == Phase.idle, "taken")
    s.phase = Phase.held
    s.who = w


@p.action("world")
def lose(s):
    when(s.phase == Phase.held)
    s.phase = Phase.down


def only_take_is_refused(before, after, step):
    return not step.refused or (step.action == "take" and step.outcome == "taken")


def refused_changes_nothing(before, after, step):
    return not step.refused or before.phase == after.phase


def ok_takes(before, after, step):
    return step.outcome != "ok" or after.phase == Phase.held


def lose_is_done(before, after, step):
    return (step.action != "lose") == (step.outcome != "done")


def phase_moves(before, after):
    return before.phase != after.phase


def idle_can_move(s):
    return s.phase == Phase.down or can_move(s, "worker", "world")


def can_move_after(before, after):
    return can_move(after, "worker", "world")


def the_world_can_move(s):
    return can_move(s, "world")
"""


def test_claims_see_the_action_and_the_outcome_of_a_step(tmp_path: Path) -> None:
    model = Model(tmp_path, STEPS)
    names = ("only_take_is_refused", "refused_changes_nothing", "ok_takes", "lose_is_done", "phase_moves")
    both = Both(model.protocol, model.scope)
    for name in (*names, "can_move_after"):
        both.add_claim(model.names[name])
    both.search(100)

    runner = both.runner
    steps = [(s, x) for s in reachable(runner) for x in runner.transitions(s)]
    truths = {name: {runner.holds_step(model.names[name], s, x) for s, x in steps} for name in names}
    assert truths == {**{name: {True} for name in names}, "phase_moves": {True, False}}


def test_can_move_asks_whether_a_move_changes_something(tmp_path: Path) -> None:
    model = Model(tmp_path, STEPS)
    both = Both(model.protocol, model.scope)
    both.add_claim(model.names["idle_can_move"])
    both.add_claim(model.names["the_world_can_move"])
    both.search(100)

    runner = both.runner
    by_phase = {
        runner.codes(s)["phase"]: (
            runner.holds(model.names["idle_can_move"], s),
            runner.holds(model.names["the_world_can_move"], s),
        )
        for s in reachable(runner)
    }
    assert by_phase == {0: (True, False), 1: (True, True), 2: (True, False)}


def test_a_cut_counts_as_a_possible_move(tmp_path: Path) -> None:
    model = Model(
        tmp_path,
        "@p.action('worker')\ndef act(s):\n    s.n = s.n + 1\n\n\n"
        "def moves(s):\n    return can_move(s, 'worker')\n",
    )
    both = Both(model.protocol, model.scope)
    both.add_claim(model.names["moves"])
    both.search(10)
    last = reachable(both.runner)[-1]
    assert both.runner.codes(last)["n"] == 2
    assert both.runner.holds(model.names["moves"], last)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ('step.action == "tkae"', ("no action 'tkae'", "did you mean 'take'?")),
        ('step.outcome != "takn"', ("no outcome 'takn'", "did you mean 'taken'?")),
    ],
)
def test_an_unknown_name_of_a_step_is_an_error_with_a_suggestion(
    condition: str, words: tuple[str, str], tmp_path: Path
) -> None:
    text = f"{STEPS}\n\ndef wrong(before, after, step):\n    return {condition}  # <- here\n"
    model = Model(tmp_path, text)
    runner = model.runner()
    first = runner.initial()
    for read in (
        lambda: trace_claim(model.protocol, model.names["wrong"]),
        lambda: runner.holds_step(model.names["wrong"], first, next(runner.transitions(first))),
    ):
        with pytest.raises(ModelError) as caught:
            read()
        assert_names_the_line(model, caught.value, *words)


def test_an_action_with_a_switch_happens_only_where_the_scope_turns_it_on(tmp_path: Path) -> None:
    text = (
        "@p.action('worker', switch='crash', w=workers)\ndef act(s, w):\n    s.up[w] = False\n\n\n"
        "@p.action('worker')\ndef other(s):\n    s.flag = switched('crash')\n"
    )
    model = Model(tmp_path, text)
    on, off = model.scope, model.scope.but(switches=frozenset())
    names = []
    for scope in (on, off):
        both = Both(model.protocol, scope)
        both.search(100)
        first = both.runner.initial()
        names.append([(x.label, both.runner.codes(x.state)["flag"]) for x in both.runner.transitions(first)])
    assert names == [[("act(w1)", 0), ("act(w2)", 0), ("other", 1)], [("other", 0)]]


def test_a_switch_is_open_until_a_scope_decides_it(tmp_path: Path) -> None:
    model = Model(tmp_path, "@p.action('worker')\ndef act(s):\n    s.flag = switched('crash')\n")
    (command,) = trace_action(model.protocol, model.action())
    assert command.updates["flag"].op == "var"
    assert t.show(command.updates["flag"]) == "switch crash"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sizes": {"worker": 2}}, "no size for 'key'"),
        ({"sizes": {"worker": 2, "key": 0}}, "must be positive"),
        ({"sizes": {"worker": 2, "key": 2, "keys": 1}}, "did you mean 'key'?"),
        ({"bounds": {}}, "no bound for 'version'"),
        ({"bounds": {"version": 2, "verison": 2}}, "did you mean 'version'?"),
        ({"switches": frozenset({"crush"})}, "did you mean 'crash'?"),
    ],
)
def test_a_scope_that_does_not_fit_is_an_error_of_each_reading(
    changes: dict[str, object], words: str, tmp_path: Path
) -> None:
    model = Model(tmp_path, SEND)
    scope = model.scope.but(**changes)
    for read in (lambda: ground_model(model.protocol, scope), lambda: Runner(model.protocol, scope)):
        with pytest.raises(ScopeError, match=words.replace("?", r"\?")):
            read()


def test_the_first_state_may_hold_a_record_and_must_lie_in_its_domains(tmp_path: Path) -> None:
    record = 'variable("row", Lease, Lease(worker=workers.element(1), version=1))\n\n\n'
    text = record + "@p.action('worker')\ndef act(s):\n    s.row = s.row.changed(version=s.row.version + 1)\n"
    model = Model(tmp_path, text)
    both = Both(model.protocol, model.scope)
    both.search(10)
    assert (both.numbers["states"], both.numbers["cut"]) == (2, 1)

    outside = Model(tmp_path, 'variable("far", versions, 3)\n')
    for read in (lambda: ground_model(outside.protocol, outside.scope), lambda: outside.runner().initial()):
        with pytest.raises(ModelError, match="variable far starts"):
            read()
    other = Model(tmp_path, 'variable("far", versions, None)\n')
    for read in (lambda: ground_model(other.protocol, other.scope), lambda: other.runner().initial()):
        with pytest.raises(ModelError, match=r"far.*None used as a state value.*absent"):
            read()
