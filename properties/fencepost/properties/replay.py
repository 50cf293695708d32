"""What is promised about replay: S24, and S25 for its history (§15).

Of S24 each claim is a part: what a worker goes on with, what is recorded, what acts, and when a replay stops.
Together they say that a history gives the same commands again, or stops at the first that differs.
"""

from __future__ import annotations

from fencepost.model import State, Step, derived, every, some, switched
from fencepost.model.core.state import workers
from fencepost.model.domains import Element, Member
from fencepost.model.replay.state import Name, Standing, positions, replay
from fencepost.properties.claims import Claims

REPLAY = Claims("replay", about=replay.name)


@derived
def passes(before: State, after: State, w: Element) -> object:
    """Whether worker `w` goes on from one position to the next in this step."""
    return before.asks[w].present and after.at[w] == before.at[w] + 1


@derived
def acts(before: State, after: State, w: Element) -> object:
    """Whether an activity acts for worker `w` in this step."""
    return before.standing[w] == Standing.performing and after.standing[w] == Standing.performed


@derived
def is_activity(what: Member) -> object:
    """Whether a command is an activity, which acts outside."""
    return what == Name.call or what == Name.send


# What a worker goes on with.


@REPLAY.each_step("S24", section="§15", witnesses=("a_command_is_served_from_the_history", "a_replay_stops"))
def only_the_recorded_command_goes_on(before: State, after: State) -> object:
    """What a workflow makes stands until it is recorded so at its position; only then the worker goes on."""
    return every(
        workers,
        lambda w: (
            after.standing[w] == Standing.idle
            or after.standing[w] == Standing.down
            or (
                after.at[w] == before.at[w]
                and (not before.asks[w].present or after.asks[w] == before.asks[w])
            )
            or (passes(before, after, w) and after.command[before.at[w]] == before.asks[w])
        ),
    )


@REPLAY.each_step("S24", section="§15", witnesses=("a_command_is_served_from_the_history",))
def a_workflow_is_given_what_is_recorded(before: State, after: State) -> object:
    """Whatever a workflow is given is the result recorded for its command, the first time and each time."""
    return every(
        workers,
        lambda w: not passes(before, after, w) or after.result[before.at[w]] == after.got[w],
    )


# What is recorded.


@REPLAY.each_step("S24", section="§15", witnesses=("a_command_comes_too_late",))
def a_recorded_command_is_never_replaced(before: State, after: State) -> object:
    """What is recorded as the command of a position stays."""
    return every(positions, lambda p: not before.command[p].present or after.command[p] == before.command[p])


@REPLAY.each_step("S24", section="§15", witnesses=("a_result_comes_too_late",))
def a_recorded_result_is_never_replaced(before: State, after: State) -> object:
    """What is recorded as the result of a command stays."""
    return every(positions, lambda p: not before.result[p].present or after.result[p] == before.result[p])


@REPLAY.always("S24", section="§15", witnesses=("an_activity_is_settled",))
def a_result_is_that_of_its_command(s: State) -> object:
    """A result is recorded only for a command that is, and that of an activity only after it has acted."""
    return every(
        positions,
        lambda p: (
            not s.result[p].present
            or (s.command[p].present and (not is_activity(s.command[p].what) or s.acted[p]))
        ),
    )


@REPLAY.always("S24", section="§15", witnesses=("a_history_has_two_commands",))
def the_history_has_no_gap(s: State) -> object:
    """Commands take positions one after another, and at most the last one has no result yet."""
    return every(
        positions,
        lambda p: (
            s.result[p].present == (p < s.settled)
            and (s.command[p].present or p >= s.settled)
            and (not s.command[p].present or p <= s.settled)
        ),
    )


@REPLAY.always("S24", section="§15", witnesses=("a_run_comes_to_its_end",))
def nothing_follows_the_end(s: State) -> object:
    """Once the end of a run is recorded, no further command is."""
    return every(
        positions,
        lambda p: (
            not s.command[p].present
            or s.command[p].what != Name.finish
            or (p + 1 == s.settled and not s.command[s.settled].present)
        ),
    )


@REPLAY.always("S24-definition", section="§14", witnesses=("a_replay_stops_at_another_definition",))
def a_history_has_one_definition(s: State) -> object:
    """All commands of a history were made by one definition."""
    return every(
        positions,
        positions,
        lambda p, q: (
            not s.command[p].present
            or not s.command[q].present
            or s.command[p].definition == s.command[q].definition
        ),
    )


# What acts.


@REPLAY.each_step("S24", section="§15", witnesses=("an_activity_acts",))
def an_activity_acts_as_recorded(before: State, after: State) -> object:
    """An activity acts only as the command that was recorded before, with those arguments."""
    return every(
        workers,
        lambda w: (
            not acts(before, after, w)
            or (before.asks[w].present and before.command[before.at[w]] == before.asks[w])
        ),
    )


@REPLAY.each_step("S24", section="§15", witnesses=("an_activity_acts", "an_activity_is_left_unknown"))
def an_activity_without_a_key_acts_once(before: State, after: State) -> object:
    """An activity that is not idempotent acts at most once for its position, whoever replays and dies."""
    return every(
        workers,
        lambda w: (
            not acts(before, after, w)
            or not before.acted[before.at[w]]
            or (before.asks[w].present and before.asks[w].what == Name.send)
        ),
    )


@REPLAY.each_step("S24", section="§15", witnesses=("an_activity_acts", "an_activity_is_settled"))
def what_has_its_result_does_not_act_again(before: State, after: State) -> object:
    """No activity acts for a worker that has read its result."""
    return every(workers, lambda w: not acts(before, after, w) or before.known[w] <= before.at[w])


# When a replay stops.


@REPLAY.always("S24", section="§15", witnesses=("a_replay_stops_at_other_arguments",
                                                "a_replay_stops_at_another_command"))  # fmt: skip
def a_stop_is_a_difference(s: State) -> object:
    """A worker stops only where another command is recorded than its workflow makes."""
    return every(
        workers,
        lambda w: (
            s.standing[w] != Standing.stopped
            or (s.asks[w].present and s.command[s.at[w]].present and s.command[s.at[w]] != s.asks[w])
        ),
    )


@REPLAY.always("S24", section="§15", witnesses=("a_command_is_served_from_the_history",
                                                "the_end_is_served_from_the_history"))  # fmt: skip
def the_same_code_never_differs(s: State) -> object:
    """No replay stops, unless code is changed or calls outside directly."""
    return (
        switched("direct_call")
        or switched("definition_changed")
        or every(workers, lambda w: s.standing[w] != Standing.stopped)
    )


@REPLAY.each_step("S24", section="§15", witnesses=("a_replay_stops",))
def who_has_stopped_does_nothing(before: State, after: State) -> object:
    """A worker that has stopped makes no further command, and records nothing, until it dies."""
    return every(
        workers,
        lambda w: (
            before.standing[w] != Standing.stopped
            or after.standing[w] == Standing.down
            or (after.standing[w] == Standing.stopped and after.at[w] == before.at[w])
        ),
    )


@REPLAY.each_step("S25", section="§2", witnesses=("a_command_comes_too_late", "a_result_comes_too_late"))
def a_refusal_leaves_the_history_alone(before: State, after: State, step: Step) -> object:
    """What is refused because another was first changes nothing of the history."""
    return not step.refused or (
        after.settled == before.settled
        and every(
            positions,
            lambda p: after.command[p] == before.command[p] and after.result[p] == before.result[p],
        )
    )


# Witnesses: each a state or step that must be reachable, or the claims that name it say nothing.


@REPLAY.sometimes()
def a_command_is_served_from_the_history(before: State, after: State, step: Step) -> object:
    """A worker is given a recorded result, and nothing is recorded."""
    return step.action == "serve" and some(workers, lambda w: passes(before, after, w))


@REPLAY.sometimes()
def the_end_is_served_from_the_history(before: State, after: State, step: Step) -> object:
    """A worker comes to the recorded end of a run after another command, from the history alone."""
    return step.action == "serve" and some(
        workers,
        lambda w: before.at[w] >= 1 and passes(before, after, w) and after.standing[w] == Standing.done,
    )


@REPLAY.sometimes()
def a_replay_stops(s: State) -> object:
    """A worker has stopped at a difference."""
    return some(workers, lambda w: s.standing[w] == Standing.stopped)


@derived
def stops(s: State, w: Element) -> object:
    """Whether worker `w` has stopped, with both commands to be seen."""
    return s.standing[w] == Standing.stopped and s.asks[w].present and s.command[s.at[w]].present


@REPLAY.sometimes()
def a_replay_stops_at_another_command(s: State) -> object:
    """A worker has stopped at a command with another name."""
    return some(workers, lambda w: stops(s, w) and s.command[s.at[w]].what != s.asks[w].what)


@REPLAY.sometimes()
def a_replay_stops_at_other_arguments(s: State) -> object:
    """A worker has stopped at a command of the same name with other arguments."""
    return some(
        workers,
        lambda w: (
            stops(s, w)
            and s.command[s.at[w]].what == s.asks[w].what
            and s.command[s.at[w]].fingerprint != s.asks[w].fingerprint
        ),
    )


@REPLAY.sometimes()
def a_replay_stops_at_another_definition(s: State) -> object:
    """A worker has stopped at the same command with the same arguments, of another definition."""
    return some(
        workers,
        lambda w: (
            stops(s, w)
            and s.command[s.at[w]].what == s.asks[w].what
            and s.command[s.at[w]].fingerprint == s.asks[w].fingerprint
        ),
    )


@REPLAY.sometimes()
def a_command_comes_too_late(before: State, after: State, step: Step) -> object:
    """A command is refused, since another was recorded at its position first."""
    return step.outcome == "position-taken"


@REPLAY.sometimes()
def a_result_comes_too_late(before: State, after: State, step: Step) -> object:
    """A result is refused, since another was recorded first."""
    return step.outcome == "result-recorded"


@REPLAY.sometimes()
def an_activity_acts(before: State, after: State) -> object:
    """An activity acts."""
    return some(workers, lambda w: acts(before, after, w))


@REPLAY.sometimes()
def an_activity_is_settled(s: State) -> object:
    """The result of an activity is recorded."""
    return some(
        positions,
        lambda p: s.result[p].present and s.command[p].present and s.command[p].what == Name.call,
    )


@REPLAY.sometimes()
def an_activity_is_left_unknown(s: State) -> object:
    """A worker finds an activity without a key started, and leaves it to a person."""
    return some(workers, lambda w: s.standing[w] == Standing.unknown)


@REPLAY.sometimes()
def a_history_has_two_commands(s: State) -> object:
    """A second command is recorded."""
    return some(positions, lambda p: p >= 1 and s.command[p].present)


@REPLAY.sometimes()
def a_run_comes_to_its_end(s: State) -> object:
    """The end of a run is recorded."""
    return some(positions, lambda p: s.command[p].present and s.command[p].what == Name.finish)
