"""Replay (§15): the same history gives the same commands, and the first that differs stops it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.reference import (
    Activity,
    ActivityFailedError,
    ArgumentError,
    Differing,
    Differs,
    Failed,
    Finished,
    History,
    MemoryHistory,
    Outcome,
    Overtaken,
    Result,
    Runtime,
    UnknownActivity,
    Waiting,
    attest,
    source_fingerprint,
)

from .replays import KilledError, Outside, ended, takes_two

FIXED = settings(derandomize=True, deadline=None, database=None, max_examples=60)


def buys(ctx: Runtime, *, cents: int) -> Any:
    order = ctx.new_id()
    at = ctx.now_ms()
    receipt = ctx.call("charge", order=order, cents=cents)
    ctx.sleep(10)
    return [order, at, receipt, ctx.random(), ctx.call("send", order=order)]


# The same history gives the same commands.


def test_a_finished_run_is_answered_from_its_history_and_nothing_is_done(history: History) -> None:
    first = ended(Outside(), buys, history, cents=500)
    kept = history.read()
    again = Outside()
    replay = again.run(buys, history)
    assert isinstance(first, Finished)
    assert replay.ended == first
    assert (replay.served, replay.recorded, again.calls) == (len(kept), 0, [])
    assert history.read() == kept


Program = list[tuple[str, int]]
"""Operations, each with a number that decides from which earlier value its argument is made."""

OPERATIONS = ("now", "random", "new_id", "charge", "send", "sleep", "branch")
PROGRAMS = st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 5)), max_size=7)


def made_of(program: Program, seen: list[Any]) -> Callable[[Runtime], Any]:
    """A workflow that runs the program, and writes down what it saw."""

    def function(ctx: Runtime) -> Any:
        seen.clear()
        for what, number in program:
            earlier = seen[number % len(seen)] if seen else number
            match what:
                case "now" | "random" | "new_id":
                    method = {"now": ctx.now_ms, "random": ctx.random, "new_id": ctx.new_id}[what]
                    seen.append(method())
                case "charge" | "send":
                    seen.append(ctx.call(what, of=earlier))
                case "sleep":
                    seen.append(ctx.sleep(number))
                case _:
                    seen.append(ctx.new_id() if len(str(earlier)) % 2 else ctx.call("charge", of=0))
        return seen

    return function


def settle_by_hand(history: History, ending: UnknownActivity) -> None:
    assert attest(history, ending.command.position, value="found by a person")


@FIXED
@given(PROGRAMS)
def test_killed_at_any_point_a_run_goes_on_with_the_same_commands(program: Program) -> None:
    seen: list[Any] = []
    function = made_of(program, seen)
    whole = Outside()
    assert isinstance(ended(whole, function, MemoryHistory("order-42")), Finished)
    for point in range(whole.points):
        history, dying, calls = MemoryHistory("order-42"), Outside(dies_at=point), []
        seen.clear()
        with pytest.raises(KilledError):
            ended(dying, function, history)
        before, seen_before = history.read(), list(seen)
        calls += dying.calls
        for _ in range(12):
            # What was recorded is as it was; what the workflow was given stays what it was given.
            outside = Outside(ticks=count(5_000, 11))
            ending = outside.run(function, history).ended
            calls += outside.calls
            after = history.read()
            assert [r.command for r in after[: len(before)]] == [r.command for r in before]
            assert all(b.result in (None, a.result) for a, b in zip(after, before, strict=False))
            assert seen[: len(seen_before)] == seen_before[: len(seen)]
            if isinstance(ending, UnknownActivity):
                settle_by_hand(history, ending)
            elif isinstance(ending, Finished):
                break
        assert isinstance(ending, Finished)
        # Nothing acts twice: an activity without keys is called once at its position, others under one key.
        charged = [key for key, _ in calls if key == "charge"]
        places = [r for r in history.read() if r.command.name == "charge"]
        assert len(charged) <= len(places)
        sent = [repr(call) for call in calls if call[0] != "charge"]
        assert len(set(sent)) == sum(r.command.name == "send" for r in history.read())


# Each kind of difference.


def other_type(ctx: Runtime) -> Any:
    return ctx.now_ms()


def other_name(ctx: Runtime) -> Any:
    return ctx.call("send", cents=500, to="ada")


def other_order(ctx: Runtime) -> Any:
    return [ctx.call("send", to="ada"), ctx.call("charge", cents=500, to="ada")]


def other_arguments(ctx: Runtime) -> Any:
    return [ctx.call("charge", cents=700, to="ada"), ctx.call("send", to="ada")]


def ends_early(ctx: Runtime) -> Any:
    return [ctx.call("charge", cents=500, to="ada")]


def goes_on(ctx: Runtime) -> Any:
    return [*takes_two(ctx), ctx.new_id()]


def ends_otherwise(ctx: Runtime) -> Any:
    takes_two(ctx)
    return "otherwise"


def raises(ctx: Runtime) -> Any:
    ctx.call("charge", cents=500, to="ada")
    raise LookupError("no such customer")


@pytest.mark.parametrize(
    ("function", "what", "position", "said"),
    [
        (other_type, Differing.TYPE, 1, 'recorded  call charge {"cents":500,"to":"ada"}\n  now       now\n'),
        (other_name, Differing.NAME, 1, "now       call send"),
        (other_order, Differing.NAME, 1, "what came now is recorded at position 2: the order has changed"),
        (other_arguments, Differing.ARGUMENTS, 1, "  cents was 500, and is 700\n"),
        (ends_early, Differing.MISSING, 2, "the workflow ended where a command is recorded"),
        (goes_on, Differing.SURPLUS, 3, "the workflow went on where its end is recorded"),
        (ends_otherwise, Differing.ARGUMENTS, 3, "the workflow ended with another result"),
        (raises, Differing.MISSING, 2, "the workflow raised LookupError where a command is recorded"),
    ],
)
def test_the_first_difference_stops_the_replay_and_is_told(
    history: History, function: Callable[..., object], what: Differing, position: int, said: str
) -> None:
    ended(Outside(), takes_two, history)
    kept, outside = history.read(), Outside()
    stopped = outside.run(function, history)
    assert isinstance(stopped.ended, Differs)
    found = stopped.ended.difference
    assert (found.what, found.position) == (what, position)
    assert said in str(found)
    assert f"order-42 stopped at position {position}" in str(found)
    assert "What to do: " in str(found)
    assert (outside.calls, history.read()) == ([], kept)
    assert stopped.served == position


def test_another_definition_stops_the_replay_at_once(history: History) -> None:
    ended(Outside(), takes_two, history)
    stopped = Outside().run(takes_two, history, definition="v2").ended
    assert isinstance(stopped, Differs)
    assert (stopped.difference.what, stopped.difference.position) == (Differing.DEFINITION, 0)
    assert "the definition was v1, and is v2" in str(stopped.difference)


def test_other_arguments_of_the_run_stop_the_replay_at_once(history: History) -> None:
    ended(Outside(), buys, history, cents=500)
    stopped = Outside().run(buys, history, {"cents": 501}).ended
    assert isinstance(stopped, Differs)
    assert "cents was 500, and is 501" in str(stopped.difference)


def test_what_a_workflow_raises_instead_of_a_command_is_handed_on(history: History) -> None:
    ended(Outside(), takes_two, history)
    stopped = Outside().run(raises, history).ended
    assert isinstance(stopped, Differs)
    assert isinstance(stopped.raised, LookupError)


def test_a_model_that_is_called_directly_is_caught_at_the_first_command_that_differs(
    history: History,
) -> None:
    answers = count()

    def model(prompt: str) -> str:
        return f"{prompt} {next(answers)}"

    def asks_directly(ctx: Runtime) -> Any:
        amount = ctx.call("charge", cents=1)
        plan = model("how much?")
        ctx.new_id()
        return [amount, ctx.call("send", plan=plan)]

    assert isinstance(ended(Outside(), asks_directly, history), Finished)
    outside = Outside()
    stopped = outside.run(asks_directly, history).ended
    assert isinstance(stopped, Differs)
    assert (stopped.difference.position, stopped.difference.what) == (3, Differing.ARGUMENTS)
    assert 'plan was "how much? 0", and is "how much? 1"' in str(stopped.difference)
    assert "put files, network, model and tool calls into activities" in str(stopped.difference)
    assert outside.calls == []


def test_a_model_in_an_activity_is_asked_once(history: History) -> None:
    answers = count()
    model = Activity(lambda prompt: f"{prompt} {next(answers)}")

    def asks(ctx: Runtime) -> Any:
        return ctx.call("send", plan=ctx.call("model", prompt="how much?"))

    first = ended(Outside(activities={"model": model}), asks, history)
    assert ended(Outside(activities={"model": model}), asks, history) == first
    assert next(answers) == 1


def test_no_workflow_can_hold_back_a_stop(history: History) -> None:
    def stubborn(ctx: Runtime, *, cents: int) -> Any:
        while True:
            try:
                ctx.call("charge", cents=cents)
                return ctx.call("send", cents=cents)
            except BaseException:  # noqa: BLE001
                cents += 0
                if cents == 2:
                    raise LookupError from None
                return "held back"

    ended(Outside(), takes_two, history)
    for cents in (1, 2):
        other = MemoryHistory("order-42", [*history.read()])
        assert isinstance(Outside().run(stubborn, other, {"cents": cents}).ended, Differs)
        assert other.read() == history.read()


# Activities.


def test_an_activity_whose_outcome_is_not_recorded_is_unknown_and_not_called_again(history: History) -> None:
    outside = Outside(dies_at=5)  # after the effect: start has two points, the command two, then the call
    with pytest.raises(KilledError):
        outside.run(takes_two, history)
    assert len(outside.calls) == 1
    again = Outside()
    ending = again.run(takes_two, history).ended
    assert isinstance(ending, UnknownActivity)
    assert (ending.command.position, ending.command.name, again.calls) == (1, "charge", [])


def test_an_idempotent_activity_is_called_again_under_the_same_key(history: History) -> None:
    def sends(ctx: Runtime) -> Any:
        return ctx.call("send", to="ada")

    outside = Outside(dies_at=5)
    with pytest.raises(KilledError):
        outside.run(sends, history)
    again = Outside()
    assert isinstance(again.run(sends, history).ended, Finished)
    assert again.calls == outside.calls == [("order-42:1:send-v1", {"to": "ada"})]


def test_what_a_person_found_out_lets_the_run_go_on(history: History) -> None:
    with pytest.raises(KilledError):
        Outside(dies_at=4).run(takes_two, history)
    assert not attest(history, 0, value="of a command that has its result")
    assert not attest(history, 9, value="of no command")
    assert attest(history, 1, value={"receipt": 7})
    assert not attest(history, 1, value="twice")
    ending = Outside().run(takes_two, history).ended
    assert isinstance(ending, Finished)
    assert ending.value[0] == {"receipt": 7}
    assert history.read()[1].result == Result(Outcome.ATTESTED, '{"receipt":7}')


def test_a_failure_that_a_person_attests_is_raised_in_the_workflow(history: History) -> None:
    with pytest.raises(KilledError):
        Outside(dies_at=4).run(takes_two, history)
    assert attest(history, 1, failed="the bank never got it")
    assert Outside().run(takes_two, history).ended == Failed("the bank never got it")


def test_a_failure_that_an_activity_is_sure_of_is_recorded_and_raised_each_time(history: History) -> None:
    calls = []

    def declines(**arguments: Any) -> Any:
        calls.append(arguments)
        raise ActivityFailedError("declined")

    def copes(ctx: Runtime) -> Any:
        try:
            ctx.call("charge", cents=500)
        except ActivityFailedError as error:
            return f"{error}: {ctx.call('send', why='declined')['of']}"

    outside = Outside(activities={"charge": Activity(declines)})
    ending = outside.run(copes, history).ended
    assert ending == Finished("declined: {'why': 'declined'}")
    assert outside.run(copes, history).ended == ending
    assert len(calls) == 1


def test_a_failure_that_nobody_catches_ends_the_run_for_good(history: History) -> None:
    def declines(**_: Any) -> Any:
        raise ActivityFailedError("declined")

    outside = Outside(activities={"charge": Activity(declines)})
    assert outside.run(takes_two, history).ended == Failed("declined")
    assert Outside().run(takes_two, history).ended == Failed("declined")


@pytest.mark.parametrize("gives", [OSError("cut off"), object()])
def test_any_other_end_of_an_activity_is_unknown_and_no_handler_of_the_workflow_sees_it(
    history: History, gives: object
) -> None:
    def breaks(**_: Any) -> Any:
        if isinstance(gives, Exception):
            raise gives
        return gives

    def copes(ctx: Runtime) -> Any:
        try:
            ctx.call("charge", cents=500)
        except Exception:  # noqa: BLE001
            return "guessed"

    ending = Outside(activities={"charge": Activity(breaks)}).run(copes, history).ended
    assert isinstance(ending, UnknownActivity)
    assert isinstance(ending.raised, OSError | ArgumentError)
    assert history.read()[-1].result is None


def test_an_activity_cannot_use_the_runtime_of_its_workflow(history: History) -> None:
    def nests(ctx: Runtime) -> Any:
        outside.activities["charge"] = Activity(lambda: ctx.new_id())
        return ctx.call("charge")

    outside = Outside()
    ending = outside.run(nests, history).ended
    assert isinstance(ending, UnknownActivity)
    assert "give it what it needs as arguments" in str(ending.raised)


def test_an_activity_that_nobody_registered_is_told_and_nothing_is_recorded(history: History) -> None:
    def calls(ctx: Runtime) -> Any:
        return ctx.call("chagre")

    with pytest.raises(ArgumentError, match="no activity 'chagre', only charge, send"):
        Outside().run(calls, history)
    assert len(history.read()) == 1


def test_an_exception_where_nothing_is_recorded_is_the_callers_and_mended_code_goes_on(
    history: History,
) -> None:
    with pytest.raises(LookupError):
        Outside().run(raises, history)
    outside = Outside()
    assert isinstance(outside.run(takes_two, history).ended, Finished)
    assert [key for key, _ in outside.calls] == ["order-42:2:send-v1"]


# Time.


def test_a_sleep_ends_the_run_until_its_time_has_come(history: History) -> None:
    def naps(ctx: Runtime) -> Any:
        ctx.sleep(50)
        return ctx.now_ms()

    outside = Outside(ticks=count(100, 0))
    assert outside.run(naps, history).ended == Waiting(150)
    assert Outside(ticks=count(149, 0)).run(naps, history).ended == Waiting(150)
    assert Outside(ticks=count(150, 0)).run(naps, history).ended == Finished(150)
    # It has passed, whatever a clock says later.
    assert Outside(ticks=count(1, 0)).run(naps, history).ended == Finished(150)


def test_the_time_never_steps_back(history: History) -> None:
    clock = iter([100, 40, 120, 110])

    def looks(ctx: Runtime) -> Any:
        return [ctx.now_ms() for _ in range(4)]

    outside = Outside()
    outside.now_ms = lambda: next(clock)
    assert outside.run(looks, history).ended == Finished([100, 100, 120, 120])


# Two at the same time.


def test_of_two_replayers_one_is_told_that_the_other_was_first(history: History) -> None:
    other = Outside()

    def overtakes(ctx: Runtime) -> Any:
        value = ctx.new_id()
        if not other.points:
            other.run(takes_an_id, history)
        return [value, ctx.random()]

    def takes_an_id(ctx: Runtime) -> Any:
        return [ctx.new_id(), ctx.random()]

    assert Outside().run(overtakes, history).ended == Overtaken(2)
    assert isinstance(Outside().run(takes_an_id, history).ended, Finished)


def test_an_idempotent_activity_that_two_call_has_the_result_that_was_recorded_first(
    history: History,
) -> None:
    def sends(ctx: Runtime) -> Any:
        return ctx.call("send", to="ada")

    slow, quick = Outside(), Outside()

    def while_another(*_: str, **__: Any) -> Any:
        assert isinstance(quick.run(sends, history).ended, Finished)
        return "late"

    slow.activities["send"] = Activity(while_another, idempotent=True)
    assert slow.run(sends, history).ended == Overtaken(1)
    ending = Outside().run(sends, history).ended
    assert isinstance(ending, Finished)
    assert ending.value != "late"


def test_a_source_fingerprint_changes_with_the_source() -> None:
    assert source_fingerprint(buys) == source_fingerprint(buys)
    assert (
        len({source_fingerprint(f) for f in (buys, takes_two)} | {source_fingerprint(buys, takes_two)}) == 3
    )
    with pytest.raises(ArgumentError, match="give the definition as a text"):
        source_fingerprint(len)
