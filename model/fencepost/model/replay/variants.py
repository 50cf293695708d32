"""Replay with something wrong, or unusual: what each claim is shown to fail on.

A variant is made by taking lines out of the model, or by making them say something else, so that it says only
what is different. `breaks` names the claims (by name) that must be refuted in the variant's scope, with the
exact length of the shortest run; no other claim may be.
"""

from __future__ import annotations

from fencepost.model.core.state import WORKER, workers
from fencepost.model.domains import Element
from fencepost.model.language import State, absent, some, when
from fencepost.model.mutate import with_lines, without
from fencepost.model.replay import replayers, scopes, world
from fencepost.model.replay.state import Name, Standing, makes, positions, replay, values
from fencepost.model.variants import Variant, adding_to

assert replayers, scopes  # the protocol is complete only with all its modules  # noqa: S101
assert world  # noqa: S101


VARIANTS: dict[str, Variant] = {}
_add = adding_to(VARIANTS, scope="quick")

_ARGUMENTS = "if recorded.fingerprint != asked.fingerprint"
_DEFINITION = "if recorded.definition != asked.definition"
_NAME = "if recorded.what != asked.what"
"""Lines of the comparison that several variants change."""

# What a command is compared with.

_add(
    without(replay, "compares-only-the-name", serve=(_ARGUMENTS, _DEFINITION)),
    "A replay compares what the command is called, and not its arguments: an activity that a model's answer "
    "decided upon gets the result of another.",
    ("F26", "F27"),
    scope="direct",
    only_the_recorded_command_goes_on=6,
)
_add(
    without(replay, "compares-nothing", serve=(_NAME, _ARGUMENTS, _DEFINITION)),
    "A replay takes results from the history one after another, whatever the workflow asks for.",
    ("F26", "F27"),
    scope="direct",
    only_the_recorded_command_goes_on=6,
    nothing_follows_the_end=8,
)
_add(
    without(replay, "compares-no-definition", serve=(_DEFINITION,)),
    "Code that was changed goes on with a history of the former code, as long as the commands are alike.",
    ("F27",),
    scope="quick-changed",
    only_the_recorded_command_goes_on=7,
    a_history_has_one_definition=9,
)
_add(
    without(replay, "calls-again-uncompared", meet_unfinished=(_NAME, _ARGUMENTS)),
    "An activity that may have happened is called again with what the workflow makes now, uncompared.",
    scope="direct",
    only_the_recorded_command_goes_on=8,
    an_activity_acts_as_recorded=7,
    an_activity_without_a_key_acts_once=8,
)
_add(
    with_lines(
        replay, "stops-at-the-same", serve={_ARGUMENTS: "if recorded.fingerprint == asked.fingerprint"}
    ),
    "A replay stops where the arguments are the recorded ones, and goes on where they are not.",
    a_stop_is_a_difference=6,
    the_same_code_never_differs=6,
)


def serve_from_anywhere(s: State, w: Element) -> None:
    """A command that is recorded at any position is given the result recorded here."""
    when(makes(s, w))
    when(s.at[w] < s.known[w])

    if some(positions, lambda p: s.command[p] == s.asks[w]):
        replayers.pass_position(s, w)
    else:
        s.standing[w] = Standing.stopped


_add(
    replay.variant("compares-no-position", serve=serve_from_anywhere),
    "A command that is recorded anywhere in the history is taken for the one recorded here.",
    ("F27",),
    scope="direct",
    only_the_recorded_command_goes_on=8,
    nothing_follows_the_end=12,
)

# What a workflow is given.

_add(
    with_lines(replay, "draws-anew", serve={"s.got[w] = s.result[s.at[w]].value": "s.got[w] = 0"}),
    "A random number is drawn anew in a replay, here always the same one.",
    ("F26",),
    a_workflow_is_given_what_is_recorded=6,
    the_same_code_never_differs=10,
)


def serve_or_skip(s: State, w: Element) -> None:
    """A command that is not the recorded one is left out, and the workflow goes on."""
    when(makes(s, w))
    when(s.at[w] < s.known[w])

    replayers.compare(s, w)
    if s.standing[w] == Standing.running:
        replayers.pass_position(s, w)
    else:
        s.standing[w] = Standing.running
        s.asks[w] = absent


_add(
    replay.variant("skips-what-differs", serve=serve_or_skip),
    "A command that differs is left out instead of stopping the replay, and the workflow makes another.",
    ("F26",),
    scope="direct",
    only_the_recorded_command_goes_on=6,
)
_add(
    with_lines(replay, "passes-over-what-differs", serve={
        "if s.standing[w] == Standing.running": "if s.standing[w] != Standing.down",
    }),
    "A difference is noted, and the replay goes on.",
    scope="direct",
    only_the_recorded_command_goes_on=6,
    nothing_follows_the_end=8,
)  # fmt: skip

# What is recorded.

_add(
    without(replay, "appends-blindly", record_at_once=('"position-taken"',)),
    "A command is recorded without a look at whether its position is still free.",
    scope="direct",
    a_recorded_command_is_never_replaced=6,
    an_activity_acts_as_recorded=7,
)
_add(
    without(replay, "starts-blindly", record_start=('"position-taken"',)),
    "The start of an activity is recorded whether or not another worker has started it.",
    an_activity_without_a_key_acts_once=8,
)
_add(
    without(replay, "settles-blindly", settle=('"result-recorded"',)),
    "A result is recorded without a look at whether there is one.",
    a_recorded_result_is_never_replaced=10,
    the_history_has_no_gap=12,
    nothing_follows_the_end=12,
    the_same_code_never_differs=19,
)
_add(
    with_lines(
        replay,
        "acts-before-it-records",
        record_start={"s.command[s.at[w]] = s.asks[w].value": "s.settled = s.settled"},
        settle={
            "s.result[s.at[w]] = value": "s.command[s.at[w]] = s.asks[w].value\ns.result[s.at[w]] = value"
        },
    ),
    "An activity is recorded with its result, after it has acted: whoever dies in between leaves no trace.",
    an_activity_acts_as_recorded=4,
    an_activity_without_a_key_acts_once=8,
)


def record_the_result(s: State, w: Element, value: int) -> None:
    """The value of a command is recorded before the command is."""
    when(makes(s, w))
    when(s.at[w] == s.known[w])
    when(not s.pending[w])
    when(s.asks[w].what == Name.draw or s.asks[w].what == Name.finish)
    when(not s.result[s.at[w]].present)

    s.result[s.at[w]] = value


def record_the_command_then(s: State, w: Element, value: int) -> None:
    """The command follows its value."""
    when(makes(s, w))
    when(s.at[w] == s.known[w])
    when(not s.pending[w])
    when(s.result[s.at[w]].present)
    when(value == 0)
    replayers.record_command(s, w)
    s.settled = s.at[w] + 1


RESULT_FIRST = replay.variant("records-the-result-first", record_at_once=record_the_command_then)
RESULT_FIRST.action(WORKER, w=workers, value=values)(record_the_result)
_add(
    RESULT_FIRST,
    "The result of a command is recorded, and then the command itself.",
    a_result_is_that_of_its_command=3,
    the_history_has_no_gap=3,
)

_add(
    with_lines(
        replay,
        "overwrites-when-refused",
        settle={
            "give_up(s, w, Standing.idle)": "s.result[s.at[w]] = s.brings[w]\ngive_up(s, w, Standing.idle)"
        },
    ),
    "A worker whose result is refused writes it into the history by another way.",
    a_recorded_result_is_never_replaced=10,
    the_same_code_never_differs=17,
    a_refusal_leaves_the_history_alone=10,
)
_add(
    with_lines(
        replay,
        "begins-again-after-a-stop",
        begin={"when(s.standing[w] == Standing.idle)": (
            "when(s.standing[w] == Standing.idle or s.standing[w] == Standing.stopped)"
        )},
    ),
    "A worker that has stopped at a difference reads the history again, and goes on after it.",
    scope="direct",
    who_has_stopped_does_nothing=7,
)  # fmt: skip

# What acts.

_add(
    with_lines(
        replay, "calls-again",
        meet_unfinished={"if s.asks[w].what == Name.send": "if s.asks[w].what != Name.finish"},
    ),
    "An activity that may have happened is called again, though it has no key.",
    an_activity_without_a_key_acts_once=8,
)  # fmt: skip


def serve_and_act(s: State, w: Element) -> None:
    """An idempotent activity is called, whatever is recorded of it."""
    if makes(s, w) and s.at[w] < s.known[w] and s.asks[w].what == Name.send:
        replayers.compare(s, w)
        if s.standing[w] == Standing.running:
            s.standing[w] = Standing.performing
    else:
        replayers.serve(s, w)


_add(
    replay.variant("acts-in-replay", serve=serve_and_act),
    "An idempotent activity is called in every replay, although its result is recorded.",
    what_has_its_result_does_not_act_again=9,
)
_add(
    without(replay, "goes-on-after-the-end", serve=("if s.asks[w].what == Name.finish",)),
    "Code that comes to the recorded end goes on after it.",
    nothing_follows_the_end=8,
)
_add(
    with_lines(
        replay,
        "looks-before-it-acts",
        perform={"when(s.standing[w] == Standing.performing)": (
            "when(s.standing[w] == Standing.performing)\nwhen(not s.result[s.at[w]].present)"
        )},
    ),
    "Correct but unusual: a worker looks again whether the result is recorded before an activity acts.",
)  # fmt: skip
