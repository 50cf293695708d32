"""Invariants that the proofs about replay need: true, and checked like claims, but no promises."""

from __future__ import annotations

from fencepost.model import State, derived, every, switched
from fencepost.model.core.state import workers
from fencepost.model.domains import Element
from fencepost.model.replay.state import Name, Standing, positions
from fencepost.properties.replay import REPLAY, is_activity


@derived
def in_activity(s: State, w: Element) -> object:
    """Whether an activity of worker `w` is about to act, or has acted and is not settled."""
    return s.standing[w] == Standing.performing or s.standing[w] == Standing.performed


@REPLAY.supporting(supports=("S24", "S24-definition"))
def nobody_is_ahead_of_the_history(s: State) -> object:
    """A worker has come no further than what it has read, and that is recorded."""
    return every(
        workers,
        lambda w: (
            s.at[w] <= s.known[w]
            and s.known[w] <= s.settled
            and (not s.pending[w] or s.command[s.known[w]].present)
        ),
    )


@REPLAY.supporting(supports=("S24", "S24-definition"))
def who_runs_nothing_knows_nothing(s: State) -> object:
    """A worker that is down or idle has come nowhere."""
    return every(
        workers,
        lambda w: (
            (s.standing[w] != Standing.idle and s.standing[w] != Standing.down)
            or (s.at[w] == 0 and s.got[w] == 0 and not s.asks[w].present)
        ),
    )


@REPLAY.supporting(supports=("S24",))
def an_activity_is_recorded_first(s: State) -> object:
    """A worker in an activity has its command recorded; after it acted, it has a value to record."""
    return every(
        workers,
        lambda w: (
            not in_activity(s, w)
            or (
                s.asks[w].present
                and s.command[s.at[w]] == s.asks[w]
                and is_activity(s.asks[w].what)
                and s.at[w] == s.known[w]
                and (s.standing[w] == Standing.performing or (s.brings[w].present and s.acted[s.at[w]]))
            )
        ),
    )


@REPLAY.supporting(supports=("S24",))
def what_acted_was_recorded(s: State) -> object:
    """Activities have acted only for commands that are recorded."""
    return every(positions, lambda p: not s.acted[p] or s.command[p].present)


@REPLAY.supporting(supports=("S24",))
def a_call_has_one_worker(s: State) -> object:
    """An activity without a key is with one worker, and has not acted before that worker has it act."""
    return every(
        workers,
        lambda w: (
            not in_activity(s, w)
            or not s.asks[w].present
            or s.asks[w].what != Name.call
            or (
                (s.standing[w] == Standing.performed or not s.acted[s.at[w]])
                and every(workers, lambda v: v == w or not in_activity(s, v) or s.at[v] != s.at[w])
            )
        ),
    )


@REPLAY.supporting(supports=("S24",))
def who_goes_on_has_not_passed_the_end(s: State) -> object:
    """No position that a worker has passed is the end, unless the worker is done."""
    return every(
        workers,
        positions,
        lambda w, p: (
            s.standing[w] == Standing.done
            or p >= s.at[w]
            or (s.command[p].present and s.command[p].what != Name.finish)
        ),
    )


@REPLAY.supporting(supports=("S24-definition",))
def passed_commands_have_the_workers_definition(s: State) -> object:
    """What a worker has passed was made by the definition that it runs, and so is what it makes."""
    return every(workers, lambda w: not s.asks[w].present or s.asks[w].definition == s.code[w]) and every(
        workers,
        positions,
        lambda w, p: p >= s.at[w] or (s.command[p].present and s.command[p].definition == s.code[w]),
    )


@REPLAY.supporting(supports=("S24",))
def only_a_change_brings_other_code(s: State) -> object:
    """All workers run the first definition, and all commands were made by it, unless code is changed."""
    return switched("definition_changed") or (
        every(workers, lambda w: s.code[w] == 0)
        and every(positions, lambda p: not s.command[p].present or s.command[p].definition == 0)
    )


@REPLAY.supporting(supports=("S24",))
def a_workflow_has_the_last_result(s: State) -> object:
    """What a workflow was given last is the result before its position, and the input at the first."""
    return every(workers, lambda w: s.at[w] != 0 or s.got[w] == 0) and every(
        workers, positions, lambda w, p: p + 1 != s.at[w] or s.result[p] == s.got[w]
    )


@REPLAY.supporting(supports=("S24",))
def recorded_commands_follow_from_results(s: State) -> object:
    """Arguments are made of the result before, and the command is that of the plan, without direct calls."""
    return switched("direct_call") or (
        every(
            positions,
            lambda p: (
                not s.command[p].present
                or (
                    s.plan[s.command[p].definition, p] == s.command[p].what
                    and (p != 0 or s.command[p].fingerprint == 0)
                )
            ),
        )
        and every(
            positions,
            positions,
            lambda p, q: q + 1 != p or not s.command[p].present or s.result[q] == s.command[p].fingerprint,
        )
    )


@REPLAY.supporting(supports=("S24",))
def commands_follow_from_what_was_given(s: State) -> object:
    """So it is with the command that a workflow makes now."""
    return switched("direct_call") or every(
        workers,
        lambda w: (
            not s.asks[w].present
            or (s.plan[s.asks[w].definition, s.at[w]] == s.asks[w].what and s.asks[w].fingerprint == s.got[w])
        ),
    )
