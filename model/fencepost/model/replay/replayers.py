"""What a worker does with a workflow, from its first line on (§15); it may crash between any two steps.

It reads the history. For each command that the workflow makes it looks at what is recorded there: the same
command with a result gives that result; another command stops it. Where nothing is recorded the command is,
if nobody else was first: together with its value, or for an activity before it acts and again after it.
"""

from __future__ import annotations

from fencepost.model.core.state import STORE, WORKER, workers
from fencepost.model.domains import Element, Member
from fencepost.model.language import State, absent, refuse_unless, switched, when
from fencepost.model.replay.state import (
    Answer,
    Command,
    Name,
    Standing,
    makes,
    planned,
    replay,
    values,
)


@replay.action(WORKER, w=workers)
def begin(s: State, w: Element) -> None:
    """A worker reads the history, and starts the workflow at its first line."""
    when(s.standing[w] == Standing.idle)

    s.standing[w] = Standing.running
    s.known[w] = s.settled
    s.pending[w] = s.command[s.settled].present


def give_up(s: State, w: Element, standing: Member) -> None:
    """The worker forgets how far it has come, and what it was given."""
    s.standing[w] = standing
    s.at[w] = 0
    s.got[w] = 0
    s.asks[w] = absent
    s.brings[w] = absent
    s.known[w] = 0
    s.pending[w] = False


@replay.action(WORKER, w=workers, what=Name, fingerprint=values)
def make_command(s: State, w: Element, what: Member, fingerprint: int) -> None:
    """The workflow makes the command that its code and what it was given lead to, and outside answers too."""
    when(s.standing[w] == Standing.running)
    when(not s.asks[w].present)
    if not switched("direct_call"):
        when(fingerprint == s.got[w])
        when(not planned(s, w).present or planned(s, w) == what)
        s.plan[s.code[w], s.at[w]] = what

    s.asks[w] = Command(what=what, fingerprint=fingerprint, definition=s.code[w])


def pass_position(s: State, w: Element) -> None:
    """The workflow is given the recorded result, and goes on after it; with its end, it is done."""
    s.got[w] = s.result[s.at[w]].value
    s.standing[w] = Standing.running
    if s.asks[w].what == Name.finish:
        s.standing[w] = Standing.done
    s.at[w] = s.at[w] + 1
    s.asks[w] = absent


def compare(s: State, w: Element) -> None:
    """The command that a workflow makes is the one recorded at its position, or the worker stops there."""
    recorded, asked = s.command[s.at[w]].value, s.asks[w].value
    if recorded.what != asked.what:
        s.standing[w] = Standing.stopped
    if recorded.fingerprint != asked.fingerprint:
        s.standing[w] = Standing.stopped
    if recorded.definition != asked.definition:
        s.standing[w] = Standing.stopped


@replay.action(WORKER, w=workers)
def serve(s: State, w: Element) -> None:
    """A command that has its result in the history gets it from there, or stops the worker."""
    when(makes(s, w))
    when(s.at[w] < s.known[w])

    compare(s, w)
    if s.standing[w] == Standing.running:
        pass_position(s, w)


@replay.action(WORKER, w=workers)
def meet_unfinished(s: State, w: Element) -> None:
    """A command that was recorded without a result may have happened: only one with a key happens again."""
    when(makes(s, w))
    when(s.at[w] == s.known[w])
    when(s.pending[w])

    compare(s, w)
    if s.standing[w] == Standing.running:
        s.standing[w] = Standing.unknown
        if s.asks[w].what == Name.send:
            s.standing[w] = Standing.performing


def record_command(s: State, w: Element) -> None:
    """The command takes its position, unless another was first."""
    refuse_unless(not s.command[s.at[w]].present, "position-taken")
    s.command[s.at[w]] = s.asks[w].value


def record_result(s: State, w: Element, value: object) -> None:
    """The result takes its position, unless another was first."""
    refuse_unless(not s.result[s.at[w]].present, "result-recorded")
    s.result[s.at[w]] = value
    s.settled = s.at[w] + 1


def learn_settled(s: State, w: Element, answer: Member) -> None:
    """With the result recorded the workflow goes on; a worker that came too late begins anew."""
    if answer == Answer.ok:
        pass_position(s, w)
        s.brings[w] = absent
        s.known[w] = s.at[w]
        s.pending[w] = False
    else:
        give_up(s, w, Standing.idle)


def learn_drawn(s: State, w: Element, value: int, answer: Member) -> None:
    """As with any result."""
    learn_settled(s, w, answer)


@replay.operation(WORKER, home=STORE, answered=learn_drawn, w=workers, value=values)
def record_at_once(s: State, w: Element, value: int) -> None:
    """A command that is no activity is recorded together with its value: one from outside, or the end."""
    when(makes(s, w))
    when(s.at[w] == s.known[w])
    when(not s.pending[w])
    when(s.asks[w].what == Name.draw or s.asks[w].what == Name.finish)
    record_command(s, w)
    record_result(s, w, value)


def learn_started(s: State, w: Element, answer: Member) -> None:
    """Who has recorded the start of an activity performs it; a worker that came too late begins anew."""
    if answer == Answer.ok:
        s.standing[w] = Standing.performing
    else:
        give_up(s, w, Standing.idle)


@replay.operation(WORKER, home=STORE, answered=learn_started, w=workers)
def record_start(s: State, w: Element) -> None:
    """The start of an activity is recorded before it acts."""
    when(makes(s, w))
    when(s.at[w] == s.known[w])
    when(not s.pending[w])
    when(s.asks[w].what == Name.call or s.asks[w].what == Name.send)
    record_command(s, w)


@replay.action(WORKER, w=workers, value=values)
def perform(s: State, w: Element, value: int) -> None:
    """The activity acts, and gives a value."""
    when(s.standing[w] == Standing.performing)

    s.standing[w] = Standing.performed
    s.brings[w] = value
    s.acted[s.at[w]] = True


@replay.operation(WORKER, home=STORE, answered=learn_settled, w=workers)
def settle(s: State, w: Element) -> None:
    """What the activity gave is recorded, unless a result is."""
    when(s.standing[w] == Standing.performed)
    record_result(s, w, s.brings[w].value)
